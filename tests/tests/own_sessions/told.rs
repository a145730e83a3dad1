//! A client whose session at an upstream was lost is told so in the next result, once.

use super::*;
use serde_json::{Value, json};

/// What a result says of a session that was lost.
pub(super) fn lost(answer: &Answer) -> Value {
    answer.value()["_meta"]["trunkline/state_lost"].clone()
}

fn word(reason: &str) -> Value {
    json!({ "upstream": "up", "reason": reason, "lost": ["roots", "tools"] })
}

/// Calls until there is room for that.
async fn called(client: &Client) -> Answer {
    let room = async || Some(client.call("up__echo", "{}").await).filter(|answer| answer.frame().error.is_none());
    until("there is room", room).await
}

#[tokio::test]
async fn the_first_result_after_the_upstream_has_lost_it_says_so_and_the_others_do_not() {
    let (upstream, gateway) = stage(|_| {}, "", "").await;
    let (one, two) = (connected(&gateway, LEGACY).await, connected(&gateway, LEGACY).await);
    assert_eq!((lost(&called(&one).await), lost(&called(&two).await)), (Value::Null, Value::Null));
    for _ in 0..2 {
        upstream.order(Order::ForgetSessions).await;
        assert_eq!(lost(&called(&one).await), word("upstream"));
        assert_eq!(lost(&called(&one).await), Value::Null);
    }
    // Whatever it asks for first.
    let read = Request::new("resources/read", &format!("{{\"uri\":\"{URI}\"}}"));
    assert_eq!(lost(&two.request(read).await), word("upstream"));
    assert_eq!(lost(&called(&two).await), Value::Null);
    let fresh = connected(&gateway, LEGACY).await;
    assert_eq!(lost(&called(&fresh).await), Value::Null, "it had none");
}

#[tokio::test]
async fn the_first_result_after_it_made_room_says_so_and_that_of_the_one_that_took_it_does_not() {
    let (_upstream, gateway) = stage(|_| {}, "max_sessions = 1\ninstance_idle = \"100ms\"", "").await;
    let (one, two) = (connected(&gateway, LEGACY).await, connected(&gateway, LEGACY).await);
    assert_eq!(lost(&called(&one).await), Value::Null);
    assert_eq!(lost(&called(&two).await), Value::Null, "it had none");
    for client in [&one, &two, &one] {
        assert_eq!(lost(&called(client).await), word("max_sessions"));
        assert_eq!(lost(&called(client).await), Value::Null);
    }
}
