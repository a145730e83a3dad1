//! Looks at a running gateway by its admin address: what `ls` and `status` show.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;

use super::args::Look;
use super::failure::Failure;
use super::settings;

/// How long a gateway may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
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
    pub(super) restarts: u64,
    pub(super) cause: Option<String>,
    pub(super) retry_in_seconds: Option<u64>,
    pub(super) pid: Option<u32>,
    pub(super) revision: Option<String>,
    pub(super) started_in_seconds: Option<f64>,
    pub(super) items: Option<Items>,
    #[serde(default)]
    pub(super) stderr: Vec<String>,
    #[serde(default)]
    pub(super) instances: Vec<Row>,
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
    let address = address(look)?;
    let said = ask(address).with_context(|| {
        format!(
            "no gateway answers at http://{address}; is `trunkline serve` running? Another address is given with --admin, or by \
             `[admin] listen` in the configuration"
        )
    })?;
    Ok(said)
}

/// What a page says.
pub(super) fn parse(page: &str) -> Result<Whole, Failure> {
    Ok(serde_json::from_str(page).context("what answers there is no gateway, or one of another version")?)
}

fn address(look: &Look) -> Result<SocketAddr, Failure> {
    let given = look.admin.clone().map(|value| ("--admin", &["admin", "listen"][..], value));
    let settings = settings::read(&look.shared, given.into_iter().collect())?;
    let Some(address) = settings.loaded.config.admin.listen else {
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

fn ask(address: SocketAddr) -> Result<String, anyhow::Error> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = format!("GET /readyz?verbose&format=json HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(PAGE_MAX).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let Some((head, body)) = answer.split_once("\r\n\r\n") else { bail!("it does not speak HTTP") };
    // A gateway that is draining says 503, and what it says is no less true.
    match head.split(' ').nth(1) {
        Some("200" | "503") => Ok(body.to_owned()),
        status => bail!("it answers with HTTP status {}", status.unwrap_or("unknown")),
    }
}

impl Row {
    /// The era of its revision.
    pub(super) fn era(&self) -> Option<&'static str> {
        let revision = crate::protocol::Revision::parse(self.revision.as_deref()?)?;
        Some(if revision.is_modern() { "stateless" } else { "handshake" })
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
    fn times_are_said_as_people_say_them() {
        assert_eq!([5, 65, 3725, 90_000].map(time), ["5 s", "1 min 5 s", "1 h 2 min", "1 d 1 h"]);
        assert_eq!((counted(1, "tool"), counted(0, "tool")), ("1 tool".into(), "0 tools".into()));
    }
}
