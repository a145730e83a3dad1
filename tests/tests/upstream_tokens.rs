//! Upstreams that want a token which is fetched while the gateway runs: from an authorization server, or from a command.

use std::sync::Arc;

use trunkline_tests::authority::Authority;
use trunkline_tests::canary::base64;
use trunkline_tests::client::{Client, Desk, Request, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::{Upstream, Way};
use trunkline_tests::within::{all, until, within};

const LEGACY: Revision = Revision::R2025_11_25;
const MODERN: Revision = Revision::MODERN;
/// Calls at once, and the clients that make them.
const CALLS: usize = 1000;
const CLIENTS: usize = 10;

/// An upstream behind a guard, and the authorization server whose tokens that lets in.
async fn guarded(way: Way, script: Script) -> (Upstream, Arc<Authority>) {
    let (upstream, authority) = (Upstream::start(way, script).await, Authority::start().await);
    upstream.guarded_by(&authority);
    (upstream, authority)
}

async fn up(gateway: &Gateway, revision: Revision) -> Client {
    let client = Client::connect(&gateway.reach(), revision).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    client
}

/// What the guard refused, by kind.
fn refused(authority: &Authority) -> Vec<String> {
    authority.judged.all().into_iter().filter(|(.., is_let_in)| !is_let_in).map(|(kind, ..)| kind).collect()
}

#[tokio::test]
async fn one_token_is_asked_for_as_the_protocol_has_it_and_shown_with_every_request() {
    for (revision, way) in [(LEGACY, Way::Http), (MODERN, Way::Http), (LEGACY, Way::WebSocket)] {
        let (upstream, authority) = guarded(way, Script::new("up", revision)).await;
        let keys = authority.keys(", scopes = [\"a\", \"b\"], params = { audience = \"x y\" }");
        let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, &keys)).await;
        let client = up(&gateway, revision).await;
        assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        gateway.stop().await;
        let [(shown, body)] = &authority.asked.all()[..] else { panic!("{:?}", authority.asked.all()) };
        // RFC 6749, 2.3.1: both are coded as a form codes them.
        let basic = base64(b"gate+way:canary-secret%2F%2B");
        assert_eq!(*shown, format!("Basic {basic}"));
        let mut fields: Vec<&str> = body.split('&').collect();
        fields.sort_unstable();
        let resource = format!("resource=http%3A%2F%2F127.0.0.1%3A{}", upstream.address().port());
        let path = if way == Way::WebSocket { "%2Fws" } else { "%2Fmcp" };
        let expected = ["audience=x+y", "grant_type=client_credentials", &format!("{resource}{path}"), "scope=a+b"]
            .map(str::to_owned);
        assert_eq!(fields, expected);
        let judged = authority.judged.all();
        assert!(judged.iter().all(|(_, token, is_let_in)| token == "canary-token-1" && *is_let_in), "{judged:?}");
        let kinds: Vec<&str> = judged.iter().map(|(kind, ..)| kind.as_str()).collect();
        let all: &[&str] = match (revision, way) {
            (_, Way::WebSocket) => &["GET"],
            (MODERN, _) => &["server/discover", "tools/call"],
            _ => &["initialize", "notifications/initialized", "GET", "tools/call", "DELETE"],
        };
        assert!(all.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
    }
}

/// A thousand calls at the moment at which a token is good no more, by clients in that revision.
async fn thousand(revision: Revision) {
    let (upstream, authority) = guarded(Way::Http, Script::new("up", revision)).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, &authority.keys(""))).await;
    let clients = all((0..CLIENTS).map(|_| up(&gateway, revision))).await;
    for (at, client) in clients.iter().enumerate() {
        client.call("up__echo", &format!("{{\"nonce\":\"first {at}\"}}")).await.text();
    }
    let (before, ran) = (authority.asked.mark(), upstream.executed().await.len());
    assert_eq!(before, 1);
    authority.hold(true);
    authority.revoke();
    let calls = (0..CALLS).map(|at| {
        let client = &clients[at % CLIENTS];
        async move { client.request(tool("up__echo", &format!("{{\"nonce\":\"n{at}\"}}"))).await.text() }
    });
    let held = async {
        // All of them were refused, or wait for what the first of them asked for.
        authority.asked.nth(before).await;
        authority.hold(false);
    };
    let (answers, ()) = within("all calls are answered", async { tokio::join!(all(calls), held) }).await;
    let expected: Vec<String> = (0..CALLS).map(|at| format!("{{\"nonce\":\"n{at}\"}}")).collect();
    assert_eq!(answers, expected, "none is lost");
    assert_eq!(authority.asked.mark(), 2, "one token was asked for");
    let (count, doubled) = upstream.report().await;
    assert_eq!((count as usize, doubled), (ran + CALLS, 0), "none has run twice");
    assert!(refused(&authority).iter().filter(|kind| *kind == "tools/call").count() > 0);
}

#[tokio::test]
async fn a_thousand_calls_at_the_end_of_a_token_fetch_one_and_none_is_lost_or_run_twice() {
    thousand(MODERN).await;
}

#[tokio::test]
async fn a_thousand_calls_in_sessions_do_so_too() {
    thousand(LEGACY).await;
}

#[tokio::test]
async fn a_401_is_answered_once_with_the_next_token_for_every_kind_of_request() {
    let (upstream, authority) = guarded(Way::Http, Script::new("up", LEGACY).asking()).await;
    authority.refuse_first();
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, &authority.keys(""))).await;
    let client = Client::connect_with(&gateway.reach(), LEGACY, Desk::willing("ada")).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__ask".into())).await;
    let asked = client.call("up__ask", "{\"who\":\"ada\",\"plan\":\"form\"}").await;
    assert!(asked.text().contains("ada"), "{}", asked.text());
    gateway.stop().await;
    let mut kinds = refused(&authority);
    kinds.sort();
    for kind in ["DELETE", "GET", "an answer", "initialize", "notifications/initialized", "tools/call", "tools/list"] {
        assert_eq!(kinds.iter().filter(|refused| *refused == kind).count(), 1, "{kind} of {kinds:?}");
    }
    let (_, doubled) = upstream.report().await;
    assert_eq!(doubled, 0);
    assert_eq!(upstream.complaints().await, Vec::<String>::new());
    // So is the request that becomes a WebSocket.
    let (upstream, authority) = guarded(Way::WebSocket, Script::new("up", LEGACY)).await;
    authority.refuse_first();
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, &authority.keys(""))).await;
    up(&gateway, LEGACY).await;
    assert_eq!((refused(&authority), authority.asked.mark()), (vec!["GET".to_owned()], 2));
}

#[tokio::test]
async fn an_upstream_that_takes_no_token_is_shown_two_and_the_authorization_server_is_not_asked_again_and_again() {
    let (upstream, authority) = guarded(Way::Http, Script::new("up", MODERN)).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, &authority.keys(""))).await;
    let client = up(&gateway, MODERN).await;
    authority.shut();
    for _ in 0..5 {
        let why = client.call_once("up__echo", "{}").await.message();
        assert!(why.contains("HTTP 401") && why.contains("set its credentials in `auth`"), "{why}");
    }
    assert_eq!(authority.asked.mark(), 2);
    let shown: Vec<String> =
        authority.judged.all().into_iter().filter(|(.., ok)| !ok).map(|(_, token, _)| token).collect();
    let expected = ["canary-token-1"].into_iter().chain(["canary-token-2"; 5]).collect::<Vec<_>>();
    assert_eq!(shown, expected);
    let says = |page: &str| page.contains("credentials rejected: HTTP 401") && page.contains("degraded");
    gateway.look_until("/readyz?verbose", "it is shown", says).await;
    assert!(!gateway.stderr.all().join("\n").contains("canary-token"));
}

#[tokio::test]
async fn a_tool_that_is_always_refused_costs_one_token_and_no_more_while_others_are_taken() {
    let refuses = Rule::on_tool("tool_error", vec![Act::status(401, "text/plain", "not this one")]);
    let (upstream, authority) = guarded(Way::Http, Script::new("up", MODERN).rule(refuses)).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, &authority.keys(""))).await;
    let client = up(&gateway, MODERN).await;
    for at in 0..5 {
        let why = client.call_once("up__tool_error", "{}").await.message();
        assert!(why.contains("HTTP 401"), "{why}");
        let echoed = format!("{{\"a\":{at}}}");
        assert_eq!(client.call("up__echo", &echoed).await.text(), echoed);
    }
    assert_eq!(authority.asked.mark(), 2);
}

#[tokio::test]
async fn a_call_whose_time_passes_while_a_token_is_awaited_is_told_so() {
    let (upstream, authority) = guarded(Way::Http, Script::new("up", MODERN)).await;
    authority.lasting(2);
    let keys = authority.keys("") + "\ncall_timeout = \"400ms\"";
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, &keys)).await;
    let client = up(&gateway, MODERN).await;
    authority.hold(true);
    let says = "no access token within 0.4 s (`call_timeout`); the call did not run";
    until("no token is left", || async {
        let answer = client.call_once("up__echo", "{}").await;
        let why = answer.frame().error.is_some().then(|| answer.message())?;
        // While a token is left, an upstream on a machine that has much to do may be as late.
        let is_late = why.contains("did not answer");
        assert!(is_late || why.contains(says), "{why}");
        (!is_late).then_some(())
    })
    .await;
    let is_shown = |page: &str| page.contains("waited for an access token and was not sent within 0.4 s");
    gateway.look_until("/readyz?verbose", "why is shown", is_shown).await;
    authority.hold(false);
    until("a token is there", || async {
        client.call_once("up__echo", "{}").await.frame().error.is_none().then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_call_that_was_refused_and_whose_time_passes_before_the_next_token_comes_did_not_run_and_says_so() {
    for revision in [LEGACY, MODERN] {
        let (upstream, authority) = guarded(Way::Http, Script::new("up", revision)).await;
        let keys = authority.keys("") + "\ncall_timeout = \"400ms\"";
        let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, &keys)).await;
        let client = up(&gateway, revision).await;
        // Its session is there by now, where there is one.
        client.call("up__echo", "{\"nonce\":\"zeroth\"}").await.text();
        authority.hold(true);
        authority.revoke();
        let why = client.call_once("up__echo", "{\"nonce\":\"first\"}").await.message();
        assert!(why.contains("no access token within 0.4 s (`call_timeout`); the call did not run"), "{why}");
        assert!(refused(&authority).contains(&"tools/call".to_owned()), "it was shown the old token");
        let is_shown = |page: &str| page.contains("waited for an access token and was not sent within 0.4 s");
        gateway.look_until("/readyz?verbose", "why is shown", is_shown).await;
        authority.hold(false);
        until("a token is there", || async {
            client.call_once("up__echo", "{\"nonce\":\"second\"}").await.frame().error.is_none().then_some(())
        })
        .await;
        let withdrawn = |kind: &&String| *kind == "notifications/cancelled";
        let judged: Vec<_> = authority.judged.all().into_iter().map(|(kind, ..)| kind).collect();
        assert_eq!(judged.iter().filter(withdrawn).count(), 0, "there is nothing to withdraw");
        assert_eq!(upstream.executed().await.len(), 2, "the first has not run");
    }
}

#[tokio::test]
async fn a_token_is_fetched_anew_before_its_end_while_the_old_one_is_shown() {
    let (upstream, authority) = guarded(Way::Http, Script::new("up", MODERN)).await;
    authority.lasting(5);
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, &authority.keys(""))).await;
    let client = up(&gateway, MODERN).await;
    authority.hold(true);
    until("the next token is asked for", || async {
        // It is called all the while.
        client.call("up__echo", "{}").await.text();
        (authority.asked.mark() > 1).then_some(())
    })
    .await;
    authority.hold(false);
    until("the next token is shown", || async {
        client.call("up__echo", "{}").await.text();
        authority.judged.all().last().is_some_and(|(_, token, _)| token != "canary-token-1").then_some(())
    })
    .await;
    assert_eq!(refused(&authority), Vec::<String>::new(), "nobody was refused");
}

#[tokio::test]
async fn what_keeps_a_token_from_coming_is_shown_with_what_to_do_and_passes() {
    let (upstream, authority) = guarded(Way::Http, Script::new("up", MODERN)).await;
    authority.refuses(Some((503, "busy: canary-token")));
    let keys = authority.keys("") + "\nrestart = { backoff_min = \"20ms\", backoff_max = \"50ms\" }";
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, &keys)).await;
    let says = "no access token: the token end point answers with HTTP 503";
    gateway.look_until("/readyz?verbose", "why is shown", |page| page.contains(says)).await;
    let client = Client::connect(&gateway.reach(), MODERN).await;
    let refusal = client.call_once("up__echo", "{}").await.message();
    assert!(refusal.contains(says), "{refusal}");
    assert_eq!(refused(&authority), Vec::<String>::new(), "nobody is asked without a token");
    authority.refuses(None);
    client.tools_until("it comes up", |tools| tools.contains(&"up__echo".into())).await;
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    // While it runs, too; and then the old token is of no use.
    let error = "{\"error\":\"invalid_client\",\"error_description\":\"canary-secret/+ is not yours\"}";
    authority.refuses(Some((401, error)));
    authority.revoke();
    let refusal = client.call_once("up__echo", "{}").await.message();
    let says = "HTTP 401; no access token: the token end point refuses it (invalid_client)";
    let advice = "check `client_id`, `client_secret` and `client_auth` under `auth`";
    assert!(refusal.contains(says) && refusal.contains(advice) && !refusal.contains("is not yours"), "{refusal}");
    let page = gateway.look_until("/readyz?verbose", "why is shown", |page| page.contains(says)).await;
    assert!(page.contains(advice) && page.contains("is not yours"), "{page}");
    authority.refuses(None);
    until("it is served again", || async {
        let answer = client.call_once("up__echo", "{\"a\":2}").await;
        answer.frame().error.is_none().then_some(())
    })
    .await;
    gateway.look_until("/readyz?verbose", "it is well", |page| page.contains("  ready  ")).await;
    let log = gateway.stderr.all().join("\n");
    assert!(!page.contains("canary") && !log.contains("canary"), "{log}");
}

#[tokio::test]
async fn no_token_that_an_upstream_quotes_is_told_to_anybody() {
    let quote = "canary-token-1 may not do this";
    let quotes = Rule::on_tool("tool_error", vec![Act::status(403, "text/plain", quote)]);
    let (upstream, authority) = guarded(Way::Http, Script::new("up", MODERN).rule(quotes)).await;
    let config = Config::new().upstream_with(&upstream, &authority.keys("")).section("[log]\nlevel = \"trace\"");
    let gateway = Gateway::serve(&config).await;
    let client = up(&gateway, MODERN).await;
    for _ in 0..3 {
        let said = client.call_once("up__tool_error", "{}").await.message();
        assert!(said.contains("HTTP 403") && !said.contains("canary"), "{said}");
    }
    let is_quoted = |page: &str| page.contains("[secret] may not do this");
    let page = gateway.look_until("/readyz?verbose", "what it said is shown", is_quoted).await;
    let status = within("it answers", gateway.command(&["status", "up", "--json"]).output()).await.expect("it runs");
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    let log = gateway.stderr.all().join("\n");
    for (place, text) in [("the page", page), ("the status", status), ("the log", log)] {
        assert!(!text.contains("canary-token") && text.contains("[secret] may not do this"), "{place}: {text}");
    }
    assert!(authority.judged.all().iter().any(|(_, token, _)| token == "canary-token-1"), "it was shown one");
}

#[tokio::test]
async fn a_command_is_run_for_a_token_and_again_when_that_is_refused() {
    let (upstream, authority) = guarded(Way::Http, Script::new("up", LEGACY)).await;
    let scratch = Scratch::new();
    let runs = scratch.path().join("runs").display().to_string();
    // What it gives is what the authorization server counts: one more with each run.
    let script = format!("echo run >> {runs}; echo canary-token-$$(wc -l < {runs})");
    let keys = format!("auth = {{ type = \"exec\", command = \"sh\", args = [\"-c\", \"{script}\"] }}");
    for token in 1..=3 {
        authority.admit(&format!("canary-token-{token}"));
    }
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, &keys)).await;
    let client = up(&gateway, LEGACY).await;
    let count = || std::fs::read_to_string(&runs).unwrap_or_default().lines().count();
    assert_eq!((client.call("up__echo", "{\"a\":1}").await.text(), count()), ("{\"a\":1}".to_owned(), 1));
    authority.revoke();
    authority.admit("canary-token-2");
    let both = all((0..20).map(|at| {
        let client = &client;
        async move { client.call("up__echo", &format!("{{\"a\":{at}}}")).await.text() }
    }))
    .await;
    assert_eq!((both.len(), count()), (20, 2));
    // The guard stays.
    assert_eq!(gateway.children().len(), 1, "nothing of it is left");
}

#[tokio::test]
async fn a_command_that_fails_is_shown_with_its_words_and_what_to_do() {
    let (upstream, _authority) = guarded(Way::Http, Script::new("up", MODERN)).await;
    let keys = "auth = { type = \"exec\", command = \"sh\", args = [\"-c\", \"echo log in first >&2; exit 7\"] }";
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, keys)).await;
    let says = "no access token: the command of `auth` failed (exit status: 7): log in first; run it by hand";
    gateway.look_until("/readyz?verbose", "why is shown", |page| page.contains(says)).await;
    let client = Client::connect(&gateway.reach(), MODERN).await;
    let refusal =
        client.request(Request::new("tools/call", "{\"name\":\"up__echo\",\"arguments\":{}}")).await.message();
    assert!(!refusal.contains("log in first"), "its words are for the operator: {refusal}");
}

#[tokio::test]
async fn what_a_command_says_is_shown_without_its_variables_and_what_may_be_a_token() {
    let (upstream, _authority) = guarded(Way::Http, Script::new("up", MODERN)).await;
    let script = "echo \\\"$$LITERAL: Bearer canary-token-7\\\" >&2; exit 7";
    let keys = format!(
        "auth = {{ type = \"exec\", command = \"sh\", args = [\"-c\", \"{script}\"], env = {{ LITERAL = \"literal-canary\" }} }}"
    );
    let config = Config::new().upstream_with(&upstream, &keys).section("[log]\nlevel = \"trace\"");
    let gateway = Gateway::serve(&config).await;
    let says = "failed (exit status: 7): [secret]: Bearer [secret]; run it by hand";
    let page = gateway.look_until("/readyz?verbose", "why is shown", |page| page.contains(says)).await;
    let status = within("it answers", gateway.command(&["status", "up", "--json"]).output()).await.expect("it runs");
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    let log = gateway.stderr.all().join("\n");
    for (place, text) in [("the page", page), ("the status", status), ("the log", log)] {
        assert!(!text.contains("canary") && text.contains("[secret]: Bearer [secret]"), "{place}: {text}");
    }
}
