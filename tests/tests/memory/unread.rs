//! Upstreams that ping and do not read the answers: the queues towards them stay within the limit, and the gauges count them.

#![allow(clippy::disallowed_methods, reason = "a test's tasks end with its runtime")]

use super::*;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use trunkline_tests::process::anonymous_kib;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
/// Pings of one upstream. Their answers, with the records of the queue, take more than 4 MiB.
const PINGS: usize = 50_000;
/// Length in KiB of a call that waits behind the pings. One client may fill 4 MiB of a queue.
const QUEUED: usize = 3900;
/// Upstreams, or instances of one upstream.
const UPSTREAMS: usize = 6;

/// Programs `up0`, `up1` and so on. Their tool `take` sends pings and reads nothing any more, `ping` sends as many and reads on.
fn programs() -> Config {
    let flood = format!("yes '{PING}' | head -n {PINGS}; sleep 1000");
    let answered = format!("yes '{PING}' | head -n {PINGS}; said done");
    let program = shell::upstream(&[("take", &flood), ("ping", &answered)]);
    (0..UPSTREAMS).fold(Config::new(), |config, number| config.program(&format!("up{number}"), &program, ""))
}

async fn client_of(gateway: &Gateway, tools: &[String]) -> Client {
    let client = Client::connect(&gateway.reach(), REVISION).await;
    client.tools_until("all tools are listed", |listed| tools.iter().all(|tool| listed.contains(tool))).await;
    client
}

/// The sum of a metric's series with this text in them.
fn sum(page: &str, series: &str) -> u64 {
    let lines = page.lines().filter(|line| line.starts_with(series));
    lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum::<f64>() as u64
}

/// Waits until the gateway has read so many rounds of pings of all upstreams.
async fn pings_are_read(gateway: &Gateway, rounds: usize) {
    let series = "trunkline_messages_total{leg=\"upstream\",direction=\"in\"}";
    let all = |page: &str| sum(page, series) >= (rounds * UPSTREAMS * PINGS) as u64;
    gateway.look_until_within(PATIENCE, "/metrics", "all pings are read", all).await;
}

#[tokio::test]
async fn unread_answers_to_pings_stay_within_the_limit() {
    let _part = crate::part().await;
    let gateway = Gateway::serve(&programs().server("memory_limit = \"32MiB\"")).await;
    let tools: Vec<String> = (0..UPSTREAMS).map(|number| format!("up{number}__take")).collect();
    let client = client_of(&gateway, &tools).await;
    let at_first = resident_kib(gateway.pid).expect("it runs");
    let mut calls = Vec::new();
    for name in &tools {
        calls.push(client.start(tool(name, "{}")).await);
    }
    pings_are_read(&gateway, 1).await;
    let now = resident_kib(gateway.pid).expect("it runs");
    assert!(now < at_first + 16 * MIB, "{now} KiB, at first {at_first}");
}

/// The growth counts from the time at which every upstream has pinged and has read the answers. Before that the buffers of the
/// connections and the heaps of the allocator grow by 2 to 5 MiB, however many pings there are. The growth after it has 3 to
/// 5 MiB that no gauge counts: freed memory in the heaps of the threads, which the allocator returns within 30 s.
#[tokio::test]
async fn gauges_explain_the_memory_of_unread_queues() {
    let _part = crate::part().await;
    let gateway = Gateway::serve(&programs().server("memory_limit = \"512MiB\"")).await;
    let tools: Vec<String> = (0..UPSTREAMS).map(|number| format!("up{number}__take")).collect();
    let client = client_of(&gateway, &tools).await;
    let counted = async |kind: &str| {
        let page = gateway.look("/metrics").await;
        sum(&String::from_utf8_lossy(&page.body), &format!("trunkline_memory_bytes{{{kind}")) / 1024
    };
    let mut calls = Vec::new();
    for number in 0..UPSTREAMS {
        calls.push(client.start(tool(&format!("up{number}__ping"), "{}")).await);
    }
    for call in calls.drain(..) {
        assert_eq!(within("the pings are answered", call.answer()).await.text(), "done");
    }
    let (counted_at_first, at_first) = (counted("").await, anonymous_kib(gateway.pid).expect("it runs"));
    for name in &tools {
        calls.push(client.start(tool(name, "{}")).await);
    }
    pings_are_read(&gateway, 2).await;
    let large = format!("{{\"x\":\"{}\"}}", "x".repeat(QUEUED << 10));
    for name in &tools {
        calls.push(client.start(tool(name, &large)).await);
    }
    let all_queued = (UPSTREAMS * QUEUED) as u64;
    let are_queued = async || (counted("kind=\"queue\"").await >= all_queued).then_some(());
    until_within(PATIENCE, "all calls are queued", are_queued).await;
    // The allocator returns what it has freed after a while.
    let explained = async || {
        let counted = counted("").await - counted_at_first;
        let growth = anonymous_kib(gateway.pid)?.saturating_sub(at_first);
        eprintln!("{counted} KiB are counted; the growth is {growth} KiB");
        (counted * 10 >= growth * 9).then_some(())
    };
    until_within(PATIENCE, "the gauges explain the growth", explained).await;
}

/// A server at a port whose tool `take` sends pings, and that reads nothing more of that connection.
async fn at_port() -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let host = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    (port, host)
}

async fn serve(stream: TcpStream) -> Option<()> {
    let (input, mut output) = stream.into_split();
    let mut lines = BufReader::new(input).lines();
    while let Some(line) = lines.next_line().await.ok()? {
        let id = line.split("\"id\":").nth(1).map_or("", |rest| rest.split([',', '}']).next().unwrap_or_default());
        let answer = match () {
            () if line.contains("tools/call") => {
                output.write_all(format!("{PING}\n").repeat(PINGS).as_bytes()).await.ok()?;
                std::future::pending().await
            }
            () if line.contains("\"initialize\"") => {
                r#""result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}"#
            }
            () if line.contains("tools/list") => {
                r#""result":{"tools":[{"name":"take","inputSchema":{"type":"object"}}]}"#
            }
            () => r#""error":{"code":-32601,"message":"no"}"#,
        };
        if !id.is_empty() {
            output.write_all(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{answer}}}\n").as_bytes()).await.ok()?;
        }
    }
    Some(())
}

#[tokio::test]
async fn unread_answers_of_tcp_instances_stay_within_the_limit() {
    let _part = crate::part().await;
    let (port, host) = at_port().await;
    let section = format!("[upstreams.up]\nurl = \"tcp://127.0.0.1:{port}\"\nsharing = \"per-session\"");
    let gateway = Gateway::serve(&Config::new().server("memory_limit = \"32MiB\"").section(&section)).await;
    let take = ["up__take".to_owned()];
    let mut clients = Vec::new();
    for _ in 0..UPSTREAMS {
        clients.push(client_of(&gateway, &take).await);
    }
    let at_first = resident_kib(gateway.pid).expect("it runs");
    let mut calls = Vec::new();
    for client in &clients {
        calls.push(client.start(tool(&take[0], "{}")).await);
    }
    pings_are_read(&gateway, 1).await;
    let now = resident_kib(gateway.pid).expect("it runs");
    assert!(now < at_first + 16 * MIB, "{now} KiB, at first {at_first}");
    host.abort();
}
