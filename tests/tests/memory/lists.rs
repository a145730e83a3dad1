//! Upstreams that offer huge lists: all that the gateway makes of them is counted, and what has no room is refused with a word.

use super::*;

#[tokio::test]
async fn lists_that_have_no_room_are_refused_and_those_that_have_are_listed_to_everybody() {
    let _part = crate::part().await;
    // Three MiB of definitions, and fifteen on pages that are small each.
    let (fits, huge) = (shell::lister(6, 16, 32 << 10), shell::lister(1_000, 1, 15 << 10));
    let config = tokens().program("huge", &huge, "").program("up", &fits, "");
    let stage = begin(config).await;
    let cause = "no room for it within `server.memory_limit`";
    let page = stage.gateway.look_until("/readyz?verbose", "huge says why", |page| page.contains(cause)).await;
    assert!(page.contains("degraded"), "{page}");
    for _ in 0..2 {
        for revision in Revision::ALL {
            let client = stage.client_of(revision).await;
            let names = within("all of it is listed", client.tools()).await;
            let listed = names.iter().filter(|name| name.starts_with("up__")).count();
            assert_eq!(listed, 96, "{revision:?}: {}", names.len());
        }
        stage.serves().await;
    }
    stage.has_had_less_than(LIMIT);
}
