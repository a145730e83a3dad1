//! The way to a running gateway: its control socket, else its admin address; one request and its answer.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Once;
use std::time::Duration;

use anyhow::{anyhow, bail};

use crate::admin::{Running, control};
use crate::cli::process::failure::note;
use crate::config::fault::printable;
use crate::telemetry::config::{AdminToken, Control};

use crate::cli::args::{Look, settings};
use crate::cli::process::Failure;

/// How long a gateway may take to answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// The largest page that is read.
const PAGE_MAX: u64 = 16 << 20;

/// The way to one gateway.
pub(crate) enum Reach {
    /// A connection to its control socket.
    Socket(UnixStream, u32),
    /// Its admin address, and what it asks for.
    Address(SocketAddr, Option<AdminToken>),
}

/// The way to the gateway that the command line means. No file of the configuration is read where its control socket is there: one
/// may be half saved.
pub(crate) fn gateway(look: &Look) -> Result<Reach, Failure> {
    if let Some(address) = look.admin.clone() {
        let given = ("--admin", &["admin", "listen"][..], address);
        let Some(address) = settings::admin(&look.shared, Some(given))?.listen else {
            return Err(anyhow!("`--admin off` names no gateway: pass an address").into());
        };
        return Ok(Reach::Address(reachable(address), settings::admin_token(&look.shared)));
    }
    let (Control { folders, files }, is_named) = settings::control(&look.shared);
    let all = control::running(&folders);
    if all.is_empty() || (is_named && look.pid.is_none() && !all.iter().any(|one| one.is_of(&files))) {
        return by_address(look, &folders);
    }
    match chosen(all, &files, look.pid, is_named) {
        Ok(running) => {
            if !files.is_empty() && !running.is_of(&files) && look.pid.is_none() {
                // Once, however often it is looked at.
                static SAID: Once = Once::new();
                SAID.call_once(|| {
                    note(&format!("note: the running gateway (process {}) has another configuration", running.pid))
                });
            }
            Ok(Reach::Socket(running.stream, running.pid))
        }
        Err(why) => Err(anyhow!(why).into()),
    }
}

/// The gateway that is meant, of those that run: by its process; else by its files, else the only one, and one that serves many before
/// those that hosts have started for themselves.
fn chosen(all: Vec<Running>, files: &[PathBuf], pid: Option<u32>, is_named: bool) -> Result<Running, String> {
    let is_meant = |one: &Running| match pid {
        Some(pid) => one.pid == pid,
        None => one.is_of(files),
    };
    let (mut meant, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_meant);
    if let (Some(pid), true) = (pid, meant.is_empty()) {
        return Err(format!("no gateway of this user has process id {pid}. Running: {}", shown(&others)));
    }
    if meant.is_empty() && !is_named {
        meant = others;
    }
    let serves = meant.iter().filter(|one| one.mode.is_of_many()).count();
    if serves == 1 {
        meant.retain(|one| one.mode.is_of_many());
    }
    match meant.len() {
        1 => Ok(meant.remove(0)),
        _ => Err(format!("several gateways are running; choose one with --pid or --config: {}", shown(&meant))),
    }
}

fn shown(running: &[Running]) -> String {
    let one = |one: &Running| format!("process {} (`{}`)", one.pid, one.mode.command());
    let all: Vec<_> = running.iter().map(one).collect();
    match all.len() {
        0 => "none".to_owned(),
        _ => all.join(", "),
    }
}

/// Where there is no control socket: the admin address of the configuration, which takes orders from who has its token.
fn by_address(look: &Look, folders: &[PathBuf]) -> Result<Reach, Failure> {
    let admin = settings::admin(&look.shared, None).ok();
    if let Some((address, token)) = admin.and_then(|admin| Some((admin.listen?, admin.token?))) {
        return Ok(Reach::Address(reachable(address), Some(token)));
    }
    let folders: Vec<_> = folders.iter().map(|folder| printable(&folder.display().to_string())).collect();
    let folders =
        if folders.is_empty() { "no folder, since HOME is not set".to_owned() } else { folders.join(" and ") };
    let options = look.shared.options();
    Err(anyhow!(
        "no gateway found for this configuration (no control socket in {folders}); is `trunkline serve{options}` running? For a \
         gateway of another user or machine pass `--admin ADDRESS` and set its `[admin] token`"
    )
    .into())
}

/// "Every address" is none that can be connected to.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, address.port())
}

impl Reach {
    /// One request and its answer: the status, and what is said. `what` is the method and the path; `body` is JSON, or empty.
    pub(crate) fn ask(self, what: &str, body: &str, patience: Duration) -> Result<(u16, String), anyhow::Error> {
        let name = self.to_string();
        let answered = match self {
            Self::Socket(stream, _) => {
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                exchange(stream, "control", what, "", body)
            }
            Self::Address(address, token) => {
                TcpStream::connect_timeout(&address, PATIENCE).map_err(Into::into).and_then(|stream| {
                    stream.set_read_timeout(Some(patience))?;
                    stream.set_write_timeout(Some(PATIENCE))?;
                    let token = token.map(|token| format!("Authorization: Bearer {}\r\n", token.as_str()));
                    exchange(stream, &address.to_string(), what, &token.unwrap_or_default(), body)
                })
            }
        };
        answered.map_err(|error| explained(error, &name, patience))
    }
}

impl std::fmt::Display for Reach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Socket(_, pid) => write!(f, "the control socket of process {pid}"),
            Self::Address(address, _) => write!(f, "http://{address}"),
        }
    }
}

/// What an error means. What takes the connection and does not answer is there, and busy or hung.
fn explained(error: anyhow::Error, name: &str, patience: Duration) -> anyhow::Error {
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    if matches!(kind, Some(ErrorKind::WouldBlock | ErrorKind::TimedOut)) {
        let seconds = patience.as_secs();
        return anyhow!(
            "no answer from {name} within {seconds} s: the gateway is busy or hangs, or another program listens there"
        );
    }
    error.context(format!(
        "cannot reach a gateway at {name}; is `trunkline serve` running? Set another address with --admin or `[admin] listen`"
    ))
}

fn exchange(
    mut stream: impl Read + Write,
    host: &str,
    what: &str,
    headers: &str,
    body: &str,
) -> Result<(u16, String), anyhow::Error> {
    let kind = match body {
        "" => String::new(),
        body => format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()),
    };
    let request = format!("{what} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n{headers}{kind}\r\n{body}");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(PAGE_MAX).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let Some((head, body)) = answer.split_once("\r\n\r\n") else { bail!("the answer is not HTTP") };
    match head.split(' ').nth(1).and_then(|status| status.parse().ok()) {
        Some(status) => Ok((status, body.to_owned())),
        None => bail!("the answer is not HTTP"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_a_connection_and_does_not_answer_is_said_to_hang() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, patience) = (listener.local_addr().unwrap(), Duration::from_millis(20));
        let error = Reach::Address(address, None).ask("GET /", "", patience).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            format!(
                "no answer from http://{address} within 0 s: the gateway is busy or hangs, or another program listens there"
            )
        );
        drop(listener);
        let error = Reach::Address(address, None).ask("GET /", "", patience).unwrap_err();
        assert!(format!("{error:#}").contains("is `trunkline serve` running?"), "{error:#}");
    }
}
