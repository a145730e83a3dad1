//! HTTP/2 with clients and upstreams: chosen in the handshake, with all that holds for HTTP/1.1.

#![allow(clippy::disallowed_methods)] // a test's tasks end with its runtime

pub(crate) mod bridge;
mod foreign;
mod manner;
mod renewed;
mod unwell;

use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use bridge::Body;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use trunkline_tests::client::Reach;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{until, within};

use crate::face_tls::Files;
use crate::matrix;
use trunkline_tests::certificates::Authority;

const GREETING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

fn address_of(gateway: &Gateway) -> SocketAddr {
    gateway.url.trim_start_matches("https://").trim_end_matches("/mcp").parse().expect("an address")
}

/// Every scenario over one connection of HTTP/2.
async fn check(client: Revision, upstream_revision: Revision) {
    let files = Files::new();
    let upstream = Upstream::http(Script::new("up", upstream_revision).asking().tasked()).await;
    let bystander = Upstream::http(Script::new("by", Revision::R2025_11_25)).await;
    let config = Config::new().over_tls().section(&files.section("")).upstream(&upstream).upstream(&bystander);
    let gateway = Gateway::serve(&config).await;
    let bridge = bridge::before(&files.authority, address_of(&gateway)).await;
    let reach = Reach::Url(format!("http://{bridge}/mcp"));
    matrix::run(&reach, client, upstream, upstream_revision, bystander).await;
}

#[tokio::test]
async fn a_client_with_a_session_has_all_over_one_connection() {
    check(Revision::R2025_11_25, Revision::R2025_11_25).await;
    check(Revision::R2025_06_18, Revision::MODERN).await;
}

#[tokio::test]
async fn a_stateless_client_has_all_over_one_connection() {
    check(Revision::MODERN, Revision::MODERN).await;
    check(Revision::MODERN, Revision::R2025_11_25).await;
}

#[tokio::test]
async fn http2_is_spoken_with_who_offers_it_unless_the_file_says_no() {
    for (more, chosen) in [("", ["h2", "h2", "http/1.1", ""]), ("http2 = false", ["", "http/1.1", "http/1.1", ""])] {
        let files = Files::new();
        let upstream = Upstream::http(Script::new("up", Revision::R2025_11_25)).await;
        let config = Config::new().over_tls().section(&files.section(more)).upstream(&upstream);
        let gateway = Gateway::serve(&config).await;
        let offers: [&[&[u8]]; 4] = [&[b"h2"], &[b"http/1.1", b"h2"], &[b"http/1.1"], &[b"spdy/1"]];
        for (offered, chosen) in offers.iter().zip(chosen) {
            let stream = bridge::secured(&files.authority, address_of(&gateway), offered).await;
            let got = stream.as_ref().and_then(|stream| stream.get_ref().1.alpn_protocol()).unwrap_or_default();
            assert_eq!(String::from_utf8_lossy(got), chosen, "{more}: {offered:?}");
        }
    }
}

fn post(address: SocketAddr, body: impl Into<Bytes>) -> Request<Body> {
    let request = Request::post(format!("https://{address}/mcp"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    request.body(Body::new(Full::new(body.into()).map_err(|never| match never {}))).expect("a request")
}

async fn sent(send: &SendRequest<Body>, request: Request<Body>) -> hyper::Result<Response<Incoming>> {
    within("the answer", send.clone().send_request(request)).await
}

#[tokio::test]
async fn what_is_refused_over_http_1_is_refused_over_http2() {
    let files = Files::new();
    let token = "[[auth.tokens]]\nname = \"ann\"\ntoken = \"ann-has-a-long-token\"\n";
    let upstream = Upstream::http(Script::new("up", Revision::R2025_11_25)).await;
    let config = Config::new().over_tls().section(&files.section("")).section(token).upstream(&upstream);
    let gateway = Gateway::serve(&config.server("max_body = \"64KiB\"\n")).await;
    let address = address_of(&gateway);
    let known = |mut request: Request<Body>| {
        request.headers_mut().insert("authorization", "Bearer ann-has-a-long-token".parse().expect("a header"));
        request
    };
    let with = |name: &'static str, value: &'static str| {
        let mut request = known(post(address, GREETING));
        request.headers_mut().insert(name, value.parse().expect("a header"));
        request
    };
    let at = |uri: &str, mut request: Request<Body>| {
        *request.uri_mut() = uri.parse().expect("a URI");
        request
    };
    let get = |path: &str| {
        let mut request = at(&format!("https://{address}{path}"), known(post(address, "")));
        *request.method_mut() = http::Method::GET;
        request
    };
    for (what, request, status) in [
        ("all is right", known(post(address, GREETING)), 200),
        ("no token", post(address, GREETING), 401),
        ("another token", with("authorization", "Bearer nobody-has-this-token"), 401),
        ("a foreign host", at("https://evil.example/mcp", known(post(address, GREETING))), 403),
        ("a foreign host beside ours", with("host", "evil.example"), 403),
        ("a foreign page", with("origin", "https://evil.example"), 403),
        ("no JSON", with("content-type", "text/plain"), 415),
        ("a body that is compressed", with("content-encoding", "gzip"), 415),
        ("a body that is too long", known(post(address, vec![b' '; 65 * 1024])), 413),
        ("a WebSocket", get("/ws"), 426),
        ("another path", get("/other"), 404),
        ("a head that is too long", with("x-long", Box::leak("x".repeat(33 * 1024).into_boxed_str())), 431),
    ] {
        let send = bridge::client(&files.authority, address).await;
        let answer = sent(&send, request).await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
        assert_eq!(answer.status().as_u16(), status, "{what}");
        assert!(!answer.headers().contains_key("connection"), "{what}: that is a header of HTTP/1.1");
        match status {
            // The client is to come again on another connection.
            401 => until(what, || async { send.is_closed().then_some(()) }).await,
            200 | 403 | 404 | 415 => {
                let again = sent(&send, known(post(address, GREETING))).await;
                assert_eq!(again.expect("the connection goes on").status(), 200, "{what}");
            }
            _ => {}
        }
    }
}

/// Every scenario with an upstream of HTTP/2.
async fn check_upstream(client: Revision, upstream_revision: Revision) {
    let authority = Authority::new();
    let upstream = Upstream::http(Script::new("up", upstream_revision).asking().tasked()).await;
    let bystander = Upstream::http(Script::new("by", Revision::R2025_11_25)).await;
    let inner: http::Uri = upstream.url().parse().expect("a URL");
    let inner = inner.authority().expect("a host and port").as_str().parse().expect("an address");
    let (address, connections) = bridge::behind(&authority.certify("127.0.0.1", 2999), inner).await;
    let scratch = Scratch::new();
    let roots = scratch.file("roots.pem", &authority.pem);
    let config = Config::new()
        .section(&format!("[upstreams.up]\nurl = \"https://{address}/mcp\"\n"))
        .env("SSL_CERT_FILE", &roots.display().to_string())
        .upstream(&bystander);
    let gateway = Gateway::serve(&config).await;
    matrix::run(&gateway.reach(), client, upstream, upstream_revision, bystander).await;
    let connections = connections.load(Ordering::SeqCst);
    assert!((1..6).contains(&connections), "{connections}: they are shared");
}

#[tokio::test]
async fn an_upstream_with_a_session_has_all_over_http2() {
    check_upstream(Revision::R2025_11_25, Revision::R2025_11_25).await;
    check_upstream(Revision::MODERN, Revision::R2025_06_18).await;
}

#[tokio::test]
async fn a_stateless_upstream_has_all_over_http2() {
    check_upstream(Revision::MODERN, Revision::MODERN).await;
    check_upstream(Revision::R2025_11_25, Revision::MODERN).await;
}
