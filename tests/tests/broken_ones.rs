//! What an upstream that never came up costs the others' clients: no list waits for it, and its own calls are refused at once.

use std::time::Duration;

use tokio::time::Instant;
use trunkline_tests::client::{Client, tool};
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::process::Program;
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;

const LEGACY: Revision = Revision::R2025_11_25;
/// Half of what a first list on stdio waits at most.
const SOON: Duration = Duration::from_secs(4);

/// An upstream that ends at once, with nothing said.
fn broken() -> Program {
    Program { path: "/bin/sh".into(), args: vec!["-c".into(), "exit 3".into()], env: Vec::new() }
}

#[tokio::test]
async fn a_first_list_on_stdio_does_not_wait_for_an_upstream_that_has_exited() {
    let (kept, well) = (Scratch::new(), Upstream::stdio(Script::new("well", LEGACY)).await);
    let config = Config::new().env("XDG_CACHE_HOME", &kept.path().display().to_string());
    let config = config.upstream(&well).program("broken", &broken(), "");
    // With nothing known, and then with the well one known from the disk.
    for start in ["first", "second"] {
        let gateway = StdioGateway::prepare(&config);
        let client = Client::connect(&gateway.reach(), LEGACY).await;
        let begun = Instant::now();
        let tools = client.tools().await;
        assert!(begun.elapsed() < SOON, "the {start} start: {:?}", begun.elapsed());
        assert!(tools.contains(&"well__echo".into()), "the {start} start: {tools:?}");
    }
}

#[tokio::test]
async fn a_call_to_a_broken_upstream_that_was_never_seen_is_refused_at_once_and_says_when_it_is_tried_again() {
    let well = Upstream::stdio(Script::new("well", LEGACY)).await;
    let keys = "restart = { backoff_min = \"20s\", backoff_max = \"20s\" }";
    let gateway = Gateway::serve(&Config::new().upstream(&well).program("broken", &broken(), keys)).await;
    gateway.says(&["backing_off", "broken"]).await;
    for revision in [LEGACY, Revision::MODERN] {
        let client = Client::connect(&gateway.reach(), revision).await;
        let begun = Instant::now();
        let refused = client.request(tool("broken__x", "{}")).await;
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        let error = refused.error_value();
        assert_eq!(error["code"], -32603, "{error}");
        let data = (&error["data"]["retriable"], &error["data"]["upstream"]);
        assert_eq!(data, (&true.into(), &"broken".into()), "{error}");
        let said = refused.message();
        assert!(said.contains("exited with status 3") && said.contains("; next try in "), "{said}");
        // What no broken upstream can own is as unknown as ever.
        assert_eq!(client.request(tool("well__nothing", "{}")).await.code(), -32602);
    }
}
