//! What an upstream, an authorization server or another program may try while a person logs in; decoys count who comes to them.

use serde_json::{Value, json};
use trunkline_tests::client::http::exchange;
use trunkline_tests::gateway::{Config, Gateway, free_port};
use trunkline_tests::identity::Identity;
use trunkline_tests::revision::Revision;
use trunkline_tests::upstream::Way;
use trunkline_tests::within::until;

use crate::logins::{Guarded, RESOURCE, log_in, said};

/// A guarded upstream, the gateway before it, and a decoy that nobody may come to.
async fn all() -> (Guarded, Gateway, std::sync::Arc<Identity>) {
    let guarded = Guarded::start(Way::Http, Revision::MODERN).await;
    let gateway = guarded.serve("").await;
    let decoy = Identity::start(&guarded.guard).await;
    (guarded, gateway, decoy)
}

/// A login fails with these words; nobody was given a code or a token.
async fn fails(guarded: &Guarded, gateway: &Gateway, words: &str) {
    let before = guarded.identity.granted("authorization_code");
    let (is_done, text) = said(&log_in(gateway, &[]).await);
    assert!(!is_done && text.contains(words), "{words}: {text}");
    assert!(!text.contains("canary"), "{text}");
    assert_eq!(guarded.identity.granted("authorization_code"), before, "{words}");
    let kept = std::fs::read_dir(gateway.state().join("logins")).expect("a folder");
    let is_lock = |file: std::io::Result<std::fs::DirEntry>| {
        file.expect("a file").file_name().to_string_lossy().ends_with(".lock")
    };
    assert!(kept.into_iter().all(is_lock), "{words}: nothing is kept");
}

#[tokio::test]
async fn what_an_upstream_says_of_itself_is_read_at_its_own_origin_alone_and_no_redirect_is_followed() {
    let (guarded, gateway, decoy) = all().await;
    let elsewhere = format!("{}/.well-known/oauth-authorization-server", decoy.url);
    for path in ["/mcp", ""] {
        guarded.upstream.shows(&format!("{RESOURCE}{path}"), 404, "");
    }
    for url in
        [&elsewhere, "http://169.254.169.254/latest", "file:///etc/passwd", "https://[::1]/x", "http://0x7f.1:1/x"]
    {
        guarded.upstream.challenges(&format!("Bearer resource_metadata=\"{url}\""));
        fails(&guarded, &gateway, "says at another origin what it is").await;
    }
    guarded.upstream.challenges("Bearer");
    guarded.upstream.shows(&format!("{RESOURCE}/mcp"), 302, &elsewhere);
    fails(&guarded, &gateway, "says neither which authorization server it believes").await;
    assert_eq!(decoy.asked.mark(), 0);
    // Where the right document lies at its place, the wrong hint does no harm.
    guarded.upstream.challenges(&format!("Bearer resource_metadata=\"{elsewhere}\""));
    guarded.upstream.shows(&format!("{RESOURCE}/mcp"), 200, &guarded.identity.resource(&guarded.at("/mcp")));
    let (is_done, text) = said(&log_in(&gateway, &[]).await);
    assert!(is_done && decoy.asked.mark() == 0, "{text}");
}

#[tokio::test]
async fn a_token_for_another_resource_is_asked_for_nowhere() {
    let (guarded, gateway, decoy) = all().await;
    for resource in [
        "https://mcp.example/mcp".to_owned(),
        format!("{}/mcp", decoy.url),
        guarded.at("/other"),
        guarded.at("/mcp/more"),
        guarded.at("/mcp").replace("127.0.0.1", "127.0.0.1.evil.example"),
    ] {
        guarded.upstream.shows(&format!("{RESOURCE}/mcp"), 200, &guarded.identity.resource(&resource));
        fails(&guarded, &gateway, "says that it is another resource").await;
    }
    assert_eq!((guarded.identity.asked.mark(), decoy.asked.mark()), (0, 0));
}

#[tokio::test]
async fn an_authorization_server_that_speaks_for_another_one_or_does_not_protect_codes_is_not_used() {
    let (guarded, gateway, decoy) = all().await;
    for (key, value, words) in [
        ("issuer", json!(decoy.url), "says that it is another one"),
        ("issuer", Value::Null, "says nothing of itself; asked were `http://127.0.0.1"),
        ("code_challenge_methods_supported", json!(["plain"]), "does not protect codes by PKCE"),
        ("code_challenge_methods_supported", json!([]), "does not protect codes by PKCE"),
        ("authorization_endpoint", json!("javascript:alert(1)"), "is not asked"),
        ("authorization_endpoint", json!("file:///etc/passwd"), "is not asked"),
        ("authorization_endpoint", json!("http://as.example/authorize"), "does not begin with https://"),
        ("registration_endpoint", json!("http://10.0.0.1/register"), "does not begin with https://"),
        ("registration_endpoint", json!("https://169.254.169.254/register"), "into a network of one's own"),
        ("registration_endpoint", Value::Null, "registers no clients by itself"),
    ] {
        let good =
            exchange(&format!("{}/.well-known/oauth-authorization-server", guarded.identity.url), "GET", &[], "").await;
        let good: Value = serde_json::from_slice(&good.body).expect("JSON");
        guarded.identity.says(key, value);
        fails(&guarded, &gateway, words).await;
        guarded.identity.says(key, good[key].clone());
    }
    assert_eq!(decoy.asked.mark(), 0);
    // What is a thousand times too large, or nested without an end, is nothing.
    let mut large: Value = serde_json::from_str(&guarded.identity.resource(&guarded.at("/mcp"))).expect("JSON");
    large["x"] = json!("x".repeat(1 << 20));
    for (bomb, why) in
        [("[".repeat(100_000), "is no JSON document of its kind"), (large.to_string(), "has more than 1 MiB")]
    {
        guarded.upstream.shows(&format!("{RESOURCE}/mcp"), 200, &bomb);
        fails(&guarded, &gateway, "says neither which authorization server it believes").await;
        fails(&guarded, &gateway, &format!("{RESOURCE}/mcp` {why}")).await;
    }
    // So it is with what an authorization server says.
    let own = format!("http://{}", guarded.upstream.address());
    guarded.upstream.shows("/.well-known/oauth-authorization-server", 200, "<html>");
    let keys = format!("auth = {{ type = \"oauth\", issuer = \"{own}\" }}");
    guarded.upstream.shows(&format!("{RESOURCE}/mcp"), 404, "");
    gateway.configure(&Config::new().upstream_with(&guarded.upstream, &keys));
    fails(&guarded, &gateway, "says nothing of itself that can be read: the document at `http://127.0.0.1").await;
}

#[tokio::test]
async fn a_page_of_another_server_than_the_one_that_takes_the_code_is_told_before_anybody_follows_it() {
    let (guarded, gateway, decoy) = all().await;
    guarded.identity.says("authorization_endpoint", json!(format!("{}/authorize", decoy.url)));
    let (is_done, text) = said(&log_in(&gateway, &[]).await);
    assert!(!is_done, "a code of another server is good for nothing: {text}");
    let told =
        format!("the page to log in at is on {}, and its code goes to {}: follow", decoy.url, guarded.identity.url);
    assert!(text.contains(&told) && text.find(&told) < text.find("follow this link"), "{text}");
}

#[tokio::test]
async fn all_authorization_servers_that_an_upstream_names_are_tried_in_order() {
    let (guarded, gateway, decoy) = all().await;
    decoy.says("registration_endpoint", Value::Null);
    let closed = format!("http://127.0.0.1:{}", free_port());
    let names = |issuers: &[&str]| {
        let document = json!({ "resource": guarded.at("/mcp"), "authorization_servers": issuers });
        guarded.upstream.shows(&format!("{RESOURCE}/mcp"), 200, &document.to_string());
    };
    names(&[&closed, "https://169.254.169.254", &decoy.url]);
    fails(&guarded, &gateway, "is not reached").await;
    fails(&guarded, &gateway, "into a network of one's own").await;
    fails(&guarded, &gateway, "registers no clients by itself").await;
    names(&[&closed, "https://169.254.169.254", &decoy.url, &guarded.identity.url]);
    let (is_done, text) = said(&log_in(&gateway, &[]).await);
    assert!(is_done && text.contains(&format!("logged in to `up` at {}", guarded.identity.url)), "{text}");
    assert_eq!(decoy.granted("authorization_code"), 0);
}

#[tokio::test]
async fn a_login_that_could_not_be_kept_begins_in_no_browser_and_the_file_is_named() {
    let (guarded, gateway, _) = all().await;
    let (key, folder) = (gateway.state().join("signing-key"), gateway.state().join("logins"));
    // At its start, the gateway would set an unusable file aside.
    until("the gateway has its key", async || key.exists().then_some(())).await;
    std::fs::write(&key, "k".repeat(43)).expect("it can be written");
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("it is ours");
    let (is_done, text) = said(&log_in(&gateway, &[]).await);
    assert!(!is_done && text.contains(&format!("the key that seals it, {}", key.display())), "{text}");
    std::fs::remove_file(&key).expect("it is there");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("it is ours");
    }
    std::fs::write(&folder, "in the way").expect("it can be written");
    let (is_done, text) = said(&log_in(&gateway, &[]).await);
    assert!(!is_done && text.contains(&folder.display().to_string()), "{text}");
    assert_eq!(guarded.identity.asked.mark(), 0, "nobody is asked anything");
    // Nor does one for a name that is switched off, or is none.
    let keys = "enabled = false\nauth = { type = \"oauth\" }";
    gateway.configure(&Config::new().upstream_with(&guarded.upstream, keys));
    let (is_done, text) = said(&log_in(&gateway, &[]).await);
    assert!(!is_done && text.contains("`up` is disabled: set `enabled = true` in [upstreams.up] first"), "{text}");
}

#[tokio::test]
async fn what_the_browser_brings_back_counts_only_from_the_server_that_was_asked() {
    let (guarded, gateway, decoy) = all().await;
    guarded.identity.sends_back_as(Some(&decoy.url));
    fails(&guarded, &gateway, "comes back from another authorization server").await;
    guarded.identity.sends_back_as(Some(&format!("{}/", guarded.identity.url)));
    fails(&guarded, &gateway, "comes back from another authorization server").await;
    guarded.identity.sends_back_as(Some(""));
    fails(&guarded, &gateway, "without the name of the authorization server").await;
    guarded.identity.sends_back_as(None);
    guarded.identity.denies("not%20you%1B%5B2J");
    let words = "refuses the login, or it was cancelled there: `access_denied`: `not you\\u{1b}[2J`";
    fails(&guarded, &gateway, words).await;
    assert_eq!(decoy.asked.mark(), 0);
}

#[tokio::test]
async fn an_upstream_names_authorization_servers_within_the_rules_and_a_configured_one_is_the_only_one() {
    let (guarded, gateway, _) = all().await;
    // An upstream on this machine may name what is on this machine, and no other.
    let name = |issuer: &str| json!({ "resource": guarded.at("/mcp"), "authorization_servers": [issuer] }).to_string();
    for issuer in ["http://as.example", "https://169.254.169.254", "ftp://127.0.0.1", "https://me@127.0.0.1"] {
        guarded.upstream.shows(&format!("{RESOURCE}/mcp"), 200, &name(issuer));
        fails(&guarded, &gateway, "is not asked").await;
    }
    guarded.upstream.shows(&format!("{RESOURCE}/mcp"), 200, &name(&guarded.identity.url));
    // Another authorization server than the configured one is not taken.
    let keys = "auth = { type = \"oauth\", issuer = \"https://login.example\" }";
    gateway.configure(&Config::new().upstream_with(&guarded.upstream, keys));
    fails(&guarded, &gateway, "names another authorization server than the `issuer`").await;
    let keys = format!("auth = {{ type = \"oauth\", issuer = \"{}\" }}", guarded.identity.url);
    gateway.configure(&Config::new().upstream_with(&guarded.upstream, &keys));
    let (is_done, text) = said(&log_in(&gateway, &[]).await);
    assert!(is_done, "{text}");
}
