//! Pages of the gateway where a person logs in to an upstream, from the call that is refused to the one that is answered.

mod by_https;
mod ended;

use serde_json::{Value, json};
use trunkline_tests::client::converse::{again, asks};
use trunkline_tests::client::http::exchange;
use trunkline_tests::client::{Answer, Client, Desk, Open, Reach, Request, request};
use trunkline_tests::frame::Frame;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::upstream::Way;

use crate::logins::own::{OWN, run, two};
use crate::logins::{AUTH, Guarded, LEGACY, MODERN, logged_in, refused, up};

const COMPLETE: &str = "notifications/elicitation/complete";
const ACCEPT: &str = "{\"page-1\":{\"action\":\"accept\"}}";
const TOKEN: &str = "ada-has-a-long-token";

fn echo() -> Request {
    request::tool("up__echo", "{\"a\":1}")
}

/// Where the gateway is.
fn base(gateway: &Gateway) -> String {
    let Reach::Url(url) = gateway.reach() else { panic!("it is reached by HTTP") };
    url.trim_end_matches("/mcp").to_owned()
}

/// Whoever can be sent to a page.
fn sent() -> Desk {
    Desk::closed().declaring("{\"elicitation\":{\"url\":{}}}")
}

/// The page that a call is answered with, and what its visit is called where that has a name.
fn page_in(answer: &Answer, revision: Revision) -> (String, Option<String>) {
    page_or(answer, revision, "run `trunkline login up`")
}

/// The same where this is run in place of following it.
fn page_or(answer: &Answer, revision: Revision, run: &str) -> (String, Option<String>) {
    let page = match revision.is_modern() {
        true => answer.value()["inputRequests"]["page-1"]["params"].clone(),
        false => {
            assert_eq!(answer.code(), -32042, "{}", answer.error());
            let data = &answer.error_value()["data"];
            assert!(matches!(data["code"].as_str(), Some("login_required" | "scope_required")), "{data}");
            data["elicitations"][0].clone()
        }
    };
    let text = |key: &str| page[key].as_str().map(str::to_owned);
    assert_eq!(page["mode"], "url", "{page}");
    assert!(page["message"].as_str().is_some_and(|said| said.contains(run)), "{page}");
    (text("url").expect("a page"), text("elicitationId"))
}

/// What a browser sees that has this cookie.
async fn get(url: &str, cookie: &str) -> (u16, String, Answer) {
    let headers = [("cookie", cookie)];
    let answer = exchange(url, "GET", if cookie.is_empty() { &[] } else { &headers }, "").await;
    (answer.status, String::from_utf8_lossy(&answer.body).into_owned(), answer)
}

/// Opens a page for the first time: its words, the cookie, and where it leads.
async fn open(url: &str) -> (String, String, String) {
    let (status, text, answer) = get(url, "").await;
    assert_eq!(status, 200, "{text}");
    let cookie = answer.header("set-cookie").expect("a cookie").split(';').next().expect("a pair").to_owned();
    let link = text.split("<a href=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a link");
    (text.clone(), cookie, link.replace("&amp;", "&"))
}

/// Where the browser is sent back to by the authorization server.
async fn sent_back(link: &str) -> String {
    exchange(link, "GET", &[], "").await.header("location").expect("the browser is sent back").to_owned()
}

#[tokio::test]
async fn a_call_that_needs_a_login_leads_its_person_to_a_page_and_is_answered_after_that() {
    for revision in [LEGACY, MODERN] {
        let guarded = Guarded::start(Way::Http, revision).await;
        let gateway = guarded.serve("").await;
        let client = Client::connect_with(&gateway.reach(), revision, sent()).await;
        let listening = if revision.is_modern() { None } else { Some(client.listen(&[]).await) };
        let answer = client.request(echo()).await;
        let (url, name) = page_in(&answer, revision);
        let base = base(&gateway);
        assert!(url.starts_with(&format!("{base}/connect/")) && url.len() > base.len() + 60, "{url}");
        assert_eq!(page_in(&client.request(echo()).await, revision).0, url, "one at a time");
        assert_eq!(guarded.identity.asked.mark(), 0, "nobody is asked before a person has opened it");
        let (text, cookie, link) = open(&url).await;
        for words in ["<code>up</code>", &guarded.identity.url, "<code>mcp.read</code> <code>mcp.write</code>"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let (status, done, answered) = get(&sent_back(&link).await, &cookie).await;
        assert_eq!((status, done.contains("<code>up</code> is connected")), (200, true), "{done}");
        assert!(
            answered.header("content-security-policy").is_some_and(|policy| policy.contains("frame-ancestors 'none'"))
        );
        let asked = guarded.identity.last("GET /authorize");
        let redirect = format!("{base}/connect/callback/up");
        assert_eq!((&asked["redirect_uri"], &*asked["code_challenge_method"]), (&redirect, "S256"));
        assert_eq!((&asked["resource"], &*asked["scope"]), (&guarded.at("/mcp"), "mcp.read mcp.write"));
        let registered: Value = serde_json::from_str(&guarded.identity.last("POST /register")["json"]).expect("JSON");
        assert_eq!(registered["redirect_uris"], json!([redirect]));
        if listening.is_some() {
            let told = |frame: &Frame| {
                let params: Value = serde_json::from_str(frame.params.as_ref()?.get()).ok()?;
                frame.is_notice(COMPLETE).then_some(params)
            };
            let told = client.notices.wait("the client is told", told).await;
            assert_eq!(told["elicitationId"].as_str().map(str::to_owned), name);
        }
        // The very same call, as a client makes it again.
        let request = if revision.is_modern() { again(&echo(), &answer, ACCEPT) } else { echo() };
        assert_eq!(client.request(request).await.text(), "{\"a\":1}");
        assert_eq!(client.complaints.all(), Vec::<String>::new());
        let (status, text, _) = get(&url, &cookie).await;
        assert_eq!((status, text.contains("This link is unknown")), (404, true), "{text}");
    }
}

#[tokio::test]
async fn a_retry_waits_for_the_person_and_goes_on_by_itself() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let gateway = guarded.serve("").await;
    let client = Client::connect_with(&gateway.reach(), MODERN, sent()).await;
    let answer = client.request(echo()).await;
    let (_, cookie, link) = open(&page_in(&answer, MODERN).0).await;
    let mut retry = client.start(again(&echo(), &answer, ACCEPT)).await;
    // A call that is made afterwards is answered before.
    assert!(asks(&client.request(echo()).await));
    assert!(at_once(&mut retry).await.is_none(), "it waits");
    assert_eq!(get(&sent_back(&link).await, &cookie).await.0, 200);
    assert_eq!(retry.answer().await.text(), "{\"a\":1}");
}

/// The answer that is there at once.
async fn at_once(open: &mut Open<'_>) -> Option<Option<Answer>> {
    tokio::time::timeout(std::time::Duration::ZERO, open.settles()).await.ok()
}

#[tokio::test]
async fn a_link_opens_in_one_browser_alone_and_what_comes_back_counts_once_from_there() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let auth = format!("[[auth.tokens]]\nname = \"ada\"\ntoken = \"{TOKEN}\"\n");
    let gateway = Gateway::serve(&Config::new().upstream_with(&guarded.upstream, AUTH).section(&auth)).await;
    let client = Client::bearing_with(&gateway.reach(), MODERN, TOKEN, sent()).await;
    let url = page_in(&client.request(echo()).await, MODERN).0;
    // A browser that only thinks that somebody will open it uses nothing up.
    let ahead = exchange(&url, "GET", &[("sec-purpose", "prefetch")], "").await;
    assert_eq!((ahead.status, ahead.header("set-cookie")), (403, None));
    let (text, cookie, link) = open(&url).await;
    assert!(text.contains("as <code>token:ada</code>") && text.contains("only if you have just asked"), "{text}");
    let back = sent_back(&link).await;
    let (name, _) = cookie.split_once('=').expect("a pair");
    let planted = format!("{name}=planted");
    for other in ["", "a=b", &planted] {
        for (place, words) in [(&url, "begun in another browser"), (&back, "begun in another browser")] {
            let (status, text, _) = get(place, other).await;
            assert_eq!((status, text.contains(words)), (403, true), "{other} {place}: {text}");
        }
    }
    let odd = back.replace("state=", "state=x");
    let doubled = format!("{back}&state=x");
    for wrong in [&odd, &doubled, &format!("{}/connect/callback/up", base(&gateway))] {
        let (status, text, _) = get(wrong, &cookie).await;
        assert_eq!((status, text.contains("This link is unknown")), (400, true), "{wrong}: {text}");
    }
    assert_eq!(guarded.identity.granted("authorization_code"), 0, "no code is used before the right browser brings it");
    assert_eq!(get(&url, &cookie).await.0, 200, "the same browser may look again");
    assert_eq!(get(&back, &cookie).await.0, 200);
    assert_eq!(get(&back, &cookie).await.0, 400, "it is good once");
    assert_eq!(guarded.identity.granted("authorization_code"), 1);
    assert_eq!(client.call("up__echo", "{}").await.text(), "{}");
}

#[tokio::test]
async fn what_comes_back_to_the_address_of_another_upstream_is_refused_and_its_code_goes_nowhere() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    // As of a server that does not say who it is: that alone would tell answers apart.
    guarded.identity.says("authorization_response_iss_parameter_supported", json!(false));
    guarded.identity.sends_back_as(Some(""));
    let gateway = guarded.serve("").await;
    let client = Client::connect_with(&gateway.reach(), MODERN, sent()).await;
    for elsewhere in ["other", "", "up/", "u"] {
        let (_, cookie, link) = open(&page_in(&client.request(echo()).await, MODERN).0).await;
        let back = sent_back(&link).await;
        let mixed_up = back.replace("/connect/callback/up?", &format!("/connect/callback/{elsewhere}?"));
        assert_ne!(mixed_up, back);
        let (status, text, _) = get(&mixed_up, &cookie).await;
        assert_eq!((status, text.contains("comes back to the address of another upstream")), (502, true), "{text}");
        assert_eq!(get(&back, &cookie).await.0, 400, "that login is over");
    }
    assert_eq!(guarded.identity.granted("authorization_code"), 0, "no code is shown to anybody");
    let (_, cookie, link) = open(&page_in(&client.request(echo()).await, MODERN).0).await;
    assert_eq!(get(&sent_back(&link).await, &cookie).await.0, 200, "to its own address it comes back as ever");
}

#[tokio::test]
async fn what_goes_wrong_is_said_in_words_for_a_person_and_the_next_call_gets_another_link() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let gateway = guarded.serve("").await;
    let client = Client::connect_with(&gateway.reach(), MODERN, sent()).await;
    let mut known = Vec::new();
    for (what, words) in [
        ("denied", "refuses the login, or it was cancelled there"),
        ("mixed up", "comes back from another authorization server"),
        ("down", "the token end point answers with HTTP 503"),
        ("gone", "nothing"),
    ] {
        let url = page_in(&client.request(echo()).await, MODERN).0;
        assert!(!known.contains(&url), "{what}");
        let identity = &guarded.identity;
        match what {
            "denied" => identity.denies("canary-words"),
            "mixed up" => {
                identity.denies_no_more();
                identity.sends_back_as(Some("http://127.0.0.1:1"));
            }
            "down" => {
                identity.sends_back_as(None);
                identity.refuses(Some(503));
            }
            _ => guarded.upstream.shows("/.well-known/oauth-protected-resource/mcp", 404, ""),
        }
        let (status, text) = match what {
            "gone" => {
                let (status, text, _) = get(&url, "").await;
                (status, text)
            }
            _ => {
                let (_, cookie, link) = open(&url).await;
                let (status, text, _) = get(&sent_back(&link).await, &cookie).await;
                (status, text)
            }
        };
        assert_eq!((status, text.contains("was not completed")), (502, true), "{what}: {text}");
        assert!(what == "gone" || text.contains(words), "{what}: {text}");
        assert!(!text.contains("canary"), "{what}: {text}");
        known.push(url);
    }
}

#[tokio::test]
async fn whoever_cannot_be_sent_or_shares_the_login_with_others_is_told_what_to_run() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let gateway = guarded.serve("").await;
    for desk in [Desk::closed(), Desk::closed().declaring("{\"elicitation\":{}}")] {
        let refusal = refused(&Client::connect_with(&gateway.reach(), MODERN, desk).await).await;
        assert!(refusal.contains("run `trunkline login up`") && !refusal.contains("/connect/"), "{refusal}");
    }
    let older = Client::connect_with(&gateway.reach(), Revision::R2025_06_18, sent()).await;
    assert!(refused(&older).await.contains("run `trunkline login up`"));
    // What one logs in to is for all: none of several is sent to a page.
    let token = |name: &str| format!("[[auth.tokens]]\nname = \"{name}\"\ntoken = \"{name}-has-a-long-token\"\n");
    let config = Config::new().upstream_with(&guarded.upstream, AUTH);
    let gateway = Gateway::serve(&config.section(&token("ada")).section(&token("bob"))).await;
    let client = Client::bearing_with(&gateway.reach(), MODERN, TOKEN, sent()).await;
    assert!(refused(&client).await.contains("run `trunkline login up`"));
    assert_eq!(guarded.identity.asked.mark(), 0);
}

#[tokio::test]
async fn a_call_that_the_login_does_not_allow_leads_to_a_page_that_asks_for_the_union() {
    for revision in [LEGACY, MODERN] {
        let guarded = Guarded::start(Way::Http, revision).await;
        guarded.guard.needs("tools/call", "mcp.admin");
        let gateway = guarded.serve("").await;
        logged_in(&gateway).await;
        let _up = up(&gateway, revision).await;
        let client = Client::connect_with(&gateway.reach(), revision, sent()).await;
        let answer = client.request(echo()).await;
        let (text, cookie, link) = open(&page_in(&answer, revision).0).await;
        assert!(text.contains("<code>mcp.read</code> <code>mcp.write</code> <code>mcp.admin</code>"), "{text}");
        assert_eq!(get(&sent_back(&link).await, &cookie).await.0, 200);
        assert_eq!(guarded.identity.last("GET /authorize")["scope"], "mcp.read mcp.write mcp.admin");
        let request = if revision.is_modern() { again(&echo(), &answer, ACCEPT) } else { echo() };
        assert_eq!(client.request(request).await.text(), "{\"a\":1}");
    }
}

#[tokio::test]
async fn each_principal_has_a_page_of_its_own_whose_login_becomes_its_own_and_ends_no_other() {
    for revision in [LEGACY, MODERN] {
        let guarded = Guarded::start(Way::Http, revision).await;
        // A call that needs a login never waits for the start of its upstream.
        let gateway = Gateway::serve(&two(&guarded, &format!("start_wait = \"1h\"\n{OWN}"))).await;
        let of = |name: &str| format!("{name}-has-a-long-token");
        let ada = Client::bearing_with(&gateway.reach(), revision, &of("ada"), sent()).await;
        let bob = Client::bearing_with(&gateway.reach(), revision, &of("bob"), sent()).await;
        let listening = match revision.is_modern() {
            true => None,
            false => Some((ada.listen(&[]).await, bob.listen(&[]).await)),
        };
        let (of_ada, of_bob) = (ada.request(echo()).await, bob.request(echo()).await);
        let page = |answer: &Answer, name: &str| {
            let run = format!("run `trunkline login up --as token:{name}`");
            assert!(revision.is_modern() || answer.error_value()["data"]["advice"] == *run, "{}", answer.error());
            page_or(answer, revision, &run)
        };
        let ((ada_page, _), (bob_page, bob_visit)) = (page(&of_ada, "ada"), page(&of_bob, "bob"));
        assert_ne!(ada_page, bob_page);
        let (text, in_ada, ada_link) = open(&ada_page).await;
        assert!(text.contains("It becomes the login of</dt><dd><code>token:ada</code>, and of nobody else"), "{text}");
        let (_, in_bob, bob_link) = open(&bob_page).await;
        let (ada_back, bob_back) = (sent_back(&ada_link).await, sent_back(&bob_link).await);
        for (place, cookie) in [(&ada_page, &in_bob), (&ada_back, &in_bob), (&bob_page, &in_ada), (&bob_back, &in_ada)]
        {
            let (status, text, _) = get(place, cookie).await;
            assert_eq!((status, text.contains("begun in another browser")), (403, true), "{text}");
        }
        assert_eq!(guarded.identity.granted("authorization_code"), 0);
        let mut waiting = match revision.is_modern() {
            true => Some(bob.start(again(&echo(), &of_bob, ACCEPT)).await),
            false => None,
        };
        let (status, text, _) = get(&ada_back, &in_ada).await;
        assert_eq!((status, text.contains(" for <code>token:ada</code>")), (200, true), "{text}");
        assert!(run(&gateway, &["check"]).await.contains("1 principal has logged in: token:ada"));
        // The other one is asked for its own login as before.
        assert_eq!(page(&bob.request(echo()).await, "bob").0, bob_page);
        if let Some(waiting) = &mut waiting {
            assert!(at_once(waiting).await.is_none(), "it waits for its own person");
        }
        assert_eq!(get(&bob_back, &in_bob).await.0, 200);
        if listening.is_some() {
            let text = |frame: &Frame| frame.params.as_ref().map(|params| params.get().to_owned()).unwrap_or_default();
            let told = |frame: &Frame| frame.is_notice(COMPLETE).then(|| text(frame));
            let told = bob.notices.wait("the client is told", told).await;
            let own = bob_visit.expect("its visit has a name");
            assert!(told.contains(&own), "of its own login alone: {told}");
        }
        let request = if revision.is_modern() { again(&echo(), &of_ada, ACCEPT) } else { echo() };
        assert_eq!(ada.request(request).await.text(), "{\"a\":1}");
        if let Some(waiting) = waiting {
            assert_eq!(waiting.answer().await.text(), "{\"a\":1}");
        }
        let whole = "upstream `up`: 2 principals have logged in: token:ada, token:bob";
        assert!(run(&gateway, &["check"]).await.contains(whole));
    }
}
