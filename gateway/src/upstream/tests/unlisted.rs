//! Lists that could not be read: shown, asked for again, and over when they were read.

use super::*;

const LISTS: &str = r#"{"tools":{}}"#;

#[tokio::test(start_paused = true)]
async fn what_could_not_be_read_is_shown_and_asked_for_again_ever_later_until_it_was() {
    let mut rig = Rig::new(config());
    let peer = rig.met(LEGACY, LISTS);
    let inventory = rig.upstream().inventory();
    let begun = tokio::time::Instant::now();
    rig.tasks.spawn_until_end(crate::upstream::supervise::keep_inventory(rig.instance.clone(), peer, begun));
    let mut asked = Vec::new();
    for _ in 0..9 {
        let (id, method, _) = rig.far.request().await;
        assert_eq!(method, Method::ToolsList);
        asked.push(begun.elapsed().as_secs());
        rig.far.error(&id, -32603).await;
    }
    assert_eq!(asked, [0, 1, 3, 7, 11, 15, 19, 23, 27], "twice as late each time, four seconds at most");
    let health = rig.board.snapshot().remove(0);
    assert_eq!(health.state, State::Degraded, "it is there, and nothing can be used");
    let cause = health.cause.unwrap();
    let cause = cause.full();
    assert!(cause.starts_with("`tools/list` could not be read (error -32603"), "{cause}");
    assert!(!rig.upstream().is_whole());
    let (id, ..) = rig.far.request().await;
    rig.far.result(&id, r#"{"tools":[{"name":"late"}]}"#).await;
    let (id, ..) = {
        rig.far.notify("notifications/tools/list_changed", "{}").await;
        rig.far.request().await
    };
    let health = rig.board.snapshot().remove(0);
    assert_eq!((health.state, health.cause), (State::Ready, None), "it is over");
    assert_eq!(&*inventory.borrow().as_ref().unwrap().tools[0].key, "late");
    assert!(rig.upstream().is_whole());
    // What fails then keeps what is known.
    rig.far.result(&id, r#"{"tools":"none"}"#).await;
    let (id, ..) = rig.far.request().await;
    assert_eq!((rig.upstream().state(), inventory.borrow().as_ref().unwrap().tools.len()), (State::Degraded, 1));
    rig.far.result(&id, r#"{"tools":[]}"#).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_advertised_and_not_there_is_remarked() {
    let mut rig = Rig::new(config());
    let peer = rig.met(LEGACY, LISTS);
    let mut inventory = rig.upstream().inventory();
    rig.tasks.spawn_until_end(crate::upstream::supervise::keep_inventory(
        rig.instance.clone(),
        peer,
        tokio::time::Instant::now(),
    ));
    let (id, ..) = rig.far.request().await;
    rig.far.error(&id, -32601).await;
    assert!(known(&mut inventory).await.tools.is_empty());
    let health = rig.board.snapshot().remove(0);
    assert_eq!(health.remarks["tools"], "`tools/list` is advertised but answered as unknown");
}

#[tokio::test(start_paused = true)]
async fn an_upstream_whose_first_list_does_not_come_is_shown_with_what_it_waits_for_and_is_waited_for_no_longer() {
    let mut rig = Rig::new(config());
    let peer = rig.met(LEGACY, LISTS);
    let begun = tokio::time::Instant::now();
    rig.tasks.spawn_until_end(crate::upstream::supervise::keep_inventory(rig.instance.clone(), peer, begun));
    let (id, ..) = rig.far.request().await;
    assert!(!rig.upstream().has_failed(), "it may still come");
    tokio::time::sleep(Duration::from_secs(6)).await;
    let health = rig.board.snapshot().remove(0);
    let cause = health.cause.unwrap_or_default();
    assert_eq!((health.state, &*cause.full()), (State::Starting, "connected, but no answer to `tools/list` yet"));
    assert!(rig.upstream().has_failed(), "no list and no call waits for it");
    rig.far.result(&id, r#"{"tools":[]}"#).await;
    known(&mut rig.upstream().inventory()).await;
    assert!(rig.far.is_quiet().await);
    let health = rig.board.snapshot().remove(0);
    assert_eq!((health.state, health.cause, health.has_failed), (State::Ready, None, false));
}

#[tokio::test(start_paused = true)]
async fn a_cursor_that_is_no_string_and_texts_that_not_all_can_read_are_remarked_until_they_are_gone() {
    let mut rig = Rig::new(config());
    let peer = rig.met(LEGACY, LISTS);
    let mut inventory = rig.upstream().inventory();
    let begun = tokio::time::Instant::now();
    rig.tasks.spawn_until_end(crate::upstream::supervise::keep_inventory(rig.instance.clone(), peer, begun));
    let (id, ..) = rig.far.request().await;
    let torn = r#"{"name":"t","description":"half \ud83d","inputSchema":{}}"#;
    rig.far.result(&id, &format!(r#"{{"tools":[{torn},{{"name":"good"}}],"nextCursor":7}}"#)).await;
    assert_eq!(known(&mut inventory).await.tools.len(), 2, "what was read is there");
    let health = rig.board.snapshot().remove(0);
    assert_eq!(health.remarks["tools"], "`tools/list` is cut: its `nextCursor` is no string; what was read stays");
    let remark = &health.remarks["torn tools"];
    assert!(remark.contains("half of a UTF-16 pair") && remark.ends_with(": 1, the first is in `t`"), "{remark}");
    rig.far.notify("notifications/tools/list_changed", "{}").await;
    let (id, ..) = rig.far.request().await;
    rig.far.result(&id, r#"{"tools":[{"name":"good"}],"nextCursor":null}"#).await;
    inventory.changed().await.unwrap();
    assert_eq!(rig.board.snapshot().remove(0).remarks, Default::default());
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_offers_nothing_is_ready_with_a_remark_until_it_offers_something() {
    let mut rig = Rig::new(config());
    let peer = rig.met(LEGACY, LISTS);
    let mut inventory = rig.upstream().inventory();
    let begun = tokio::time::Instant::now();
    rig.tasks.spawn_until_end(crate::upstream::supervise::keep_inventory(rig.instance.clone(), peer, begun));
    let (id, ..) = rig.far.request().await;
    rig.far.result(&id, r#"{"tools":[]}"#).await;
    assert!(known(&mut inventory).await.tools.is_empty());
    let health = rig.board.snapshot().remove(0);
    assert_eq!((health.state, &*health.remarks["empty"]), (State::Ready, "it offers no tools, resources or prompts"));
    rig.far.notify("notifications/tools/list_changed", "{}").await;
    let (id, ..) = rig.far.request().await;
    rig.far.result(&id, r#"{"tools":[{"name":"late"}]}"#).await;
    inventory.changed().await.unwrap();
    assert_eq!(rig.board.snapshot().remove(0).remarks, Default::default());
}
