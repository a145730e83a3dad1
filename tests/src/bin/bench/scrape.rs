//! Metrics after a flood of what clients invent: how many series there are, and how long a scrape takes.

use super::stage::{self, Process};
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use trunkline_tests::gateway::ADMIN_TOKEN;

/// So many connections call at once.
const WORKERS: usize = 32;
/// More tools and principals than metrics tell apart.
const TOOLS: usize = 1_200;
const PRINCIPALS: usize = 150;
/// So many series there may be, whatever clients invent.
const SERIES_MAX: usize = 5_000;
const SCRAPES: usize = 300;

/// Makes so many calls, each with something that its client has invented, then scrapes.
pub(crate) async fn measure(calls: usize, folder: &Path) -> Result<()> {
    println!("\nmetrics after {calls} calls with invented names, principals and sessions");
    let (address, admin) = (stage::free_address()?, stage::free_address()?);
    let gateway = start(&address, &admin, folder)?;
    let before = scrape(&admin).await?;
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        let address = address.clone();
        tasks.spawn(async move {
            let mut socket = None;
            for at in (worker..calls).step_by(WORKERS) {
                invent(&mut socket, &address, at).await.with_context(|| format!("call {at}"))?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let mut times = Vec::with_capacity(SCRAPES);
    let mut page = String::new();
    for _ in 0..SCRAPES {
        let started = Instant::now();
        page = scrape(&admin).await?;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    let shown = |share: f64| times[(SCRAPES as f64 * share) as usize].as_secs_f64() * 1e3;
    println!("  {:28} {:>8} before, {} after", "series", series(&before), series(&page));
    println!("  {:28} {:>8.3} ms p50, {:.3} ms p99, {} bytes", "a scrape", shown(0.5), shown(0.99), page.len());
    println!("  {:28} {:>8.1} MiB", "resident", gateway.resident()? as f64 / 1024.0);
    ensure!(series(&page) < SERIES_MAX, "{} series, of which there may be {SERIES_MAX}", series(&page));
    for what in ["invented", "Invented"] {
        ensure!(!page.contains(what), "a series bears what a client has invented: {what}");
    }
    gateway.stop()
}

fn start(address: &str, admin: &str, folder: &Path) -> Result<Process> {
    let mut config = format!(
        "[server]\nlisten = \"{address}\"\n[admin]\nlisten = \"{admin}\"\ntoken = \"{ADMIN_TOKEN}\"\n[log]\nlevel = \"error\"\n\
         [metrics]\nper_tool = true\n[upstreams.u0]\ncommand = \"{}\"\nargs = [\"stdio\", \"{TOOLS}\"]\n",
        stage::sibling("bench-upstream")?.display()
    );
    for at in 0..PRINCIPALS {
        config += &format!("[[auth.tokens]]\nname = \"p{at}\"\ntoken = \"{}\"\n", token(at));
    }
    let file = folder.join("scrape.toml");
    std::fs::write(&file, config)?;
    let mut command = Command::new(stage::sibling("trunkline")?);
    command.args(["serve", "--config"]).arg(&file).stderr(Stdio::null()).env("TRUNKLINE_CATALOG__CACHE", "false");
    let process = Process::start(&mut command, Some(address))?;
    stage::await_ready(admin)?;
    Ok(process)
}

fn token(at: usize) -> String {
    format!("{at:08}-0123456789abcdef0123456789abcdef")
}

/// One request with something invented in it; what is answered is read and means nothing.
async fn invent(socket: &mut Option<TcpStream>, address: &str, at: usize) -> Result<()> {
    let modern = "mcp-protocol-version: 2026-07-28\r\n".to_owned();
    let legacy = "mcp-protocol-version: 2025-06-18\r\n".to_owned();
    let authorized = format!("authorization: Bearer {}\r\n", token(at % PRINCIPALS));
    let tool =
        |name: &str| format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {name}\r\n");
    let name = format!("invented_{at}");
    let (path, headers, method, params) = match at % 10 {
        0 => ("/mcp", authorized + &tool(&name), "tools/call", format!(r#""name":"{name}""#)),
        1 => (
            "/mcp",
            format!("authorization: Bearer {name}\r\n{}", tool(&name)),
            "tools/call",
            format!(r#""name":"{name}""#),
        ),
        2 => ("/mcp", authorized + &legacy + &format!("mcp-session-id: {name}\r\n"), "tools/list", String::new()),
        3 => ("/mcp", authorized + &modern + &format!("mcp-method: {name}/go\r\n"), "invented/method", String::new()),
        4 => ("/mcp", authorized + &format!("mcp-protocol-version: {name}\r\n"), "tools/list", String::new()),
        5 => {
            let uri = format!("invented://{at}/x");
            let headers = format!("{modern}mcp-method: resources/read\r\nmcp-name: {uri}\r\n");
            ("/mcp", authorized + &headers, "resources/read", format!(r#""uri":"{uri}""#))
        }
        6 => {
            let client = format!(r#"{{"name":"{name}","version":"{at}"}}"#);
            let params = format!(r#""protocolVersion":"2025-06-18","capabilities":{{}},"clientInfo":{client}"#);
            ("/mcp", authorized, "initialize", params)
        }
        7 => {
            let headers = format!("{modern}mcp-method: prompts/get\r\nmcp-name: {name}\r\n");
            ("/mcp", authorized + &headers, "prompts/get", format!(r#""name":"{name}""#))
        }
        8 => ("/invented", authorized, "tools/list", String::new()),
        _ => {
            let name = match at / 10 % TOOLS {
                0 => "u0__echo".to_owned(),
                number => format!("u0__tool_{number:04}"),
            };
            ("/mcp", authorized + &tool(&name), "tools/call", format!(r#""name":"{name}","arguments":{{"text":"x"}}"#))
        }
    };
    let meta = match headers.contains("2026-07-28") {
        true => {
            r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#
        }
        false => "",
    };
    let comma = if params.is_empty() || meta.is_empty() { "" } else { "," };
    let method = if method == "invented/method" { format!("{name}/go") } else { method.into() };
    let body = format!(r#"{{"jsonrpc":"2.0","id":{at},"method":"{method}","params":{{{params}{comma}{meta}}}}}"#);
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         {headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut open = match socket.take() {
        Some(open) => open,
        None => TcpStream::connect(address).await?,
    };
    open.write_all(request.as_bytes()).await?;
    *socket = answered(&mut open).await?.then_some(open);
    Ok(())
}

/// Reads an answer; whether the connection goes on.
async fn answered(socket: &mut TcpStream) -> Result<bool> {
    let (mut answer, mut buffer) = (Vec::new(), [0; 16384]);
    loop {
        let read = socket.read(&mut buffer).await?;
        if read == 0 {
            ensure!(!answer.is_empty(), "the connection was closed without an answer");
            return Ok(false);
        }
        answer.extend_from_slice(&buffer[..read]);
        let Some(head) = answer.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4) else { continue };
        let text = std::str::from_utf8(&answer[..head])?.to_ascii_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        let is_whole = match length {
            Some(length) => answer.len() >= head + length,
            None if text.contains("transfer-encoding: chunked") => answer.ends_with(b"0\r\n\r\n"),
            None => true,
        };
        if is_whole {
            return Ok(!text.contains("connection: close"));
        }
    }
}

/// The metrics as they are now, with the head of the answer.
pub(crate) async fn scrape(admin: &str) -> Result<String> {
    let mut socket = TcpStream::connect(admin).await?;
    let request = format!("GET /metrics HTTP/1.1\r\nhost: {admin}\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await?;
    let mut page = String::new();
    tokio::time::timeout(Duration::from_secs(10), socket.read_to_string(&mut page)).await??;
    if !page.starts_with("HTTP/1.1 200") {
        bail!("no metrics: {}", page.lines().next().unwrap_or_default());
    }
    Ok(page)
}

fn series(page: &str) -> usize {
    let body = page.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    body.lines().filter(|line| line.contains(' ') && !line.starts_with('#')).count()
}
