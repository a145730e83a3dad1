//! Opens connections to an HTTP upstream: to its host or to a socket of this machine.

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::ext::ReasonPhrase;
use hyper_util::rt::TokioIo;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::epoch::ConnectionEpoch;
use super::flow::{Decrypted, Flow, FlowWatch, HEAD_BYTES_MAX, Unread, broken};
use super::idle::IdleLimit;
use super::secured::{HTTP2, Secured};
use super::shared::Shared;
use crate::config::Remote;
use crate::health::{Cause, CauseCode};
use crate::runtime::Tasks;
use crate::runtime::poll::{poll_when_woken, repoll_on_self_wake};
use crate::runtime::watched::{Pieces, Watched};
use crate::transport::dial::{Host, to_socket};
use crate::transport::exchange::Lost;

/// The most headers of a response, as hyper has it.
const HEADERS_MAX: usize = 100;

/// What sends requests on one connection.
pub(crate) struct Sender {
    pub(crate) requests: SendRequest<Pieces>,
    /// Its way out.
    pub(crate) flow: Arc<Flow>,
    /// The epoch in which it was opened.
    pub(crate) epoch: u64,
}

impl Drop for Sender {
    fn drop(&mut self) {
        // The gateway closes the connection: this tells nothing about the limit of the upstream.
        self.flow.end_idle();
    }
}

/// What was dialed.
pub(crate) enum Dialed {
    /// A connection for one exchange after the other.
    Alone(Sender),
    /// One for many at once.
    Shared(Shared),
}

/// Where connections lead.
enum Door {
    /// A host, with TLS or without.
    Host(Box<Host>, Option<Box<Secured>>),
    /// A socket of this machine.
    Socket(PathBuf),
}

/// Opens connections to one upstream.
pub(crate) struct Connector {
    door: Door,
    /// The host and port, as they stand in a URL.
    authority: String,
    tasks: Tasks,
    /// A connection ends with the epoch that it was opened in.
    epoch: Arc<ConnectionEpoch>,
    unread: Arc<Unread>,
    idle_limit: Arc<IdleLimit>,
}

impl Connector {
    /// For an upstream on the network. Connections are tasks of the level.
    pub(crate) fn new(
        remote: &Remote,
        tasks: Tasks,
        epoch: Arc<ConnectionEpoch>,
        unread: Arc<Unread>,
    ) -> Result<Self, String> {
        let door = match &remote.socket {
            Some(socket) => Door::Socket(socket.clone()),
            None => Self::to_host(remote)?,
        };
        let authority = remote.url.authority().map(|authority| authority.as_str()).unwrap_or_default();
        let authority = authority.rsplit('@').next().unwrap_or_default().to_owned();
        let is_tls = matches!(&door, Door::Host(_, Some(_)));
        Ok(Self { door, authority, tasks, epoch, unread, idle_limit: Arc::new(IdleLimit::new(is_tls)) })
    }

    fn to_host(remote: &Remote) -> Result<Door, String> {
        let url = &remote.url;
        let host = url.host().ok_or("the URL has no host")?.trim_start_matches('[').trim_end_matches(']');
        let is_tls = matches!(url.scheme_str(), Some("https" | "wss"));
        let port = url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let secured = is_tls.then(|| Secured::new(host, &remote.trust)).transpose()?;
        Ok(Door::Host(
            Box::new(Host::new(host, port).by(remote.proxy.as_ref()).within(remote.reach)),
            secured.map(Box::new),
        ))
    }

    /// Whether a connection may bear many exchanges at once.
    pub(super) fn may_share(&self) -> bool {
        matches!(&self.door, Door::Host(_, Some(_)))
    }

    /// The limit of the idle time of connections.
    pub(super) fn idle_limit(&self) -> &IdleLimit {
        &self.idle_limit
    }

    /// The epoch in which connections are opened.
    pub(crate) fn epoch(&self) -> &ConnectionEpoch {
        &self.epoch
    }

    /// A new connection; the text says why there is none.
    pub(crate) async fn dial(&self) -> Result<Dialed, Cause> {
        let epoch = self.epoch.now();
        let flow = Arc::new(Flow::counted(self.unread.bytes(), self.may_share()));
        match &self.door {
            Door::Host(host, None) => {
                let stream = Watched::new(host.connect().await?, FlowWatch(flow.clone()));
                self.shake(stream, flow, epoch).await.map(Dialed::Alone)
            }
            Door::Host(host, Some(tls)) => {
                let stream = Watched::new(host.connect().await?, FlowWatch(flow.clone()));
                let stream = tls.secure(stream, true).await?;
                match stream.get_ref().1.alpn_protocol() {
                    Some(HTTP2) => {
                        let watch = (flow, self.unread.clone());
                        Shared::open(stream, &self.authority, &self.tasks, epoch, watch).await.map(Dialed::Shared)
                    }
                    _ => {
                        let stream = Watched::new(stream, Decrypted(flow.clone()));
                        self.shake(stream, flow, epoch).await.map(Dialed::Alone)
                    }
                }
            }
            Door::Socket(path) => {
                let stream = Watched::new(to_socket(path).await?, FlowWatch(flow.clone()));
                self.shake(stream, flow, epoch).await.map(Dialed::Alone)
            }
        }
    }

    /// Sends a request on a new connection of its own, which its response may have become something else.
    pub(crate) async fn send_alone(&self, request: Request<Pieces>) -> Result<Response<Incoming>, Lost> {
        let over = self.epoch.over();
        match &self.door {
            Door::Host(host, tls) => {
                let stream = host.connect().await.map_err(Lost::Unsent)?;
                match tls {
                    None => self.alone(stream, over, request).await,
                    Some(tls) => {
                        let stream = tls.secure(stream, false).await.map_err(Lost::Unsent)?;
                        self.alone(stream, over, request).await
                    }
                }
            }
            Door::Socket(path) => {
                let stream = to_socket(path).await.map_err(Lost::Unsent)?;
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
        let lost = |error: hyper::Error| match error.is_parse_too_large() {
            true => too_large(),
            false => Lost::Unknown(broken(&error)),
        };
        let opened = http1::Builder::new().max_buf_size(HEAD_BYTES_MAX).handshake(TokioIo::new(stream)).await;
        let (mut requests, connection) = opened.map_err(|error| Lost::Unsent(broken(&error)))?;
        self.tasks.spawn(async move {
            tokio::select! {
                ended = connection.with_upgrades() => if let Err(error) = ended { tracing::debug!(%error, "connection closed") },
                () = over.cancelled() => {}
            }
        });
        let response = requests.send_request(request).await.map_err(lost)?;
        check_head(&response)?;
        Ok(response)
    }

    async fn shake<S>(&self, stream: S, flow: Arc<Flow>, epoch: (u64, CancellationToken)) -> Result<Sender, Cause>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (requests, connection) = http1::Builder::new()
            .max_buf_size(HEAD_BYTES_MAX)
            // Head and body go out from one buffer.
            .writev(false)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| broken(&error))?;
        let (watched, unread, idle_limit) = (flow.clone(), self.unread.clone(), self.idle_limit.clone());
        let (epoch, over) = epoch;
        self.tasks.spawn(repoll_on_self_wake(async move {
            tokio::select! {
                biased;
                // What went wrong is told to whoever waits for a response.
                ended = connection => {
                    if let Some(idle) = watched.end_idle() {
                        idle_limit.learn(idle);
                    }
                    if let Err(error) = ended { tracing::debug!(%error, "connection closed") }
                }
                () = poll_when_woken(over.cancelled()) => {}
                () = poll_when_woken(watched.watch(&unread)) => {}
            }
        }));
        Ok(Sender { requests, flow, epoch })
    }
}

/// Judges the head of a response that was read as a whole: what reads it looks at the length of a part only.
pub(super) fn check_head(response: &Response<Incoming>) -> Result<(), Lost> {
    let reason = response.extensions().get::<ReasonPhrase>().map(|reason| reason.as_bytes().len());
    let reason = reason.or(response.status().canonical_reason().map(str::len)).unwrap_or_default();
    let headers = response.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    let bytes = "HTTP/1.1 200 \r\n".len() + reason + headers.sum::<usize>() + "\r\n".len();
    if bytes > HEAD_BYTES_MAX { Err(too_large()) } else { Ok(()) }
}

/// A response whose head is too large: it is not read, and its connection ends.
pub(super) fn too_large() -> Lost {
    let limit = HEAD_BYTES_MAX / 1024;
    let said = format!("the head of its response has more than {limit} KiB or {HEADERS_MAX} headers");
    Lost::Odd(Cause::new(CauseCode::ResponseInvalid, said))
}
