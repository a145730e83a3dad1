//! Probes are answered while what is large is worked on: a gateway that has one worker has it for others all the while.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use trunkline_tests::client::converse::{again, asks};
use trunkline_tests::client::{Client, Desk, Request, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::process::Program;
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::shell;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within;

/// Between two pieces of work on a worker one probe or another comes through.
const PROBES_MIN: usize = 20;
const TOOLS: usize = 50_000;
/// So many of them are taken.
const TAKEN: usize = 10_000;
/// A little less than the largest body.
const BYTES: usize = 15 << 20;
const DEPTH: usize = 120;

/// One worker, so that whatever keeps it keeps everybody.
fn config() -> Config {
    Config::new().env("TOKIO_WORKER_THREADS", "1")
}

async fn is_alive(gateway: &Gateway) {
    let answer = within("the probe is answered", gateway.look("/livez")).await;
    assert_eq!(answer.status, 200);
}

/// How many probes are answered before something is done.
async fn probes_before<T>(gateway: &Gateway, done: impl Future<Output = T>) -> (T, usize) {
    let mut done = std::pin::pin!(done);
    let mut probes = 0;
    loop {
        tokio::select! {
            biased;
            value = &mut done => return (value, probes),
            () = is_alive(gateway) => probes += 1,
        }
    }
}

/// A value of many bytes at the bottom of many objects, whose members stand in another order than the one in which they are digested.
fn nested() -> String {
    format!("{}\"{}\"{}", "{\"b\":0,\"a\":".repeat(DEPTH), "x".repeat(BYTES), "}".repeat(DEPTH))
}

/// A request on a connection of its own, but for its last byte.
async fn held_back(gateway: &Gateway, tool: &str, body: &[u8]) -> TcpStream {
    let address = gateway.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let mut stream = TcpStream::connect(&address).await.expect("the system takes it");
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n\
         mcp-name: {tool}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.expect("it is taken");
    stream.write_all(&body[..body.len() - 1]).await.expect("it is taken");
    stream
}

#[tokio::test]
async fn probes_are_answered_while_large_and_deep_values_are_worked_on() {
    let upstream = Upstream::http(Script::new("up", Revision::R2025_11_25).asking()).await;
    let gateway = Gateway::serve(&config().upstream(&upstream)).await;
    let client = Client::connect_with(&gateway.reach(), Revision::MODERN, Desk::willing("ada")).await;
    client.tools_until("the tool is there", |tools| tools.contains(&"up__ask".to_owned())).await;
    let first = tool("up__ask", r#"{"plan":"form","who":"ada","nonce":"n"}"#);
    let answer = client.request(first.clone()).await;
    assert!(asks(&answer), "{answer:?}");
    // The retry of another call: its arguments are read and digested, and then it is refused.
    let retry = again(&first, &answer, &client.desk.respond(&answer).await.expect("the desk answers"));
    let params = retry.params.replace("\"n\"", &nested());
    let body = Request { params, ..retry }.capabilities(&client.desk.capabilities()).text(Revision::MODERN, "1");
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(held_back(&gateway, "up__ask", body.as_bytes()).await);
    }
    is_alive(&gateway).await;
    for stream in &mut streams {
        stream.write_all(b"}").await.expect("it is taken");
    }
    let mut told = String::new();
    let (_, probes) = probes_before(&gateway, streams[0].read_to_string(&mut told)).await;
    assert!(told.contains("another call"), "{told}");
    assert!(probes >= PROBES_MIN, "{probes} probes were answered");
}

/// The senders of texts that are dense with secrets leave at once; probes and a small call are answered meanwhile.
#[tokio::test]
async fn probes_are_answered_while_texts_of_lost_senders_are_searched() {
    let upstream = Upstream::http(Script::new("up", Revision::R2025_11_25)).await;
    let redact = "[redact]\nkeys = true\npatterns = ['<cc>.*</cc>', '[0-9]{4}']\n";
    let gateway = Gateway::serve(&config().upstream(&upstream).section(redact)).await;
    let client = Client::connect_with(&gateway.reach(), Revision::MODERN, Desk::willing("ada")).await;
    client.tools_until("the tool is there", |tools| tools.contains(&"up__echo".to_owned())).await;
    let dense = "<cc>1234 eyJaaaaaaaa-AKIAAAAAAAAAAAAAAAAA-";
    for (count, bytes) in [(12, 300 << 10), (10, 2 << 20)] {
        let request = tool("up__echo", &format!("{{\"x\":\"{}\"}}", dense.repeat(bytes / dense.len())));
        let body = request.capabilities(&client.desk.capabilities()).text(Revision::MODERN, "1");
        let mut streams = Vec::new();
        for _ in 0..count {
            streams.push(held_back(&gateway, "up__echo", body.as_bytes()).await);
        }
        for stream in &mut streams {
            stream.write_all(b"}").await.expect("it is taken");
        }
        drop(streams);
        for _ in 0..PROBES_MIN {
            is_alive(&gateway).await;
        }
        let echoed = within("the small call is answered", client.call("up__echo", "{\"x\":\"AKIAIOSFODNN7EXAMPLE\"}"));
        assert_eq!(echoed.await.text(), "{\"x\":\"[redacted]\"}");
    }
}

/// A child whose list of tools is a file, and whole only once something was written to a pipe.
fn catalog(scratch: &Scratch) -> Program {
    let tool = |at| {
        format!(
            "{{\"name\":\"tool_{at}\",\"inputSchema\":{{\"type\":\"object\",\"properties\":{{\"a\":{{\"type\":\"string\"}}}}}}}}"
        )
    };
    let list: Vec<_> = (0..TOOLS).map(tool).collect();
    let list = scratch.file("list.json", &format!("{{\"tools\":[{}]}}", list.join(",")));
    let mut program = shell::upstream(&[]);
    let script = program.args.pop().expect("the shell is given a script");
    let pipe = scratch.path().join("pipe");
    let (list, pipe) = (list.display(), pipe.display());
    let large = format!(
        "*'\"tools/list\"'*) printf '{{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":' \"$id\"; cat '{list}'; cat '{pipe}'; printf '}}\\n' ;;\n  *'\"tools/list\"'*)"
    );
    program.args.push(format!("mkfifo '{pipe}'\n{}", script.replacen("*'\"tools/list\"'*)", &large, 1)));
    program
}

#[tokio::test]
async fn probes_are_answered_while_a_large_catalog_is_worked_on() {
    let scratch = Scratch::new();
    let gateway = Gateway::serve(&config().program("up", &catalog(&scratch), "")).await;
    let pipe = scratch.path().join("pipe");
    // It can be written to once the child has written its list, but for the end.
    within("the child has written its list", async {
        while !pipe.exists() {
            is_alive(&gateway).await;
        }
        drop(tokio::fs::OpenOptions::new().write(true).open(&pipe).await.expect("it can be written to"));
    })
    .await;
    let count = format!("  {TAKEN} tools");
    let known = gateway.look_until("/readyz?verbose", "the tools are known", |page| page.contains(&count));
    let (_, probes) = probes_before(&gateway, known).await;
    assert!(probes >= PROBES_MIN, "{probes} probes were answered");
    let client = Client::connect(&gateway.reach(), Revision::MODERN).await;
    let listed = client.tools_until("the tools are listed", |tools| tools.contains(&"up__tool_0".to_owned()));
    let (_, probes) = probes_before(&gateway, listed).await;
    assert!(probes >= PROBES_MIN, "{probes} probes were answered");
}
