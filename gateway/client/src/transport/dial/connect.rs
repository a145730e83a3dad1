//! Opens connections to a host, or to a socket of this machine.

use super::dns::Resolver;
use super::proxy;
use crate::config::{Proxy, Reach};
use crate::health::{Cause, CauseCode};
use crate::runtime::timer::late::within;
use http::HeaderValue;
use socket2::{SockRef, TcpKeepalive};
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::sleep;

/// How long one address may take to answer.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// How soon a socket is tried again whose server has a full queue.
const QUEUE_PAUSE: Duration = Duration::from_millis(10);
/// The error for a socket that is none of streams (`EPROTOTYPE`).
const WRONG_KIND: i32 = rustix::io::Errno::PROTOTYPE.raw_os_error();
/// How many addresses are tried.
const ADDRESSES_MAX: usize = 4;
/// How long nothing comes before the system asks whether the peer is there, how often it asks, and how many answers may be missing.
const PROBE_AFTER: Duration = Duration::from_secs(20);
const PROBE_EVERY: Duration = Duration::from_secs(10);
const PROBES_MAX: u32 = 3;
/// How long what was sent may stay untaken by the peer's system.
const UNTAKEN_MAX: Duration = Duration::from_secs(50);

/// A host and its port.
pub(crate) struct Host {
    name: String,
    port: u16,
    names: Resolver,
    /// The proxy that leads there, and what it is shown.
    proxy: Option<(Box<Host>, Option<HeaderValue>)>,
    reach: Reach,
}

impl Host {
    /// By its name, or its address without brackets.
    pub(crate) fn new(name: &str, port: u16) -> Self {
        Self { names: Resolver::of(name, port), name: name.to_owned(), port, proxy: None, reach: Reach::Written }
    }

    /// The same, by way of a proxy where there is one.
    pub(crate) fn by(self, proxy: Option<&Proxy>) -> Self {
        let proxy = proxy.map(|proxy| (Box::new(Self::new(&proxy.host, proxy.port)), proxy.credentials.clone()));
        Self { proxy, ..self }
    }

    /// The same, led to no other addresses than these.
    pub(crate) fn within(self, reach: Reach) -> Self {
        Self { reach, ..self }
    }

    /// A new connection, on which small frames do not wait for more of them.
    pub(crate) async fn connect(&self) -> Result<TcpStream, Cause> {
        if !self.reach.admits_host(&self.name) {
            return Err(self.beyond());
        }
        let Some((proxy, credentials)) = &self.proxy else { return self.straight().await };
        self.judged().await?;
        // What a name stands for there, the proxy decides.
        let mut stream = proxy.straight().await.map_err(|why| why.own(" (the proxy)"))?;
        proxy::lead(&mut stream, (&self.name, self.port), credentials.as_ref()).await?;
        Ok(stream)
    }

    /// Whether it may be asked for by way of a proxy: a name that a server gave is looked up here, too, where that can be done.
    async fn judged(&self) -> Result<(), Cause> {
        if self.reach == Reach::Written {
            return Ok(());
        }
        match self.names.find().await {
            Ok(found) if self.allowed(&found).len() < found.len() => Err(self.beyond()),
            // Names of the internet may be known to the proxy alone.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    async fn straight(&self) -> Result<TcpStream, Cause> {
        let failed = |code: CauseCode, why: &str| self.failed(code, why);
        let found = self.names.find().await?;
        let mut addresses = self.allowed(&found);
        if addresses.is_empty() && !found.is_empty() {
            return Err(self.beyond());
        }
        addresses.truncate(ADDRESSES_MAX);
        let mut why = failed(CauseCode::DnsFailed, "the host has no address");
        for address in &addresses {
            // All addresses together take little more than one: the last word is for who is slow, not for who is many.
            let limit = if addresses.len() == 1 { CONNECT_MAX } else { CONNECT_MAX / 2 };
            match within(limit, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    watch(&stream);
                    // Small frames, asked for one by one: waiting to fill a packet only costs.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => why = failed(code_of(&error), &error.to_string()),
                Err(_) => {
                    let said = format!("no answer within {} s", limit.as_secs_f32());
                    why = failed(CauseCode::ConnectTimedOut, &said);
                }
            }
        }
        Err(why)
    }

    /// Where it is, is for the operator to know.
    fn failed(&self, code: CauseCode, why: &str) -> Cause {
        let place = format!(" to {}:{}", self.name, self.port);
        Cause::new(code, "cannot connect").foreign(&place).own(&format!(": {why}"))
    }

    /// It stands for addresses to which nothing may lead that is named so.
    fn beyond(&self) -> Cause {
        let (why, advice) = match self.reach {
            Reach::Written => (
                "the name stands for a link-local address, or one where a machine's credentials are given out",
                "if that is meant, write the address itself in `url`",
            ),
            _ => (
                "a server named this host, which stands for an address of this machine or of its own network",
                "if that is meant, write the authorization server as `issuer` under `auth`",
            ),
        };
        self.failed(CauseCode::AddressRefused, why).advise(advice)
    }

    /// Without those that no name may lead to: who answers for a name decides where a request with credentials goes.
    fn allowed(&self, found: &[SocketAddr]) -> Vec<SocketAddr> {
        found.iter().filter(|address| self.reach.admits(&self.name, address.ip())).copied().collect()
    }
}

/// A new connection to a socket of this machine.
pub(crate) async fn to_socket(path: &Path) -> Result<UnixStream, Cause> {
    let failed = |code: CauseCode, why: &str| {
        let place = format!(" to {}", path.display());
        Cause::new(code, "cannot connect").foreign(&place).own(&format!(": {why}"))
    };
    let connecting = async {
        loop {
            match UnixStream::connect(path).await {
                // Where the server's queue is full the system says so at once, and keeps nobody waiting as it does with TCP.
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => sleep(QUEUE_PAUSE).await,
                other => return other,
            }
        }
    };
    match within(CONNECT_MAX, connecting).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => {
            let (code, said) = (code_of(&error), error.to_string());
            if let Some(what) = no_socket(path).await {
                return Err(
                    failed(code, &format!("{what} is there, and no socket")).advise("correct the path in `url`")
                );
            }
            let advice = match error.kind() {
                std::io::ErrorKind::NotFound => "start the server that makes this socket, or correct the path in `url`",
                std::io::ErrorKind::ConnectionRefused => "nobody listens there any more: start the server",
                std::io::ErrorKind::PermissionDenied => "let the user of the gateway write to the socket",
                _ if error.raw_os_error() == Some(WRONG_KIND) => {
                    "have the server make a stream socket, or correct the path in `url`"
                }
                _ => "",
            };
            Err(failed(code, &said).advise(advice))
        }
        Err(_) => {
            let said = format!("no answer within {} s", CONNECT_MAX.as_secs_f32());
            Err(failed(CauseCode::ConnectTimedOut, &said))
        }
    }
}

/// What is at a path, where that is no socket.
async fn no_socket(path: &Path) -> Option<&'static str> {
    let kind = tokio::fs::metadata(path).await.ok()?.file_type();
    match () {
        () if kind.is_socket() => None,
        () if kind.is_dir() => Some("a folder"),
        () if kind.is_fifo() => Some("a named pipe (FIFO)"),
        () if kind.is_file() => Some("a regular file"),
        () => Some("a device"),
    }
}

/// Has the system notice a peer that is gone without a word: an idle connection is probed, and what is sent must be taken.
fn watch(stream: &TcpStream) {
    let socket = SockRef::from(stream);
    let probes = TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_EVERY).with_retries(PROBES_MAX);
    // Without it a lost peer is noticed late, and nothing else is lost.
    let _ = socket.set_tcp_keepalive(&probes);
    let _ = socket.set_tcp_user_timeout(Some(UNTAKEN_MAX));
}

fn code_of(error: &std::io::Error) -> CauseCode {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => CauseCode::ConnectRefused,
        std::io::ErrorKind::TimedOut => CauseCode::ConnectTimedOut,
        _ => CauseCode::ConnectFailed(error.raw_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_peer_that_vanishes_is_noticed_within_a_minute() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = Host::new("127.0.0.1", listener.local_addr().unwrap().port()).connect().await.unwrap();
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        let (after, every) = (socket.tcp_keepalive_time().unwrap(), socket.tcp_keepalive_interval().unwrap());
        let probed = after + every * socket.tcp_keepalive_retries().unwrap();
        let untaken = socket.tcp_user_timeout().unwrap().expect("it is bounded");
        assert!(probed.max(untaken) < Duration::from_secs(60), "{probed:?} {untaken:?}");
    }

    #[tokio::test]
    async fn a_socket_whose_queue_is_full_is_waited_for() {
        let folder = std::env::temp_dir().join(format!("trunkline-queue-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("full.sock");
        let _ = std::fs::remove_file(&path);
        let unix = || socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
        let (listener, at) = (unix(), socket2::SockAddr::unix(&path).unwrap());
        listener.bind(&at).unwrap();
        listener.listen(0).unwrap();
        let mut held = Vec::new();
        loop {
            let one = unix();
            one.set_nonblocking(true).unwrap();
            match one.connect(&at) {
                Ok(()) => held.push(one),
                Err(full) => break assert_eq!(full.kind(), std::io::ErrorKind::WouldBlock),
            }
        }
        let mut waiting = std::pin::pin!(to_socket(&path));
        tokio::select! {
            biased;
            done = &mut waiting => panic!("{done:?}"),
            () = sleep(QUEUE_PAUSE) => {}
        }
        for _ in &held {
            listener.accept().unwrap();
        }
        waiting.await.unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test]
    async fn no_proxy_is_asked_for_a_name_that_a_server_gave_and_that_leads_into_a_network_of_ones_own() {
        let proxy = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = proxy.local_addr().unwrap().port();
        let led = async |address: &str, reach| {
            let found: Vec<SocketAddr> = address.split(' ').filter_map(|text| text.parse().ok()).collect();
            let names = Resolver::asking("as.example", 443, move |_, _| match found.is_empty() {
                true => Err(std::io::Error::other("nobody knows it")),
                false => Ok(found.clone()),
            });
            let way = Some((Box::new(Host::new("127.0.0.1", port)), None));
            let host = Host { names, proxy: way, reach, ..Host::new("as.example", 443) };
            tokio::select! {
                led = host.connect() => led.unwrap_err().code(),
                asked = proxy.accept() => asked.map(|_| CauseCode::Stopping).unwrap(),
            }
        };
        for inside in ["10.0.0.7:443", "127.0.0.1:443", "192.0.2.1:443 [fd00::1]:443"] {
            assert_eq!(led(inside, Reach::Internet).await, CauseCode::AddressRefused, "{inside}");
            assert_eq!(led(inside, Reach::Written).await, CauseCode::Stopping, "a person wrote it: {inside}");
        }
        for outside in ["192.0.2.1:443", ""] {
            assert_eq!(led(outside, Reach::Internet).await, CauseCode::Stopping, "{outside}");
        }
    }

    #[test]
    fn no_name_leads_to_an_address_that_gives_out_credentials_and_an_address_that_is_written_does() {
        let found: Vec<SocketAddr> =
            ["169.254.169.254:80", "[fe80::1]:80", "[::ffff:169.254.169.254]:80", "10.0.0.7:80"]
                .iter()
                .map(|text| text.parse().unwrap())
                .collect();
        let allowed = |name: &str| Host::new(name, 80).allowed(&found);
        assert_eq!(allowed("rebound.example"), found[3..]);
        assert_eq!(allowed("2852039166"), found[3..], "a number is a name that is looked up");
        assert_eq!(allowed("169.254.169.254"), found);
        assert_eq!(allowed("fe80::1%eth0"), found);
    }
}
