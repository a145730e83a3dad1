//! Logins that are sealed with a key of the system's keyring, by a program that was built with it.

use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::upstream::Way;
use trunkline_tests::within::within;

use super::{AUTH, Guarded, MODERN, logged_in, said, up};

async fn check(gateway: &Gateway) -> (bool, String) {
    said(&within("it answers", gateway.command(&["check"]).output()).await.expect("it runs"))
}

#[tokio::test]
async fn a_login_is_sealed_with_a_key_of_the_systems_keyring_or_it_is_said_why_not() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let config = |is_wanted: bool| {
        Config::new().upstream_with(&guarded.upstream, AUTH).server(&format!("keyring = {is_wanted}"))
    };
    let mut gateway = Gateway::serve(&config(false)).await;
    gateway.configure(&config(true));
    let (is_good, text) = check(&gateway).await;
    if !is_good {
        // A build without it, or a machine without one: nothing is kept otherwise in silence.
        let why = ["build it with `--features keyring`", "there is none that answers"];
        assert!(why.iter().any(|why| text.contains(why)) && text.contains("`server.keyring`"), "{text}");
        assert!(std::env::var_os("TRUNKLINE_KEYRING").is_none(), "there is one: {text}");
        return;
    }
    gateway.restart(&config(true)).await;
    logged_in(&gateway).await;
    up(&gateway, MODERN).await.call("up__echo", "{}").await.text();
    gateway.configure(&config(false));
    gateway.restart(&config(false)).await;
    gateway.look_until("/readyz?verbose", "no file opens it", |page| page.contains("another key")).await;
    gateway.configure(&config(true));
    gateway.restart(&config(true)).await;
    up(&gateway, MODERN).await.call("up__echo", "{}").await.text();
}
