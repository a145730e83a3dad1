//! The tools that the suite's scenarios call.

use crate::content::{audio, embedded, image, text};
use crate::questions::{Asked, Context, asking, can_be_asked, elicit, live, roots, sample, typed, wants_logs};
use crate::server::{Kind, World};
use rmcp::ErrorData;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// What a call brings beside its name.
pub struct Given {
    pub arguments: Value,
    pub answers: Value,
    pub state: Option<String>,
}

fn schema_of_everything() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": {
            "$anchor": "addressDef", "type": "object",
            "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
        } },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

/// Name and description of the tools that take nothing.
const PLAIN: [(&str, &str); 25] = [
    ("test_simple_text", "Returns text"),
    ("test_image_content", "Returns an image"),
    ("test_audio_content", "Returns a sound"),
    ("test_embedded_resource", "Returns a resource inside its result"),
    ("test_multiple_content_types", "Returns text, an image and a resource"),
    ("test_tool_with_logging", "Logs three lines"),
    ("test_logging_tool", "Logs three lines"),
    ("test_tool_with_progress", "Reports progress three times"),
    ("test_error_handling", "Fails"),
    ("test_reconnection", "Answers late"),
    ("test_trigger_tool_change", "Changes the list of tools"),
    ("test_trigger_prompt_change", "Changes the list of prompts"),
    ("test_elicitation_sep1034_defaults", "Asks with defaults"),
    ("test_elicitation_sep1330_enums", "Asks with lists to choose from"),
    ("test_input_required_result_elicitation", "Asks the user's name"),
    ("test_input_required_result_sampling", "Asks the client's model for a capital"),
    ("test_input_required_result_list_roots", "Asks for the client's roots"),
    ("test_input_required_result_request_state", "Asks, with state"),
    ("test_input_required_result_multiple_inputs", "Asks three kinds of question at once"),
    ("test_input_required_result_multi_round", "Asks twice"),
    ("test_input_required_result_tampered_state", "Asks, with state that must not be changed"),
    ("test_input_required_result_capabilities", "Asks what the client can be asked"),
    ("test_streaming_elicitation", "Asks the user"),
    ("test_missing_capability", "Cannot do without the client's model"),
    ("test_extra_tool", "Comes and goes"),
];

pub fn list(has_extra: bool) -> Value {
    let tool = |name: &str, description: &str, schema: Value| json!({ "name": name, "description": description, "inputSchema": schema });
    let string = || json!({ "type": "string" });
    let required = |name: &str| json!({ "type": "object", "properties": { name: string() }, "required": [name] });
    let plain = PLAIN.iter().filter(|(name, _)| has_extra || *name != "test_extra_tool");
    let mut tools: Vec<_> =
        plain.map(|(name, said)| tool(name, said, json!({ "type": "object", "properties": {} }))).collect();
    tools.push(tool("json_schema_2020_12_tool", "Has a schema with everything", schema_of_everything()));
    let header =
        json!({ "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } });
    tools.push(tool("test_header_parameter", "Has a parameter that is told in a header too", header));
    tools.push(tool("test_sampling", "Asks the client's model", required("prompt")));
    tools.push(tool("test_elicitation", "Asks the user", required("message")));
    tools.into()
}

fn said(content: Vec<Value>) -> Value {
    json!({ "content": content })
}

fn completed(form: &Value) -> Value {
    let (action, content) = (form["action"].as_str().unwrap_or_default(), &form["content"]);
    said(vec![text(format!("Elicitation completed: action={action}, content={content}"))])
}

/// The result of a call, as JSON: one that is complete, or what is to be asked first.
pub async fn call(name: &str, given: Given, context: &Context, world: &Arc<World>) -> Result<Value, ErrorData> {
    Ok(match name {
        "test_simple_text" => said(vec![text("This is a simple text response for testing.")]),
        "test_image_content" => said(vec![image()]),
        "test_audio_content" => said(vec![audio()]),
        "test_embedded_resource" => {
            said(vec![embedded("test://embedded-resource", "This is an embedded resource content.", "text/plain")])
        }
        "test_multiple_content_types" => said(vec![
            text("Multiple content types test:"),
            image(),
            embedded("test://mixed-content-resource", r#"{"test":"data","value":123}"#, "application/json"),
        ]),
        "test_tool_with_logging" | "test_logging_tool" => logs(context).await?,
        "test_tool_with_progress" => progresses(context).await?,
        "test_error_handling" => {
            json!({ "content": [text("This tool intentionally returns an error for testing")], "isError": true })
        }
        "test_reconnection" => {
            tokio::time::sleep(Duration::from_millis(2500)).await;
            said(vec![text("answered late")])
        }
        "json_schema_2020_12_tool" => said(vec![text("never mind")]),
        "test_header_parameter" => said(vec![text(format!("region {}", given.arguments["region"]))]),
        "test_trigger_tool_change" => changes(world, Kind::Tools).await,
        "test_trigger_prompt_change" => changes(world, Kind::Prompts).await,
        "test_extra_tool" if world.has(Kind::Tools) => said(vec![text("still here")]),
        _ => return asks(name, given, context).await,
    })
}

async fn changes(world: &Arc<World>, kind: Kind) -> Value {
    world.change(kind).await;
    said(vec![text("a list has changed")])
}

#[expect(deprecated, reason = "the scenarios want it")]
async fn logs(context: &Context) -> Result<Value, ErrorData> {
    let lines = ["Tool execution started", "Tool processing data", "Tool execution completed"];
    for line in lines.iter().filter(|_| wants_logs(context)) {
        let _told = context.peer.notify_logging_message(typed(json!({ "level": "info", "data": line }))?).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(said(vec![text("three lines logged")]))
}

async fn progresses(context: &Context) -> Result<Value, ErrorData> {
    let token = context.meta.get_progress_token();
    for progress in [0, 50, 100] {
        if let Some(token) = &token {
            let message = format!("{progress} of 100");
            let told = json!({ "progressToken": token, "progress": progress, "total": 100, "message": message });
            let _told = context.peer.notify_progress(typed(told)?).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(said(vec![text("three steps done")]))
}

fn defaults() -> Value {
    json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    })
}

fn enums() -> Value {
    let titled = json!([
        { "const": "value1", "title": "First" }, { "const": "value2", "title": "Second" }, { "const": "value3", "title": "Third" },
    ]);
    json!({
        "untitledSingle": { "type": "string", "enum": ["option1", "option2", "option3"] },
        "titledSingle": { "type": "string", "oneOf": titled },
        "legacyEnum": { "type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"] },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": ["option1", "option2", "option3"] } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled } },
    })
}

/// A tool that asks by `input_required`, and is done.
fn done(
    context: &Context,
    given: &Given,
    (questions, state): (&[(&str, Value)], Option<&str>),
    done: impl FnOnce(&serde_json::Map<String, Value>) -> Value,
) -> Result<Value, ErrorData> {
    // What it gave out itself, and nothing else, may come back.
    if state.is_some() && given.state.as_deref().is_some_and(|given| Some(given) != state) {
        return Err(ErrorData::invalid_params("this state is not one of this server's", None));
    }
    Ok(match asking(context, &given.answers, questions, state)? {
        Asked::Required(result) => result,
        Asked::Answers(answers) => done(&answers),
    })
}

async fn asks(name: &str, given: Given, context: &Context) -> Result<Value, ErrorData> {
    let string = || json!({ "type": "string" });
    let name_of = || elicit("What is your name?", json!({ "name": string() }), None);
    let confirm = || elicit("Please confirm", json!({ "ok": { "type": "boolean" } }), None);
    let argument = |name: &str| given.arguments[name].as_str().unwrap_or_default().to_owned();
    let plain = |said_text: String| said(vec![text(said_text)]);
    match name {
        "test_sampling" => {
            let answer = live(context, sample(&argument("prompt"), 100)).await?;
            Ok(plain(format!("LLM response: {}", answer["content"])))
        }
        "test_elicitation" => {
            let properties = json!({ "username": string(), "email": string() });
            let form = live(context, elicit(&argument("message"), properties, None)).await?;
            Ok(plain(format!(
                "User response: action={}, content={}",
                form["action"].as_str().unwrap_or(""),
                form["content"]
            )))
        }
        "test_elicitation_sep1034_defaults" => {
            Ok(completed(&live(context, elicit("Please check", defaults(), Some(&[]))).await?))
        }
        "test_elicitation_sep1330_enums" => {
            Ok(completed(&live(context, elicit("Please choose", enums(), Some(&[]))).await?))
        }
        "test_input_required_result_elicitation" => {
            done(context, &given, (&[("user_name", name_of())], None), |answers| {
                plain(format!("Hello, {}!", answers["user_name"]["content"]["name"].as_str().unwrap_or("nobody")))
            })
        }
        "test_input_required_result_sampling" => {
            let question = sample("What is the capital of France?", 100);
            done(context, &given, (&[("capital_question", question)], None), |answers| {
                plain(answers["capital_question"]["content"].to_string())
            })
        }
        "test_input_required_result_list_roots" => {
            done(context, &given, (&[("client_roots", roots())], None), |answers| {
                plain(answers["client_roots"]["roots"].to_string())
            })
        }
        "test_input_required_result_request_state" => {
            done(context, &given, (&[("confirm", confirm())], Some("request-state")), |_| plain("state-ok".into()))
        }
        "test_input_required_result_tampered_state" => {
            done(context, &given, (&[("confirm", confirm())], Some("tampered-state")), |_| plain("untouched".into()))
        }
        "test_input_required_result_multiple_inputs" => {
            let several =
                [("user_name", name_of()), ("greeting", sample("Generate a greeting", 50)), ("client_roots", roots())];
            done(context, &given, (&several, Some("several")), |answers| plain(format!("{} answers", answers.len())))
        }
        "test_input_required_result_capabilities" => {
            let mut able = vec![("name", name_of()), ("greeting", sample("Generate a greeting", 50))];
            able.retain(|(_, question)| can_be_asked(context, question));
            done(context, &given, (&able, None), |answers| plain(format!("{} answers", answers.len())))
        }
        "test_streaming_elicitation" => {
            let form = elicit("Go on?", json!({ "ok": { "type": "boolean" } }), None);
            done(context, &given, (&[("form", form)], None), |answers| completed(&answers["form"]))
        }
        "test_missing_capability" => {
            let question = sample("Say something", 10);
            done(context, &given, (&[("answer", question)], None), |_| plain("it said something".into()))
        }
        "test_input_required_result_multi_round" => rounds(&given, context),
        _ => Err(ErrorData::invalid_params(format!("no tool {name}"), None)),
    }
}

/// Two rounds, the first one's answer kept in the state.
fn rounds(given: &Given, context: &Context) -> Result<Value, ErrorData> {
    let string = || json!({ "type": "string" });
    let color = || elicit("What is your favorite color?", json!({ "color": string() }), None);
    let known: Value = given.state.as_deref().and_then(|state| serde_json::from_str(state).ok()).unwrap_or_default();
    let mut name = known["name"].as_str().map(str::to_owned);
    if name.is_none() {
        let question = elicit("What is your name?", json!({ "name": string() }), None);
        match asking(context, &given.answers, &[("step1", question)], Some(r#"{"round":1}"#))? {
            Asked::Required(result) => return Ok(result),
            Asked::Answers(answers) => name = answers["step1"]["content"]["name"].as_str().map(str::to_owned),
        }
    }
    let name = name.unwrap_or_default();
    let state = json!({ "round": 2, "name": name }).to_string();
    Ok(match asking(context, &given.answers, &[("step2", color())], Some(&state))? {
        Asked::Required(result) => result,
        Asked::Answers(answers) => said(vec![text(format!("{name} likes {}", answers["step2"]["content"]["color"]))]),
    })
}

/// A prompt that asks first.
pub fn prompt(answers: &Value, context: &Context) -> Result<Value, ErrorData> {
    let question = elicit("What context should the prompt use?", json!({ "context": { "type": "string" } }), None);
    Ok(match asking(context, answers, &[("user_context", question)], None)? {
        Asked::Required(result) => result,
        Asked::Answers(answers) => {
            let given = &answers["user_context"]["content"]["context"];
            crate::content::messages(vec![text(format!("In the context of {given}"))])
        }
    })
}

/// Whether a result asks.
pub fn is_required(result: &Value) -> bool {
    result["resultType"] == "input_required"
}
