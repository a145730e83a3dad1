//! Logins as a person has them: in Chromium, at the pages of a provider that others have written, with a terminal beside it. What is shown
//! on either is read.

mod browser;
mod desk;
mod failed;
mod paged;

use browser::Browser;
use desk::{Desk, between, reads};
use serde_json::json;
use trunkline_tests::terminal::{sees, types};

#[tokio::test]
async fn a_person_logs_in_with_the_browser_that_the_command_opens() {
    let Some(mut browser) = Browser::start() else { return };
    let Some(desk) = Desk::start(false).await else { return };
    let (mut terminal, mut seen) = desk.logs_in_here();
    let link = desk.opened(&mut terminal, &mut seen).await;
    let asks = browser.opens("ann", &link).await;
    assert!(asks.title == "Sign-in" && asks.url.starts_with(&desk.provider.url), "{asks:?}");
    let back = browser.logs_in("ann").await;
    back.says(200, &["Back to the terminal", "The login at up goes on in the terminal. You can close this page."]);
    sees(&mut terminal, &mut seen, "ended 0").await;
    desk.is_logged_in(&seen);
    assert!(seen.contains("waiting for that, 10 min at most; Ctrl-C gives up"), "{seen}");
    desk.has_its_login("ann").await;
    let status = desk.runs(&["status", "up"]).await;
    assert!(status.contains(&format!("at {}; its token ends in ", desk.provider.url)), "{status}");
    assert!(status.contains("is refreshed without you"), "{status}");
    let late = browser.opens("ann", &back.url).await;
    assert!(late.error.is_some(), "nobody listens there any more: {late:?}");
}

#[tokio::test]
async fn a_person_without_a_browser_pastes_the_address_that_another_machines_browser_comes_to() {
    let Some(mut browser) = Browser::start() else { return };
    let Some(desk) = Desk::start(false).await else { return };
    let (mut terminal, mut seen) = desk.logs_in_elsewhere();
    let link = desk.link(&mut terminal, &mut seen).await;
    reads(
        &seen,
        "or on another one and paste the address here that the browser comes to in the end, though it shows no page",
    );
    browser.does(json!({ "who": "ann", "away": true })).await;
    browser.opens("ann", &link).await;
    let back = browser.logs_in("ann").await;
    assert!(back.error.is_some() && back.url.contains("/callback/up?code="), "{back:?}");
    types(&mut terminal, "hello\n").await;
    sees(&mut terminal, &mut seen, "that is not the address that the browser was sent back to: that begins with").await;
    types(&mut terminal, &format!("{}\n", back.url)).await;
    sees(&mut terminal, &mut seen, "ended 0").await;
    desk.is_logged_in(&seen);
    desk.has_its_login("ann").await;
}

#[tokio::test]
#[ignore = "takes long; .ci/full runs it"]
async fn a_person_without_a_browser_enters_a_code_on_another_device_where_the_provider_takes_one() {
    let Some(mut browser) = Browser::start() else { return };
    let Some(desk) = Desk::start(true).await else { return };
    let (mut terminal, mut seen) = desk.logs_in_elsewhere();
    let page = desk.link(&mut terminal, &mut seen).await;
    let code = between(&seen, "open this page on any device, and enter the code ", " there:");
    browser.opens("ann", &page).await;
    browser.does(json!({ "who": "ann", "fill": ["Enter code", code] })).await;
    let confirms = browser.clicks("ann", "Continue").await;
    assert!(confirms.text.contains(&code) && confirms.text.contains("Trunkline"), "{confirms:?}");
    browser.clicks("ann", "Continue").await;
    let done = browser.logs_in("ann").await;
    assert!(done.text.contains("you can now close this page"), "{done:?}");
    sees(&mut terminal, &mut seen, "ended 0").await;
    desk.is_logged_in(&seen);
    desk.has_its_login("ann").await;
}
