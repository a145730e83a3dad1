//! HTTP upstreams that lose sessions, break streams or answer nonsense.

use trunkline_tests::client::{Answer, Client, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::{Event, Order, What};
use trunkline_tests::judge;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::Upstream;

const LEGACY: Revision = Revision::R2025_11_25;

struct Stage {
    upstream: Upstream,
    gateway: Gateway,
    client: Client,
}

async fn stage(script: Script) -> Stage {
    let upstream = Upstream::http(script).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("the upstream's tools are listed", |tools| tools.contains(&"frail__echo".into())).await;
    Stage { upstream, gateway, client }
}

/// How often the upstream received such a frame.
fn count(upstream: &Upstream, mark: usize, text: &str) -> usize {
    let fits = |event: &&Event| matches!(&event.what, What::Frame { raw, .. } if raw.contains(text));
    upstream.events.all()[mark..].iter().filter(fits).count()
}

/// One spoiled call: an error that names the upstream, sent once, and the next call works.
async fn spoiled(revision: Revision, act: Act) -> Answer {
    let stage = stage(Script::new("frail", revision).rule(Rule::on_tool("tool_error", vec![act]).once())).await;
    let answer = stage.client.call("frail__tool_error", "{}").await;
    assert!(answer.message().contains("frail"), "the upstream is named: {}", answer.error());
    assert_eq!(count(&stage.upstream, 0, "\"tool_error\""), 1, "it was sent once");
    assert_eq!(stage.client.call("frail__echo", "{\"a\":1}").await.text(), "{\"a\":1}", "the next call works");
    answer
}

macro_rules! spoils {
    ($($name:ident: $act:expr, $says:expr;)*) => {$(
        mod $name {
            use super::*;

            #[tokio::test]
            async fn legacy() {
                let answer = spoiled(LEGACY, $act).await;
                assert!(answer.message().contains($says), "{}", answer.error());
            }

            #[tokio::test]
            async fn modern() {
                let answer = spoiled(Revision::MODERN, $act).await;
                assert!(answer.message().contains($says), "{}", answer.error());
            }
        }
    )*};
}

spoils! {
    a_page_instead_of_an_answer: Act::status(200, "text/html", "<html>log in</html>"), "text/html";
    an_accepted_call_without_an_answer: Act::status(202, "", ""), "202";
    an_empty_answer: Act::status(200, "application/json", ""), "frail";
    a_broken_answer: Act::status(200, "application/json", "{\"jsonrpc\":"), "frail";
    another_calls_answer: Act::status(200, "application/json", "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}"), "frail";
    an_internal_error: Act::status(500, "text/plain", "oops"), "500";
    an_outage: Act::status(503, "text/plain", "later"), "503";
    too_many_requests: Act::status(429, "text/plain", "slow down"), "429";
    no_credentials: Act::status(401, "text/plain", "who are you"), "401";
    a_stream_that_ends_early: Act::Cut, "tools/call";
    a_stream_that_ends_within_the_answer: Act::Half, "tools/call";
}

#[tokio::test]
async fn an_error_in_a_bad_status_keeps_code_and_text() {
    let body =
        "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{\"code\":4711,\"message\":\"as it was\",\"data\":{\"n\":1e400}}}";
    let act = Act::status(422, "application/json", body);
    let stage = stage(Script::new("frail", LEGACY).rule(Rule::on_tool("tool_error", vec![act]).once())).await;
    let answer = stage.client.call("frail__tool_error", "{}").await;
    assert!(answer.error().contains("4711") && answer.error().contains("{\"n\":1e400}"), "{}", answer.error());
}

#[tokio::test]
async fn a_lost_session_is_made_again_once_for_all_calls() {
    let stage = stage(Script::new("frail", LEGACY)).await;
    stage.client.call("frail__echo", "{}").await;
    let mark = stage.upstream.events.mark();
    stage.upstream.order(Order::ForgetSessions).await;
    let mut open = Vec::new();
    for _ in 0..64 {
        let nonce = judge::nonce();
        let call = stage.client.start(tool("frail__echo", &judge::arguments(&nonce))).await;
        open.push((nonce, call));
    }
    for (nonce, call) in open {
        let answer = call.answer().await;
        // An unknown session proves that the call did not run: it is sent again, once.
        assert_eq!(judge::echoed(&answer).as_ref(), Some(&nonce));
        assert_eq!(stage.upstream.executed().await.iter().filter(|ran| **ran == nonce).count(), 1);
    }
    let greeted = count(&stage.upstream, mark, "\"initialize\"");
    assert!((1..=2).contains(&greeted), "one handshake for the session of calls, one for the primary, not {greeted}");
    assert_eq!(stage.upstream.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_cut_stream_is_resumed_where_the_upstream_can() {
    let script = Script::new("frail", LEGACY)
        .rule(Rule::on_tool("tool_error", vec![Act::CutToResume]))
        .with(|script| script.http.resumable = true);
    let stage = stage(script).await;
    assert_eq!(stage.client.call("frail__tool_error", "{}").await.text(), "the tool says no");
    let resumed = |event: &Event| match &event.what {
        What::Visit { method, headers } if method == "GET" => {
            headers.iter().any(|(name, _)| name == "last-event-id").then_some(())
        }
        _ => None,
    };
    stage.upstream.events.wait("the stream is resumed by its last event id", resumed).await;
    assert_eq!(count(&stage.upstream, 0, "\"tool_error\""), 1, "the call was not sent again");
}

#[tokio::test]
async fn an_upstream_without_a_get_stream_works() {
    let stage = stage(Script::new("frail", LEGACY).with(|script| script.http.get_stream = false)).await;
    assert_eq!(stage.client.call("frail__echo", "{}").await.text(), "{}");
}

#[tokio::test]
async fn an_upstream_without_sessions_works() {
    let stage = stage(Script::new("frail", LEGACY).with(|script| script.http.sessions = false)).await;
    assert_eq!(stage.client.call("frail__echo", "{}").await.text(), "{}");
    assert_eq!(stage.upstream.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_refused_connection_is_an_error_at_once_that_may_be_tried_again() {
    let stage = stage(Script::new("frail", LEGACY)).await;
    stage.upstream.stop();
    let answer = stage.client.call("frail__echo", "{}").await;
    assert!(answer.message().contains("frail"), "an error that names it: {}", answer.error());
    stage.gateway.says(&["frail"]).await;
    let page = stage.gateway.look_until("/readyz?verbose", "it is named as sick", |page| page.contains("frail")).await;
    assert!(page.contains("frail"), "{page}");
}

#[tokio::test]
async fn a_session_is_ended_when_the_gateway_stops() {
    let stage = stage(Script::new("frail", LEGACY)).await;
    assert!(stage.gateway.stop().await.success());
    let deleted = |event: &Event| matches!(&event.what, What::Visit { method, .. } if method == "DELETE").then_some(());
    stage.upstream.events.wait("the session is deleted", deleted).await;
}

#[tokio::test]
async fn the_get_stream_opens_before_calls_and_after_the_handshake() {
    let stage = stage(Script::new("frail", LEGACY)).await;
    let listening = |event: &Event| matches!(event.what, What::Listening(_)).then_some(());
    stage.upstream.events.wait("the GET stream is open", listening).await;
    let position =
        |pick: &dyn Fn(&What) -> bool| stage.upstream.events.all().iter().position(|event| pick(&event.what));
    let greeted = position(&|what| matches!(what, What::Frame { raw, .. } if raw.contains("\"initialize\"")));
    let visited = position(&|what| matches!(what, What::Visit { method, .. } if method == "GET"));
    assert!(greeted < visited, "the handshake comes first");
}
