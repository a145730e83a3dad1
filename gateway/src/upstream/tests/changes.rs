//! What is wanted of an upstream beyond calls, kept through whatever happens to it: subscriptions, streams of changes, levels.

use super::host::{Host, Seen, events};
use super::http::{is, start};
use super::rig::{Far, Rig, call, config};
use super::*;
use crate::call::LogLevel;
use crate::call::caller::{Grants, Principal};
use crate::call::reply::{Change, Event, Step};
use crate::health::StatusBoard;
use crate::protocol::frame::message::Id;
use crate::protocol::revision::Revision;
use std::sync::Mutex;

const MODERN: Revision = Revision::V2026_07_28;
const SUBSCRIBES: &str = r#"{"resources":{"subscribe":true}}"#;

fn listen(rig: &Rig, uris: &str) -> Reply {
    let params = format!(r#"{{"notifications":{{"resourceSubscriptions":{uris}}}}}"#);
    rig.upstream().call(call(LEGACY, Method::Listen, &params))
}

async fn change(reply: &mut Reply) -> Change {
    match tokio::time::timeout(Duration::from_secs(3600), reply.next()).await.expect("a change comes") {
        Step::Event(Event::Change(change)) => change,
        other => panic!("{other:?}"),
    }
}

async fn honoured(reply: &mut Reply) -> Vec<String> {
    match change(reply).await {
        Change::Acknowledged(filter) => filter.uris.iter().map(ToString::to_string).collect(),
        other => panic!("{other:?}"),
    }
}

/// The next request, which must be this one about this resource.
async fn asked(far: &mut Far, method: Method, uri: &str) -> Id {
    let (id, asked, params) = far.request().await;
    assert_eq!((asked, params.text(Key::Uri).as_deref()), (method, Some(uri)));
    id
}

/// Takes the listen call that a stateless upstream is asked for; all of it is honoured.
async fn take(far: &mut Far) -> (Id, Vec<String>) {
    let (id, method, params) = far.request().await;
    assert_eq!(method, Method::Listen);
    let raw = String::from_utf8_lossy(id.raw()).into_owned();
    let filter = ListenFilter::parse(&params).unwrap();
    let tag = format!(r#"{{"io.modelcontextprotocol/subscriptionId":{raw}}}"#);
    let params = format!(r#"{{"_meta":{tag},"notifications":{}}}"#, filter.to_json());
    far.notify("notifications/subscriptions/acknowledged", &params).await;
    (id, filter.uris.iter().map(ToString::to_string).collect())
}

fn keep(rig: &Rig, revision: Revision, was_away: bool) -> Tasks {
    let peer = rig.met(revision, SUBSCRIBES);
    let life = rig.tasks.child();
    rig.listens(&life, peer, was_away);
    life
}

#[tokio::test(start_paused = true)]
async fn who_comes_right_after_the_last_one_left_is_acknowledged() {
    for revision in [LEGACY, MODERN] {
        let mut rig = Rig::new(config());
        let _life = keep(&rig, revision, false);
        if revision.is_modern() {
            take(&mut rig.far).await;
        }
        let mut first = listen(&rig, r#"["a:1"]"#);
        if revision.is_modern() {
            assert_eq!(take(&mut rig.far).await.1, ["a:1"]);
        } else {
            let id = asked(&mut rig.far, Method::ResourcesSubscribe, "a:1").await;
            rig.far.result(&id, "{}").await;
        }
        assert_eq!(honoured(&mut first).await, ["a:1"]);
        drop(first);
        let mut second = listen(&rig, r#"["a:1"]"#);
        assert_eq!(honoured(&mut second).await, ["a:1"], "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_is_not_answered_holds_up_no_other() {
    let mut rig = Rig::new(config());
    let _life = keep(&rig, LEGACY, false);
    let mut stuck = listen(&rig, r#"["a:1"]"#);
    asked(&mut rig.far, Method::ResourcesSubscribe, "a:1").await;
    let mut other = listen(&rig, r#"["a:2"]"#);
    let id = asked(&mut rig.far, Method::ResourcesSubscribe, "a:2").await;
    rig.far.result(&id, "{}").await;
    assert_eq!(honoured(&mut other).await, ["a:2"]);
    assert_eq!(honoured(&mut stuck).await, Vec::<String>::new(), "what is not known in time is not honoured");
}

#[tokio::test(start_paused = true)]
async fn what_was_missed_is_told_once_it_is_heard_again() {
    let mut rig = Rig::new(config());
    let life = keep(&rig, LEGACY, false);
    let mut reply = listen(&rig, r#"["a:1"]"#);
    let id = asked(&mut rig.far, Method::ResourcesSubscribe, "a:1").await;
    rig.far.result(&id, "{}").await;
    assert_eq!(honoured(&mut reply).await, ["a:1"]);
    life.end();
    life.ended().await;
    let _next = keep(&rig, LEGACY, true);
    let id = asked(&mut rig.far, Method::ResourcesSubscribe, "a:1").await;
    let early = tokio::time::timeout(Duration::from_millis(100), reply.next()).await;
    assert!(early.is_err(), "a change now would be missed after all: {early:?}");
    rig.far.result(&id, "{}").await;
    assert_eq!(change(&mut reply).await, Change::Updated("a:1".into()));
}

#[tokio::test(start_paused = true)]
async fn what_changed_before_it_tells_of_changes_is_made_good_where_nobody_waited_for_that() {
    for (is_waited_for, kinds) in [(true, ListKinds::default()), (false, ListKinds::ALL)] {
        let mut rig = Rig::new(config());
        let peer = rig.met(MODERN, r#"{"tools":{}}"#);
        let (settled, first) = tokio::sync::oneshot::channel();
        let first = is_waited_for.then_some(first);
        rig.tasks.spawn_until_end(crate::upstream::supervise::keep_wanted(rig.instance.clone(), peer, false, settled));
        rig.instance.offering.reads.begin();
        take(&mut rig.far).await;
        assert!(rig.far.is_quiet().await);
        assert_eq!(rig.instance.offering.reads.begin(), kinds);
        drop(first);
    }
}

#[tokio::test]
async fn lists_are_read_once_it_tells_of_changes() {
    let early = Arc::new(Mutex::new(None));
    let seen_early = early.clone();
    let lists = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let host = Host::start(move |seen| {
        let (early, lists) = (seen_early.clone(), lists.clone());
        Box::pin(async move {
            use std::sync::atomic::Ordering::SeqCst;
            match seen.method().as_str() {
                "server/discover" => seen.result(
                    r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#,
                ),
                "subscriptions/listen" => {
                    // Time enough to read lists at once, were it not waited for.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    *early.lock().unwrap() = Some(lists.load(SeqCst));
                    seen.write(events(""));
                    let tag = format!(r#"{{"io.modelcontextprotocol/subscriptionId":{}}}"#, seen.id());
                    let params = format!(r#"{{"_meta":{tag},"notifications":{{"toolsListChanged":true}}}}"#);
                    let method = "notifications/subscriptions/acknowledged";
                    seen.write(format!(
                        "data: {{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}\n\n"
                    ));
                    std::future::pending().await
                }
                _ => {
                    lists.fetch_add(1, SeqCst);
                    seen.result(r#"{"resultType":"complete","tools":[]}"#)
                }
            }
        })
    })
    .await;
    let (upstream, board, tasks) = start(host.config());
    is(&board, State::Ready).await;
    assert_eq!(*early.lock().unwrap(), Some(0), "lists that were read before");
    assert_eq!(host.count("POST tools/list"), 1);
    drop(upstream);
    tasks.end();
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_changes_that_ends_is_opened_again_and_what_was_missed_is_told() {
    for by_result in [true, false] {
        let mut rig = Rig::new(config());
        let _life = keep(&rig, MODERN, false);
        take(&mut rig.far).await;
        let mut reply = listen(&rig, r#"["a:1"]"#);
        let (stream, _) = take(&mut rig.far).await;
        assert_eq!(honoured(&mut reply).await, ["a:1"]);
        assert_eq!(rig.far.notification().await.0, Method::Cancelled, "the older stream is let go");
        rig.instance.offering.reads.begin();
        if by_result {
            rig.far.result(&stream, r#"{"resultType":"complete"}"#).await;
        } else {
            let id = String::from_utf8_lossy(stream.raw()).into_owned();
            rig.far.notify("notifications/cancelled", &format!(r#"{{"requestId":{id}}}"#)).await;
        }
        assert_eq!(take(&mut rig.far).await.1, ["a:1"], "by result: {by_result}");
        assert_eq!(change(&mut reply).await, Change::Updated("a:1".into()));
        assert_eq!(rig.instance.offering.reads.begin(), ListKinds::ALL);
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_on_a_stream_that_was_replaced_is_told_once() {
    let mut rig = Rig::new(config());
    let _life = keep(&rig, MODERN, false);
    take(&mut rig.far).await;
    let mut reply = listen(&rig, r#"["a:1","a:2"]"#);
    let (older, _) = take(&mut rig.far).await;
    honoured(&mut reply).await;
    let mut other = listen(&rig, r#"["b:1"]"#);
    let (newer, _) = take(&mut rig.far).await;
    honoured(&mut other).await;
    for (uri, on) in [("a:1", &newer), ("a:1", &older), ("a:2", &older)] {
        let on = String::from_utf8_lossy(on.raw()).into_owned();
        let tag = format!(r#"{{"io.modelcontextprotocol/subscriptionId":{on}}}"#);
        rig.far.notify("notifications/resources/updated", &format!(r#"{{"_meta":{tag},"uri":"{uri}"}}"#)).await;
    }
    assert_eq!(change(&mut reply).await, Change::Updated("a:1".into()));
    assert_eq!(change(&mut reply).await, Change::Updated("a:2".into()), "the newer stream was too late for it");
    let more = tokio::time::timeout(Duration::from_secs(60), reply.next()).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test]
async fn an_update_is_heard_while_its_stream_is_replaced_by_one_with_more() {
    // Streams of a host have connections of their own: each is read by itself.
    let streams: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let opened = streams.clone();
    let host = Host::start(move |seen| {
        let opened = opened.clone();
        Box::pin(async move {
            match seen.method().as_str() {
                "server/discover" => {
                    return seen.result(&format!(
                        r#"{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{SUBSCRIBES}}}"#
                    ));
                }
                "subscriptions/listen" => {}
                _ => return seen.result(r#"{"resultType":"complete","resources":[],"resourceTemplates":[]}"#),
            }
            let event = |method: &str, params: String| {
                format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/{method}\",\"params\":{params}}}\n\n")
            };
            if seen.body.contains("a:2") {
                // What is on its way when the next stream is asked for.
                let older = opened.lock().unwrap().last().cloned().expect("a stream with a:1");
                older.write(event("resources/updated", r#"{"uri":"a:1"}"#.into()));
            }
            let tag = format!(r#"{{"io.modelcontextprotocol/subscriptionId":{}}}"#, seen.id());
            let honoured = r#"{"resourceSubscriptions":["a:1","a:2"]}"#;
            seen.write(events(""));
            seen.write(event("subscriptions/acknowledged", format!(r#"{{"_meta":{tag},"notifications":{honoured}}}"#)));
            opened.lock().unwrap().push(seen);
            std::future::pending().await
        })
    })
    .await;
    let (board, tasks) = (StatusBoard::default(), Tasks::new());
    let upstream = Upstream::new(host.config(), board.add(&"a".into(), "http"), Arc::new(|_| ()));
    upstream.keep_alive(&tasks);
    let ask = |uri: &str| {
        let params = format!(r#"{{"notifications":{{"resourceSubscriptions":["{uri}"]}}}}"#);
        upstream.call(call(LEGACY, Method::Listen, &params))
    };
    let mut first = ask("a:1");
    assert_eq!(honoured(&mut first).await, ["a:1"]);
    let mut second = ask("a:2");
    assert_eq!(honoured(&mut second).await, ["a:2"]);
    let told = tokio::time::timeout(Duration::from_secs(20), change(&mut first)).await;
    assert_eq!(told.expect("the update is heard"), Change::Updated("a:1".into()));
    tasks.end();
}

#[tokio::test(start_paused = true)]
async fn a_refused_stream_takes_nothing_from_who_listens_already() {
    let mut rig = Rig::new(config());
    let _life = keep(&rig, MODERN, false);
    take(&mut rig.far).await;
    let mut good = listen(&rig, r#"["a:1"]"#);
    take(&mut rig.far).await;
    assert_eq!(honoured(&mut good).await, ["a:1"]);
    assert_eq!(rig.far.notification().await.0, Method::Cancelled);
    let mut bad = listen(&rig, r#"["b:0"]"#);
    let (id, _, _) = rig.far.request().await;
    rig.far.error(&id, -32602).await;
    assert_eq!(honoured(&mut bad).await, Vec::<String>::new());
    let mut late = listen(&rig, r#"["a:1"]"#);
    assert_eq!(honoured(&mut late).await, ["a:1"]);
    rig.far.notify("notifications/resources/updated", r#"{"uri":"a:1"}"#).await;
    for reply in [&mut good, &mut late] {
        assert_eq!(change(reply).await, Change::Updated("a:1".into()));
    }
}

#[tokio::test(start_paused = true)]
async fn an_upstream_says_less_again_when_nobody_wants_more() {
    let mut rig = Rig::new(config());
    let peer = rig.met(LEGACY, r#"{"tools":{},"logging":{}}"#);
    rig.listens(&rig.tasks, peer, false);
    let upstream = rig.upstream();
    let told = |params: Object| params.find("level").map(|raw| String::from_utf8_lossy(raw).into_owned());
    let (levels, whose, session) = (Arc::<SessionLevels>::default(), Principal::anonymous(), "s".into());
    levels.hold((&whose, &Grants::all()), &session, LogLevel::Error);
    upstream.want_levels(&levels);
    let (id, _, params) = rig.far.request().await;
    assert_eq!(told(params).as_deref(), Some("\"error\""));
    rig.far.result(&id, "{}").await;
    for _ in 0..3 {
        // One call after the other that wants details: it is told once.
        let verbose = Call { log_level: Some(LogLevel::Debug), ..call(LEGACY, Method::ToolsCall, r#"{"name":"t"}"#) };
        let reply = upstream.call(verbose);
        let (mut id, mut method, params) = rig.far.request().await;
        if method == Method::SetLevel {
            assert_eq!(told(params).as_deref(), Some("\"debug\""));
            (id, method, _) = rig.far.request().await;
        }
        assert_eq!(method, Method::ToolsCall);
        rig.far.result(&id, "{}").await;
        reply.outcome().await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    let (_, method, params) = rig.far.request().await;
    assert_eq!((method, told(params).as_deref()), (Method::SetLevel, Some("\"error\"")));
    levels.release((&whose, &Grants::all()), &session, LogLevel::Error);
    upstream.want_levels(&levels);
    let (_, method, params) = rig.far.request().await;
    assert_eq!((method, told(params).as_deref()), (Method::SetLevel, Some("\"info\"")));
    assert!(rig.far.is_quiet().await);
}
