//! Streams of changes over which nothing comes: whoever is behind them may be gone, and they are asked for anew.

use super::super::config::{Checks, Config};
use super::host::{Host, Seen};
use super::http::{bounded, is, legacy, modern, start};
use crate::health::row::State;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const OPEN: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const CHANGED: &str = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";
/// Not quite so long may a stream be silent.
const A_WHILE: Duration = Duration::from_secs(4 * 60);

/// Waits for so many lines of the story.
async fn saw(host: &Host, line: &str, count: usize) {
    bounded(async {
        while host.count(line) < count {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

/// Time passes, and nothing else happens.
async fn silence(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// An upstream whose streams of changes stay open; this line of its story is one that is asked for.
async fn it_is_asked_for_anew(line: &'static str, answer: fn(&Seen) -> Option<String>) {
    let streams: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let opened = streams.clone();
    let host = Host::start(move |seen| {
        let opened = opened.clone();
        Box::pin(async move {
            let is_stream = line == format!("{} {}", seen.verb, seen.method()).trim();
            match answer(&seen) {
                Some(answer) if !is_stream => answer,
                taken => {
                    let taken = taken.and_then(|text| Some(text.split_once("\r\n\r\n")?.1.to_owned()));
                    seen.write(format!("{OPEN}{}", taken.unwrap_or_default()));
                    opened.lock().unwrap().push(seen);
                    std::future::pending().await
                }
            }
        })
    })
    .await;
    // It is told to be well whatever its streams are: nobody asks.
    let (upstream, board, tasks) =
        start(Config { health: Checks { interval: None, ..Checks::default() }, ..host.config() });
    is(&board, State::Ready).await;
    saw(&host, "POST tools/list", 1).await;
    // Anything that comes, a comment too, is a sign that somebody is there.
    for heard in 1..=3 {
        silence(A_WHILE).await;
        streams.lock().unwrap()[0].write(format!(": still here\n\n{CHANGED}"));
        saw(&host, "POST tools/list", 1 + heard).await;
        assert_eq!(host.count(line), 1);
    }
    let listed = host.count("POST tools/list");
    silence(2 * A_WHILE).await;
    saw(&host, line, 2).await;
    // What was told where nobody heard it counts as having happened.
    saw(&host, "POST tools/list", listed + 1).await;
    assert_eq!(upstream.state(), State::Ready);
    tasks.end();
    bounded(upstream.stopped()).await;
}

#[tokio::test]
async fn a_background_stream_that_is_silent_for_minutes_is_opened_anew() {
    it_is_asked_for_anew("GET", |seen| (seen.verb != "GET").then(|| legacy(seen, "s1")).flatten()).await;
}

#[tokio::test]
async fn a_stream_of_a_stateless_upstream_that_is_silent_for_minutes_is_opened_anew() {
    it_is_asked_for_anew("POST subscriptions/listen", modern).await;
}
