//! The HTTP headers that go with a request in a revision.

use serde_json::value::RawValue;

use crate::client::request::Request;
use crate::frame::{fields, text};
use crate::revision::Revision;
use crate::sentinel;

/// Name and value pairs beside those that every POST has.
pub(crate) fn of_request(request: &Request, revision: Revision) -> Vec<(String, String)> {
    if !revision.is_modern() {
        return Vec::new();
    }
    let mut headers = vec![
        ("mcp-protocol-version".to_owned(), revision.text().to_owned()),
        ("mcp-method".to_owned(), request.method.clone()),
    ];
    let field = match request.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return headers,
    };
    let params = RawValue::from_string(request.params.clone()).map(|raw| fields(&raw)).unwrap_or_default();
    if let Some(name) = params.get(field).and_then(|raw| text(raw)) {
        headers.push(("mcp-name".to_owned(), sentinel::encode(&name)));
    }
    headers
}
