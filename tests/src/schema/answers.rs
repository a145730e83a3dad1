//! Results and errors: which definition belongs to an answer.

use serde_json::Value;

use crate::revision::Revision;
use crate::schema::validator::Schema;

/// The definitions that a result of a method may have.
fn definitions(method: &str) -> &'static [&'static str] {
    match method {
        "initialize" => &["InitializeResult"],
        "server/discover" => &["DiscoverResult"],
        "tools/list" => &["ListToolsResult"],
        "tools/call" => &["CallToolResult", "CreateTaskResult", "InputRequiredResult"],
        "resources/list" => &["ListResourcesResult"],
        "resources/templates/list" => &["ListResourceTemplatesResult"],
        "resources/read" => &["ReadResourceResult", "InputRequiredResult"],
        "prompts/list" => &["ListPromptsResult"],
        "prompts/get" => &["GetPromptResult", "InputRequiredResult"],
        "completion/complete" => &["CompleteResult"],
        "subscriptions/listen" => &["SubscriptionsListenResult"],
        "tasks/get" => &["GetTaskResult"],
        "tasks/list" => &["ListTasksResult"],
        "tasks/cancel" => &["CancelTaskResult"],
        "sampling/createMessage" => &["CreateMessageResult"],
        "elicitation/create" => &["ElicitResult"],
        "roots/list" => &["ListRootsResult"],
        _ => &["EmptyResult"],
    }
}

/// The definition of an error with this code, where the revision has one of its own.
fn error(code: i64) -> &'static str {
    match code {
        -32042 => "URLElicitationRequiredError",
        -32020 => "HeaderMismatchError",
        -32021 => "MissingRequiredClientCapabilityError",
        -32022 => "UnsupportedProtocolVersionError",
        _ => "",
    }
}

/// What is wrong with an answer to a request of that method.
pub(crate) fn faults(schema: &Schema, revision: Revision, method: &str, frame: &Value) -> Vec<String> {
    if let Some(code) = frame["error"]["code"].as_i64() {
        let name = error(code);
        let is_foreign = if revision.is_modern() {
            matches!(code, -32002 | -32042)
        } else {
            (-32022..=-32020).contains(&code) && method != "initialize"
                || code == -32042 && revision < Revision::R2025_11_25
        };
        return match () {
            () if is_foreign => vec![format!("{code} means nothing in this revision")],
            () if schema.has(name) => schema.faults(name, frame),
            () => Vec::new(),
        };
    }
    let result = &frame["result"];
    let known: Vec<&str> = definitions(method).iter().copied().filter(|name| schema.has(name)).collect();
    let kind = result["resultType"].as_str();
    let picked = match kind {
        // A task of the extension: its schema is not among the published ones.
        Some("task") if revision.is_modern() => "Result",
        Some("input_required") if revision.is_modern() => "InputRequiredResult",
        _ if result.get("task").is_some() && known.contains(&"CreateTaskResult") => "CreateTaskResult",
        _ => known.first().copied().unwrap_or("Result"),
    };
    if picked == "InputRequiredResult" && !known.contains(&picked) {
        return vec![format!("{method} cannot ask for input")];
    }
    schema.faults(picked, result)
}
