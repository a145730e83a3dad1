//! Logins that a call asks for while the gateway runs: its own page, the provider's, and back.

use trunkline_tests::client::Desk as Answers;
use trunkline_tests::client::{Answer, Client, Request, request};
use trunkline_tests::revision::Revision;

use super::browser::Browser;
use super::desk::{Desk, OAUTH};

const OWN: &str = "auth = { type = \"oauth\", logins = \"per-principal\" }";
const TOOL: &str = "up__echo";

fn sent() -> Answers {
    Answers::closed().declaring("{\"elicitation\":{\"url\":{}}}")
}

fn echo(name: &str) -> Request {
    request::tool(name, "{\"a\":1}")
}

/// Where a call sends its person.
fn page(answer: &Answer, revision: Revision) -> String {
    let page = match revision.is_modern() {
        true => answer.value()["inputRequests"]["page-1"]["params"].clone(),
        false => answer.error_value()["data"]["elicitations"][0].clone(),
    };
    page["url"].as_str().unwrap_or_else(|| panic!("no page: {page}")).to_owned()
}

#[tokio::test]
async fn a_call_sends_its_person_to_a_page_that_leads_to_the_provider_and_back() {
    let Some(mut browser) = Browser::start() else { return };
    for revision in [Revision::R2025_11_25, Revision::MODERN] {
        let desk = Desk::with(false, revision, |config, upstream| config.upstream_with(upstream, OAUTH)).await;
        let Some(desk) = desk else { return };
        let client = Client::connect_with(&desk.gateway.reach(), revision, sent()).await;
        let url = page(&client.request(echo(TOOL)).await, revision);
        let asks = browser.opens("ann", &url).await;
        asks.says(
            200,
            &["needs your login", "up", &desk.provider.url, "Go on only if you have just asked for this yourself."],
        );
        let provider = browser.clicks("ann", "Log in").await;
        assert!(provider.title == "Sign-in", "{provider:?}");
        // Another person's browser gets nothing of it.
        browser.opens("eve", &url).await.says(403, &["begun in another browser"]);
        let back = browser.logs_in("ann").await;
        back.says(200, &["up is connected", "You can close this page."]);
        desk.has_its_login("ann").await;
        browser.opens("ann", &url).await.says(404, &["was used"]);
    }
}

#[tokio::test]
async fn each_principal_is_sent_to_a_page_of_its_own_and_cancels_or_logs_in_for_itself_alone() {
    let Some(mut browser) = Browser::start() else { return };
    let token = |name: &str| format!("[[auth.tokens]]\nname = \"{name}\"\ntoken = \"{name}-has-a-long-token\"\n");
    let revision = Revision::MODERN;
    let desk = Desk::with(false, revision, |config, upstream| {
        config.upstream_with(upstream, OWN).section(&token("ada")).section(&token("bob"))
    });
    let Some(desk) = desk.await else { return };
    let of = async |name: &str| {
        Client::bearing_with(&desk.gateway.reach(), revision, &format!("{name}-has-a-long-token"), sent()).await
    };
    let (ada, bob) = (of("ada").await, of("bob").await);
    for (client, principal, person) in [(&ada, "token:ada", "ann"), (&bob, "token:bob", "bea")] {
        let url = page(&client.request(echo(TOOL)).await, revision);
        browser.opens(person, &url).await.says(200, &["It becomes the login of", principal, "of nobody else"]);
        browser.clicks(person, "Log in").await;
        let back = browser.clicks(person, "[ Cancel ]").await;
        back.says(502, &["refuses the login, or it was cancelled there", "Call the tool again to get another link."]);
        let url = page(&client.request(echo(TOOL)).await, revision);
        browser.opens(person, &url).await.says(200, &[principal]);
        browser.clicks(person, "Log in").await;
        browser.logs_in(person).await.says(200, &["is connected for", principal, "You can close this page."]);
        client.tools_until("its tools are listed", |tools| tools.contains(&TOOL.into())).await;
        assert_eq!(client.call(TOOL, "{\"a\":1}").await.text(), "{\"a\":1}");
        assert_eq!(desk.person().await, person);
    }
    assert_eq!(ada.call(TOOL, "{\"a\":2}").await.text(), "{\"a\":2}");
    assert_eq!(desk.person().await, "ann");
}
