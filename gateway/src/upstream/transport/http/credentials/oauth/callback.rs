//! Where the browser comes back to: a listener on loopback that takes one answer.

// The same, as a person pastes it.
mod pasted;

use super::way::quoted;
use crate::health::{Cause, CauseCode};
use crate::runtime::Tasks;
use crate::runtime::timer::late::within;
use crate::upstream::transport::http::credentials::granted::unavailable;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, REFERRER_POLICY};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use oauth2::url::Url;
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

/// The path that the browser comes back to.
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
}

/// What every request is judged by.
struct Expected {
    host: String,
    /// The digest of the state: how long a comparison takes says nothing of it.
    state: [u8; 32],
    found: mpsc::Sender<AuthorizationResponse>,
}

/// What the browser has brought, and the one place for it.
type Taken = (mpsc::OwnedPermit<AuthorizationResponse>, AuthorizationResponse);

impl Callback {
    /// On a free port of this machine.
    pub(super) async fn open() -> Result<Self, Cause> {
        let opened = async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let at = listener.local_addr()?;
            Ok::<_, std::io::Error>(Self { listener, at })
        };
        opened.await.map_err(|error| {
            unavailable(format!("no port of this machine is free for the browser to come back to: {error}"))
        })
    }

    /// Where the browser is to be sent back to.
    pub(super) fn url(&self) -> String {
        format!("http://{}{PATH}", self.at)
    }

    /// Waits for the one answer to the question with this state. The browser brings it, or a person pastes the address that the browser was
    /// sent back to; `odd` is told what is wrong with a text that is none. Whatever else comes is refused, and changes nothing.
    pub(super) async fn brought(
        self,
        state: &str,
        mut pasted: Receiver<String>,
        mut odd: impl FnMut(&'static str) + Send,
        tasks: &Tasks,
    ) -> Result<AuthorizationResponse, Cause> {
        let (found, mut brought) = mpsc::channel(1);
        let expected =
            Arc::new(Expected { host: self.at.to_string(), state: Sha256::digest(state.as_bytes()).into(), found });
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
    if request.uri().path() != PATH || request.method() != Method::GET || host != expected.host {
        return (page(StatusCode::NOT_FOUND, "Nothing is here."), None);
    }
    let Some(brought) = read(query, &expected.state) else {
        let said = "This is not the login that is waited for. Nothing was done.";
        return (page(StatusCode::BAD_REQUEST, said), None);
    };
    let Ok(place) = expected.found.clone().try_reserve_owned() else {
        let said = "This login was completed already. Nothing was done.";
        return (page(StatusCode::BAD_REQUEST, said), None);
    };
    let said = match &brought.code {
        Ok(_) => "The login goes on in the terminal. You can close this page.",
        Err(_) => "The login was not completed; the terminal says why. You can close this page.",
    };
    (page(StatusCode::OK, said), Some((place, brought)))
}

/// What a query brings, where it has the state that was given; each parameter at most once.
pub(super) fn read(query: &str, state: &[u8; 32]) -> Option<AuthorizationResponse> {
    let url = Url::parse(&format!("http://127.0.0.1/?{query}")).ok()?;
    let names = ["state", "code", "error", "iss", "error_description"];
    let mut values: [Option<String>; 5] = [const { None }; 5];
    for (name, value) in url.query_pairs() {
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

/// A page without anything that a browser would run or load.
fn page(status: StatusCode, said: &str) -> Response<Full<Bytes>> {
    let html = format!("<!doctype html><meta charset=\"utf-8\"><title>Trunkline</title><p>{said}\n");
    let mut response = Response::new(Full::new(Bytes::from(html)));
    *response.status_mut() = status;
    for (name, value) in [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (CONNECTION, "close"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
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
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    fn denial(error: &str, description: Option<&str>) -> Denial {
        Denial { error: error.to_owned(), description: description.map(str::to_owned) }
    }

    fn state() -> [u8; 32] {
        Sha256::digest(b"s").into()
    }

    #[test]
    fn only_the_state_that_was_given_counts_and_each_parameter_once() {
        let of = |query: &str| read(query, &state()).map(|brought| (brought.code, brought.iss));
        assert_eq!(of("code=a%2Bb&state=s"), Some((Ok("a+b".to_owned()), None)));
        assert_eq!(
            of("state=s&error=access_denied&iss=x"),
            Some((Err(denial("access_denied", None)), Some("x".to_owned())))
        );
        let said = "state=s&error=access_denied&error_description=not+you%1b";
        assert_eq!(of(said), Some((Err(denial("access_denied", Some("not you\u{1b}"))), None)));
        for query in [
            "code=a",
            "code=a&state=",
            "code=a&state=t",
            "code=a&state=s&state=s",
            "code=a&code=b&state=s",
            "code=&state=s",
            "code=a&error=b&state=s",
            "state=s",
            "iss=a&iss=b&code=a&state=s",
            "error=a&error_description=b&error_description=c&state=s",
            "",
        ] {
            assert_eq!(of(query), None, "{query}");
        }
    }

    #[test]
    fn a_code_of_another_authorization_server_is_not_used_and_its_words_are_not_told() {
        let brought = |iss: Option<&str>| {
            let code = Err(denial("canary", Some("a\u{1b}[31m word that is \u{202e} turned")));
            AuthorizationResponse { code, iss: iss.map(str::to_owned) }
        };
        for (iss, names_itself) in [(Some("https://b"), false), (Some("https://a/"), true), (None, true)] {
            let why = brought(iss).from("https://a", names_itself).unwrap_err();
            assert!(why.full().contains("nothing of it is used") && !why.full().contains("canary"), "{iss:?}");
        }
        for (iss, names_itself) in [(Some("https://a"), true), (Some("https://a"), false), (None, false)] {
            let why = brought(iss).from("https://a", names_itself).unwrap_err();
            assert!(why.full().ends_with(": `canary`: `a\\u{1b}[31m word that is \\u{202e} turned`"), "{why:?}");
            assert!(!why.public().contains("canary") && !why.public().contains("turned"));
        }
    }

    async fn ask(at: SocketAddr, head: &str) -> String {
        let mut stream = TcpStream::connect(at).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn one_answer_is_taken_and_another_program_on_this_machine_changes_nothing() {
        let (callback, tasks) = (Callback::open().await.unwrap(), Tasks::new());
        let at = callback.at;
        assert!(at.ip().is_loopback() && callback.url() == format!("http://{at}/callback"));
        let get = |host: &str, path: &str| format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let own = at.to_string();
        // A connection that says nothing is no hindrance.
        let silent = TcpStream::connect(at).await.unwrap();
        let asking = async {
            for (head, status) in [
                (get(&own, "/"), "404"),
                (get(&own, "/callback"), "400"),
                (get(&own, "/callback?code=evil&state=t"), "400"),
                (get("evil.example", "/callback?code=evil&state=s"), "404"),
                (
                    format!("POST /callback?code=evil&state=s HTTP/1.1\r\nHost: {own}\r\nContent-Length: 0\r\n\r\n"),
                    "404",
                ),
                (get(&own, "/callback?code=good&state=s&iss=x"), "200"),
            ] {
                let answer = ask(at, &head).await;
                assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{head}: {answer}");
                assert!(!answer.contains("evil") && !answer.contains("good"), "{answer}");
            }
        };
        let (brought, ()) = tokio::join!(callback.brought("s", mpsc::channel(1).1, |_| (), &tasks), asking);
        assert_eq!(brought.unwrap(), AuthorizationResponse { code: Ok("good".to_owned()), iss: Some("x".to_owned()) });
        // A child that another test starts holds the port, too, until it has become another program.
        let closed = async {
            while TcpStream::connect(at).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(REQUEST_TIME, closed).await.expect("it listens no more");
        drop(silent);
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_browser_brings_counts_once_its_answer_is_written_and_one_that_reads_nothing_waits_in_vain() {
        let tasks = Tasks::new();
        for reads in [true, false] {
            let (found, mut brought) = mpsc::channel(1);
            let expected = Expected { host: "127.0.0.1:1".to_owned(), state: state(), found };
            // So little is taken at once: the answer is written when most of it is read.
            let (mut browser, ours) = tokio::io::duplex(64);
            let begun = tokio::time::Instant::now();
            tasks.spawn(serve(ours, Arc::new(expected)));
            browser.write_all(b"GET /callback?code=good&state=s HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n").await.unwrap();
            browser.read_u8().await.unwrap();
            assert!(brought.try_recv().is_err(), "the command could end before the page is shown");
            if reads {
                browser.read_to_end(&mut Vec::new()).await.unwrap();
            }
            assert_eq!(brought.recv().await.unwrap().code, Ok("good".to_owned()));
            assert_eq!(begun.elapsed().as_secs(), if reads { 0 } else { REQUEST_TIME.as_secs() });
        }
    }

    #[tokio::test]
    async fn the_address_that_the_browser_was_sent_back_to_can_be_pasted_and_nothing_else_counts() {
        let (callback, tasks) = (Callback::open().await.unwrap(), Tasks::new());
        let (own, (paste, pasted), mut odd) = (callback.url(), mpsc::channel(8), Vec::new());
        for line in [
            "hello".to_owned(),
            "http://127.0.0.1:1/callback?code=evil&state=s".to_owned(),
            format!("{own}?code=evil&state=t"),
            format!("{own}.evil.example/?code=evil&state=s"),
            format!("  {own}?code=good&state=s\n"),
        ] {
            paste.send(line).await.unwrap();
        }
        let brought = callback.brought("s", pasted, |why| odd.push(why), &tasks).await.unwrap();
        assert_eq!((brought.code, odd.len()), (Ok("good".to_owned()), 4));
        assert_eq!(odd[2], "it breaks off, or it is that of another login");
    }

    #[tokio::test(start_paused = true)]
    async fn a_person_has_ten_minutes() {
        let (begun, callback) = (tokio::time::Instant::now(), Callback::open().await.unwrap());
        let why = callback.brought("s", mpsc::channel(1).1, |_| (), &Tasks::new()).await.unwrap_err();
        assert_eq!(why.full(), "nobody has logged in within 10 min");
        assert_eq!(begun.elapsed().as_secs(), 600);
    }
}
