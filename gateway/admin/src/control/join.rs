//! A client that joins by the control socket: its connection goes over from HTTP to lines of frames, as on stdin and stdout.

use crate::answer::{TEXT, answer};
use crate::runtime::Tasks;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, UPGRADE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper_util::rt::TokioIo;
use std::pin::Pin;
use std::sync::Arc;

/// Where a client joins.
const PATH: &str = "/join";
/// What its connection becomes.
const PROTOCOL: &str = "trunkline-lines";
/// What it is known by that the client would share.
const IDENTITY: HeaderName = HeaderName::from_static("trunkline-identity");
/// Which version answers.
pub const VERSION: HeaderName = HeaderName::from_static("trunkline-version");

/// What is known of no gateway: who says so joins any, whatever its values are.
pub const ANY: &str = "any";

/// The request of a client that would share what is known by this.
pub fn request(identity: &str) -> String {
    format!(
        "GET {PATH} HTTP/1.1\r\nHost: control\r\nConnection: Upgrade\r\nUpgrade: {PROTOCOL}\r\n{IDENTITY}: {identity}\r\n\r\n"
    )
}

/// The connection as lines of frames.
pub type Lines = TokioIo<hyper::upgrade::Upgraded>;
/// Serves a client that has joined, to its end.
pub type Serve = Box<dyn FnOnce(Lines) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;
/// Lets a client in that would share what is known by this; or says why not.
pub type Door = Arc<dyn Fn(String) -> Pin<Box<dyn Future<Output = Result<Serve, Closed>> + Send>> + Send + Sync>;

/// Why a client is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// The gateway ends; the next one takes clients.
    Ending,
    /// Its values, its folder or its version are others.
    Other,
    /// There are too many clients.
    Full,
}

impl Closed {
    /// The status that says so.
    pub fn status(self) -> StatusCode {
        match self {
            Self::Ending => StatusCode::SERVICE_UNAVAILABLE,
            Self::Other => StatusCode::CONFLICT,
            Self::Full => StatusCode::TOO_MANY_REQUESTS,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Ending => "the gateway is shutting down\n",
            Self::Other => "the gateway has other values, another folder or another version\n",
            Self::Full => "the gateway has too many clients\n",
        }
    }
}

/// The way in. Whoever has joined is served by a task of this level.
pub fn router(door: Door, tasks: Tasks) -> Router {
    Router::new().route(PATH, get(join)).with_state((door, tasks))
}

async fn join(State((door, tasks)): State<(Door, Tasks)>, mut request: Request) -> Response {
    let Some(identity) = asked(request.headers()) else {
        let why = format!("this path is for `Upgrade: {PROTOCOL}` with a `{IDENTITY}`\n");
        return answer(StatusCode::UPGRADE_REQUIRED, TEXT, why);
    };
    let mut answered = match door(identity).await {
        Ok(serve) => {
            let upgrading = hyper::upgrade::on(&mut request);
            tasks.spawn(async move {
                // Whoever goes before the answer is written has not joined.
                if let Ok(lines) = upgrading.await {
                    serve(TokioIo::new(lines)).await;
                }
            });
            let headers =
                [(CONNECTION, HeaderValue::from_static("upgrade")), (UPGRADE, HeaderValue::from_static(PROTOCOL))];
            (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
        }
        Err(closed) => answer(closed.status(), TEXT, closed.text().to_owned()),
    };
    answered.headers_mut().insert(VERSION, HeaderValue::from_static(env!("CARGO_PKG_VERSION")));
    answered
}

/// What the client would share.
fn asked(headers: &HeaderMap) -> Option<String> {
    let of = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    of(&UPGRADE).filter(|protocol| *protocol == PROTOCOL)?;
    of(&IDENTITY).map(str::to_owned)
}
