//! What a person is told about a configuration: everything at once, each fault at its place, with what to write instead.

// `trunkline check -`.
mod stdin;

use std::path::Path;
use std::process::{Command, Output};

use trunkline_tests::process::{GATEWAY, beside};
use trunkline_tests::scratch::Scratch;

fn run(args: &[&str], env: &[(&str, &str)]) -> Output {
    Command::new(beside(GATEWAY))
        .args(args)
        .env_remove("TRUNKLINE_CONFIG")
        .envs(env.iter().copied())
        .output()
        .expect("it starts")
}

fn check(name: &str, text: &str) -> (bool, String) {
    let scratch = Scratch::new();
    let file = scratch.file(name, text);
    let output = run(&["check", "--config", &file.display().to_string()], &[]);
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn all_faults_are_told_at_once_each_at_its_place() {
    let text =
        "[server]\nlissten = \"127.0.0.1:1\"\n\n[upstreams.one]\ncomand = \"x\"\n\n[naming]\nstrategy = \"flatt\"\n";
    let (good, said) = check("bad.toml", text);
    assert!(!good);
    for place in ["bad.toml:2:1", "bad.toml:5:1", "bad.toml:8:"] {
        assert!(said.contains(place), "{place} in\n{said}");
    }
    for nearest in ["listen", "command", "flat"] {
        assert!(said.contains(nearest), "{nearest} in\n{said}");
    }
}

#[test]
fn a_child_that_several_tokens_share_is_doubtful_until_it_is_said_how_its_questions_are_meant() {
    let tokens = "[[auth.tokens]]\nname = \"a\"\ntoken = \"a-has-a-long-token\"\n[[auth.tokens]]\nname = \"b\"\ntoken = \"b-has-a-long-token\"\n";
    let told = |keys: &str| check("a.toml", &format!("{tokens}[upstreams.files]\ncommand = \"sh\"\n{keys}\n"));
    for keys in ["", "offer = [\"elicitation\"]"] {
        let (good, said) = told(keys);
        assert!(good && said.contains("warning[shared-questions]"), "{said}");
        assert!(said.contains("`sharing = \"per-principal\"` under [upstreams.files]"), "{said}");
    }
    for keys in ["sharing = \"per-principal\"", "offer = []", "era = \"modern\""] {
        let (good, said) = told(keys);
        assert!(good && !said.contains("shared-questions"), "{keys}: {said}");
    }
}

#[test]
fn a_hosts_file_is_taken_as_it_is() {
    let text = r#"{ "mcpServers": { "My Clock": { "command": "sh", "args": ["-c", "true"] } }, "theme": "dark" }"#;
    let (good, said) = check("mcp.json", text);
    assert!(good, "{said}");
}

#[test]
fn broken_syntax_is_told_with_its_place() {
    for (name, text, place) in
        [("a.toml", "[server\n", "a.toml:1:"), ("b.json", "{\n  \"mcpServers\": [,]\n}", "b.json:2:")]
    {
        let (good, said) = check(name, text);
        assert!(!good && said.contains(place), "{place} in\n{said}");
    }
}

#[test]
fn a_syntax_fault_is_told_beside_the_faults_of_other_files_and_lines() {
    let scratch = Scratch::new();
    let one = scratch.file("one.toml", "[upstreams.a]\ncommand = npx\nstart = \"never\"\n[upstreams.b]\nurl = oops\n");
    let two = scratch.file("two.toml", "[upstreams.c]\ncommand = \"trunkline-no-such-program\"\nkolour = 1\n");
    let two_good = scratch.file("three.toml", "[upstreams.d]\ncommand = \"trunkline-no-such-program\"\n");
    let files = [&one, &two, &two_good].map(|file| file.display().to_string());
    let output = run(&["check", "--json", "-c", &files[0], "-c", &files[1], "-c", &files[2]], &[]);
    assert!(!output.status.success());
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let faults = said["faults"].as_array().unwrap();
    let kinds: Vec<&str> = faults.iter().filter_map(|fault| fault["kind"].as_str()).collect();
    assert_eq!(kinds, ["syntax", "bad-value", "syntax", "unknown-key", "no-command", "no-command"], "{said:#}");
    // What is to be served is strict.
    let output = run(&["serve", "-c", &files[0]], &[]);
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("error[syntax]"));
}

#[test]
fn the_example_is_right() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config.example.toml");
    let output = run(&["check", "--config", &example.display().to_string()], &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_environment_lies_over_the_file() {
    let scratch = Scratch::new();
    let file = scratch.file("a.toml", "[naming]\nstrategy = \"prefix\"\n");
    let output =
        run(&["check", "--config", &file.display().to_string()], &[("TRUNKLINE_NAMING__STRATEGY", "sideways")]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && said.contains("TRUNKLINE_NAMING__STRATEGY"), "{said}");
}

#[test]
fn the_version_is_told() {
    let output = run(&["version"], &[]);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains(env!("CARGO_PKG_VERSION")));
}
