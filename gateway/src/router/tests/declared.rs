//! Lists by what clients declare: whose they are, how many there are, and when they are given up.

use super::*;
use crate::call::ListenFilter;
use crate::call::reply::{Change, Event, Step};
use std::task::{Context, Poll};

/// One whose lists differ by what clients declare.
fn varying() -> Arc<Scripted> {
    varying_of("a")
}

fn varying_of(name: &str) -> Arc<Scripted> {
    let one = Scripted { variants: Some(Mutex::default()), ..Scripted::plain(name, name, |_| None) };
    one.offer(inventory(&["of_all"]));
    Arc::new(one)
}

/// A call of a client of this principal that declares something of this name.
fn from(principal: &str, declares: &str, method: Method, params: &str) -> Call {
    let asked = call(method, params);
    let caller = Caller {
        principal: Principal::named(principal),
        capabilities: format!("{{\"experimental\":{{\"{declares}\":{{}}}}}}").into(),
        ..(*asked.caller).clone()
    };
    Call { caller: Arc::new(caller), ..asked }
}

fn set(declares: &str) -> Declared {
    Declared::parse(format!("{{\"experimental\":{{\"{declares}\":{{}}}}}}").as_bytes(), Revision::V2025_06_18)
}

impl Scripted {
    /// From now on those who declare this see that; says whether anybody holds it.
    fn vary(&self, declares: &str, variant: Variant) -> bool {
        let all = self.variants.as_ref().unwrap().lock().unwrap();
        all.get(&set(declares)).is_some_and(|shown| {
            shown.send_replace(variant);
            shown.receiver_count() > 0
        })
    }

    fn is_held(&self, declares: &str) -> bool {
        let all = self.variants.as_ref().unwrap().lock().unwrap();
        all.get(&set(declares)).is_some_and(|shown| shown.receiver_count() > 0)
    }
}

fn own(tool: &str) -> Variant {
    Variant::Own(Arc::new(inventory(&[tool])))
}

async fn listed(stage: &Stage, principal: &str, declares: &str) -> Vec<String> {
    names(stage.router.handle(from(principal, declares, Method::ToolsList, "{}"))).await
}

fn change(reply: &mut Reply) -> Option<Change> {
    match reply.poll_step(&mut Context::from_waker(std::task::Waker::noop())) {
        Poll::Ready(Step::Event(Event::Change(change))) => Some(change),
        Poll::Ready(step) => panic!("{step:?}"),
        Poll::Pending => None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_list_waits_for_what_its_client_is_offered_and_its_calls_are_found_there() {
    let a = varying();
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    let begun = tokio::time::Instant::now();
    let mut list = Box::pin(listed(&stage, "ann", "x"));
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut list).await.is_err(), "it waits");
    assert!(a.vary("x", own("only_x")));
    assert_eq!(list.await, ["a__only_x"]);
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
    assert_eq!(listed(&stage, "ann", "x").await, ["a__only_x"]);
    let asked = |declares: &str| from("ann", declares, Method::ToolsCall, r#"{"name":"a__only_x"}"#);
    assert!(told(stage.router.handle(asked("x"))).await.contains("only_x"));
    let refused = told(stage.router.handle(asked("y"))).await;
    assert!(refused.starts_with("InvalidParams") && a.heard().len() == 1, "it is not for others: {refused}");
    // What does not come is waited for once.
    assert_eq!(listed(&stage, "ann", "z").await, ["a__of_all"]);
    assert_eq!(begun.elapsed().as_secs(), 3);
    assert_eq!(listed(&stage, "bob", "z").await, ["a__of_all"]);
    assert_eq!(begun.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_change_is_told_to_those_who_declare_the_same() {
    let a = varying();
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    let listens = |declares: &str| {
        let filter = ListenFilter::lists().to_params();
        let asked = from("ann", declares, Method::Listen, "{}");
        stage.router.handle(Call { params: filter, ..asked })
    };
    let (mut x, mut y) = (listens("x"), listens("y"));
    settle().await;
    assert!(!a.is_held("x"), "nobody has looked at lists");
    assert!(matches!((change(&mut x), change(&mut y)), (Some(Change::Acknowledged(_)), Some(Change::Acknowledged(_)))));
    for declares in ["x", "y"] {
        assert_eq!(listed(&stage, "ann", declares).await, ["a__of_all"]);
        assert!(a.vary(declares, Variant::Shared));
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((change(&mut x), change(&mut y)), (None, None));
    a.vary("x", own("only_x"));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((change(&mut x), change(&mut y)), (Some(Change::Tools), None));
    a.offer(inventory(&["of_all", "more"]));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((change(&mut x), change(&mut y)), (None, Some(Change::Tools)), "it does not see those");
    a.vary("x", Variant::Shared);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((change(&mut x), change(&mut y)), (Some(Change::Tools), None));
    assert_eq!(listed(&stage, "ann", "x").await, ["a__of_all", "a__more"]);
}

#[tokio::test(start_paused = true)]
async fn eight_sets_have_lists_of_their_own_and_the_one_unused_for_longest_makes_room() {
    let a = varying();
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    let look = async |principal: &str, declares: &str| {
        drop(stage.router.handle(from(principal, declares, Method::ToolsList, "{}")));
        tokio::time::sleep(Duration::from_secs(1)).await;
        a.is_held(declares)
    };
    for number in 0..8 {
        assert_eq!(look("ann", &format!("ann{number}")).await, number < 6, "one alone has six: {number}");
    }
    assert!(look("bob", "bob0").await && look("bob", "bob1").await);
    assert!(!look("bob", "bob2").await, "all are in use");
    // One that somebody listens to stays in use.
    let filter = ListenFilter::lists().to_params();
    let _listens = stage.router.handle(Call { params: filter, ..from("ann", "ann0", Method::Listen, "{}") });
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(look("ann", "ann2").await, "it was there");
    assert!(look("bob", "bob2").await && !a.is_held("ann1") && a.is_held("ann0") && a.is_held("ann2"));
    assert!(look("cid", "cid").await && !a.is_held("ann3"));
    // What nobody looks at is given up.
    tokio::time::sleep(Duration::from_secs(1_300)).await;
    let held = ["ann0", "ann2", "ann4", "bob0", "bob2", "cid"].map(|declares| a.is_held(declares));
    assert_eq!(held, [true, false, false, false, false, false]);
}

#[tokio::test(start_paused = true)]
async fn lists_of_one_who_may_not_see_an_upstream_neither_ask_it_nor_wait_for_it() {
    let (a, b) = (varying(), varying_of("b"));
    let stage = Stage::new(Strategy::Prefix, &[&a, &b]);
    let role = Role {
        name: "r".into(),
        upstreams: vec![Glob::new("a")],
        tools: None,
        read_only: false,
        resources: None,
        prompts: None,
    };
    let grants = Grants::of(Some(Arc::new(Rights::of([Arc::new(role)]))));
    let restricted = |declares: &str| {
        let asked = from("ann", declares, Method::ToolsList, "{}");
        let caller = Caller { grants: grants.clone(), ..(*asked.caller).clone() };
        names(stage.router.handle(Call { caller: Arc::new(caller), ..asked }))
    };
    let begun = tokio::time::Instant::now();
    let mut list = Box::pin(restricted("x"));
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut list).await.is_err(), "it waits for what it may see");
    assert!(a.vary("x", own("only_x")) && !b.is_held("x"), "the other is not asked");
    assert_eq!((list.await, begun.elapsed()), (vec!["a__only_x".to_owned()], Duration::from_secs(1)));
    // However late somebody else looks: it waits for what nobody has waited for.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let begun = tokio::time::Instant::now();
    let mut list = Box::pin(listed(&stage, "root", "x"));
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut list).await.is_err());
    assert_eq!(restricted("x").await, ["a__only_x"]);
    assert_eq!(begun.elapsed(), Duration::from_secs(1), "what others wait for is nothing that it waits for");
    assert!(b.vary("x", own("of_b")));
    assert_eq!(
        (list.await, begun.elapsed()),
        (vec!["a__only_x".to_owned(), "b__of_b".to_owned()], Duration::from_secs(1))
    );
    assert_eq!(restricted("x").await, ["a__only_x"]);
    // Nor does one wait that may see none of them.
    grants.set(Some(Arc::default()));
    let begun = tokio::time::Instant::now();
    assert_eq!((restricted("y").await, begun.elapsed()), (vec![], Duration::ZERO));
    assert!(!a.is_held("y") && !b.is_held("y"));
}

#[tokio::test(start_paused = true)]
async fn what_a_client_has_listed_is_no_news_to_it_however_far_its_view_has_come() {
    let (tasks, mut had_listed) = (Tasks::default(), Vec::new());
    for steps in 0..8 {
        // A task takes its turn among those that bring the views up to date; a test runs once they have all come to rest.
        let (told, had) = tokio::sync::oneshot::channel();
        tasks.spawn(async move { told.send(listens_after(steps).await).unwrap() });
        had_listed.push(had.await.unwrap());
    }
    assert!(had_listed.contains(&true) && had_listed.contains(&false), "{had_listed:?}");
}

/// Lists and listens after so many turns since a change; says whether the list had it already.
async fn listens_after(steps: usize) -> bool {
    let a = varying();
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    assert_eq!(listed(&stage, "ann", "x").await, ["a__of_all"]);
    assert!(a.vary("x", Variant::Shared));
    tokio::time::sleep(Duration::from_secs(3)).await;
    let with_prompts = |tools: &[&str]| Inventory { prompts: vec![item("name", "p")].into(), ..inventory(tools) };
    a.offer(with_prompts(&["of_all", "more"]));
    for _ in 0..steps {
        let mut is_over = false;
        let turn = std::future::poll_fn(|cx| match std::mem::replace(&mut is_over, true) {
            true => Poll::Ready(()),
            false => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        });
        turn.await;
    }
    let has_listed = listed(&stage, "ann", "x").await.len() == 2;
    let asked = from("ann", "x", Method::Listen, "{}");
    let mut reply = stage.router.handle(Call { params: ListenFilter::lists().to_params(), ..asked });
    assert!(matches!(change(&mut reply), Some(Change::Acknowledged(_))));
    a.offer(with_prompts(&["of_all", "more", "last"]));
    tokio::time::sleep(Duration::from_secs(3)).await;
    let told: Vec<_> = std::iter::from_fn(|| change(&mut reply)).collect();
    let news: &[Change] = if has_listed { &[Change::Tools] } else { &[Change::Tools, Change::Prompts] };
    assert_eq!(told, news, "after {steps} turns");
    has_listed
}
