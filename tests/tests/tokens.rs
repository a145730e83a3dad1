//! Tokens of clients: made and taken back by a command, and what their end ends while a gateway runs.

use std::process::Output;
use std::time::{Duration, SystemTime};

use trunkline_tests::client::http::exchange;
use trunkline_tests::client::{Answer, Client, Request};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{until, within};

const LEGACY: Revision = Revision::R2025_11_25;
const MODERN: Revision = Revision::MODERN;
const ROOT: &str = "root-has-a-long-token";
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;

fn config(upstream: &Upstream, more: &str) -> Config {
    let root = format!("[[auth.tokens]]\nname = \"root\"\ntoken = \"{ROOT}\" # stays\n");
    Config::new().upstream(upstream).section(&format!("[auth.roles.all]\nupstreams = [\"*\"]\n{root}{more}"))
}

async fn greet(gateway: &Gateway, token: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("authorization", bearer.as_str()),
    ];
    exchange(&gateway.url, "POST", &headers, INITIALIZE).await
}

async fn client(gateway: &Gateway, token: &str, revision: Revision) -> Client {
    Client::bearing(&gateway.reach(), revision, token).await
}

/// What a command says on stdout, and on stderr.
async fn run(gateway: &Gateway, args: &[&str]) -> (bool, String, String) {
    let run = within("it answers", gateway.command(args).output()).await.expect("it runs");
    let Output { status, stdout, stderr } = run;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.success(), text(stdout), text(stderr))
}

/// A session, a stream of a session and a listen call of this token; resolves when all of them have ended.
async fn ends(gateway: &Gateway, token: &str, end: impl AsyncFnOnce()) {
    let (session, stateless) = (client(gateway, token, LEGACY).await, client(gateway, token, MODERN).await);
    let stream = session.listen(&[]).await;
    let filter = "{\"notifications\":{\"toolsListChanged\":true}}";
    let (mut ear, _) = stateless.listen_by(Request::new("subscriptions/listen", filter)).await;
    end().await;
    let listen = ear.listen.as_mut().expect("it is a call");
    within("the listen call ends", listen.settles()).await;
    until("the session is there no more", || async {
        let answer = session.request(Request::new("tools/list", "{}")).await;
        (answer.status == 401).then_some(())
    })
    .await;
    drop((stream, ear));
}

#[tokio::test]
async fn a_new_token_is_shown_once_and_taken_by_a_running_gateway_and_a_revoked_one_ends_what_is_open() {
    let up = Upstream::http(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&config(&up, "")).await;
    let root = client(&gateway, ROOT, LEGACY).await;
    root.tools_until("the upstream is there", |tools| tools.contains(&"up__echo".into())).await;
    let (good, token, said) = run(&gateway, &["token", "new", "ci", "--role", "all", "--expires", "30d"]).await;
    let token = token.trim_end();
    assert!(good && token.starts_with("tl_") && token.len() > 40 && !token.contains('\n'), "{token} {said}");
    assert!(said.contains("added `ci`") && said.contains("shown this once") && !said.contains(token), "{said}");
    let text = std::fs::read_to_string(&gateway.file).expect("it is there");
    assert!(!text.contains(token) && text.contains("hash = \"sha256:") && text.contains("# stays"), "{text}");
    until("it is taken", || async { (greet(&gateway, token).await.status == 200).then_some(()) }).await;

    let (good, listed, _) = run(&gateway, &["token", "ls"]).await;
    let row = |name: &str| listed.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(good && row("ci").contains(" all ") && row("ci").ends_with('Z'), "{listed}");
    assert!(row("root").contains("everything") && row("root").ends_with("never"), "{listed}");
    let digest = text.split("sha256:").nth(1).expect("a digest").split('"').next().expect("a digest").to_owned();
    let (_, json, _) = run(&gateway, &["token", "ls", "--json"]).await;
    for secret in [token, ROOT, &digest] {
        assert!(!listed.contains(secret) && !json.contains(secret), "{secret}");
    }
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&value["tokens"][1]["name"], &value["tokens"][1]["expired"]), (&"ci".into(), &false.into()), "{json}");

    ends(&gateway, token, async || {
        let (good, said, _) = run(&gateway, &["token", "revoke", "ci"]).await;
        assert!(good && said.contains("revoked `ci`"), "{said}");
    })
    .await;
    assert!(root.tools().await.contains(&"up__echo".into()), "nobody else notices");
    for (args, says) in [
        (&["token", "revoke", "ci"][..], "no token `ci` in"),
        (&["token", "new", "root"], "is named `root`"),
        (&["token", "new", "x", "--role", "al"], "did you mean \"all\"?"),
        (&["token", "new", "x", "--expires", "soon"], "as 30d, 12h or 8w"),
        (&["token", "new", "x", "--expires", "2020-01-01"], "has passed already"),
        (&["token", "revoke", "root"], "`root` is the last token in"),
    ] {
        let before = std::fs::read_to_string(&gateway.file).expect("it is there");
        let (good, said, told) = run(&gateway, args).await;
        assert!(!good && (said + &told).contains(says), "{args:?}: {told}");
        assert_eq!(std::fs::read_to_string(&gateway.file).expect("it is there"), before);
    }
}

/// A moment so soon, as it is written in a configuration.
fn soon(seconds: u64) -> String {
    let at = SystemTime::now() + Duration::from_secs(seconds);
    let at = at.duration_since(SystemTime::UNIX_EPOCH).expect("it is later").as_secs();
    let run = std::process::Command::new("date").args(["-u", "-d", &format!("@{at}"), "+%FT%TZ"]).output();
    String::from_utf8_lossy(&run.expect("it runs").stdout).trim().to_owned()
}

#[tokio::test]
async fn a_token_that_expires_ends_what_is_open_and_no_one_elses() {
    let up = Upstream::http(Script::new("up", LEGACY)).await;
    let token = |expires: &str| {
        format!("[[auth.tokens]]\nname = \"ann\"\ntoken = \"ann-has-a-long-token\"\nexpires = \"{expires}\"\n")
    };
    let gateway = Gateway::serve(&config(&up, &token("2999-01-01"))).await;
    let root = client(&gateway, ROOT, LEGACY).await;
    root.tools_until("the upstream is there", |tools| tools.contains(&"up__echo".into())).await;
    let ear = root.listen(&[]).await;
    ends(&gateway, "ann-has-a-long-token", async || gateway.configure(&config(&up, &token(&soon(3))))).await;
    gateway.says(&["tokens expired", "token:ann"]).await;
    let refused = greet(&gateway, "ann-has-a-long-token").await;
    assert_eq!(refused.status, 401);
    let challenge = refused.header("www-authenticate").expect("a challenge");
    assert!(challenge.contains("invalid_token") && challenge.contains("expired"), "{challenge}");
    assert!(String::from_utf8_lossy(&refused.body).contains("this token has expired"));
    assert!(root.tools().await.contains(&"up__echo".into()) && ear.is_stream());
    let metrics = gateway.look("/metrics").await;
    assert!(String::from_utf8_lossy(&metrics.body).contains("trunkline_auth_total{outcome=\"expired\"}"));
    // A later end is a token that is good again.
    gateway.configure(&config(&up, &token("2999-01-01")));
    until("it is good again", || async { (greet(&gateway, "ann-has-a-long-token").await.status == 200).then_some(()) })
        .await;
}
