//! What sessions see that have instances of an upstream to themselves, and principals that have logins.

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

/// A call of a principal in this revision.
fn by(principal: &str, revision: Revision, method: Method, params: &str) -> Call {
    let plain = call(method, params);
    let caller = Caller { principal: Principal::named(principal), revision, ..(*plain.caller).clone() };
    Call { caller: Arc::new(caller), ..plain }
}

async fn seen_by(stage: &Stage, principal: &str, revision: Revision) -> Vec<String> {
    names(stage.router.handle(by(principal, revision, Method::ToolsList, "{}"))).await
}

#[tokio::test(start_paused = true)]
async fn a_principal_sees_what_is_offered_to_it_alone_and_its_clients_hear_of_that() {
    let (a, b) = (Scripted::per_principal("a", "a"), Scripted::new("b", "b"));
    b.offer(inventory(&["y"]));
    let stage = Stage::new(Strategy::Prefix, &[&a, &b]);
    a.offer_alone_to("ada", inventory(&["enter"]));
    a.offer_alone_to("bob", inventory(&["enter"]));
    let filter = String::from_utf8(ListenFilter::lists().to_params().raw().to_vec()).unwrap();
    for revision in [Revision::V2025_11_25, Revision::NEWEST_MODERN] {
        let mut heard: Vec<_> = ["ada", "bob"]
            .map(|principal| stage.router.handle(by(principal, revision, Method::Listen, &filter)))
            .into();
        heard.iter_mut().for_each(|reply| assert!(matches!(change(reply), Some(Change::Acknowledged(_)))));
        for principal in ["ada", "bob"] {
            assert_eq!(seen_by(&stage, principal, revision).await, ["a__enter", "b__y"]);
        }
        a.offer_alone_to("ada", inventory(&["mine"]));
        quiet().await;
        assert_eq!((change(&mut heard[0]), change(&mut heard[1])), (Some(Change::Tools), None));
        assert_eq!(seen_by(&stage, "ada", revision).await, ["a__mine", "b__y"]);
        assert_eq!(seen_by(&stage, "bob", revision).await, ["a__enter", "b__y"]);
        assert_eq!(names(stage.ask(Method::ToolsList, "{}")).await, ["b__y"], "nobody in particular");
        // Calls lead where lists say.
        let calls =
            |principal| stage.router.handle(by(principal, revision, Method::ToolsCall, r#"{"name":"a__mine"}"#));
        assert_eq!(told(calls("ada")).await, r#"{"own":{"name":"mine"}}"#);
        assert!(told(calls("bob")).await.contains("Unknown tool"));
        // What all have in common changes for all.
        b.offer(inventory(&["w"]));
        quiet().await;
        assert_eq!((change(&mut heard[0]), change(&mut heard[1])), (Some(Change::Tools), Some(Change::Tools)));
        assert_eq!(seen_by(&stage, "ada", revision).await, ["a__mine", "b__w"]);
        a.offer_alone_to("ada", inventory(&["enter"]));
        b.offer(inventory(&["y"]));
        quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_waits_once_for_what_is_offered_to_its_principal() {
    let a = Scripted::per_principal("a", "a");
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    let begun = tokio::time::Instant::now();
    assert_eq!(seen_by(&stage, "ada", Revision::NEWEST_MODERN).await, [""; 0]);
    assert_eq!(begun.elapsed().as_secs(), 2, "it does not come");
    assert_eq!(seen_by(&stage, "ada", Revision::NEWEST_MODERN).await, [""; 0]);
    assert_eq!(begun.elapsed().as_secs(), 2, "it is not waited for again");
    let (asked, offered) = tokio::join!(seen_by(&stage, "bob", Revision::NEWEST_MODERN), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        a.offer_alone_to("bob", inventory(&["mine"]));
    });
    assert_eq!((asked, offered, begun.elapsed().as_secs()), (vec!["a__mine".to_owned()], (), 3));
}

#[tokio::test(start_paused = true)]
async fn the_view_of_a_principal_is_given_up_when_nobody_looks_at_it_for_long() {
    let a = Scripted::per_principal("a", "a");
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    for principal in ["ada", "bob"] {
        a.offer_alone_to(principal, inventory(&["mine"]));
        seen_by(&stage, principal, Revision::NEWEST_MODERN).await;
    }
    tokio::time::sleep(Duration::from_secs(5 * 60)).await;
    seen_by(&stage, "bob", Revision::NEWEST_MODERN).await;
    tokio::time::sleep(Duration::from_secs(6 * 60)).await;
    assert_eq!(stage.router.personal.catalogs().len(), 1);
    assert_eq!(seen_by(&stage, "ada", Revision::NEWEST_MODERN).await, ["a__mine"]);
}

#[tokio::test(start_paused = true)]
async fn who_may_see_anything_of_an_upstream_may_log_in_to_it_and_nobody_has_to_approve_that() {
    let a = Scripted::per_principal("a", "a");
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    a.offer_alone_to("ada", Inventory::to_log_in("a"));
    stage.router.set_pins(&config::Pins { pin: config::Pin::Hold, ..config::Pins::default() });
    let asked = by("ada", Revision::NEWEST_MODERN, Method::ToolsList, "{}");
    let as_one_who_may = |grants| {
        let caller = Caller { grants, ..(*asked.caller).clone() };
        names(stage.router.handle(Call { caller: Arc::new(caller), ..asked.clone() }))
    };
    assert_eq!(as_one_who_may(tools_alone(&["a__other"])).await, ["a__trunkline_login"]);
    let of_another = Role {
        name: "r".into(),
        upstreams: vec![Glob::new("b")],
        tools: None,
        read_only: false,
        resources: None,
        prompts: None,
    };
    assert_eq!(as_one_who_may(granted(of_another)).await, [""; 0]);
    a.offer_alone_to("ada", inventory(&["theirs"]));
    settle().await;
    assert_eq!(as_one_who_may(Grants::all()).await, [""; 0], "it is held");
}

#[tokio::test(start_paused = true)]
async fn a_call_of_who_has_looked_at_no_list_waits_for_what_is_offered_or_leads_to_a_login() {
    let a = Scripted::per_principal("a", "a");
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    let mine = |principal| by(principal, Revision::NEWEST_MODERN, Method::ToolsCall, r#"{"name":"a__mine"}"#);
    let (answer, ()) = tokio::join!(told(stage.router.handle(mine("ada"))), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        a.offer_alone_to("ada", inventory(&["mine"]));
    });
    assert_eq!(answer, r#"{"own":{"name":"mine"}}"#);
    a.offer_alone_to("bob", Inventory::to_log_in("a"));
    *a.to_log_in.lock().unwrap() = Some(Cause::new(CauseCode::LoginRequired, "needs login"));
    let refused = refusal(stage.router.handle(mine("bob"))).await;
    assert!(refused.reason == Reason::Login && refused.message.contains("needs login"), "{refused}");
    // It has logged in just now: what is offered then is waited for, and nothing is sent before.
    *a.to_log_in.lock().unwrap() = None;
    let (answer, ()) = tokio::join!(told(stage.router.handle(mine("bob"))), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        a.offer_alone_to("bob", inventory(&["mine"]));
    });
    assert_eq!(answer, r#"{"own":{"name":"mine"}}"#);
    a.offer_alone_to("bob", Inventory::to_log_in("a"));
    settle().await;
    // Its retry of the tool that it was offered leads to who knows that it has.
    let entered = by("ada", Revision::NEWEST_MODERN, Method::ToolsCall, r#"{"name":"a__trunkline_login"}"#);
    assert_eq!(told(stage.router.handle(entered)).await, r#"{"own":{"name":"trunkline_login"}}"#);
    let caller = Caller { grants: tools_alone(&["a__other"]), ..(*mine("bob").caller).clone() };
    let denied = stage.router.handle(Call { caller: Arc::new(caller), ..mine("bob") });
    assert!(told(denied).await.contains("Unknown tool"), "it may not have it in any case");
    let begun = tokio::time::Instant::now();
    let refusal = refusal(stage.router.handle(mine("cyd"))).await;
    assert!(refusal.is_retriable() && refusal.message.contains("is still starting"), "{refusal}");
    assert_eq!(begun.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn the_call_of_a_login_that_has_begun_before_leads_there_also_when_it_is_offered_no_more() {
    for (strategy, name) in [(Strategy::Prefix, "a__trunkline_login"), (Strategy::Flat, "a__trunkline_login")] {
        let (a, b) = (Scripted::per_principal("a", "a"), Scripted::new("b", "b"));
        b.offer(inventory(&["y"]));
        let stage = Stage::new(strategy, &[&a, &b]);
        a.offer_alone_to("ada", inventory(&["mine"]));
        let params = format!("{{\"name\":\"{name}\"}}");
        let log_in = || by("ada", Revision::NEWEST_MODERN, Method::ToolsCall, &params);
        assert_eq!(told(stage.router.handle(log_in())).await, r#"{"own":{"name":"trunkline_login"}}"#, "{name}");
        let caller = Caller { grants: Grants::of(Some(Arc::new(Rights::of([])))), ..(*log_in().caller).clone() };
        let denied = stage.router.handle(Call { caller: Arc::new(caller), ..log_in() });
        assert!(told(denied).await.contains("Unknown tool"), "it may see nothing of it");
    }
}

#[tokio::test(start_paused = true)]
async fn a_principal_is_offered_the_login_of_each_upstream_whatever_names_bear_no_prefix() {
    let (a, b) = (Scripted::per_principal("a", "a"), Scripted::per_principal("b", ""));
    let stage = Stage::new(Strategy::Flat, &[&a, &b]);
    for upstream in [&a, &b] {
        upstream.offer_alone_to("ada", Inventory::to_log_in(upstream.name()));
    }
    let seen = seen_by(&stage, "ada", Revision::NEWEST_MODERN).await;
    assert_eq!(seen, ["a__trunkline_login", "b__trunkline_login"]);
    // It has logged in to the first: the name of the other one stays, and the first is still found by its own.
    a.offer_alone_to("ada", inventory(&["mine"]));
    settle().await;
    assert_eq!(seen_by(&stage, "ada", Revision::NEWEST_MODERN).await, ["mine", "b__trunkline_login"]);
    for name in ["a__trunkline_login", "b__trunkline_login"] {
        let call = by("ada", Revision::NEWEST_MODERN, Method::ToolsCall, &format!("{{\"name\":\"{name}\"}}"));
        assert_eq!(told(stage.router.handle(call)).await, r#"{"own":{"name":"trunkline_login"}}"#, "{name}");
    }
}
