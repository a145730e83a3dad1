//! Where the browser comes back to: a listener on loopback that takes one answer.

// What the browser shows then.
mod page;
// The same, as a person pastes it.
mod pasted;

use super::way::quoted;
use crate::health::{Cause, CauseCode};
use crate::runtime::Tasks;
use crate::runtime::timer::late::within;
use crate::token_request::unavailable;
use bytes::Bytes;
use http::header::HOST;
use http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use page::{Came, page};
use pasted::query_in;
use sha2::{Digest, Sha256};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::sync::mpsc::Receiver;
use tokio::time::sleep;

/// The path that the browser of a configured client comes back to: it is registered by hand, and one is enough for all upstreams. That of a
/// client that registers itself ends in the name of its upstream, so that a code of one upstream's authorization server is not brought to
/// the login at another one's: the server compares the path with what was registered, though the port may be any (RFC 8252, 7.3).
const PATH: &str = "/callback";
/// How long a person may take.
const PERSON_MAX: Duration = Duration::from_secs(10 * 60);
/// So long nothing is accepted after that has failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long a connection may take for its request, and how many bytes that has at most.
const REQUEST_TIME: Duration = Duration::from_secs(10);
const REQUEST_MAX: usize = 16 * 1024;

/// What the browser has brought back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AuthorizationResponse {
    pub(super) code: Result<String, Denial>,
    /// The authorization server, as it names itself there.
    pub(super) iss: Option<String>,
}

/// Why there is no code, in the words of the authorization server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Denial {
    error: String,
    description: Option<String>,
}

/// A listener for one login.
pub(super) struct Callback {
    listener: TcpListener,
    at: SocketAddr,
    path: String,
}

/// What every request is judged by.
struct Expected {
    /// What is logged in to.
    upstream: Arc<str>,
    host: String,
    path: String,
    /// The digest of the state: how long a comparison takes says nothing of it.
    state: [u8; 32],
    found: mpsc::Sender<AuthorizationResponse>,
}

/// What the browser has brought, and the one place for it.
type Taken = (mpsc::OwnedPermit<AuthorizationResponse>, AuthorizationResponse);

impl Callback {
    /// On a free port of this machine, under the name of the upstream where that is given.
    pub(super) async fn open(upstream: Option<&str>) -> Result<Self, Cause> {
        let path = upstream.map_or_else(|| PATH.to_owned(), |name| format!("{PATH}/{name}"));
        let opened = async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let at = listener.local_addr()?;
            Ok::<_, std::io::Error>(Self { listener, at, path })
        };
        opened.await.map_err(|error| {
            unavailable(format!("no port of this machine is free for the browser to come back to: {error}"))
        })
    }

    /// Where the browser is to be sent back to.
    pub(super) fn url(&self) -> String {
        format!("http://{}{}", self.at, self.path)
    }

    /// Waits for the one answer to the question with this state. The browser brings it, or a person pastes the address that the browser was
    /// sent back to; `odd` is told what is wrong with a text that is none. Whatever else comes is refused, and changes nothing.
    pub(super) async fn brought(
        self,
        (upstream, state): (Arc<str>, &str),
        mut pasted: Receiver<String>,
        mut odd: impl FnMut(&'static str) + Send,
        tasks: &Tasks,
    ) -> Result<AuthorizationResponse, Cause> {
        let (found, mut brought) = mpsc::channel(1);
        let (host, path, state) = (self.at.to_string(), self.path.clone(), Sha256::digest(state.as_bytes()).into());
        let expected = Arc::new(Expected { upstream, host, path, state, found });
        let (own, digest) = (self.url(), expected.state);
        let pasting = async {
            while let Some(line) = pasted.recv().await {
                let is_other = "it breaks off, or it is that of another login";
                match query_in(&line, &own).and_then(|query| read(query, &digest).ok_or(is_other)) {
                    Ok(brought) => return brought,
                    Err(why) => odd(why),
                }
            }
            std::future::pending().await
        };
        let level = tasks.child();
        let _ends_with_it = level.guard();
        let accepting = async {
            loop {
                let Ok((stream, _)) = self.listener.accept().await else {
                    // No file handle is left, or the like: that passes.
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                level.spawn_until_end(serve(stream, expected.clone()));
            }
        };
        let waiting = async {
            tokio::select! {
                brought = brought.recv() => brought,
                brought = pasting => Some(brought),
                () = accepting => None,
            }
        };
        let found = within(PERSON_MAX, Box::pin(waiting)).await.ok().flatten();
        found.ok_or_else(|| Cause::new(CauseCode::TimedOut, "nobody has logged in within 10 min"))
    }
}

/// Answers the one request of a connection. What it brings is handed on once its answer is written: the command may end right after, and
/// the browser is to show what became of the login.
async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, expected: Arc<Expected>) {
    let taken = OnceLock::new();
    let service = service_fn(|request| {
        let (answer, brought) = answer(&expected, &request);
        if let Some(brought) = brought {
            _ = taken.set(brought);
        }
        async move { Ok::<_, Infallible>(answer) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .keep_alive(false)
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIME)
        .max_buf_size(REQUEST_MAX)
        .serve_connection(TokioIo::new(stream), service);
    // What breaks off, or does not read its answer, is another program's affair.
    _ = within(REQUEST_TIME, connection).await;
    if let Some((place, brought)) = taken.into_inner() {
        place.send(brought);
    }
}

/// Judges a request, and answers it; with what it brings, where that is the one answer that is waited for.
fn answer(expected: &Expected, request: &Request<Incoming>) -> (Response<Full<Bytes>>, Option<Taken>) {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let query = request.uri().query().unwrap_or_default();
    if request.uri().path() != expected.path || request.method() != Method::GET || host != expected.host {
        return (page(Came::Elsewhere, &expected.upstream), None);
    }
    let Some(brought) = read(query, &expected.state) else {
        return (page(Came::Odd, &expected.upstream), None);
    };
    let Ok(place) = expected.found.clone().try_reserve_owned() else {
        return (page(Came::Again, &expected.upstream), None);
    };
    let came = if brought.code.is_ok() { Came::Code } else { Came::Denied };
    (page(came, &expected.upstream), Some((place, brought)))
}

/// What a query brings, where it has the state that was given; each parameter at most once.
pub(super) fn read(query: &str, state: &[u8; 32]) -> Option<AuthorizationResponse> {
    let names = ["state", "code", "error", "iss", "error_description"];
    let mut values: [Option<String>; 5] = [const { None }; 5];
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let Some(at) = names.iter().position(|known| *known == name) else { continue };
        if values[at].replace(value.into_owned()).is_some() {
            return None;
        }
    }
    let [given, code, error, iss, description] = values;
    if <[u8; 32]>::from(Sha256::digest(given?.as_bytes())) != *state {
        return None;
    }
    let code = match (code.filter(|code| !code.is_empty()), error) {
        (Some(code), None) => Ok(code),
        (None, Some(error)) => Err(Denial { error, description }),
        _ => return None,
    };
    Some(AuthorizationResponse { code, iss })
}

impl AuthorizationResponse {
    /// The code, where it was sent by whom it is to be sent by (RFC 9207): else nothing of it is used, and nothing of it is told.
    pub(super) fn from(self, issuer: &str, names_itself: bool) -> Result<String, Cause> {
        let odd = |said: &str| Err(Cause::new(CauseCode::TokenRefused, said));
        match &self.iss {
            Some(iss) if iss != issuer => {
                return odd(
                    "the browser comes back from another authorization server than the one that was asked; nothing of it is used",
                );
            }
            None if names_itself => {
                return odd(
                    "the browser comes back without the name of the authorization server, which says that it names itself; nothing of it is used",
                );
            }
            _ => {}
        }
        self.code.map_err(|Denial { error, description }| {
            let said = "the authorization server refuses the login, or it was cancelled there:";
            let more = description.filter(|text| !text.is_empty()).map(|text| format!(":{}", quoted(&text)));
            Cause::new(CauseCode::TokenRefused, said).foreign(&quoted(&error)).foreign(&more.unwrap_or_default())
        })
    }
}

#[cfg(test)]
mod tests;
