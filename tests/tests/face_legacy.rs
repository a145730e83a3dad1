//! The face with sessions over HTTP: handshake, session ids, streams and their resumption, batches.

use std::sync::Arc;

use hyper::Method;
use trunkline_tests::client::http::exchange;
use trunkline_tests::client::stream::EventStream;
use trunkline_tests::client::{Answer, Client, Request, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::{Event, Order, What};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::tape::Tape;
use trunkline_tests::upstream::Upstream;

const NEWEST: Revision = Revision::R2025_11_25;
const JSON: (&str, &str) = ("content-type", "application/json");
const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");

async fn stage(keys: &str) -> (Upstream, Gateway) {
    let upstream = Upstream::stdio(Script::new("up", NEWEST)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream).section(keys)).await;
    (upstream, gateway)
}

async fn join(gateway: &Gateway, revision: Revision) -> Client {
    let client = Client::connect(&gateway.reach(), revision).await;
    client.tools_until("the upstream is up", |tools| tools.contains(&"up__echo".into())).await;
    client
}

async fn post(gateway: &Gateway, headers: &[(&str, &str)], body: &str) -> Answer {
    let headers: Vec<_> = [JSON, ACCEPT].iter().chain(headers).copied().collect();
    exchange(&gateway.url, "POST", &headers, body).await
}

fn greeting(version: &str) -> String {
    Request::new("initialize", &format!("{{\"protocolVersion\":\"{version}\",\"capabilities\":{{}},\"clientInfo\":{{\"name\":\"t\",\"version\":\"1\"}}}}"))
        .text(NEWEST, "0")
}

const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}";

#[tokio::test]
async fn a_known_version_is_agreed_to_and_an_unknown_one_is_answered_with_the_newest() {
    let (_upstream, gateway) = stage("").await;
    for revision in Revision::LEGACY {
        let answer = post(&gateway, &[], &greeting(revision.text())).await;
        assert_eq!(answer.value()["protocolVersion"], revision.text());
        assert_eq!(answer.value()["serverInfo"]["name"], "trunkline");
        assert_eq!(answer.id(), "0");
    }
    for version in ["1999-01-01", "2026-07-28", "2030-01-01", "x"] {
        assert_eq!(post(&gateway, &[], &greeting(version)).await.value()["protocolVersion"], "2025-11-25", "{version}");
    }
    let mixed = post(&gateway, &[("mcp-protocol-version", "2026-07-28")], &greeting("2025-11-25")).await;
    assert_eq!((mixed.status, mixed.code()), (400, -32020), "a handshake under a stateless header");
}

#[tokio::test]
async fn session_ids_are_long_visible_and_different() {
    let (_upstream, gateway) = stage("").await;
    let mut seen = std::collections::HashSet::new();
    for _ in 0..20 {
        let answer = post(&gateway, &[], &greeting("2025-11-25")).await;
        let id = answer.header("mcp-session-id").expect("a session id").to_owned();
        assert!(id.len() >= 22 && id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "{id}");
        assert!(seen.insert(id));
    }
}

#[tokio::test]
async fn sessions_are_asked_for_found_and_ended() {
    let (_upstream, gateway) = stage("").await;
    let client = join(&gateway, NEWEST).await;
    let id = client.http().session_id().expect("a session id");
    assert_eq!(post(&gateway, &[], PING).await.status, 400, "a session id is missing");
    assert_eq!(post(&gateway, &[("mcp-session-id", "nobody")], PING).await.status, 404, "an unknown session");
    let session = [("mcp-session-id", id.as_str())];
    let ping = post(&gateway, &session, PING).await;
    assert_eq!((ping.status, ping.result(), ping.id()), (200, "{}", "7"), "the version header may be missing");
    assert_eq!(exchange(&gateway.url, "DELETE", &[], "").await.status, 400);
    assert_eq!(exchange(&gateway.url, "DELETE", &[("mcp-session-id", "nobody")], "").await.status, 404);
    let deleted = exchange(&gateway.url, "DELETE", &session, "").await.status;
    assert!((200..300).contains(&deleted), "{deleted}");
    assert_eq!(post(&gateway, &session, PING).await.status, 404, "an ended session");
    let stream = exchange(&gateway.url, "GET", &[("accept", "text/event-stream"), session[0]], "").await;
    assert_eq!(stream.status, 404);
}

#[tokio::test]
async fn a_get_that_does_not_name_event_streams_is_not_acceptable() {
    let (_upstream, gateway) = stage("").await;
    let client = join(&gateway, NEWEST).await;
    let id = client.http().session_id().expect("a session id");
    for accept in [&[][..], &[("accept", "application/json")], &[("accept", "*/*")]] {
        for session in [&[][..], &[("mcp-session-id", id.as_str())]] {
            let answer = exchange(&gateway.url, "GET", &[accept, session].concat(), "").await;
            assert_eq!(answer.status, 406, "{accept:?} {session:?}");
            assert!(String::from_utf8_lossy(&answer.body).contains("text/event-stream"), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn versions_in_headers_must_be_known() {
    let (_upstream, gateway) = stage("").await;
    let client = join(&gateway, NEWEST).await;
    let id = client.http().session_id().expect("a session id");
    for version in ["nonsense", "2020-01-01", ""] {
        let answer = post(&gateway, &[("mcp-session-id", &id), ("mcp-protocol-version", version)], PING).await;
        assert_eq!(answer.status, 400, "{version:?}");
    }
    let modern = post(&gateway, &[("mcp-session-id", &id), ("mcp-protocol-version", "2026-07-28")], PING).await;
    assert_eq!((modern.status, modern.code()), (400, -32602), "a stateless header over a body without _meta");
}

#[tokio::test]
async fn notifications_and_responses_are_taken_without_an_answer() {
    let (_upstream, gateway) = stage("").await;
    let client = join(&gateway, NEWEST).await;
    let id = client.http().session_id().expect("a session id");
    for body in [
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/no/such\",\"params\":{}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"gone\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"unread\"}}",
    ] {
        let answer = post(&gateway, &[("mcp-session-id", &id)], body).await;
        assert_eq!((answer.status, answer.body.len()), (202, 0), "{body}");
    }
    let unasked = "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}";
    assert_eq!(post(&gateway, &[("mcp-session-id", &id)], unasked).await.status, 400, "no question has this number");
}

#[tokio::test]
async fn what_is_no_request_is_refused() {
    let (_upstream, gateway) = stage("").await;
    let client = join(&gateway, NEWEST).await;
    let id = client.http().session_id().expect("a session id");
    let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{}\",\"method\":\"ping\"}}", "i".repeat(5000));
    let bad = [
        ("{\"jsonrpc\":\"2.0\",", -32700),
        ("", -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", -32600),
        ("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", -32600),
        ("{\"id\":1,\"method\":\"ping\"}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", -32600),
        ("\"ping\"", -32600),
        (long.as_str(), -32600),
        (&format!("[{PING}]"), -32600),
        ("[]", -32600),
    ];
    for (body, code) in bad {
        let answer = post(&gateway, &[("mcp-session-id", &id)], body).await;
        assert_eq!((answer.status, answer.code()), (400, code), "{}", trunkline_tests::frame::shorten(body));
    }
    let unknown = client.request(Request::new("no/such", "{}")).await;
    assert_eq!(unknown.code(), -32601);
}

#[tokio::test]
async fn batches_are_of_one_revision() {
    let (_upstream, gateway) = stage("").await;
    let client = join(&gateway, Revision::R2025_03_26).await;
    let id = client.http().session_id().expect("a session id");
    let call = tool("up__echo", "{\"a\":1}").text(Revision::R2025_03_26, "\"c\"");
    let note = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/no/such\"}";
    let answer = post(&gateway, &[("mcp-session-id", &id)], &format!("[{PING},{note},{call}]")).await;
    assert_eq!(answer.status, 200);
    let said = if answer.is_stream() {
        answer.events.iter().filter_map(|event| event.data.clone()).collect::<Vec<_>>().join("\n")
    } else {
        String::from_utf8_lossy(&answer.body).into_owned()
    };
    assert!(said.contains("\"id\":7") && said.contains("\"id\":\"c\"") && said.contains("{\\\"a\\\":1}"), "{said}");
    let quiet = post(&gateway, &[("mcp-session-id", &id)], &format!("[{note},{note}]")).await;
    assert_eq!(quiet.status, 202);
    assert_eq!(post(&gateway, &[("mcp-session-id", &id)], "[]").await.code(), -32600);
    // A bad one takes no other along; bad ones alone are a bad request.
    for (array, status, count) in [(format!("[7,{PING}]"), 200, 2), (format!("[7,{}]", greeting("2025-03-26")), 400, 2)]
    {
        let answer = post(&gateway, &[("mcp-session-id", &id)], &array).await;
        let said: Vec<serde_json::Value> = serde_json::from_slice(&answer.body).expect("an array");
        assert_eq!(
            (answer.status, said.len(), &said[0]["error"]["code"]),
            (status, count, &(-32600).into()),
            "{said:?}"
        );
    }
}

#[tokio::test]
async fn sessions_are_not_needed_where_the_configuration_says_so() {
    let (_upstream, gateway) = stage("[server.session]\nrequired = false").await;
    let greeted = post(&gateway, &[], &greeting("2025-06-18")).await;
    assert_eq!(greeted.header("mcp-session-id"), None, "no id is ever issued");
    let modern = Client::connect(&gateway.reach(), Revision::MODERN).await;
    modern.tools_until("the upstream is up", |tools| tools.contains(&"up__echo".into())).await;
    let call = tool("up__echo", "{\"a\":1}").text(NEWEST, "1");
    for headers in [&[("mcp-protocol-version", "2025-06-18")][..], &[]] {
        assert_eq!(post(&gateway, headers, &call).await.text(), "{\"a\":1}");
    }
    for method in ["GET", "DELETE"] {
        assert_eq!(exchange(&gateway.url, method, &[ACCEPT], "").await.status, 400, "{method}");
    }
}

#[tokio::test]
async fn the_number_of_sessions_is_bounded() {
    let (_upstream, gateway) = stage("[server.session]\nmax = 2").await;
    let first = post(&gateway, &[], &greeting("2025-11-25")).await;
    let id = first.header("mcp-session-id").expect("a session id").to_owned();
    let second = post(&gateway, &[], &greeting("2025-11-25")).await;
    let other = second.header("mcp-session-id").expect("a session id").to_owned();
    for used in [&id, &other] {
        assert_eq!(post(&gateway, &[("mcp-session-id", used)], PING).await.status, 200);
    }
    assert_eq!(post(&gateway, &[], &greeting("2025-11-25")).await.status, 503, "the third one");
    assert_eq!(post(&gateway, &[("mcp-session-id", &id)], PING).await.status, 200);
}

#[tokio::test]
async fn idle_sessions_end_and_make_room() {
    let (_upstream, gateway) = stage("[server.session]\nidle_timeout = \"1s\"\nmax = 1").await;
    let first = post(&gateway, &[], &greeting("2025-11-25")).await;
    let id = first.header("mcp-session-id").expect("a session id").to_owned();
    // Asking would keep it alive, so that is asked for elsewhere.
    let ended = "trunkline_sessions{transport=\"http\"} 0\n";
    gateway.look_until("/metrics", "the session has ended", |page| page.contains(ended)).await;
    assert_eq!(post(&gateway, &[("mcp-session-id", &id)], PING).await.status, 404);
    assert_eq!(post(&gateway, &[], &greeting("2025-11-25")).await.status, 200, "there is room again");
}

/// Posts a call and holds its stream.
async fn open_call(client: &Client, request: &Request) -> EventStream {
    let mut headers = client.http().session();
    headers.extend([JSON, ACCEPT].map(|(name, value)| (name.to_owned(), value.to_owned())));
    let text = request.text(client.revision, request.id.as_deref().unwrap_or("1"));
    EventStream::open(client.http(), Method::POST, &headers, &text, Arc::new(Tape::default())).await
}

#[tokio::test]
async fn a_lost_stream_cancels_nothing_and_can_be_resumed() {
    let (upstream, gateway) = stage("").await;
    let client = join(&gateway, NEWEST).await;
    let request = tool("up__progress", "{\"steps\":3,\"gate\":\"g\"}").token("\"t\"").id("\"long\"");
    let call = open_call(&client, &request).await;
    let first = call.events.wait("the stream begins", |event| event.clone()).await;
    assert_eq!(first.data.as_deref(), Some(""), "with an empty event to resume from: {first:?}");
    assert!(first.retry.is_some(), "and the time to wait before that: {first:?}");
    let id = call
        .events
        .wait("progress", |event| event.as_ref().filter(|event| event.data.as_deref() != Some(""))?.id.clone())
        .await;
    call.close();
    for _ in 0..3 {
        upstream.order(Order::Release("g".into())).await;
    }
    let mut headers = client.http().session();
    headers.push(("accept".into(), "text/event-stream".into()));
    headers.push(("last-event-id".into(), id));
    let rest = EventStream::open(client.http(), Method::GET, &headers, "", Arc::new(Tape::default())).await;
    assert_eq!(rest.status, 200);
    let answer = rest.frame("the answer", |frame| frame.is_answer().then(|| frame.clone())).await;
    assert_eq!(answer.id_text(), "\"long\"");
    let steps = rest.events.all();
    let steps: Vec<_> = steps.iter().flatten().filter_map(|event| event.data.as_deref()).collect();
    assert!(!steps.iter().any(|data| data.contains("\"progress\":1,")), "what was delivered is not sent again");
    assert!(steps.iter().any(|data| data.contains("\"progress\":3,")), "what was missed is: {steps:?}");
    let cancelled = |event: &Event| matches!(event.what, What::Cancelled { .. }).then_some(());
    assert!(upstream.events.find(0, cancelled).is_none(), "a lost stream is no cancel");
}

#[tokio::test]
async fn the_post_of_a_cancelled_call_ends_without_an_answer() {
    let (upstream, gateway) = stage("").await;
    let client = join(&gateway, NEWEST).await;
    let open = client.start(tool("up__wait", "{}").id("\"w\"")).await;
    upstream.waiting_at("wait").await;
    open.cancel().await;
    let answer = open.answer().await;
    assert_eq!((answer.status, answer.is_stream(), answer.frame.is_none()), (200, true, true), "{answer:?}");
}

#[tokio::test]
async fn a_change_that_nobody_heard_is_told_when_a_stream_opens() {
    let (_upstream, gateway) = stage("").await;
    let client = join(&gateway, NEWEST).await;
    client.call("up__touch", "{}").await.text();
    client.tools_until("the new tool is listed", |tools| tools.contains(&"up__touched_0".into())).await;
    let changes = client.listen(&[]).await;
    changes.hears(0, "notifications/tools/list_changed").await;
}

#[tokio::test]
async fn a_get_stream_is_kept_alive_and_ends_with_its_session() {
    let upstream = Upstream::stdio(Script::new("up", NEWEST)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream).server("sse_keepalive = \"200ms\"")).await;
    let client = join(&gateway, NEWEST).await;
    let mut headers = client.http().session();
    headers.push(("accept".into(), "text/event-stream".into()));
    let stream = EventStream::open(client.http(), Method::GET, &headers, "", Arc::new(Tape::default())).await;
    assert_eq!(stream.status, 200);
    for _ in 0..2 {
        let mark = stream.events.mark();
        stream.events.wait_from(mark, "a comment", |event| event.as_ref()?.comment.clone()).await;
    }
    let headers: Vec<(String, String)> = client.http().session();
    let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    exchange(&gateway.url, "DELETE", &headers, "").await;
    stream.ended().await;
}
