//! A login in place of another one: of another account it has sessions and lists of its own, and no call is lost on the way.

use std::collections::BTreeMap;

use trunkline_tests::client::{Client, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::{Order, What};
use trunkline_tests::upstream::Way;
use trunkline_tests::within::until;

use super::{AUTH, Guarded, LEGACY, MODERN, log_in, logged_in, said, up};
use crate::logins::own::{OWN, two};

/// So many calls come while the sessions change.
const CALLS: usize = 20;

/// The tokens of the requests of this kind, in order, from a mark on.
fn borne(guarded: &Guarded, mark: usize, what: &str) -> Vec<String> {
    let judged = guarded.guard.judged.all().into_iter().skip(mark);
    judged.filter_map(|(kind, token, _)| (kind == what).then_some(token)).collect()
}

/// A call is under way, another account logs in, more calls come: which token each has borne.
async fn changed(guarded: &Guarded, gateway: &Gateway, client: &Client, login: &[&str]) {
    let before = borne(guarded, 0, "tools/list").pop().expect("its lists were read");
    let (mark, first) = (guarded.guard.judged.mark(), guarded.identity.login_of(&before));
    let running = client.start(tool("up__wait", "{\"gate\":\"g\"}")).await;
    guarded.upstream.waiting_at("g").await;
    let (is_done, text) = said(&log_in(gateway, login).await);
    assert!(is_done, "{text}");
    gateway.look_until("/readyz?verbose", "it waits", |page| page.contains("1 running calls have 5 s")).await;
    let mut waiting = Vec::new();
    for number in 0..CALLS {
        waiting.push(client.start(tool("up__echo", &format!("{{\"nonce\":\"n{number}\"}}"))).await);
    }
    guarded.upstream.order(Order::Open("g".into())).await;
    assert_eq!(running.answer().await.text(), "released", "it ends as it began");
    for (number, call) in waiting.into_iter().enumerate() {
        assert_eq!(call.answer().await.text(), format!("{{\"nonce\":\"n{number}\"}}"), "it waited");
    }
    let calls = borne(guarded, mark, "tools/call");
    assert_eq!((calls.len(), &calls[0]), (1 + CALLS, &before), "none is sent twice: {calls:?}");
    let other = guarded.identity.login_of(&calls[1]);
    assert!(other.is_some() && other != first && calls[1..].iter().all(|token| *token == calls[1]), "{calls:?}");
    let mut ran = BTreeMap::<String, usize>::new();
    guarded.upstream.executed().await.into_iter().for_each(|nonce| *ran.entry(nonce).or_default() += 1);
    assert!((0..CALLS).all(|number| ran.get(&format!("n{number}")) == Some(&1)), "{ran:?}");
    let judged = guarded.guard.judged.all();
    let first = |what: &str| judged.iter().position(|(kind, token, _)| kind == what && *token == calls[1]);
    assert!(
        first("tools/list").is_some_and(|list| Some(list) < first("tools/call")),
        "its lists are read before: {judged:?}"
    );
    // No session has tokens of both.
    let mut of_sessions = BTreeMap::<String, Vec<Option<usize>>>::new();
    for event in guarded.upstream.seen().await {
        let (What::Frame { headers, .. } | What::Visit { headers, .. }) = event.what else { continue };
        let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        if let (Some(session), Some(token)) = (header("mcp-session-id"), header("authorization")) {
            let all = of_sessions.entry(session).or_default();
            all.push(guarded.identity.login_of(token.trim_start_matches("Bearer ")));
            all.dedup();
        }
    }
    assert!(of_sessions.values().all(|logins| logins.len() == 1), "{of_sessions:?}");
}

#[tokio::test]
async fn another_account_has_sessions_and_lists_of_its_own_and_calls_wait_for_them() {
    for revision in [LEGACY, MODERN] {
        let guarded = Guarded::start(Way::Http, revision).await;
        let gateway = guarded.serve("").await;
        logged_in(&gateway).await;
        let client = up(&gateway, revision).await;
        changed(&guarded, &gateway, &client, &[]).await;
    }
}

#[tokio::test]
async fn so_it_is_for_the_login_of_one_principal_and_another_one_notices_nothing() {
    let guarded = Guarded::start(Way::Http, LEGACY).await;
    let gateway = Gateway::serve(&two(&guarded, OWN)).await;
    let mut clients = Vec::new();
    for name in ["bob", "ada"] {
        let (is_done, text) = said(&log_in(&gateway, &["--as", name]).await);
        assert!(is_done, "{text}");
        let client = Client::bearing(&gateway.reach(), LEGACY, &format!("{name}-has-a-long-token")).await;
        client.tools_until("they are read", |tools| tools.contains(&"up__echo".into())).await;
        clients.push(client);
    }
    let bob = async || assert_eq!(clients[0].call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    bob().await;
    let greetings = || guarded.upstream.frames_with("\"initialize\"");
    let before = greetings();
    changed(&guarded, &gateway, &clients[1], &["--as", "ada"]).await;
    let after = greetings();
    bob().await;
    assert!(before < after && after == greetings(), "the session of the other one stands");
}

#[tokio::test]
async fn a_call_that_runs_on_and_on_holds_up_the_next_account_for_five_seconds_and_is_told_why() {
    let guarded = Guarded::start(Way::Http, LEGACY).await;
    let gateway = guarded.serve("").await;
    logged_in(&gateway).await;
    let client = up(&gateway, LEGACY).await;
    let running = client.start(tool("up__wait", "{\"gate\":\"never\"}")).await;
    guarded.upstream.waiting_at("never").await;
    logged_in(&gateway).await;
    gateway.look_until("/readyz?verbose", "it waits", |page| page.contains("1 running calls have 5 s")).await;
    assert_eq!(client.call_once("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    let why = running.answer().await.message();
    assert!(why.contains("another login was made"), "{why}");
}

#[tokio::test]
async fn the_same_account_and_a_refresh_go_on_in_the_sessions_that_are_open() {
    let guarded = Guarded::start(Way::Http, LEGACY).await;
    guarded.identity.names(Some("ada"));
    let gateway = Gateway::serve(&Config::new().upstream_with(&guarded.upstream, AUTH)).await;
    logged_in(&gateway).await;
    let client = up(&gateway, LEGACY).await;
    let greetings = || guarded.upstream.frames_with("\"initialize\"");
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    let before = greetings();
    guarded.guard.revoke();
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    assert_eq!((guarded.identity.granted("refresh_token"), greetings()), (1, before), "a refresh is no login");
    logged_in(&gateway).await;
    until("the next login is used", || async {
        let mark = guarded.guard.judged.mark();
        assert_eq!(client.call_once("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        let borne = borne(&guarded, mark, "tools/call");
        (guarded.identity.login_of(&borne[0]) == Some(1)).then_some(())
    })
    .await;
    assert_eq!(greetings(), before, "the account is the same");
    guarded.identity.names(Some("bob"));
    logged_in(&gateway).await;
    until("the next account has a session", || async {
        assert_eq!(client.call_once("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        (greetings() > before).then_some(())
    })
    .await;
}
