//! What the protocol has a client do that logs in to upstreams: where it looks, what it asks for, what it shows to whom.

use serde_json::{Value, json};
use trunkline_tests::authority::Authority;
use trunkline_tests::client::{Client, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::identity::{Identity, VERSION};
use trunkline_tests::journal::What;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::{Upstream, Way};
use trunkline_tests::within::until;

use crate::logins::{Guarded, LEGACY, MODERN, RESOURCE, log_in, logged_in, said, up};

const OAUTH: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// What an authorization server says of itself that is called so, and whose end points are those of an identity provider.
fn server(issuer: &str, identity: &Identity) -> String {
    let at = |path: &str| format!("{}{path}", identity.url);
    json!({
        "issuer": issuer, "authorization_endpoint": at("/authorize"), "token_endpoint": at("/token"),
        "registration_endpoint": at("/register"), "code_challenge_methods_supported": ["S256"],
    })
    .to_string()
}

#[tokio::test]
async fn what_an_authorization_server_says_is_looked_for_in_each_place_and_what_speaks_for_another_one_is_passed_over()
{
    let with_path = [format!("{OAUTH}/t/1"), format!("{OPENID}/t/1"), format!("/t/1{OPENID}")];
    let without = [OAUTH.to_owned(), OPENID.to_owned()];
    for (issuer, places) in [("/t/1", &with_path[..]), ("", &without)] {
        for (at, place) in places.iter().enumerate() {
            let guarded = Guarded::start(Way::Http, MODERN).await;
            let decoy = Identity::start(&guarded.guard).await;
            let issuer = guarded.at(issuer);
            let document = json!({ "resource": guarded.at("/mcp"), "authorization_servers": [issuer] });
            guarded.upstream.shows(&format!("{RESOURCE}/mcp"), 200, &document.to_string());
            for (other, path) in places.iter().enumerate().filter(|(other, _)| *other != at) {
                match other < at {
                    true => guarded.upstream.shows(path, 200, &server(&decoy.url, &decoy)),
                    false => guarded.upstream.shows(path, 404, ""),
                }
            }
            guarded.upstream.shows(place, 200, &server(&issuer, &guarded.identity));
            guarded.identity.sends_back_as(Some(&issuer));
            let gateway = guarded.serve("").await;
            let (is_done, text) = said(&log_in(&gateway, &[]).await);
            assert!(is_done && text.contains(&format!("logged in to `up` at {issuer}")), "{place}: {text}");
            assert_eq!(decoy.asked.mark(), 0, "{place}");
        }
    }
}

#[tokio::test]
async fn documents_are_asked_for_in_a_revision_and_scopes_and_refresh_tokens_only_where_they_are_spoken_of() {
    for (offers, supported, expected, consents) in [
        (json!(["mcp.read", "offline_access"]), json!(["mcp.read"]), Some("mcp.read offline_access"), true),
        (json!(["mcp.read"]), json!(["mcp.read"]), Some("mcp.read"), false),
        (Value::Null, json!(["mcp.read"]), Some("mcp.read"), false),
        (json!(["mcp.read", "offline_access"]), Value::Null, None, false),
        (Value::Null, json!([]), None, false),
    ] {
        let guarded = Guarded::start(Way::Http, MODERN).await;
        guarded.identity.says("scopes_supported", offers);
        let issuers = [&guarded.identity.url];
        let document =
            json!({ "resource": guarded.at("/mcp"), "authorization_servers": issuers, "scopes_supported": supported });
        guarded.upstream.shows(&format!("{RESOURCE}/mcp"), 200, &document.to_string());
        let gateway = guarded.serve("").await;
        logged_in(&gateway).await;
        let asked = guarded.identity.last("GET /authorize");
        assert_eq!(asked.get("scope").map(String::as_str), expected, "{document}");
        assert_eq!(asked.get("prompt").is_some_and(|prompt| prompt == "consent"), consents, "{document}");
        let version = guarded.identity.last(&format!("GET {OAUTH}")).get(VERSION).cloned().unwrap_or_default();
        assert!(Revision::parse(&version).is_some(), "{version:?}");
    }
    // A challenge says all that is needed, whatever else there is, and whatever it is.
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let gateway = guarded.serve("").await;
    guarded.upstream.challenges("Bearer scope=\"of.nobody\"");
    logged_in(&gateway).await;
    assert_eq!(guarded.identity.last("GET /authorize")["scope"], "of.nobody");
}

#[tokio::test]
async fn with_another_authorization_server_the_gateway_is_another_client_and_shows_it_nothing_of_the_first() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let gateway = guarded.serve("").await;
    logged_in(&gateway).await;
    let client = up(&gateway, MODERN).await;
    client.call("up__echo", "{}").await.text();
    let other_guard = Authority::start().await;
    let other = Identity::start(&other_guard).await;
    guarded.upstream.shows(&format!("{RESOURCE}/mcp"), 200, &other.resource(&guarded.at("/mcp")));
    let before = guarded.identity.asked.mark();
    let (is_done, text) = said(&log_in(&gateway, &[]).await);
    assert!(is_done && text.contains(&format!("logged in to `up` at {}", other.url)), "{text}");
    let kinds: Vec<_> = other.asked.all().into_iter().map(|(what, _)| what).collect();
    let expected = [format!("GET {OAUTH}"), "POST /register".into(), "GET /authorize".into(), "POST /token".into()];
    assert_eq!(kinds, expected, "it has registered there anew");
    let all = format!("{:?}", other.asked.all());
    for of_first in ["canary-access", "canary-refresh", &guarded.identity.url] {
        assert!(!all.contains(of_first), "{of_first}: {all}");
    }
    assert_eq!(guarded.identity.asked.mark(), before, "nor is the first one told of the other");
    // One that is configured for an authorization server is shown to no other.
    let auth = format!(
        "auth = {{ type = \"oauth\", client_id = \"mine\", client_secret = \"canary-secret\", issuer = \"{}\" }}",
        guarded.identity.url
    );
    gateway.configure(&Config::new().upstream_with(&guarded.upstream, &auth));
    let mark = other.asked.mark();
    let (is_done, text) = said(&log_in(&gateway, &[]).await);
    assert!(!is_done && text.contains("names another authorization server than the `issuer`"), "{text}");
    assert_eq!((other.asked.mark(), guarded.identity.asked.mark()), (mark, before), "nobody is asked anything");
}

#[tokio::test]
async fn a_token_stands_in_the_header_of_every_request_to_its_upstream_and_in_no_address() {
    for (way, revision) in [(Way::Http, LEGACY), (Way::Http, MODERN), (Way::Sse, LEGACY), (Way::WebSocket, LEGACY)] {
        let authority = Authority::start().await;
        let upstream = Upstream::start(way, Script::new("up", revision)).await;
        upstream.guarded_by(&authority);
        let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, &authority.keys(""))).await;
        let client = up(&gateway, revision).await;
        client.call("up__echo", "{\"nonce\":\"n\"}").await.text();
        upstream.ran("n").await;
        let judged = authority.judged.all();
        assert!(judged.iter().any(|(_, token, is_good)| *is_good && token == "canary-token-1"), "{way:?}: {judged:?}");
        assert!(judged.iter().all(|(_, token, _)| token == "canary-token-1"), "{way:?}: {judged:?}");
        for event in upstream.seen().await {
            let (raw, headers) = match event.what {
                What::Frame { raw, headers } => (raw, headers),
                What::Visit { headers, .. } => (String::new(), headers),
                _ => continue,
            };
            let others = headers.iter().filter(|(name, _)| name != "authorization");
            assert!(others.into_iter().all(|(_, value)| !value.contains("canary")), "{way:?}: {headers:?}");
            assert!(!raw.contains("canary"), "{way:?}: {raw}");
        }
        assert!(upstream.queries().iter().all(|query| !query.contains("canary")), "{way:?}: {:?}", upstream.queries());
    }
}

#[tokio::test]
async fn a_client_of_its_own_that_is_allowed_too_little_asks_for_nothing_again() {
    for revision in [LEGACY, MODERN] {
        let authority = Authority::start().await;
        let upstream = Upstream::http(Script::new("up", revision)).await;
        upstream.guarded_by(&authority);
        authority.needs("tools/call", "canary.admin");
        let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, &authority.keys(""))).await;
        let client = up(&gateway, revision).await;
        for _ in 0..5 {
            let why = client.call_once("up__echo", "{}").await.message();
            assert!(why.contains("HTTP 403") && !why.contains("canary"), "{why}");
        }
        assert_eq!((authority.asked.mark(), upstream.executed().await.len()), (1, 0));
    }
}

#[tokio::test]
async fn what_an_upstream_says_to_the_gateway_of_tokens_is_said_to_no_client_as_if_the_gateway_asked_for_one() {
    for of_upstream in [LEGACY, MODERN] {
        let guarded = Guarded::start(Way::Http, of_upstream).await;
        let gateway = guarded.serve("").await;
        logged_in(&gateway).await;
        let _up = up(&gateway, of_upstream).await;
        guarded.upstream.challenges("Bearer resource_metadata=\"https://canary.example/x\", scope=\"canary\"");
        guarded.guard.closes("tools/call", true);
        for revision in Revision::ALL {
            let client = Client::connect(&gateway.reach(), revision).await;
            let judged = guarded.guard.judged.mark();
            let answer = client.request(tool("up__echo", "{}")).await;
            assert!(guarded.guard.judged.mark() > judged, "{revision}: the upstream was asked");
            let all = format!("{answer:?}");
            assert!(all.contains("run `trunkline login up`"), "{revision}: {all}");
            assert_eq!((answer.status, answer.header("www-authenticate")), (200, None), "{revision}: {all}");
            assert!(!all.contains("canary") && !all.to_lowercase().contains("www-authenticate"), "{revision}: {all}");
        }
        assert!(guarded.upstream.executed().await.is_empty());
    }
}

#[tokio::test]
async fn no_token_of_a_client_comes_to_any_upstream_whatever_both_speak_and_however_they_are_reached() {
    use trunkline_tests::issuer::Issuer;
    const STATIC: &str = "canary-of-the-file-that-is-long";
    let issuer = Issuer::start().await;
    let signed = issuer.token("https://mcp.example.com/mcp", "canary", "");
    let parts: Vec<&str> = signed.split('.').collect();
    for (way, of_upstream) in [
        (Way::Stdio, LEGACY),
        (Way::Stdio, MODERN),
        (Way::Http, LEGACY),
        (Way::Http, MODERN),
        (Way::Sse, LEGACY),
        (Way::WebSocket, LEGACY),
    ] {
        let upstream = Upstream::start(way, Script::new("up", of_upstream)).await;
        let sections = format!("[[auth.tokens]]\nname = \"ci\"\ntoken = \"{STATIC}\"\n{}", issuer.entry(""));
        let config = Config::new().upstream(&upstream).server("public_url = \"https://mcp.example.com\"");
        let gateway = Gateway::serve(&config.section(&sections)).await;
        for token in [STATIC, &signed] {
            for revision in Revision::ALL {
                let client = Client::bearing(&gateway.reach(), revision, token).await;
                client.tools_until("it is there", |tools| tools.contains(&"up__echo".into())).await;
                client.call("up__echo", "{\"nonce\":\"n\"}").await.text();
                for list in ["prompts/list", "resources/list"] {
                    client.list(list, list.split('/').next().expect("a word"), "name").await;
                }
            }
        }
        until("all calls have run", || async { (upstream.executed().await.len() >= 10).then_some(()) }).await;
        let seen = format!("{:?} {:?}", upstream.seen().await, upstream.queries());
        for part in parts.iter().copied().chain([&*signed, STATIC]) {
            assert!(!seen.contains(part), "{way:?} {of_upstream}: {part}");
        }
    }
}
