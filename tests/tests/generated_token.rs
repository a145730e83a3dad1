//! `[auth] generate_token`: where anybody could call from another machine, the gateway makes a token, shows it once and keeps it.

use trunkline_tests::client::http::exchange;
use trunkline_tests::gateway::{Config, Gateway, free_port};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;

const GREETING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const MADE: &str = "shown this once: ";

/// Two listeners, one of which other machines reach.
fn open(upstream: &Upstream) -> Config {
    let listener = format!("[[server.listeners]]\naddress = \"0.0.0.0:{}\"", free_port());
    Config::new().upstream(upstream).listed("").section(&listener).section("[auth]\ngenerate_token = true")
}

async fn status(gateway: &Gateway, token: Option<&str>) -> u16 {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    headers.extend(bearer.iter().map(|bearer| ("authorization", bearer.as_str())));
    exchange(&gateway.url, "POST", &headers, GREETING).await.status
}

/// The token that it shows.
async fn shown(gateway: &Gateway) -> String {
    let line = gateway.says(&[MADE]).await;
    let rest = line.split(MADE).nth(1).expect("it follows");
    rest.chars().take_while(|char| char.is_ascii_alphanumeric() || "_-".contains(*char)).collect()
}

async fn upstream() -> Upstream {
    Upstream::http(Script::new("up", Revision::R2025_11_25)).await
}

#[tokio::test]
async fn it_is_shown_once_and_is_the_same_at_the_next_start() {
    let upstream = upstream().await;
    let config = open(&upstream);
    let mut gateway = Gateway::serve(&config).await;
    let token = shown(&gateway).await;
    assert!(token.starts_with("tl_") && token.len() > 40, "{token}");
    let guess = "tl_0123456789012345678901234567890123456789012";
    for (offered, expected) in [(None, 401), (Some(guess), 401), (Some(token.as_str()), 200)] {
        assert_eq!(status(&gateway, offered).await, expected, "{offered:?}");
    }
    gateway.restart(&config).await;
    gateway.says(&["clients present the token in ", "client-token"]).await;
    assert!(!gateway.stderr.all().iter().any(|line| line.contains(&token)), "it is shown once");
    assert_eq!((status(&gateway, None).await, status(&gateway, Some(&token)).await), (401, 200));
}

#[tokio::test]
async fn a_reload_keeps_it_and_one_that_is_lost_opens_no_door() {
    let upstream = upstream().await;
    let config = open(&upstream);
    let gateway = Gateway::serve(&config).await;
    let token = shown(&gateway).await;
    let reload = async || gateway.command(&["reload"]).output().await.expect("it runs");
    let kept = reload().await;
    assert!(kept.status.success(), "{}", String::from_utf8_lossy(&kept.stderr));
    std::fs::remove_file(gateway.state().join("client-token")).expect("it is kept there");
    let refused = reload().await;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned() + &String::from_utf8_lossy(&refused.stdout);
    assert!(!refused.status.success() && said.contains("client-token") && said.contains("restart"), "{said}");
    assert_eq!((status(&gateway, None).await, status(&gateway, Some(&token)).await), (401, 200), "as before");
}

#[tokio::test]
async fn one_that_is_given_is_taken_and_none_is_made() {
    let upstream = upstream().await;
    let given = "the-token-that-a-person-chose";
    let gateway = Gateway::serve(&open(&upstream).env("TRUNKLINE_TOKEN", given)).await;
    assert_eq!((status(&gateway, None).await, status(&gateway, Some(given)).await), (401, 200));
    assert!(!gateway.state().join("client-token").exists());
    assert!(!gateway.stderr.all().iter().any(|line| line.contains(MADE) || line.contains(given)));
}

#[tokio::test]
async fn who_has_others_in_mind_is_open_to_nobody_at_loopback_either() {
    let upstream = upstream().await;
    let local =
        |keys: &str| Config::new().upstream(&upstream).section(&format!("[auth]\ngenerate_token = true\n{keys}"));
    for config in [
        local("mode = \"token\""),
        local("").server("public_url = \"https://mcp.example.com\""),
        local("").env("TRUNKLINE_TOKEN", "the-token-that-a-person-chose"),
    ] {
        let gateway = Gateway::serve(&config).await;
        assert_eq!(status(&gateway, None).await, 401);
    }
}

#[tokio::test]
async fn where_everybody_may_call_or_nobody_can_from_elsewhere_none_is_made() {
    let upstream = upstream().await;
    let asked = open(&upstream).env("TRUNKLINE_AUTH__ALLOW_UNAUTHENTICATED", "true");
    let local = Config::new().upstream(&upstream).section("[auth]\ngenerate_token = true");
    for config in [asked, local] {
        let gateway = Gateway::serve(&config).await;
        assert_eq!(status(&gateway, None).await, 200);
        assert!(!gateway.state().join("client-token").exists());
    }
}
