//! Pages of those that may not call any more, or not alone.

use trunkline_tests::client::{Client, Reach};
use trunkline_tests::gateway::{Config, Gateway, free_port};
use trunkline_tests::upstream::Way;
use trunkline_tests::within::{until, within};

use super::{TOKEN, echo, get, open, page_in, sent, sent_back};
use crate::logins::{AUTH, Guarded, MODERN, refused};

fn token(name: &str) -> String {
    format!("[[auth.tokens]]\nname = \"{name}\"\ntoken = \"{name}-has-a-long-token\"\n")
}

#[tokio::test]
async fn a_listener_without_tokens_lets_somebody_else_in_so_that_nobody_is_sent_to_a_page_for_all() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let address = format!("127.0.0.1:{}", free_port());
    let other = format!("[[server.listeners]]\naddress = \"{address}\"\ntokens = []\n");
    let of = |more: &str| {
        let config = Config::new().listed("tokens = [\"ada\"]").section(more).section(&token("ada"));
        config.upstream_with(&guarded.upstream, AUTH)
    };
    let gateway = Gateway::serve(&of(&other)).await;
    let ada = Client::bearing_with(&gateway.reach(), MODERN, TOKEN, sent()).await;
    let anybody = Client::connect_with(&Reach::Url(format!("http://{address}/mcp")), MODERN, sent()).await;
    for client in [&ada, &anybody] {
        let refusal = refused(client).await;
        assert!(refusal.contains("run `trunkline login up`") && !refusal.contains("/connect/"), "{refusal}");
    }
    // To the next start that listener is there, whatever the file says.
    gateway.configure(&of(""));
    let waits = |page: &str| page.contains("takes effect at the next start: [[server.listeners]]");
    gateway.look_until("/readyz?verbose", "that it waits for a start", waits).await;
    assert!(refused(&ada).await.contains("run `trunkline login up`"));
    assert_eq!(guarded.identity.asked.mark(), 0);
}

#[tokio::test]
async fn pages_end_with_the_reload_after_which_they_would_not_be_told() {
    for is_removed in [true, false] {
        let guarded = Guarded::start(Way::Http, MODERN).await;
        let of = |tokens: &[&str]| {
            let config = Config::new().upstream_with(&guarded.upstream, AUTH);
            tokens.iter().fold(config, |config, name| config.section(&token(name)))
        };
        let gateway = Gateway::serve(&of(&["ada"])).await;
        let client = Client::bearing_with(&gateway.reach(), MODERN, TOKEN, sent()).await;
        let url = page_in(&client.request(echo()).await, MODERN).0;
        let (_, cookie, link) = open(&url).await;
        let back = sent_back(&link).await;
        gateway.configure(&of(if is_removed { &["bob"] } else { &["ada", "bob"] }));
        until("the page ends", || async { (get(&url, &cookie).await.0 == 404).then_some(()) }).await;
        let (status, text, _) = get(&back, &cookie).await;
        assert_eq!((status, text.contains("This link is unknown")), (400, true), "{text}");
        assert_eq!(guarded.identity.granted("authorization_code"), 0, "its code goes nowhere");
        let bob = Client::bearing_with(&gateway.reach(), MODERN, "bob-has-a-long-token", sent()).await;
        if is_removed {
            let (_, cookie, link) = open(&page_in(&bob.request(echo()).await, MODERN).0).await;
            assert_eq!(get(&sent_back(&link).await, &cookie).await.0, 200, "whoever is alone then has pages");
        } else {
            assert!(refused(&bob).await.contains("run `trunkline login up`"));
        }
    }
}

#[tokio::test]
async fn a_login_that_is_under_way_when_its_upstream_goes_or_leads_elsewhere_is_not_finished() {
    for is_removed in [false, true] {
        let (old, new) = (Guarded::start(Way::Http, MODERN).await, Guarded::start(Way::Http, MODERN).await);
        let of = |guarded: &Guarded| Config::new().upstream_with(&guarded.upstream, AUTH);
        let next = || if is_removed { Config::new() } else { of(&new) };
        let gateway = Gateway::serve(&of(&old)).await;
        let client = Client::connect_with(&gateway.reach(), MODERN, sent()).await;
        // Its person is still at the authorization server.
        let url = page_in(&client.request(echo()).await, MODERN).0;
        let (_, cookie, link) = open(&url).await;
        let back = sent_back(&link).await;
        into_force(&gateway, &next()).await;
        until("the page ends", || async { (get(&url, &cookie).await.0 == 404).then_some(()) }).await;
        let (status, text, _) = get(&back, &cookie).await;
        assert_eq!((status, text.contains("This link is unknown")), (400, true), "{text}");
        assert_eq!(old.identity.granted("authorization_code"), 0, "its code goes nowhere");
        // Its code is shown at the token end point already.
        into_force(&gateway, &of(&old)).await;
        let url = page_in(&client.request(echo()).await, MODERN).0;
        let (_, cookie, link) = open(&url).await;
        let back = sent_back(&link).await;
        old.identity.hold(true);
        let finishing = get(&back, &cookie);
        let changing = async {
            old.identity.asked.wait("the code is shown", |(what, _)| (what == "POST /token").then_some(())).await;
            into_force(&gateway, &next()).await;
            until("the page ends", || async { (get(&url, &cookie).await.0 == 404).then_some(()) }).await;
            old.identity.hold(false);
        };
        let ((status, text, _), ()) = tokio::join!(finishing, changing);
        assert_eq!((status, text.contains("the upstream was removed or leads elsewhere")), (502, true), "{text}");
        let kept = std::fs::read_dir(gateway.state().join("logins")).expect("a folder");
        let kept = kept.filter(|file| file.as_ref().is_ok_and(|file| file.path().extension().is_none())).count();
        assert_eq!((kept, new.identity.granted("authorization_code")), (0, 0), "no login is kept");
    }
}

/// Has the gateway run by another configuration.
async fn into_force(gateway: &Gateway, config: &Config) {
    gateway.configure(config);
    let reload = within("it is taken", gateway.command(&["reload"]).output()).await.expect("it runs");
    assert!(reload.status.success(), "{reload:?}");
}
