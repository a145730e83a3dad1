//! Lists without end: cut where they are too long, and what was read of them stays.

use super::*;

/// Reads the lists of an upstream whose pages `page` gives, by their number; how many pages were asked for.
async fn read(max_message: usize, page: impl Fn(usize) -> String) -> (Arc<Inventory>, usize) {
    let mut rig = Rig::new(Config { max_message, ..config() });
    let peer = rig.met(LEGACY, r#"{"tools":{}}"#);
    let mut inventory = rig.upstream().inventory();
    rig.tasks.spawn_until_end(crate::upstream::supervise::keep_inventory(
        rig.instance.clone(),
        peer,
        tokio::time::Instant::now(),
    ));
    let mut pages = 0;
    let known = loop {
        tokio::select! {
            biased;
            known = known(&mut inventory) => break known,
            (id, method, _) = rig.far.request() => {
                assert_eq!(method, Method::ToolsList);
                rig.far.result(&id, &page(pages)).await;
                pages += 1;
            }
        }
    };
    assert_eq!(rig.upstream().state(), State::Ready, "what was read can be used");
    let remarks = rig.board.snapshot().remove(0).remarks;
    assert!(remarks["tools"].starts_with("`tools/list` is cut: more than "), "it is shown: {remarks:?}");
    (known, pages)
}

fn tools(count: usize, page: usize) -> String {
    let tool = |at: usize| format!("{{\"name\":\"t{page}_{at}\"}}");
    (0..count).map(tool).collect::<Vec<_>>().join(",")
}

#[tokio::test(start_paused = true)]
async fn pages_without_end_are_cut_and_what_was_read_stays() {
    let page = |number| format!("{{\"tools\":[{}],\"nextCursor\":\"{number}\"}}", tools(1, number));
    let (inventory, pages) = read(1 << 20, page).await;
    assert_eq!((pages, inventory.tools.len()), (1000, 1000));
}

#[tokio::test(start_paused = true)]
async fn a_million_items_are_cut_and_the_first_ones_stay() {
    let page = |number| format!("{{\"tools\":[{}],\"nextCursor\":\"{number}\"}}", tools(4_000, number));
    let (inventory, pages) = read(1 << 20, page).await;
    assert_eq!((pages, inventory.tools.len()), (3, 10_000), "nothing more is asked for");
    assert_eq!(&*inventory.tools[9_999].key, "t2_1999");
    let left_out: Vec<_> = inventory.tools.left_out().collect();
    assert_eq!((left_out.len(), left_out[0].0), (1000, "t2_2000"), "of those beyond so many are named");
    assert!(left_out[0].1.contains("more than is kept"), "{left_out:?}");
}

#[tokio::test(start_paused = true)]
async fn a_page_of_any_number_of_items_is_cut_and_the_first_ones_stay() {
    for count in [50_000, 70_000] {
        let (inventory, pages) = read(4 << 20, |number| format!("{{\"tools\":[{}]}}", tools(count, number))).await;
        assert_eq!((pages, inventory.tools.len()), (1, 10_000), "of {count}");
        assert_eq!(&*inventory.tools[9_999].key, "t0_9999");
    }
}

#[tokio::test(start_paused = true)]
async fn pages_of_many_megabytes_are_cut_together() {
    let text = "x".repeat((1 << 20) - 1024);
    let tool = |number, at| format!("{{\"name\":\"t{number}_{at}\",\"description\":\"{text}\"}}");
    let page = |number| {
        let tools = (0..20).map(|at| tool(number, at)).collect::<Vec<_>>().join(",");
        format!("{{\"tools\":[{tools}],\"nextCursor\":\"{number}\"}}")
    };
    let (inventory, pages) = read(64 << 20, page).await;
    assert_eq!((pages, inventory.tools.len()), (4, 80), "64 MiB are reached with the fourth");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_announces_a_change_of_itself_is_read_ever_more_slowly() {
    let mut rig = Rig::new(config());
    let peer = rig.met(LEGACY, r#"{"tools":{}}"#);
    rig.tasks.spawn_until_end(crate::upstream::supervise::keep_inventory(
        rig.instance.clone(),
        peer,
        tokio::time::Instant::now(),
    ));
    let (begun, mut reads) = (tokio::time::Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(60) {
        let (id, _, _) = rig.far.request().await;
        rig.far.notify("notifications/tools/list_changed", "{}").await;
        rig.far.result(&id, r#"{"tools":[{"name":"a"}]}"#).await;
        reads += 1;
    }
    assert!(reads <= 30, "{reads}");
}
