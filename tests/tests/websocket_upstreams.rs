//! Upstreams that are reached by WebSocket.

use crate::frail::stage;
use trunkline_tests::client::tool;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::{Event, What};
use trunkline_tests::judge;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::{Upstream, Way};

const LEGACY: Revision = Revision::R2025_11_25;

#[tokio::test]
async fn one_connection_with_the_configured_headers_serves_all_whether_or_not_the_subprotocol_is_named() {
    for named in ["mcp", ""] {
        let script = Script::new("frail", LEGACY).with(|script| script.http.subprotocol = named.into());
        let stage = stage(
            Way::WebSocket,
            script,
            "transport = \"websocket\"\nheaders = { Authorization = \"Bearer abcdefghij\" }",
        )
        .await;
        assert_eq!(stage.client.call("frail__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        let carries = |event: &Event| match &event.what {
            What::Visit { headers, .. } => {
                Some(headers.contains(&("authorization".into(), "Bearer abcdefghij".into())))
            }
            _ => None,
        };
        let carried: Vec<_> = stage.upstream.seen().await.iter().filter_map(carries).collect();
        assert_eq!(carried, [true], "{named}");
        assert_eq!(stage.upstream.complaints().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn another_subprotocol_and_a_refused_upgrade_say_what_to_do() {
    let other = Script::new("frail", LEGACY).with(|script| script.http.subprotocol = "graphql-ws".into());
    let refused =
        |status| Script::new("frail", LEGACY).rule(Rule::on("GET", vec![Act::status(status, "text/plain", "no")]));
    for (script, says) in [
        (other, "another subprotocol than `mcp`"),
        (refused(401), "set its credentials in `auth`"),
        (refused(404), "check the path of its `url`"),
        (refused(200), "answered the upgrade to a WebSocket with HTTP 200"),
    ] {
        let upstream = Upstream::start(Way::WebSocket, script).await;
        let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
        gateway.look_until("/readyz?verbose", "the cause is shown", |page| page.contains(says)).await;
    }
}

#[tokio::test]
async fn pings_are_answered_and_fragments_are_joined() {
    let frame =
        "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"in pieces\"}]}}";
    let pieces = Rule::on_tool("tool_error", vec![Act::Write("ping\n".into()), Act::Write(frame.into()), Act::Hang]);
    let stage = stage(Way::WebSocket, Script::new("frail", LEGACY).rule(pieces), "").await;
    assert_eq!(stage.client.call("frail__tool_error", "{}").await.text(), "in pieces");
    // Of two pings that come together the newer one is answered.
    let answered = |event: &Event| matches!(&event.what, What::Listening(text) if text == "pong 7").then_some(());
    stage.upstream.events.wait("the ping is answered", answered).await;
    assert_eq!(stage.upstream.visits(), 1);
}

#[tokio::test]
async fn a_server_that_sends_pings_without_end_is_left_and_met_anew_and_the_others_are_served() {
    let flood = Rule::on_tool("tool_error", vec![Act::Write("pings\n".into())]).once();
    let stage = stage(Way::WebSocket, Script::new("frail", LEGACY).rule(flood), "").await;
    let answer = stage.client.call("frail__tool_error", "{}").await;
    assert!(answer.message().contains("may or may not have run"), "{}", answer.error());
    stage.gateway.says(&["too many WebSocket frames that ask for nothing"]).await;
    let counted = "trunkline_protocol_violations_total{upstream=\"frail\",kind=\"too_many_frames\"} 1";
    stage.gateway.look_until("/metrics", "it is counted", |page| page.contains(counted)).await;
    assert_eq!(stage.client.call("frail__echo", "{\"a\":1}").await.text(), "{\"a\":1}", "it is opened anew");
}

#[tokio::test]
async fn a_binary_message_ends_the_connection_and_says_why() {
    let binary = Rule::on_tool("tool_error", vec![Act::Write("binary\n".into()), Act::Hang]).once();
    let stage = stage(Way::WebSocket, Script::new("frail", LEGACY).rule(binary), "").await;
    let answer = stage.client.call("frail__tool_error", "{}").await;
    assert!(answer.message().contains("may or may not have run"), "{}", answer.error());
    stage.gateway.says(&["MCP wants text messages"]).await;
    assert_eq!(stage.client.call("frail__echo", "{\"a\":1}").await.text(), "{\"a\":1}", "it is opened anew");
}

#[tokio::test]
async fn a_broken_connection_ends_its_calls_with_an_unknown_outcome_and_is_opened_anew() {
    let cut = Rule::on_tool("tool_error", vec![Act::Run, Act::Cut]).once();
    let stage = stage(Way::WebSocket, Script::new("frail", LEGACY).rule(cut), "").await;
    let nonce = judge::nonce();
    let waits = stage.client.start(tool("frail__wait", &format!("{{\"gate\":\"g\",\"nonce\":\"{nonce}\"}}"))).await;
    stage.upstream.waiting(1).await;
    for answer in [stage.client.call("frail__tool_error", "{}").await, waits.answer().await] {
        assert!(answer.message().contains("may or may not have run"), "{}", answer.error());
    }
    assert_eq!(stage.client.call("frail__echo", "{\"a\":1}").await.text(), "{\"a\":1}", "it is opened anew");
    assert_eq!(
        (stage.upstream.frames_with("\"tool_error\""), stage.upstream.frames_with(&nonce)),
        (1, 1),
        "nothing is sent again"
    );
    assert_eq!(stage.upstream.visits(), 2);
}

#[tokio::test]
async fn a_close_code_says_why_and_when_the_connection_is_opened_anew() {
    for (code, says, state) in [
        (1008, "check the credentials in `headers`", "failed"),
        (4401, "set its credentials in `auth`", "failed"),
        (1012, "1012 (service restart)", "backing_off"),
        (1011, "", ""),
    ] {
        let close = Rule::on_tool("tool_error", vec![Act::status(code, "", "a reason of its own")]);
        let stage = stage(Way::WebSocket, Script::new("frail", LEGACY).rule(close), "").await;
        let answer = stage.client.call("frail__tool_error", "{}").await;
        assert!(answer.message().contains(&code.to_string()), "{}", answer.error());
        assert!(!answer.message().contains("a reason of its own"), "for the operator alone: {}", answer.error());
        stage.gateway.says(&["a reason of its own"]).await;
        if state.is_empty() {
            assert_eq!(stage.client.call("frail__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
            continue;
        }
        let is_shown = |page: &str| page.contains(says) && page.contains(state);
        stage.gateway.look_until("/readyz?verbose", "the cause is shown", is_shown).await;
    }
}

#[tokio::test]
async fn a_message_that_is_too_long_ends_the_connection_and_says_why() {
    let stage = stage(Way::WebSocket, Script::new("frail", LEGACY), "max_response = \"64KiB\"").await;
    let long = format!("{{\"text\":\"{}\"}}", "x".repeat(100_000));
    let answer = stage.client.call("frail__echo", &long).await;
    assert!(answer.message().contains("max_response"), "{}", answer.error());
    assert_eq!(stage.client.call("frail__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    assert_eq!(stage.upstream.visits(), 2);
}
