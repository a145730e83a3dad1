//! Secrets in places where programs take them, each with a canary: none is shown, and what stands beside them is.

use super::shown::{address, args};
use crate::config::source::Environment;
use crate::config::{Inputs, load};
use crate::runtime::Scratch;

/// No part of a canary is a word that anything else has.
const CANARIES: [&str; 6] = ["hunter", "123456", "pa$s", "qwertz", "correct", "horse"];

fn has_canary(text: &str) -> bool {
    CANARIES.iter().any(|canary| text.contains(canary))
}

/// Those of these lines of arguments that show a canary, as they are shown.
fn shown_of<'a>(lines: impl IntoIterator<Item = &'a [&'a str]>) -> Vec<String> {
    let shown = lines.into_iter().map(|line| format!("{:?}", args(line)));
    shown.filter(|shown| has_canary(shown)).collect()
}

/// What a configuration with this text comes to: its settings, and what is said of it.
fn told(text: &str) -> String {
    let scratch = Scratch::new();
    let files = vec![scratch.write("told.toml", text)];
    match load(Inputs { files, environment: Environment::of(&[("PATH", "/bin")]), ..Inputs::default() }) {
        Ok(loaded) => {
            let settings = loaded.config.written.settings.iter();
            settings.map(|setting| format!("{} = {}\n", setting.key, setting.value)).collect()
        }
        Err(faults) => faults.to_string(),
    }
}

#[test]
fn an_argument_that_begins_as_a_flag_shows_no_value_in_it() {
    let lines = [
        "--token:hunter",
        "--password hunter",
        "--header X-Api-Key:hunter",
        "--p@ss;hunter",
        "--pwd=hunter",
        "--dsn=hunter",
        "--conn=hunter",
        "--connection-string=hunter",
        "--psk=hunter",
        "--pin=1234",
        "--otp=123456",
        "--license=hunter",
        "--session=hunter",
        "--dbpass=hunter",
        "--redispass=hunter",
        "--masterkey=hunter",
        "--privatekey=hunter",
        "--licensekey=hunter",
        "--sk-hunter",
    ];
    assert_eq!(shown_of(lines.iter().map(std::slice::from_ref)), [""; 0]);
    assert_eq!(args(&["--pin=1234"]), ["--pin=[secret]"]);
}

#[test]
fn what_follows_a_word_that_names_a_secret_is_masked_up_to_the_next_plain_flag() {
    let lines: [&[&str]; 27] = [
        &["--header", "Authorization:", "Bearer", "hunter"],
        &["--header", "Authorization: Bearer", "hunter"],
        &["--header=Authorization:", "Bearer", "hunter"],
        &["-H", "Basic", "hunter"],
        &["-H", "X-Api-Key", "hunter"],
        &["--token=", "hunter"],
        &["--token ", "hunter"],
        &["--token:", "hunter"],
        &["--token", "", "hunter"],
        &["token", "hunter"],
        &["token:", "hunter"],
        &["--token", "--hunter"],
        &["--token", "-hunter"],
        &["--password", "correct", "horse"],
        &["--name:", "hunter"],
        &["--pwd", "hunter"],
        &["--dsn", "hunter"],
        &["--conn", "hunter"],
        &["--connection-string", "Server=x;Password=hunter"],
        &["--psk", "hunter"],
        &["--otp", "123456"],
        &["--license", "hunter"],
        &["--session", "hunter"],
        &["--dbpass", "hunter"],
        &["-dsn", "hunter"],
        &["--api-key", "/hunter"],
        &["--privatekey", "hunter"],
    ];
    assert_eq!(shown_of(lines), [""; 0]);
    let line = ["--token", "--hunter", "word", "--port", "8080", "-v", "word"];
    assert_eq!(args(&line).join(" "), "--token [secret] [secret] --port 8080 -v word");
    let docker = ["run", "-e", "API_KEY", "-e", "GITHUB_TOKEN", "ghcr.io/github/github-mcp-server"];
    assert_eq!(args(&docker), docker, "such a variable has its value from elsewhere");
}

#[test]
fn a_password_behind_a_name_is_no_tag_of_an_image() {
    let lines: [&[&str]; 6] = [
        &["--user", "admin:123456"],
        &["-H", "X-Api-Key:123456"],
        &["--basic", "me:123456"],
        &["me/you:123456"],
        &["me/you:hunter"],
        &["123456"],
    ];
    assert_eq!(shown_of(lines), [""; 0]);
    assert_eq!(args(&["--user", "admin:1234"]), ["--user", "[secret]"]);
    for image in ["docker.io/mcp/time:latest", "mcp/time:1.2.3", "mcp/time:v2", "ghcr.io/x/y:3.12-slim", "time:latest"]
    {
        assert_eq!(args(&[image]), [image]);
    }
}

#[test]
fn all_between_the_scheme_and_the_last_at_sign_of_an_address_is_masked() {
    for (url, expected) in [
        ("postgres://me:12/hunter@db/app", "postgres://[secret]@db/app"),
        ("postgres://me:pa$s/hunter@db/app", "postgres://[secret]@db/app"),
        ("postgres://me:hun#ter@db/app", "postgres://[secret]@db/app"),
        ("postgres://me:hun?ter@db/app", "postgres://[secret]@db/app"),
        ("https://hun/ter@db/app", "https://[secret]@db/app"),
        ("postgres://me:12/@db/app", "postgres://[secret]@db/app"),
        ("postgres://me:hunter", "postgres://[secret]"),
        ("postgres://me:123456", "postgres://[secret]"),
        ("https://${X:-qwertz}/x", "https://[secret]/x"),
        ("https://${X:-qw/qwertz/er}/x", "https://[secret]/x"),
        ("https://${X:-qwertz", "https://[secret]"),
        ("https://h.example/x --token hunter", "https://h.example/[secret]"),
    ] {
        assert_eq!(address(url), expected);
        assert_eq!(args(&[&format!("--url={url}")]), [format!("--url={expected}")]);
        assert!(!has_canary(&args(&["--url", url]).join(" ")), "{url}");
    }
    assert!(!has_canary(&args(&["me:hun?ter@db", "DB=postgres://me:hunter@db", "jdbc:x://me:hunter@db"]).join(" ")));
}

#[test]
fn what_begins_as_a_known_key_and_what_stands_behind_a_name_of_one_in_a_path_is_masked() {
    for key in [
        "sk-hunter",
        "sk_hunter",
        "pk_hunter",
        "rk_hunter",
        "ghp_hunter",
        "gho_hunter",
        "ghs_hunter",
        "github_pat_hunter",
        "glpat-hunter",
        "xoxb-hunter",
        "xoxp-hunter",
        "AKIAhunter",
        "ASIAhunter",
        "AIzahunter",
        "eyJhunter",
        "hf_hunter",
        "npm_hunter",
        "dckr_pat_hunter",
        "tl_hunter",
    ] {
        let lines = [key.to_owned(), format!("/srv/{key}"), format!("--x={key}"), format!("x/{key}")];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(shown_of(lines.iter().map(std::slice::from_ref)), [""; 0]);
        assert_eq!(address(&format!("https://h.example/x/{key}/mcp")), "https://h.example/x/[secret]/mcp");
    }
    for (path, expected) in [
        ("webhooks/hunter/horse", "webhooks/[secret]/[secret]"),
        ("webhook/hunter", "webhook/[secret]"),
        ("services/hunter/horse/correct", "services/[secret]/[secret]/[secret]"),
        ("v1/token/hunter", "v1/token/[secret]"),
        ("key/hunter/", "key/[secret]/"),
        ("api-key/hunter", "api-key/[secret]"),
        ("Secret/${KEY}", "Secret/${KEY}"),
        ("oauth/token", "oauth/token"),
    ] {
        assert_eq!(address(&format!("https://h.example/{path}")), format!("https://h.example/{expected}"));
    }
    assert_eq!(args(&["/run/secrets/github"]), ["/run/secrets/github"], "a file is not what stands in it");
    assert_eq!(args(&["/bin/x --opt hunter", "/bin/x me hunter"]), ["/bin/[secret]"; 2]);
}

#[test]
fn what_clearly_is_no_secret_is_shown_behind_flags_that_may_take_one() {
    for line in [
        "run -p 8080:8080 -p 127.0.0.1:80:3000 mcp/time",
        "-p 3000 x",
        "-t stdio",
        "--max-tokens 100 --max-tokens=100",
        "--viewport-size=1280,720 --size 1280x720",
        "--ssh-key /home/me/.ssh/id_rsa /srv/x",
        "--ssh-key=~/.ssh/id_rsa",
        "--header Authorization:${AUTH} x",
        "--from git@github.com:org/repo.git",
        "http://localhost:3000 localhost:3000 127.0.0.1:8080",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(args(&words).join(" "), line);
    }
    let spaced = "/Users/me/Library/Application Support/Claude/x.json";
    assert_eq!(args(&[spaced]), [spaced]);
}

#[test]
fn of_a_command_with_more_than_its_program_the_rest_is_masked() {
    for (command, expected) in [
        ("API_KEY=hunter npx", "[secret]"),
        ("npx -y foo --api-key hunter", "npx [secret]"),
        ("bash -c 'export TOKEN=hunter; foo'", "bash [secret]"),
        ("https://me:hunter@h/x", "[secret]"),
        ("${X:-hunter}", "[secret]"),
        ("npx", "npx"),
        ("python3.11", "python3.11"),
        ("/usr/local/bin/node20", "/usr/local/bin/node20"),
        ("${HOME}/bin/server", "${HOME}/bin/server"),
    ] {
        let told = told(&format!("[upstreams.a]\ncommand = \"{command}\"\n"));
        assert!(!has_canary(&told), "{told}");
        if command != "${HOME}/bin/server" && command != "${X:-hunter}" {
            assert!(told.contains(&format!("upstreams.a.command = \"{expected}\"")), "{told}");
        }
    }
}

#[test]
fn addresses_in_keys_that_hold_others_show_no_credentials() {
    let client = |url: &str| {
        let auth = format!("{{ type = \"client_credentials\", token_url = \"{url}\", client_id = \"me\" }}");
        told(&format!("[upstreams.a]\nurl = \"https://h.example/mcp\"\nauth = {auth}\n"))
    };
    let shown = client("https://as.example/webhooks/hunter?key=hunter");
    assert!(shown.contains("token_url = \"https://as.example/webhooks/[secret]?key=[secret]\""), "{shown}");
    // Each is wrong, too, so that its line is shown.
    for wrong in ["https:/me:hunter@as.example/t", "https://me:hunter@as.example/#x", "//me:hunter@h"] {
        let said = client(wrong);
        assert!(said.contains("token_url") && !has_canary(&said), "{said}");
    }
    for text in [
        "[server]\nallowed_origins = [\"https://me:hunter@h\"]\n",
        "[server]\nallowed_origins = [\"https:/me:hunter@h\"]\n",
        "[server]\nallowed_origins = [\"https://h?key=hunter\"]\n",
        "[upstreams.a]\ncommand = \"sh\"\nroots = [\"file://h/webhooks/hunter\"]\n",
        "[upstreams.a]\ncommand = \"sh\"\nroots = [\"https://me:hunter@h/x\"]\n",
        "[upstreams.a]\ncommand = \"sh\"\nroots = [\"http://h/webhooks/hunter\"]\n",
        "[upstreams.a]\ncommand = \"sh\"\nenv = { API_KEY = 123456789 }\n",
    ] {
        let said = told(text);
        assert!(said.contains("allowed_origins") || said.contains("upstreams.a."), "{said}");
        assert!(!has_canary(&said), "{said}");
    }
    let number = told("[upstreams.a]\ncommand = \"sh\"\nenv = { API_KEY = 123456789 }\n");
    assert!(number.contains("upstreams.a.env.API_KEY = \"[secret]\""), "{number}");
    let plain = told(
        "[server]\nallowed_origins = [\"https://app.example.com\"]\n[upstreams.a]\ncommand = \"sh\"\nroots = [\"file:///home/me/projects\"]\n",
    );
    assert!(plain.contains("[\"https://app.example.com\"]") && plain.contains("[\"file:///home/me/projects\"]"));
}
