//! Access tokens of an authorization server that others have written.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::process::Command;
use trunkline_tests::client::{Client, Request, http};
use trunkline_tests::conformance::Suite;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::peers::Identity;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within_limit;

const RESOURCE: &str = "https://mcp.example.com/mcp";

#[tokio::test]
async fn tokens_of_oidc_provider_are_taken_signed_or_asked_about_and_those_for_others_are_not() {
    let Some(identity) = Identity::start().await else { return };
    for revision in [Revision::R2025_06_18, Revision::R2025_11_25, Revision::MODERN] {
        let up = Upstream::http(Script::new("up", revision)).await;
        let sections = format!(
            "[auth]\nmode = \"oauth\"\n[auth.roles.reader]\nupstreams = [\"*\"]\ntools = [\"up__echo\"]\n\
             [auth.roles.all]\nupstreams = [\"*\"]\n[[auth.issuers]]\nissuer = \"{}\"\nscopes = [\"read\"]\nroles = [\"reader\"]\n\
             rules = [{{ scope = \"admin\", roles = [\"all\"] }}]\n\
             introspection = {{ client_id = \"gate\", client_secret = \"gate-secret\" }}",
            identity.url
        );
        let config = Config::new().upstream(&up).server("public_url = \"https://mcp.example.com\"").section(&sections);
        let gateway = Gateway::serve(&config).await;
        for (client, scope, is_all) in [
            ("desk", "read", false),
            ("desk", "read%20admin", true),
            ("quiet", "read", false),
            ("quiet", "read+admin", true),
        ] {
            let token = identity.token(client, RESOURCE, scope).await;
            let client = Client::bearing(&gateway.reach(), revision, &token).await;
            let tools = client.tools_until("the upstream is there", |tools| tools.contains(&"up__echo".into())).await;
            assert_eq!(tools.len() > 1, is_all, "{tools:?}");
            assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        }
        for (client, resource, scope, expected) in [
            ("desk", "https://other.example.com/mcp", "read", 401),
            ("quiet", "https://other.example.com/mcp", "read", 401),
            ("desk", RESOURCE, "admin", 403),
            ("quiet", RESOURCE, "admin", 403),
        ] {
            let bearer = format!("Bearer {}", identity.token(client, resource, scope).await);
            let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
            let text = Request::new("tools/list", "{}").text(revision, "1");
            let answer = http::exchange(&gateway.url, "POST", &headers, &text).await;
            assert_eq!(answer.status, expected, "{client} {resource} {scope}");
        }
    }
}

/// So many seconds later than it ends a token is let in: a client counts from when it came, and refreshes by its own clock.
const SKEW: u32 = 8;
/// How long an access token lasts, in seconds, and how long a client may take for all that it does.
const LASTS: u32 = 12;
const LIMIT: Duration = Duration::from_secs(180);

/// What a client saw of its day.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Day {
    tools: Vec<String>,
    /// How often it called until its token was another one.
    calls: usize,
    refreshed: bool,
    /// How often its person was sent to log in, before its refresh token was revoked and in all.
    visits: usize,
    visits_then: usize,
    /// What its last call ended with.
    end: String,
}

#[tokio::test]
#[ignore = "takes long; .ci/full runs it"]
async fn official_clients_log_in_by_themselves_are_refreshed_and_log_in_anew_once_they_are_revoked() {
    let Some(suite) = Suite::ready() else { return };
    let Some(identity) = Identity::lasting(LASTS).await else { return };
    let up = Upstream::http(Script::new("up", Revision::R2025_11_25)).await;
    let sections = format!(
        "[auth]\nmode = \"oauth\"\n[auth.roles.reader]\nupstreams = [\"*\"]\ntools = [\"up__echo\"]\n\
         [[auth.issuers]]\nissuer = \"{}\"\nscopes = [\"read\"]\nroles = [\"reader\"]\nclock_skew = \"{SKEW}s\"\n\
         [audit]\nfile = \"$FILE.audit\"",
        identity.url
    );
    let config = Config::new().upstream(&up).server("public_url = \"http://127.0.0.1:$PORT\"").section(&sections);
    let gateway = Gateway::serve(&config).await;
    let node = suite.node.display().to_string();
    let (typescript, python) = (suite.script("daily.mjs"), suite.python_script("daily.py"));
    let interpreter = suite.python.display().to_string();
    let days: [Day; 3] = tokio::join!(
        day(&node, vec![&typescript, "sdk1", &gateway.url]),
        day(&node, vec![&typescript, "sdk2", &gateway.url]),
        day(&interpreter, vec![&python, &gateway.url]),
    )
    .into();
    for day in &days {
        assert_eq!(day.tools, ["up__echo"], "those of its role: {day:?}");
        // A client that knows when its token ends refreshes it before; one that does not hears of it from the gateway.
        assert!(day.calls > 0 && day.refreshed && day.visits == 1, "{day:?}");
        let is_refused = ["UnauthorizedError", "LoginWanted"].contains(&&*day.end);
        assert!(is_refused && day.visits_then > day.visits, "nothing but another login helps: {day:?}");
    }
    // What was handed in is written before the end.
    assert!(gateway.stop().await.success());
    let audit = std::fs::read_to_string(format!("{}.audit", gateway.file.display())).expect("it is there");
    let lines: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let calls = lines.iter().filter(|line| line["name"] == "up__echo");
    let principals: BTreeSet<_> = calls.filter_map(|line| line["principal"].as_str()).collect();
    let is_of_ann = |principal: &&str| principal.starts_with("oauth:ann ") && principal.ends_with(&identity.url);
    assert!(principals.len() == days.len() && principals.iter().all(is_of_ann), "one for each client: {principals:?}");
}

/// Has a client spend its day.
async fn day(program: &str, arguments: Vec<&str>) -> Day {
    let mut command = Command::new(program);
    command.args(&arguments).stdin(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let output = within_limit(LIMIT, "its day ends", command.output()).await.expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let day = said.lines().last().and_then(|line| serde_json::from_str(line).ok());
    day.unwrap_or_else(|| panic!("{arguments:?}: {said}{}", String::from_utf8_lossy(&output.stderr)))
}
