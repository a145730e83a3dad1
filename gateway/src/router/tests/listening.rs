//! Listen calls: acknowledgement, changes, logs, and that no listener slows another.

use super::*;
use crate::call::ListenFilter;
use crate::call::reply::{Change, Event, Source, Step};
use crate::memory::Refusals;
use crate::memory::budget::Budget;
use crate::router::catalog::snapshot::Versions;
use crate::router::listen::Sees;
use crate::upstream::notice::{Audience, Notice};
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

mod news;
mod of_themselves;

/// What a reply tells next, where it tells anything now.
fn next(reply: &mut Reply) -> Option<Event> {
    let mut cx = Context::from_waker(std::task::Waker::noop());
    match reply.poll_step(&mut cx) {
        Poll::Ready(Step::Event(event)) => Some(event),
        Poll::Ready(step) => panic!("{step:?}"),
        Poll::Pending => None,
    }
}

fn change(reply: &mut Reply) -> Option<Change> {
    next(reply).map(|event| match event {
        Event::Change(change) => change,
        other => panic!("{other:?}"),
    })
}

fn listening(stage: &Stage, filter: &ListenFilter) -> Reply {
    let params = String::from_utf8(filter.to_params().raw().to_vec()).unwrap();
    stage.ask(Method::Listen, &params)
}

/// An upstream that offers these tools, and what stands before it.
async fn offering(names: &[&str]) -> (Arc<Scripted>, Stage) {
    let a = Scripted::new("a", "a");
    a.offer(inventory(names));
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    settle().await;
    (a, stage)
}

/// And who listens to changes of its lists.
async fn heard() -> (Arc<Scripted>, Stage, Reply) {
    let (a, stage) = offering(&["x"]).await;
    let mut reply = listening(&stage, &ListenFilter::lists());
    assert!(matches!(change(&mut reply), Some(Change::Acknowledged(_))));
    (a, stage, reply)
}

fn legacy(level: LogLevel, principal: &str) -> Call {
    let params = String::from_utf8(ListenFilter::lists().to_params().raw().to_vec()).unwrap();
    let mut asked = call(Method::Listen, &params);
    asked.log_level = Some(level);
    let principal = if principal.is_empty() { Principal::anonymous() } else { Principal::named(principal) };
    asked.caller = Arc::new(Caller {
        principal,
        tenant: Some(Arc::new(crate::call::caller::ClientSession::mute("s"))),
        ..(*asked.caller).clone()
    });
    asked
}

#[tokio::test(start_paused = true)]
async fn changes_are_told_to_those_who_asked_after_the_acknowledgement() {
    let (a, stage) = offering(&["x"]).await;
    let filter = ListenFilter { tools: true, ..ListenFilter::default() };
    let (mut wants, mut idle) = (listening(&stage, &filter), listening(&stage, &ListenFilter::default()));
    assert_eq!(change(&mut wants), Some(Change::Acknowledged(filter)));
    assert_eq!(change(&mut idle), Some(Change::Acknowledged(ListenFilter::default())));
    a.offer(Inventory { prompts: vec![item("name", "p")].into(), ..inventory(&["x", "y"]) });
    settle().await;
    assert_eq!((change(&mut wants), change(&mut wants), change(&mut idle)), (Some(Change::Tools), None, None));
    // The same again is no change.
    tokio::time::advance(Duration::from_secs(1)).await;
    a.offer(Inventory { prompts: vec![item("name", "p")].into(), ..inventory(&["x", "y"]) });
    settle().await;
    assert_eq!(change(&mut wants), None);
}

#[tokio::test(start_paused = true)]
async fn the_first_change_is_told_at_once_and_further_ones_are_joined() {
    let (a, stage, mut reply) = heard().await;
    a.offer(inventory(&["y"]));
    settle().await;
    assert_eq!(change(&mut reply), Some(Change::Tools));
    for name in ["1", "2", "3"] {
        a.offer(inventory(&[name]));
        settle().await;
        assert_eq!(change(&mut reply), None);
        assert_eq!(names(stage.ask(Method::ToolsList, "{}")).await, [format!("a__{name}")], "lists are never behind");
    }
    tokio::time::advance(Duration::from_millis(251)).await;
    settle().await;
    assert_eq!((change(&mut reply), change(&mut reply)), (Some(Change::Tools), None));
}

#[tokio::test(start_paused = true)]
async fn of_lists_that_go_on_changing_there_is_one_notice_in_two_seconds() {
    let (a, _stage, mut reply) = heard().await;
    let mut told = Vec::new();
    for at in (0..10_000).step_by(50) {
        a.offer(inventory(&[&at.to_string()]));
        settle().await;
        told.extend(change(&mut reply).map(|_| at));
        tokio::time::advance(Duration::from_millis(50)).await;
    }
    assert_eq!(told, [0, 250, 500, 750, 1_000, 1_250, 1_500, 3_500, 5_500, 7_500, 9_500]);
    // The last of it is told, and after a pause the next change is told at once again.
    tokio::time::advance(Duration::from_secs(2)).await;
    settle().await;
    assert_eq!(change(&mut reply), Some(Change::Tools));
    tokio::time::advance(Duration::from_secs(5)).await;
    a.offer(inventory(&["last"]));
    settle().await;
    assert_eq!(change(&mut reply), Some(Change::Tools));
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_never_reads_costs_nobody_anything() {
    let (a, stage) = offering(&["0"]).await;
    let deaf: Vec<_> = (0..100).map(|_| listening(&stage, &ListenFilter::lists())).collect();
    let mut reader = stage.router.handle(legacy(LogLevel::Debug, ""));
    assert!(matches!(change(&mut reader), Some(Change::Acknowledged(_))));
    let notices = stage.listeners.notices();
    for round in 1..200 {
        a.offer(inventory(&[&round.to_string()]));
        notices(Notice::Log {
            upstream: "a".into(),
            whose: Audience::Everyone,
            level: LogLevel::Info,
            params: Object::empty(),
        });
        settle().await;
        tokio::time::advance(Duration::from_secs(2)).await;
        settle().await;
        assert_eq!(change(&mut reader), Some(Change::Tools));
        assert!(matches!(next(&mut reader), Some(Event::Log(LogLevel::Info, _))));
    }
    for mut reply in deaf {
        assert!(matches!(change(&mut reply), Some(Change::Acknowledged(_))));
        assert_eq!((change(&mut reply), change(&mut reply)), (Some(Change::Tools), None));
    }
}

/// A listen reply of an upstream.
struct Fed(Arc<Mutex<VecDeque<Change>>>);

impl Source for Fed {
    fn poll_step(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Step> {
        match self.0.lock().unwrap().pop_front() {
            Some(change) => Poll::Ready(Step::Event(Event::Change(change))),
            None => Poll::Pending,
        }
    }
    fn revision(&self) -> Revision {
        Revision::V2025_11_25
    }
}

fn fed(name: &str) -> (Arc<Scripted>, Arc<Mutex<VecDeque<Change>>>) {
    let feed: Arc<Mutex<VecDeque<Change>>> = Arc::default();
    let given = feed.clone();
    let upstream = Scripted::answering(name, name, move |_| Some(Reply::live(Fed(given.clone()))));
    upstream.offer(Inventory { resources: vec![item("uri", "m:1"), item("uri", "m:2")].into(), ..inventory(&[]) });
    (upstream, feed)
}

fn uris(uris: &[&str]) -> ListenFilter {
    ListenFilter { uris: uris.iter().map(|uri| (*uri).into()).collect(), ..ListenFilter::default() }
}

#[tokio::test(start_paused = true)]
async fn resources_are_listened_to_with_their_owners() {
    let ((a, from_a), (b, from_b)) = (fed("a"), fed("b"));
    let stage = Stage::new(Strategy::Prefix, &[&a, &b]);
    settle().await;
    let mut reply = listening(&stage, &uris(&["m:1", "b+m:2", "nobody:x"]));
    assert_eq!(change(&mut reply), None, "the owners have not acknowledged");
    assert_eq!(a.heard(), [r#"subscriptions/listen {"notifications":{"resourceSubscriptions":["m:1"]}}"#]);
    assert_eq!(b.heard(), [r#"subscriptions/listen {"notifications":{"resourceSubscriptions":["m:2"]}}"#]);
    from_a.lock().unwrap().extend([Change::Acknowledged(uris(&["m:1"])), Change::Updated("m:1".into())]);
    assert_eq!(change(&mut reply), None, "nothing is told before the acknowledgement");
    from_b.lock().unwrap().extend([Change::Acknowledged(uris(&["m:2"])), Change::Updated("m:2".into())]);
    assert_eq!(change(&mut reply), Some(Change::Acknowledged(uris(&["m:1", "b+m:2"]))));
    assert_eq!(change(&mut reply), Some(Change::Updated("m:1".into())));
    assert_eq!(change(&mut reply), Some(Change::Updated("b+m:2".into())));
    assert_eq!(change(&mut reply), None);
}

#[tokio::test(start_paused = true)]
async fn a_uri_that_is_too_long_is_refused_alone() {
    let (a, from_a) = fed("a");
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    settle().await;
    let long = format!("m:{}", "x".repeat(9000));
    let mut reply = listening(&stage, &ListenFilter { tools: true, ..uris(&["m:1", &long]) });
    assert_eq!(change(&mut reply), None);
    from_a.lock().unwrap().push_back(Change::Acknowledged(uris(&["m:1", &long])));
    let honoured = ListenFilter { tools: true, ..uris(&["m:1"]) };
    assert_eq!(change(&mut reply), Some(Change::Acknowledged(honoured)));
}

#[tokio::test(start_paused = true)]
async fn a_part_of_what_was_asked_for_is_called_after_the_whole() {
    let ((a, _), (b, from_b)) = (fed("a"), fed("b"));
    let stage = Stage::new(Strategy::Prefix, &[&a, &b]);
    settle().await;
    let mut reply = listening(&stage, &uris(&["b+m:1"]));
    from_b.lock().unwrap().extend([
        Change::Acknowledged(uris(&["m:1"])),
        Change::Updated("m:1/part".into()),
        Change::Updated("m:2".into()),
    ]);
    assert_eq!(change(&mut reply), Some(Change::Acknowledged(uris(&["b+m:1"]))));
    assert_eq!(change(&mut reply), Some(Change::Updated("b+m:1/part".into())));
    assert_eq!(
        change(&mut reply),
        Some(Change::Updated("b+m:2".into())),
        "what is listed by a name of its own keeps it"
    );
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_never_acknowledges_is_left_out() {
    let (a, _silent) = fed("a");
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    settle().await;
    let filter = ListenFilter { tools: true, ..uris(&["m:1"]) };
    let mut reply = listening(&stage, &filter);
    let honoured = ListenFilter { uris: Vec::new(), ..filter };
    assert!(matches!(reply.next().await, Step::Event(Event::Change(Change::Acknowledged(f))) if f == honoured));
}

#[tokio::test(start_paused = true)]
async fn logs_go_to_sessions_at_their_level_while_there_is_one_principal() {
    let (a, stage) = offering(&[]).await;
    let mut debug = stage.router.handle(legacy(LogLevel::Debug, "p"));
    let mut error = stage.router.handle(legacy(LogLevel::Error, "p"));
    for reply in [&mut debug, &mut error] {
        assert!(matches!(change(reply), Some(Change::Acknowledged(_))));
    }
    settle().await;
    assert_eq!(a.heard(), ["level Some(Debug)"]);
    let notices = stage.listeners.notices();
    let tell = |level| {
        notices(Notice::Log { upstream: "a".into(), whose: Audience::Everyone, level, params: Object::empty() })
    };
    tell(LogLevel::Info);
    assert!(matches!(next(&mut debug), Some(Event::Log(LogLevel::Info, _))));
    assert!(next(&mut error).is_none());
    drop(debug);
    settle().await;
    assert_eq!(a.heard(), ["level Some(Error)"]);
    let _other = stage.router.handle(legacy(LogLevel::Debug, "q"));
    tell(LogLevel::Alert);
    assert!(next(&mut error).is_none(), "it may be of the other's doing");
    settle().await;
    assert_eq!(a.heard(), ["level None"], "so nobody has the one that all share tell more");
}

#[tokio::test(start_paused = true)]
async fn logs_of_an_instance_go_to_whose_it_is() {
    let stage = Stage::new(Strategy::Prefix, &[]);
    let listens = |principal: &str, id: &str| {
        let asked = legacy(LogLevel::Info, principal);
        let tenant = Some(Arc::new(ClientSession::mute(id)));
        let caller = Caller { tenant, ..(*asked.caller).clone() };
        let mut reply = stage.router.handle(Call { caller: Arc::new(caller), ..asked });
        assert!(matches!(change(&mut reply), Some(Change::Acknowledged(_))));
        reply
    };
    let mut sessions = [listens("p", "1"), listens("p", "2"), listens("q", "3")];
    let mut hear = |whose, level| {
        stage.listeners.notices()(Notice::Log { upstream: "a".into(), whose, level, params: Object::empty() });
        sessions.each_mut().map(|reply| matches!(next(reply), Some(Event::Log(..))))
    };
    assert_eq!(hear(Audience::Session("2".into()), LogLevel::Info), [false, true, false]);
    assert_eq!(hear(Audience::Session("2".into()), LogLevel::Debug), [false; 3], "its level counts");
    assert_eq!(hear(Audience::Principal(Principal::named("p")), LogLevel::Info), [true, true, false]);
    assert_eq!(hear(Audience::Everyone, LogLevel::Alert), [false; 3], "it may be of anyone's doing");
}

#[tokio::test(start_paused = true)]
async fn when_the_gateway_ends_so_do_listen_replies() {
    let stage = Stage::new(Strategy::Prefix, &[]);
    let mut reply = listening(&stage, &ListenFilter::lists());
    assert!(matches!(change(&mut reply), Some(Change::Acknowledged(_))));
    stage.listeners.close();
    assert!(matches!(reply.next().await, Step::Done(Outcome::Complete(_))));
}

#[tokio::test(start_paused = true)]
async fn one_principal_cannot_take_all_places_to_listen() {
    let a = Scripted::new("a", "a");
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    let named = |name: &str, session: Option<&str>| {
        let mut asked = call(Method::Listen, r#"{"notifications":{}}"#);
        let (principal, tenant) =
            (Principal::named(name), session.map(|id| Arc::new(crate::call::caller::ClientSession::mute(id))));
        asked.caller = Arc::new(Caller { principal, tenant, ..(*asked.caller).clone() });
        asked
    };
    let is_taken = |reply: &mut Reply| {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        match reply.poll_step(&mut cx) {
            Poll::Ready(Step::Event(Event::Change(Change::Acknowledged(_)))) => true,
            Poll::Ready(Step::Done(Outcome::Error(Failure::Refused(refusal)))) => {
                assert!(refusal.message.contains("256"), "{}", refusal.message);
                false
            }
            other => panic!("{other:?}"),
        }
    };
    let mut greedy: Vec<_> = (0..256).map(|_| stage.router.handle(named("greedy", None))).collect();
    assert!(greedy.iter_mut().all(is_taken));
    assert!(!is_taken(&mut stage.router.handle(named("greedy", None))));
    assert!(is_taken(&mut stage.router.handle(named("other", None))));
    // A session's listening is bounded with the session.
    assert!(is_taken(&mut stage.router.handle(named("greedy", Some("s")))));
    greedy.pop();
    assert!(is_taken(&mut stage.router.handle(named("greedy", None))));
}

#[test]
fn one_principals_subscriptions_leave_places_for_others_and_take_none_from_what_sessions_hear_of_the_lists() {
    let listeners = Listeners::default();
    let of = |name: &str, session: Option<&str>| {
        let asked = call(Method::Listen, r#"{"notifications":{}}"#);
        let (principal, tenant) =
            (Principal::named(name), session.map(|id| Arc::new(crate::call::caller::ClientSession::mute(id))));
        Call { caller: Arc::new(Caller { principal, tenant, ..(*asked.caller).clone() }), ..asked }
    };
    let subscription = ListenFilter { uris: vec!["a:1".into()], ..ListenFilter::default() };
    let mut greedy = Vec::new();
    let why = loop {
        let session = format!("ann{}", greedy.len() / 512);
        match listeners.register(&of("ann", Some(&session)), &subscription, Sees::Era) {
            Ok(registration) => greedy.push(registration),
            Err(why) => break why,
        }
    };
    assert!(greedy.len() == 16 * 1024 && why.contains("this client has its part"), "{}: {why}", greedy.len());
    let lists = ListenFilter::lists();
    for (name, session, filter) in [
        ("ann", Some("late"), &lists),
        ("bob", Some("b"), &lists),
        ("bob", Some("b"), &subscription),
        ("bob", None, &subscription),
    ] {
        assert!(listeners.register(&of(name, session), filter, Sees::Era).is_ok(), "{name} {session:?}");
    }
    greedy.pop();
    assert!(listeners.register(&of("ann", Some("s")), &subscription, Sees::Era).is_ok());
    drop(greedy);
    let heard = listeners.register(&of("ann", Some("s")), &lists, Sees::Session).unwrap();
    let other = listeners.register(&of("ann", Some("t")), &lists, Sees::Session).unwrap();
    assert!(listeners.tell_session("s", &versions(1, [1, 0]), &|_| vec![Kind::Tools]));
    let waker = std::task::Waker::noop();
    assert!(heard.listener.next(waker).is_some() && other.listener.next(waker).is_none());
}

#[tokio::test]
async fn what_is_listened_to_is_counted_for_its_client_and_comes_back() {
    let (budget, refusals) = (Budget::new(1 << 20), Refusals::default());
    let listeners = Listeners::new(budget.clone(), refusals.clone());
    let filter = ListenFilter { uris: vec![format!("a:{}", "x".repeat(8000)).into()], ..ListenFilter::lists() };
    let register = |name: &str| {
        let mut asked = call(Method::Listen, "{}");
        asked.caller = Arc::new(Caller { principal: Principal::named(name), ..(*asked.caller).clone() });
        listeners.register(&asked, &filter, Sees::Era).ok()
    };
    let greedy: Vec<_> = std::iter::from_fn(|| register("greedy")).take(100).collect();
    assert!(greedy.len() == 4 && budget.used() > 128 << 10, "{}, {}", greedy.len(), budget.used());
    let other = register("other");
    assert!(other.is_some());
    assert_eq!(refusals.all()["listens"], 1);
    drop((greedy, other));
    assert_eq!(budget.used(), 0);
}

/// A catalog with these versions of its tools and its prompts.
fn versions(catalog: u64, [tools, prompts]: [u64; 2]) -> Versions {
    let mut lists = [0; 4];
    (lists[Kind::Tools as usize], lists[Kind::Prompts as usize]) = (tools, prompts);
    Versions { catalog, lists }
}
