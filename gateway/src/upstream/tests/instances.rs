//! Instances beside the primary one: whose they are, how many there may be, when they end.

use super::super::config::{Config, Sharing, Transport};
use super::rig::call;
use super::{ANSWER, bounded, config, known, shell, start};
use crate::call::Call;
use crate::call::caller::{Caller, ClientSession, Principal};
use crate::call::refusal::Reason;
use crate::call::reply::{Failure, Outcome, Reply};
use crate::health::StatusBoard;
use crate::health::row::State;
use crate::protocol::frame::Method;
use crate::protocol::revision::Revision;
use std::sync::Arc;
use std::time::Duration;

/// A call of somebody, in a session or without.
fn of(principal: &str, tenant: Option<&Arc<ClientSession>>) -> Call {
    let plain = call(Revision::V2025_11_25, Method::ToolsCall, r#"{"name":"t"}"#);
    let principal = if principal.is_empty() { Principal::anonymous() } else { Principal::named(principal) };
    let caller = Caller { principal, tenant: tenant.cloned(), ..(*plain.caller).clone() };
    Call { caller: Arc::new(caller), ..plain }
}

fn session(id: &str) -> Arc<ClientSession> {
    Arc::new(ClientSession::mute(id))
}

/// An upstream that never comes up: its instances are counted all the same.
fn absent(sharing: Sharing) -> Config {
    let transport = Transport::Stdio { command: "/no/such/command".into(), args: vec![], env: vec![], cwd: None };
    Config { transport, sharing, max_instances: 2, ..config() }
}

/// Whose instances there are.
fn whose(board: &StatusBoard) -> Vec<String> {
    board.snapshot()[0].instances.values().map(|health| health.name.to_string()).collect()
}

async fn until(board: &StatusBoard, holds: impl Fn(&StatusBoard) -> bool) {
    let mut changes = board.changes();
    bounded(async {
        while !holds(board) {
            changes.changed().await.unwrap();
        }
    })
    .await;
}

/// Until the first instance beside the primary one is ready, restarted so often. A reply that nobody has looked at before
/// that does not pass its time limit: how long a start takes is the machine's affair.
async fn until_up(board: &StatusBoard, restarts: u64) {
    until(board, |board| {
        let snapshot = board.snapshot();
        let health = snapshot[0].instances.get(&1);
        health.is_some_and(|health| health.state == State::Ready && health.restarts == restarts)
    })
    .await;
}

async fn refusal(reply: Reply) -> (Reason, String) {
    match bounded(reply.outcome()).await.1 {
        Outcome::Error(Failure::Refused(refusal)) => (refusal.reason, refusal.message),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn each_session_has_a_child_of_its_own_that_ends_with_it() {
    let (upstream, board, tasks) = start(Config {
        sharing: Sharing::PerSession,
        ..shell(r#"echo '{"jsonrpc":"2.0","id":'$id',"result":{"pid":'$$'}}'"#)
    });
    bounded(known(&mut upstream.inventory())).await;
    let (one, two) = (session("1"), session("2"));
    let mut pids = Vec::new();
    for (tenant, instances) in [(&one, 1), (&two, 2), (&one, 2)] {
        let reply = upstream.call(of("", Some(tenant)));
        until(&board, |board| {
            let snapshot = board.snapshot();
            let ready = snapshot[0].instances.values().filter(|health| health.state == State::Ready);
            ready.count() == instances
        })
        .await;
        let answer = bounded(reply.outcome()).await.1;
        let Outcome::Complete(result) = answer else { panic!("{answer:?}") };
        pids.push(String::from_utf8(result.find("pid").unwrap().to_vec()).unwrap());
    }
    let primary = board.snapshot()[0].pid.unwrap().to_string();
    assert!(pids[0] == pids[2] && pids[0] != pids[1] && !pids.contains(&primary), "{pids:?} {primary}");
    one.end();
    until(&board, |board| whose(board) == ["session 2"]).await;
    let group = |pid: &str| rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
    assert!(rustix::process::test_kill_process_group(group(&pids[0])).is_err(), "nothing of its group is left");
    assert!(rustix::process::test_kill_process_group(group(&pids[1])).is_ok());
    // The end of all ends the rest.
    tasks.end();
    bounded(tasks.ended()).await;
    assert!(rustix::process::test_kill_process_group(group(&pids[1])).is_err());
    assert!(whose(&board).is_empty());
}

#[tokio::test]
async fn an_instance_is_told_what_its_client_declares_beyond_the_protocol() {
    for sharing in [Sharing::PerSession, Sharing::PerPrincipal] {
        let told = r#"case "$first" in *'"experimental":{"x":{}}'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"told":1}}' ;; *) exit 3 ;; esac"#;
        let mut config = Config { sharing, ..shell(told) };
        let Transport::Stdio { args, .. } = &mut config.transport else { panic!() };
        args[1] = args[1].replace(r#"*\"initialize\"*)"#, r#"*\"initialize\"*) first="$line";"#);
        let (upstream, board, tasks) = start(config);
        bounded(known(&mut upstream.inventory())).await;
        let tenant = session("1");
        let plain = of("p", (sharing == Sharing::PerSession).then_some(&tenant));
        let caller = Caller {
            capabilities: r#"{"experimental":{"x":{}}}"#.into(),
            can: Default::default(),
            ..(*plain.caller).clone()
        };
        let reply = upstream.call(Call { caller: Arc::new(caller), ..plain });
        until_up(&board, 0).await;
        let answer = bounded(reply.outcome()).await.1;
        assert!(matches!(&answer, Outcome::Complete(result) if result.find("told").is_some()), "{answer:?}");
        tasks.end();
        bounded(tasks.ended()).await;
    }
}

#[tokio::test]
async fn an_instance_that_dies_is_started_again() {
    let (upstream, board, tasks) = start(Config {
        sharing: Sharing::PerPrincipal,
        ..shell(&format!("case \"$line\" in *boom*) exit 3;; esac; {ANSWER}"))
    });
    bounded(known(&mut upstream.inventory())).await;
    let mut fatal = of("p", None);
    fatal.params = crate::protocol::value::Object::parse(r#"{"name":"t","arguments":{"boom":1}}"#.into()).unwrap();
    let fatal = upstream.call(fatal);
    // It is up for a moment first, which nobody need see.
    until_up(&board, 1).await;
    assert_eq!(refusal(fatal).await.0, Reason::OutcomeUnknown);
    let again = bounded(upstream.call(of("p", None)).outcome()).await.1;
    assert!(matches!(again, Outcome::Complete(_)), "{again:?}");
    let health = board.snapshot().remove(0);
    assert_eq!((health.restarts, health.instances[&1].restarts), (0, 1));
    tasks.end();
    bounded(tasks.ended()).await;
}

#[tokio::test(start_paused = true)]
async fn callers_without_a_session_have_their_principals_instance() {
    let (upstream, board, tasks) = start(absent(Sharing::PerSession));
    let tenant = session("1");
    let calls = [of("p", None), of("p", None), of("p", Some(&tenant)), of("p", Some(&tenant))];
    let _replies: Vec<_> = calls.map(|call| upstream.call(call)).into();
    assert_eq!(whose(&board), ["p", "session 2"]);
    let (reason, why) = refusal(upstream.call(of("", None))).await;
    assert!(reason == Reason::Busy && why.contains("all its 2 instances are taken; end a session"), "{why}");
    tasks.end();
    bounded(tasks.ended()).await;
}

#[tokio::test(start_paused = true)]
async fn the_primary_serves_a_principal_that_is_the_only_one() {
    let (upstream, board, tasks) = start(absent(Sharing::PerPrincipal));
    let tenant = session("1");
    let _replies = [of("", None), of("", Some(&tenant))].map(|call| upstream.call(call));
    assert!(whose(&board).is_empty());
    let _replies = [of("p", None), of("p", Some(&tenant)), of("q", None)].map(|call| upstream.call(call));
    assert_eq!(whose(&board), ["p", "q"]);
    let (_, why) = refusal(upstream.call(of("r", None))).await;
    assert!(why.contains("ends after `instance_idle`") && !why.contains("session"), "{why}");
    tasks.end();
    bounded(tasks.ended()).await;
}

#[tokio::test(start_paused = true)]
async fn an_instance_of_a_principal_ends_when_it_was_not_called_for_long() {
    let (upstream, board, tasks) = start(absent(Sharing::PerPrincipal));
    let idle = upstream.config().instance_idle;
    // One call waits while its child is started again and again; the other was refused and has ended.
    let held = upstream.call(of("p", None));
    drop(upstream.call(of("q", None)));
    assert_eq!(whose(&board), ["p", "q"]);
    tokio::time::sleep(idle - Duration::from_secs(1)).await;
    assert_eq!(whose(&board), ["p", "q"]);
    drop(upstream.call(of("q", None)));
    tokio::time::sleep(idle - Duration::from_secs(1)).await;
    assert_eq!(whose(&board), ["p", "q"]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(whose(&board), ["p"]);
    drop(held);
    tokio::time::sleep(idle + Duration::from_secs(1)).await;
    assert!(whose(&board).is_empty());
    tasks.end();
    bounded(tasks.ended()).await;
}

#[tokio::test(start_paused = true)]
async fn instances_of_an_upstream_share_what_is_logged_of_stderr() {
    let (upstream, _board, tasks) = start(absent(Sharing::PerPrincipal));
    let held = ["p", "q"].map(|principal| upstream.call(of(principal, None)));
    let instances = upstream.instances.as_ref().expect("it is not shared").all();
    assert_eq!(instances.len(), 2);
    assert!(instances.iter().all(|instance| instance.children.stderr.is(&upstream.primary.children.stderr)));
    drop(held);
    tasks.end();
    bounded(tasks.ended()).await;
}

#[tokio::test(start_paused = true)]
async fn at_the_cap_the_longest_idle_one_makes_room() {
    let (upstream, board, tasks) = start(absent(Sharing::PerSession));
    let [one, two, three] = ["1", "2", "3"].map(session);
    let held = upstream.call(of("", Some(&one)));
    drop(upstream.call(of("", Some(&two))));
    assert_eq!(refusal(upstream.call(of("", Some(&three)))).await.0, Reason::Busy);
    // Not at once: whoever pauses for a moment keeps what is its own.
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(refusal(upstream.call(of("", Some(&three)))).await.0, Reason::Busy);
    tokio::time::sleep(Duration::from_secs(2)).await;
    drop(upstream.call(of("", Some(&three))));
    until(&board, |board| whose(board) == ["session 1", "session 3"]).await;
    // A session that ended gives its place back, whatever still has it.
    one.end();
    until(&board, |board| whose(board) == ["session 3"]).await;
    drop(held);
    drop(upstream.call(of("", Some(&two))));
    assert_eq!(whose(&board), ["session 3", "session 4"]);
    tasks.end();
    bounded(tasks.ended()).await;
}

#[tokio::test(start_paused = true)]
async fn one_principals_instances_leave_room_for_anothers_and_its_idle_ones_make_room() {
    let config = Config { max_instances: 4, principals: 2, ..absent(Sharing::PerSession) };
    let (upstream, board, tasks) = start(config);
    let [one, two, three, four, five, six] = ["1", "2", "3", "4", "5", "6"].map(session);
    let mut held: Vec<_> = [&one, &two, &three].map(|session| upstream.call(of("ann", Some(session)))).into();
    assert_eq!(refusal(upstream.call(of("ann", Some(&four)))).await.0, Reason::Busy, "the last one is for others");
    let _first = upstream.call(of("bob", Some(&five)));
    assert_eq!(whose(&board).len(), 4);
    assert_eq!(refusal(upstream.call(of("bob", Some(&six)))).await.0, Reason::Busy, "all are at work");
    drop(held.pop());
    let _second = upstream.call(of("bob", Some(&six)));
    until(&board, |board| whose(board) == ["session 1", "session 2", "session 4", "session 5"]).await;
    tasks.end();
    bounded(tasks.ended()).await;
}
