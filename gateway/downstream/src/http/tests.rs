//! The endpoint against a handler that the test plays, through the service itself.

mod legacy;
mod memory;
mod modern;
mod parked;
mod passing;
mod questions;
mod refusals;
mod rounds;
mod stateless;
mod streams;
mod two_endpoints;

use super::service::McpService;
use super::stream::Body;
use crate::call::caller::credential::{Credential, LetIn, Revocation};
use crate::call::caller::{Grants, Principal};
use crate::config::Config;
use crate::memory::Refusals;
use crate::memory::budget::Budget;
use crate::protocol::json;
use crate::protocol::revision::Revision;
use crate::runtime::Tasks;
use crate::scripted::{Hand, Hands, scripted, soon};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tower::ServiceExt;

const PATH: &str = "/mcp";

/// Whoever sends requests.
#[derive(Clone)]
struct Client(McpService);

/// An endpoint, the calls that it makes, and what it lives in.
struct Bench {
    client: Client,
    hands: Hands,
    tasks: Tasks,
    refusals: Refusals,
}

impl Bench {
    fn new() -> Self {
        Self::with(Revision::V2025_11_25, |_| {})
    }

    fn with(upstream: Revision, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default();
        change(&mut config);
        let (handler, hands) = scripted(upstream);
        let (tasks, refusals) = (Tasks::new(), Refusals::default());
        Self {
            client: Client(McpService::new(
                handler,
                config,
                (tasks.clone(), Tasks::new()),
                (&Budget::default(), &refusals),
            )),
            hands,
            tasks,
            refusals,
        }
    }

    /// A session whose listen call the test holds.
    async fn session(&mut self, revision: &str) -> (String, Hand) {
        let id = self.handshake(revision).await;
        (id, self.hands.next().await)
    }
}

impl std::ops::Deref for Bench {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Client {
    async fn send(&self, request: http::request::Builder, body: &str) -> Response<Body> {
        let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
        self.0.clone().oneshot(let_in(request, body)).await.unwrap()
    }

    /// POSTs a frame of a stateless client, with the headers that it must have.
    async fn modern(&self, method: &str, params: &str) -> Response<Body> {
        let params = params.trim().trim_start_matches('{');
        let comma = if params.trim_end_matches('}').is_empty() { "" } else { "," };
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":"a","method":"{method}","params":{{"_meta":{META}{comma}{params}}}"#);
        let name = json::get(text.as_bytes(), "params").and_then(|params| json::unquote(json::get(params, "name")?));
        let mut request = post().header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
        if let Some(name) = name {
            request = request.header("mcp-name", &*name);
        }
        self.send(request, &text).await
    }

    /// Shakes hands and returns the session's id.
    async fn handshake(&self, revision: &str) -> String {
        let response = self.send(post(), &initialize(revision)).await;
        assert_eq!(response.status(), StatusCode::OK);
        response.headers()["mcp-session-id"].to_str().unwrap().to_owned()
    }

    /// Shakes hands as a client that can be asked this; the session's id.
    async fn able(&self, revision: &str, capabilities: &str) -> String {
        let frame = initialize(revision).replace(r#"{"roots":{}}"#, capabilities);
        let response = self.send(post(), &frame).await;
        response.headers()["mcp-session-id"].to_str().unwrap().to_owned()
    }

    /// POSTs a frame of a session.
    async fn legacy(&self, session: &str, text: &str) -> Response<Body> {
        self.send(post().header("mcp-session-id", session), text).await
    }

    async fn get(&self, session: &str, last: Option<&str>) -> Response<Body> {
        let mut request = Request::get(PATH).header("mcp-session-id", session).header("accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        self.send(request, "").await
    }
}

const META: &str = r#"{"progressToken":"t","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn post() -> http::request::Builder {
    Request::post(PATH)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
}

fn initialize(revision: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{"roots":{{}}}},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
    )
}

fn call(id: &str, name: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","_meta":{{"progressToken":7}}}}}}"#
    )
}

fn principal(request: http::request::Builder, name: &str) -> http::request::Builder {
    let (principal, grants) = (Principal::named(name), Grants::all());
    request.extension(Credential { principal, grants, revocation: Revocation::never(), expires: None })
}

/// The request, let in with the credential that was written beside it.
fn let_in<B>(request: http::request::Builder, body: B) -> LetIn<B> {
    let mut request = request.body(body).unwrap();
    let credential = request.extensions_mut().remove();
    LetIn { request, credential }
}

async fn text(response: Response<Body>) -> String {
    let whole = soon(response.into_body().collect()).await.unwrap();
    String::from_utf8(whole.to_bytes().to_vec()).unwrap()
}

/// The next piece of a stream; `None` at its end.
async fn piece(body: &mut Body) -> Option<String> {
    let frame = soon(body.frame()).await?.unwrap();
    Some(String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap())
}

/// The code of a response that is an error.
async fn code(response: Response<Body>) -> (u16, i64) {
    let status = response.status().as_u16();
    let body: serde_json::Value = serde_json::from_str(&text(response).await).unwrap();
    (status, body["error"]["code"].as_i64().unwrap_or_default())
}
