//! What the gateway says of itself.

use super::*;

#[tokio::test(start_paused = true)]
async fn an_upstream_that_was_never_seen_counts_as_having_everything() {
    let (a, b) = (Scripted::new("a", "a"), Scripted::new("b", "b"));
    a.offer(Inventory { instructions: Some(Bytes::from_static(br#""use \"x\"""#)), ..inventory(&["x"]) });
    let stage = Stage::new(Strategy::Prefix, &[&a, &b]);
    let before = told(stage.ask(Method::Discover, "{}")).await;
    assert_eq!(
        crate::protocol::json::get(before.as_bytes(), "capabilities").unwrap(),
        br#"{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{},"logging":{}}"#
    );
    b.offer(Inventory { instructions: Some(Bytes::from_static(b"\"b's\"")), ..inventory(&[]) });
    settle().await;
    let after = told(stage.ask(Method::Discover, "{}")).await;
    assert_eq!(
        after,
        r##"{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"instructions":"# a\n\nuse \"x\"\n\n# b\n\nb's"}"##
    );
}

#[tokio::test(start_paused = true)]
async fn an_upstream_counts_as_having_everything_for_a_principal_that_has_yet_to_log_in_there() {
    let a = Scripted::per_principal("a", "a");
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    a.offer_alone_to("ada", Inventory::to_log_in("a"));
    a.offer_alone_to("bob", inventory(&["x"]));
    let capabilities = async |principal| {
        let plain = call(Method::Discover, "{}");
        let caller = Caller { principal: Principal::named(principal), ..(*plain.caller).clone() };
        let told = told(stage.router.handle(Call { caller: Arc::new(caller), ..plain })).await;
        String::from_utf8_lossy(crate::protocol::json::get(told.as_bytes(), "capabilities").unwrap()).into_owned()
    };
    // Of the last one nobody knows yet whether it has logged in.
    for (principal, has_all) in [("ada", true), ("bob", false), ("cyd", true)] {
        let told = capabilities(principal).await;
        assert_eq!((told.contains("\"tools\""), told.contains("\"prompts\"")), (true, has_all), "{principal}: {told}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_single_flat_upstreams_instructions_pass_verbatim() {
    let a = Scripted::new("a", "a");
    a.offer(Inventory { instructions: Some(Bytes::from_static(br#""\u0041 \ud800""#)), ..inventory(&[]) });
    let stage = Stage::new(Strategy::Flat, &[&a]);
    let told = told(stage.ask(Method::Discover, "{}")).await;
    assert_eq!(crate::protocol::json::get(told.as_bytes(), "instructions").unwrap(), br#""\u0041 \ud800""#);
}

#[tokio::test(start_paused = true)]
async fn stateless_clients_are_not_told_of_the_older_tasks() {
    let a = Scripted::new("a", "a");
    let supports = Supports { tasks: true, ..inventory(&[]).supports };
    a.offer(Inventory { supports, revision: Revision::V2025_11_25, ..inventory(&[]) });
    let stage = Stage::new(Strategy::Prefix, &[&a]);
    let told_at = async |revision| {
        let mut asked = call(Method::Discover, "{}");
        asked.caller = Arc::new(Caller { revision, ..(*asked.caller).clone() });
        told(stage.router.handle(asked)).await
    };
    assert!(told_at(Revision::V2025_11_25).await.contains("\"tasks\":"));
    assert!(!told_at(Revision::V2026_07_28).await.contains("\"tasks\":"));
}
