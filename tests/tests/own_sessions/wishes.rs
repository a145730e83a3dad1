//! What clients want lastingly outlives the gateway: their subscriptions and the log level.

use super::kept::{back, echo, kept, next};
use super::told::lost;
use super::*;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// The files in which it is kept what clients want lastingly.
fn wishes(gateway: &Gateway) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(gateway.state().join("session-wishes")) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("it can be looked at").path());
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "wishes")).collect()
}

/// Waits until what clients want is kept in another way than before.
pub(super) async fn wished(gateway: &Gateway, before: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let kept = async || {
        let now: Vec<_> = wishes(gateway).iter().map(|path| std::fs::read(path).unwrap_or_default()).collect();
        (now != before).then_some(now)
    };
    until("it is kept", kept).await
}

/// Has a client subscribe to a second resource beside the usual one: its URI, and what is kept of both.
async fn subscribed_twice(gateway: &Gateway, client: &Client) -> (String, Vec<Vec<u8>>) {
    let other = URI.replace("changing", "text");
    let hears = client.listen(&[URI]).await;
    let first = wished(gateway, &[]).await;
    let more = Request::new("resources/subscribe", &format!("{{\"uri\":\"{other}\"}}"));
    assert_eq!(client.request(more).await.result(), "{}");
    let both = wished(gateway, &first).await;
    drop(hears);
    (other, both)
}

#[tokio::test]
async fn what_was_acknowledged_is_kept_though_the_gateway_is_killed_in_that_moment() {
    let (upstream, mut gateway) = stage(|_| {}, "", "").await;
    let config = Config::new().upstream(&upstream);
    let one = connected(&gateway, LEGACY).await;
    let kept = |gateway: &Gateway| -> Vec<Vec<u8>> {
        wishes(gateway).iter().map(|path| std::fs::read(path).unwrap_or_default()).collect()
    };
    let uri = format!("{{\"uri\":\"{URI}\"}}");
    for (method, params) in [
        ("resources/subscribe", uri.as_str()),
        ("logging/setLevel", "{\"level\":\"error\"}"),
        ("resources/unsubscribe", &uri),
        ("logging/setLevel", "{\"level\":\"alert\"}"),
    ] {
        let before = kept(&gateway);
        assert_eq!(one.request(Request::new(method, params)).await.result(), "{}");
        next(&mut gateway, &config, true).await;
        let now = kept(&gateway);
        assert!(now.len() == 1 && now != before, "{method} was told and is not kept");
        one.http().rest();
    }
}

#[tokio::test]
async fn a_client_that_comes_back_is_subscribed_and_has_its_log_level_again_though_the_upstream_has_forgotten_it() {
    for forgets in [true, false] {
        let (upstream, mut gateway) = stage(|_| {}, "", "").await;
        let config = Config::new().upstream(&upstream);
        let one = connected(&gateway, LEGACY).await;
        let hears = one.listen(&[URI]).await;
        let subscribed = wished(&gateway, &[]).await;
        assert_eq!(one.request(Request::new("logging/setLevel", "{\"level\":\"error\"}")).await.result(), "{}");
        wished(&gateway, &subscribed).await;
        let first = session_of(&upstream, &one, "a").await;
        let is_set = async |session: &str| leveled(&upstream, "error").iter().any(|one| one == session).then_some(());
        until("its level is set", async || is_set(&first).await).await;
        drop(hears);
        kept(&gateway, 2).await;
        match forgets {
            true => {
                gateway.stop().await;
                upstream.order(Order::ForgetSessions).await;
                gateway.again(&config).await;
            }
            false => next(&mut gateway, &config, true).await,
        }
        one.http().rest();
        let hears = one.listen(&[]).await;
        // What may have changed meanwhile is told, once it is subscribed again.
        hears.hears(0, UPDATED).await;
        let word = json!({ "upstream": "up", "reason": "restart", "lost": ["roots", "tools"] });
        assert_eq!(lost(&one.request(echo()).await), if forgets { word } else { Value::Null });
        let session = session_of(&upstream, &one, "b").await;
        assert_eq!(session != first, forgets);
        until("its level is set", async || is_set(&session).await).await;
        let mark = hears.heard.mark();
        upstream.order(Order::NotifyIn(session, UPDATED.into(), format!("{{\"uri\":\"{URI}\"}}"))).await;
        hears.hears(mark, UPDATED).await;
        // A session that has ended wants nothing.
        leave(&gateway, &one).await;
        until("it is forgotten", async || wishes(&gateway).is_empty().then_some(())).await;
        assert_eq!(upstream.complaints().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_subscription_that_cannot_be_had_again_is_said_to_be_lost_and_the_others_hold() {
    let (upstream, mut gateway) = stage(|_| {}, "", "").await;
    let config = Config::new().upstream(&upstream);
    let one = connected(&gateway, LEGACY).await;
    let (other, _) = subscribed_twice(&gateway, &one).await;
    gateway.stop().await;
    let mut refuses = Rule::on("resources/subscribe", vec![Act::error(-32602, "no such resource")]);
    refuses.name = Some(other);
    upstream.order(Order::Rules(vec![refuses])).await;
    gateway.again(&config).await;
    one.http().rest();
    let hears = one.listen(&[]).await;
    let said = hears.hears(0, "notifications/message").await;
    assert!(format!("{said:?}").contains("1 of your subscriptions could not be had again"), "{said:?}");
    gateway.says(&["subscriptions of an earlier run could not be had again", "\"lost\":1"]).await;
    hears.hears(0, UPDATED).await;
}

#[tokio::test]
async fn wishes_that_are_not_ours_alone_or_of_another_key_are_said_to_be_lost() {
    let (upstream, mut gateway) = stage(|_| {}, "", "").await;
    let config = Config::new().upstream(&upstream);
    let one = connected(&gateway, LEGACY).await;
    drop(one.listen(&[URI]).await);
    session_of(&upstream, &one, "a").await;
    wished(&gateway, &[]).await;
    kept(&gateway, 2).await;
    gateway.stop().await;
    for path in wishes(&gateway) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).expect("it is ours");
    }
    gateway.again(&config).await;
    back(&one).await;
    let word = json!({ "upstream": "up", "reason": "restart", "lost": ["subscriptions", "log_level"] });
    assert_eq!(lost(&one.request(echo()).await), word);
    gateway.says(&["session of an earlier run revived", "its subscriptions and its log level are lost"]).await;
}

#[tokio::test]
async fn a_second_restart_while_a_client_is_subscribed_again_loses_nothing() {
    let (upstream, mut gateway) = stage(|_| {}, "", "").await;
    let config = Config::new().upstream(&upstream);
    let one = connected(&gateway, LEGACY).await;
    let (other, both) = subscribed_twice(&gateway, &one).await;
    gateway.kill().await;
    let mut hangs = Rule::on("resources/subscribe", vec![Act::Gate("never".into())]);
    (hangs.name, hangs.times) = (Some(other.clone()), 1);
    upstream.order(Order::Rules(vec![hangs])).await;
    gateway.again(&config).await;
    one.http().rest();
    let hears = one.listen(&[]).await;
    // One of the two is there again, and the other is still waited for.
    hears.hears(0, UPDATED).await;
    // What is kept follows what changes in order: the level was kept, so is all that was to be kept before.
    assert_eq!(one.request(Request::new("logging/setLevel", "{\"level\":\"error\"}")).await.result(), "{}");
    wished(&gateway, &both).await;
    drop(hears);
    next(&mut gateway, &config, true).await;
    one.http().rest();
    let mark = one.notices.mark();
    let hears = one.listen(&[]).await;
    for uri in [URI, &other] {
        let is_of_it = |frame: &Frame| (frame.is_notice(UPDATED) && format!("{frame:?}").contains(uri)).then_some(());
        hears.heard.wait_from(mark, &format!("{uri} is subscribed to again"), is_of_it).await;
    }
}
