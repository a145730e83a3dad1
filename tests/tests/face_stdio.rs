//! The face on stdin and stdout: frames and nothing else, both eras on one pipe.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use trunkline_tests::client::{Client, Reach, Request, tool};
use trunkline_tests::frame::Frame;
use trunkline_tests::gateway::{Config, StdioGateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within;

const NEWEST: Revision = Revision::R2025_11_25;

async fn stage(revision: Revision) -> (Upstream, StdioGateway, Client) {
    let upstream = Upstream::stdio(Script::new("up", NEWEST)).await;
    let gateway = StdioGateway::prepare(&Config::new().upstream(&upstream));
    let client = Client::connect(&gateway.reach(), revision).await;
    client.tools_until("the upstream is up", |tools| tools.contains(&"up__echo".into())).await;
    client.stdio().keep_lines();
    (upstream, gateway, client)
}

/// Writes a line and gives the answering frame to `id`, taken from the raw lines.
async fn say(client: &Client, line: &str, id: &str) -> Frame {
    let mark = client.stdio().lines.mark();
    client.stdio().write(line.as_bytes()).await;
    let pick = |line: &String| Frame::parse(line.as_bytes()).ok().filter(|frame| frame.id_text() == id);
    client.stdio().lines.wait_from(mark, &format!("an answer to {line}"), pick).await
}

fn code(frame: &Frame) -> i64 {
    let error: serde_json::Value = serde_json::from_str(frame.error.as_ref().expect("an error").get()).expect("JSON");
    error["code"].as_i64().expect("a code")
}

#[tokio::test]
async fn nonsense_is_answered_and_the_pipe_lives_on() {
    let (_upstream, _gateway, client) = stage(NEWEST).await;
    assert_eq!(code(&say(&client, "nonsense", "null").await), -32700);
    assert_eq!(code(&say(&client, "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", "null").await), -32600);
    assert_eq!(code(&say(&client, "{\"jsonrpc\":\"2.0\",\"id\":\"u\",\"method\":\"no/such\"}", "\"u\"").await), -32601);
    for version in ["", "\"jsonrpc\":\"1.0\",", "\"jsonrpc\":2.0,"] {
        let answer = say(&client, &format!("{{{version}\"id\":\"v\",\"method\":\"ping\"}}"), "\"v\"").await;
        assert_eq!(code(&answer), -32600, "{version}");
    }
    client.stdio().write_raw(b"\n   \r\n").await;
    let ping = say(&client, "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\r", "\"p\"").await;
    assert_eq!(ping.result.expect("a result").get(), "{}");
    let whole = client.stdio().lines.all();
    assert!(whole.iter().all(|line| Frame::parse(line.as_bytes()).is_ok()), "frames and nothing else: {whole:?}");
}

#[tokio::test]
async fn an_oversize_line_is_refused_and_the_pipe_lives_on() {
    let (_upstream, _gateway, client) = stage(NEWEST).await;
    let mut line = b"{\"jsonrpc\":\"2.0\",\"id\":\"big\",\"method\":\"tools/call\",\"params\":{\"x\":\"".to_vec();
    line.resize(17 << 20, b'x');
    line.extend_from_slice(b"\"}}\n");
    client.stdio().write_raw(&line).await;
    assert_eq!(client.call("up__echo", "{}").await.text(), "{}");
}

#[tokio::test]
async fn both_eras_share_one_pipe() {
    let (upstream, _gateway, client) = stage(NEWEST).await;
    let discover = Request::new("server/discover", "{}").text(Revision::MODERN, "\"d\"");
    let found = say(&client, &discover, "\"d\"").await;
    assert!(found.result.expect("a result").get().contains("2026-07-28"));
    let modern = tool("up__echo", "{\"era\":\"modern\"}").text(Revision::MODERN, "\"m\"");
    let answer = say(&client, &modern, "\"m\"").await;
    assert!(answer.result.expect("a result").get().contains("resultType"));
    let legacy = client.call("up__echo", "{\"era\":\"legacy\"}").await;
    assert!(!legacy.result().contains("resultType"));
    assert_eq!(upstream.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn stateless_requests_are_checked_here_too() {
    let (_upstream, _gateway, client) = stage(Revision::MODERN).await;
    assert_eq!(client.request(Request::new("ping", "{}")).await.code(), -32601);
    let unknown = Request::new("tools/list", "{}").text(Revision::MODERN, "\"v\"").replace("2026-07-28", "2027-01-01");
    assert_eq!(code(&say(&client, &unknown, "\"v\"").await), -32022);
    let lacking = "{\"jsonrpc\":\"2.0\",\"id\":\"l\",\"method\":\"tools/list\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}";
    assert_eq!(code(&say(&client, lacking, "\"l\"").await), -32602);
}

#[tokio::test]
async fn batches_are_answered_at_their_revision() {
    let (_upstream, _gateway, client) = stage(Revision::R2025_03_26).await;
    let call = tool("up__echo", "{\"a\":1}").text(Revision::R2025_03_26, "\"c\"");
    let mark = client.stdio().lines.mark();
    client.stdio().write(format!("[{{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"method\":\"ping\"}},{call}]").as_bytes()).await;
    let pick =
        |line: &String| (line.starts_with('[') && line.contains("\"b\"") && line.contains("\"c\"")).then_some(());
    client.stdio().lines.wait_from(mark, "one array with both answers", pick).await;
}

#[tokio::test]
async fn batches_are_refused_at_other_revisions() {
    let (_upstream, _gateway, client) = stage(NEWEST).await;
    let refused = say(&client, "[{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"method\":\"ping\"}]", "null").await;
    assert_eq!(code(&refused), -32600);
}

#[tokio::test]
async fn a_cancelled_call_is_never_answered() {
    for revision in [NEWEST, Revision::MODERN] {
        let (upstream, _gateway, client) = stage(revision).await;
        let open = client.start(tool("up__wait", "{}").id("\"w\"")).await;
        upstream.waiting_at("wait").await;
        open.cancel().await;
        upstream.cancelled(0).await;
        assert_eq!(client.call("up__echo", "{}").await.text(), "{}");
        let lines = client.stdio().lines.all();
        assert!(!lines.iter().any(|line| line.contains("\"id\":\"w\"")), "{lines:?}");
    }
}

#[tokio::test]
async fn a_reader_that_stops_reading_holds_up_nobody_else() {
    let (upstream, _gateway, client) = stage(NEWEST).await;
    trunkline_tests::process::signal(upstream.started(0).await.0, "STOP");
    let stuck = client.start(tool("up__echo", "{}")).await;
    let listed = client.tools().await;
    assert!(listed.contains(&"up__echo".into()), "lists are answered while an upstream stands still");
    trunkline_tests::process::signal(upstream.started(0).await.0, "CONT");
    assert_eq!(stuck.answer().await.text(), "{}");
}

#[tokio::test]
async fn a_client_that_closes_stdout_alone_is_gone() {
    let upstream = Upstream::stdio(Script::new("up", NEWEST)).await;
    let gateway = StdioGateway::prepare(&Config::new().upstream(&upstream));
    let Reach::Child(program) = gateway.reach() else { panic!("it is reached by its pipes") };
    for is_idle in [true, false] {
        let mut command = Command::new(&program.path);
        command.args(&program.args).envs(program.env.iter().cloned()).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let (mut stdin, stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let mut lines = BufReader::new(stdout).lines();
        let mut line = async || within("it answers", lines.next_line()).await.expect("a line").expect("a line");
        let hello = Request::new(
            "initialize",
            "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"p\",\"version\":\"1\"}}",
        );
        stdin.write_all(format!("{}\n", hello.text(NEWEST, "1")).as_bytes()).await.expect("it reads");
        assert!(line().await.contains("2025-11-25"));
        if !is_idle {
            let wait = tool("up__wait", "{}").text(NEWEST, "2");
            stdin.write_all(format!("{wait}\n").as_bytes()).await.expect("it reads");
            upstream.waiting_at("wait").await;
        }
        drop(lines);
        // Nothing more is written to it, and its stdin stays open.
        let ended = within("it notices", child.wait()).await.expect("it ends");
        assert!(ended.success(), "in order: {ended:?}");
        drop(stdin);
    }
}

#[tokio::test]
async fn a_stdout_that_cannot_be_written_is_a_failure_that_is_said_in_one_line() {
    let gateway = StdioGateway::prepare(&Config::new());
    let Reach::Child(program) = gateway.reach() else { panic!("it is reached by its pipes") };
    // The one end is a full disk; at the other one nobody reads, as when a client leaves.
    let (reader, unread) = std::io::pipe().expect("a pipe");
    drop(reader);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("the system has it");
    for (stdout, fails) in [(Stdio::from(full), true), (Stdio::from(unread), false)] {
        let mut command = Command::new(&program.path);
        command.args(&program.args).envs(program.env.iter().cloned()).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let asked = Request::new("ping", "{}").text(NEWEST, "1");
        // Where it knows without a write that nobody reads it may have ended already.
        let _taken = stdin.write_all(format!("{asked}\n").as_bytes()).await;
        let output = within("it notices", child.wait_with_output()).await.expect("it ends");
        drop(stdin);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let why: Vec<_> = said.lines().filter(|line| line.contains("No space left on device")).collect();
        let expected =
            if fails { vec!["error: stdout cannot be written: No space left on device (os error 28)"] } else { vec![] };
        assert_eq!((output.status.code(), why), (Some(i32::from(fails)), expected), "{said}");
    }
}
