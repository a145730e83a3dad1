//! Upstreams that are added, replaced and removed while the gateway runs.

use super::*;
use crate::call::reply::{Outcome, Reply};
use crate::health::row::State;
use crate::protocol::frame::Method;
use crate::protocol::revision::Revision;
use crate::upstream::config::Config as UpstreamConfig;
use crate::upstream::tests::rig::call;
use crate::upstream::tests::{ANSWER, shell};
use std::time::Duration;

/// An upstream of this name with one tool, `t`.
fn named(name: &str, tool: &str) -> UpstreamConfig {
    UpstreamConfig { name: name.into(), prefix: name.into(), ..shell(tool) }
}

fn ask(gateway: &Gateway, method: Method, params: &str) -> Reply {
    gateway.handler.handle(call(Revision::V2025_11_25, method, params))
}

async fn told(reply: Reply) -> String {
    match reply.outcome().await.1 {
        Outcome::Complete(result) => String::from_utf8(result.raw().to_vec()).unwrap(),
        other => format!("{other:?}"),
    }
}

async fn names(gateway: &Gateway) -> Vec<bool> {
    let list = told(ask(gateway, Method::ToolsList, "{}")).await;
    ["a__t", "b__t", "c__t"].map(|name| list.contains(name)).to_vec()
}

/// Waits until a name is ready on the board, and says its process.
async fn pid(gateway: &Gateway, name: &str) -> u32 {
    let mut changes = gateway.board().changes();
    let ready = async {
        loop {
            let ready = gateway.board().snapshot().into_iter().find(|one| &*one.name == name);
            if let Some(pid) = ready.filter(|one| one.state == State::Ready).and_then(|one| one.pid) {
                return pid;
            }
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ready).await.unwrap_or_else(|_| panic!("{name} is ready"))
}

/// Waits until the board shows these and no others.
async fn shown(gateway: &Gateway, names: &[&str]) {
    let mut changes = gateway.board().changes();
    let shown = async {
        while gateway.board().snapshot().iter().map(|one| &*one.name).ne(names.iter().copied()) {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), shown).await.unwrap_or_else(|_| panic!("{names:?} are shown"));
}

fn runs(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_is_added_replaced_and_removed_and_another_one_is_not_touched() {
    let mut config = config();
    config.upstreams = vec![named("a", ANSWER), named("b", ANSWER)];
    let gateway = Gateway::start(config, Mode::Serve);
    gateway.serve().await.unwrap();
    let (a, b) = (pid(&gateway, "a").await, pid(&gateway, "b").await);
    assert_eq!(names(&gateway).await, [true, true, false]);

    // Added.
    let with_c = [named("a", ANSWER), named("c", ANSWER), named("b", ANSWER)];
    let changes = gateway.set_upstreams(&with_c).await;
    assert_eq!((changes.added, changes.unchanged), (vec!["c".into()], 2));
    let c = pid(&gateway, "c").await;
    assert_eq!(names(&gateway).await, [true, true, true]);
    shown(&gateway, &["a", "c", "b"]).await;
    assert!(told(ask(&gateway, Method::ToolsCall, r#"{"name":"c__t"}"#)).await.contains("content"));

    // Replaced: calls wait for the end of the process before, and its own calls are answered first.
    let slow = named("c", "sleep 0.5; echo '{\"jsonrpc\":\"2.0\",\"id\":'$id',\"result\":{\"content\":[]}}'");
    gateway.set_upstreams(&[named("a", ANSWER), slow.clone(), named("b", ANSWER)]).await;
    let second = told(ask(&gateway, Method::ToolsCall, r#"{"name":"c__t"}"#)).await;
    assert!(second.contains("content"), "{second}");
    let replaced = pid(&gateway, "c").await;
    assert!(!runs(c) && replaced != c);

    // Removed: its call is answered, then it ends with proof.
    let last = ask(&gateway, Method::ToolsCall, r#"{"name":"c__t"}"#);
    let changes = gateway.set_upstreams(&[named("a", ANSWER), named("b", ANSWER)]).await;
    assert_eq!((changes.removed, changes.unchanged), (vec!["c".into()], 2));
    assert_eq!(names(&gateway).await, [true, true, false]);
    assert!(runs(replaced), "its call goes on");
    let last = told(last).await;
    assert!(last.contains("content"), "{last}");
    shown(&gateway, &["a", "b"]).await;
    assert!(!runs(replaced));
    assert_eq!((pid(&gateway, "a").await, pid(&gateway, "b").await), (a, b));
    gateway.drain().await;
    assert!(!runs(a) && !runs(b));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_bears_two_is_up_before_the_one_that_it_replaces_ends_and_nothing_of_that_stays() {
    let overlapping = |tool: &str| UpstreamConfig { overlap: true, ..named("a", tool) };
    let mut config = config();
    config.upstreams = vec![overlapping(ANSWER)];
    let gateway = Gateway::start(config, Mode::Serve);
    gateway.serve().await.unwrap();
    let first = pid(&gateway, "a").await;
    let left = gateway.upstreams.kept("a");
    gateway.set_upstreams(&[overlapping(&format!(": ; {ANSWER}"))]).await;
    let second = pid(&gateway, "a").await;
    assert_ne!(first, second);
    shown(&gateway, &["a"]).await;
    let gone = async {
        while runs(first) || left.upgrade().is_some() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), gone).await.expect("nothing of it is left");
    gateway.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_often_a_child_is_changed_or_removed_and_added_two_of_it_never_run_at_once() {
    let go = std::env::temp_dir().join(format!("trunkline-go-{}", std::process::id()));
    let slow = format!(
        "while [ ! -e {} ]; do sleep 0.02; done; echo '{{\"jsonrpc\":\"2.0\",\"id\":'$id',\"result\":{{\"content\":[]}}}}'",
        go.display()
    );
    let mut config = config();
    config.upstreams = vec![named("a", &slow)];
    let gateway = Gateway::start(config, Mode::Serve);
    gateway.serve().await.unwrap();
    let first = pid(&gateway, "a").await;
    assert_eq!(names(&gateway).await, [true, false, false]);
    let last = ask(&gateway, Method::ToolsCall, r#"{"name":"a__t"}"#);

    let overlapping = UpstreamConfig { overlap: true, ..named("a", &format!(": ;: ; {ANSWER}")) };
    gateway.set_upstreams(&[named("a", ANSWER)]).await;
    gateway.set_upstreams(&[named("a", &format!(": ; {ANSWER}"))]).await;
    gateway.set_upstreams(&[]).await;
    gateway.set_upstreams(&[named("a", ANSWER)]).await;
    gateway.set_upstreams(&[overlapping]).await;
    let early = tokio::time::timeout(Duration::from_millis(500), pid(&gateway, "a")).await;
    assert!(early.is_err() && runs(first), "none starts while the first has a call: {early:?}, {}", runs(first));
    std::fs::write(&go, "").unwrap();
    assert!(told(last).await.contains("content"));
    let second = pid(&gateway, "a").await;
    assert!(!runs(first) && second != first);
    gateway.drain().await;
    assert!(!runs(second));
    std::fs::remove_file(go).unwrap();
}
