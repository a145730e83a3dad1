//! The admin address: is it alive, is it ready, what does it count; and orders to upstreams.

use super::metrics::Metrics;
use super::{orders, report};
use crate::lifecycle::Board;
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use std::sync::Arc;

const TEXT: &str = "text/plain; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Whether the gateway has stopped to take calls.
pub type IsDraining = Arc<dyn Fn() -> bool + Send + Sync>;

#[derive(Clone)]
struct Shown {
    board: Board,
    metrics: Metrics,
    is_draining: IsDraining,
    is_local: bool,
}

/// `/livez`, `/readyz` and `/metrics`; and `/upstreams/NAME/ORDER`, for whoever is on this machine. `is_local` says that nobody
/// else reaches the address.
pub fn router(board: Board, metrics: Metrics, is_draining: IsDraining, is_local: bool) -> Router {
    Router::new()
        .route("/livez", get(|| async { answer(StatusCode::OK, TEXT, "alive\n".to_owned()) }))
        .route("/readyz", get(ready))
        .route(
            "/metrics",
            get(|State(shown): State<Shown>| async move {
                answer(StatusCode::OK, PROMETHEUS, shown.metrics.render(&shown.board))
            }),
        )
        .route("/upstreams/{name}/{order}", post(order))
        .with_state(Shown { board, metrics, is_draining, is_local })
}

/// Ready as long as calls are taken: a sick upstream is no reason to send clients elsewhere.
async fn ready(State(shown): State<Shown>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let is_ready = !(shown.is_draining)();
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let query = query.unwrap_or_default();
    let has = |key: &str| query.split('&').any(|part| part == key || part.strip_suffix('=') == Some(key));
    let accepts_json = headers.get(ACCEPT).is_some_and(|accept| accept.as_bytes().starts_with(b"application/json"));
    if has("format=json") || accepts_json {
        return answer(status, "application/json", report::json(is_ready, &shown.board.snapshot()));
    }
    let board = if has("verbose") { shown.board.snapshot() } else { Vec::new() };
    answer(status, TEXT, report::text(is_ready, &board))
}

async fn order(
    State(shown): State<Shown>,
    Path((name, order)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    if let Err((status, why)) = orders::may_order(&headers, shown.is_local) {
        return answer(status, TEXT, why.to_owned());
    }
    let (status, page) = orders::give(&shown.board, &name, &order).await;
    let kind = if status.is_success() { "application/json" } else { TEXT };
    answer(status, kind, page)
}

fn answer(status: StatusCode, kind: &'static str, body: String) -> Response {
    (status, [(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-store")], body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::metrics;
    use axum::body::Body;
    use axum::http::Request;
    use http_body_util::BodyExt;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tower::ServiceExt;

    async fn get(router: &Router, path: &str, accept: &str) -> (StatusCode, String) {
        let request = Request::get(path).header(ACCEPT, accept).body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn probes_say_whether_calls_are_taken() {
        let (board, draining) = (Board::default(), Arc::new(AtomicBool::new(false)));
        board.seat(&"a".into(), "stdio");
        let seen = draining.clone();
        let router = super::router(board, metrics::install(), Arc::new(move || seen.load(Ordering::Relaxed)), true);
        assert_eq!(get(&router, "/livez", "*/*").await, (StatusCode::OK, "alive\n".into()));
        assert_eq!(get(&router, "/readyz", "*/*").await, (StatusCode::OK, "ready\n".into()));
        assert!(get(&router, "/readyz?verbose", "*/*").await.1.contains("a  stdio  starting"));
        assert!(get(&router, "/readyz?verbose&format=json", "*/*").await.1.contains("\"state\": \"starting\""));
        assert!(get(&router, "/readyz", "application/json").await.1.contains("\"upstreams\""));
        assert_eq!(get(&router, "/metrics", "*/*").await.0, StatusCode::OK);
        draining.store(true, Ordering::Relaxed);
        assert_eq!(get(&router, "/readyz", "*/*").await, (StatusCode::SERVICE_UNAVAILABLE, "draining\n".into()));
        assert_eq!(get(&router, "/livez", "*/*").await.0, StatusCode::OK);
        assert_eq!(get(&router, "/upstreams/a/stop", "*/*").await.0, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(get(&router, "/nothing", "*/*").await.0, StatusCode::NOT_FOUND);
    }
}
