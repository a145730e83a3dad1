//! Changes that no call asked for.

use crate::frame::quote;
use crate::journal::{Event, Order, What};
use crate::judge;
use crate::scenario::Case;
use crate::upstream::Way;

/// A tool that appears is announced, and listed, and can be called.
pub(crate) async fn list_changed(case: &Case) {
    let changes = case.client.listen(&[]).await;
    until_told(case, "").await;
    let mark = changes.heard.mark();
    let own = case.client.call(&case.name("touch"), "{}").await.text();
    // A notice may still speak of what happened while the gateway started; the one that counts comes after it.
    let (mut mark, name) = (mark, case.name(&own));
    loop {
        changes.hears(mark, "notifications/tools/list_changed").await;
        mark = changes.heard.mark();
        if case.client.tools().await.contains(&name) {
            break;
        }
    }
    let nonce = judge::nonce();
    let echoed = case.client.call(&case.name(&own), &judge::arguments(&nonce)).await;
    assert!(echoed.text().contains(&nonce), "the new tool works");
}

/// A resource that was subscribed to is announced when it changes, and no other one.
pub(crate) async fn updated(case: &Case) {
    let uri = case.uri("changing");
    let changes = case.client.listen(&[&uri]).await;
    until_told(case, &uri).await;
    let mark = changes.heard.mark();
    for other in [case.uri("text"), uri.clone()] {
        let params = format!("{{\"uri\":{}}}", quote(&other));
        case.upstream.order(Order::Notify("notifications/resources/updated".into(), params)).await;
    }
    let notice = changes.hears(mark, "notifications/resources/updated").await;
    assert_eq!(notice.param_text("uri").as_deref(), Some(uri.as_str()), "the one that was asked for");
}

/// Waits until the upstream has somebody to tell: of changed lists, and of updates of a resource if one is named.
async fn until_told(case: &Case, uri: &str) {
    let listens = |event: &Event| match &event.what {
        What::Listening(filter) => filter.contains(uri).then_some(()),
        _ => None,
    };
    let streams = |event: &Event| matches!(event.what, What::Listening(_)).then_some(());
    let subscribes = |event: &Event| match &event.what {
        What::Frame { raw, .. } => (raw.contains("resources/subscribe") && raw.contains(uri)).then_some(()),
        _ => None,
    };
    let events = &case.upstream.events;
    if case.upstream_revision.is_modern() {
        events.wait(&format!("somebody listens at the upstream, {uri:?} included"), listens).await;
        return;
    }
    if case.upstream.way() == Way::Http {
        events.wait("somebody opens the upstream's GET stream", streams).await;
    }
    if !uri.is_empty() {
        events.wait(&format!("somebody subscribes to {uri}"), subscribes).await;
    }
}
