//! One upstream as its callers see it: lists, changes, subscriptions, and real children.

mod admission;
mod background;
mod breaker;
mod broken;
mod call_sessions;
mod changes;
mod child_breaker;
mod ending;
mod endless;
mod failing;
mod flooding;
mod folding;
mod holding_lists;
pub(super) mod host;
mod http;
mod instances;
mod large_lists;
mod moved;
mod orders;
mod pipe_frames;
mod pressure;
mod probe;
mod refusing;
mod resting;
pub(crate) mod rig;
mod silent;
mod starting;
mod tasks;
mod unlisted;
mod unread;

use self::rig::{Rig, call, config, outcome};
use super::config::{Config, Filter, Glob, Transport};
use super::inventory::Inventory;
use super::*;
use crate::call::ListenFilter;
use crate::call::refusal::Reason;
use crate::call::reply::{Change, Event, Failure, Outcome, Step};
use crate::health::StatusBoard;
use crate::protocol::frame::Method;
use crate::protocol::revision::Revision;
use crate::protocol::value::Key;
use crate::upstream::instance::inventory::Item;
use crate::upstream::instance::inventory::schedule::ListKinds;
use std::time::Duration;

const LEGACY: Revision = Revision::V2025_11_25;

async fn known(inventory: &mut watch::Receiver<Option<Arc<Inventory>>>) -> Arc<Inventory> {
    inventory.wait_for(Option::is_some).await.unwrap().clone().unwrap()
}

fn keys(items: &[Item]) -> Vec<&str> {
    items.iter().map(|item| &*item.key).collect()
}

#[tokio::test(start_paused = true)]
async fn all_pages_are_read_and_what_fails_keeps_the_rest() {
    let mut rig = Rig::new(Config { tools: Filter { allow: Vec::new(), deny: vec![Glob::new("hidden")] }, ..config() });
    let peer = rig.met(LEGACY, r#"{"tools":{},"resources":{},"prompts":{}}"#);
    let mut inventory = rig.upstream().inventory();
    rig.tasks.spawn_until_end(crate::upstream::supervise::keep_inventory(
        rig.instance.clone(),
        peer,
        tokio::time::Instant::now(),
    ));
    let mut pages = 0;
    for _ in 0..6 {
        let (id, method, params) = rig.far.request().await;
        match method {
            Method::ToolsList => {
                pages += 1;
                let cursor = params.find("cursor").map(<[u8]>::to_vec);
                let page = match cursor.as_deref() {
                    None => r#"{"tools":[{"name":"b","inputSchema":{}},{"name":"a","x":1}],"nextCursor":""}"#,
                    Some(b"\"\"") => r#"{"tools":[{"name":"b","twice":1},{"name":"hidden"}],"nextCursor":"z\u0041"}"#,
                    // The cursor comes back as it was written, and the same one again ends the walk.
                    Some(br#""z\u0041""#) => r#"{"tools":[{"name":"c"}],"nextCursor":""}"#,
                    other => panic!("{other:?}"),
                };
                rig.far.result(&id, page).await;
            }
            Method::ResourcesList => rig.far.result(&id, r#"{"resources":[{"uri":"a:1","name":"n"}]}"#).await,
            Method::TemplatesList => rig.far.error(&id, -32601).await,
            Method::PromptsList => rig.far.result(&id, r#"{"nonsense":1}"#).await,
            other => panic!("{other:?}"),
        }
    }
    let inventory = known(&mut inventory).await;
    assert_eq!((pages, keys(&inventory.tools)), (3, vec!["b", "a", "c"]));
    assert_eq!(inventory.tools[1].definition.raw(), r#"{"name":"a","x":1}"#);
    assert_eq!(inventory.counts(), [3, 1, 0, 0]);
    let health = rig.board.snapshot().remove(0);
    assert_eq!((health.state, health.items), (State::Degraded, Some([3, 1, 0, 0])), "its prompts could not be read");
    let refused = rig.upstream().call(call(LEGACY, Method::ToolsCall, r#"{"name":"hidden"}"#)).outcome().await.1;
    assert!(matches!(refused, Outcome::Error(Failure::Refused(refusal)) if refusal.reason == Reason::InvalidParams));
}

#[tokio::test(start_paused = true)]
async fn what_is_announced_is_told_and_what_is_found_only_where_it_differs() {
    let mut rig = Rig::new(config());
    let peer = rig.met(LEGACY, r#"{"tools":{}}"#);
    let mut inventory = rig.upstream().inventory();
    rig.tasks.spawn_until_end(crate::upstream::supervise::keep_inventory(
        rig.instance.clone(),
        peer,
        tokio::time::Instant::now(),
    ));
    // What the upstream says is told as it says it, what is only found where anything differs.
    let rounds = [("[]", true, 1), ("[]", true, 1), ("[]", false, 1), (r#"[{"name":"a"}]"#, true, 1)];
    for (round, (tools, is_told, announced)) in rounds.into_iter().enumerate() {
        let (id, _, _) = rig.far.request().await;
        rig.far.result(&id, &format!("{{\"tools\":{tools}}}")).await;
        let told = tokio::time::timeout(Duration::from_secs(1), inventory.changed()).await.is_ok();
        assert_eq!(told, is_told, "{tools} in round {round}");
        let count = inventory.borrow_and_update().as_ref().map(|inventory| inventory.announced.tools);
        assert_eq!(count, Some(announced.min(round as u64)), "{tools} in round {round}");
        match round {
            0 => rig.far.notify("notifications/tools/list_changed", "{}").await,
            _ => rig.instance.offering.reads.mark(ListKinds::TOOLS),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn subscriptions_are_counted_acknowledged_and_let_go() {
    let mut rig = Rig::new(config());
    let peer = rig.met(LEGACY, r#"{"resources":{"subscribe":true}}"#);
    rig.listens(&rig.tasks, peer, false);
    let upstream = rig.upstream();
    let listen = |uris: &str| {
        upstream.call(call(
            LEGACY,
            Method::Listen,
            &format!(r#"{{"notifications":{{"resourceSubscriptions":{uris}}}}}"#),
        ))
    };
    let mut one = listen(r#"["a:1","a:2"]"#);
    let mut two = listen(r#"["a:1"]"#);
    for _ in 0..2 {
        let (id, method, params) = rig.far.request().await;
        assert_eq!(method, Method::ResourcesSubscribe);
        match params.text(Key::Uri).as_deref() {
            Some("a:1") => rig.far.result(&id, "{}").await,
            _ => rig.far.error(&id, -32002).await,
        }
    }
    for reply in [&mut one, &mut two] {
        let Step::Event(Event::Change(Change::Acknowledged(honoured))) = reply.next().await else { panic!() };
        assert_eq!(honoured.uris, vec![Arc::from("a:1")]);
    }
    rig.far.notify("notifications/resources/updated", r#"{"uri":"a:1"}"#).await;
    for reply in [&mut one, &mut two] {
        assert!(matches!(reply.next().await, Step::Event(Event::Change(Change::Updated(uri))) if &*uri == "a:1"));
    }
    drop(one);
    assert!(rig.far.is_quiet().await);
    drop(two);
    assert_eq!(rig.far.request().await.1, Method::ResourcesUnsubscribe);
}

#[tokio::test(start_paused = true)]
async fn a_stateless_pipe_is_told_all_in_each_request() {
    let mut rig = Rig::new(config());
    rig.met(Revision::V2026_07_28, "{}");
    let mut reply =
        rig.upstream().call(Call { meta: r#""x":1"#.into(), ..call(LEGACY, Method::ToolsCall, r#"{"name":"t"}"#) });
    let (id, _, params) = rig.far.request().await;
    let meta = crate::protocol::meta::Meta::parse(&params.share(Key::Meta).unwrap()).unwrap();
    assert_eq!((meta.revision.as_deref(), meta.rest), (Some(&br#""2026-07-28""#[..]), r#""x":1"#.into()));
    assert!(meta.client.unwrap().starts_with(br#"{"name":"trunkline""#));
    assert_eq!(meta.capabilities.as_deref(), Some(&b"{}"[..]));
    rig.far.result(&id, r#"{"resultType":"input_required","requestState":"s"}"#).await;
    assert!(matches!(outcome(&mut reply).await, Outcome::InputRequired(_)));
    assert_eq!(reply.revision(), Revision::V2026_07_28);
    for (kind, is_taken) in [("\"complete\"", true), ("\"later\"", false), ("7", false), ("\"task\"", false)] {
        let mut reply = rig.upstream().call(call(LEGACY, Method::ToolsCall, r#"{"name":"t"}"#));
        let (id, _, _) = rig.far.request().await;
        rig.far.result(&id, &format!("{{\"resultType\":{kind}}}")).await;
        assert_eq!(matches!(outcome(&mut reply).await, Outcome::Complete(_)), is_taken, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn changes_of_a_stateless_upstream_come_by_one_stream_that_is_replaced_before_it_is_let_go() {
    let mut rig = Rig::new(config());
    let peer = rig.met(Revision::V2026_07_28, r#"{"tools":{},"resources":{"subscribe":true}}"#);
    rig.listens(&rig.tasks, peer, false);
    let (first, method, _) = rig.far.request().await;
    assert_eq!(method, Method::Listen);
    let acknowledge = |id: &crate::protocol::frame::message::Id, filter: &str| {
        let id = String::from_utf8_lossy(id.raw()).into_owned();
        format!(r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"notifications":{filter}}}"#)
    };
    rig.far
        .notify("notifications/subscriptions/acknowledged", &acknowledge(&first, r#"{"toolsListChanged":true}"#))
        .await;
    let mut reply =
        rig.upstream().call(call(LEGACY, Method::Listen, r#"{"notifications":{"resourceSubscriptions":["a:1"]}}"#));
    let (second, _, params) = rig.far.request().await;
    assert_eq!(ListenFilter::parse(&params).unwrap().uris, vec![Arc::from("a:1")]);
    rig.far
        .notify(
            "notifications/subscriptions/acknowledged",
            &acknowledge(&second, r#"{"resourceSubscriptions":["a:1"]}"#),
        )
        .await;
    assert!(
        matches!(reply.next().await, Step::Event(Event::Change(Change::Acknowledged(honoured))) if honoured.uris.len() == 1)
    );
    let (method, params) = rig.far.notification().await;
    assert_eq!((method, params.get(Key::RequestId)), (Method::Cancelled, Some(&first.raw()[..])));
    rig.far.notify("notifications/resources/updated", r#"{"uri":"a:1"}"#).await;
    assert!(matches!(reply.next().await, Step::Event(Event::Change(Change::Updated(_)))));
    rig.far.notify("notifications/tools/list_changed", "{}").await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(rig.instance.offering.reads.begin(), ListKinds::TOOLS);
}

/// A legacy upstream in a few lines of shell: it refuses to be discovered, and its one tool is whatever `tool` does.
pub(crate) fn shell(tool: &str) -> Config {
    let script = format!(
        r#"while read -r line; do
            id=${{line#*\"id\":}}; id=${{id%%,*}}
            case "$line" in
            *server/discover*) echo '{{"jsonrpc":"2.0","id":'$id',"error":{{"code":-32601,"message":"no"}}}}' ;;
            *\"initialize\"*) echo '{{"jsonrpc":"2.0","id":'$id',"result":{{"protocolVersion":"2024-11-05","capabilities":{{"tools":{{}}}}}}}}' ;;
            *tools/list*) echo '{{"jsonrpc":"2.0","id":'$id',"result":{{"tools":[{{"name":"t"}}]}}}}' ;;
            *tools/call*) {tool} ;;
            esac
        done"#
    );
    let env = vec![("PATH".into(), std::env::var_os("PATH").unwrap())];
    Config {
        transport: Transport::Stdio { command: "sh".into(), args: vec!["-c".into(), script], env, cwd: None },
        ..config()
    }
}

pub(crate) const ANSWER: &str = r#"echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[]}}'"#;

fn start(config: Config) -> (Upstream, StatusBoard, Tasks) {
    let (board, tasks) = (StatusBoard::default(), Tasks::new());
    let handle = board.add(&config.name, "stdio");
    let upstream = Upstream::new(config, handle, Arc::new(|_| ()));
    upstream.keep_alive(&tasks);
    (upstream, board, tasks)
}

async fn bounded<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it takes too long")
}

async fn stop(upstream: &Upstream, tasks: &Tasks) {
    tasks.end();
    bounded(upstream.stopped()).await;
    assert_eq!(upstream.state(), State::Stopped);
}

#[tokio::test]
async fn an_order_ends_the_calls_of_a_child_and_says_so() {
    let (upstream, board, tasks) = start(shell(":"));
    bounded(known(&mut upstream.inventory())).await;
    let reply = upstream.call(call(LEGACY, Method::ToolsCall, r#"{"name":"t"}"#));
    let order = board.order("a", crate::health::Order::Stop).unwrap();
    let ((_, end), order) = bounded(async { tokio::join!(reply.outcome(), order) }).await;
    order.unwrap();
    let Outcome::Error(Failure::Refused(refusal)) = end else { panic!("{end:?}") };
    assert!(refusal.message.contains("stopped on request"), "{}", refusal.message);
    stop(&upstream, &tasks).await;
}

#[tokio::test]
async fn a_child_is_started_met_called_and_stopped_without_a_trace() {
    let (upstream, board, tasks) = start(shell(ANSWER));
    // Called before it is up: the call waits its turn.
    let early = upstream.call(call(LEGACY, Method::ToolsCall, r#"{"name":"t"}"#));
    let inventory = bounded(known(&mut upstream.inventory())).await;
    assert_eq!((inventory.revision, keys(&inventory.tools)), (Revision::V2024_11_05, vec!["t"]));
    assert!(matches!(bounded(early.outcome()).await, (Revision::V2024_11_05, Outcome::Complete(_))));
    let health = board.snapshot().remove(0);
    let group = rustix::process::Pid::from_raw(health.pid.unwrap() as i32).unwrap();
    assert_eq!((health.state, health.revision, health.restarts), (State::Ready, Some("2024-11-05"), 0));
    stop(&upstream, &tasks).await;
    assert!(rustix::process::test_kill_process_group(group).is_err(), "nothing of its group is left");
}

#[tokio::test]
async fn a_child_that_dies_in_a_call_says_why_and_is_started_again() {
    let (upstream, board, tasks) = start(shell("echo broken >&2; exit 3"));
    bounded(known(&mut upstream.inventory())).await;
    let dead = upstream.call(call(LEGACY, Method::ToolsCall, r#"{"name":"t"}"#));
    match bounded(dead.outcome()).await.1 {
        Outcome::Error(Failure::Refused(refusal)) => {
            assert_eq!(refusal.reason, Reason::OutcomeUnknown);
            assert!(refusal.message.contains("status 3") && !refusal.message.contains("broken"), "{refusal}");
        }
        other => panic!("{other:?}"),
    }
    let mut changes = board.changes();
    bounded(async {
        let is_said =
            || board.snapshot()[0].cause.as_ref().is_some_and(|cause| cause.full().ends_with(" on stderr: broken"));
        while !is_said() {
            changes.changed().await.unwrap();
        }
        while board.snapshot()[0].restarts == 0 || upstream.state() != State::Ready {
            changes.changed().await.unwrap();
        }
    })
    .await;
    stop(&upstream, &tasks).await;
}

#[tokio::test]
async fn what_cannot_be_started_has_failed_at_once_with_the_reason() {
    let missing = Transport::Stdio { command: "/no/such/command".into(), args: Vec::new(), env: Vec::new(), cwd: None };
    let nowhere = Transport::Stdio {
        command: "sh".into(),
        args: Vec::new(),
        env: Vec::new(),
        cwd: Some("/no/such/place".into()),
    };
    for (transport, word) in [(missing, "command does not exist"), (nowhere, "working directory does not exist")] {
        let (upstream, board, tasks) = start(Config { transport, ..config() });
        let mut changes = board.changes();
        bounded(async {
            while upstream.state() != State::Failed {
                changes.changed().await.unwrap();
            }
        })
        .await;
        let refused = upstream.call(call(LEGACY, Method::ToolsCall, r#"{"name":"t"}"#)).outcome().await.1;
        assert!(
            matches!(refused, Outcome::Error(Failure::Refused(refusal)) if refusal.is_retriable() && refusal.message.contains(word))
        );
        stop(&upstream, &tasks).await;
    }
}

#[tokio::test]
async fn a_child_that_ends_when_it_is_asked_is_met_by_a_handshake() {
    let mut config = shell(ANSWER);
    if let Transport::Stdio { args, .. } = &mut config.transport {
        args[1] = args[1].replace("*server/discover*) ", "*server/discover*) exit 1; ");
    }
    let (upstream, board, tasks) = start(config);
    bounded(known(&mut upstream.inventory())).await;
    assert_eq!(board.snapshot()[0].restarts, 0);
    stop(&upstream, &tasks).await;
}

#[tokio::test]
async fn a_child_that_will_not_stop_is_killed_with_its_group() {
    // A machine that is held up makes one of them late, and not all of them.
    let mut took = Vec::new();
    while took.last().is_none_or(|took| *took >= config().restart.stop_timeout) {
        assert!(took.len() < 4, "the time that was set is kept: {took:?}");
        took.push(killed().await);
    }
}

/// How long it took to stop a child that is deaf to SIGTERM, with less time than there is by default.
async fn killed() -> Duration {
    let mut config = shell(ANSWER);
    config.restart.stop_timeout = Duration::from_millis(600);
    if let Transport::Stdio { args, .. } = &mut config.transport {
        args[1] = format!("trap '' TERM; sleep 1000 & {}; while :; do sleep 1; done", args[1]);
    }
    let (upstream, board, tasks) = start(config);
    bounded(known(&mut upstream.inventory())).await;
    let group = rustix::process::Pid::from_raw(board.snapshot()[0].pid.unwrap() as i32).unwrap();
    let begun = tokio::time::Instant::now();
    stop(&upstream, &tasks).await;
    let took = begun.elapsed();
    // What was killed is reaped by whoever adopted it, soon.
    bounded(async {
        while rustix::process::test_kill_process_group(group).is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    took
}
