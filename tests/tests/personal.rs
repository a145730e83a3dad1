//! Upstreams that each principal logs in to for itself: its tools, its token and its session are its own.

use std::collections::BTreeSet;

use trunkline_tests::client::{Client, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::Order;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Way;
use trunkline_tests::within::{all, until, within};

use crate::logins::{Guarded, LEGACY, MODERN, log_in, said};

const AUTH: &str = "auth = { type = \"oauth\", logins = \"per-principal\" }";
const ADA: &str = "ada-has-a-long-token";
const BOB: &str = "bob-has-a-long-token";
/// What one is offered who has yet to log in.
const LOGIN: &str = "up__trunkline_login";

/// A gateway of two principals before an upstream that wants a login.
async fn serve(guarded: &Guarded, more: &str) -> Gateway {
    let tokens = [("ada", ADA), ("bob", BOB)];
    let tokens = tokens.map(|(name, token)| format!("[[auth.tokens]]\nname = \"{name}\"\ntoken = \"{token}\"\n"));
    let config = Config::new().upstream_with(&guarded.upstream, &format!("{AUTH}\n{more}"));
    Gateway::serve(&config.section(&tokens.concat())).await
}

async fn come(gateway: &Gateway, revision: Revision, token: &str) -> Client {
    Client::bearing(&gateway.reach(), revision, token).await
}

/// Logs in on behalf of a principal, as a person does who has the gateway's machine.
async fn logged_in(gateway: &Gateway, principal: &str) {
    let (is_done, text) = said(&log_in(gateway, &["--as", principal]).await);
    assert!(is_done && text.contains("logged in to `up`"), "{text}");
}

/// The tokens that the upstream was shown with calls.
fn shown(guarded: &Guarded) -> Vec<String> {
    let of_call = |(kind, token, _): (String, String, bool)| (kind == "tools/call").then_some(token);
    guarded.guard.judged.all().into_iter().filter_map(of_call).collect()
}

#[tokio::test]
async fn a_principal_is_offered_a_login_until_it_has_one_and_then_what_is_there_for_it_alone() {
    for revision in [LEGACY, MODERN] {
        let guarded = Guarded::start(Way::Http, revision).await;
        let gateway = serve(&guarded, "").await;
        let (ada, bob) = (come(&gateway, revision, ADA).await, come(&gateway, revision, BOB).await);
        for client in [&ada, &bob] {
            assert_eq!(client.tools().await, [LOGIN], "{revision}");
        }
        assert_eq!((guarded.guard.judged.mark(), guarded.identity.asked.mark()), (0, 0), "nobody is asked anything");
        let refused = ada.call_once(LOGIN, "{}").await.text();
        assert!(refused.contains("needs login; run `trunkline login up --as token:ada`"), "{refused}");
        logged_in(&gateway, "token:ada").await;
        ada.tools_until("they are read with its login", |tools| tools.contains(&"up__echo".into())).await;
        assert_eq!(ada.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        assert!(ada.call_once(LOGIN, "{}").await.text().contains("You are logged in to `up`"));
        assert_eq!(bob.tools().await, [LOGIN], "{revision}");
        // A client may know of it from elsewhere.
        let refused = bob.call_once("up__echo", "{}").await.text();
        assert!(refused.contains("needs login; run `trunkline login up --as token:bob`"), "{refused}");
        logged_in(&gateway, "bob").await;
        bob.tools_until("they are read with its login", |tools| tools.contains(&"up__echo".into())).await;
        for client in [&ada, &bob, &ada] {
            assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        }
        let shown = shown(&guarded);
        assert_eq!(shown.iter().collect::<BTreeSet<_>>().len(), 2, "each has its own: {shown:?}");
        assert!(shown[0] == shown[1] && shown[1] == shown[3] && shown[0] != shown[2], "{shown:?}");
    }
}

#[tokio::test]
async fn who_logs_out_has_no_call_any_more_and_the_other_one_notices_nothing() {
    for revision in [LEGACY, MODERN] {
        let guarded = Guarded::start(Way::Http, revision).await;
        let gateway = serve(&guarded, "").await;
        let (ada, bob) = (come(&gateway, revision, ADA).await, come(&gateway, revision, BOB).await);
        for (client, principal) in [(&ada, "token:ada"), (&bob, "token:bob")] {
            logged_in(&gateway, principal).await;
            client.tools_until("it is connected", |tools| tools.contains(&"up__echo".into())).await;
        }
        let output = gateway.command(&["logout", "up", "--as", "ada"]).output();
        let (is_done, text) = said(&within("it ends", output).await.expect("it runs"));
        assert!(is_done && text.contains("logged out of `up`"), "{text}");
        let refused = until("it is noticed", || async {
            let refused = ada.call_once("up__echo", "{\"a\":1}").await.text();
            (refused != "{\"a\":1}").then_some(refused)
        });
        let refused = refused.await;
        assert!(refused.contains("run `trunkline login up --as token:ada`"), "{refused}");
        ada.tools_until("what was offered to it before is not any more", |tools| tools == [LOGIN]).await;
        assert_eq!(bob.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    }
}

#[tokio::test]
async fn a_tool_with_the_name_of_the_gateways_own_is_left_out_and_that_is_said() {
    let own =
        "{\"name\":\"trunkline_login\",\"description\":\"not the gateway's\",\"inputSchema\":{\"type\":\"object\"}}";
    let script = || Script::new("up", MODERN).with(|script| script.raw_tools.push(own.to_owned()));
    let guarded = Guarded::with(Way::Http, script()).await;
    let gateway = serve(&guarded, "").await;
    logged_in(&gateway, "ada").await;
    let ada = come(&gateway, MODERN, ADA).await;
    let tools = ada.tools_until("they are read with its login", |tools| tools.contains(&"up__echo".into())).await;
    assert!(!tools.contains(&LOGIN.to_owned()), "{tools:?}");
    let said = ada.call_once(LOGIN, "{}").await.text();
    assert!(said.contains("You are logged in to `up`"), "{said}");
    let of_log = |line: &String| line.contains("tool left out: the gateway's own has its name").then_some(());
    gateway.stderr.wait("it is said", of_log).await;
    // Where all have one login the gateway has no such tool.
    let shared = Guarded::with(Way::Http, script()).await;
    let gateway = shared.serve("").await;
    let (is_done, text) = crate::logins::said(&log_in(&gateway, &[]).await);
    assert!(is_done, "{text}");
    let client = Client::connect(&gateway.reach(), MODERN).await;
    client.tools_until("it is the upstream's own", |tools| tools.contains(&LOGIN.to_owned())).await;
}

#[tokio::test]
async fn many_calls_of_both_come_back_to_whom_they_are_of_each_with_its_own_token() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let gateway = serve(&guarded, "").await;
    let (ada, bob) = (come(&gateway, LEGACY, ADA).await, come(&gateway, MODERN, BOB).await);
    for (client, principal) in [(&ada, "token:ada"), (&bob, "token:bob")] {
        logged_in(&gateway, principal).await;
        client.tools_until("it is connected", |tools| tools.contains(&"up__echo".into())).await;
    }
    let calls = |client, name: &'static str| {
        let arguments = format!("{{\"of\":\"{name}\"}}");
        all((0..50).map(move |_| {
            let (client, arguments): (&Client, _) = (client, arguments.clone());
            async move { assert_eq!(client.request(tool("up__echo", &arguments)).await.text(), arguments) }
        }))
    };
    tokio::join!(calls(&ada, "ada"), calls(&bob, "bob"));
    let shown = shown(&guarded);
    let tokens: BTreeSet<_> = shown.iter().collect();
    assert_eq!(tokens.len(), 2, "{tokens:?}");
    assert!(tokens.iter().all(|token| shown.iter().filter(|one| one == token).count() == 50));
}

#[tokio::test]
async fn a_client_that_knows_the_tools_from_before_may_call_them_first_after_a_restart_of_the_gateway() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let gateway = serve(&guarded, "").await;
    logged_in(&gateway, "token:ada").await;
    for revision in [LEGACY, MODERN] {
        // Nobody has looked at any list.
        let ada = come(&gateway, revision, ADA).await;
        assert_eq!(ada.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        let unknown = ada.call_once("up__nothing", "{}").await;
        assert!(unknown.message().contains("Unknown tool"), "{}", unknown.message());
    }
}

async fn order(gateway: &Gateway, order: &str) {
    let output = within("it ends", gateway.command(&[order, "up"]).output()).await.expect("it runs");
    assert!(output.status.success(), "{order}: {}", said(&output).1);
}

#[tokio::test]
async fn orders_are_for_what_there_is_of_every_principal() {
    let guarded = Guarded::start(Way::Http, LEGACY).await;
    let gateway = serve(&guarded, "").await;
    logged_in(&gateway, "token:ada").await;
    let ada = come(&gateway, LEGACY, ADA).await;
    assert_eq!(ada.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    let sessions = guarded.upstream.frames_with("\"initialize\"");
    order(&gateway, "restart").await;
    // A call right after the order may still reach the old session.
    until("another session", async || {
        assert_eq!(ada.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        (guarded.upstream.frames_with("\"initialize\"") > sessions).then_some(())
    })
    .await;
    order(&gateway, "stop").await;
    let refused = ada.call_once("up__echo", "{}").await.message();
    assert!(refused.contains("stopped on request"), "{refused}");
    order(&gateway, "start").await;
    assert_eq!(ada.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
}

#[tokio::test]
async fn who_has_yet_to_log_in_takes_no_place_of_who_has() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let gateway = serve(&guarded, "max_instances = 1\n").await;
    logged_in(&gateway, "token:bob").await;
    let (ada, bob) = (come(&gateway, MODERN, ADA).await, come(&gateway, MODERN, BOB).await);
    assert_eq!(ada.tools().await, [LOGIN]);
    // The other one goes on looking.
    until("there is a place for it", || async {
        assert_eq!(ada.tools().await, [LOGIN]);
        bob.tools().await.contains(&"up__echo".into()).then_some(())
    })
    .await;
    assert_eq!(bob.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    // What it is offered is known still.
    assert_eq!(ada.tools().await, [LOGIN]);
}

#[tokio::test]
async fn a_restart_leaves_the_running_calls_of_each_principal_some_time_and_later_ones_do_not_wait_for_that() {
    let guarded = Guarded::start(Way::Http, LEGACY).await;
    let gateway = serve(&guarded, "").await;
    logged_in(&gateway, "token:ada").await;
    let ada = come(&gateway, LEGACY, ADA).await;
    for is_at_once in [false, true] {
        let gate = if is_at_once { "second" } else { "first" };
        let running = ada.start(tool("up__wait", &format!("{{\"gate\":\"{gate}\"}}"))).await;
        guarded.upstream.waiting_at(gate).await;
        let arguments: &[&str] = if is_at_once { &["restart", "up", "--now"] } else { &["restart", "up"] };
        let output = within("it ends", gateway.command(arguments).output()).await.expect("it runs");
        assert!(output.status.success(), "{}", said(&output).1);
        assert_eq!(ada.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        guarded.upstream.order(Order::Open(gate.into())).await;
        let answer = running.answer().await;
        assert_eq!(answer.frame().result.is_some(), !is_at_once, "{answer:?}");
    }
}

#[tokio::test]
async fn who_finds_all_instances_taken_is_told_that_and_not_that_it_starts() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let gateway = serve(&guarded, "max_instances = 1\n").await;
    for name in ["token:ada", "token:bob"] {
        logged_in(&gateway, name).await;
    }
    let (ada, bob) = (come(&gateway, MODERN, ADA).await, come(&gateway, MODERN, BOB).await);
    assert_eq!(bob.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    let refused = ada.call_once("up__echo", "{}").await;
    assert!(refused.message().contains("its one instance is taken; try again later"), "{}", refused.message());
    assert_eq!(refused.error_value()["data"]["origin"], "gateway", "{refused:?}");
}
