//! Upstreams that a person logs in to (OAuth): `trunkline login`, and what the gateway makes of it.

mod another;
mod device;
mod ended;
mod found;
mod keyring;
pub(crate) mod own;

use std::process::Output;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use trunkline_tests::authority::Authority;
use trunkline_tests::canary::base64;
use trunkline_tests::client::Client;
use trunkline_tests::client::http::exchange;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::identity::{AUTHORIZATION, Identity};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::{Upstream, Way};
use trunkline_tests::within::{all, until, within, within_limit};

pub(crate) const LEGACY: Revision = Revision::R2025_11_25;
pub(crate) const MODERN: Revision = Revision::MODERN;
const CALLS: usize = 1000;
const CLIENTS: usize = 10;
pub(crate) const AT_ONCE: Duration = Duration::from_secs(30);
pub(crate) const AUTH: &str = "auth = { type = \"oauth\" }";
pub(crate) const NEEDS: &str = "needs login; run `trunkline login up`";
pub(crate) const RESOURCE: &str = "/.well-known/oauth-protected-resource";

/// An upstream behind a guard, which says whom it believes, and that identity provider.
pub(crate) struct Guarded {
    pub(crate) upstream: Upstream,
    pub(crate) guard: Arc<Authority>,
    pub(crate) identity: Arc<Identity>,
}

impl Guarded {
    pub(crate) async fn start(way: Way, revision: Revision) -> Guarded {
        Guarded::with(way, Script::new("up", revision)).await
    }

    pub(crate) async fn with(way: Way, script: Script) -> Guarded {
        let upstream = Upstream::start(way, script).await;
        let guard = Authority::start().await;
        upstream.guarded_by(&guard);
        let identity = Identity::start(&guard).await;
        let path = if way == Way::WebSocket { "/ws" } else { "/mcp" };
        let guarded = Guarded { upstream, guard, identity };
        guarded.upstream.shows(&format!("{RESOURCE}{path}"), 200, &guarded.identity.resource(&guarded.at(path)));
        guarded
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("http://{}{path}", self.upstream.address())
    }

    pub(crate) async fn serve(&self, more: &str) -> Gateway {
        Gateway::serve(&Config::new().upstream_with(&self.upstream, &format!("{AUTH}\n{more}"))).await
    }

    /// What an upstream was asked by whom bears a token.
    pub(crate) fn with_tokens(&self) -> Vec<String> {
        self.guard.judged.all().into_iter().map(|(_, token, _)| token).filter(|token| !token.is_empty()).collect()
    }
}

/// Logs in as a person does: follows the link, and is sent back.
pub(crate) async fn log_in(gateway: &Gateway, more: &[&str]) -> Output {
    followed(gateway.command(&[&["login", "up", "--no-browser"], more].concat())).await
}

/// The same by this command.
pub(crate) async fn followed(mut command: Command) -> Output {
    let piped = std::process::Stdio::piped;
    let mut child =
        command.stdin(std::process::Stdio::null()).stdout(piped()).stderr(piped()).spawn().expect("it runs");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut said = String::new();
    within("it says where, or why not", async {
        while let Ok(Some(line)) = lines.next_line().await {
            // With `--json` what is said beside the answer is JSON, too.
            let noted: Option<Value> = serde_json::from_str(&line).ok();
            let line = noted.and_then(|noted| Some(noted.get("note")?.as_str()?.to_owned())).unwrap_or(line);
            if line.starts_with("http") {
                let page = exchange(&line, "GET", &[], "").await;
                let back = page.header("location").expect("the browser is sent back").to_owned();
                let answer = exchange(&back, "GET", &[], "").await;
                assert!(answer.status == 200, "{back}: {}", answer.status);
            } else {
                said.push_str(&format!("{line}\n"));
            }
        }
    })
    .await;
    let output = within("it ends", child.wait_with_output()).await.expect("it runs");
    Output { stderr: said.into_bytes(), ..output }
}

pub(crate) fn said(output: &Output) -> (bool, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout) + &text(&output.stderr))
}

pub(crate) async fn logged_in(gateway: &Gateway) {
    let (is_done, text) = said(&log_in(gateway, &[]).await);
    assert!(is_done && text.contains("logged in to `up` at http://127.0.0.1:"), "{text}");
}

/// What a call is refused with: a tool that says it to the model where a person can do something about it, else an error.
pub(crate) async fn refused(client: &Client) -> String {
    let answer = client.call_once("up__echo", "{}").await;
    let frame = answer.frame();
    let Some(result) = frame.result.as_deref() else { return answer.message() };
    let result: Value = serde_json::from_str(result.get()).expect("JSON");
    let data = &result["_meta"]["trunkline/refusal"];
    assert_eq!((&result["isError"], &data["code"]), (&true.into(), &"login_required".into()), "{result}");
    assert_eq!((&data["upstream"], &data["retriable"]), (&"up".into(), &false.into()), "{result}");
    assert_eq!(data["advice"], "run `trunkline login up`");
    answer.text()
}

pub(crate) async fn up(gateway: &Gateway, revision: Revision) -> Client {
    let client = Client::connect(&gateway.reach(), revision).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    client
}

#[tokio::test]
async fn without_a_login_nothing_is_sent_and_what_to_do_is_said_everywhere_and_a_login_is_noticed_at_once() {
    for (revision, way) in [(LEGACY, Way::Http), (MODERN, Way::Http), (LEGACY, Way::WebSocket)] {
        let guarded = Guarded::start(way, revision).await;
        let gateway = guarded.serve("").await;
        gateway.look_until("/readyz?verbose", "it is shown", |page| page.contains(NEEDS)).await;
        for command in [&["ls"][..], &["status", "up"]] {
            let output = within("it answers", gateway.command(command).output()).await.expect("it runs");
            assert!(said(&output).1.contains(NEEDS), "{command:?}: {}", said(&output).1);
        }
        let json = within("it answers", gateway.command(&["ls", "--json"]).output()).await.expect("it runs");
        let whole: Value = serde_json::from_slice(&json.stdout).expect("JSON");
        assert_eq!(whole["upstreams"][0]["code"], "login_required", "{whole}");
        let client = Client::connect(&gateway.reach(), revision).await;
        for _ in 0..5 {
            let refusal = refused(&client).await;
            assert!(refusal.contains(NEEDS), "{refusal}");
        }
        assert_eq!((guarded.guard.judged.mark(), guarded.identity.asked.mark()), (0, 0), "nobody is asked anything");
        logged_in(&gateway).await;
        // It would be tried again after a minute.
        let comes = client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into()));
        within_limit(AT_ONCE, "it comes up without an order", comes).await;
        assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        gateway.look_until("/readyz?verbose", "it is well", |page| page.contains("  ready  ")).await;
        assert!(guarded.with_tokens().iter().all(|token| token == "canary-access-1"));
    }
}

#[tokio::test]
async fn a_login_is_asked_for_as_the_protocol_has_it() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let gateway = guarded.serve("").await;
    logged_in(&gateway).await;
    let (identity, resource) = (&guarded.identity, guarded.at("/mcp"));
    let client: Value = serde_json::from_str(&identity.last("POST /register")["json"]).expect("JSON");
    let redirect = client["redirect_uris"][0].as_str().expect("a URI").to_owned();
    assert!(redirect.starts_with("http://127.0.0.1:") && redirect.ends_with("/callback/up"), "{redirect}");
    let expected = json!(["native", "none", ["authorization_code", "refresh_token"]]);
    assert_eq!(
        json!([client["application_type"], client["token_endpoint_auth_method"], client["grant_types"]]),
        expected
    );
    let asked = identity.last("GET /authorize");
    for (name, value) in [
        ("response_type", "code"),
        ("client_id", "registered-1"),
        ("redirect_uri", &redirect),
        ("code_challenge_method", "S256"),
        ("resource", &resource),
        ("scope", "mcp.read mcp.write"),
    ] {
        assert_eq!(asked[name], value, "{name}");
    }
    assert!(asked["state"].len() >= 22, "{}", asked["state"]);
    let given = identity.last("POST /token");
    assert_eq!((&*given["resource"], &given["redirect_uri"]), (&*resource, &redirect));
    // Another login has another state and another challenge; the refusal says what it is to allow, and where the upstream says what it is.
    guarded.upstream.shows("/elsewhere", 200, &identity.resource(&resource));
    let challenge = format!("Bearer resource_metadata=\"{}\", scope=\"only\"", guarded.at("/elsewhere"));
    guarded.upstream.challenges(&challenge);
    logged_in(&gateway).await;
    let again = identity.last("GET /authorize");
    assert!(["state", "code_challenge"].iter().all(|name| again[*name] != asked[*name]));
    assert_eq!(again["scope"], "only");
}

#[tokio::test]
async fn a_configured_client_is_used_as_it_is_and_an_upstream_without_a_word_is_its_own_authorization_server() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let keys = format!(
        "auth = {{ type = \"oauth\", client_id = \"mine\", client_secret = \"canary-secret\", scopes = [\"a\"], issuer = \"{}\" }}",
        guarded.identity.url
    );
    let gateway = Gateway::serve(&Config::new().upstream_with(&guarded.upstream, &keys)).await;
    logged_in(&gateway).await;
    let asked = guarded.identity.last("GET /authorize");
    assert_eq!((&*asked["client_id"], &*asked["scope"]), ("mine", "a"));
    assert!(asked["redirect_uri"].ends_with("/callback"), "as it was registered by hand: {}", asked["redirect_uri"]);
    let basic = format!("Basic {}", base64(b"mine:canary-secret"));
    assert_eq!(guarded.identity.last("POST /token")[AUTHORIZATION], basic);
    let client = up(&gateway, MODERN).await;
    guarded.guard.revoke();
    client.call("up__echo", "{}").await.text();
    let refreshed = guarded.identity.last("POST /token");
    assert_eq!((&*refreshed["grant_type"], &refreshed[AUTHORIZATION]), ("refresh_token", &basic));
    assert!(!guarded.identity.asked.all().iter().any(|(what, _)| what == "POST /register"));
    // As in 2025-03-26.
    let alone = Guarded::start(Way::Http, MODERN).await;
    for path in ["/mcp", ""] {
        alone.upstream.shows(&format!("{RESOURCE}{path}"), 404, "");
    }
    let gateway = alone.serve("").await;
    let (is_done, text) = said(&log_in(&gateway, &[]).await);
    assert!(!is_done && text.contains("says neither which authorization server it believes"), "{text}");
    let own = format!("http://{}", alone.upstream.address());
    let at = |path: &str| format!("{}{path}", alone.identity.url);
    let server = json!({ "issuer": own, "authorization_endpoint": at("/authorize"), "token_endpoint": at("/token"),
        "registration_endpoint": at("/register"), "code_challenge_methods_supported": ["S256"] });
    alone.upstream.shows("/.well-known/oauth-authorization-server", 200, &server.to_string());
    alone.identity.sends_back_as(Some(&own));
    logged_in(&gateway).await;
    up(&gateway, MODERN).await;
}

#[tokio::test]
async fn another_login_is_taken_while_the_gateway_runs() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let gateway = guarded.serve("").await;
    logged_in(&gateway).await;
    let client = up(&gateway, MODERN).await;
    client.call("up__echo", "{}").await.text();
    logged_in(&gateway).await;
    until("the token of the other login is shown", || async {
        client.call("up__echo", "{}").await.text();
        guarded.with_tokens().last().is_some_and(|token| token == "canary-access-2").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_login_outlives_the_gateway_sealed_and_for_its_user_alone() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let mut gateway = guarded.serve("").await;
    logged_in(&gateway).await;
    up(&gateway, MODERN).await;
    let config = Config::new().upstream_with(&guarded.upstream, AUTH);
    gateway.restart(&config).await;
    up(&gateway, MODERN).await;
    assert_eq!(guarded.identity.granted("refresh_token"), 0, "the token is still good");
    let folder = gateway.state().join("logins");
    let files: Vec<_> =
        std::fs::read_dir(&folder).expect("it is there").map(|file| file.expect("a file").path()).collect();
    assert_eq!(files.len(), 2, "the login and its lock: {files:?}");
    for file in files {
        let text = std::fs::read(&file).expect("it can be read");
        assert!(!String::from_utf8_lossy(&text).contains("canary"), "{file:?}");
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).expect("it is there").permissions());
        assert_eq!(mode & 0o777, 0o600, "{file:?}");
    }
    // A key that is gone opens nothing: that is said, and a new login mends it.
    std::fs::write(gateway.state().join("signing-key"), "k".repeat(43)).expect("it can be written");
    gateway.restart(&config).await;
    let says = |page: &str| page.contains("needs login: the kept login cannot be used: it was sealed with another key");
    gateway.look_until("/readyz?verbose", "it is said", says).await;
    logged_in(&gateway).await;
    up(&gateway, MODERN).await;
}

/// A thousand calls at the moment at which a token is good no more, by clients in that revision, with two gateways that have one login.
async fn thousand(revision: Revision) {
    let guarded = Guarded::start(Way::Http, revision).await;
    let gateway = guarded.serve("").await;
    logged_in(&gateway).await;
    let state = gateway.state();
    let config = Config::new().upstream_with(&guarded.upstream, AUTH);
    let other =
        Gateway::serve(&config.env("XDG_STATE_HOME", &state.parent().expect("a folder").display().to_string())).await;
    let clients = all((0..CLIENTS).map(|at| up(if at % 2 == 0 { &gateway } else { &other }, revision))).await;
    for (at, client) in clients.iter().enumerate() {
        client.call("up__echo", &format!("{{\"nonce\":\"first {at}\"}}")).await.text();
    }
    let ran = guarded.upstream.executed().await.len();
    guarded.guard.revoke();
    let calls = (0..CALLS).map(|at| {
        let client = &clients[at % CLIENTS];
        async move { client.call("up__echo", &format!("{{\"nonce\":\"n{at}\"}}")).await.text() }
    });
    let answers = within("all calls are answered", all(calls)).await;
    let expected: Vec<String> = (0..CALLS).map(|at| format!("{{\"nonce\":\"n{at}\"}}")).collect();
    assert_eq!(answers, expected, "none is lost");
    assert_eq!(guarded.identity.granted("refresh_token"), 1, "one refresh for both");
    let (count, doubled) = guarded.upstream.report().await;
    assert_eq!((count as usize, doubled), (ran + CALLS, 0), "none has run twice");
}

#[tokio::test]
async fn a_thousand_calls_at_the_end_of_a_token_refresh_it_once_for_all_processes_and_none_is_lost() {
    thousand(MODERN).await;
}

#[tokio::test]
async fn a_thousand_calls_in_sessions_do_so_too() {
    thousand(LEGACY).await;
}

#[tokio::test]
async fn a_token_is_refreshed_before_its_end_and_no_call_is_refused() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    guarded.identity.lasting(5);
    let gateway = guarded.serve("").await;
    logged_in(&gateway).await;
    let client = up(&gateway, MODERN).await;
    until("the third token is shown", || async {
        client.call("up__echo", "{}").await.text();
        guarded.with_tokens().last().is_some_and(|token| token == "canary-access-3").then_some(())
    })
    .await;
    let refused = guarded.guard.judged.all().into_iter().filter(|(_, token, ok)| !ok && !token.is_empty()).count();
    assert_eq!(refused, 0);
    // A machine under load may be late with one of them.
    assert!(guarded.identity.followed_in_time() > 0, "no token was refreshed before its end");
    let last = guarded.identity.last("POST /token");
    assert_eq!((&*last["resource"], &*last["refresh_token"]), (&*guarded.at("/mcp"), "canary-refresh-2"));
}

#[tokio::test]
async fn a_login_that_has_ended_is_shown_is_not_tried_again_and_another_one_goes_on() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let gateway = guarded.serve("").await;
    logged_in(&gateway).await;
    let client = up(&gateway, MODERN).await;
    // While the token end point is down nothing is given up.
    guarded.identity.refuses(Some(503));
    guarded.guard.revoke();
    let why = refused(&client).await;
    assert!(why.contains("the token end point answers with HTTP 503"), "{why}");
    let asked = guarded.identity.granted("refresh_token");
    guarded.identity.refuses(None);
    guarded.identity.ends();
    let ended = "needs login: the last login has ended";
    until("the end is known", || async { refused(&client).await.contains(ended).then_some(()) }).await;
    for _ in 0..5 {
        let why = refused(&client).await;
        assert!(why.contains(ended) && why.contains("run `trunkline login up`"), "{why}");
    }
    let (asked_now, page) = (guarded.identity.granted("refresh_token"), gateway.look("/readyz?verbose").await);
    let page = String::from_utf8_lossy(&page.body).into_owned();
    assert_eq!(asked_now, asked + 1, "a refresh token that was refused is shown no more");
    assert!(page.contains(ended), "{page}");
    let log = gateway.stderr.all().join("\n");
    assert!(!log.contains("canary") && !page.contains("canary"), "{log}");
    logged_in(&gateway).await;
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    gateway.look_until("/readyz?verbose", "it is well", |page| page.contains("  ready  ")).await;
}
