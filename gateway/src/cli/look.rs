//! Looks at a running gateway by its admin address: what `ls` and `status` show.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;

use super::args::Look;
use super::failure::Failure;
use super::settings;

/// How long a gateway may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// An order is answered when it was done: a child is given its time to end.
const ORDER_PATIENCE: Duration = Duration::from_secs(40);
/// The largest page that is read.
const PAGE_MAX: u64 = 16 << 20;

/// What a gateway says of all its upstreams.
#[derive(Debug, Deserialize)]
pub(super) struct Whole {
    pub(super) ready: bool,
    pub(super) upstreams: Vec<Row>,
}

/// What it says of one.
#[derive(Debug, Deserialize)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) transport: String,
    pub(super) state: String,
    pub(super) since_seconds: u64,
    pub(super) uptime_seconds: Option<u64>,
    pub(super) downtime_seconds: Option<u64>,
    pub(super) restarts: u64,
    pub(super) restarted_for: Option<String>,
    pub(super) last_error: Option<LastError>,
    pub(super) cause: Option<String>,
    pub(super) retry_in_seconds: Option<u64>,
    pub(super) pid: Option<u32>,
    pub(super) revision: Option<String>,
    pub(super) era: Option<String>,
    pub(super) started_in_seconds: Option<f64>,
    pub(super) items: Option<Items>,
    #[serde(default)]
    pub(super) remarks: Vec<String>,
    pub(super) calls: Option<Calls>,
    #[serde(default)]
    pub(super) stderr: Vec<String>,
    #[serde(default)]
    pub(super) instances: Vec<Row>,
}

/// What was last wrong with it, though it may be over.
#[derive(Debug, Deserialize)]
pub(super) struct LastError {
    pub(super) cause: String,
    pub(super) ago_seconds: u64,
}

/// How much it has to do.
#[derive(Debug, Deserialize)]
pub(super) struct Calls {
    pub(super) in_flight: usize,
    pub(super) queued: usize,
}

/// How much it offers.
#[derive(Debug, Deserialize)]
pub(super) struct Items {
    pub(super) tools: usize,
    pub(super) resources: usize,
    pub(super) templates: usize,
    pub(super) prompts: usize,
}

/// The page of the gateway that the command line or the configuration points to, as JSON.
pub(super) fn page(look: &Look) -> Result<String, Failure> {
    let (status, page) = ask(look, "GET /readyz?verbose&format=json", "")?;
    // A gateway that is draining says 503, and what it says is no less true.
    match status {
        200 | 503 => Ok(page),
        status => Err(anyhow::anyhow!("what answers there is no gateway: HTTP status {status}").into()),
    }
}

/// Sends an order there; gives the status and what is said.
pub(super) fn post(look: &Look, path: &str) -> Result<(u16, String), Failure> {
    ask(look, &format!("POST {path}"), "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
}

fn ask(look: &Look, what: &str, rest: &str) -> Result<(u16, String), Failure> {
    let address = address(look)?;
    let patience = if what.starts_with("GET") { PATIENCE } else { ORDER_PATIENCE };
    Ok(exchange(address, what, rest, patience).map_err(|error| explained(error, address, patience))?)
}

/// What an error means. What takes the connection and does not answer is there, and busy or hung.
fn explained(error: anyhow::Error, address: SocketAddr, patience: Duration) -> anyhow::Error {
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    if matches!(kind, Some(ErrorKind::WouldBlock | ErrorKind::TimedOut)) {
        let seconds = patience.as_secs();
        return anyhow::anyhow!(
            "no answer from http://{address} within {seconds} s; what listens there is busy, hangs, or is no gateway"
        );
    }
    error.context(format!(
        "no gateway answers at http://{address}; is `trunkline serve` running? Another address is given with --admin, or by \
         `[admin] listen` in the configuration"
    ))
}

/// What a page says.
pub(super) fn parse(page: &str) -> Result<Whole, Failure> {
    Ok(serde_json::from_str(page).context("what answers there is no gateway, or one of another version")?)
}

fn address(look: &Look) -> Result<SocketAddr, Failure> {
    let given = look.admin.clone().map(|value| ("--admin", &["admin", "listen"][..], value));
    let Some(address) = settings::admin(&look.shared, given)? else {
        return Err(
            anyhow::anyhow!("the admin address is off, so there is nothing to look at: set `[admin] listen`").into()
        );
    };
    // "Every address" is none that can be connected to.
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        std::net::IpAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
        std::net::IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
    };
    Ok(SocketAddr::new(ip, address.port()))
}

/// One request and its answer; `rest` are further headers, and a body.
fn exchange(address: SocketAddr, what: &str, rest: &str, patience: Duration) -> Result<(u16, String), anyhow::Error> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let rest = if rest.is_empty() { "\r\n" } else { rest };
    let request = format!("{what} HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n{rest}");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(PAGE_MAX).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let Some((head, body)) = answer.split_once("\r\n\r\n") else { bail!("it does not speak HTTP") };
    match head.split(' ').nth(1).and_then(|status| status.parse().ok()) {
        Some(status) => Ok((status, body.to_owned())),
        None => bail!("it does not speak HTTP"),
    }
}

impl Row {
    /// Whether there is somebody who takes calls.
    pub(super) fn is_up(&self) -> bool {
        matches!(&*self.state, "ready" | "degraded")
    }
}

/// Seconds, as a person says them.
pub(super) fn time(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// A count and its noun.
pub(super) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_a_connection_and_does_not_answer_is_said_to_hang() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, patience) = (listener.local_addr().unwrap(), Duration::from_millis(20));
        let error = exchange(address, "GET /", "", patience).unwrap_err();
        let said = format!("{:#}", explained(error, address, Duration::from_secs(5)));
        assert_eq!(
            said,
            format!("no answer from http://{address} within 5 s; what listens there is busy, hangs, or is no gateway")
        );
        let refused = std::io::Error::from(ErrorKind::ConnectionRefused);
        assert!(
            format!("{:#}", explained(refused.into(), address, patience)).contains("is `trunkline serve` running?")
        );
    }

    #[test]
    fn times_are_said_as_people_say_them() {
        assert_eq!([5, 65, 3725, 90_000].map(time), ["5 s", "1 min 5 s", "1 h 2 min", "1 d 1 h"]);
        assert_eq!((counted(1, "tool"), counted(0, "tool")), ("1 tool".into(), "0 tools".into()));
    }
}
