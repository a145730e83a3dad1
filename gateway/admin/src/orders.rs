//! Orders to upstreams: from whoever has access, and from no page in a browser.

use super::report;
use crate::health::{NotOrdered, Order, StatusBoard};
use crate::secrets::visible;
use axum::http::header::{CONTENT_TYPE, ORIGIN};
use axum::http::{HeaderMap, StatusCode};
use std::time::Duration;
use tokio::time::timeout;

/// So long an answer waits until the order was done; what takes longer goes on behind it.
const DONE_WITHIN: Duration = Duration::from_secs(30);

/// So much of an unknown name is repeated.
const NAME_CHARS_MAX: usize = 64;

/// Gives an order; what is answered is where the upstream stands then, as JSON, or why not, as text.
pub(crate) async fn give(board: &StatusBoard, name: &str, word: &str) -> (StatusCode, String) {
    let Some(order) = order_of(word) else {
        let known = Order::ALL.map(Order::as_str).into_iter().chain(FOR_LONG.map(|(word, _)| word)).collect::<Vec<_>>();
        return (StatusCode::NOT_FOUND, format!("unknown command. Known: {}\n", known.join(", ")));
    };
    let done = match board.order(name, order) {
        Ok(done) => timeout(DONE_WITHIN, done).await,
        Err(why @ NotOrdered::Unknown) => {
            let all: Vec<_> = board.snapshot().iter().map(|health| health.name.to_string()).collect();
            let known = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
            let name: String = name.chars().take(NAME_CHARS_MAX).collect();
            let name = visible(&name);
            return (StatusCode::NOT_FOUND, format!("{why} `{name}`. Known: {known}\n"));
        }
        Err(why @ NotOrdered::Busy) => return (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    };
    let status = match done {
        Ok(Ok(())) => StatusCode::OK,
        Ok(Err(_)) => return (StatusCode::SERVICE_UNAVAILABLE, "the gateway is shutting down\n".to_owned()),
        Err(_) => StatusCode::ACCEPTED,
    };
    tracing::info!(upstream = name, order = word, "command accepted");
    (status, report::one(&board.snapshot(), name).unwrap_or_default())
}

/// Other words for orders: what is disabled is stopped until it is enabled.
const FOR_LONG: [(&str, Order); 2] = [("enable", Order::Start), ("disable", Order::Stop)];

/// The order of a word.
fn order_of(word: &str) -> Option<Order> {
    let all = Order::ALL.into_iter().map(|order| (order.as_str(), order));
    all.chain(FOR_LONG).find(|(known, _)| *known == word).map(|(_, order)| order)
}

/// Whether this request may order anything. A page can send no JSON to another origin without asking first, which is refused. Our own
/// page may, once it has proved that it is ours.
pub(crate) fn may_order(headers: &HeaderMap, is_own_page: bool) -> Result<(), (StatusCode, &'static str)> {
    if headers.contains_key(ORIGIN) && !is_own_page {
        return Err((StatusCode::FORBIDDEN, "commands from web pages are refused\n"));
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        true => Ok(()),
        false => Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "a command requires `Content-Type: application/json`\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn no_page_gives_orders() {
        let json = ("content-type", "application/json; charset=utf-8");
        let refused = |pairs: &[_]| may_order(&headers(pairs), false).unwrap_err().0;
        assert_eq!(may_order(&headers(&[json]), false), Ok(()));
        assert_eq!(refused(&[json, ("origin", "null")]), StatusCode::FORBIDDEN);
        assert_eq!(refused(&[json, ("origin", "http://127.0.0.1:9808")]), StatusCode::FORBIDDEN);
        for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
            assert_eq!(refused(&[("content-type", kind)]), StatusCode::UNSUPPORTED_MEDIA_TYPE, "{kind}");
        }
        assert_eq!(refused(&[]), StatusCode::UNSUPPORTED_MEDIA_TYPE);
        assert_eq!(may_order(&headers(&[json, ("origin", "http://127.0.0.1:9808")]), true), Ok(()));
        assert!(may_order(&headers(&[("content-type", "text/plain")]), true).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_is_answered_when_it_was_done() {
        let board = StatusBoard::default();
        let handle = board.add(&"a".into(), "stdio");
        let unknown = (StatusCode::NOT_FOUND, "no upstream `b`. Known: a\n".to_owned());
        assert_eq!(give(&board, "b", "stop").await, unknown);
        assert!(give(&board, "\u{1b}[2J\n", "stop").await.1.contains("`\\u{1b}[2J\\n`"));
        let (status, said) = give(&board, "a", "kill").await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        let known = said.trim_end().split_once("Known: ").unwrap().1;
        // What is said to be known is.
        assert!(known.split(", ").all(|word| order_of(word).is_some()) && known.ends_with("enable, disable"), "{said}");
        let doing = async {
            let ordered = handle.ordered().await;
            handle.update(|health| health.state = crate::health::row::State::Stopped);
            ordered.done();
            drop(handle.ordered().await);
        };
        let asking = async {
            let (status, page) = give(&board, "a", "stop").await;
            assert!(status == StatusCode::OK && page.contains("\"state\": \"stopped\""), "{page}");
            assert_eq!(give(&board, "a", "start").await.0, StatusCode::SERVICE_UNAVAILABLE, "it was dropped");
        };
        tokio::join!(doing, asking);
        assert_eq!(give(&board, "a", "start").await.0, StatusCode::ACCEPTED, "nobody does it in time");
    }
}
