//! Logins that come to nothing: what a person reads of it on the terminal and in the browser.

use serde_json::json;
use trunkline_tests::certificates;
use trunkline_tests::revision::Revision;
use trunkline_tests::terminal::{ends, sees, types};

use super::browser::Browser;
use super::desk::{Desk, ENDED, between, reads, resource};

#[tokio::test]
async fn a_person_who_cancels_at_the_provider_reads_so_in_the_browser_and_on_the_terminal() {
    let Some(mut browser) = Browser::start() else { return };
    for has_devices in [false, true] {
        let Some(desk) = Desk::start(has_devices).await else { return };
        let (mut terminal, mut seen) = match has_devices {
            true => desk.logs_in_elsewhere(),
            false => desk.logs_in_here(),
        };
        if has_devices {
            let page = desk.link(&mut terminal, &mut seen).await;
            let code = between(&seen, "enter the code ", " there");
            browser.opens("ann", &page).await;
            browser.does(json!({ "who": "ann", "fill": ["Enter code", code] })).await;
            browser.clicks("ann", "Continue").await;
            browser.clicks("ann", "Continue").await;
            browser.clicks("ann", "[ Cancel ]").await;
        } else {
            let link = desk.opened(&mut terminal, &mut seen).await;
            browser.opens("ann", &link).await;
            let back = browser.clicks("ann", "[ Cancel ]").await;
            back.says(200, &["Not logged in", "The login at up was not completed; the terminal says why."]);
        }
        sees(&mut terminal, &mut seen, ENDED).await;
        reads(
            &seen,
            match has_devices {
                true => "error: cannot log in to `up`: no access token: the login was refused at the page",
                false => {
                    "error: cannot log in to `up`: the authorization server refuses the login, or it was cancelled there: `access_denied`"
                }
            },
        );
        assert!(seen.contains("ended 1"), "{seen}");
        desk.has_no_login().await;
    }
}

#[tokio::test]
#[ignore = "takes long; .ci/full runs it"]
async fn a_person_who_ends_the_command_or_closes_the_page_has_no_login_and_can_begin_anew() {
    let Some(mut browser) = Browser::start() else { return };
    let Some(desk) = Desk::start(false).await else { return };
    let (mut terminal, mut seen) = desk.logs_in_here();
    let link = desk.opened(&mut terminal, &mut seen).await;
    browser.opens("ann", &link).await;
    types(&mut terminal, "\u{3}").await;
    ends(&mut terminal, &mut seen).await;
    reads(&seen, "Ctrl-C gives up, and what was kept before stays");
    let late = browser.logs_in("ann").await;
    assert!(late.error.is_some() && late.url.contains("/callback/up?"), "nobody listens there any more: {late:?}");
    desk.has_no_login().await;
    let (mut terminal, mut seen) = desk.logs_in_here();
    let link = desk.opened(&mut terminal, &mut seen).await;
    browser.opens("ann", &link).await;
    // The provider remembers who it is, and asks for consent alone.
    browser.clicks("ann", "Continue").await.says(200, &["The login at up goes on in the terminal."]);
    sees(&mut terminal, &mut seen, ENDED).await;
    desk.is_logged_in(&seen);
    desk.has_its_login("ann").await;
}

#[tokio::test]
#[ignore = "takes long; .ci/full runs it"]
async fn a_client_that_is_registered_with_another_port_is_refused_at_the_page_and_the_terminal_says_what_to_register() {
    let Some(mut browser) = Browser::start() else { return };
    let keys = "auth = { type = \"oauth\", client_id = \"by-hand\" }";
    let desk = Desk::with(false, Revision::MODERN, |config, upstream| config.upstream_with(upstream, keys)).await;
    let Some(desk) = desk else { return };
    let (mut terminal, mut seen) = desk.logs_in_here();
    let link = desk.opened(&mut terminal, &mut seen).await;
    let refused = browser.opens("ann", &link).await;
    assert!(refused.status == 400 && refused.text.contains("redirect_uri did not match"), "{refused:?}");
    types(&mut terminal, "\u{3}").await;
    ends(&mut terminal, &mut seen).await;
    reads(
        &seen,
        "if the page refuses the redirect URI: register http://127.0.0.1/callback for the client `by-hand` there",
    );
    desk.has_no_login().await;
}

#[tokio::test]
#[ignore = "takes long; .ci/full runs it"]
async fn where_the_provider_is_down_or_odd_between_the_page_and_the_token_both_say_so() {
    let Some(mut browser) = Browser::start() else { return };
    for (status, content, body, why) in [
        (None, "", "", "the token end point cannot be asked: the connection broke"),
        (Some(500), "text/plain", "oops", "the token end point answers with HTTP 500"),
        (Some(502), "text/html", "<h1>Bad gateway</h1>", "the token end point answers with HTTP 502"),
        (Some(200), "text/html", "<h1>Welcome</h1>", "is neither a token nor an error of OAuth"),
        (
            Some(400),
            "application/json",
            "{\"error\":\"invalid_grant\",\"error_description\":\"grant request is invalid\"}",
            "the token end point refuses it: `invalid_grant`: `grant request is invalid`",
        ),
    ] {
        let Some(mut desk) = Desk::start(false).await else { return };
        let (mut terminal, mut seen) = desk.logs_in_here();
        let link = desk.opened(&mut terminal, &mut seen).await;
        browser.opens("ann", &link).await;
        desk.provider.answers("/token", status, content, body).await;
        let back = browser.logs_in("ann").await;
        back.says(200, &["The login at up goes on in the terminal."]);
        sees(&mut terminal, &mut seen, ENDED).await;
        reads(&seen, "error: cannot log in to `up`: no access token: ");
        reads(&seen, why);
        desk.has_no_login().await;
    }
}

#[tokio::test]
async fn where_no_provider_is_there_the_terminal_says_so_before_a_browser_opens() {
    let Some(mut desk) = Desk::start(false).await else { return };
    let fails = async |desk: &Desk, why: &str, advice: &str| {
        let (mut terminal, mut seen) = desk.logs_in_here();
        sees(&mut terminal, &mut seen, ENDED).await;
        reads(&seen, "error: cannot log in to `up`: the authorization server `http");
        reads(&seen, why);
        reads(&seen, advice);
        assert!(!seen.contains("opening the browser") && seen.contains("ended 1"), "{seen}");
    };
    const AGAIN: &str = "; try again in a while, or ask those who run it";
    for (status, content, body, why) in [
        (500, "text/plain", "oops", "` is out of order: it answers with HTTP 500"),
        (200, "text/html", "<h1>Welcome</h1>", "is no JSON document of its kind"),
    ] {
        for document in ["oauth-authorization-server", "openid-configuration"] {
            desk.provider.answers(&format!("/.well-known/{document}"), Some(status), content, body).await;
        }
        fails(&desk, why, AGAIN).await;
    }
    desk.provider.stop().await;
    fails(&desk, "` is not reached: cannot connect to 127.0.0.1:", AGAIN).await;
    let expired = certificates::Authority::new().certify("127.0.0.1", 2020);
    let (address, _) = certificates::door(expired, desk.upstream.address()).await;
    let document = resource(&desk.upstream, &format!("https://{address}"));
    desk.upstream.shows("/.well-known/oauth-protected-resource/mcp", 200, &document);
    fails(&desk, "its certificate has expired, ", " days ago by the clock of this machine; renew it at the server")
        .await;
    desk.has_no_login().await;
}
