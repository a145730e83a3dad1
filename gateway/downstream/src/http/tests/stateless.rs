//! A stateless client that can be asked, as the tests of parked calls play it.

use super::{Bench, Client, post, principal, text};
use crate::call::reply::ask::Answered;
use crate::protocol::frame::Method;
use crate::scripted::Hand;
use serde_json::{Value, json};
use tokio::sync::oneshot;

pub(super) const FORM: &str = r#"{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}"#;

/// One request: who makes it, what it asks for, what can be asked back.
#[derive(Clone)]
pub(super) struct Request {
    pub(super) who: Option<&'static str>,
    pub(super) method: &'static str,
    pub(super) params: Value,
    pub(super) can: Value,
    pub(super) accept: &'static str,
}

/// What came back: status and body.
#[derive(Debug)]
pub(super) struct Got(pub(super) u16, pub(super) Value);

impl Request {
    /// A call of a tool, by a client that can be asked everything.
    pub(super) fn new() -> Self {
        Self {
            who: None,
            method: "tools/call",
            params: json!({"name": "x", "arguments": {"a": 1}}),
            can: json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}),
            accept: "application/json, text/event-stream",
        }
    }

    pub(super) fn of(self, who: &'static str) -> Self {
        Self { who: Some(who), ..self }
    }

    pub(super) fn able(self, can: Value) -> Self {
        Self { can, ..self }
    }

    /// The same with another member of its parameters.
    pub(super) fn with(mut self, key: &str, value: Value) -> Self {
        self.params[key] = value;
        self
    }

    /// The retry: the same with the state that was given, and with answers.
    pub(super) fn retry(&self, before: &Got, answers: Value) -> Self {
        self.clone().with("requestState", before.state()).with("inputResponses", answers)
    }

    pub(super) async fn open(&self, client: &Client) -> http::Response<super::Body> {
        let mut params = self.params.clone();
        params["_meta"] = json!({
            "progressToken": "t",
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": self.can,
        });
        let mut request = post().header("mcp-protocol-version", "2026-07-28").header("mcp-method", self.method);
        request.headers_mut().unwrap().insert("accept", self.accept.parse().unwrap());
        if let Some(name) = params["name"].as_str() {
            request = request.header("mcp-name", name);
        }
        if let Some(who) = self.who {
            request = principal(request, who);
        }
        let frame = json!({"jsonrpc": "2.0", "id": 7, "method": self.method, "params": params});
        client.send(request, &frame.to_string()).await
    }

    /// Sends it and reads what comes back to its end; of a stream, the last message.
    pub(super) async fn send(&self, client: &Client) -> Got {
        let response = self.open(client).await;
        let status = response.status().as_u16();
        let body = text(response).await;
        let last = body.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&body);
        Got(status, serde_json::from_str(last).unwrap())
    }

    /// Sends it and has its call ask these questions.
    pub(super) async fn asked(&self, bench: &mut Bench, questions: &[(Method, &str)]) -> (Got, Hand, Vec<Incoming>) {
        let face = bench.client.clone();
        let play = async {
            let hand = bench.hands.next().await;
            let answers = questions.iter().map(|(method, params)| hand.ask(method.clone(), params)).collect();
            (hand, answers)
        };
        let (got, (hand, answers)) = tokio::join!(self.send(&face), play);
        (got, hand, answers)
    }
}

/// Where an answer arrives.
pub(super) type Incoming = oneshot::Receiver<Answered>;

impl Got {
    pub(super) fn state(&self) -> Value {
        self.1["result"]["requestState"].clone()
    }

    /// The keys of the questions, in their order.
    pub(super) fn keys(&self) -> Vec<String> {
        let requests = self.1["result"]["inputRequests"].as_object();
        requests.map(|requests| requests.keys().cloned().collect()).unwrap_or_default()
    }

    /// An answer to each of them.
    pub(super) fn accepts(&self) -> Value {
        self.keys().into_iter().map(|key| (key, json!({"action": "accept", "content": {}}))).collect()
    }

    pub(super) fn is_input_required(&self) -> bool {
        self.1["result"]["resultType"] == "input_required"
    }

    /// Status, code and message of an error.
    pub(super) fn error(&self) -> (u16, i64, String) {
        let error = &self.1["error"];
        (self.0, error["code"].as_i64().unwrap_or_default(), error["message"].as_str().unwrap_or_default().to_owned())
    }
}
