//! Streams of changes over which nothing comes: whoever is behind them may be gone, and they are asked for anew.

use super::super::config::{Checks, Config, Transport};
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

/// An upstream whose stream, which this line of its story asks for, begins so and then trickles within an event.
async fn it_is_given_up(
    line: &'static str,
    answer: fn(&Seen) -> Option<String>,
    begins: fn(&Seen) -> String,
    change: impl FnOnce(Config) -> Config,
) {
    let streams: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let opened = streams.clone();
    let host = Host::start(move |seen| {
        let opened = opened.clone();
        Box::pin(async move {
            if line == format!("{} {}", seen.verb, seen.method()).trim() {
                seen.write(format!("{OPEN}{}data: {{", begins(&seen)));
                opened.lock().unwrap().push(seen);
                return std::future::pending().await;
            }
            answer(&seen).unwrap_or_else(|| super::host::empty(202))
        })
    })
    .await;
    let config = Config { health: Checks { interval: None, ..Checks::default() }, ..host.config() };
    let (upstream, _board, tasks) = start(change(config));
    saw(&host, line, 1).await;
    // Less than a stream may be silent, and it is not silent.
    for _ in 0..240 {
        if host.count(line) > 1 {
            break;
        }
        streams.lock().unwrap()[0].write("\"");
        silence(Duration::from_secs(1)).await;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(host.count(line) > 1, "the stream is still read");
    tasks.end();
    bounded(upstream.stopped()).await;
}

fn in_session(seen: &Seen) -> Option<String> {
    legacy(seen, "s1")
}

#[tokio::test]
async fn half_an_event_of_a_background_stream_is_not_waited_for_without_end() {
    it_is_given_up("GET", in_session, |_| String::new(), |config| config).await;
}

#[tokio::test]
async fn half_an_event_of_a_stream_of_a_stateless_upstream_is_not_waited_for_without_end() {
    let acknowledged = |seen: &Seen| modern(seen).unwrap().split_once("\r\n\r\n").unwrap().1.to_owned();
    it_is_given_up("POST subscriptions/listen", modern, acknowledged, |config| config).await;
}

#[tokio::test]
async fn half_an_event_of_an_upstream_over_http_and_sse_is_not_waited_for_without_end() {
    let endpoint = |_: &Seen| "event: endpoint\ndata: /messages\n\n".to_owned();
    it_is_given_up("GET", in_session, endpoint, |config| {
        let Transport::Http(remote) = config.transport else { panic!("the host is one over HTTP") };
        let transport = Transport::Sse(remote);
        Config { transport, startup_timeout: Duration::from_secs(60 * 60), ..config }
    })
    .await;
}
