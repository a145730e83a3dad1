//! A gateway that browsers reach by TLS: who it is at an authorization server, and what it sets in a browser.

use super::{base, echo, get, page_in, sent};
use crate::logins::{AUTH, Guarded, MODERN};
use serde_json::{Value, json};
use trunkline_tests::client::Client;
use trunkline_tests::client::http::exchange;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::upstream::Way;

#[tokio::test]
async fn a_gateway_that_browsers_reach_by_https_is_a_web_client_and_its_cookie_is_for_its_own_host_alone() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let config =
        Config::new().upstream_with(&guarded.upstream, AUTH).server("public_url = \"https://mcp.example.com\"");
    let gateway = Gateway::serve(&config).await;
    let client = Client::connect_with(&gateway.reach(), MODERN, sent()).await;
    let url = page_in(&client.request(echo()).await, MODERN).0;
    let (_, path) = url.split_once("https://mcp.example.com").expect("it is reached there");
    let answer = exchange(&format!("{}{path}", base(&gateway)), "GET", &[], "").await;
    let cookie = answer.header("set-cookie").expect("a cookie");
    assert!(cookie.starts_with("__Host-") && !cookie.to_ascii_lowercase().contains("domain"), "{cookie}");
    for part in ["Secure", "HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(cookie.split("; ").any(|own| own == part), "{part}: {cookie}");
    }
    let registered: Value = serde_json::from_str(&guarded.identity.last("POST /register")["json"]).expect("JSON");
    let redirect = json!(["https://mcp.example.com/connect/callback/up"]);
    assert_eq!((&registered["application_type"], &registered["redirect_uris"]), (&json!("web"), &redirect));
}

#[tokio::test]
async fn a_gateway_by_https_is_known_by_its_own_document_where_that_is_read() {
    const DOCUMENT: &str = "https://mcp.example.com/connect/client/up";
    const SUPPORTED: &str = "client_id_metadata_document_supported";
    let https = "https://mcp.example.com";
    // Whether documents are read there, how clients prove who they are, what is configured, where browsers come, whether that is enough.
    for (reads, methods, more, public, is_known) in [
        (true, json!(["none"]), "", https, true),
        (true, json!(["none"]), "client_document = true", https, true),
        (true, json!(["none"]), "client_document = false", https, false),
        (true, json!(["client_secret_basic"]), "", https, false),
        (false, json!(["none"]), "", https, false),
        (true, json!(["none"]), "", "", false),
    ] {
        let guarded = Guarded::start(Way::Http, MODERN).await;
        guarded.identity.says(SUPPORTED, json!(reads));
        guarded.identity.says("token_endpoint_auth_methods_supported", methods);
        let auth = format!("auth = {{ type = \"oauth\"{}{more} }}", if more.is_empty() { "" } else { ", " });
        let config = Config::new().upstream_with(&guarded.upstream, &auth);
        let config = if public.is_empty() { config } else { config.server(&format!("public_url = \"{public}\"")) };
        let gateway = Gateway::serve(&config).await;
        let client = Client::connect_with(&gateway.reach(), MODERN, sent()).await;
        let url = page_in(&client.request(echo()).await, MODERN).0;
        let path = url.strip_prefix(https).unwrap_or_else(|| url.strip_prefix(&base(&gateway)).expect("it is there"));
        let page = get(&format!("{}{path}", base(&gateway)), "").await.1;
        let shows = page.contains("client_id=https%3A%2F%2Fmcp.example.com%2Fconnect%2Fclient%2Fup");
        assert_eq!(shows, is_known, "{reads} {more} {public}: {page}");
        assert_eq!(guarded.identity.asked.all().iter().any(|(what, _)| what == "POST /register"), !is_known);
        let own = exchange(&format!("{}/connect/client/up", base(&gateway)), "GET", &[], "").await;
        let other = exchange(&format!("{}/connect/client/other", base(&gateway)), "GET", &[], "").await;
        let odd = exchange(&format!("{}/connect/client/a%2Fb", base(&gateway)), "GET", &[], "").await;
        let is_served = if public.is_empty() { 404 } else { 200 };
        assert_eq!((own.status, other.status, odd.status), (is_served, is_served, 404), "it tells of no upstream");
        if own.status == 200 {
            let said: Value = serde_json::from_slice(&own.body).expect("JSON");
            let redirect = json!(["https://mcp.example.com/connect/callback/up"]);
            assert_eq!((&said["client_id"], &said["redirect_uris"]), (&json!(DOCUMENT), &redirect));
            assert_eq!(said["token_endpoint_auth_method"], "none");
        }
    }
}
