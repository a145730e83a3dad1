//! The background stream of a session that is refused for now.

use super::super::*;
use super::host::{Host, json};
use super::http::{bounded, is, legacy, start};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[tokio::test]
async fn a_stream_that_is_refused_for_now_is_asked_for_again_and_what_was_missed_is_read() {
    let asked = Arc::new(AtomicUsize::new(0));
    let host = Host::start(move |seen| {
        let asked = asked.clone();
        Box::pin(async move {
            match seen.verb.as_str() {
                "GET" if asked.fetch_add(1, Ordering::SeqCst) == 0 => json(503, "", "it is full"),
                "GET" => {
                    seen.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n");
                    std::future::pending().await
                }
                _ => legacy(&seen, "s1").unwrap(),
            }
        })
    })
    .await;
    let (_upstream, board, _tasks) = start(host.config());
    is(&board, State::Ready).await;
    bounded(async {
        while host.count("GET") < 2 || host.count("POST tools/list") < 2 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    assert_eq!(host.count("POST initialize"), 1, "the session is as good as it was");
}
