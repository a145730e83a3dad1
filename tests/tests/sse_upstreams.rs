//! Upstreams that speak HTTP+SSE of 2024-11-05.

use crate::frail::stage;
use trunkline_tests::client::{Client, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::{Event, Order, What};
use trunkline_tests::judge;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::{Upstream, Way};

const LEGACY: Revision = Revision::R2024_11_05;

#[tokio::test]
async fn configured_headers_go_on_the_stream_and_on_every_message() {
    let stage =
        stage(Way::Sse, Script::new("frail", LEGACY), "headers = { Authorization = \"Bearer abcdefghij\" }").await;
    assert_eq!(stage.client.call("frail__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    let mut checked = 0;
    for event in stage.upstream.seen().await {
        let (What::Frame { headers, .. } | What::Visit { headers, .. }) = event.what else { continue };
        assert!(headers.contains(&("authorization".into(), "Bearer abcdefghij".into())), "{headers:?}");
        checked += 1;
    }
    assert!(checked >= 4, "{checked}");
    assert_eq!(stage.upstream.visits(), 1, "one stream for all");
    assert_eq!(stage.upstream.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn an_upstream_that_refuses_a_post_is_found_to_speak_http_sse() {
    let upstream = Upstream::start(Way::Sse, Script::new("frail", LEGACY)).await;
    let config = Config::new().section(&format!("[upstreams.frail]\nurl = \"{}\"", upstream.url()));
    let gateway = Gateway::serve(&config).await;
    let client = Client::connect(&gateway.reach(), Revision::R2025_11_25).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"frail__echo".into())).await;
    assert_eq!(client.call("frail__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    gateway.says(&["upstream speaks HTTP+SSE"]).await;
    assert_eq!(upstream.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn the_address_for_messages_is_relative_or_of_the_same_origin() {
    for endpoint in
        ["message?session=$ID", "/message?session=$ID", "./x/../message?session=$ID", "$ORIGIN/message?session=$ID"]
    {
        let taken =
            stage(Way::Sse, Script::new("frail", LEGACY).with(|script| script.http.endpoint = endpoint.into()), "")
                .await;
        assert_eq!(taken.client.call("frail__echo", "{\"a\":1}").await.text(), "{\"a\":1}", "{endpoint}");
    }
    for (endpoint, says) in [
        ("http://127.0.0.1:9/message?session=$ID", "another origin"),
        ("//example.com/message?session=$ID", "another origin"),
        ("file:///etc/passwd", "no words of a URL"),
    ] {
        let script = Script::new("frail", LEGACY).with(|script| script.http.endpoint = endpoint.into());
        let upstream = Upstream::start(Way::Sse, script).await;
        let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
        let is_refused = |page: &str| page.contains("`endpoint` event sends our messages elsewhere");
        let page = gateway.look_until("/readyz?verbose", "the address is refused", is_refused).await;
        assert!(page.contains("of the origin of `url`"), "{page}");
        gateway.says(&[says]).await;
        let sent = |event: &Event| matches!(event.what, What::Frame { .. });
        assert!(!upstream.events.all().iter().any(sent), "nothing is sent: {endpoint}");
    }
}

#[tokio::test]
async fn a_stream_that_names_no_address_is_not_waited_for_without_end() {
    let script = Script::new("frail", LEGACY).with(|script| script.http.endpoint = String::new());
    let upstream = Upstream::start(Way::Sse, script).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, "startup_timeout = \"1s\"")).await;
    let says = |page: &str| page.contains("no `endpoint` event within 1 s");
    gateway.look_until("/readyz?verbose", "the address is missed", says).await;
}

#[tokio::test]
async fn an_address_that_takes_no_messages_is_said_to_be_that_of_the_event() {
    let endpoint = "/message?session=gone";
    let script = Script::new("frail", LEGACY).with(|script| script.http.endpoint = endpoint.into());
    let upstream = Upstream::start(Way::Sse, script).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let says = |page: &str| page.contains("the address is that of its `endpoint` event");
    let page = gateway.look_until("/readyz?verbose", "the address is named", says).await;
    assert!(page.contains("HTTP 404") && !page.contains("check the path of its `url`"), "{page}");
}

#[tokio::test]
async fn a_broken_stream_ends_its_calls_with_an_unknown_outcome_and_is_opened_anew() {
    let cut = Rule::on_tool("tool_error", vec![Act::Run, Act::Cut]).once();
    let stage = stage(Way::Sse, Script::new("frail", LEGACY).rule(cut), "").await;
    let nonce = judge::nonce();
    let waits = stage.client.start(tool("frail__wait", &format!("{{\"gate\":\"g\",\"nonce\":\"{nonce}\"}}"))).await;
    stage.upstream.waiting(1).await;
    let answer = stage.client.call("frail__tool_error", "{}").await;
    assert!(answer.message().contains("may or may not have run"), "{}", answer.error());
    let other = waits.answer().await;
    assert!(other.message().contains("may or may not have run"), "{}", other.error());
    assert_eq!(stage.client.call("frail__echo", "{\"a\":1}").await.text(), "{\"a\":1}", "it is opened anew");
    assert_eq!(
        (stage.upstream.frames_with("\"tool_error\""), stage.upstream.frames_with(&nonce)),
        (1, 1),
        "nothing is sent again"
    );
    assert_eq!(stage.upstream.visits(), 2);
}

#[tokio::test]
async fn a_message_that_is_refused_ends_its_own_call_alone() {
    let act = Act::status(503, "text/plain", "later");
    let refuse = Rule { name: Some("tool_error".into()), ..Rule::on("POST", vec![act]) };
    let stage = stage(Way::Sse, Script::new("frail", LEGACY).rule(refuse.once()), "").await;
    let answer = stage.client.call("frail__tool_error", "{}").await;
    assert!(answer.message().contains("503"), "{}", answer.error());
    assert_eq!(stage.client.call("frail__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    assert_eq!((stage.upstream.frames_with("\"tool_error\""), stage.upstream.visits()), (1, 1));
}

#[tokio::test]
async fn posts_that_are_never_answered_hold_up_no_call_once_theirs_has_ended() {
    let held = vec!["tools/call".to_owned(), "notifications/cancelled".to_owned()];
    let stage = stage(Way::Sse, Script::new("frail", LEGACY).with(|script| script.http.held = held), "").await;
    // More than may be under way at once.
    let call =
        |count: usize| stage.client.call("frail__echo", Box::leak(format!("{{\"a\":{count}}}").into_boxed_str()));
    for round in 0..5 {
        let answers = futures_util::future::join_all((0..64).map(|number| call(round * 64 + number))).await;
        answers.iter().for_each(|answer| assert!(answer.text().starts_with("{\"a\":"), "{answer:?}"));
    }
    // One that is given up lets others go on, though nobody takes the word of it.
    for _ in 0..4 {
        stage.client.start(tool("frail__wait", "{\"gate\":\"never\"}")).await.abandon();
    }
    assert_eq!(stage.client.call("frail__echo", "{\"a\":0}").await.text(), "{\"a\":0}");
    assert_eq!(stage.upstream.visits(), 1, "on one stream");
}

#[tokio::test]
async fn a_stream_that_is_found_and_sends_messages_elsewhere_is_called_that() {
    let elsewhere = "http://127.0.0.1:1/message?session=$ID".to_owned();
    let script = Script::new("frail", LEGACY).with(|script| script.http.endpoint = elsewhere);
    let upstream = Upstream::start(Way::Sse, script).await;
    let config = Config::new().section(&format!("[upstreams.frail]\nurl = \"{}\"", upstream.url()));
    let gateway = Gateway::serve(&config).await;
    let says = |page: &str| page.contains("sends our messages elsewhere") && page.contains("endpoint_elsewhere");
    gateway.look_until("/readyz?verbose&format=json", "the true cause is shown", says).await;
}

#[tokio::test]
async fn a_connection_that_the_upstream_has_forgotten_is_opened_anew() {
    let stage = stage(Way::Sse, Script::new("frail", LEGACY), "").await;
    stage.upstream.order(Order::ForgetSessions).await;
    // A 404 proves that the call did not run.
    assert_eq!(stage.client.call("frail__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    assert_eq!(stage.upstream.visits(), 2);
}

#[tokio::test]
async fn an_answer_that_is_too_long_ends_its_call_with_the_reason() {
    let stage = stage(Way::Sse, Script::new("frail", LEGACY), "max_response = \"64KiB\"").await;
    let long = format!("{{\"text\":\"{}\"}}", "x".repeat(100_000));
    let answer = stage.client.call("frail__echo", &long).await;
    assert!(answer.message().contains("max_response"), "{}", answer.error());
    assert_eq!(stage.client.call("frail__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    assert_eq!(stage.upstream.visits(), 1, "the stream goes on");
}

#[tokio::test]
async fn another_address_later_is_not_followed() {
    let again = "event: endpoint\ndata: http://127.0.0.1:9/x\n\nevent: endpoint\ndata: /elsewhere\n\n: a comment\n\n";
    let tells = Rule::on_tool("tool_error", vec![Act::Write(again.into())]);
    let stage = stage(Way::Sse, Script::new("frail", LEGACY).rule(tells), "").await;
    assert_eq!(stage.client.call("frail__tool_error", "{}").await.text(), "the tool says no");
    assert_eq!(stage.client.call("frail__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    stage.gateway.says(&["a second `endpoint` event"]).await;
}
