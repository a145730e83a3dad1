//! One client takes what all need: sessions, connections, instances, starts, parked calls, log levels. The others notice nothing.

use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use trunkline_tests::client::converse::asks;
use trunkline_tests::client::http::exchange;
use trunkline_tests::client::{Answer, Client, Desk, Request, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::{Event, What};
use trunkline_tests::process::Program;
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::shell;
use trunkline_tests::upstream::{Upstream, Way};
use trunkline_tests::within::{until, within};

const LEGACY: Revision = Revision::R2025_11_25;
const TOKENS: &str = concat!(
    "[[auth.tokens]]\nname = \"ann\"\ntoken = \"ann-has-a-long-token\"\n",
    "[[auth.tokens]]\nname = \"bob\"\ntoken = \"bob-has-a-long-token\"\n"
);
const ANN: (&str, &str) = ("authorization", "Bearer ann-has-a-long-token");
const BOB: (&str, &str) = ("authorization", "Bearer bob-has-a-long-token");
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;

async fn post(gateway: &Gateway, more: &[(&str, &str)], body: &str) -> Answer {
    let mut headers = vec![("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    headers.extend_from_slice(more);
    exchange(&gateway.url, "POST", &headers, body).await
}

/// Opens a session, and no more than that; its id.
async fn opened(gateway: &Gateway, more: &[(&str, &str)]) -> Option<String> {
    let answer = post(gateway, more, INITIALIZE).await;
    answer.header("mcp-session-id").map(str::to_owned)
}

/// Whether a session answers.
async fn answers(gateway: &Gateway, more: &[(&str, &str)], id: &str) -> bool {
    let mut headers = vec![("mcp-session-id", id), ("mcp-protocol-version", "2025-11-25")];
    headers.extend_from_slice(more);
    post(gateway, &headers, PING).await.status == 200
}

#[tokio::test]
async fn a_flood_of_handshakes_locks_nobody_out_and_ends_no_session_that_is_used() {
    let gateway = Gateway::serve(&Config::new().section("[server.session]\nmax = 50")).await;
    let used = opened(&gateway, &[]).await.expect("a session");
    assert!(answers(&gateway, &[], &used).await);
    for _ in 0..150 {
        assert!(opened(&gateway, &[]).await.is_some(), "who said nothing after `initialize` makes room");
    }
    assert!(answers(&gateway, &[], &used).await);
    let late = opened(&gateway, &[]).await.expect("the door is open");
    assert!(answers(&gateway, &[], &late).await);
}

#[tokio::test]
async fn one_tokens_sessions_end_none_of_anothers_and_the_refusal_says_whose_there_are() {
    let gateway = Gateway::serve(&Config::new().section("[server.session]\nmax = 20").section(TOKENS)).await;
    let quiet = opened(&gateway, &[ANN]).await.expect("a session");
    assert!(answers(&gateway, &[ANN], &quiet).await);
    let mut flood = Vec::new();
    // Each is used, so that none of them can be spared.
    while let Some(id) = opened(&gateway, &[BOB]).await {
        assert!(answers(&gateway, &[BOB], &id).await);
        flood.push(id);
    }
    assert_eq!(flood.len(), 19);
    let refused = post(&gateway, &[BOB], INITIALIZE).await;
    let said = String::from_utf8_lossy(&refused.body).into_owned();
    assert_eq!(refused.status, 503);
    assert!(said.contains("20 sessions are open") && said.contains("19 of them are of principal"), "{said}");
    is_shown(&gateway, "sessions", 2).await;
    assert!(answers(&gateway, &[ANN], &quiet).await);
    for _ in 0..5 {
        let more = opened(&gateway, &[ANN]).await.expect("the one who has the most makes room");
        assert!(answers(&gateway, &[ANN], &more).await);
    }
    assert!(answers(&gateway, &[ANN], &quiet).await);
}

/// What was refused for want of room is in the limits, in the metrics, and in one line of the log.
async fn is_shown(gateway: &Gateway, full: &str, count: u64) {
    let shown = gateway.look("/readyz?verbose&format=json").await;
    let shown: serde_json::Value = serde_json::from_slice(&shown.body).expect("the page is JSON");
    assert_eq!(shown["limits"]["refused"][full], count, "{shown}");
    let metrics = String::from_utf8_lossy(&gateway.look("/metrics").await.body).into_owned();
    assert!(metrics.contains(&format!("trunkline_refused_total{{full=\"{full}\"}} {count}")), "{metrics}");
    let is_it = |line: &String| line.contains("client refused: limit reached") && line.contains(full);
    gateway.stderr.wait("the log has a line", |line: &String| is_it(line).then_some(())).await;
    assert_eq!(gateway.stderr.all().iter().filter(|line| is_it(line)).count(), 1, "and one for all of them");
}

#[tokio::test]
async fn shares_are_by_the_address_that_a_trusted_proxy_names_and_nobody_else_is_believed() {
    for is_trusted in [true, false] {
        let trusted = if is_trusted { "trusted_proxies = [\"127.0.0.0/8\"]" } else { "" };
        let config = Config::new().server(trusted).section("[server.session]\nmax = 20");
        let gateway = Gateway::serve(&config).await;
        let (one, other) = (("x-forwarded-for", "198.51.100.1"), ("x-forwarded-for", "10.0.0.1, 198.51.100.2"));
        let mut flood = 0;
        while let Some(id) = opened(&gateway, &[one]).await {
            assert!(answers(&gateway, &[one], &id).await);
            flood += 1;
        }
        assert_eq!(flood, 20);
        assert_eq!(
            opened(&gateway, &[other]).await.is_some(),
            is_trusted,
            "all are of one address where none is named"
        );
    }
}

#[tokio::test]
async fn hanging_calls_of_one_token_leave_connections_to_the_upstream_for_another() {
    let upstream = Upstream::start(Way::Http, Script::new("up", Revision::MODERN)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream).section(TOKENS)).await;
    let [ann, bob] = [ANN, BOB].map(|(name, value)| async {
        let client = Client::open(&gateway.reach(), Revision::MODERN).await;
        client.http().always(name, value);
        client
    });
    let (ann, bob) = (ann.await, bob.await);
    ann.tools_until("the tool is listed", |tools| tools.contains(&"up__wait".into())).await;
    let mut open = Vec::new();
    for _ in 0..280 {
        open.push(ann.start(tool("up__wait", "{}")).await);
    }
    upstream.waiting(240).await;
    let answer = within("another's call is answered", bob.call("up__echo", "{\"nonce\":\"n\"}")).await;
    assert!(answer.text().contains('n'), "{answer:?}");
    // And the one who waits is served as its own calls end.
    open.drain(..40).for_each(|call| call.abandon());
    upstream.waiting(280).await;
}

/// What comes on a connection until it is closed.
async fn rest(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    // A reset is an end too.
    let _ = within("the gateway closes the connection", stream.read_to_end(&mut text)).await;
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test]
async fn who_shows_no_token_is_answered_once_and_closed_and_takes_no_room_from_who_does() {
    let gateway = Gateway::serve(&Config::new().section(TOKENS)).await;
    let address = gateway.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let connect = || async { TcpStream::connect(&address).await.expect("the system takes it") };
    let mut refused = connect().await;
    let request = format!("POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-length: 2\r\n\r\n{{}}");
    refused.write_all(request.as_bytes()).await.expect("it is written");
    let said = rest(&mut refused).await;
    assert!(said.starts_with("HTTP/1.1 401") && said.contains("connection: close"), "{said}");
    let mut silent = connect().await;
    let begun = tokio::time::Instant::now();
    assert_eq!(rest(&mut silent).await, "");
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    // More of them than there is room for.
    let mut held = Vec::new();
    for _ in 0..1100 {
        held.push(connect().await);
    }
    let id = opened(&gateway, &[ANN]).await.expect("a token opens the door");
    assert!(answers(&gateway, &[ANN], &id).await);
    assert_eq!(rest(&mut held[0]).await, "", "the oldest makes room");
}

/// The soft limit of open files of a process.
fn files(pid: u32) -> u64 {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap_or_default();
    line.split_whitespace().next().and_then(|soft| soft.parse().ok()).unwrap_or_default()
}

#[tokio::test]
async fn the_gateway_may_open_more_files_than_it_was_started_with_and_children_may_not() {
    let upstream = Upstream::stdio(Script::new("up", LEGACY)).await;
    let lowered = ["/bin/sh", "-c", "ulimit -Sn 300; exec \"$0\" \"$@\""];
    let gateway = Gateway::serve_under(&lowered, &Config::new().upstream(&upstream)).await;
    let (child, _) = upstream.started(0).await;
    until("the child has the limit that the gateway had", || async { (files(child) == 300).then_some(()) }).await;
    let own = files(gateway.pid);
    assert!(own > 300, "{own}");
}

/// A client of a token.
async fn client(gateway: &Gateway, (name, value): (&str, &str), revision: Revision, desk: Desk) -> Client {
    let mut client = Client::open_with(&gateway.reach(), revision, desk).await;
    client.http().always(name, value);
    if !revision.is_modern() {
        client.greet().await;
    }
    client
}

async fn session(gateway: &Gateway, token: (&str, &str)) -> Client {
    client(gateway, token, LEGACY, Desk::closed()).await
}

#[tokio::test]
async fn one_tokens_instances_leave_room_for_anothers() {
    let upstream = Upstream::stdio(Script::new("up", LEGACY)).await;
    let keys = "sharing = \"per-session\"\nmax_instances = 8";
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, keys).section(TOKENS)).await;
    upstream.started(0).await;
    let mut sessions = Vec::new();
    for _ in 0..8 {
        sessions.push(session(&gateway, ANN).await);
    }
    let mut open = Vec::new();
    for (at, one) in sessions.iter().take(6).enumerate() {
        open.push(one.start(tool("up__wait", "{}")).await);
        upstream.started(at + 1).await;
    }
    for one in &sessions[6..] {
        let refused = one.call("up__echo", "{}").await;
        assert!(refused.message().contains("max_instances"), "{}", refused.error());
    }
    let other = session(&gateway, BOB).await;
    assert_eq!(other.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
}

/// A child that says nothing but for the first one of its kind, which leaves a folder of this name.
fn silent_but_once(mark: &Path) -> Program {
    let mut program = shell::upstream(&[("nothing", "said x")]);
    let script = program.args.pop().expect("the shell is given a script");
    let mark = mark.display();
    // One that does nothing gives up its start at once, so these are busy first.
    let busy = "n=0; while [ $n -lt 1000000 ]; do n=$((n+1)); done";
    program.args.push(format!("mkdir '{mark}' 2>&- || {{ {busy}; while read -r line; do :; done; exit; }}\n{script}"));
    program
}

#[tokio::test]
async fn one_tokens_starts_do_not_come_before_all_of_anothers() {
    // More than are started at once.
    let count = 6 * std::thread::available_parallelism().map_or(1, usize::from) + 8;
    let scratch = Scratch::new();
    let program = silent_but_once(&scratch.path().join("first"));
    let keys = format!("sharing = \"per-session\"\nmax_instances = {}\nstartup_timeout = \"10m\"", 2 * count);
    let gateway = Gateway::serve(&Config::new().program("up", &program, &keys).section(TOKENS)).await;
    gateway.look_until("/readyz?verbose", "the first child is there", |page| page.contains("  ready  ")).await;
    let mut sessions = Vec::new();
    for _ in 0..count {
        sessions.push(session(&gateway, ANN).await);
    }
    let other = session(&gateway, BOB).await;
    let mut open = Vec::new();
    for one in sessions.iter().chain([&other]) {
        open.push(one.start(tool("up__nothing", "{}")).await);
        let rows = format!("{} instance", open.len());
        gateway.look_until("/readyz?verbose", "its instance is wanted", |page| page.contains(&rows)).await;
    }
    let last = format!("session {}", count + 1);
    // The numbers of processes grow: they tell who was started before whom, however late the page is read.
    let started = |page: &str| -> Vec<(String, u64)> {
        let page: serde_json::Value = serde_json::from_str(page).expect("the page is JSON");
        let all = page["upstreams"][0]["instances"].as_array().cloned().unwrap_or_default();
        let started = all.iter().filter_map(|one| Some((one["name"].as_str()?.to_owned(), one["pid"].as_u64()?)));
        started.collect()
    };
    let of_last = |page: &str| started(page).into_iter().find(|(name, _)| *name == last);
    let page = gateway
        .look_until("/readyz?verbose&format=json", "the other's child is started", |page| of_last(page).is_some())
        .await;
    let (_, pid) = of_last(&page).expect("it is started");
    let before = started(&page).iter().filter(|(_, other)| *other < pid).count();
    assert!(before < count, "it came last of all: {:?}", started(&page));
}

#[tokio::test]
async fn one_tokens_parked_calls_leave_room_for_anothers() {
    let upstream = Upstream::http(Script::new("up", LEGACY).asking()).await;
    let questions = "[questions]\nmax_open = 4\nmax_per_principal = 3";
    let gateway = Gateway::serve(&Config::new().upstream(&upstream).section(questions).section(TOKENS)).await;
    let ann = client(&gateway, ANN, Revision::MODERN, Desk::willing("ann")).await;
    let bob = client(&gateway, BOB, Revision::MODERN, Desk::willing("bob")).await;
    ann.tools_until("the tool is listed", |tools| tools.contains(&"up__ask".into())).await;
    let ask = |who: &str| tool("up__ask", &format!("{{\"plan\":\"form\",\"who\":\"{who}\",\"nonce\":\"n\"}}"));
    let mut parked = Vec::new();
    for _ in 0..3 {
        parked.push(ann.request(ask("ann")).await);
    }
    assert!(parked.iter().all(asks), "{parked:?}");
    assert!(!asks(&ann.request(ask("ann")).await), "she has her part");
    let answer = bob.request(ask("bob")).await;
    assert!(asks(&answer), "{answer:?}");
    gateway.says(&["questions.max_per_principal"]).await;
}

#[tokio::test]
async fn one_tokens_log_level_is_not_that_of_an_upstream_that_others_share() {
    let (shared, own) = (Script::new("shared", LEGACY), Script::new("own", LEGACY));
    let (shared, own) = (Upstream::stdio(shared).await, Upstream::stdio(own).await);
    let config = Config::new().upstream(&shared).upstream_with(&own, "sharing = \"per-principal\"").section(TOKENS);
    let gateway = Gateway::serve(&config).await;
    let (ann, bob) = (session(&gateway, ANN).await, session(&gateway, BOB).await);
    for client in [&ann, &bob] {
        let is_there =
            |tools: &[String]| ["shared__echo", "own__echo"].iter().all(|one| tools.iter().any(|name| name == one));
        client.tools_until("the tools are listed", is_there).await;
        client.call("own__echo", "{}").await.result();
    }
    assert_eq!(ann.request(Request::new("logging/setLevel", "{\"level\":\"debug\"}")).await.result(), "{}");
    let is_told = |event: &Event| match &event.what {
        What::Frame { raw, .. } => (raw.contains("logging/setLevel") && raw.contains("\"debug\"")).then_some(()),
        _ => None,
    };
    own.events.wait("her own instance is told", is_told).await;
    bob.call("shared__echo", "{}").await.result();
    assert!(shared.seen().await.iter().find_map(is_told).is_none(), "what nobody would hear");
}
