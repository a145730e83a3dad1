//! Lists: order, pages, grants, and for whom they wait.

use super::*;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn lists_are_merged_in_configuration_order() {
    let (a, b) = (Scripted::new("a", "a"), Scripted::new("b", "b"));
    b.offer(inventory(&["y", "x"]));
    a.offer(inventory(&["z"]));
    let stage = Stage::new(Strategy::Prefix, &[&a, &b]);
    assert_eq!(
        told(stage.ask(Method::ToolsList, "{}")).await,
        r#"{"tools":[{"name":"a__z","x":1e400},{"name":"b__y","x":1e400},{"name":"b__x","x":1e400}]}"#
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_waits_for_unseen_upstreams_once() {
    let (well, hung) = (Scripted::new("well", "well"), Scripted::new("hung", "hung"));
    let stage = Stage::new(Strategy::Prefix, &[&well, &hung]);
    let began = Instant::now();
    let first = stage.ask(Method::ToolsList, "{}");
    tokio::time::advance(Duration::from_millis(500)).await;
    well.offer(inventory(&["x"]));
    let second = stage.ask(Method::ToolsList, "{}");
    assert_eq!(names(first).await, ["well__x"]);
    assert_eq!(began.elapsed().as_secs(), 2, "the hung upstream was waited for");
    assert_eq!(names(second).await, ["well__x"]);
    assert_eq!(names(stage.ask(Method::ToolsList, "{}")).await, ["well__x"]);
    assert_eq!(began.elapsed().as_secs(), 2, "nobody waits for it again");
}

#[tokio::test(start_paused = true)]
async fn a_list_is_answered_as_soon_as_all_are_known() {
    let (a, failed) = (Scripted::new("a", "a"), Scripted::new("failed", "failed"));
    *failed.state.lock().unwrap() = State::Failed;
    let stage = Stage::new(Strategy::Prefix, &[&a, &failed]);
    let began = Instant::now();
    let list = stage.ask(Method::ToolsList, "{}");
    a.offer(inventory(&["x"]));
    assert_eq!(names(list).await, ["a__x"]);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_list_does_not_wait_for_what_has_failed_and_is_tried_again() {
    let (well, broken) = (Scripted::new("well", "well"), Scripted::new("broken", "broken"));
    well.offer(inventory(&["x"]));
    let stage = Stage::new(Strategy::Prefix, &[&well, &broken]);
    broken.stands(State::BackingOff);
    let began = Instant::now();
    assert_eq!(names(stage.ask(Method::ToolsList, "{}")).await, ["well__x"]);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_list_does_not_wait_any_longer_for_what_fails_meanwhile() {
    let failing = Scripted::new("failing", "failing");
    let well = Scripted::new("well", "well");
    well.offer(inventory(&["x"]));
    let stage = Stage::new(Strategy::Prefix, &[&failing, &well]);
    let began = Instant::now();
    let mut list = std::pin::pin!(names(stage.ask(Method::ToolsList, "{}")));
    let waits = tokio::time::timeout(Duration::from_millis(300), &mut list).await;
    assert!(waits.is_err(), "it may come yet");
    failing.stands(State::Failed);
    assert_eq!(list.await, ["well__x"]);
    assert_eq!(began.elapsed().as_millis(), 300, "nobody waits for what is known not to come");
}

#[tokio::test(start_paused = true)]
async fn pages_lead_through_the_whole_list_and_old_cursors_are_refused() {
    let a = Scripted::new("a", "");
    a.offer(inventory(&["1", "2", "3", "4", "5", "6", "7"]));
    let stage = Stage::paged(Strategy::Prefix, 3, &[&a]);
    let (mut seen, mut cursor) = (Vec::new(), String::from("null"));
    let mut last = String::new();
    while !cursor.is_empty() {
        let params = format!("{{\"cursor\":{cursor}}}");
        last = cursor;
        let page = told(stage.ask(Method::ToolsList, &params)).await;
        cursor = crate::protocol::json::get(page.as_bytes(), "nextCursor")
            .map(|raw| String::from_utf8(raw.to_vec()).unwrap())
            .unwrap_or_default();
        seen.extend(names(stage.ask(Method::ToolsList, &params)).await);
    }
    assert_eq!(seen, ["1", "2", "3", "4", "5", "6", "7"]);
    a.offer(inventory(&["1", "2", "3", "4"]));
    settle().await;
    for cursor in [last.as_str(), "\"\"", "7", "\"x\""] {
        let refused = told(stage.ask(Method::ToolsList, &format!("{{\"cursor\":{cursor}}}"))).await;
        assert!(refused.starts_with("InvalidParams: Invalid cursor"), "{cursor}: {refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cursor_of_a_list_that_shows_more_is_refused_for_who_may_see_less() {
    let a = Scripted::new("a", "");
    a.offer(inventory(&["1", "2", "3", "4", "5", "6", "7"]));
    let stage = Stage::paged(Strategy::Prefix, 2, &[&a]);
    let of = |grants: &Grants, params: &str| {
        let mut asked = call(Method::ToolsList, params);
        asked.caller = Arc::new(Caller { grants: grants.clone(), ..(*asked.caller).clone() });
        told(stage.router.handle(asked))
    };
    let next =
        |page: &str| String::from_utf8(crate::protocol::json::get(page.as_bytes(), "nextCursor").unwrap().to_vec());
    let (all, some) = (Grants::all(), tools_alone(&["1", "2", "3", "6", "7"]));
    let [of_all, of_some] = [next(&of(&all, "{}").await).unwrap(), next(&of(&some, "{}").await).unwrap()];
    for (grants, own, other) in [(&all, &of_all, &of_some), (&some, &of_some, &of_all)] {
        assert!(of(grants, &format!("{{\"cursor\":{own}}}")).await.contains("\"3\""));
        let refused = of(grants, &format!("{{\"cursor\":{other}}}")).await;
        assert!(refused.starts_with("InvalidParams: Invalid cursor"), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stateless_caller_sees_what_its_revision_has_and_only_what_it_may() {
    let a = Scripted::new("a", "a");
    a.offer(inventory(&["x", "y"]));
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    let grants = tools_alone(&["a__y"]);
    let mut asked = call(Method::ToolsList, "{}");
    asked.caller = Arc::new(Caller { grants, revision: Revision::V2026_07_28, ..(*asked.caller).clone() });
    assert_eq!(
        told(stage.router.handle(asked)).await,
        r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"a__y","x":1e400}]}"#
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_holds_as_long_as_each_of_its_parts_and_less_as_they_grow_old() {
    let (a, b, none) = (Scripted::new("a", "a"), Scripted::new("b", "b"), Scripted::new("none", "none"));
    let offers = |seconds: Option<u64>| {
        let offers = inventory(&["x"]);
        let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        offers.fresh.read(&Method::ToolsList, until);
        offers
    };
    a.offer(offers(Some(9)));
    b.offer(offers(Some(7)));
    none.offer(Inventory { supports: Supports::default(), ..inventory(&[]) });
    let stage = Stage::new(Strategy::Prefix, &[&a, &b, &none]);
    let holds = async |method: Method, revision| {
        let asked = call(method, "{}");
        let caller = Arc::new(Caller { revision, ..(*asked.caller).clone() });
        let page = told(stage.router.handle(Call { caller, ..asked })).await;
        crate::protocol::json::get(page.as_bytes(), "ttlMs").map(|raw| String::from_utf8(raw.to_vec()).unwrap())
    };
    let modern = Revision::V2026_07_28;
    assert_eq!(holds(Method::ToolsList, modern).await.as_deref(), Some("7000"), "who has no tools has no say");
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(holds(Method::ToolsList, modern).await.as_deref(), Some("5000"));
    assert_eq!(holds(Method::PromptsList, modern).await.as_deref(), Some("0"), "nobody has said anything");
    assert_eq!(holds(Method::ToolsList, Revision::V2025_11_25).await, None);
    tokio::time::advance(Duration::from_secs(6)).await;
    assert_eq!(holds(Method::ToolsList, modern).await.as_deref(), Some("0"));
    a.offer(offers(Some(9)));
    b.offer(offers(None));
    settle().await;
    assert_eq!(holds(Method::ToolsList, modern).await.as_deref(), Some("0"), "one of them says nothing");
}

/// A tool whose definition has so many bytes.
fn large(name: &str, bytes: usize) -> Item {
    let definition = format!("{{\"name\":\"{name}\",\"description\":\"{}\"}}", "x".repeat(bytes));
    Item::new(name.into(), Object::parse(definition.into()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn what_the_catalog_keeps_of_lists_is_counted_and_what_has_no_room_is_written_anew_each_time() {
    const MIB: usize = 1 << 20;
    let budget = Budget::new(64 * MIB);
    let a = Scripted::new("a", "a");
    a.offer(Inventory { tools: (0..12).map(|at| large(&format!("t{at}"), MIB / 2)).collect(), ..inventory(&[]) });
    let stage = Stage::within(&budget, Strategy::Prefix, &[&a]);
    assert_eq!(budget.used(), 0, "public names are put in as lists are written: no definition is there twice");
    let ask = |revision: Revision| {
        let plain = call(Method::ToolsList, "{}");
        let caller = Caller { revision, ..(*plain.caller).clone() };
        stage.router.handle(Call { caller: Arc::new(caller), ..plain })
    };
    let mut sizes = Vec::new();
    for revision in Revision::ALL {
        assert!(names(ask(revision)).await.contains(&"a__t0".to_owned()), "{revision}");
        sizes.push(budget.used_by(MemoryKind::List) / MIB);
    }
    assert_eq!(sizes[0], 6, "one list in the words of one revision");
    assert!(sizes.iter().all(|size| *size <= 8), "all of them have half of a quarter: {sizes:?}");
    assert_eq!(budget.used(), budget.used_by(MemoryKind::List), "what was written for once is gone");
    a.offer(inventory(&["x"]));
    settle().await;
    tokio::time::advance(Duration::from_secs(3)).await;
    settle().await;
    assert_eq!(names(ask(Revision::V2025_06_18)).await, ["a__x"]);
    assert_eq!(budget.used(), 0);
}
