//! For how long lists hold, by what a stateless upstream says with each page.

use super::rig::{Rig, config};
use super::*;
use tokio::time::Instant;

/// Answers the next request for tools.
async fn lists(rig: &mut Rig, page: &str) {
    let (id, method, _) = rig.far.request().await;
    assert_eq!(method, Method::ToolsList);
    rig.far.result(&id, page).await;
}

fn keep(revision: Revision) -> Rig {
    let rig = Rig::new(config());
    let peer = rig.met(revision, r#"{"tools":{}}"#);
    rig.tasks.spawn_until_end(crate::upstream::supervise::keep_inventory(rig.instance.clone(), peer, Instant::now()));
    rig
}

#[tokio::test(start_paused = true)]
async fn a_list_holds_as_long_as_its_shortest_page_and_not_past_a_change() {
    let mut rig = keep(Revision::V2026_07_28);
    lists(&mut rig, r#"{"tools":[{"name":"a"}],"ttlMs":9000,"nextCursor":"2"}"#).await;
    lists(&mut rig, r#"{"tools":[{"name":"b"}],"ttlMs":60000}"#).await;
    let inventory = known(&mut rig.upstream().inventory()).await;
    let left = || inventory.fresh.left(&Method::ToolsList);
    assert_eq!(left(), Duration::from_secs(9));
    tokio::time::advance(Duration::from_secs(4)).await;
    assert_eq!(left(), Duration::from_secs(5));
    // DeclaredLater to have changed, it is read again; that nothing has, in the end, makes the old word no better and the new one good.
    rig.far.notify("notifications/tools/list_changed", "{}").await;
    lists(&mut rig, r#"{"tools":[{"name":"a"}],"ttlMs":7000,"nextCursor":"2"}"#).await;
    assert_eq!(left(), Duration::ZERO);
    lists(&mut rig, r#"{"tools":[{"name":"b"}],"ttlMs":60000}"#).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(left(), Duration::from_millis(6999));
}

#[tokio::test(start_paused = true)]
async fn a_page_that_says_nothing_and_a_handshake_upstreams_word_hold_nothing() {
    for (revision, page) in [
        (Revision::V2026_07_28, r#"{"tools":[],"cacheScope":"public"}"#),
        (Revision::V2025_11_25, r#"{"tools":[],"ttlMs":9000}"#),
    ] {
        let mut rig = keep(revision);
        lists(&mut rig, page).await;
        let inventory = known(&mut rig.upstream().inventory()).await;
        assert_eq!(inventory.fresh.left(&Method::ToolsList), Duration::ZERO);
    }
}
