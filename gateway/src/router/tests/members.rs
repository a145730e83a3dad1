//! Upstreams that come and go while the router runs.

use super::*;
use crate::call::ListenFilter;
use crate::call::reply::{Change, Event, Source, Step};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

fn owners(all: &[&Arc<dyn Owner>]) -> Vec<Arc<dyn Owner>> {
    all.iter().map(|one| (*one).clone()).collect()
}

/// An upstream that offers these tools, as itself and as the router knows it.
fn offering(name: &str, tools: &[&str]) -> (Arc<Scripted>, Arc<dyn Owner>) {
    let one = Scripted::new(name, name);
    one.offer(inventory(tools));
    (one.clone(), one)
}

async fn tools(stage: &Stage) -> Vec<String> {
    names(stage.ask(Method::ToolsList, "{}")).await
}

fn change(reply: &mut Reply) -> Option<Change> {
    match reply.poll_step(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Step::Event(Event::Change(change))) => Some(change),
        Poll::Ready(step) => panic!("{step:?}"),
        Poll::Pending => None,
    }
}

fn listening(stage: &Stage, filter: &ListenFilter) -> Reply {
    let params = String::from_utf8(filter.to_params().raw().to_vec()).unwrap();
    stage.ask(Method::Listen, &params)
}

#[tokio::test(start_paused = true)]
async fn what_comes_is_listed_and_called_what_goes_is_not_and_both_are_told() {
    let (a, b, c) = (offering("a", &["x"]), offering("b", &["y"]), offering("c", &["z"]));
    let stage = Stage::new(Strategy::Prefix, &[&a.0, &b.0]);
    let mut listener = listening(&stage, &ListenFilter::lists());
    assert!(matches!(change(&mut listener), Some(Change::Acknowledged(_))));
    settle().await;
    a.0.heard();
    stage.router.set(owners(&[&c.1, &b.1]));
    assert_eq!(tools(&stage).await, ["c__z", "b__y"], "in configuration order, at once");
    settle().await;
    assert_eq!((change(&mut listener), change(&mut listener)), (Some(Change::Tools), None));
    let called = |name: &str| stage.ask(Method::ToolsCall, &format!("{{\"name\":\"{name}\"}}"));
    for (name, own) in [("b__y", "y"), ("c__z", "z")] {
        assert_eq!(told(called(name)).await, format!("{{\"own\":{{\"name\":\"{own}\"}}}}"));
    }
    assert!(told(called("a__x")).await.contains("Unknown tool: a__x"));
    assert_eq!(a.0.heard(), Vec::<String>::new());
    assert!(c.0.heard().iter().any(|heard| heard.starts_with("level")), "it is told how verbose it is to be");
    c.0.offer(inventory(&["z", "zz"]));
    b.0.offer(inventory(&[]));
    settle().await;
    assert_eq!(tools(&stage).await, ["c__z", "c__zz"], "changes of both are followed");
}

#[tokio::test(start_paused = true)]
async fn nothing_keeps_an_upstream_that_has_gone_but_the_calls_that_it_has() {
    let (a, b) = (offering("a", &["x"]), offering("b", &["y"]));
    let own = Scripted::per_session("own", "own");
    own.offer(inventory(&["t"]));
    let own: (Arc<Scripted>, Arc<dyn Owner>) = (own.clone(), own);
    let stage = Stage::new(Strategy::Prefix, &[&a.0, &b.0, &own.0]);
    let tenant = Arc::new(ClientSession::mute("s"));
    own.0.offer_to(&tenant, inventory(&["t", "tt"]));
    let of_session = |method, params: &str| {
        let plain = call(method, params);
        let caller = Caller { tenant: Some(tenant.clone()), ..(*plain.caller).clone() };
        stage.router.handle(Call { caller: Arc::new(caller), ..plain })
    };
    assert_eq!(names(of_session(Method::ToolsList, "{}")).await, ["a__x", "b__y", "own__t"]);
    settle().await;
    assert_eq!(names(of_session(Method::ToolsList, "{}")).await, ["a__x", "b__y", "own__t", "own__tt"]);
    let held = |one: &(Arc<Scripted>, Arc<dyn Owner>)| Arc::strong_count(&one.1) - 2;
    assert_eq!((held(&a), held(&b)), (1, 1), "by the catalog");
    stage.router.set(owners(&[&b.1, &own.1]));
    settle().await;
    assert_eq!((held(&a), held(&b)), (0, 1), "also where listeners are told later, and in no view");
    assert_eq!(names(of_session(Method::ToolsList, "{}")).await, ["b__y", "own__t", "own__tt"]);
    stage.router.set(owners(&[&b.1]));
    settle().await;
    assert_eq!((held(&own), names(of_session(Method::ToolsList, "{}")).await), (0, vec!["b__y".to_owned()]));
}

/// A listen call's reply that ends when it is told to.
struct Feed {
    acknowledged: Option<ListenFilter>,
    end: watch::Receiver<bool>,
}

impl Source for Feed {
    fn poll_step(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Step> {
        match self.acknowledged.take() {
            Some(filter) => Poll::Ready(Step::Event(Event::Change(Change::Acknowledged(filter)))),
            None if *self.end.borrow() => Poll::Ready(Step::Done(Outcome::Complete(Object::empty()))),
            None => Poll::Pending,
        }
    }

    fn revision(&self) -> Revision {
        Revision::V2025_11_25
    }
}

/// One that offers a resource, and takes whoever listens.
fn listened_to(end: &watch::Sender<bool>) -> (Arc<Scripted>, Arc<dyn Owner>) {
    let ends = end.subscribe();
    let one = Scripted::answering("a", "a", move |call| {
        let filter = ListenFilter::parse(&call.params).filter(|_| call.method == Method::Listen)?;
        Some(Reply::live(Feed { acknowledged: Some(filter), end: ends.clone() }))
    });
    one.offer(Inventory { resources: vec![item("uri", "f:1")].into(), ..inventory(&[]) });
    (one.clone(), one)
}

#[tokio::test(start_paused = true)]
async fn whoever_listens_to_a_resource_listens_to_the_one_that_comes_in_its_owners_place() {
    let (first, second) = (watch::Sender::new(false), watch::Sender::new(false));
    let (a, b) = (listened_to(&first), listened_to(&second));
    let stage = Stage::new(Strategy::Prefix, &[&a.0]);
    let mut reply = listening(&stage, &ListenFilter { uris: vec!["f:1".into()], ..ListenFilter::default() });
    let Some(Change::Acknowledged(honoured)) = change(&mut reply) else { panic!() };
    assert_eq!(honoured.uris, [Arc::from("f:1")]);
    stage.router.set(owners(&[&b.1]));
    first.send_replace(true);
    assert_eq!(change(&mut reply), Some(Change::Updated("f:1".into())), "it may have changed meanwhile");
    assert_eq!(change(&mut reply), None);
    let listens = |one: &Scripted| one.heard().iter().filter(|heard| heard.starts_with("subscriptions/listen")).count();
    assert_eq!((listens(&a.0), listens(&b.0)), (1, 1));
    // One that is not replaced is not heard of any more.
    stage.router.set(Vec::new());
    second.send_replace(true);
    assert_eq!(change(&mut reply), None);
}
