//! Subscriptions through the gateway: who hears what, what an upstream is asked for, and what a restart changes of it.

use std::sync::Arc;

use trunkline_tests::client::{Client, Open, Request};
use trunkline_tests::frame::{Frame, quote};
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::journal::{self, Event, Order, What};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::tape::Tape;
use trunkline_tests::upstream::{Upstream, Way};

const LEGACY: Revision = Revision::R2025_11_25;
const MODERN: Revision = Revision::MODERN;
const UPDATED: &str = "notifications/resources/updated";
const CHANGED: &str = "notifications/tools/list_changed";
const URI: &str = "script://up/changing";
const TAG: &str = "io.modelcontextprotocol/subscriptionId";

async fn listen<'a>(client: &'a Client, id: &str, filter: &str) -> Open<'a> {
    let params = format!("{{\"notifications\":{{{filter}}}}}");
    client.start(Request::new("subscriptions/listen", &params).id(id)).await
}

fn of(uris: &[&str]) -> String {
    let uris: Vec<_> = uris.iter().map(|uri| quote(uri)).collect();
    format!("\"resourceSubscriptions\":[{}]", uris.join(","))
}

/// The first frame of a listen call, which must be its acknowledgement: what is honoured.
async fn acknowledged(open: &Open<'_>) -> serde_json::Value {
    let first = open.notices.wait("a listen call is taken", |frame| Some(frame.clone())).await;
    assert!(first.is_notice("notifications/subscriptions/acknowledged"), "it comes first: {first:?}");
    assert_eq!(first.meta(TAG).expect("a tag").get(), open.id);
    serde_json::from_str(first.param("notifications").expect("a filter").get()).expect("JSON")
}

async fn hears(tape: &Tape<Frame>, mark: usize, method: &str) -> Frame {
    tape.wait_from(mark, &format!("{method} is heard"), |frame| frame.is_notice(method).then(|| frame.clone())).await
}

fn methods(tape: &Tape<Frame>) -> Vec<String> {
    tape.all().into_iter().filter_map(|frame| frame.method).collect()
}

async fn update(upstream: &Upstream, uri: &str) {
    upstream.order(Order::Notify(UPDATED.into(), format!("{{\"uri\":{}}}", quote(uri)))).await;
}

/// The requests of this method about the resource that the upstream was sent up to now.
async fn asked(upstream: &Upstream, method: &str) -> Vec<Event> {
    let text = format!("\"{method}\"");
    let is_one =
        |event: &Event| matches!(&event.what, What::Frame { raw, .. } if raw.contains(&text) && raw.contains(URI));
    upstream.seen().await.into_iter().filter(is_one).collect()
}

async fn ready(client: &Client) {
    client.tools_until("the upstream is there", |tools| tools.contains(&"up__echo".into())).await;
}

#[tokio::test]
async fn two_listens_on_one_pipe_each_hear_what_they_asked_for() {
    for revision in [LEGACY, MODERN] {
        let upstream = Upstream::http(Script::new("up", revision)).await;
        let gateway = StdioGateway::prepare(&Config::new().upstream(&upstream));
        let client = Client::connect(&gateway.reach(), MODERN).await;
        ready(&client).await;
        // Ids that no other request of the client has.
        let lists = listen(&client, "7007", "\"toolsListChanged\":true,\"promptsListChanged\":false").await;
        let one = listen(&client, "\"7007\"", &of(&[URI, "nobody://x"])).await;
        assert_eq!(acknowledged(&lists).await, serde_json::json!({"toolsListChanged": true}));
        let honoured = serde_json::json!({"resourceSubscriptions": [URI]});
        assert_eq!(acknowledged(&one).await, honoured, "what nobody has is not honoured");
        for round in 0..2 {
            let (a, b) = (lists.notices.mark(), one.notices.mark());
            upstream.order(Order::AddTool(format!("later_{round}"))).await;
            update(&upstream, "script://up/text").await;
            update(&upstream, URI).await;
            hears(&lists.notices, a, CHANGED).await;
            let told = hears(&one.notices, b, UPDATED).await;
            assert_eq!(told.param_text("uri").as_deref(), Some(URI));
        }
        assert!(!methods(&lists.notices).iter().any(|method| method == UPDATED), "{revision}");
        assert!(!methods(&one.notices).iter().any(|method| method == CHANGED), "{revision}");
        let (tape, gone) = (lists.notices.clone(), lists.notices.mark());
        lists.cancel().await;
        // The frames of one client are read in order: what follows comes after the withdrawal.
        client.call("up__echo", "{}").await;
        let mark = one.notices.mark();
        upstream.order(Order::AddTool("last".into())).await;
        client.tools_until("the last tool", |tools| tools.contains(&"up__last".into())).await;
        update(&upstream, URI).await;
        hears(&one.notices, mark, UPDATED).await;
        assert_eq!(tape.mark(), gone, "nothing more for what was withdrawn");
        assert!(client.complaints.all().is_empty(), "{:?}", client.complaints.all());
    }
}

#[tokio::test]
async fn on_a_pipe_a_listen_is_withdrawn_by_name_before_its_result() {
    let upstream = Upstream::http(Script::new("up", LEGACY)).await;
    let gateway = StdioGateway::prepare(&Config::new().upstream(&upstream));
    let client = Client::connect(&gateway.reach(), MODERN).await;
    let open = listen(&client, "\"L\"", "\"toolsListChanged\":true").await;
    acknowledged(&open).await;
    client.stdio().keep_lines();
    client.stdio().close().await;
    let end = open.answer().await;
    assert_eq!(end.value()["_meta"][TAG], "L", "its result bears its tag");
    let lines = client.stdio().lines.all();
    let at =
        |text: &str| lines.iter().position(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}: {lines:?}"));
    assert!(at("\"method\":\"notifications/cancelled\"") < at("\"resultType\":\"complete\""), "{lines:?}");
    assert!(lines[at("notifications/cancelled")].contains("\"requestId\":\"L\""), "{lines:?}");
    assert!(client.stdio().ended().await.success());
}

#[tokio::test]
async fn over_http_a_listen_ends_with_its_result() {
    let upstream = Upstream::http(Script::new("up", MODERN)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = Client::connect(&gateway.reach(), MODERN).await;
    let open = listen(&client, "4141", "\"toolsListChanged\":true").await;
    acknowledged(&open).await;
    let tape = open.notices.clone();
    let (_, end) = tokio::join!(gateway.stop(), open.answer());
    assert_eq!((end.id(), &end.value()["_meta"][TAG]), ("4141", &serde_json::json!(4141)));
    assert!(!methods(&tape).iter().any(|method| method == "notifications/cancelled"), "the stream itself ends");
}

/// Three clients of both eras want one resource: the upstream is asked once, and let go once.
async fn counted(way: Way) {
    let upstream = Upstream::start(way, Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, "sharing = \"shared\"")).await;
    let reach = gateway.reach();
    let [first, second] = [Client::connect(&reach, MODERN).await, Client::connect(&reach, MODERN).await];
    let session = Client::connect(&reach, Revision::R2024_11_05).await;
    ready(&session).await;
    let (one, two) = (listen(&first, "1", &of(&[URI])).await, listen(&second, "1", &of(&[URI])).await);
    let three = session.listen(&[URI]).await;
    let honoured = serde_json::json!({"resourceSubscriptions": [URI]});
    assert_eq!([acknowledged(&one).await, acknowledged(&two).await], [honoured.clone(), honoured], "{way:?}");
    assert_eq!(asked(&upstream, "resources/subscribe").await.len(), 1, "{way:?}");
    let tapes: [&Arc<Tape<Frame>>; 3] = [&one.notices, &two.notices, &three.heard];
    let marks = tapes.map(|tape| tape.mark());
    update(&upstream, URI).await;
    for (tape, mark) in tapes.into_iter().zip(marks) {
        hears(tape, mark, UPDATED).await;
    }
    one.cancel().await;
    two.cancel().await;
    let mark = three.heard.mark();
    update(&upstream, URI).await;
    hears(&three.heard, mark, UPDATED).await;
    assert_eq!(asked(&upstream, "resources/unsubscribe").await.len(), 0, "one of three still listens: {way:?}");
    let gone = session.request(Request::new("resources/unsubscribe", &format!("{{\"uri\":{}}}", quote(URI)))).await;
    assert_eq!(gone.result(), "{}");
    upstream.received("resources/unsubscribe").await;
    let again = session.request(Request::new("resources/subscribe", &format!("{{\"uri\":{}}}", quote(URI)))).await;
    assert_eq!(again.result(), "{}", "what was let go can be had again");
    assert_eq!(asked(&upstream, "resources/subscribe").await.len(), 2, "it is asked for again: {way:?}");
    assert_eq!(asked(&upstream, "resources/unsubscribe").await.len(), 1, "{way:?}");
}

#[tokio::test]
async fn one_subscription_serves_all_listeners_of_a_pipe() {
    counted(Way::Stdio).await;
}

#[tokio::test]
async fn one_subscription_serves_all_listeners_of_a_session() {
    counted(Way::Http).await;
}

#[tokio::test]
async fn the_next_process_is_subscribed_to_again_and_what_was_missed_is_told() {
    for revision in [LEGACY, MODERN] {
        let upstream = Upstream::stdio(Script::new("up", revision)).await;
        let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
        let (stateless, session) =
            (Client::connect(&gateway.reach(), MODERN).await, Client::connect(&gateway.reach(), LEGACY).await);
        ready(&session).await;
        let one = listen(&stateless, "1", &of(&[URI])).await;
        let two = session.listen(&[URI]).await;
        acknowledged(&one).await;
        let tapes: [&Arc<Tape<Frame>>; 2] = [&one.notices, &two.heard];
        let marks = tapes.map(|tape| tape.mark());
        let mut heard = None;
        upstream.order(Order::Exit(3)).await;
        for (tape, mark) in tapes.into_iter().zip(marks) {
            let told = hears(tape, mark, UPDATED).await;
            assert_eq!(told.param_text("uri").as_deref(), Some(URI), "{revision}");
            heard.get_or_insert_with(journal::now);
        }
        let method = if revision.is_modern() { "subscriptions/listen" } else { "resources/subscribe" };
        let is_before = |event: &Event| event.instance == 1 && Some(event.at) <= heard;
        let asked = asked(&upstream, method).await;
        assert!(asked.iter().any(is_before), "it was asked for before it was told: {revision}: {heard:?} {asked:?}");
        let marks = tapes.map(|tape| tape.mark());
        update(&upstream, URI).await;
        for (tape, mark) in tapes.into_iter().zip(marks) {
            hears(tape, mark, UPDATED).await;
        }
    }
}

#[tokio::test]
async fn the_next_session_is_subscribed_to_again() {
    let upstream = Upstream::http(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = Client::connect(&gateway.reach(), MODERN).await;
    ready(&client).await;
    let open = listen(&client, "1", &of(&[URI])).await;
    acknowledged(&open).await;
    let mark = open.notices.mark();
    upstream.order(Order::ForgetSessions).await;
    // Its lists are asked for, and that shows that the session is gone.
    upstream.order(Order::AddTool("later".into())).await;
    hears(&open.notices, mark, UPDATED).await;
    assert_eq!(asked(&upstream, "resources/subscribe").await.len(), 2);
}

#[tokio::test]
async fn a_call_that_finds_its_own_session_gone_has_the_subscriptions_restored() {
    let upstream = Upstream::http(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = Client::connect(&gateway.reach(), MODERN).await;
    ready(&client).await;
    let open = listen(&client, "1", &of(&[URI])).await;
    acknowledged(&open).await;
    // It can be asked nothing, so its calls are made in a session beside the one that is subscribed.
    client.call("up__echo", "{}").await.text();
    let mark = open.notices.mark();
    upstream.order(Order::ForgetSessions).await;
    client.call("up__echo", "{}").await.text();
    hears(&open.notices, mark, UPDATED).await;
    assert_eq!(asked(&upstream, "resources/subscribe").await.len(), 2);
}

#[tokio::test]
async fn a_part_of_a_resource_concerns_who_wants_the_whole() {
    let upstream = Upstream::stdio(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = Client::connect(&gateway.reach(), MODERN).await;
    ready(&client).await;
    let open = listen(&client, "1", &of(&[URI])).await;
    acknowledged(&open).await;
    for uri in ["script://up/changingly", "script://up/changing/part#1"] {
        let frame = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{UPDATED}\",\"params\":{{\"uri\":\"{uri}\"}}}}\n");
        upstream.order(Order::Write(frame)).await;
    }
    let told = hears(&open.notices, 1, UPDATED).await;
    assert_eq!(told.param_text("uri").as_deref(), Some("script://up/changing/part#1"));
}
