//! The catalog over time and in pages: what an upstream announces is passed on, and long lists come whole.

use trunkline_tests::client::{Changes, Client, Request};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::{Event, Order, What};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::{Upstream, Way};

const LEGACY: Revision = Revision::R2025_11_25;
const CHANGED: &str = "notifications/tools/list_changed";

async fn passed_on(way: Way, revision: Revision) {
    let upstream = Upstream::start(way, Script::new("up", revision)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let stateless = Client::open(&gateway.reach(), Revision::MODERN).await;
    stateless.tools_until("the tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    // A session that was there before the list was known would be told of it, however late its stream opens.
    let session = Client::connect(&gateway.reach(), LEGACY).await;
    if revision.is_modern() || way == Way::Http {
        // It can only announce what somebody listens for.
        let listens = |event: &Event| matches!(event.what, What::Listening(_)).then_some(());
        upstream.events.wait("the gateway listens", listens).await;
    }
    let ears = [session.listen(&[]).await, stateless.listen(&[]).await];
    let told = |ear: &Changes<'_>| ear.heard.all().iter().filter(|frame| frame.is_notice(CHANGED)).count();
    let marks = ears.each_ref().map(|ear| ear.heard.mark());
    let before = ears.each_ref().map(told);
    // Its list is as it was: its word counts.
    upstream.order(Order::Notify(CHANGED.into(), "{}".into())).await;
    for (ear, mark) in ears.iter().zip(marks) {
        ear.hears(mark, CHANGED).await;
    }
    let marks = ears.each_ref().map(|ear| ear.heard.mark());
    for _ in 0..50 {
        upstream.order(Order::Notify(CHANGED.into(), "{}".into())).await;
    }
    upstream.order(Order::AddTool("later".into())).await;
    let what = "the last of them is read";
    session.tools_until(what, |tools| tools.contains(&"up__later".into())).await;
    for ((ear, mark), before) in ears.iter().zip(marks).zip(before) {
        ear.hears(mark, CHANGED).await;
        let told = told(ear) - before;
        assert!(told <= 6, "they are joined: {told} times, {way:?}, {revision}");
    }
}

#[tokio::test]
async fn an_announcement_without_a_change_is_passed_on_from_a_pipe() {
    passed_on(Way::Stdio, LEGACY).await;
}

#[tokio::test]
async fn an_announcement_without_a_change_is_passed_on_from_a_session() {
    passed_on(Way::Http, LEGACY).await;
}

#[tokio::test]
async fn an_announcement_without_a_change_is_passed_on_from_a_stateless_upstream() {
    passed_on(Way::Http, Revision::MODERN).await;
}

async fn pages(client: Revision, upstream: Revision) {
    let script = Script::new("up", upstream).only_tools(&["echo"]).with(|script| {
        script.more_tools = 2_500;
        script.page = 97;
    });
    let upstream = Upstream::stdio(script).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = Client::connect(&gateway.reach(), client).await;
    let tools = client.tools_until("all tools are listed", |tools| tools.len() == 2_501).await;
    let wanted = std::iter::once("up__echo".to_owned()).chain((0..2_500).map(|at| format!("up__tool_{at}")));
    assert!(tools.iter().eq(wanted.collect::<Vec<_>>().iter()), "each once, in the upstream's order");
    let first = client.request(Request::new("tools/list", "{}")).await.value();
    let length = first["tools"].as_array().map(Vec::len);
    assert!(length.is_some_and(|length| length <= 1_000), "a page holds at most a thousand: {length:?}");
    assert!(first["nextCursor"].is_string(), "and says that there is more");
    let last = client.call("up__tool_2499", "{\"a\":1}").await;
    assert_eq!(last.text(), "{\"a\":1}", "what stands on the last page can be called");
    let stray = client.request(Request::new("tools/list", "{\"cursor\":\"no such page\"}")).await;
    assert_eq!(stray.code(), -32602);
}

#[tokio::test]
async fn long_lists_come_in_pages_to_sessions() {
    pages(LEGACY, LEGACY).await;
}

#[tokio::test]
async fn long_lists_come_in_pages_to_stateless_clients() {
    pages(Revision::MODERN, Revision::MODERN).await;
}

#[tokio::test]
async fn all_kinds_come_in_pages() {
    let script = Script::new("up", LEGACY).with(|script| {
        script.more_resources = 1_200;
        script.page = 50;
    });
    let upstream = Upstream::http(script).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("the tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    let uris = client.list("resources/list", "resources", "uri").await;
    let mut different = uris.clone();
    different.sort();
    different.dedup();
    assert_eq!((uris.len(), different.len()), (1_202, 1_202), "each once");
    assert_eq!(uris.last().map(String::as_str), Some("script://up/more/1199"));
}
