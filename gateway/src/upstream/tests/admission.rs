//! How many calls an upstream has at once, who waits, in which order, and who is told that it is busy.

use super::rig::{Rig, call, config, outcome};
use super::*;
use crate::call::LogLevel;
use crate::call::caller::{Caller, Principal};
use crate::protocol::frame::message::Id;
use std::collections::HashMap;
use tokio::time::{Instant, sleep};

const MODERN: Revision = Revision::V2026_07_28;

/// An upstream that has two calls at once, and for which three more wait.
fn narrow() -> Config {
    Config { max_concurrency: Some(2), queue: 3, ..config() }
}

fn rig(config: Config) -> Rig {
    let rig = Rig::new(config);
    rig.met(LEGACY, "{}");
    rig
}

/// A call of a tool by somebody.
fn tool(who: &str, name: &str) -> Call {
    let call = call(LEGACY, Method::ToolsCall, &format!("{{\"name\":\"{name}\"}}"));
    let tenant = Some(Arc::new(ClientSession::mute(who)));
    Call { caller: Arc::new(Caller { tenant, ..(*call.caller).clone() }), ..call }
}

async fn named(rig: &mut Rig) -> (Id, String) {
    let (id, _, params) = rig.far.request().await;
    (id, params.text(Key::Name).unwrap().into_owned())
}

async fn refusal(reply: &mut Reply) -> crate::call::refusal::Refusal {
    match outcome(reply).await {
        Outcome::Error(Failure::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

fn traffic(rig: &Rig) -> (usize, usize) {
    let health = rig.board.snapshot().remove(0);
    (health.traffic.in_flight(), health.traffic.queued())
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_places_wait_by_turns_and_beyond_the_queue_are_refused_at_once() {
    let mut rig = rig(narrow());
    let upstream = rig.upstream();
    let names = ["a1", "a2", "a3", "a4", "b1"];
    let mut replies: HashMap<_, _> =
        names.iter().map(|name| (name.to_string(), upstream.call(tool(&name[..1], name)))).collect();
    assert_eq!(traffic(&rig), (2, 3));
    let mut refused = upstream.call(tool("a", "a5"));
    let refused = refusal(&mut refused).await;
    assert_eq!((refused.reason.clone(), refused.is_retriable()), (Reason::Busy, true));
    for word in ["`a5`", "upstream `a`", "`max_concurrency`", "`queue`", "busy: 2 calls running", "3 more wait"] {
        assert!(refused.message.contains(word), "{refused}");
    }
    let mut order = Vec::new();
    let mut open = vec![named(&mut rig).await, named(&mut rig).await];
    assert!(rig.far.is_quiet().await, "no more than two at once");
    while !open.is_empty() {
        let (id, name) = open.remove(0);
        rig.far.result(&id, "{}").await;
        assert!(matches!(outcome(replies.get_mut(&name).unwrap()).await, Outcome::Complete(_)));
        order.push(name);
        if order.len() + open.len() < names.len() {
            open.push(named(&mut rig).await);
        }
    }
    assert_eq!(order, ["a1", "a2", "a3", "b1", "a4"], "each one's in their order, callers by turns");
    drop(replies);
    assert_eq!(traffic(&rig), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn whoever_fills_the_queue_makes_room_for_others() {
    let mut rig = rig(narrow());
    let upstream = rig.upstream();
    let mut replies: Vec<_> = (0..5).map(|number| upstream.call(tool("a", &format!("a{number}")))).collect();
    let other = upstream.call(tool("b", "b0"));
    let refused = refusal(&mut replies.pop().unwrap()).await;
    assert!(refused.reason == Reason::Busy && refused.message.contains("`a4`"), "the newest of the greedy: {refused}");
    let ends = [named(&mut rig).await.0, named(&mut rig).await.0];
    for (id, next) in ends.into_iter().zip(["a2", "b0"]) {
        rig.far.result(&id, "{}").await;
        assert_eq!(named(&mut rig).await.1, next);
    }
    drop((replies, other));
}

#[tokio::test(start_paused = true)]
async fn a_permit_goes_to_the_share_that_holds_fewest_however_many_sessions_another_has() {
    let mut rig = rig(narrow());
    let upstream = rig.upstream();
    let of = |principal: &str, session: &str| {
        let call = tool(session, session);
        let caller = Caller { principal: Principal::named(principal), ..(*call.caller).clone() };
        upstream.call(Call { caller: Arc::new(caller), ..call })
    };
    let mut of_ann: Vec<_> = ["a1", "a2", "a3", "a4"].into_iter().map(|session| of("ann", session)).collect();
    let _of_bob = of("bob", "b1");
    let mut crowded = of("ann", "a5");
    assert_eq!(refusal(&mut crowded).await.reason, Reason::Busy, "a further session of hers is no other caller");
    let (first, _) = named(&mut rig).await;
    named(&mut rig).await;
    rig.far.result(&first, "{}").await;
    assert!(matches!(outcome(&mut of_ann[0]).await, Outcome::Complete(_)));
    assert_eq!(named(&mut rig).await.1, "b1", "ann has the other permit");
    let _second_of_bob = of("bob", "b2");
    drop(of_ann.remove(1));
    assert_eq!(rig.far.notification().await.0, Method::Cancelled);
    assert_eq!(named(&mut rig).await.1, "a3", "and now bob has one");
}

#[tokio::test(start_paused = true)]
async fn what_tells_ends_or_withdraws_never_waits() {
    let mut rig = rig(Config { max_concurrency: Some(1), ..config() });
    let upstream = rig.upstream();
    let running = upstream.call(tool("a", "running"));
    let waiting = upstream.call(tool("a", "waiting"));
    assert_eq!(named(&mut rig).await.1, "running");
    let _cancel = upstream.call(call(LEGACY, Method::TasksCancel, r#"{"taskId":"t"}"#));
    assert_eq!(rig.far.request().await.1, Method::TasksCancel);
    let told = Call { is_notification: true, ..call(LEGACY, Method::Other("notifications/x".into()), "{}") };
    drop(upstream.call(told));
    assert_eq!(rig.far.notification().await.0, Method::Other("notifications/x".into()));
    rig.far.write(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#).await;
    assert_eq!(rig.far.line().await, r#"{"jsonrpc":"2.0","id":9,"result":{}}"#);
    // Who waited and no longer does is never sent; who runs and is given up makes room.
    drop(waiting);
    assert_eq!(traffic(&rig).1, 0);
    let _next = upstream.call(tool("a", "next"));
    drop(running);
    assert_eq!(rig.far.notification().await.0, Method::Cancelled);
    assert_eq!(named(&mut rig).await.1, "next");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_a_person_has_no_place() {
    let mut rig = rig(Config { max_concurrency: Some(1), ..config() });
    let upstream = rig.upstream();
    let asked = call(MODERN, Method::ToolsCall, r#"{"name":"asks"}"#);
    let can = r#"{"elicitation":{"form":{}}}"#.into();
    let asked = Call { caller: Arc::new(Caller { capabilities: can, ..(*asked.caller).clone() }), ..asked };
    let mut asked = upstream.call(asked);
    let mut next = upstream.call(tool("a", "next"));
    let (first, _) = named(&mut rig).await;
    assert!(rig.far.is_quiet().await);
    let question = r#"{"message":"?","requestedSchema":{"type":"object"}}"#;
    rig.far.write(&format!(r#"{{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{question}}}"#)).await;
    let Step::Event(Event::Ask(ask)) = asked.next().await else { panic!() };
    let (second, name) = named(&mut rig).await;
    assert_eq!(name, "next");
    // With its answer it goes on at once, and others wait for both.
    drop(ask);
    assert!(rig.far.line().await.contains("cancel"));
    let _last = upstream.call(tool("a", "last"));
    rig.far.result(&second, "{}").await;
    assert!(matches!(outcome(&mut next).await, Outcome::Complete(_)));
    assert!(rig.far.is_quiet().await);
    rig.far.result(&first, "{}").await;
    assert!(matches!(outcome(&mut asked).await, Outcome::Complete(_)));
    assert_eq!(named(&mut rig).await.1, "last");
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_no_longer_than_it_may_take_and_the_whole_counts_from_its_beginning() {
    let times = (Some(Duration::from_secs(30)), Some(Duration::from_secs(50)));
    let mut rig = rig(Config { max_concurrency: Some(1), call_timeout: times.0, max_call_time: times.1, ..config() });
    let upstream = rig.upstream();
    let begun = Instant::now();
    let mut running = upstream.call(Call { progress: true, ..tool("a", "running") });
    let mut waiting = upstream.call(tool("a", "waiting"));
    let (id, _) = named(&mut rig).await;
    sleep(Duration::from_secs(25)).await;
    let progress = String::from_utf8_lossy(id.raw()).into_owned();
    rig.far.notify("notifications/progress", &format!(r#"{{"progressToken":{progress},"progress":1}}"#)).await;
    assert!(matches!(running.next().await, Step::Event(Event::Progress(_))));
    let mut late = upstream.call(tool("a", "late"));
    let refused = refusal(&mut waiting).await;
    assert_eq!((begun.elapsed().as_secs(), refused.reason.clone(), refused.is_retriable()), (30, Reason::Busy, true));
    assert!(refused.message.contains("`max_concurrency`") && refused.message.contains("`call_timeout`"), "{refused}");
    let refused = refusal(&mut running).await;
    assert_eq!((begun.elapsed().as_secs(), refused.reason.clone()), (50, Reason::Timeout));
    assert!(refused.message.contains("`max_call_time` under [upstreams.a]"), "{refused}");
    assert_eq!(rig.far.notification().await.0, Method::Cancelled);
    // Of the 50 s that it may take in all, 25 have passed.
    assert_eq!(named(&mut rig).await.1, "late");
    let refused = refusal(&mut late).await;
    assert_eq!((begun.elapsed().as_secs(), refused.reason), (75, Reason::Timeout));
}

#[tokio::test(start_paused = true)]
async fn calls_that_waited_for_the_start_take_places_in_their_order() {
    let mut rig = Rig::new(Config { queue: 4, ..narrow() });
    let upstream = rig.upstream();
    let mut replies: Vec<_> = (0..5).map(|number| upstream.call(tool("a", &format!("a{number}")))).collect();
    let refused = refusal(&mut replies.pop().unwrap()).await;
    assert!(refused.message.contains("still starting") && refused.message.contains("`queue`"), "{refused}");
    rig.met(LEGACY, "{}");
    for number in 0..4 {
        let (id, name) = named(&mut rig).await;
        assert_eq!(name, format!("a{number}"));
        if number == 1 {
            assert!(rig.far.is_quiet().await);
        }
        if number > 0 {
            rig.far.result(&id, "{}").await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_place_waits_for_a_restart_no_longer_than_those_who_come_to_it() {
    let mut rig = rig(Config { max_concurrency: Some(1), ..config() });
    let upstream = rig.upstream();
    let mut running = upstream.call(tool("a", "running"));
    let mut waiting = upstream.call(tool("a", "waiting"));
    assert_eq!(named(&mut rig).await.1, "running");
    let long = Duration::from_secs(60);
    assert!(tokio::time::timeout(long, waiting.next()).await.is_err(), "for a place it may wait long");
    // It dies, and is started again: so often as it takes.
    let died = "it ended with exit status: 3";
    rig.pipe.close(died.into());
    let gone = Instant::now();
    for _ in 0..3 {
        rig.instance.admission.gate.close();
        rig.instance.status.transition(State::BackingOff, Some(&died.into()), None, Some(Duration::from_secs(1)));
        assert!(tokio::time::timeout(Duration::from_secs(1), waiting.next()).await.is_err());
    }
    let mut late = upstream.call(tool("a", "late"));
    let refused = refusal(&mut waiting).await;
    assert_eq!((refused.reason.clone(), refused.is_retriable()), (Reason::Unavailable, true));
    assert_eq!(gone.elapsed().as_secs(), 5);
    for word in ["`waiting`", "upstream `a`", died] {
        assert!(refused.message.contains(word), "{refused}");
    }
    assert_eq!(refusal(&mut late).await.reason, Reason::Unavailable);
    assert_eq!(gone.elapsed().as_secs(), 8, "from when it came");
    assert_eq!(refusal(&mut running).await.reason, Reason::OutcomeUnknown);
}

#[tokio::test(start_paused = true)]
async fn whoever_waited_for_the_start_may_wait_for_a_place_as_long_as_a_call_may_take() {
    let mut rig =
        Rig::new(Config { max_concurrency: Some(1), call_timeout: Some(Duration::from_secs(30)), ..config() });
    let upstream = rig.upstream();
    let begun = Instant::now();
    let running = upstream.call(Call { progress: true, ..tool("a", "running") });
    let (mut waiting, mut given_up) = (upstream.call(tool("a", "waiting")), upstream.call(tool("a", "given_up")));
    assert!(tokio::time::timeout(Duration::from_secs(4), waiting.next()).await.is_err());
    rig.met(LEGACY, "{}");
    assert_eq!(named(&mut rig).await.1, "running");
    assert!(tokio::time::timeout(Duration::from_secs(20), waiting.next()).await.is_err(), "it is there");
    drop(running);
    assert_eq!(rig.far.notification().await.0, Method::Cancelled);
    let (id, name) = named(&mut rig).await;
    assert_eq!(name, "waiting");
    let refused = refusal(&mut given_up).await;
    assert_eq!((begun.elapsed().as_secs(), refused.reason.clone()), (30, Reason::Busy), "{refused}");
    rig.far.result(&id, "{}").await;
    assert!(matches!(outcome(&mut waiting).await, Outcome::Complete(_)));
}

#[tokio::test(start_paused = true)]
async fn limits_of_one_tool_are_its_own_and_the_error_says_where_they_are_set() {
    let own = config::Times {
        call_timeout: Some(Some(Duration::from_secs(7))),
        max_call_time: Some(None),
        ..Default::default()
    };
    let general = (Some(Duration::from_secs(60)), Some(Duration::from_secs(90)));
    let tool_times = HashMap::from([("quick".into(), own)]);
    let config = Config { tool_times, call_timeout: general.0, max_call_time: general.1, ..config() };
    let rig = rig(config);
    for (name, seconds, place) in [
        ("quick", 7, "`call_timeout` under [upstreams.a.tools.override.\"quick\"]"),
        ("slow", 60, "`call_timeout` under [upstreams.a]"),
    ] {
        let begun = Instant::now();
        let refused = refusal(&mut rig.upstream().call(tool("a", name))).await;
        assert_eq!((refused.reason.clone(), begun.elapsed().as_secs()), (Reason::Timeout, seconds));
        assert!(refused.message.contains(place), "{refused}");
    }
}

/// Two hours of work with progress each minute, by a limit between two signs of life and one for the whole.
async fn two_hours(whole: Option<Duration>) -> (u64, u64, Outcome) {
    let mut rig = rig(Config { call_timeout: Some(Duration::from_secs(90)), max_call_time: whole, ..config() });
    let begun = Instant::now();
    let call = Call { progress: true, log_level: Some(LogLevel::Info), ..tool("a", "long") };
    let mut reply = rig.upstream().call(call);
    let id = loop {
        if let (id, Method::ToolsCall, _) = rig.far.request().await {
            break id;
        }
    };
    let token = String::from_utf8_lossy(id.raw()).into_owned();
    let mut heard = 0;
    let mut minutes = 0;
    let end = loop {
        tokio::select! {
            step = reply.next() => match step {
                Step::Event(_) => heard += 1,
                Step::Done(outcome) => break outcome,
            },
            () = sleep(Duration::from_secs(60)) => {
                minutes += 1;
                let params = format!(r#"{{"progressToken":{token},"progress":{minutes}}}"#);
                match minutes {
                    120 => rig.far.result(&id, "{}").await,
                    _ => rig.far.notify("notifications/progress", &params).await,
                }
            }
        }
    };
    (begun.elapsed().as_secs(), heard, end)
}

#[tokio::test(start_paused = true)]
async fn progress_keeps_a_call_alive_for_hours_up_to_the_limit_of_the_whole() {
    let (took, heard, end) = two_hours(None).await;
    assert!(matches!(end, Outcome::Complete(_)));
    assert_eq!((took, heard), (7200, 119));
    let (took, heard, end) = two_hours(Some(Duration::from_secs(3600))).await;
    let Outcome::Error(Failure::Refused(refused)) = end else { panic!("{end:?}") };
    assert!(refused.reason == Reason::Timeout && refused.message.contains("3600 s"), "{refused}");
    // What is told in the moment that is the last one is heard.
    assert_eq!((took, heard), (3600, 60));
}

#[tokio::test(start_paused = true)]
async fn who_has_waited_for_a_start_in_vain_waits_no_longer() {
    let rig = Rig::new(narrow());
    let mut replies = [rig.upstream().call(tool("a", "a0")), rig.upstream().call(tool("b", "b0"))];
    assert_eq!(traffic(&rig), (0, 2));
    for reply in &mut replies {
        assert_eq!(refusal(reply).await.reason, Reason::Unavailable);
    }
    // Both are still held by whoever made them.
    assert_eq!(rig.board.snapshot().remove(0).traffic.queued(), 0);
}
