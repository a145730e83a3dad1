//! Questions of both eras: a session is asked live, a stateless client by `input_required`, and neither the other way.

use rmcp::model::{ClientResult, ErrorCode, ServerRequest};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

pub type Context = RequestContext<RoleServer>;

/// A type of the SDK, from its JSON.
pub fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// A result that is complete, as which the SDK shows it to stateless clients alone.
pub fn complete<T: DeserializeOwned>(mut value: Value) -> Result<T, ErrorData> {
    value["resultType"] = "complete".into();
    typed(value)
}

/// Whether a client wants log messages: a stateless one says so in each request.
pub fn wants_logs(context: &Context) -> bool {
    let level = || context.meta.0.get("io.modelcontextprotocol/logLevel").is_some();
    !is_stateless(context) || level()
}

pub fn is_stateless(context: &Context) -> bool {
    context.protocol_version().is_some_and(|version| version.as_str() >= "2026")
}

pub fn elicit(message: &str, properties: Value, required: Option<&[&str]>) -> Value {
    let all = properties.as_object().map(|all| all.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
    let required = required.map_or(all, |names| names.iter().map(|name| (*name).to_owned()).collect());
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    json!({ "method": "elicitation/create", "params": { "mode": "form", "message": message, "requestedSchema": schema } })
}

pub fn sample(prompt: &str, max_tokens: u32) -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
    json!({ "method": "sampling/createMessage", "params": { "messages": [message], "maxTokens": max_tokens } })
}

pub fn roots() -> Value {
    json!({ "method": "roots/list" })
}

fn needed(question: &Value) -> &'static str {
    match question["method"].as_str() {
        Some("elicitation/create") => "elicitation",
        Some("sampling/createMessage") => "sampling",
        _ => "roots",
    }
}

/// Whether an answer is one to this kind of question.
fn fits(question: &Value, answer: &Value) -> bool {
    let part = match needed(question) {
        "elicitation" => "action",
        "sampling" => "content",
        _ => "roots",
    };
    answer.get(part).is_some()
}

pub fn can_be_asked(context: &Context, question: &Value) -> bool {
    let declared = context.client_capabilities().and_then(|all| serde_json::to_value(all).ok());
    declared.is_some_and(|all| all.get(needed(question)).is_some_and(Value::is_object))
}

/// Asks a session, and waits; to a stateless client the SDK sends no request.
pub async fn live(context: &Context, question: Value) -> Result<Value, ErrorData> {
    let request: ServerRequest = typed(question)?;
    let answer = context.peer.send_request(request).await;
    let answer: ClientResult = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    serde_json::to_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// What came of a question.
pub enum Asked {
    /// The answers, by the keys of the questions.
    Answers(Map<String, Value>),
    /// What is to be asked, as an `input_required` result.
    Required(Value),
}

/// The answers, once there is one of the right kind for each question; else what is missing is asked for.
pub fn asking(
    context: &Context,
    given: &Value,
    questions: &[(&str, Value)],
    state: Option<&str>,
) -> Result<Asked, ErrorData> {
    if !is_stateless(context) {
        return Err(ErrorData::internal_error("a session knows no input_required", None));
    }
    let (mut answers, mut missing) = (Map::new(), Map::new());
    for (key, question) in questions {
        match given.get(*key).filter(|answer| fits(question, answer)) {
            Some(answer) => _ = answers.insert((*key).into(), answer.clone()),
            None => _ = missing.insert((*key).into(), question.clone()),
        }
    }
    if missing.is_empty() {
        return Ok(Asked::Answers(answers));
    }
    for question in missing.values() {
        require(context, question)?;
    }
    let mut result = json!({ "resultType": "input_required", "inputRequests": missing });
    if let Some(state) = state {
        result["requestState"] = state.into();
    }
    Ok(Asked::Required(result))
}

fn require(context: &Context, question: &Value) -> Result<(), ErrorData> {
    if can_be_asked(context, question) {
        return Ok(());
    }
    let needed = needed(question);
    let data = json!({ "requiredCapabilities": { needed: {} } });
    Err(ErrorData::new(ErrorCode(-32021), format!("this needs {needed}"), Some(data)))
}
