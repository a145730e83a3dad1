//! Pages of those that may not call any more, or not alone.

use trunkline_tests::client::{Client, Reach};
use trunkline_tests::gateway::{Config, Gateway, free_port};
use trunkline_tests::upstream::Way;
use trunkline_tests::within::until;

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
