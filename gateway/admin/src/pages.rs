//! The admin pages: is it alive, is it ready, what does it count; with a token or at the control socket also the details, and orders
//! to upstreams.

use super::accept;
use super::access::Access;
use super::answer::{JSON, TEXT, answer};
use super::looks::Looks;
use super::{configuration, orders, report};
use crate::health::StatusBoard;
use crate::memory::Refusals;
use crate::telemetry::audit;
use crate::telemetry::metrics::{Format, Metrics};
use crate::telemetry::reloads::Reloads;
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::Value;
use std::pin::Pin;
use std::sync::Arc;

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whether the gateway has stopped to take calls.
pub type IsDraining = Arc<dyn Fn() -> bool + Send + Sync>;

/// What is shown.
#[derive(Clone)]
pub struct Shown {
    /// Every upstream.
    pub board: StatusBoard,
    /// Clients that found no room.
    pub refusals: Refusals,
    /// What is counted.
    pub metrics: Metrics,
    /// Whether calls are taken.
    pub is_draining: IsDraining,
    /// Who asks for more than probes do.
    pub access: Access,
    /// What is said of the gateway itself, as JSON.
    pub own: Arc<str>,
    /// What became of the configuration.
    pub reloads: Reloads,
    /// What else there is to be seen.
    pub looks: Looks,
    /// Puts the configuration of the files into force; `None` where that is not to be.
    pub reload: Option<Reload>,
}

/// Puts the configuration of the files into force: what became of it; an error says what is wrong with it, in lines for a person.
pub type Reload = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<Value, String>> + Send>> + Send + Sync>;

/// `/livez`, `/readyz`, `/startupz` and `/metrics` for everybody; `/readyz?verbose`, `/gateway`, `/upstreams/NAME/ORDER` and `/reload` for
/// whom has access.
pub fn router(shown: Shown) -> Router {
    Router::new()
        .route("/livez", get(|| async { answer(StatusCode::OK, TEXT, "alive\n".to_owned()) }))
        // Whoever is answered here is served: the address of clients is listened on first.
        .route("/startupz", get(|| async { answer(StatusCode::OK, TEXT, "started\n".to_owned()) }))
        .route("/readyz", get(ready))
        .route(
            "/metrics",
            get(|State(shown): State<Shown>, headers: HeaderMap| async move {
                let format = accept::metrics(&headers);
                let kind = if format == Format::OpenMetrics { OPENMETRICS } else { PROMETHEUS };
                answer(StatusCode::OK, kind, shown.metrics.render(&shown.board, format))
            }),
        )
        .route("/gateway", get(own))
        .route("/upstreams/{name}/{order}", post(order))
        .route("/reload", post(reload))
        .with_state(shown)
}

/// Whether this is a probe, or metrics: what the machines around the gateway ask for by whatever name they know it by.
pub fn is_probe(uri: &Uri, headers: &HeaderMap) -> bool {
    match uri.path() {
        "/livez" | "/startupz" | "/metrics" => true,
        "/readyz" => wanted(uri.query(), headers) == Wanted::Status,
        _ => false,
    }
}

/// How much of `/readyz` is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Status,
    Details,
    DetailsAsJson,
}

fn wanted(query: Option<&str>, headers: &HeaderMap) -> Wanted {
    let has =
        |key: &str| query.unwrap_or_default().split('&').any(|part| part == key || part.strip_suffix('=') == Some(key));
    let accepts_json = headers.get(ACCEPT).is_some_and(|accept| accept.as_bytes().starts_with(b"application/json"));
    match (has("format=json") || accepts_json, has("verbose")) {
        (true, _) => Wanted::DetailsAsJson,
        (false, true) => Wanted::Details,
        (false, false) => Wanted::Status,
    }
}

/// Ready as long as calls are taken: a sick upstream is no reason to send clients elsewhere.
async fn ready(State(shown): State<Shown>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let is_ready = !(shown.is_draining)();
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let wanted = wanted(query.as_deref(), &headers);
    let refused = || shown.access.refusal(&headers);
    if let Some(refused) = (wanted != Wanted::Status).then(refused).flatten() {
        return refused;
    }
    match wanted {
        Wanted::Status => answer(status, TEXT, report::text(is_ready, &[])),
        Wanted::Details => {
            let limits = report::limits(shown.board.budget(), &shown.refusals);
            let said = configuration::text(&shown.reloads.now());
            answer(status, TEXT, report::text(is_ready, &shown.board.snapshot()) + &limits + &said)
        }
        Wanted::DetailsAsJson => {
            let room = (shown.board.budget(), &shown.refusals);
            answer(status, JSON, report::json(is_ready, &shown.board.snapshot(), room, &shown.reloads.now()))
        }
    }
}

async fn own(State(shown): State<Shown>, headers: HeaderMap) -> Response {
    let refused = shown.access.refusal(&headers);
    refused.unwrap_or_else(|| answer(StatusCode::OK, JSON, shown.own.to_string()))
}

pub(super) async fn order(
    State(shown): State<Shown>,
    Path((name, order)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    if let Some(refused) = shown.access.order_refusal(&headers) {
        return refused;
    }
    let (status, page) = orders::give(&shown.board, &name, &order).await;
    audit::order(&order, Some(&name), shown.access.word(&headers), status.as_u16());
    let kind = if status.is_success() { JSON } else { TEXT };
    answer(status, kind, page)
}

pub(super) async fn reload(State(shown): State<Shown>, headers: HeaderMap) -> Response {
    if let Some(refused) = shown.access.order_refusal(&headers) {
        return refused;
    }
    let Some(reload) = &shown.reload else {
        return answer(
            StatusCode::NOT_FOUND,
            TEXT,
            "this gateway reads its configuration at its start only\n".to_owned(),
        );
    };
    let reloaded = reload().await;
    let status = if reloaded.is_ok() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    audit::order("reload", None, shown.access.word(&headers), status.as_u16());
    match reloaded {
        Ok(done) => answer(StatusCode::OK, JSON, done.to_string()),
        Err(faults) => answer(StatusCode::UNPROCESSABLE_ENTITY, TEXT, faults + "\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::visits::Visits;
    use crate::telemetry::config::AdminToken;
    use crate::telemetry::metrics;
    use axum::body::Body;
    use axum::http::Request;
    use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
    use http_body_util::BodyExt;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tower::ServiceExt;

    async fn ask(router: &Router, request: Request<Body>) -> (StatusCode, String) {
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn get(router: &Router, path: &str, accept: &str) -> (StatusCode, String) {
        ask(router, Request::get(path).header(ACCEPT, accept).body(Body::empty()).unwrap()).await
    }

    fn served(access: Access, draining: &Arc<AtomicBool>) -> Router {
        let (board, seen) = (StatusBoard::default(), draining.clone());
        board.add(&"a".into(), "stdio");
        let is_draining: IsDraining = Arc::new(move || seen.load(Ordering::Relaxed));
        let (metrics, refusals) = (metrics::install(), Refusals::default());
        router(Shown {
            board,
            refusals,
            metrics,
            is_draining,
            access,
            own: "{}".into(),
            reloads: Reloads::default(),
            looks: Looks::default(),
            reload: None,
        })
    }

    #[tokio::test]
    async fn probes_say_whether_calls_are_taken() {
        let draining = Arc::default();
        let router = served(Access::All(Visits::default()), &draining);
        assert_eq!(get(&router, "/livez", "*/*").await, (StatusCode::OK, "alive\n".into()));
        assert_eq!(get(&router, "/startupz", "*/*").await, (StatusCode::OK, "started\n".into()));
        assert_eq!(get(&router, "/readyz", "*/*").await, (StatusCode::OK, "ready\n".into()));
        assert!(get(&router, "/readyz?verbose", "*/*").await.1.contains("a  stdio  starting"));
        assert!(get(&router, "/readyz?verbose&format=json", "*/*").await.1.contains("\"state\": \"starting\""));
        assert!(get(&router, "/readyz", "application/json").await.1.contains("\"upstreams\""));
        assert_eq!(get(&router, "/metrics", "*/*").await.0, StatusCode::OK);
        assert!(get(&router, "/metrics", "application/openmetrics-text").await.1.ends_with("# EOF\n"));
        draining.store(true, Ordering::Relaxed);
        assert_eq!(get(&router, "/readyz", "*/*").await, (StatusCode::SERVICE_UNAVAILABLE, "draining\n".into()));
        assert_eq!(get(&router, "/livez", "*/*").await.0, StatusCode::OK);
        assert_eq!(get(&router, "/upstreams/a/stop", "*/*").await.0, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(get(&router, "/nothing", "*/*").await.0, StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn details_and_orders_are_for_who_has_access_and_probes_for_all() {
        let token = AdminToken::new("0123456789abcdef");
        let with_token = |token| served(Access::Token(token, Visits::default()), &Arc::default());
        let (without, with) = (with_token(None), with_token(token));
        let request = |method: &str, path: &str, token: &str| {
            let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, JSON);
            let request = if token.is_empty() { request } else { request.header(AUTHORIZATION, token) };
            request.body(Body::empty()).unwrap()
        };
        for path in ["/livez", "/startupz", "/readyz", "/metrics"] {
            assert_eq!(ask(&without, request("GET", path, "")).await.0, StatusCode::OK, "{path}");
            assert!(is_probe(&path.parse().unwrap(), &HeaderMap::new()), "{path}");
        }
        for (method, path) in [
            ("GET", "/readyz?verbose"),
            ("GET", "/readyz?a=b&format=json"),
            ("GET", "/gateway"),
            ("POST", "/upstreams/a/fly"),
        ] {
            assert!(!is_probe(&path.parse().unwrap(), &HeaderMap::new()), "{path}");
            assert_eq!(ask(&without, request(method, path, "Bearer 0123456789abcdef")).await.0, StatusCode::FORBIDDEN);
            for wrong in
                ["", "0123456789abcdef", "Bearer 0123456789abcde", "Bearer 0123456789abcdef0", "Basic 0123456789abcdef"]
            {
                assert_eq!(
                    ask(&with, request(method, path, wrong)).await.0,
                    StatusCode::UNAUTHORIZED,
                    "{path} {wrong}"
                );
            }
            let (status, _) = ask(&with, request(method, path, "bearer 0123456789abcdef")).await;
            let expected = if method == "GET" { StatusCode::OK } else { StatusCode::NOT_FOUND };
            assert_eq!(status, expected, "{path}");
        }
    }
}
