//! A thousand handshake sessions over one HTTP upstream that gives sessions: each that calls has its own there, what it takes is counted,
//! and all are ended with their clients, however those end.

#![allow(clippy::disallowed_methods)] // a test's tasks end with its runtime

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use trunkline_tests::client::Client;
use trunkline_tests::client::http::exchange;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::{Event, What};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::until_within;

const SESSIONS: usize = 1000;
/// Those that only list, and have none at the upstream.
const LISTENERS: usize = 100;
/// Requests that are under way at once.
const AT_ONCE: usize = 32;
const PATIENCE: Duration = Duration::from_secs(240);
/// What the ledger counts for the session of one client at the upstream.
const COUNTED: std::ops::RangeInclusive<u64> = 40 * 1024..=60 * 1024;
/// So much may come and go meanwhile: a few connections.
const SLACK: u64 = 512 * 1024;

const JSON: (&str, &str) = ("content-type", "application/json");
const GREETING: &str = concat!(
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",",
    "\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}"
);
const LIST: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}";

/// How a client comes to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It ends its session.
    Leaves,
    /// It is killed: its stream is reset, and nothing more is heard of it.
    Killed,
}

/// A client: its session, and the stream that it holds open.
struct Guest {
    id: String,
    stream: TcpStream,
}

async fn join(url: &str) -> Guest {
    let greeted = exchange(url, "POST", &[JSON], GREETING).await;
    let id = greeted.header("mcp-session-id").expect("a session").to_owned();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    // As hosts do; and a session with a stream is not idle, however slow this machine is.
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let head =
        format!("GET /mcp HTTP/1.1\r\nhost: {address}\r\naccept: text/event-stream\r\nmcp-session-id: {id}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("it reads");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.expect("it answers");
    assert_eq!(&answer, b"HTTP/1.1 200");
    Guest { id, stream }
}

async fn post(url: &str, guest: &Guest, body: &str) -> String {
    let answer = exchange(url, "POST", &[JSON, ("mcp-session-id", &guest.id)], body).await;
    answer.result().to_owned()
}

/// Does this for all, a few at a time.
async fn all<T: Send + 'static, R: Send + 'static, F: Future<Output = R> + Send + 'static>(
    those: Vec<T>,
    act: impl Fn(T) -> F + Send + Sync + 'static,
) -> Vec<R> {
    let (room, act) = (Arc::new(Semaphore::new(AT_ONCE)), Arc::new(act));
    let mut running = JoinSet::new();
    for one in those {
        let (room, act) = (room.clone(), act.clone());
        running.spawn(async move {
            let _place = room.acquire().await.expect("it stays open");
            act(one).await
        });
    }
    running.join_all().await
}

/// What the ledger counts, of all kinds.
async fn counted(gateway: &Gateway) -> u64 {
    let page = String::from_utf8_lossy(&gateway.look("/metrics").await.body).into_owned();
    let of = |line: &str| -> Option<f64> { line.rsplit(' ').next()?.parse().ok() };
    page.lines().filter(|line| line.starts_with("trunkline_memory_bytes{")).filter_map(of).sum::<f64>() as u64
}

async fn sessions_are(upstream: &Upstream, what: &str, expected: usize) {
    until_within(PATIENCE, what, async || (upstream.sessions().len() == expected).then_some(())).await;
}

/// The sessions in which calls arrived.
fn called_in(upstream: &Upstream) -> BTreeSet<String> {
    let session = |event: &Event| match &event.what {
        What::Frame { raw, headers } if raw.contains("\"tools/call\"") => {
            headers.iter().find(|(name, _)| name == "mcp-session-id").map(|(_, id)| id.clone())
        }
        _ => None,
    };
    upstream.events.all().iter().filter_map(session).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long; .ci/full runs it"]
async fn a_thousand_sessions_have_each_their_own_which_ends_with_them() {
    let _alone = super::whole().await;
    // One that tells of nothing: no stream of it is held open for each of them.
    let quiet = |script: &mut Script| script.capabilities = "{\"tools\":{}}".into();
    let upstream = Upstream::http(Script::new("up", Revision::R2025_11_25).with(quiet)).await;
    let session = "[server.session]\nidle_timeout = \"2s\"";
    let config = Config::new().upstream_with(&upstream, &format!("max_sessions = {SESSIONS}")).section(session);
    let gateway = Gateway::serve(&config).await;
    let first = Client::connect(&gateway.reach(), Revision::MODERN).await;
    first.tools_until("the upstream is there", |tools| tools.contains(&"up__echo".into())).await;
    let empty = counted(&gateway).await;
    let url: &'static str = Box::leak(gateway.url.clone().into_boxed_str());
    let guests = all(vec![(); SESSIONS + LISTENERS], move |()| join(url)).await;
    all(guests.iter().map(|guest| guest.id.clone()).collect(), move |id: String| async move {
        let listed = exchange(url, "POST", &[JSON, ("mcp-session-id", &id)], LIST).await;
        assert!(listed.result().contains("up__echo"));
    })
    .await;
    assert_eq!(upstream.sessions().len(), 1, "no list opens one");
    let (mut guests, listeners) = {
        let mut guests = guests;
        let listeners = guests.split_off(SESSIONS);
        (guests, listeners)
    };
    let before = counted(&gateway).await;
    for round in 0..2 {
        guests = all(guests, move |guest: Guest| async move {
            let nonce = &guest.id[guest.id.len() - 16..];
            let call = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{{\"name\":\"up__echo\",\"arguments\":{{\"nonce\":\"{nonce}\"}}}}}}"
            );
            let answer = post(url, &guest, &call).await;
            assert!(answer.contains(nonce) && !answer.contains("state_lost"), "{answer}");
            guest
        })
        .await;
        assert_eq!(called_in(&upstream).len(), SESSIONS, "each in its own, round {round}");
        assert_eq!(upstream.sessions().len(), SESSIONS + 1, "only those that called, and the one for the lists");
    }
    let each = (counted(&gateway).await - before) / SESSIONS as u64;
    assert!(COUNTED.contains(&each), "the ledger counts {each} bytes for the session of one client at the upstream");
    let killed = guests.split_off(SESSIONS / 2);
    all(guests, move |guest: Guest| end(url, guest, End::Leaves)).await;
    sessions_are(&upstream, "those of the clients that left are ended", SESSIONS / 2 + 1).await;
    all(killed, move |guest: Guest| end(url, guest, End::Killed)).await;
    all(listeners, move |guest: Guest| end(url, guest, End::Killed)).await;
    sessions_are(&upstream, "those of the clients that were killed are ended", 1).await;
    let is_gone = async || (counted(&gateway).await < empty + SLACK).then_some(());
    until_within(PATIENCE, "nothing is counted for them", is_gone).await;
    assert_eq!(upstream.complaints().await, Vec::<String>::new());
    let page = String::from_utf8_lossy(&gateway.look("/metrics").await.body).into_owned();
    assert!(page.contains("trunkline_upstream_sessions{upstream=\"up\"} 0"), "{page}");
}

async fn end(url: &str, guest: Guest, how: End) {
    match how {
        End::Leaves => {
            let ended = exchange(url, "DELETE", &[("mcp-session-id", &guest.id)], "").await;
            assert_eq!(ended.status, 200);
        }
        End::Killed => guest.stream.set_zero_linger().expect("a socket takes options"),
    }
}
