//! Logins that each principal has of its own: whose one is, who has one, and whose ends.

use serde_json::Value;
use trunkline_tests::client::{Client, Reach};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::process::{GATEWAY, Program};
use trunkline_tests::upstream::Way;
use trunkline_tests::within::{until, within};

use super::{AUTH, Guarded, MODERN, log_in, said};

pub(crate) const OWN: &str = "auth = { type = \"oauth\", logins = \"per-principal\" }";
const CAROL: &str = "oauth:carol app https://as.example";

/// A gateway at which two principals are told apart by their tokens.
pub(crate) fn two(guarded: &Guarded, auth: &str) -> Config {
    let token = |name: &str| format!("[[auth.tokens]]\nname = \"{name}\"\ntoken = \"{name}-has-a-long-token\"\n");
    Config::new().upstream_with(&guarded.upstream, auth).section(&token("ada")).section(&token("bob"))
}

pub(crate) async fn run(gateway: &Gateway, command: &[&str]) -> String {
    said(&within("it answers", gateway.command(command).output()).await.expect("it runs")).1
}

async fn logged_in_as(gateway: &Gateway, principal: &str, shown: &str) {
    let (is_done, text) = said(&log_in(gateway, &["--as", principal]).await);
    assert!(is_done && text.contains(&format!("logged in to `up` as `{shown}` at http://127.0.0.1:")), "{text}");
    assert!(text.contains(&format!("to log in to `up` as `{shown}`, follow this link")), "{text}");
}

fn kept(gateway: &Gateway) -> Vec<std::path::PathBuf> {
    let folder = std::fs::read_dir(gateway.state().join("logins")).expect("a folder");
    let all = folder.map(|file| file.expect("a file").path());
    all.filter(|path| path.extension().is_none()).collect()
}

#[tokio::test]
async fn a_login_is_that_of_the_principal_that_is_named_and_only_its_own_is_ended_with_it() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    guarded.identity.revokes();
    let gateway = Gateway::serve(&two(&guarded, OWN)).await;
    for (more, words) in [
        (
            &[][..],
            "each principal has a login of its own at `up`: say whose it is, as in `trunkline login up --as ada`",
        ),
        (&["--as", "carol"], "no token is named `carol`"),
    ] {
        let (is_done, text) = said(&log_in(&gateway, more).await);
        assert!(!is_done && text.contains(words), "{text}");
    }
    assert_eq!(guarded.identity.asked.mark(), 0);
    logged_in_as(&gateway, "ada", "token:ada").await;
    let json = log_in(&gateway, &["--as", "token:bob", "--json"]).await;
    let row: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!((&row["name"], &row["principal"]), (&"up".into(), &"token:bob".into()));
    assert_eq!(kept(&gateway).len(), 2);
    for command in ["check", "doctor"] {
        let text = run(&gateway, &[command]).await;
        assert!(text.contains("upstream `up`: 2 principals have logged in: token:ada, token:bob"), "{text}");
    }
    let text = run(&gateway, &["logout", "up", "--as", "ada"]).await;
    let out = |principal: &str| {
        format!("logged out of `up` as `{principal}` at {}; its tokens are revoked\n", guarded.identity.url)
    };
    assert!(text.contains(&out("token:ada")) && !text.contains("bob"), "{text}");
    let revoked = guarded.identity.asked.all().into_iter().filter(|(what, _)| what == "POST /revoke");
    let revoked: Vec<_> = revoked.map(|(_, fields)| fields["token"].clone()).collect();
    assert_eq!(revoked, ["canary-refresh-1", "canary-access-1"], "those of no other");
    let text = run(&gateway, &["check"]).await;
    assert!(text.contains("upstream `up`: 1 principal has logged in: token:bob"), "{text}");
    assert!(
        run(&gateway, &["logout", "up", "--as", "ada"]).await.contains("nobody was logged in to `up` as `token:ada`")
    );
    // Without a principal all logins of the upstream end, and it is told whose they were.
    logged_in_as(&gateway, CAROL, CAROL).await;
    let text = run(&gateway, &["logout", "up"]).await;
    assert!(text.contains(&out("token:bob")) && text.contains(&out(CAROL)) && !text.contains("nobody"), "{text}");
    assert_eq!(run(&gateway, &["logout", "up"]).await.matches("nobody was logged in to `up`").count(), 1);
    assert!(kept(&gateway).is_empty());
}

#[tokio::test]
async fn stdio_says_what_to_run_where_principals_are_told_apart_and_that_logs_it_in() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    let gateway = Gateway::serve(&two(&guarded, OWN)).await;
    let home = gateway.runtime().parent().expect("a home").display().to_string();
    let mut program = Program::ours(GATEWAY, &["stdio", "--config", &gateway.file.display().to_string()]);
    program.env.extend([("HOME".to_owned(), home.clone()), ("XDG_RUNTIME_DIR".to_owned(), format!("{home}/run"))]);
    let client = Client::connect(&Reach::Child(program), MODERN).await;
    let refused = client.call_once("up__echo", "{}").await.text();
    assert!(refused.contains("needs login; run `trunkline login up --as anonymous`"), "{refused}");
    let (is_done, text) = said(&log_in(&gateway, &["--as", "anonymous"]).await);
    assert!(is_done && text.contains("logged in to `up` at http://127.0.0.1:"), "{text}");
    client.tools_until("it notices", |tools| tools.contains(&"up__echo".into())).await;
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    let ada = Client::bearing(&gateway.reach(), MODERN, "ada-has-a-long-token").await;
    assert_eq!(ada.tools().await, ["up__trunkline_login"], "it is not that of a token");
    // One who could be there, and is not known, is logged in with a warning; one whom nobody can be is not.
    let (is_done, text) = said(&log_in(&gateway, &["--as", CAROL]).await);
    let doubt = format!("warning: nobody can call as `{CAROL}` now: `https://as.example` is none of [[auth.issuers]]");
    assert!(is_done && text.contains(&doubt), "{text}");
    let asked = guarded.identity.asked.mark();
    for nobody in ["oauth:carol", "unix:carol", &format!("token:{}", "x".repeat(20_000))] {
        let (is_done, text) = said(&log_in(&gateway, &["--as", nobody]).await);
        assert!(!is_done && text.len() < 300, "{text}");
    }
    assert_eq!(guarded.identity.asked.mark(), asked, "for that nobody is asked anything");
}

#[tokio::test]
async fn all_logins_of_one_principal_end_together_also_those_of_upstreams_that_are_no_more() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    guarded.identity.revokes();
    let gateway = Gateway::serve(&two(&guarded, OWN)).await;
    logged_in_as(&gateway, "ada", "token:ada").await;
    logged_in_as(&gateway, "bob", "token:bob").await;
    gateway.configure(&two(&guarded, AUTH));
    let text = run(&gateway, &["login", "up", "--as", "ada"]).await;
    let advice = "all principals share one login at `up`: leave `--as` away, or write auth = { type = \"oauth\", logins = \
                  \"per-principal\" } in [upstreams.up]";
    assert!(text.contains(advice), "{text}");
    assert!(run(&gateway, &["logout", "up", "--as", "token:carol"]).await.contains(advice), "there is none to end");
    let rows: Value =
        serde_json::from_str(&run(&gateway, &["logout", "up", "--as", "ada", "--json"]).await).expect("JSON");
    assert_eq!(rows.as_array().map(Vec::len), Some(1), "{rows}");
    assert_eq!((&rows[0]["principal"], &rows[0]["revoked"]), (&"token:ada".into(), &true.into()), "{rows}");
    gateway.configure(&two(&guarded, "enabled = false"));
    let text = run(&gateway, &["logout", "--all", "--as", "ada"]).await;
    assert!(text.contains("`token:ada` was not logged in to any upstream"), "{text}");
    let text = run(&gateway, &["logout", "--all", "--as", "bob"]).await;
    assert!(text.contains("logged out of `up` as `token:bob`"), "{text}");
    assert!(run(&gateway, &["logout", "--all"]).await.contains("nobody was logged in to any upstream"));
}

#[tokio::test]
async fn check_names_whose_login_has_ended_or_is_that_of_another_and_what_to_run() {
    let guarded = Guarded::start(Way::Http, MODERN).await;
    guarded.identity.gives_no_refresh();
    let gateway = Gateway::serve(&two(&guarded, OWN)).await;
    let text = run(&gateway, &["check"]).await;
    assert!(text.contains("upstream `up`: nobody has logged in") && !text.contains("needs login"), "{text}");
    logged_in_as(&gateway, "ada", "token:ada").await;
    let of_ada = kept(&gateway).remove(0);
    guarded.identity.lasting(1);
    logged_in_as(&gateway, "bob", "token:bob").await;
    let of_bob = kept(&gateway).into_iter().find(|path| *path != of_ada).expect("another file");
    let ended = |principal: &str, text: &str, why: &str| {
        let said = text.replace('\n', " ").split_whitespace().collect::<Vec<_>>().join(" ");
        let (name, run) =
            (format!("`token:{principal}`: needs login: {why}"), format!("login up --as token:{principal}"));
        said.contains(&name) && said.contains(&run)
    };
    let text = until("it has ended", || async {
        let text = run(&gateway, &["check"]).await;
        ended("bob", &text, "the last login has ended").then_some(text)
    })
    .await;
    assert!(text.contains("1 principal has logged in: token:ada") && !ended("ada", &text, ""), "{text}");
    assert!(ended("bob", &run(&gateway, &["doctor"]).await, "the last login has ended"));
    // What one has kept is of no use in the place of another.
    std::fs::copy(&of_ada, &of_bob).expect("it can be copied");
    let text = run(&gateway, &["check"]).await;
    assert!(ended("bob", &text, "the login that is kept is that of another principal"), "{text}");
    let text = run(&gateway, &["logout", "up", "--as", "bob"]).await;
    assert!(text.contains("it is the login of another principal") && !of_bob.exists() && of_ada.exists(), "{text}");
}
