//! What upstreams tell of themselves: that lists changed, and log messages that nobody has asked for.

use super::*;
use crate::upstream::inventory::Announced;

#[tokio::test(start_paused = true)]
async fn what_an_upstream_announces_is_told_also_where_nothing_differs() {
    let (a, stage, mut reply) = heard().await;
    let announced =
        |tools, prompts| Inventory { announced: Announced { tools, prompts, resources: 0 }, ..inventory(&["x"]) };
    a.offer(announced(1, 0));
    settle().await;
    assert_eq!((change(&mut reply), change(&mut reply)), (Some(Change::Tools), None));
    // Two within a quarter of a second are one, and what is read anew without a word is none.
    a.offer(announced(2, 0));
    settle().await;
    a.offer(announced(3, 1));
    settle().await;
    assert_eq!(change(&mut reply), None, "it is joined");
    tokio::time::sleep(Duration::from_millis(250)).await;
    settle().await;
    assert_eq!(
        (change(&mut reply), change(&mut reply), change(&mut reply)),
        (Some(Change::Tools), Some(Change::Prompts), None)
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
    a.offer(announced(3, 1));
    settle().await;
    assert_eq!(change(&mut reply), None);
    let listed = stage.router.handle(call(Method::ToolsList, "{}")).outcome().await.1;
    assert!(matches!(listed, Outcome::Complete(_)), "{listed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_named_no_level_hears_the_ordinary_and_nothing_is_asked_for_it() {
    let (a, stage) = offering(&[]).await;
    let mut reply = stage.router.handle(Call { log_level: None, ..legacy(LogLevel::Debug, "p") });
    assert!(matches!(change(&mut reply), Some(Change::Acknowledged(_))));
    let mut of_one = legacy(LogLevel::Debug, "p");
    of_one = Call { log_level: None, params: uris(&["m:1"]).to_params(), ..of_one };
    let mut of_one = stage.router.handle(of_one);
    settle().await;
    let heard: Vec<_> = a.heard().into_iter().filter(|heard| heard.contains("level Some")).collect();
    assert_eq!(heard, [""; 0], "it sends what it sends");
    for (level, is_heard) in [(LogLevel::Debug, false), (LogLevel::Info, true), (LogLevel::Alert, true)] {
        stage.listeners.notices()(Notice::Log {
            upstream: "a".into(),
            whose: Audience::Everyone,
            level,
            params: Object::empty(),
        });
        assert_eq!(matches!(next(&mut reply), Some(Event::Log(..))), is_heard, "{level:?}");
        assert!(!matches!(next(&mut of_one), Some(Event::Log(..))), "once, not for each subscription");
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_exchanged_token_may_tell_is_for_those_alone_whose_own_allows_as_much() {
    let (_a, stage) = offering(&[]).await;
    let reader = Principal::named("p").allowed("read");
    let mut of_reader = legacy(LogLevel::Debug, "p");
    of_reader.caller = Arc::new(Caller { principal: reader.clone(), ..(*of_reader.caller).clone() });
    let mut reply = stage.router.handle(of_reader);
    assert!(matches!(change(&mut reply), Some(Change::Acknowledged(_))));
    settle().await;
    for (whose, is_heard) in [
        (reader.in_general(), true),
        (reader, true),
        (Principal::named("p").allowed("write"), false),
        (Principal::named("q").allowed("read"), false),
    ] {
        let (whose, level) = (Audience::Principal(whose), LogLevel::Error);
        stage.listeners.notices()(Notice::Log { upstream: "a".into(), whose, level, params: Object::empty() });
        assert_eq!(matches!(next(&mut reply), Some(Event::Log(..))), is_heard);
    }
}
