//! A gateway with one upstream that works and one that does not, and its answers.

use std::collections::BTreeSet;

use serde_json::Value;
use trunkline_tests::client::{Client, http};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within;

use super::errors::body;

/// A request to the endpoint.
pub(super) struct Probe {
    pub(super) what: &'static str,
    pub(super) method: &'static str,
    pub(super) headers: &'static [(&'static str, &'static str)],
    /// Method, name and parameters of a stateless request, in place of a body.
    pub(super) rpc: Option<(&'static str, &'static str, &'static str)>,
    pub(super) body: &'static str,
}

/// Starts both upstreams, waits until their states stay, and gives the gateway to a test.
fn with_gateway<T>(test: impl AsyncFnOnce(&Gateway) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime starts").block_on(async {
        let up = Upstream::stdio(Script::new("up", Revision::R2025_11_25)).await;
        let config = Config::new().upstream(&up).section("[upstreams.ill]\ncommand = \"/no/such/command\"");
        let gateway = Gateway::serve(&config).await;
        let is_settled = |page: &str| page.contains("\"ready\"") && page.contains("\"failed\"");
        gateway.look_until("/api/v1/upstreams", "one upstream is ready and one has failed", is_settled).await;
        let result = test(&gateway).await;
        assert!(gateway.stop().await.success());
        result
    })
}

/// Status, JSON-RPC code and members of the error of each answer.
pub(super) fn answers(probes: &[Probe]) -> Vec<String> {
    with_gateway(async |gateway| {
        let mut lines = Vec::new();
        for probe in probes {
            let mut headers = vec![("accept", "application/json, text/event-stream")];
            if !probe.headers.iter().any(|(name, _)| *name == "content-type") {
                headers.push(("content-type", "application/json"));
            }
            headers.retain(|(name, _)| !probe.headers.iter().any(|(other, _)| other == name));
            headers.extend_from_slice(probe.headers);
            let mut text = probe.body.to_owned();
            if let Some((method, name, params)) = probe.rpc {
                headers.push(("mcp-method", method));
                headers.extend((!name.is_empty()).then_some(("mcp-name", name)));
                text = body(method, params);
            }
            let answer = http::exchange(&gateway.url, probe.method, &headers, &text).await;
            let content = match answer.events.iter().rev().find_map(|event| event.data.clone()) {
                Some(data) => data.into_bytes(),
                None => answer.body.to_vec(),
            };
            let content: Value = serde_json::from_slice(&content).unwrap_or_default();
            let mut names: Vec<&str> = answer.headers.keys().map(http_name).collect();
            names.sort_unstable();
            let error = &content["error"];
            let mut fields = BTreeSet::new();
            shape("data", &error["data"], &mut fields);
            let fields: Vec<String> = fields.into_iter().collect();
            lines.push(format!(
                "{}: status {}, code {}, {}; headers {}",
                probe.what,
                answer.status,
                error["code"],
                fields.join(", "),
                names.join(", ")
            ));
        }
        lines
    })
}

fn http_name<T: AsRef<str>>(name: &T) -> &str {
    name.as_ref()
}

/// The fields of what commands print of a running gateway.
pub(super) fn fields(commands: &[&[&str]]) -> Vec<String> {
    with_gateway(async |gateway| {
        let client = Client::connect(&gateway.reach(), Revision::R2025_11_25).await;
        // The first call of `calls` is one of a tool that exists.
        client.call("up__echo", "{}").await;
        let mut lines = Vec::new();
        for command in commands {
            let output = within("the command ends", gateway.command(command).output()).await.expect("it runs");
            lines.extend(fields_of(command, &output.stdout));
        }
        lines
    })
}

/// The fields of the output of a command.
pub(super) fn fields_of(command: &[&str], output: &[u8]) -> Vec<String> {
    let mut fields = BTreeSet::new();
    for value in serde_json::Deserializer::from_slice(output).into_iter::<Value>() {
        shape("", &value.unwrap_or_else(|error| panic!("{command:?}: {error}")), &mut fields);
    }
    // A call in progress has no outcome yet: `null` counts only where no other value was seen.
    let is_void = |field: &String| {
        let path = field.strip_suffix("null");
        path.is_some_and(|path| fields.iter().any(|other| other != field && other.starts_with(path)))
    };
    fields.iter().filter(|field| !is_void(field)).map(|field| format!("{} {field}", command.join(" "))).collect()
}

/// The paths of all fields with their types.
pub(super) fn shape(path: &str, value: &Value, out: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                shape(&format!("{path}.{name}"), value, out);
            }
            return;
        }
        Value::Array(values) => {
            values.iter().for_each(|value| shape(&format!("{path}[]"), value, out));
            "array"
        }
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
    };
    out.insert(format!("{path}: {kind}"));
}
