//! Lists for which there is no room: the older ones stay, the upstream says why, and the others live.

use super::*;
use crate::memory::account::Kind;
use crate::memory::budget::Budget;

const MIB: usize = 1 << 20;

fn tools(prefix: &str, count: usize, bytes: usize) -> String {
    let text = "x".repeat(bytes);
    let tool = |at: usize| format!("{{\"name\":\"{prefix}{at}\",\"description\":\"{text}\"}}");
    format!("{{\"tools\":[{}]}}", (0..count).map(tool).collect::<Vec<_>>().join(","))
}

/// An upstream that is kept, and has offered its first list.
async fn offering(budget: &Budget, first: &str) -> Rig {
    let mut rig = Rig::within(budget, Config { max_message: 64 * MIB, ..config() });
    let peer = rig.met(LEGACY, r#"{"tools":{}}"#);
    let begun = tokio::time::Instant::now();
    rig.tasks.spawn_until_end(crate::upstream::supervise::keep_inventory(rig.instance.clone(), peer, begun));
    reads(&mut rig, first).await;
    known(&mut rig.upstream().inventory()).await;
    rig
}

/// The upstream is asked for its list, and answers this.
async fn reads(rig: &mut Rig, list: &str) {
    let (id, method, _) = rig.far.request().await;
    assert_eq!(method, Method::ToolsList);
    rig.far.result(&id, list).await;
}

#[tokio::test(start_paused = true)]
async fn lists_that_do_not_fit_leave_the_older_ones_and_the_upstream_says_why() {
    let budget = Budget::new(64 * MIB);
    let mut rig = offering(&budget, &tools("a", 16, MIB / 8)).await;
    let kept = budget.used_by(Kind::List);
    assert!((2 * MIB..3 * MIB).contains(&kept), "what is kept is counted: {kept}");
    assert_eq!(budget.used_by(Kind::Line), 0, "nothing of the page is kept");
    rig.far.notify("notifications/tools/list_changed", "{}").await;
    reads(&mut rig, &tools("b", 160, MIB / 8)).await;
    // It is asked again, since there may be room by then.
    let (id, ..) = rig.far.request().await;
    let health = rig.board.snapshot().remove(0);
    let cause = health.cause.unwrap_or_default();
    assert_eq!(health.state, State::Degraded, "{cause:?}");
    assert!(cause.full().contains("no room for it within `server.memory_limit`"), "{cause:?}");
    let inventory = rig.upstream().inventory().borrow().clone().unwrap();
    assert_eq!((inventory.tools.len(), &*inventory.tools[0].key), (16, "a0"), "the older list stays");
    assert_eq!(budget.used_by(Kind::List), kept);
    rig.far.result(&id, &tools("c", 8, MIB / 8)).await;
    rig.far.notify("notifications/tools/list_changed", "{}").await;
    let (id, ..) = rig.far.request().await;
    assert_eq!(rig.upstream().state(), State::Ready, "it is over");
    assert_eq!(rig.upstream().inventory().borrow().as_ref().unwrap().tools.len(), 8);
    drop(inventory);
    assert!(budget.used_by(Kind::List) < kept, "the older list is gone: {}", budget.used());
    rig.far.result(&id, r#"{"tools":[]}"#).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_does_not_fit_is_read_ever_later_and_the_upstream_says_when() {
    let mut rig = Rig::within(&Budget::new(MIB), config());
    let peer = rig.met(LEGACY, r#"{"tools":{}}"#);
    let begun = tokio::time::Instant::now();
    rig.tasks.spawn_until_end(crate::upstream::supervise::keep_inventory(rig.instance.clone(), peer, begun));
    let mut asked = Vec::new();
    for _ in 0..12 {
        let (id, method, _) = rig.far.request().await;
        assert_eq!(method, Method::ToolsList);
        asked.push(begun.elapsed().as_secs());
        rig.far.result(&id, &tools("a", 16, MIB / 32)).await;
    }
    assert_eq!(asked, [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 811, 1111], "twice as late, five minutes at most");
    let cause = rig.board.snapshot().remove(0).cause.unwrap_or_default();
    assert!(cause.full().ends_with("the last known list stays, read again in 300 s"), "{cause:?}");
    // What the upstream announces is read at once.
    rig.far.notify("notifications/tools/list_changed", "{}").await;
    reads(&mut rig, r#"{"tools":[{"name":"small"}]}"#).await;
    assert!(begun.elapsed() < Duration::from_secs(1_200), "{:?}", begun.elapsed());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(rig.upstream().state(), State::Ready, "it fits");
}

#[tokio::test(start_paused = true)]
async fn many_small_definitions_are_counted_with_what_each_takes() {
    let budget = Budget::new(64 * MIB);
    let _rig = offering(&budget, &tools("a", 5_000, 0)).await;
    let counted = budget.used_by(Kind::List);
    assert!(counted > 5_000 * size_of::<crate::upstream::instance::inventory::Item>(), "{counted}");
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_is_too_large_is_left_out_and_the_others_stay() {
    let budget = Budget::new(64 * MIB);
    let large = tools("large", 2, MIB).replace("]}", r#",{"name":"small"}]}"#);
    let rig = offering(&budget, &large).await;
    let inventory = rig.upstream().inventory().borrow().clone().unwrap();
    assert_eq!(inventory.tools.iter().map(|tool| &*tool.key).collect::<Vec<_>>(), ["small"]);
    let left_out: Vec<_> = inventory.tools.left_out().collect();
    assert_eq!(left_out, ["large0", "large1"].map(|name| (name, "its definition has more than 1 MiB")));
    assert_eq!((rig.upstream().state(), budget.used()), (State::Ready, 0));
    let health = rig.board.snapshot().remove(0);
    let remark = "`tools/list`: definitions of more than 1 MiB are left out: 2, the first is `large0`";
    assert_eq!(health.remarks.values().collect::<Vec<_>>(), [remark]);
    let last = health.last_error.unwrap().cause;
    assert_eq!(last.full(), "a definition is too large: `large0`");
}
