//! Everything that there is to be seen as JSON, under `/api/v1`. [`DESCRIPTION`] says what each answer holds; a test compares the two.

// Waits for news of calls, for who watches them.
mod watch;

use crate::access::visits::LINK_WITHIN;
use crate::answer::{JSON, TEXT, answer, bare};
use crate::looks::{Tools, Wanted};
use crate::pages::{Shown, order, reload};
use crate::report;
use crate::telemetry::calls;
use crate::telemetry::config::Written;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use serde::Serialize;
use serde_json::{Value, json};
use watch::Since;

/// What the answers hold, in the form of OpenAPI.
const DESCRIPTION: &str = include_str!("openapi.json");

/// So many tools and sessions are shown.
const SHOWN_MAX: usize = 10_000;

/// A call under way, or one that has ended.
#[derive(Serialize)]
struct Call {
    /// Tells it from others that ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_microseconds: Option<u64>,
    principal: String,
    method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    duration_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_ago_seconds: Option<f64>,
}

impl From<calls::Shown> for Call {
    fn from(call: calls::Shown) -> Self {
        let calls::Shown { principal, method, upstream, name, duration, end, at } = call;
        // Of a call that was cancelled nobody knows which part its upstream had.
        let known = end
            .filter(|end| !["cancelled", "client_gone"].contains(&end.outcome))
            .map(|end| (end.upstream_time, end.queue_time));
        let gateway = known.map(|(upstream, queue)| duration.saturating_sub(upstream + queue));
        Self {
            at_microseconds: end.map(|_| at),
            principal,
            method,
            upstream: upstream.map(|upstream| upstream.to_string()),
            name,
            duration_seconds: duration.as_secs_f64(),
            outcome: end.map(|end| end.outcome),
            upstream_seconds: known.map(|(upstream, _)| upstream.as_secs_f64()),
            queue_seconds: known.map(|(_, queue)| queue.as_secs_f64()),
            gateway_seconds: gateway.map(|time| time.as_secs_f64()),
            ended_ago_seconds: end.map(|end| end.ago.as_secs_f64()),
        }
    }
}

/// What is to be read, and to be ordered.
pub(super) fn router(shown: Shown) -> Router {
    Router::new()
        .route("/api/v1/openapi.json", get(description))
        .route("/api/v1/status", get(status))
        .route("/api/v1/upstreams", get(upstreams))
        .route("/api/v1/upstreams/{name}", get(upstream))
        .route("/api/v1/history", get(history))
        .route("/api/v1/tools", get(tools))
        .route("/api/v1/tools/{name}", get(tool))
        .route("/api/v1/tools/{name}/call", post(call))
        .route("/api/v1/approvals", get(approvals))
        .route("/api/v1/calls", get(calls_now))
        .route("/api/v1/sessions", get(sessions))
        .route("/api/v1/config", get(config))
        .route("/api/v1/upstreams/{name}/{order}", post(order))
        .route("/api/v1/reload", post(reload))
        .route("/api/v1/link", post(link))
        .with_state(shown)
}

async fn description(State(shown): State<Shown>, headers: HeaderMap) -> Response {
    let refused = shown.access.refusal(&headers);
    refused.unwrap_or_else(|| answer(StatusCode::OK, JSON, DESCRIPTION.to_owned()))
}

async fn status(State(shown): State<Shown>, headers: HeaderMap) -> Response {
    read(&shown, &headers, |shown| {
        let room = (shown.board.budget(), &shown.refusals);
        report::status(!(shown.is_draining)(), &shown.own, &shown.board.snapshot(), room, &shown.reloads.now())
    })
}

async fn upstreams(State(shown): State<Shown>, headers: HeaderMap) -> Response {
    read(&shown, &headers, |shown| report::upstreams(&shown.board.snapshot()))
}

async fn upstream(State(shown): State<Shown>, Path(name): Path<String>, headers: HeaderMap) -> Response {
    if let Some(refused) = shown.access.refusal(&headers) {
        return refused;
    }
    match report::one(&shown.board.snapshot(), &name) {
        Some(page) => answer(StatusCode::OK, JSON, page),
        None => answer(StatusCode::NOT_FOUND, JSON, json!({ "error": "no such upstream" }).to_string()),
    }
}

async fn history(State(shown): State<Shown>, headers: HeaderMap) -> Response {
    read(&shown, &headers, |shown| shown.looks.history.shown())
}

async fn tools(State(shown): State<Shown>, headers: HeaderMap) -> Response {
    read(&shown, &headers, |shown| {
        let tools = shown.looks.tools.as_ref().map_or_else(Tools::default, |tools| tools(SHOWN_MAX));
        json!(tools)
    })
}

/// The tools that somebody is to approve.
async fn approvals(State(shown): State<Shown>, headers: HeaderMap) -> Response {
    if let Some(refused) = shown.access.refusal(&headers) {
        return refused;
    }
    match &shown.looks.to_approve {
        Some(to_approve) => {
            let all = to_approve(SHOWN_MAX);
            answer(StatusCode::OK, JSON, serde_json::to_string(&all).unwrap_or_default())
        }
        None => answer(StatusCode::NOT_FOUND, JSON, json!({ "error": "no tools are known" }).to_string()),
    }
}

/// The definition of one tool, as clients read it.
async fn tool(State(shown): State<Shown>, Path(name): Path<String>, headers: HeaderMap) -> Response {
    if let Some(refused) = shown.access.refusal(&headers) {
        return refused;
    }
    let definition = shown.looks.definition.as_ref().and_then(|definition| definition(&name));
    match definition.and_then(|definition| String::from_utf8(definition).ok()) {
        Some(definition) => answer(StatusCode::OK, JSON, format!("{{\"definition\":{definition}}}")),
        None => no_tool(),
    }
}

fn no_tool() -> Response {
    answer(StatusCode::NOT_FOUND, JSON, json!({ "error": "no such tool" }).to_string())
}

/// Calls a tool; who goes before the answer cancels the call.
async fn call(State(shown): State<Shown>, Path(name): Path<String>, headers: HeaderMap, body: Bytes) -> Response {
    if let Some(refused) = shown.access.order_refusal(&headers) {
        return refused;
    }
    let Some(call) = &shown.looks.call else { return no_tool() };
    let wanted: Wanted = match serde_json::from_slice(&body) {
        Ok(wanted) => wanted,
        Err(error) => {
            let why = format!("expected {{\"arguments\": {{…}}}}: {error}\n");
            return answer(StatusCode::BAD_REQUEST, TEXT, why);
        }
    };
    if wanted.arguments.as_ref().is_some_and(|arguments| !arguments.get().starts_with('{')) {
        return answer(StatusCode::BAD_REQUEST, TEXT, "expected {\"arguments\": {…}}: they are no object\n".to_owned());
    }
    let done = call(name, wanted).await;
    answer(StatusCode::OK, JSON, serde_json::to_string(&done).unwrap_or_default())
}

/// A link to the page that lets one visitor in.
async fn link(State(shown): State<Shown>, headers: HeaderMap) -> Response {
    if let Some(refused) = shown.access.link_refusal(&headers) {
        return refused;
    }
    match shown.access.visits().link() {
        // It is the secret that it is to bear.
        Some(url) => bare(json!({ "url": url, "expires_in_seconds": LINK_WITHIN.as_secs() }).to_string()),
        None => {
            let why =
                "this gateway has no page: it serves no admin address (`[admin] listen`; `trunkline stdio` has none)\n";
            answer(StatusCode::NOT_FOUND, TEXT, why.to_owned())
        }
    }
}

async fn calls_now(State(shown): State<Shown>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    if let Some(refused) = shown.access.refusal(&headers) {
        return refused;
    }
    let since = match Since::parse(query.as_deref().unwrap_or_default()) {
        Ok(since) => since,
        Err(why) => return answer(StatusCode::BAD_REQUEST, TEXT, why.to_owned()),
    };
    let (cursor, after) = watch::changed(&shown, &since).await;
    read(&shown, &headers, |shown| {
        let (open, mut ended) = shown.looks.calls.shown();
        ended.retain(|call| call.at > after);
        let rows = |calls: Vec<calls::Shown>| calls.into_iter().map(Call::from).collect::<Vec<_>>();
        json!({ "cursor": cursor, "open": rows(open), "ended": rows(ended) })
    })
}

async fn sessions(State(shown): State<Shown>, headers: HeaderMap) -> Response {
    read(&shown, &headers, |shown| {
        let sessions = shown.looks.sessions.as_ref().map_or_else(Vec::new, |sessions| sessions(SHOWN_MAX));
        json!({ "sessions": sessions })
    })
}

async fn config(State(shown): State<Shown>, headers: HeaderMap) -> Response {
    if let Some(refused) = shown.access.refusal(&headers) {
        return refused;
    }
    let settings = match &shown.looks.config {
        Some(config) => config().await,
        None => Written::default(),
    };
    answer(StatusCode::OK, JSON, json!({ "settings": &settings.settings[..] }).to_string())
}

/// A page for who has access.
fn read(shown: &Shown, headers: &HeaderMap, page: impl FnOnce(&Shown) -> Value) -> Response {
    let refused = shown.access.refusal(headers);
    refused.unwrap_or_else(|| answer(StatusCode::OK, JSON, page(shown).to_string()))
}
