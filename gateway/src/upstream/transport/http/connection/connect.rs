//! Opens connections to an HTTP upstream: addresses, time-outs, TLS with the platform's roots.

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig};
use rustls_platform_verifier::Verifier;
use socket2::{SockRef, TcpKeepalive};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use super::dns::Resolver;
use super::epoch::ConnectionEpoch;
use super::flow::{Flow, Unread};
use crate::health::{Cause, CauseCode};
use crate::runtime::Tasks;
use crate::runtime::poll::{poll_when_woken, repoll_on_self_wake};
use crate::runtime::timer::late::within;
use crate::runtime::watched::{Pieces, Watched};
use crate::upstream::transport::exchange::Lost;

/// How long one address may take to answer.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// How many addresses are tried.
const ADDRESSES_MAX: usize = 4;
/// How long nothing comes before the system asks whether the peer is there, how often it asks, and how many answers may be missing.
const PROBE_AFTER: Duration = Duration::from_secs(20);
const PROBE_EVERY: Duration = Duration::from_secs(10);
const PROBES_MAX: u32 = 3;
/// How long what was sent may stay untaken by the peer's system.
const UNTAKEN_MAX: Duration = Duration::from_secs(50);
/// How long the TLS handshake may take.
const TLS_MAX: Duration = Duration::from_secs(5);

/// The most bytes of a response's head, and of what is read at once.
const BUFFER_BYTES_MAX: usize = 32 * 1024;

/// What sends requests on one connection.
pub(crate) struct Sender {
    pub(crate) requests: SendRequest<Pieces>,
    /// Its way out.
    pub(crate) flow: Arc<Flow>,
    /// The epoch in which it was opened.
    pub(crate) epoch: u64,
}

/// Opens connections to one host.
pub(crate) struct Connector {
    host: String,
    port: u16,
    names: Resolver,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    tasks: Tasks,
    /// A connection ends with the epoch that it was opened in.
    epoch: Arc<ConnectionEpoch>,
    unread: Arc<Unread>,
}

impl Connector {
    /// For the host of a URL. Connections are tasks of the level.
    pub(crate) fn new(
        url: &http::Uri,
        tasks: Tasks,
        epoch: Arc<ConnectionEpoch>,
        unread: Arc<Unread>,
    ) -> Result<Self, String> {
        let host = url.host().ok_or("the URL has no host")?.trim_start_matches('[').trim_end_matches(']').to_owned();
        let is_tls = matches!(url.scheme_str(), Some("https" | "wss"));
        let port = url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let tls = match is_tls {
            true => {
                let name = ServerName::try_from(host.clone())
                    .map_err(|_| format!("`{host}` is not a valid certificate name"))?;
                Some((TlsConnector::from(tls_config()?), name))
            }
            false => None,
        };
        Ok(Self { names: Resolver::of(&host, port), host, port, tls, tasks, epoch, unread })
    }

    /// The epoch in which connections are opened.
    pub(crate) fn epoch(&self) -> &ConnectionEpoch {
        &self.epoch
    }

    /// A new connection; the text says why there is none.
    pub(crate) async fn dial(&self) -> Result<Sender, Cause> {
        let epoch = self.epoch.now();
        let (stream, flow) = (self.connect().await?, Arc::new(Flow::counted(self.unread.bytes())));
        // Small frames, asked for one by one: waiting to fill a packet only costs.
        let _ = stream.set_nodelay(true);
        let stream = Watched::new(stream, flow.clone());
        match &self.tls {
            None => self.shake(stream, flow, epoch).await,
            Some((connector, name)) => self.shake(self.secured(connector, name, stream).await?, flow, epoch).await,
        }
    }

    /// Sends a request on a new connection of its own, which its response may have become something else.
    pub(crate) async fn send_alone(&self, request: Request<Pieces>) -> Result<Response<Incoming>, Lost> {
        let over = self.epoch.over();
        let stream = self.connect().await.map_err(Lost::Unsent)?;
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => self.alone(stream, over, request).await,
            Some((connector, name)) => {
                let stream = self.secured(connector, name, stream).await.map_err(Lost::Unsent)?;
                self.alone(stream, over, request).await
            }
        }
    }

    async fn alone<S>(
        &self,
        stream: S,
        over: CancellationToken,
        request: Request<Pieces>,
    ) -> Result<Response<Incoming>, Lost>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let broken = |error: hyper::Error| Cause::new(CauseCode::ConnectionLost, error.to_string());
        let opened = http1::Builder::new().max_buf_size(BUFFER_BYTES_MAX).handshake(TokioIo::new(stream)).await;
        let (mut requests, connection) = opened.map_err(|error| Lost::Unsent(broken(error)))?;
        self.tasks.spawn(async move {
            tokio::select! {
                ended = connection.with_upgrades() => if let Err(error) = ended { tracing::debug!(%error, "connection closed") },
                () = over.cancelled() => {}
            }
        });
        requests.send_request(request).await.map_err(|error| Lost::Unknown(broken(error)))
    }

    /// TLS on a new connection.
    async fn secured<S>(
        &self,
        connector: &TlsConnector,
        name: &ServerName<'static>,
        stream: S,
    ) -> Result<TlsStream<S>, Cause>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let shaken = within(TLS_MAX, connector.connect(name.clone(), stream)).await;
        shaken.map_err(|_| self.tls_failed().own(&format!(" took more than {} s", TLS_MAX.as_secs())))?.map_err(
            |error| {
                let (said, advice) = in_words(&error);
                self.tls_failed().own(&format!(" failed: {said}")).advise(advice)
            },
        )
    }

    async fn connect(&self) -> Result<TcpStream, Cause> {
        // Where it is, is for the operator to know.
        let failed = |code: CauseCode, why: &str| {
            let place = format!(" to {}:{}", self.host, self.port);
            Cause::new(code, "cannot connect").foreign(&place).own(&format!(": {why}"))
        };
        let mut addresses = self.names.find().await?;
        addresses.truncate(ADDRESSES_MAX);
        let mut why = failed(CauseCode::DnsFailed, "the host has no address");
        for address in &addresses {
            // All addresses together take little more than one: the last word is for who is slow, not for who is many.
            let limit = if addresses.len() == 1 { CONNECT_MAX } else { CONNECT_MAX / 2 };
            match within(limit, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    watch(&stream);
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

    fn tls_failed(&self) -> Cause {
        Cause::new(CauseCode::TlsFailed, "the TLS handshake").foreign(&format!(" with {}", self.host))
    }

    async fn shake<S>(&self, stream: S, flow: Arc<Flow>, epoch: (u64, CancellationToken)) -> Result<Sender, Cause>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (requests, connection) = http1::Builder::new()
            .max_buf_size(BUFFER_BYTES_MAX)
            // Head and body go out from one buffer.
            .writev(false)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| Cause::new(CauseCode::ConnectionLost, error.to_string()))?;
        let (watched, unread) = (flow.clone(), self.unread.clone());
        let (epoch, over) = epoch;
        self.tasks.spawn(repoll_on_self_wake(async move {
            tokio::select! {
                biased;
                // What went wrong is told to whoever waits for a response.
                ended = connection => if let Err(error) = ended { tracing::debug!(%error, "connection closed") },
                () = poll_when_woken(over.cancelled()) => {}
                () = poll_when_woken(watched.watch(&unread)) => {}
            }
        }));
        Ok(Sender { requests, flow, epoch })
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

/// Why a handshake failed, with the library's own word where that is all there is to say; and what to do.
fn in_words(error: &std::io::Error) -> (String, &'static str) {
    let fault = match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(fault)) => fault,
        Some(rustls::Error::InvalidMessage(_)) => {
            return ("the server does not speak TLS".to_owned(), "for plain HTTP, begin `url` with http://");
        }
        _ => return (error.to_string(), ""),
    };
    match fault {
        CertificateError::UnknownIssuer => (
            "its certificate is signed by nobody known here".to_owned(),
            "if it is to be trusted, put its authority's certificate into the file that SSL_CERT_FILE names",
        ),
        // It is given in no other form than its name.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            let said = "its certificate is an authority's, or signed by itself";
            (said.to_owned(), "a certificate for this host, signed by an authority, is needed")
        }
        fault => (format!("its certificate is not accepted: {fault}"), ""),
    }
}

/// Made once: reading the platform's roots takes a while.
fn tls_config() -> Result<Arc<ClientConfig>, String> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    let make = || {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verifier::new(provider.clone())
            .map_err(|error| format!("the platform's certificates cannot be read: {error}"))?;
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    };
    CONFIG.get_or_init(make).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_peer_that_vanishes_is_noticed_within_a_minute() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let instance = crate::upstream::tests::rig::Rig::new(crate::upstream::tests::rig::config()).instance;
        let dialer = Connector::new(&url, Tasks::new(), Arc::default(), Unread::new(instance)).unwrap();
        let stream = dialer.connect().await.unwrap();
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        let (after, every) = (socket.tcp_keepalive_time().unwrap(), socket.tcp_keepalive_interval().unwrap());
        let probed = after + every * socket.tcp_keepalive_retries().unwrap();
        let untaken = socket.tcp_user_timeout().unwrap().expect("it is bounded");
        assert!(probed.max(untaken) < Duration::from_secs(60), "{probed:?} {untaken:?}");
    }
}
