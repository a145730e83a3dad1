//! Tasks that run for plain calls.

use trunkline_tests::client::{Desk, tool};
use trunkline_tests::revision::Revision;
use trunkline_tests::upstream::Way;

use super::{Stage, WAYS};

/// Whether a task runs for a plain call. A stateless client of a stateless upstream is told to declare tasks instead.
fn is_driven(client: Revision, upstream: Revision) -> bool {
    !client.is_modern() || !upstream.is_modern()
}

#[tokio::test]
async fn a_plain_call_of_a_task_is_run_to_its_end() {
    for way in WAYS {
        for asking in [Revision::R2025_11_25, Revision::R2026_07_28] {
            let stage = Stage::set(way, asking).await;
            let mut driven = Vec::new();
            for revision in Revision::ALL {
                let client = stage.client(revision, Desk::willing("ada")).await;
                if !is_driven(revision, asking) {
                    let refused = client.call("up__task", "{}").await;
                    assert_eq!(refused.code(), -32021, "{way:?} {revision} of {asking}");
                    continue;
                }
                driven.push(revision);
                let answer = client.call("up__task", &format!("{{\"nonce\":\"{revision}\"}}")).await;
                assert_eq!(answer.text(), "task done", "{way:?} {revision} of {asking}");
                assert!(!answer.result().contains("related-task"), "{}", answer.result());
                stage.content(&[&client]).await;
            }
            let last = driven.last().expect("some are driven").to_string();
            stage.upstream.ran(&last).await;
            assert_eq!(stage.upstream.executed().await.len(), driven.len());
        }
    }
}

#[tokio::test]
async fn a_plain_call_that_is_cancelled_withdraws_its_task() {
    for asking in [Revision::R2025_11_25, Revision::R2026_07_28] {
        for revision in [Revision::R2025_06_18, Revision::R2026_07_28] {
            if !is_driven(revision, asking) {
                continue;
            }
            let stage = Stage::set(Way::Http, asking).await;
            let client = stage.client(revision, Desk::willing("ada")).await;
            let open = client.start(tool("up__task", "{\"polls\":1000000}")).await;
            stage.upstream.received("tasks/get").await;
            open.cancel().await;
            assert_eq!(stage.withdrawn().await, "own-0", "{revision} of {asking}");
            stage.content(&[&client]).await;
        }
    }
}

#[tokio::test]
async fn a_task_that_asks_asks_whoever_made_the_plain_call() {
    for way in WAYS {
        for asking in [Revision::R2025_11_25, Revision::R2026_07_28] {
            let stage = Stage::set(way, asking).await;
            for revision in [Revision::R2025_06_18, Revision::R2025_11_25, Revision::R2026_07_28] {
                if !is_driven(revision, asking) {
                    continue;
                }
                let client = stage.client(revision, Desk::willing("ada")).await;
                let asks = tool("up__task", "{\"plan\":\"form\",\"who\":\"ada\"}");
                let told = client.converse(asks).await.answer;
                assert!(told.text().contains("\"from\":\"ada\""), "{way:?} {revision} of {asking}: {}", told.result());
                assert_eq!(client.desk.asked.all().len(), 1);
                stage.content(&[&client]).await;
            }
        }
    }
}
