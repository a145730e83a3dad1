//! Peers that would have the gateway keep more than `server.memory_limit`: the largest of it is dropped with a word, the others
//! are served, and what was used comes back to the system.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use trunkline_tests::client::{Answer, Client, Desk, tool};
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::process::{Program, peak_kib, resident_kib};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::{Answers, Script};
use trunkline_tests::shell;
use trunkline_tests::upstream::{Upstream, Way};
use trunkline_tests::within::{until_within, within};

mod floods;
mod lists;
mod unread;
mod wide;

const MIB: u64 = 1024;
/// What the gateways here may keep, in KiB.
const LIMIT: u64 = 64 * MIB;
/// What an idle gateway may have beside what it had at first: heaps of threads, tables that have grown.
const IDLE: u64 = 12 * MIB;
/// For what takes its time on a crowded machine.
const PATIENCE: Duration = Duration::from_secs(60);
const REVISION: Revision = Revision::R2025_11_25;

/// A gateway with little memory before a program named `up` and a neighbour, `near`.
struct Stage {
    gateway: Gateway,
    _near: Upstream,
    neighbour: Client,
    /// What it had before anything large came, in KiB.
    at_first: u64,
}

async fn stage(program: &Program, config: Config) -> Stage {
    begin(config.program("up", program, "")).await
}

async fn begin(config: Config) -> Stage {
    let near = Upstream::stdio(Script::new("near", REVISION)).await;
    let config = config.server("memory_limit = \"64MiB\"").upstream(&near);
    let gateway = Gateway::serve(&config).await;
    let neighbour = Client::open(&gateway.reach(), Revision::MODERN).await;
    neighbour.http().always("authorization", "Bearer neighbour-has-a-long-token");
    neighbour.tools_until("both are there", |tools| tools.iter().any(|name| name.starts_with("up__"))).await;
    let at_first = resident_kib(gateway.pid).expect("it runs");
    Stage { gateway, _near: near, neighbour, at_first }
}

impl Stage {
    async fn client(&self) -> Client {
        self.client_of(Revision::MODERN).await
    }

    async fn client_of(&self, revision: Revision) -> Client {
        self.client_with(revision, Desk::closed()).await
    }

    async fn client_with(&self, revision: Revision, desk: Desk) -> Client {
        let mut client = Client::open_with(&self.gateway.reach(), revision, desk).await;
        client.http().always("authorization", "Bearer attacker-has-a-long-token");
        if !revision.is_modern() {
            client.greet().await;
        }
        client
    }

    /// The neighbour is served.
    async fn serves(&self) {
        let answer = within("the neighbour is served", self.neighbour.call("near__echo", "{\"a\":1}")).await;
        assert_eq!(answer.text(), "{\"a\":1}");
    }

    /// It has never had more than its limit beside what it had at first, and has it no longer.
    async fn comes_back(&self) {
        self.has_had_less_than(LIMIT);
        self.has_it_no_longer().await;
    }

    /// It has had less than this beside what it had at first.
    fn has_had_less_than(&self, most: u64) {
        let peak = peak_kib(self.gateway.pid).expect("it runs");
        assert!(peak < self.at_first + most, "it had {peak} KiB of memory, at first {}", self.at_first);
    }

    /// Nothing is counted any more, and nothing of it is kept.
    async fn has_it_no_longer(&self) {
        let peak = peak_kib(self.gateway.pid).expect("it runs");
        let now = is_back(self.gateway.pid, self.at_first).await;
        let page = |page: &str| {
            let zero = |kind: &str| page.contains(&format!("trunkline_memory_bytes{{kind=\"{kind}\"}} 0"));
            ["body", "line", "reply", "answer", "replay", "queue"].into_iter().all(zero)
        };
        self.gateway.look_until("/metrics", "nothing is counted any more", page).await;
        eprintln!("at first {} KiB, at most {peak}, now {now}", self.at_first);
    }

    /// Sends bytes on a connection of its own; the connection, where all of them were taken.
    async fn sends(&self, pieces: &[&[u8]]) -> (TcpStream, bool) {
        let address = self.gateway.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        let mut stream = TcpStream::connect(&address).await.expect("the system takes it");
        for piece in pieces {
            if stream.write_all(piece).await.is_err() {
                return (stream, false);
            }
        }
        (stream, true)
    }
}

/// How much a process has once it is idle again, in KiB.
async fn is_back(pid: u32, at_first: u64) -> u64 {
    let now = || async { resident_kib(pid).filter(|now| *now < at_first + IDLE) };
    until_within(PATIENCE, "memory comes back", now).await
}

/// What stands on a connection until it is closed.
async fn told(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    let _closed_hard = within("the connection is closed", stream.read_to_end(&mut text)).await;
    String::from_utf8_lossy(&text).into_owned()
}

fn tokens() -> Config {
    let token = |name: &str| format!("[[auth.tokens]]\nname = \"{name}\"\ntoken = \"{name}-has-a-long-token\"");
    Config::new().section(&token("neighbour")).section(&token("attacker"))
}

/// What the shell does to begin the answer to a call, write so many MiB of text in it, and end it.
fn reply(mib: u64, end: &str) -> String {
    let begin = r#"{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":""#;
    format!("printf '{begin}' \"$id\"; head -c {} /dev/zero | tr '\\0' x; printf '{end}'", mib * 1024 * 1024)
}

/// Has the tool answer a few times with 14 MiB of text.
async fn answers_largely(client: &Client, name: &str, arguments: &str) {
    for _ in 0..4 {
        let call = client.start(tool(name, arguments).token("\"p\"")).await;
        let answer = within("it is answered", call.answer()).await;
        assert_eq!(answer.text().len(), 14 << 20);
    }
}

const END: &str = "\"}]}}\\n";

fn is_dropped(answer: &Answer) -> bool {
    answer.frame().error.as_ref().is_some_and(|error| error.get().contains("memory_limit"))
}

#[tokio::test]
async fn an_endless_line_is_dropped_while_it_is_read() {
    let _part = crate::part().await;
    // It never ends, and its call does.
    let endless = reply(300, "");
    let stage = stage(&shell::upstream(&[("endless", &format!("{endless}; sleep 600"))]), tokens()).await;
    let client = stage.client().await;
    let call = client.start(tool("up__endless", "{}")).await;
    stage.serves().await;
    let answer = within("the call ends", call.answer()).await;
    assert!(is_dropped(&answer) && answer.message().contains("`up`"), "{}", answer.error());
    stage.serves().await;
    stage.comes_back().await;
}

#[tokio::test]
async fn a_line_over_its_own_limit_ends_its_call_before_it_ends() {
    let _part = crate::part().await;
    let endless = format!("{}; sleep 600", reply(100, ""));
    let config = tokens().section("[defaults]\nmax_response = \"8MiB\"");
    let stage = stage(&shell::upstream(&[("endless", &endless)]), config).await;
    let client = stage.client().await;
    let answer = within("the call ends", client.call("up__endless", "{}")).await;
    assert!(answer.message().contains("max_response"), "{}", answer.error());
    stage.has_had_less_than(16 * MIB);
    stage.comes_back().await;
}

#[tokio::test]
async fn of_large_replies_as_many_are_passed_as_there_is_memory_for() {
    let _part = crate::part().await;
    let large = format!("({}) &", reply(14, END));
    let program = shell::upstream(&[("large", &reply(14, END)), ("crowd", &large)]);
    let stage = stage(&program, tokens()).await;
    let client = stage.client().await;
    let alone = within("one is passed", client.call("up__large", "{}")).await;
    assert_eq!(alone.text().len(), 14 << 20);
    let mut calls = Vec::new();
    for _ in 0..8 {
        calls.push(client.start(tool("up__large", "{}")).await);
    }
    stage.serves().await;
    for call in calls {
        let answer = within("each has an end", call.answer()).await;
        // One that is read slowly gives way to those that come, also while it is written.
        let is_cut = answer.frame.is_none();
        assert!(is_cut || is_dropped(&answer) || answer.text().len() == 14 << 20, "{}", answer.error());
    }
    drop(client);
    stage.serves().await;
    stage.comes_back().await;
}

#[tokio::test]
async fn answers_that_nobody_reads_give_way_to_those_that_are_read() {
    let _part = crate::part().await;
    let stage = stage(&shell::upstream(&[("large", &reply(14, END))]), tokens()).await;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up__large","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer attacker-has-a-long-token\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: tools/call\r\nmcp-name: up__large\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut open = Vec::new();
    for _ in 0..8 {
        let (mut stream, _) = stage.sends(&[head.as_bytes(), body.as_bytes()]).await;
        // The answer has begun, and nothing more of it is read.
        let mut first = [0; 12];
        within("an answer begins", stream.read_exact(&mut first)).await.expect("it is answered");
        assert_eq!(&first, b"HTTP/1.1 200");
        open.push(stream);
    }
    let answer = within("the neighbour is served", stage.neighbour.call("up__large", "{}")).await;
    assert_eq!(answer.text().len(), 14 << 20);
    stage.gateway.says(&["memory_limit reached", "answer"]).await;
    drop(open);
    stage.comes_back().await;
}

#[tokio::test]
async fn half_sent_bodies_give_way_and_those_that_trickle_are_closed() {
    // All must be sent before the first are closed.
    let _alone = crate::whole().await;
    let config = tokens().server("header_read_timeout = \"5s\"");
    let stage = stage(&shell::upstream(&[("nothing", "said x")]), config).await;
    let head = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer attacker-has-a-long-token\r\n\
        content-type: application/json\r\ncontent-length: 16000000\r\n\r\n";
    let half = vec![b' '; 15 << 20];
    let mut open = Vec::new();
    for _ in 0..32 {
        let (stream, _may_be_refused) = stage.sends(&[head, &half]).await;
        open.push(stream);
    }
    stage.serves().await;
    let mut answers = Vec::new();
    for mut stream in open {
        // One byte now and then earns no time.
        let _may_be_closed = stream.write_all(b" ").await;
        answers.push(told(stream).await);
    }
    let count =
        |status: &str| answers.iter().filter(|answer| answer.starts_with(&format!("HTTP/1.1 {status}"))).count();
    assert!(count("408") <= 4, "{answers:?}");
    let (full, slow) = (count("503"), count("408"));
    assert!(slow >= 1 && full >= 1, "{full} were refused and {slow} closed: {answers:?}");
    stage.serves().await;
    stage.comes_back().await;
}

#[tokio::test]
#[ignore = "takes long; .ci/full runs it"]
async fn an_array_is_counted_while_it_is_split() {
    let _part = crate::part().await;
    let stage = stage(&shell::upstream(&[("nothing", "said x")]), tokens()).await;
    let body = format!("[{}1]", "1,".repeat(7 << 20));
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer attacker-has-a-long-token\r\n\
         content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let (stream, _) = stage.sends(&[head.as_bytes(), body.as_bytes()]).await;
    let answer = told(stream).await;
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("at most 64"), "{answer}");
    stage.has_had_less_than(20 * MIB);
    stage.comes_back().await;
}

#[tokio::test]
async fn heads_without_a_token_are_small_and_few_enough() {
    let _part = crate::part().await;
    let config = tokens().server("header_read_timeout = \"5s\"");
    let stage = stage(&shell::upstream(&[("nothing", "said x")]), config).await;
    let head = format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-long: {}", "x".repeat(200_000));
    let mut open = Vec::new();
    for _ in 0..800 {
        open.push(stage.sends(&[head.as_bytes()]).await.0);
    }
    stage.serves().await;
    let answer = told(open.swap_remove(0)).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    drop(open);
    stage.serves().await;
    stage.comes_back().await;
}

#[tokio::test]
#[ignore = "takes long; .ci/full runs it"]
async fn large_answers_in_a_stream_of_events_come_back() {
    let _part = crate::part().await;
    // What comes first is no answer, so the answer is an event.
    let progress =
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}\n"#;
    let large = format!("printf '{progress}' \"$id\"; {}", reply(14, END));
    let stage = stage(&shell::upstream(&[("large", &large)]), tokens()).await;
    for revision in [Revision::MODERN, REVISION] {
        let client = stage.client_of(revision).await;
        answers_largely(&client, "up__large", "{}").await;
        stage.comes_back().await;
    }
}

#[tokio::test]
async fn large_answers_of_an_http_upstream_come_back() {
    let _part = crate::part().await;
    for answers in [Answers::Auto, Answers::Sse] {
        let script = Script::new("up", REVISION).with(|script| {
            script.tools.push("big".into());
            script.http.answers = answers;
        });
        let upstream = Upstream::http(script).await;
        let stage = begin(tokens().upstream(&upstream)).await;
        answers_largely(&stage.client().await, "up__big", &format!("{{\"bytes\":{}}}", 14 << 20)).await;
        stage.comes_back().await;
    }
}

#[tokio::test]
async fn large_requests_come_back() {
    let _part = crate::part().await;
    let arguments = format!("{{\"x\":\"{}\"}}", "x".repeat(14 << 20));
    for way in [Way::Stdio, Way::Http] {
        let upstream = Upstream::start(way, Script::new("up", REVISION)).await;
        let stage = begin(tokens().upstream(&upstream)).await;
        let client = stage.client().await;
        for _ in 0..4 {
            let answer = within("it is answered", client.call("up__tool_error", &arguments)).await;
            assert_eq!(answer.text(), "the tool says no");
        }
        stage.comes_back().await;
    }
}

#[tokio::test]
#[ignore = "takes long; .ci/full runs it"]
async fn large_answers_to_a_client_on_stdio_come_back() {
    let _part = crate::part().await;
    let program = shell::upstream(&[("large", &reply(14, END))]);
    let config = Config::new().server("memory_limit = \"64MiB\"").program("up", &program, "");
    let gateway = StdioGateway::prepare(&config);
    let client = Client::connect(&gateway.reach(), REVISION).await;
    client.tools_until("it is there", |tools| tools.contains(&"up__large".to_owned())).await;
    let pid = client.stdio().pid;
    let at_first = resident_kib(pid).expect("it runs");
    answers_largely(&client, "up__large", "{}").await;
    let (peak, now) = (peak_kib(pid).expect("it runs"), is_back(pid, at_first).await);
    eprintln!("at first {at_first} KiB, at most {peak}, now {now}");
    assert!(peak < at_first + LIMIT, "it had {peak} KiB of memory, at first {at_first}");
}

#[tokio::test]
async fn what_a_large_result_takes_in_older_words_comes_back() {
    let _part = crate::part().await;
    // A structured result, which the client's revision has no place for: its text is made of it.
    let begin = r#"{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":{"x":""#;
    let large = format!("printf '{begin}' \"$id\"; head -c {} /dev/zero | tr '\\0' x; printf '\"}}}}}}\\n'", 14 << 20);
    let stage = stage(&shell::upstream(&[("large", &large)]), tokens()).await;
    let client = stage.client_of(Revision::R2025_03_26).await;
    for _ in 0..4 {
        let answer = within("it is answered", client.call("up__large", "{}")).await;
        assert!(answer.text().len() > 14 << 20);
    }
    stage.has_it_no_longer().await;
}

/// What `check` says can never pass does not, and what is a little shorter does.
#[tokio::test]
#[ignore = "takes long; .ci/full runs it"]
async fn a_message_of_half_the_limit_passes_and_a_longer_one_never_does() {
    let _part = crate::part().await;
    let (just, over) = (LIMIT / MIB / 2 - 1, LIMIT / MIB / 2 + 1);
    let program = shell::upstream(&[("just", &reply(just, END)), ("over", &reply(over, END))]);
    let config = tokens().server("max_body = \"64MiB\"").section("[defaults]\nmax_response = \"64MiB\"");
    let stage = stage(&program, config).await;
    let client = stage.client().await;
    for (length, name) in [(just, "up__just"), (over, "up__over")] {
        let text = format!("{{\"a\":\"{}\"}}", "x".repeat((length << 20) as usize));
        // A shell reads what is sent to it byte by byte, the neighbour does not.
        for (name, arguments) in [(name, "{}"), ("near__tool_error", &*text)] {
            let answer = within("the call ends", client.call(name, arguments)).await;
            assert_eq!(is_dropped(&answer), length == over, "{name}: {length} MiB");
        }
    }
}
