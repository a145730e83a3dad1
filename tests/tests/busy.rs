//! An upstream that may have one call at once: who waits, who is refused, what is shown, and what becomes of the queue when it dies.

use trunkline_tests::client::{Client, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::process;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::{Upstream, Way};

fn gated(nonce: &str) -> String {
    format!("{{\"nonce\":\"{nonce}\",\"gate\":\"{nonce}\"}}")
}

#[tokio::test]
async fn the_queue_is_shown_the_newest_refused_and_what_waits_survives_a_restart() {
    for way in [Way::Stdio, Way::Http] {
        for revision in [Revision::R2025_11_25, Revision::MODERN] {
            let upstream = Upstream::start(way, Script::new("up", Revision::R2025_11_25)).await;
            let config = Config::new().upstream_with(&upstream, "max_concurrency = 1\nqueue = 2");
            let gateway = Gateway::serve(&config).await;
            let client = Client::connect(&gateway.reach(), revision).await;
            client.tools_until("the upstream is there", |tools| tools.contains(&"up__wait".into())).await;
            let first = client.start(tool("up__wait", &gated("first"))).await;
            upstream.waiting_at("first").await;
            let mut waiting = Vec::new();
            for (number, nonce) in ["second", "third"].into_iter().enumerate() {
                waiting.push(client.start(tool("up__echo", &format!("{{\"nonce\":\"{nonce}\"}}"))).await);
                let shown = format!("1 in flight  {} queued", number + 1);
                gateway.look_until("/readyz?verbose", &shown, |page| page.contains(&shown)).await;
            }
            let metrics = String::from_utf8_lossy(&gateway.look("/metrics").await.body).into_owned();
            assert!(metrics.contains("trunkline_upstream_queued_calls{upstream=\"up\"} 2"), "{metrics}");
            let busy = client.call("up__echo", "{\"nonce\":\"refused\"}").await;
            let (message, data) = (busy.message(), busy.error_value()["data"].clone());
            assert!(message.contains("busy") && message.contains("`max_concurrency`"), "{message}");
            assert_eq!((&data["upstream"], &data["retriable"]), (&"up".into(), &true.into()));
            let metrics = String::from_utf8_lossy(&gateway.look("/metrics").await.body).into_owned();
            assert!(metrics.contains("trunkline_upstream_busy_total{upstream=\"up\"} 1"), "{metrics}");
            if way == Way::Stdio {
                process::signal(upstream.started(0).await.0, "KILL");
                assert!(first.answer().await.frame().error.is_some(), "it may or may not have run");
            } else {
                upstream.order(trunkline_tests::journal::Order::Open("first".into())).await;
                first.answer().await.text();
            }
            for call in waiting {
                assert!(
                    call.answer().await.frame().result.is_some(),
                    "{way:?} {revision}: nothing of it was sent before"
                );
            }
            let ran: Vec<_> = upstream.executed().await.into_iter().filter(|nonce| nonce != "first").collect();
            assert_eq!(ran, ["second", "third"], "{way:?} {revision}: in their order, once, and the refused one never");
        }
    }
}
