//! Logins that are missing, end or are revoked: what is said of them, what is still sent, and what a gateway that ends keeps.

use std::time::Duration;

use serde_json::Value;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::script::Script;
use trunkline_tests::upstream::{Upstream, Way};
use trunkline_tests::within::{within, within_limit};

use super::{AT_ONCE, AUTH, Guarded, LEGACY, MODERN, NEEDS, logged_in, refused, said, up};

const ENDED: &str = "needs login: the last login has ended or was revoked; run `trunkline login up`";
/// So long the authorization server takes for an answer: longer than a gateway that ends waits for others.
const SLOW: Duration = Duration::from_secs(5);

async fn run(gateway: &Gateway, command: &[&str]) -> String {
    said(&within("it answers", gateway.command(command).output()).await.expect("it runs")).1
}

#[tokio::test]
async fn a_token_that_is_good_for_nothing_any_more_is_shown_no_more_until_another_login_is_there() {
    for (way, revision) in [(Way::Http, LEGACY), (Way::Http, MODERN)] {
        let guarded = Guarded::start(way, revision).await;
        guarded.identity.gives_no_refresh();
        let gateway = guarded.serve("").await;
        logged_in(&gateway).await;
        let client = up(&gateway, revision).await;
        client.call("up__echo", "{}").await.text();
        guarded.guard.revoke();
        let why = refused(&client).await;
        assert!(why.contains(ENDED), "{why}");
        let asked = guarded.guard.judged.mark();
        for _ in 0..5 {
            let why = refused(&client).await;
            assert!(why.contains(ENDED), "{why}");
        }
        assert_eq!(guarded.guard.judged.mark(), asked, "nothing is sent with a dead token");
        gateway.look_until("/readyz?verbose", "it is shown", |page| page.contains(ENDED)).await;
        logged_in(&gateway).await;
        assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        gateway.look_until("/readyz?verbose", "it is well", |page| page.contains("  ready  ")).await;
    }
}

#[tokio::test]
async fn a_request_that_alone_is_refused_takes_the_login_from_no_other_and_says_what_to_do() {
    for gives_refresh in [false, true] {
        let guarded = Guarded::start(Way::Http, MODERN).await;
        if !gives_refresh {
            guarded.identity.gives_no_refresh();
        }
        let gateway = guarded.serve("").await;
        logged_in(&gateway).await;
        let client = up(&gateway, MODERN).await;
        guarded.guard.closes("tools/call", true);
        for _ in 0..3 {
            let why = refused(&client).await;
            assert!(why.contains("run `trunkline login up`") && !why.contains("`headers`"), "{why}");
            assert!(!why.contains("needs login"), "others are taken: {why}");
            assert!(gives_refresh || why.contains("the upstream refuses this request, and not its login"), "{why}");
        }
        let page = String::from_utf8_lossy(&gateway.look("/readyz?verbose").await.body).into_owned();
        assert!(!page.contains("needs login"), "{page}");
        assert!(gives_refresh || page.contains("  ready  "), "{page}");
        guarded.guard.closes("tools/call", false);
        assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        assert_eq!(guarded.identity.granted("authorization_code"), 1, "by the same login");
    }
}

#[tokio::test]
async fn check_and_doctor_name_a_login_that_is_missing_and_status_shows_how_long_one_lasts() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    guarded.identity.lasting(3600);
    let gateway = guarded.serve("").await;
    let file = gateway.text(&Config::new().upstream_with(&guarded.upstream, AUTH));
    assert!(file.contains("oauth"), "{file}");
    for command in [&["check"][..], &["doctor"]] {
        let text = run(&gateway, command).await;
        // The doctor also says how the upstream stands in the gateway that runs.
        let whole = format!("fix: run `trunkline login up --config {}`", gateway.file.display());
        assert!(command == ["check"] || text.contains(&whole), "{text}");
        let line = text.lines().find(|line| line.contains("upstream `up`")).unwrap_or_default();
        assert!(line.contains("needs login") && text.contains("run `trunkline login up"), "{text}");
    }
    logged_in(&gateway).await;
    // The doctor says how the upstream stands in the gateway that runs: it has noticed the login by then.
    up(&gateway, MODERN).await;
    for command in [&["check"][..], &["doctor"]] {
        let text = run(&gateway, command).await;
        assert!(!text.contains("needs login"), "{command:?}: {text}");
    }
    let text = run(&gateway, &["status", "up"]).await;
    assert!(text.contains(&format!("login       at {}; its token ends in 59 min", guarded.identity.url)), "{text}");
    assert!(text.contains("and is refreshed without you") && !text.contains("canary"), "{text}");
    let row: Value = serde_json::from_str(&run(&gateway, &["status", "up", "--json"]).await).expect("JSON");
    let left = row["login"]["expires_in_seconds"].as_u64().expect("a number");
    assert!((3000..=3600).contains(&left) && row["login"]["refreshed"] == true, "{row}");
}

#[tokio::test]
async fn a_gateway_that_ends_while_tokens_are_refreshed_keeps_the_next_ones() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let config =
        || Config::new().upstream_with(&guarded.upstream, AUTH).section("[server.shutdown]\ngrace = \"100ms\"");
    let mut gateway = Gateway::serve(&config()).await;
    logged_in(&gateway).await;
    let client = up(&gateway, MODERN).await;
    guarded.guard.revoke();
    guarded.identity.hold(true);
    let calling = client.call_once("up__echo", "{}");
    let ending = async {
        let is_asked = |(what, fields): &(String, trunkline_tests::identity::Fields)| {
            (what == "POST /token" && fields["grant_type"] == "refresh_token").then_some(())
        };
        guarded.identity.asked.wait("the token is refreshed", is_asked).await;
        let slow = async {
            tokio::time::sleep(SLOW).await;
            guarded.identity.hold(false);
        };
        let (status, ()) = tokio::join!(gateway.stop(), slow);
        assert!(status.success(), "{status}");
    };
    let _ = tokio::join!(calling, ending);
    drop(client);
    gateway.again(&config()).await;
    let client = up(&gateway, MODERN).await;
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    assert_eq!(guarded.identity.granted("refresh_token"), 1, "the token that came late is kept");
}

#[tokio::test]
async fn a_logout_revokes_the_tokens_keeps_none_and_a_running_gateway_notices_at_once() {
    for (way, revision) in [(Way::Http, LEGACY), (Way::Http, MODERN), (Way::WebSocket, LEGACY)] {
        let guarded = Guarded::start(way, revision).await;
        guarded.identity.revokes();
        let gateway = guarded.serve("").await;
        assert_eq!(run(&gateway, &["logout", "up", "--json"]).await.matches("\"was_logged_in\": false").count(), 1);
        logged_in(&gateway).await;
        let client = up(&gateway, revision).await;
        client.call("up__echo", "{}").await.text();
        let text = run(&gateway, &["logout", "up"]).await;
        let expected = format!("logged out of `up` at {}; its tokens are revoked\n", guarded.identity.url);
        assert!(text.contains(&expected) && !text.contains("canary"), "{text}");
        let revoked: Vec<_> =
            guarded.identity.asked.all().into_iter().filter(|(what, _)| what == "POST /revoke").collect();
        let of = |name: &str| revoked.iter().map(|(_, fields)| fields[name].clone()).collect::<Vec<_>>();
        assert_eq!(of("token"), ["canary-refresh-1", "canary-access-1"]);
        assert_eq!(of("token_type_hint"), ["refresh_token", "access_token"]);
        assert_eq!(of("client_id"), ["registered-1", "registered-1"]);
        // It would be asked whether it is there after half a minute.
        let shows = |page: &str| page.contains(NEEDS) && page.contains("  failed  ");
        let noticed = gateway.look_until("/readyz?verbose", "it is noticed", shows);
        within_limit(AT_ONCE, "it is noticed without a call", noticed).await;
        let asked = guarded.guard.judged.mark();
        assert!(refused(&client).await.contains(NEEDS));
        let sent = guarded.guard.judged.all().split_off(asked);
        assert!(sent.is_empty(), "nothing is sent any more: {way:?} {revision:?} {sent:?}");
        logged_in(&gateway).await;
        up(&gateway, revision).await.call("up__echo", "{}").await.text();
    }
}

#[tokio::test]
async fn a_logout_whose_tokens_cannot_be_revoked_says_so_and_keeps_none_all_the_same() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let gateway = guarded.serve("").await;
    logged_in(&gateway).await;
    let text = run(&gateway, &["logout", "--all"]).await;
    let why = "its tokens may be good until they end: the authorization server offers no revocation";
    assert!(text.contains(why), "{text}");
    assert!(run(&gateway, &["logout", "up"]).await.contains("nobody was logged in to `up`"));
    assert_eq!(run(&gateway, &["logout", "--all", "--json"]).await, "[]\n");
    guarded.identity.revokes();
    logged_in(&gateway).await;
    guarded.identity.refuses(Some(503));
    let rows: Value = serde_json::from_str(&run(&gateway, &["logout", "up", "--json"]).await).expect("JSON");
    assert_eq!((&rows[0]["was_logged_in"], &rows[0]["revoked"]), (&true.into(), &false.into()), "{rows}");
    assert_eq!(rows[0]["why"], "the authorization server answers HTTP 503");
    let folder = std::fs::read_dir(gateway.state().join("logins")).expect("a folder");
    let names: Vec<_> = folder.map(|file| file.expect("a file").file_name().into_string().expect("text")).collect();
    assert!(names.iter().all(|name| name.ends_with(".lock")), "{names:?}");
    // A name that nobody can log in to is said to be one.
    let text = run(&gateway, &["logout", "nobody"]).await;
    assert!(text.contains("no upstream `nobody`. Known: up"), "{text}");
}

#[tokio::test]
async fn the_login_of_an_upstream_that_is_no_more_or_is_another_one_now_is_ended_by_its_name_and_by_all() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let moved = Guarded::start(Way::Http, MODERN).await;
    guarded.identity.revokes();
    let gateway = guarded.serve("").await;
    let other = Upstream::start(Way::Http, Script::new("other", MODERN)).await;
    let headers = "headers = { Authorization = \"Bearer canary-of-the-file\" }";
    let with = |keys: &str| Config::new().upstream_with(&guarded.upstream, keys);
    let expected = format!("logged out of `up` at {}; its tokens are revoked\n", guarded.identity.url);
    for config in [
        with(headers),
        with("enabled = false"),
        Config::new().upstream(&other),
        Config::new().upstream_with(&moved.upstream, AUTH),
    ] {
        for (what, is_all) in [("up", false), ("--all", true)] {
            gateway.configure(&with(AUTH));
            logged_in(&gateway).await;
            gateway.configure(&config);
            let text = run(&gateway, &["logout", what]).await;
            assert!(text.contains(&expected) && text.contains("a running gateway notices by itself"), "{text}");
            let text = run(&gateway, &["logout", what]).await;
            let is_said = match is_all {
                true => text.contains("nobody was logged in to any upstream"),
                false => text.contains("`up`"),
            };
            assert!(is_said && !text.contains("logged out") && !text.contains("notices"), "{text}");
        }
    }
    assert_eq!(guarded.identity.asked.all().iter().filter(|(what, _)| what == "POST /revoke").count(), 16);
    // What cannot be read may be another one's.
    let path = gateway.state().join("logins").join("0".repeat(32));
    std::fs::write(&path, "of another key").expect("it can be written");
    let text = run(&gateway, &["logout", "--all"]).await;
    assert!(
        text.contains("is left as it is, since it may be a login of another configuration") && path.exists(),
        "{text}"
    );
}
