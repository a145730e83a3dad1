//! What is refused before it becomes a call: status and code of each.

use super::{Bench, META, PATH, call, code, initialize, let_in, post, principal, text};
use http::{Request, StatusCode};
use std::future::Future;
use std::task::{Context, Poll, Waker};
use tower::ServiceExt;

fn modern(text: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","_meta":{text}}}}}"#)
}

fn headed() -> http::request::Builder {
    post().header("mcp-protocol-version", "2026-07-28").header("mcp-method", "tools/call").header("mcp-name", "echo")
}

#[tokio::test]
async fn an_array_with_a_stateless_frame_is_refused_for_what_it_is() {
    let bench = Bench::new();
    let array = format!("[{}]", modern(META));
    for request in [headed(), post(), post().header("mcp-session-id", "x")] {
        let said = text(bench.send(request, &array).await).await;
        assert!(said.contains("-32600") && said.contains("one frame at a time"), "{said}");
    }
}

#[tokio::test]
async fn frames_are_refused_with_the_code_that_says_why() {
    let bench = Bench::new();
    let unsupported = META.replace("2026-07-28", "2027-01-01");
    let old = META.replace("2026-07-28", "2025-11-25");
    let bare = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    let cases = [
        (post(), "{".to_owned(), 400, -32700),
        (post(), "\"x\"".to_owned(), 400, -32600),
        (post(), "[]".to_owned(), 400, -32600),
        (post(), "[[[".to_owned(), 400, -32700),
        (headed(), "[[[".to_owned(), 400, -32700),
        (headed(), format!("[{}]", call("1", "echo")), 400, -32600),
        (headed(), format!("[{}]", modern(META)), 400, -32600),
        (post(), r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#.to_owned(), 400, -32600),
        (post(), r#"{"jsonrpc":"2.0","id":1,"Id":2,"method":"x"}"#.to_owned(), 400, -32600),
        (post(), r#"{"jsonrpc":"2.0","id":"\u0000","method":"x"}"#.to_owned(), 400, -32600),
        (headed(), modern(META).replace("\"name\"", "\"name\":\"other\",\"n\\u0061me\""), 400, -32602),
        (headed(), modern(META).replace("\"name\"", "\"NAME\":\"other\",\"name\""), 400, -32602),
        (headed(), modern(META).replace("\"name\"", "\"Task\":{},\"name\""), 400, -32602),
        (headed(), modern(&META.replacen('{', "{\"ProgressToken\":1,", 1)), 400, -32602),
        (headed(), modern(bare), 400, -32602),
        (headed(), modern("7"), 400, -32602),
        (headed(), call("1", "echo"), 400, -32602),
        (headed(), initialize("2025-11-25"), 400, -32020),
        (post(), modern(META), 400, -32020),
        (headed().header("mcp-name", "echo"), modern(META), 400, -32020),
        (headed(), modern(META).replace("\"echo\"", "\"other\""), 400, -32020),
        (headed(), modern(&unsupported), 400, -32020),
        (
            post()
                .header("mcp-protocol-version", "2027-01-01")
                .header("mcp-method", "tools/call")
                .header("mcp-name", "echo"),
            modern(&unsupported),
            400,
            -32022,
        ),
        (
            post()
                .header("mcp-protocol-version", "2025-11-25")
                .header("mcp-method", "tools/call")
                .header("mcp-name", "echo"),
            modern(&old),
            400,
            -32022,
        ),
        (headed(), modern(&META.replace("\"t\"", "1.5")), 400, -32602),
        (
            headed(),
            modern(&META.replace("\"progressToken\":\"t\"", "\"io.modelcontextprotocol/logLevel\":\"loud\"")),
            400,
            -32602,
        ),
        (post(), call("1", "echo"), 400, -32600),
        (post().header("mcp-session-id", "x"), call("1", "echo"), 404, -32000),
        (post(), r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#.to_owned(), 400, -32602),
    ];
    for (request, body, status, expected) in cases {
        assert_eq!(code(bench.send(request, &body).await).await, (status, expected), "{body}");
    }
    for method in ["ping", "logging/setLevel", "roots/list", "notifications/x"] {
        assert_eq!(code(bench.modern(method, "{}").await).await, (404, -32601), "{method}");
    }
}

#[tokio::test]
async fn http_that_is_no_use_here_is_refused_in_its_own_terms() {
    let bench = Bench::with(crate::protocol::revision::Revision::V2025_11_25, |config| config.max_body = 64);
    let typed = |kind: &str| Request::post(PATH).header("content-type", kind);
    for (request, status) in [
        (Request::post("/"), 404),
        (Request::get("/.well-known/oauth-protected-resource"), 404),
        (Request::put(PATH), 405),
        (Request::options(PATH), 405),
        (Request::post(PATH), 415),
        (typed("text/plain"), 415),
        (typed("application/json-patch+json"), 415),
        (typed("application/json").header("content-type", "application/json"), 415),
        (typed("Application/JSON; charset=utf-8"), 400),
        (Request::get(PATH), 406),
        (Request::get(PATH).header("accept", "application/json"), 406),
        (Request::get(PATH).header("accept", "text/event-stream"), 400),
        (Request::delete(PATH), 400),
        (Request::get(PATH).header("mcp-protocol-version", "2026-07-28"), 405),
        (Request::get(PATH).header("mcp-session-id", "x"), 406),
        (Request::get(PATH).header("accept", "text/event-stream").header("mcp-session-id", "x"), 404),
        (Request::delete(PATH).header("mcp-session-id", "x"), 404),
        (post().header("content-length", "65"), 413),
    ] {
        let seen = format!("{request:?}");
        let response = bench.send(request, "x").await;
        assert_eq!(response.status().as_u16(), status, "{seen}");
        assert_eq!(response.headers().contains_key("allow"), status == 405);
        assert_eq!(response.headers()["content-type"], "application/json");
    }
    let long = bench.send(post(), &"x".repeat(65)).await;
    assert_eq!(long.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn a_foreign_session_looks_like_none() {
    let bench = Bench::new();
    let response = bench.send(principal(post(), "a"), &initialize("2025-11-25")).await;
    let id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let ask = |name: &'static str, id: &str| {
        let request = principal(post(), name).header("mcp-session-id", id);
        let bench = &bench;
        async move { bench.send(request, &call("1", "echo")).await }
    };
    assert_eq!(ask("a", &id).await.status(), StatusCode::OK);
    let (foreign, unknown) = (ask("b", &id).await, ask("b", "nothing").await);
    assert_eq!((foreign.status(), foreign.headers()), (unknown.status(), unknown.headers()));
    assert_eq!(text(foreign).await, text(unknown).await);
    let delete = principal(Request::delete(PATH), "b").header("mcp-session-id", &id);
    assert_eq!(bench.send(delete, "").await.status(), StatusCode::NOT_FOUND);
    assert_eq!(ask("a", &id).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_body_that_is_encoded_is_refused_and_it_is_said_what_is_read() {
    let bench = Bench::new();
    for coding in ["gzip", "br", "identity, deflate"] {
        let refused = bench.send(headed().header("content-encoding", coding), &modern(META)).await;
        assert_eq!(refused.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE, "{coding}");
        assert_eq!(refused.headers()["accept-encoding"], "identity");
        let said = text(refused).await;
        assert!(said.contains("`Content-Encoding`") && said.contains("-32600"), "{said}");
    }
    assert_eq!(
        bench.send(headed().header("content-encoding", "identity"), &modern(META)).await.status(),
        StatusCode::OK
    );
}

/// A body of which nothing comes.
struct Withheld;

impl http_body::Body for Withheld {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
        Poll::Pending
    }
}

#[tokio::test(start_paused = true)]
async fn one_clients_open_bodies_leave_room_for_anothers() {
    let bench = Bench::new();
    let open = |name: &str| {
        let request = let_in(principal(post(), name), Withheld);
        let mut answering = Box::pin(bench.client.0.clone().oneshot(request));
        match answering.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => Ok(answering),
            Poll::Ready(response) => Err(Box::new(response.unwrap())),
        }
    };
    let all = |name| std::iter::from_fn(|| open(name).ok()).take(5000).collect::<Vec<_>>();
    let (ann, bob) = (all("ann"), all("bob"));
    assert_eq!((ann.len(), bob.len()), (1024, 512), "half of what is free");
    let refused = open("ann").err().unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    let said = text(*refused).await;
    assert!(said.contains("its share of the bodies"), "{said}");
    assert!(bench.refusals.all().contains_key("bodies") && open("carl").is_ok());
    drop(ann);
    assert!(open("ann").is_ok(), "they are free again");
}
