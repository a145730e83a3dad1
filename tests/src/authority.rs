//! An authorization server on loopback: gives out tokens for a client of its own, and judges for an upstream who is let in.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::tape::Tape;

/// An authorization server.
pub struct Authority {
    /// Its token end point.
    pub url: String,
    /// Each request for a token: its `Authorization`, and its body.
    pub asked: Tape<(String, String)>,
    /// Each request to the upstream: what it was, the token that it bore, and whether it was let in.
    pub judged: Tape<(String, String, bool)>,
    state: Mutex<State>,
    /// Whether answers are held back.
    held: watch::Sender<bool>,
    /// Those of requests that name one of these are.
    held_for: watch::Sender<Vec<String>>,
    /// How many of these wait for their answer now.
    waiting: AtomicUsize,
}

#[derive(Default)]
struct State {
    /// How many tokens it has given out.
    given: usize,
    /// Those that are good.
    good: BTreeSet<String>,
    /// Whether every token is good, whoever gave it out.
    admits_all: bool,
    /// Whether what it gives out from now on is good for nothing.
    is_shut: bool,
    /// Seconds that a token lasts, where it says so.
    lasts: Option<u64>,
    /// Status and body in place of a token.
    refusal: Option<(u16, String)>,
    /// Kinds of requests that need a scope.
    needs: Vec<(String, String)>,
    /// What each token allows, where that is known.
    allows: Vec<(String, String)>,
    /// Kinds of requests that anybody may make.
    open: BTreeSet<String>,
    /// Kinds of requests that nobody may make, whatever they bear.
    closed: BTreeSet<String>,
    /// Whether the first request of each kind is refused, and those that were seen.
    refuses_first: bool,
    seen: BTreeSet<String>,
}

impl Authority {
    /// One that gives a token to whoever asks.
    pub async fn start() -> Arc<Authority> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/token", listener.local_addr().expect("it is bound"));
        let state = Mutex::default();
        let authority = Arc::new(Authority {
            url,
            asked: Tape::default(),
            judged: Tape::default(),
            state,
            held: watch::Sender::new(false),
            held_for: watch::Sender::default(),
            waiting: AtomicUsize::new(0),
        });
        serve(&authority, listener, answer);
        authority
    }

    /// The keys of an upstream whose tokens it gives out.
    #[must_use]
    pub fn keys(&self, more: &str) -> String {
        format!(
            "auth = {{ type = \"client_credentials\", token_url = \"{}\", client_id = \"gate way\", client_secret = \"canary-secret/+\"{more} }}",
            self.url
        )
    }

    /// The keys of an upstream whose clients' tokens it exchanges.
    #[must_use]
    pub fn exchanging(&self, more: &str) -> String {
        self.keys(more).replace("client_credentials", "token_exchange")
    }

    /// Tokens last so many seconds from now on, and it says so.
    pub fn lasting(&self, seconds: u64) {
        self.state().lasts = Some(seconds);
    }

    /// Answers so in place of a token from now on.
    pub fn refuses(&self, refusal: Option<(u16, &str)>) {
        self.state().refusal = refusal.map(|(status, body)| (status, body.to_owned()));
    }

    /// No token that was given out so far is good any more.
    pub fn revoke(&self) {
        self.state().good.clear();
    }

    /// This one is good no more.
    pub fn dismiss(&self, token: &str) {
        self.state().good.remove(token);
    }

    /// Nobody is let in any more, whatever is given out.
    pub fn shut(&self) {
        let mut state = self.state();
        state.is_shut = true;
        state.good.clear();
    }

    /// Lets in who bears this, which another one gave out.
    pub fn admit(&self, token: &str) {
        self.state().good.insert(token.to_owned());
    }

    /// Lets in who bears any token, whoever gave it out.
    pub fn admit_all(&self) {
        self.state().admits_all = true;
    }

    /// Requests of this kind are refused from now on, or no more, whatever token they bear.
    pub fn closes(&self, kind: &str, is_closed: bool) {
        let mut state = self.state();
        match is_closed {
            true => state.closed.insert(kind.to_owned()),
            false => state.closed.remove(kind),
        };
    }

    /// Requests of this kind need a token that allows this, from now on.
    pub fn needs(&self, kind: &str, scope: &str) {
        self.state().needs.push((kind.to_owned(), scope.to_owned()));
    }

    /// A token allows this.
    pub fn allows(&self, token: &str, scopes: &str) {
        self.state().allows.push((token.to_owned(), scopes.to_owned()));
    }

    /// Requests of this kind need no token from now on.
    pub fn opens(&self, kind: &str) {
        self.state().open.insert(kind.to_owned());
    }

    /// What a request lacks whose token is good.
    pub(crate) fn lacks(&self, kind: &str, bears: &str) -> Option<String> {
        let state = self.state();
        let token = bears.strip_prefix("Bearer ")?;
        let allowed = state.allows.iter().rfind(|(known, _)| known == token).map(|(_, scopes)| scopes.clone());
        let allowed = allowed.unwrap_or_default();
        let has = |scope: &str| allowed.split(' ').any(|known| known == scope);
        let lacks = |(of, scope): &&(String, String)| of == kind && !has(scope);
        state.needs.iter().find(lacks).map(|(_, scope)| scope.clone())
    }

    /// The first request of each kind is refused from now on, whatever token it bears.
    pub fn refuse_first(&self) {
        self.state().refuses_first = true;
    }

    /// Holds answers back, or no more.
    pub fn hold(&self, is_held: bool) {
        self.held.send_replace(is_held);
    }

    /// Holds back the answers to requests that name one of these, and no others.
    pub fn hold_for(&self, these: &[String]) {
        self.held_for.send_replace(these.to_vec());
    }

    /// How many requests wait for such an answer, and have not been given up.
    pub fn held_now(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Whether a request of this kind is let in that bears this.
    pub(crate) fn judge(&self, kind: &str, bears: &str) -> bool {
        let mut state = self.state();
        let token = bears.strip_prefix("Bearer ").unwrap_or_default().to_owned();
        let is_first = state.refuses_first && state.seen.insert(kind.to_owned());
        let is_good = state.good.contains(&token) || state.admits_all && !token.is_empty();
        let is_let_in = (is_good || state.open.contains(kind)) && !is_first && !state.closed.contains(kind);
        drop(state);
        self.judged.push((kind.to_owned(), token, is_let_in));
        is_let_in
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has each request at a listener answered, for as long as the test runs.
pub(crate) fn serve<S, F>(by: &Arc<S>, listener: TcpListener, answer: fn(Arc<S>, Request<Incoming>) -> F)
where
    S: Send + Sync + 'static,
    F: Future<Output = Result<Response<Full<Bytes>>, Infallible>> + Send + 'static,
{
    let by = by.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let by = by.clone();
            tokio::spawn(async move {
                let service = service_fn(|request| answer(by.clone(), request));
                let _ =
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
}

/// A request that waits, until it is answered or given up.
struct Waits(Arc<Authority>);

impl Waits {
    fn of(authority: &Arc<Authority>) -> Self {
        authority.waiting.fetch_add(1, Ordering::SeqCst);
        Self(authority.clone())
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn answer(authority: Arc<Authority>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let shown = request.headers().get("authorization").and_then(|value| value.to_str().ok()).unwrap_or("").to_owned();
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let body = String::from_utf8_lossy(&body).into_owned();
    authority.asked.push((shown, body.clone()));
    let is_free = |these: &Vec<String>| !these.iter().any(|one| body.contains(one));
    if !is_free(&authority.held_for.borrow()) {
        let _waits = Waits::of(&authority);
        let _ = authority.held_for.subscribe().wait_for(is_free).await;
    }
    // Whoever holds it back lets it go, or ends.
    let _ = authority.held.subscribe().wait_for(|held| !held).await;
    let (status, text) = {
        let mut state = authority.state();
        match state.refusal.clone() {
            Some(refusal) => refusal,
            None => {
                state.given += 1;
                let token = format!("canary-token-{}", state.given);
                if !state.is_shut {
                    state.good.insert(token.clone());
                }
                let lasts = state.lasts.map(|lasts| format!(",\"expires_in\":{lasts}")).unwrap_or_default();
                (200, format!("{{\"access_token\":\"{token}\",\"token_type\":\"Bearer\"{lasts}}}"))
            }
        }
    };
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = hyper::StatusCode::from_u16(status).expect("a status");
    response.headers_mut().insert("content-type", "application/json".parse().expect("a content type"));
    Ok(response)
}
