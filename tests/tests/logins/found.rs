//! Logins that nothing asks for but the upstream itself: found by its refusals, and asked for more than they allow.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use trunkline_tests::client::Client;
use trunkline_tests::client::http::exchange;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::upstream::Way;
use trunkline_tests::within::{until, within, within_limit};

use super::{AT_ONCE, Guarded, LEGACY, MODERN, NEEDS, RESOURCE, log_in, logged_in, refused, said, up};

async fn plain(guarded: &Guarded) -> Gateway {
    Gateway::serve(&Config::new().upstream(&guarded.upstream)).await
}

async fn row(gateway: &Gateway) -> Value {
    let json = within("it answers", gateway.command(&["status", "up", "--json"]).output()).await.expect("it runs");
    serde_json::from_slice(&json.stdout).expect("JSON")
}

/// `call` says on stderr, as every refusal, what a model is told by a result.
async fn refused_to_a_person(gateway: &Gateway) {
    let called = within("it answers", gateway.command(&["call", "up__echo"]).output()).await.expect("it runs");
    let text = String::from_utf8_lossy(&called.stderr);
    assert_eq!((called.status.code(), &*called.stdout), (Some(1), &b""[..]), "{text}");
    assert!(text.starts_with("error: ") && text.contains(NEEDS) && text.lines().count() == 1, "{text}");
    assert!(text.contains("open this page yourself, if you trust it, and call again: http://127.0.0.1:"), "{text}");
}

#[tokio::test]
async fn an_upstream_that_asks_for_a_login_shows_so_and_needs_no_key_for_it() {
    for (revision, is_named) in [(LEGACY, true), (MODERN, true), (LEGACY, false), (MODERN, false)] {
        let guarded = Guarded::start(Way::Http, revision).await;
        if is_named {
            let at = format!("{}{RESOURCE}/mcp", guarded.at(""));
            guarded.upstream.challenges(&format!("Bearer resource_metadata=\"{at}\""));
        }
        let gateway = plain(&guarded).await;
        gateway.look_until("/readyz?verbose", "it is shown", |page| page.contains(NEEDS)).await;
        let client = Client::connect(&gateway.reach(), revision).await;
        assert!(refused(&client).await.contains(NEEDS));
        refused_to_a_person(&gateway).await;
        logged_in(&gateway).await;
        let comes = client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into()));
        within_limit(AT_ONCE, "it comes up without an order", comes).await;
        assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        assert!(guarded.with_tokens().iter().all(|token| token == "canary-access-1"));
        // As with any other login: it is refreshed, and ends.
        guarded.guard.revoke();
        client.call("up__echo", "{}").await.text();
        assert_eq!(guarded.identity.granted("refresh_token"), 1);
        let output = within("it answers", gateway.command(&["logout", "up"]).output()).await.expect("it runs");
        assert!(said(&output).1.contains("logged out of `up`"), "{}", said(&output).1);
        let shows = |page: &str| page.contains(NEEDS) && page.contains("  failed  ");
        let noticed = gateway.look_until("/readyz?verbose", "it is noticed", shows);
        within_limit(AT_ONCE, "it needs a login again", noticed).await;
    }
}

#[tokio::test]
async fn an_upstream_that_lists_without_a_login_and_refuses_calls_goes_on_and_says_what_to_do() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    for kind in ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        guarded.guard.opens(kind);
    }
    let gateway = plain(&guarded).await;
    let client = up(&gateway, MODERN).await;
    assert!(refused(&client).await.contains(NEEDS));
    assert!(guarded.with_tokens().is_empty());
    logged_in(&gateway).await;
    until("a call is taken", || async {
        let answer = client.call_once("up__echo", "{}").await;
        answer.frame().result.as_ref().is_some_and(|result| !result.get().contains("isError")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_upstream_that_is_shown_headers_or_says_nothing_of_itself_is_told_what_it_was_before() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let headers = "headers = { Authorization = \"Bearer canary-of-the-file\" }";
    let gateway = Gateway::serve(&Config::new().upstream_with(&guarded.upstream, headers)).await;
    let advice = "set its credentials in `auth`, or in `headers`";
    gateway.look_until("/readyz?verbose", "it is refused", |page| page.contains(advice)).await;
    let (is_done, text) = said(&log_in(&gateway, &[]).await);
    assert!(!is_done && text.contains("nobody logs in to `up`"), "{text}");
    let silent = Guarded::start(Way::Http, MODERN).await;
    for path in ["/mcp", ""] {
        silent.upstream.shows(&format!("{RESOURCE}{path}"), 404, "");
    }
    let gateway = plain(&silent).await;
    let page = gateway.look_until("/readyz?verbose", "it is refused", |page| page.contains(advice)).await;
    assert!(!page.contains("login"), "{page}");
}

#[tokio::test]
async fn an_upstream_that_says_elsewhere_what_it_is_does_not_show_a_login_that_nobody_can_make() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    for path in ["/mcp", ""] {
        guarded.upstream.shows(&format!("{RESOURCE}{path}"), 404, "");
    }
    guarded.upstream.challenges("Bearer resource_metadata=\"https://elsewhere.example/resource\"");
    let gateway = plain(&guarded).await;
    let says = "it says at another origin what it is as a resource, which is not asked: set its credentials in `auth`";
    let page = gateway.look_until("/readyz?verbose", "why is shown", |page| page.contains(says)).await;
    assert!(!page.contains("needs login"), "{page}");
    let (is_done, text) = said(&log_in(&gateway, &[]).await);
    assert!(!is_done && text.contains("says at another origin what it is as a resource"), "{text}");
}

#[tokio::test]
async fn a_token_that_allows_too_little_is_told_so_and_the_next_login_asks_for_the_union() {
    for revision in [LEGACY, MODERN] {
        let guarded = Guarded::start(Way::Http, revision).await;
        guarded.guard.needs("tools/call", "mcp.admin");
        let gateway = guarded.serve("").await;
        logged_in(&gateway).await;
        assert_eq!(guarded.identity.last("GET /authorize")["scope"], "mcp.read mcp.write");
        let client = up(&gateway, revision).await;
        for _ in 0..3 {
            let why = client.call_once("up__echo", "{}").await.message();
            assert!(why.contains("run `trunkline login up`, which asks for more"), "{why}");
            assert!(!why.contains("mcp.admin"), "the upstream's own words are for the operator: {why}");
        }
        assert_eq!(guarded.identity.granted("refresh_token"), 0, "another token would allow no more");
        assert_eq!(row(&gateway).await["login"]["wanted"], serde_json::json!(["mcp.admin"]));
        let text = within("it answers", gateway.command(&["status", "up"]).output()).await.expect("it runs");
        let text = said(&text).1;
        assert!(text.contains("needs more (`mcp.admin`): run `trunkline login up`"), "{text}");
        logged_in(&gateway).await;
        assert_eq!(guarded.identity.last("GET /authorize")["scope"], "mcp.read mcp.write mcp.admin");
        until("a call is taken", || async {
            client.call_once("up__echo", "{}").await.frame().result.is_some().then_some(())
        })
        .await;
        assert_eq!(row(&gateway).await["login"]["wanted"], Value::Null);
    }
}

#[tokio::test]
async fn a_login_on_another_machine_is_finished_by_pasting_where_the_browser_came_to() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let gateway = guarded.serve("").await;
    for is_screen in [false, true] {
        finished_by_pasting(&gateway, is_screen).await;
    }
}

/// On a machine with a screen no browser opens either where nobody sits at a terminal.
async fn finished_by_pasting(gateway: &Gateway, is_screen: bool) {
    let piped = std::process::Stdio::piped;
    let mut command = gateway.command(if is_screen { &["login", "up"] } else { &["login", "up", "--no-browser"] });
    if is_screen {
        command.env("DISPLAY", ":99");
    }
    let mut child = command.stdin(piped()).stdout(piped()).stderr(piped()).spawn().expect("it runs");
    let (mut input, error) = (child.stdin.take().expect("a pipe"), child.stderr.take().expect("a pipe"));
    let mut lines = BufReader::new(error).lines();
    let link = within("it says where", async {
        loop {
            let line = lines.next_line().await.expect("a line").expect("it is not over");
            if line.starts_with("http") {
                break line;
            }
        }
    })
    .await;
    let page = exchange(&link, "GET", &[], "").await;
    let back = page.header("location").expect("the browser is sent back");
    input.write_all(&[b"what is \xff this?\n", back.as_bytes(), b"\n"].concat()).await.expect("it reads");
    let output = within("it ends", child.wait_with_output()).await.expect("it runs");
    assert!(output.status.success() && said(&output).1.contains("logged in to `up`"), "{}", said(&output).1);
    let waits = lines.next_line().await.expect("a line").expect("it is not over");
    assert!(waits.contains("10 min at most; Ctrl-C gives up"), "{waits}");
    let told = lines.next_line().await.expect("a line").expect("it is not over");
    assert!(told.contains("that is not the address that the browser was sent back to"), "{told}");
    up(gateway, MODERN).await.call("up__echo", "{}").await.text();
}

#[tokio::test]
async fn each_command_that_meets_a_missing_login_says_how_to_log_in() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let gateway = plain(&guarded).await;
    gateway.look_until("/readyz?verbose", "it is shown", |page| page.contains(NEEDS)).await;
    for args in [&["doctor"][..], &["tools", "up"], &["call", "up__echo"]] {
        let output = within("it answers", gateway.command(args).output()).await.expect("it runs");
        let (is_done, text) = said(&output);
        assert!(!is_done && text.contains("`trunkline login up"), "{args:?}: {text}");
        assert!(!text.contains("restart") && !text.contains("trunkline logs"), "{args:?}: {text}");
    }
}
