//! What sessions see that have instances of an upstream to themselves.

use super::*;
use crate::call::ListenFilter;
use crate::call::reply::{Change, Event, Step};
use std::task::{Context, Poll};

/// A call of a session.
fn of(tenant: &Arc<ClientSession>, method: Method, params: &str) -> Call {
    let plain = call(method, params);
    let caller = Caller { tenant: Some(tenant.clone()), ..(*plain.caller).clone() };
    Call { caller: Arc::new(caller), ..plain }
}

fn session(id: &str) -> Arc<ClientSession> {
    Arc::new(ClientSession::mute(id))
}

/// The tools that a session sees, or what is seen without one.
async fn tools(stage: &Stage, tenant: Option<&Arc<ClientSession>>) -> Vec<String> {
    names(match tenant {
        Some(tenant) => stage.router.handle(of(tenant, Method::ToolsList, "{}")),
        None => stage.ask(Method::ToolsList, "{}"),
    })
    .await
}

/// A session's listen call for the lists, taken.
fn listening(stage: &Stage, tenant: &Arc<ClientSession>) -> Reply {
    let params = String::from_utf8(ListenFilter::lists().to_params().raw().to_vec()).unwrap();
    let mut reply = stage.router.handle(of(tenant, Method::Listen, &params));
    assert!(matches!(change(&mut reply), Some(Change::Acknowledged(_))));
    reply
}

fn change(reply: &mut Reply) -> Option<Change> {
    match reply.poll_step(&mut Context::from_waker(std::task::Waker::noop())) {
        Poll::Ready(Step::Event(Event::Change(change))) => Some(change),
        Poll::Ready(step) => panic!("{step:?}"),
        Poll::Pending => None,
    }
}

/// Everything has run, and nothing is joined any more.
async fn quiet() {
    settle().await;
    tokio::time::advance(Duration::from_secs(3)).await;
    settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_sees_the_lists_of_its_own_instance_and_hears_of_them_alone() {
    let (a, b) = (Scripted::per_session("a", "a"), Scripted::new("b", "b"));
    a.offer(inventory(&["x"]));
    b.offer(inventory(&["y"]));
    let stage = Stage::new(Strategy::Prefix, &[&a, &b]);
    let (one, two) = (session("1"), session("2"));
    let (mut first, mut second) = (listening(&stage, &one), listening(&stage, &two));
    quiet().await;
    assert_eq!(tools(&stage, Some(&one)).await, ["a__x", "b__y"], "everyone's, until its own are known");
    a.offer_to(&one, inventory(&["x", "mine"]));
    quiet().await;
    assert_eq!((change(&mut first), change(&mut first), change(&mut second)), (Some(Change::Tools), None, None));
    assert_eq!(tools(&stage, Some(&one)).await, ["a__x", "a__mine", "b__y"], "in configuration order");
    for other in [Some(&two), None] {
        assert_eq!(tools(&stage, other).await, ["a__x", "b__y"]);
    }
    // Calls lead where lists say.
    let mine = r#"{"name":"a__mine"}"#;
    assert_eq!(told(stage.router.handle(of(&one, Method::ToolsCall, mine))).await, r#"{"own":{"name":"mine"}}"#);
    assert!(told(stage.router.handle(of(&two, Method::ToolsCall, mine))).await.contains("Unknown tool"));
    assert!(told(stage.ask(Method::ToolsCall, mine)).await.contains("Unknown tool"));
}

#[tokio::test(start_paused = true)]
async fn what_changes_with_the_primary_changes_for_sessions_that_see_it() {
    let (a, b) = (Scripted::per_session("a", "a"), Scripted::new("b", "b"));
    a.offer(inventory(&["x"]));
    b.offer(inventory(&["y"]));
    let stage = Stage::new(Strategy::Prefix, &[&a, &b]);
    let (one, two) = (session("1"), session("2"));
    let (mut first, mut second) = (listening(&stage, &one), listening(&stage, &two));
    a.offer_to(&one, inventory(&["mine"]));
    quiet().await;
    assert_eq!((change(&mut first), change(&mut second)), (Some(Change::Tools), None));
    // Whoever has another instance is not told of what the primary one offers.
    a.offer(inventory(&["x", "z"]));
    quiet().await;
    assert_eq!((change(&mut first), change(&mut second)), (None, Some(Change::Tools)));
    assert_eq!(tools(&stage, Some(&one)).await, ["a__mine", "b__y"]);
    assert_eq!(tools(&stage, Some(&two)).await, ["a__x", "a__z", "b__y"]);
    // Other upstreams are the same for all.
    b.offer(inventory(&["w"]));
    quiet().await;
    assert_eq!((change(&mut first), change(&mut second)), (Some(Change::Tools), Some(Change::Tools)));
    assert_eq!(tools(&stage, Some(&one)).await, ["a__mine", "b__w"]);
    // An instance that has gone leaves what is everyone's.
    a.own.as_ref().unwrap().lock().unwrap().clear();
    quiet().await;
    assert_eq!((change(&mut first), change(&mut second)), (Some(Change::Tools), None));
    assert_eq!(tools(&stage, Some(&one)).await, ["a__x", "a__z", "b__w"]);
}

#[tokio::test(start_paused = true)]
async fn a_view_costs_nothing_where_nothing_differs_and_goes_with_its_session() {
    let a = Scripted::per_session("a", "a");
    a.offer(inventory(&["x"]));
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    let one = session("1");
    let view = stage.router.views.of(&of(&one, Method::Ping, "{}").caller, None, false).unwrap();
    a.offer_to(&one, inventory(&["x"]));
    quiet().await;
    assert!(Arc::ptr_eq(&view.current().keep(), &stage.router.current.keep()), "the same lists are not kept twice");
    assert!(
        stage.router.views.of(&call(Method::Ping, "{}").caller, None, false).is_none(),
        "without a session there is no view"
    );
    let is_kept = |held: usize| Arc::strong_count(&view) > held;
    assert!(is_kept(1));
    one.end();
    settle().await;
    assert!(!is_kept(1), "nobody but this test has it");
    assert!(stage.router.views.of(&of(&one, Method::Ping, "{}").caller, None, false).is_none(), "nor is it made anew");
    let shared = Stage::new(Strategy::Prefix, &[&Scripted::new("b", "b")]);
    assert!(shared.router.views.of(&of(&session("2"), Method::Ping, "{}").caller, None, false).is_none());
}

#[tokio::test(start_paused = true)]
async fn one_principals_sessions_leave_views_for_anothers() {
    let a = Scripted::per_session("a", "a");
    a.offer(inventory(&["of all"]));
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    quiet().await;
    let named = |principal: &str, tenant: &Arc<ClientSession>| {
        let asked = of(tenant, Method::ToolsList, "{}");
        let caller = Caller { principal: Principal::named(principal), ..(*asked.caller).clone() };
        stage.router.handle(Call { caller: Arc::new(caller), ..asked })
    };
    let greedy: Vec<_> = (0..4100).map(|number| session(&format!("ann{number}"))).collect();
    greedy.iter().for_each(|tenant| drop(named("ann", tenant)));
    let bobs = session("bob");
    a.offer_to(&bobs, inventory(&["bobs"]));
    drop(named("bob", &bobs));
    quiet().await;
    assert_eq!(names(named("bob", &bobs)).await, ["a__bobs"]);
}
