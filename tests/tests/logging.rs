//! Log messages of upstreams: who hears them, from which level on, and that a restart changes nothing of it.

use trunkline_tests::client::{Client, Request, tool};
use trunkline_tests::frame::Frame;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::{Event, Order, What};
use trunkline_tests::log;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::{Upstream, Way};

const LEGACY: Revision = Revision::R2025_11_25;
const MESSAGE: &str = "notifications/message";
const LEVEL: &str = "io.modelcontextprotocol/logLevel";

async fn stage(way: Way, revision: Revision) -> (Upstream, Gateway) {
    let script = Script::new("up", revision).with(|script| script.tools.push("log".into()));
    let upstream = Upstream::start(way, script).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    (upstream, gateway)
}

async fn join(gateway: &Gateway, revision: Revision) -> Client {
    let client = Client::connect(&gateway.reach(), revision).await;
    client.tools_until("the upstream's tools are listed", |tools| tools.contains(&"up__log".into())).await;
    client
}

async fn set_level(client: &Client, level: &str) {
    let answer = client.request(Request::new("logging/setLevel", &format!("{{\"level\":\"{level}\"}}"))).await;
    assert_eq!(answer.result(), "{}");
}

/// The first frame after `mark` in which the upstream is told a level.
async fn told_level(upstream: &Upstream, mark: usize, level: &str) -> Event {
    let wanted = format!("\"level\":\"{level}\"");
    let pick = |event: &Event| match &event.what {
        What::Frame { raw, .. } if raw.contains("logging/setLevel") && raw.contains(&wanted) => Some(event.clone()),
        _ => None,
    };
    upstream.events.wait_from(mark, &format!("the upstream is told the level {level}"), pick).await
}

/// The upstream says something that belongs to no call.
async fn says(upstream: &Upstream, level: &str, data: &str) {
    let params = format!("{{\"level\":\"{level}\",\"data\":\"{data}\"}}");
    upstream.order(Order::Notify(MESSAGE.into(), params)).await;
}

fn data_of(frame: &Frame) -> Option<String> {
    frame.is_notice(MESSAGE).then(|| frame.param_text("data")).flatten()
}

async fn hears(client: &Client, data: &str) {
    let what = format!("the client hears {data:?}");
    client.notices.wait(&what, |frame| (data_of(frame)? == data).then_some(())).await;
}

fn heard(frames: Vec<Frame>) -> Vec<String> {
    frames.iter().filter_map(data_of).collect()
}

#[tokio::test]
async fn each_session_hears_from_its_own_level_on() {
    for way in [Way::Stdio, Way::Http] {
        let (upstream, gateway) = stage(way, LEGACY).await;
        let (chatty, quiet, plain) =
            (join(&gateway, LEGACY).await, join(&gateway, Revision::R2025_03_26).await, join(&gateway, LEGACY).await);
        let _ears = (chatty.listen(&[]).await, quiet.listen(&[]).await);
        let ear = plain.listen(&[]).await;
        set_level(&quiet, "error").await;
        told_level(&upstream, 0, "error").await;
        set_level(&chatty, "debug").await;
        told_level(&upstream, 0, "debug").await;
        for (level, data) in [("debug", "a detail"), ("warning", "a warning"), ("critical", "a fire")] {
            says(&upstream, level, data).await;
        }
        hears(&chatty, "a fire").await;
        hears(&quiet, "a fire").await;
        assert_eq!(heard(chatty.notices.all()), ["a detail", "a warning", "a fire"], "{way:?}");
        assert_eq!(heard(quiet.notices.all()), ["a fire"], "{way:?}");
        set_level(&quiet, "warning").await;
        says(&upstream, "warning", "again").await;
        hears(&quiet, "again").await;
        hears(&plain, "again").await;
        // One that named no level hears what matters, and no detail that was told for another.
        upstream.order(Order::AddTool("later".into())).await;
        ear.hears(0, "notifications/tools/list_changed").await;
        assert_eq!(heard(plain.notices.all()), ["a warning", "a fire", "again"], "{way:?}");
    }
}

#[tokio::test]
async fn the_level_is_restored_in_the_next_process() {
    let (upstream, gateway) = stage(Way::Stdio, LEGACY).await;
    let client = join(&gateway, LEGACY).await;
    let _ear = client.listen(&[]).await;
    set_level(&client, "notice").await;
    told_level(&upstream, 0, "notice").await;
    let mark = upstream.events.mark();
    upstream.order(Order::Exit(3)).await;
    let event = told_level(&upstream, mark, "notice").await;
    assert_eq!(event.instance, 1, "the next process");
    says(&upstream, "notice", "I am back").await;
    hears(&client, "I am back").await;
}

#[tokio::test]
async fn the_level_is_restored_in_the_next_session() {
    let (upstream, gateway) = stage(Way::Http, LEGACY).await;
    let client = join(&gateway, LEGACY).await;
    set_level(&client, "notice").await;
    told_level(&upstream, 0, "notice").await;
    let mark = upstream.events.mark();
    upstream.order(Order::ForgetSessions).await;
    client.call("up__echo", "{}").await.text();
    told_level(&upstream, mark, "notice").await;
}

/// What one call hears on its own stream.
async fn logs_of(client: &Client, level: Option<&str>, said: &str) -> Vec<String> {
    let arguments = format!("{{\"level\":\"{said}\",\"data\":\"{said} for {}\"}}", level.unwrap_or("nobody"));
    let mut request = tool("up__log", &arguments);
    if let Some(level) = level {
        request = request.meta(LEVEL, &format!("\"{level}\""));
    }
    let call = client.start(request).await;
    let notices = call.notices.clone();
    assert_eq!(call.answer().await.text(), "logged");
    heard(notices.all())
}

async fn a_stateless_call(way: Way, revision: Revision) {
    let (upstream, gateway) = stage(way, revision).await;
    let caller = join(&gateway, Revision::MODERN).await;
    let session = join(&gateway, LEGACY).await;
    let stateless = join(&gateway, Revision::MODERN).await;
    let ears = [session.listen(&[]).await, stateless.listen(&[]).await];
    let seen = format!("{way:?}, {revision}");
    assert_eq!(logs_of(&caller, Some("info"), "warning").await, ["warning for info"], "{seen}");
    assert_eq!(logs_of(&caller, Some("error"), "warning").await, Vec::<String>::new(), "under its level: {seen}");
    assert_eq!(logs_of(&caller, None, "emergency").await, Vec::<String>::new(), "it asked for none: {seen}");
    assert_eq!(logs_of(&caller, Some("debug"), "debug").await, ["debug for debug"], "{seen}");
    upstream.order(Order::AddTool("later".into())).await;
    for ear in &ears {
        ear.hears(0, "notifications/tools/list_changed").await;
        assert_eq!(heard(ear.heard.all()), Vec::<String>::new(), "nothing to others: {seen}");
    }
    assert_eq!(heard(caller.notices.all()), Vec::<String>::new(), "nothing beside the call: {seen}");
    if revision.is_modern() {
        let (raw, _) = upstream.received("debug for debug").await;
        assert!(raw.contains(&format!("\"{LEVEL}\":\"debug\"")), "the upstream is told: {raw}");
    }
}

#[tokio::test]
async fn a_stateless_call_hears_what_it_asked_for_over_a_legacy_pipe() {
    a_stateless_call(Way::Stdio, LEGACY).await;
}

#[tokio::test]
async fn a_stateless_call_hears_what_it_asked_for_over_legacy_http() {
    a_stateless_call(Way::Http, LEGACY).await;
}

#[tokio::test]
async fn a_stateless_call_hears_what_it_asked_for_over_a_modern_pipe() {
    a_stateless_call(Way::Stdio, Revision::MODERN).await;
}

#[tokio::test]
async fn a_stateless_call_hears_what_it_asked_for_over_modern_http() {
    a_stateless_call(Way::Http, Revision::MODERN).await;
}

#[tokio::test]
async fn a_session_hears_its_calls_from_its_level_on() {
    let (_upstream, gateway) = stage(Way::Http, LEGACY).await;
    let client = join(&gateway, LEGACY).await;
    set_level(&client, "warning").await;
    assert_eq!(logs_of(&client, None, "info").await, Vec::<String>::new());
    assert_eq!(logs_of(&client, None, "error").await, ["error for nobody"]);
}

#[tokio::test]
async fn a_session_that_never_named_a_level_hears_what_its_own_calls_say() {
    for way in [Way::Stdio, Way::Http] {
        let (_upstream, gateway) = stage(way, LEGACY).await;
        let (client, other) = (join(&gateway, LEGACY).await, join(&gateway, LEGACY).await);
        let ear = other.listen(&[]).await;
        assert_eq!(logs_of(&client, None, "info").await, ["info for nobody"], "{way:?}");
        assert_eq!(logs_of(&client, None, "debug").await, Vec::<String>::new(), "{way:?}");
        assert_eq!(heard(ear.heard.all()), Vec::<String>::new(), "{way:?}");
    }
}

#[tokio::test]
async fn a_session_that_never_named_a_level_hears_what_its_upstream_sends_of_itself() {
    for way in [Way::Stdio, Way::Http] {
        let (upstream, gateway) = stage(way, LEGACY).await;
        let client = join(&gateway, LEGACY).await;
        if way == Way::Http {
            let listens = |event: &Event| matches!(event.what, What::Listening(_)).then_some(());
            upstream.events.wait("the gateway listens", listens).await;
        }
        let ear = client.listen(&[]).await;
        says(&upstream, "debug", "too little").await;
        says(&upstream, "info", "enough").await;
        let what = format!("it hears what matters: {way:?}");
        ear.heard.wait(&what, |frame| (data_of(frame)? == "enough").then_some(())).await;
        assert_eq!(heard(ear.heard.all()), ["enough"], "{way:?}");
        set_level(&client, "error").await;
        says(&upstream, "warning", "too little").await;
        says(&upstream, "error", "more").await;
        ear.heard.wait(&what, |frame| (data_of(frame)? == "more").then_some(())).await;
        assert_eq!(heard(ear.heard.all()), ["enough", "more"], "{way:?}");
        let told =
            upstream.seen().await.iter().filter(|event| format!("{event:?}").contains("logging/setLevel")).count();
        assert!(told <= 1, "nothing was asked of it before: {told}");
    }
}

/// On a pipe nothing says whose a message is: with several calls open it is nobody's.
#[tokio::test]
async fn a_message_goes_to_no_call_while_another_may_have_made_it() {
    let (upstream, gateway) = stage(Way::Stdio, LEGACY).await;
    let (verbose, silent) = (join(&gateway, Revision::MODERN).await, join(&gateway, Revision::MODERN).await);
    let wait = tool("up__wait", "{\"gate\":\"open\"}").meta(LEVEL, "\"debug\"");
    let call = verbose.start(wait).await;
    upstream.waiting_at("open").await;
    assert_eq!(logs_of(&silent, None, "error").await, Vec::<String>::new(), "it asked for none");
    assert_eq!(logs_of(&silent, Some("info"), "error").await, Vec::<String>::new(), "it may be of either");
    upstream.order(Order::Release("open".into())).await;
    let notices = call.notices.clone();
    assert_eq!(call.answer().await.text(), "released");
    assert_eq!(heard(notices.all()), Vec::<String>::new());
    assert_eq!(logs_of(&silent, Some("info"), "error").await, ["error for info"], "alone it is heard again");
}

#[tokio::test]
async fn a_level_that_does_not_exist_is_refused() {
    let (upstream, gateway) = stage(Way::Stdio, LEGACY).await;
    let client = join(&gateway, LEGACY).await;
    let answer = client.request(Request::new("logging/setLevel", "{\"level\":\"loud\"}")).await;
    assert_eq!(answer.code(), -32602);
    assert!(!upstream.seen().await.iter().any(|event| format!("{event:?}").contains("loud")), "it goes no further");
}

#[tokio::test]
async fn what_no_client_hears_is_a_line_of_the_log_that_has_each_name_once() {
    let (upstream, gateway) = stage(Way::Stdio, LEGACY).await;
    let _deaf = join(&gateway, Revision::MODERN).await;
    says(&upstream, "critical", "for nobody").await;
    let line = gateway.says(&["upstream log message", "for nobody"]).await;
    assert_eq!((log::level(&line), log::field(&line, "upstream_level")), (Some("INFO"), Some("critical")), "{line}");
    for name in ["timestamp", "level", "upstream", "upstream_level", "data", "kept_back", "message"] {
        assert_eq!(line.matches(&format!("\"{name}\":")).count(), 1, "{name} in {line}");
    }
}
