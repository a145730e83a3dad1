//! What the gateway is for access tokens, at the endpoint and at the older transports, and which tokens are of no use to it.

use crate::access_tokens::{KNOWN, RESOURCE, ask_with, config, status, twice_headed, up};
use serde_json::{Value, json};
use trunkline_tests::client::http as wire;
use trunkline_tests::gateway::Gateway;
use trunkline_tests::issuer::{Issuer, now};
use trunkline_tests::revision::Revision;
use trunkline_tests::within::{all, until};

const LEGACY: Revision = Revision::R2025_11_25;
const MODERN: Revision = Revision::MODERN;

#[tokio::test]
async fn a_client_of_an_older_transport_is_told_of_the_resource_that_it_was_given_the_url_of() {
    let (up, issuer) = (up(LEGACY).await, Issuer::start().await);
    let gateway = Gateway::serve(&config(&up, &issuer.entry(""))).await;
    for (path, face) in [("/sse", "/sse"), ("/message", "/sse"), ("/ws", "/ws"), ("/mcp", "/mcp"), ("/else", "/mcp")] {
        let answer = wire::exchange(&gateway.url.replace("/mcp", path), "GET", &[], "").await;
        let metadata = format!("Bearer resource_metadata=\"https://mcp.example.com{KNOWN}{face}\"");
        assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some(&*metadata)), "{path}");
        let answer = wire::exchange(&gateway.url.replace("/mcp", &format!("{KNOWN}{face}")), "GET", &[], "").await;
        let said: Value = serde_json::from_slice(&answer.body).expect("JSON");
        let resource = format!("https://mcp.example.com{face}");
        assert_eq!((answer.status, &said["resource"]), (200, &json!(resource)), "{path}");
        assert_eq!(status(&gateway, &issuer.token(&resource, "ann", "")).await, 200, "a token for {face} is for all");
    }
    assert_eq!(status(&gateway, &issuer.token("https://mcp.example.com/message", "ann", "")).await, 401);
    let without = config(&up, &issuer.entry("")).server("legacy_sse = false");
    let gateway = Gateway::serve(&without).await;
    assert_eq!(status(&gateway, &issuer.token("https://mcp.example.com/sse", "ann", "")).await, 401);
    assert_eq!(status(&gateway, &issuer.token("https://mcp.example.com/ws", "ann", "")).await, 200);
}

#[tokio::test]
async fn a_token_may_have_sixteen_kibibytes() {
    let (up, issuer) = (up(MODERN).await, Issuer::start().await);
    let gateway = Gateway::serve(&config(&up, &issuer.entry(""))).await;
    for (padding, expected) in [(11_500, 200), (12_500, 401)] {
        let mut claims = issuer.claims(RESOURCE, "ann", 3600);
        claims["padding"] = "x".repeat(padding).into();
        let token = issuer.signed(&claims);
        assert_eq!((token.len() > 16 * 1024, status(&gateway, &token).await), (expected == 401, expected), "{padding}");
    }
}

/// Tokens that an authorization server may have signed so, and that are of no use here.
fn useless(issuer: &Issuer) -> Vec<(&'static str, String)> {
    let good = issuer.claims(RESOURCE, "ann", 3600);
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        issuer.signed(&claims)
    };
    vec![
        ("an algorithm twice", twice_headed(issuer, &good)),
        ("a key that it is bound to", with("cnf", json!({"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}))),
        (
            "a certificate that it is bound to",
            with("cnf", json!({"x5t#S256": "bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2"})),
        ),
        ("a subject that is a number", with("sub", 7.into())),
    ]
}

#[tokio::test]
async fn a_token_that_says_one_thing_twice_is_bound_to_a_key_or_names_nobody_is_refused() {
    let (up, issuer) = (up(MODERN).await, Issuer::start().await);
    let gateway = Gateway::serve(&config(&up, &issuer.entry(""))).await;
    for (name, token) in useless(&issuer) {
        assert_eq!(status(&gateway, &token).await, 401, "{name}");
    }
}

#[tokio::test]
async fn a_stranger_behind_a_proxy_keeps_no_token_of_another_one_there_from_being_asked_about() {
    let (up, issuer) = (up(MODERN).await, Issuer::start().await);
    let asked = "introspection = { client_id = \"gate\", client_secret = \"canary-introspection\" }";
    let behind = config(&up, &issuer.entry(asked)).server("trusted_proxies = [\"127.0.0.0/8\"]");
    let gateway = Gateway::serve(&behind).await;
    let good = json!({"active": true, "sub": "ann", "client_id": "desk", "aud": RESOURCE, "exp": now() + 3600});
    issuer.says_of("good", good);
    let questions = || issuer.asked.all().iter().filter(|path| *path == "/introspect").count();
    let ask = async |token: &str, from: &str| {
        let bearer = format!("Bearer {token}");
        ask_with(&gateway, &[("authorization", &bearer), ("x-forwarded-for", from)]).await.status
    };
    issuer.hold(true);
    let invented: Vec<_> = (0..300).map(|at| format!("invented-{at}")).collect();
    let flood = all(invented.iter().map(|token| ask(token, "203.0.113.1")));
    let other = async {
        until("it asks about all it may", || async { (questions() >= 128).then_some(()) }).await;
        let more = async {
            until("it asks about one more", || async { (questions() > 128).then_some(()) }).await;
            issuer.hold(false);
        };
        tokio::join!(ask("good", "203.0.113.2"), more).0
    };
    let (refused, status) = tokio::join!(flood, other);
    assert_eq!(status, 200, "it comes from another address");
    assert_eq!(refused.iter().filter(|status| **status == 503).count(), 300 - 128, "{refused:?}");
}
