//! Task ids that stand twice in a request: nobody reaches another's task by them.

use trunkline_tests::client::Request;
use trunkline_tests::revision::Revision;
use trunkline_tests::upstream::Way;

use super::{EXTENSION, Stage, about, as_task, id_in, of_two, until_status};

/// The first of two keys was judged and the upstream took the last: one principal read and cancelled another's tasks.
#[tokio::test]
async fn a_task_of_another_principal_is_not_reached_by_an_id_that_stands_twice() {
    for revision in [Revision::R2025_11_25, Revision::R2026_07_28] {
        let stage = Stage::set_with(Way::Http, revision, of_two()).await;
        let (ann, bob) = (&stage.named("ann", revision).await, &stage.named("bob", revision).await);
        let hers = id_in(&ann.request(as_task(revision, "{\"polls\":1000000}")).await);
        let mine = id_in(&bob.request(as_task(revision, "{\"polls\":1000000}")).await);
        until_status(ann, &hers, "working").await;
        until_status(bob, &mine, "working").await;
        for method in ["tasks/get", "tasks/cancel"] {
            for own in ["own-0", "own-1", &hers] {
                for key in ["taskId", "task\\u0049d", "TaskId", "ta\u{17f}kId", "tas\\u212aId", "taskId\\u0000"] {
                    for params in [
                        format!("{{\"taskId\":\"{mine}\",\"{key}\":\"{own}\"}}"),
                        format!("{{\"{key}\":\"{own}\",\"taskId\":\"{mine}\"}}"),
                    ] {
                        let asked = Request::new(method, &params);
                        let asked = if revision.is_modern() { asked.capabilities(EXTENSION) } else { asked };
                        let refused = bob.request(asked).await;
                        // Over stateless HTTP the header may be found to differ before.
                        assert!([-32602, -32020].contains(&refused.code()), "{params}: {refused:?}");
                    }
                }
            }
            let tie = format!("{{\"taskId\":\"{hers}\"}}");
            let tied = about(revision, method, &mine).meta("io.modelcontextprotocol/related-task", &tie);
            assert_eq!(bob.request(tied).await.code(), -32602);
        }
        until_status(ann, &hers, "working").await;
        until_status(bob, &mine, "working").await;
    }
}
