//! Changes that no call asked for.

use crate::frame::quote;
use crate::journal::Order;
use crate::judge;
use crate::scenario::Case;

/// A tool that appears is announced, and listed, and can be called.
pub(crate) async fn list_changed(case: &Case) {
    let changes = case.client.listen(&[]).await;
    let mark = changes.heard.mark();
    let own = case.client.call(&case.name("touch"), "{}").await.text();
    changes.hears(mark, "notifications/tools/list_changed").await;
    let tools = case.client.tools().await;
    assert!(tools.contains(&case.name(&own)), "{own} in {tools:?}");
    let nonce = judge::nonce();
    let echoed = case.client.call(&case.name(&own), &judge::arguments(&nonce)).await;
    assert!(echoed.text().contains(&nonce), "the new tool works");
}

/// A resource that was subscribed to is announced when it changes, and no other one.
pub(crate) async fn updated(case: &Case) {
    let uri = case.uri("changing");
    let changes = case.client.listen(&[&uri]).await;
    let mark = changes.heard.mark();
    for other in [case.uri("text"), uri.clone()] {
        let params = format!("{{\"uri\":{}}}", quote(&other));
        case.upstream.order(Order::Notify("notifications/resources/updated".into(), params)).await;
    }
    let notice = changes.hears(mark, "notifications/resources/updated").await;
    assert_eq!(notice.param_text("uri").as_deref(), Some(uri.as_str()), "the one that was asked for");
}
