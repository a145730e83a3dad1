//! Logins on another device: a code, a page, and what comes of it.

use std::process::{Output, Stdio};

use tokio::io::{AsyncBufReadExt, BufReader};
use trunkline_tests::gateway::Gateway;
use trunkline_tests::upstream::Way;
use trunkline_tests::within::within;

use super::{Guarded, MODERN, logged_in, said, up};

/// Begins a login, waits until its code is shown and was asked about once, has something come of it, and waits for the end.
async fn log_in(gateway: &Gateway, guarded: &Guarded, comes: Result<(), &'static str>) -> Output {
    let mut command = gateway.command(&["login", "up", "--no-browser"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut text = String::new();
    within("it says where, and what comes of it", async {
        while let Ok(Some(line)) = lines.next_line().await {
            text.push_str(&format!("{line}\n"));
            if line == format!("{}/activate", guarded.identity.url) {
                let asked = |(what, _): &(String, _)| (what == "POST /token").then_some(());
                guarded.identity.asked.wait("the code is asked about", asked).await;
                guarded.identity.enters(comes);
            }
        }
    })
    .await;
    let output = within("it ends", child.wait_with_output()).await.expect("it runs");
    Output { stderr: text.into_bytes(), ..output }
}

#[tokio::test]
async fn without_a_browser_a_code_is_entered_on_another_device_where_that_is_offered() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    guarded.identity.offers_devices();
    let gateway = guarded.serve("").await;
    let (is_done, text) = said(&log_in(&gateway, &guarded, Ok(())).await);
    let asks = "to log in to `up`, open this page on any device, and enter the code WDJB-MJHT there:";
    assert!(is_done && text.contains(asks) && text.contains("logged in to `up` at http://127.0.0.1:"), "{text}");
    assert!(!text.contains("canary"), "{text}");
    let begun = guarded.identity.last("POST /device");
    assert_eq!((&begun["client_id"][..], &begun["scope"][..]), ("registered-1", "mcp.read mcp.write"));
    assert_eq!(begun["resource"], guarded.at("/mcp"));
    assert_eq!(guarded.identity.last("POST /token")["resource"], guarded.at("/mcp"));
    assert!(guarded.identity.last("POST /register")["json"].contains("urn:ietf:params:oauth:grant-type:device_code"));
    // As with any other login: it is used, and refreshed.
    let client = up(&gateway, MODERN).await;
    guarded.guard.revoke();
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    assert_eq!(guarded.identity.granted("refresh_token"), 1);
}

#[tokio::test]
async fn a_code_that_is_refused_or_over_says_so_and_nothing_is_kept() {
    for (error, why) in [
        ("access_denied", "the login was refused at the page"),
        ("expired_token", "nobody entered the code within 600 s"),
        ("unauthorized_client", "the token end point refuses it: `unauthorized_client`"),
    ] {
        let guarded = Guarded::start(Way::Http, MODERN).await;
        guarded.identity.offers_devices();
        let gateway = guarded.serve("").await;
        let (is_done, text) = said(&log_in(&gateway, &guarded, Err(error)).await);
        assert!(!is_done && text.contains("cannot log in to `up`: ") && text.contains(why), "{text}");
        assert!(!text.contains("canary"), "its description quotes the code that the gateway asks with: {text}");
        assert!(guarded.with_tokens().is_empty());
    }
}

#[tokio::test]
async fn where_no_code_is_given_or_it_leads_elsewhere_than_it_may_the_link_is_shown() {
    for offers in ["/nowhere", "http://192.0.2.1/device"] {
        let guarded = Guarded::start(Way::Http, MODERN).await;
        let at = if offers.starts_with('/') { format!("{}{offers}", guarded.identity.url) } else { offers.to_owned() };
        guarded.identity.says("device_authorization_endpoint", at.into());
        let gateway = guarded.serve("").await;
        logged_in(&gateway).await;
        assert_eq!(guarded.identity.granted("authorization_code"), 1);
    }
}

#[tokio::test]
async fn a_code_that_nobody_can_enter_and_a_page_elsewhere_are_not_shown() {
    let long = "x".repeat(65);
    for (key, value) in
        [("user_code", ""), ("user_code", &long), ("user_code", "a\u{1b}b"), ("verification_uri", "http://192.0.2.1/")]
    {
        let guarded = Guarded::start(Way::Http, MODERN).await;
        guarded.identity.offers_devices();
        guarded.identity.gives(key, value);
        let gateway = guarded.serve("").await;
        logged_in(&gateway).await;
        assert_eq!(guarded.identity.granted("authorization_code"), 1, "{key} {value:?}");
    }
}
