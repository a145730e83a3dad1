//! Changes that no call asked for.

use crate::client::Request;
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

/// What is no longer wanted is let go at the upstream too, and told no more; what else is wanted goes on.
pub(crate) async fn unsubscribed(case: &Case) {
    let (kept, gone) = (case.uri("changing"), case.uri("item/gone"));
    let staying = case.client.listen(&[&kept]).await;
    until_told(case, &kept).await;
    // A session hears all on one stream; a listen call has one of its own.
    let leaving = if case.client.revision.is_modern() {
        Some(case.client.listen(&[&gone]).await)
    } else {
        let params = format!("{{\"uri\":{}}}", quote(&gone));
        assert_eq!(case.client.request(Request::new("resources/subscribe", &params)).await.result(), "{}");
        None
    };
    until_told(case, &gone).await;
    let mark = case.upstream.events.mark();
    match leaving.as_ref().and_then(|changes| changes.listen.as_ref()) {
        Some(listen) => listen.cancel().await,
        None => {
            let params = format!("{{\"uri\":{}}}", quote(&gone));
            assert_eq!(case.client.request(Request::new("resources/unsubscribe", &params)).await.result(), "{}");
        }
    }
    // Without anything between, closing the listen call is all that the upstream hears.
    let closed = leaving.as_ref().and_then(|ear| ear.listen.as_ref()).filter(|_| case.prefix.is_empty());
    let lets_go = |event: &Event| match &event.what {
        What::Frame { raw, .. } => (raw.contains("resources/unsubscribe") && raw.contains(&gone)).then_some(()),
        What::Listening(filter) => (filter.contains(&kept) && !filter.contains(&gone)).then_some(()),
        What::Cancelled { id, .. } => closed.filter(|listen| listen.id == *id).map(|_| ()),
        _ => None,
    };
    case.upstream.events.wait_from(mark, "the upstream hears that one is no longer wanted", lets_go).await;
    let tapes: Vec<_> = [Some(&staying), leaving.as_ref()].into_iter().flatten().map(|ear| ear.heard.clone()).collect();
    let marks: Vec<_> = tapes.iter().map(|tape| tape.mark()).collect();
    for uri in [&gone, &kept] {
        let params = format!("{{\"uri\":{}}}", quote(uri));
        case.upstream.order(Order::Notify("notifications/resources/updated".into(), params)).await;
    }
    let notice = staying.hears(marks[0], "notifications/resources/updated").await;
    assert_eq!(notice.param_text("uri").as_deref(), Some(kept.as_str()), "the one that is still wanted");
    for (tape, mark) in tapes.iter().zip(marks) {
        let told = tape.all().into_iter().skip(mark).filter_map(|frame| frame.param_text("uri"));
        assert_eq!(told.filter(|uri| *uri == gone).count(), 0, "nobody is told of what nobody wants");
    }
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
