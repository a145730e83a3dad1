//! What is judged of files and servers that are not as they should be, and the words for it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use trunkline_tests::process::{GATEWAY, beside};
use trunkline_tests::scratch::Scratch;

use super::{put, read, run, text};

/// The problems that the doctor tells, and what to do about each.
fn problems(home: &Path, args: &[&str]) -> Vec<(String, String)> {
    let output = run(home, &[&["doctor", "--json"], args].concat());
    let said: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    let problems = said["problems"].as_array().expect("a list").iter();
    problems.map(|one| (text(one, "text"), text(one, "fix"))).collect()
}

#[test]
fn what_can_be_judged_of_a_server_without_its_variable_is_told_beside_it() {
    let scratch = Scratch::new();
    let home = scratch.path();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it has one");
    let needs = "${NOT_SET_HERE}";
    put(
        home,
        "trunkline.toml",
        &format!(
            "[upstreams.a]\ncommand = 'npxx'\nargs = ['{needs}']\noptional = true\n\
             [upstreams.b]\nurl = 'http://{closed}/'\nheaders = {{ K = '{needs}' }}\noptional = true\n"
        ),
    );
    let servers = format!(r#"{{"mcpServers": {{"a": {{"command": "npxx", "args": ["{needs}"]}}}}}}"#);
    put(home, "mcp.json", &servers);
    let own = problems(home, &[]);
    let of_host = problems(home, &["--config", "mcp.json"]);
    let tells = |problems: &[(String, String)], what: &str| problems.iter().any(|(text, _)| text.contains(what));
    assert!(tells(&own, "`npxx` not found") && tells(&own, "cannot connect to"), "{own:#?}");
    assert!(tells(&of_host, "`npxx` not found"), "{of_host:#?}");
    assert!(text(&run(home, &["check"])).contains("warning[no-command]: upstream `a`"));
}

#[test]
fn the_doctor_knows_the_files_of_a_project_and_what_to_do_about_the_files_of_hosts() {
    let scratch = Scratch::new();
    let home = scratch.path();
    put(home, "work/trunkline.toml", "[upstreams.a]\ncommand = '/bin/sh'\n");
    let work = home.join("work");
    let doctor = |args: &[&str]| {
        let mut command = Command::new(beside(GATEWAY));
        command.env_clear().env("HOME", home).env("PATH", "/nonexistent").current_dir(&work);
        text(&command.args(args).output().expect("it starts"))
    };
    assert!(doctor(&["install", "cursor", "--scope", "project"]).starts_with("exit 0"));
    let well = doctor(&["doctor"]);
    assert!(well.starts_with("exit 0") && well.contains("\nhosts: Cursor\n"), "{well}");
    let file = work.join(".cursor/mcp.json");
    let entry = read(&file);
    put(&work, ".cursor/mcp.json", &entry.replace("work/trunkline.toml", "work/gone.toml"));
    let gone = doctor(&["doctor", "--host", "cursor"]);
    assert!(gone.contains("fix: run `trunkline install cursor --scope project`"), "{gone}");
    put(&work, ".cursor/mcp.json", "{");
    let broken = doctor(&["doctor"]);
    let shows = format!("`trunkline check --config {}` shows it", file.display());
    assert!(broken.contains(&shows), "{broken}");
    std::fs::remove_file(&file).expect("it is ours");
    std::os::unix::fs::symlink("nowhere", &file).expect("it is ours");
    let leads_nowhere = doctor(&["doctor"]);
    let why =
        format!("cannot read {}: it is a link to a file that is not there\n   fix: remove the link", file.display());
    assert!(leads_nowhere.contains(&why), "{leads_nowhere}");
    std::fs::remove_file(&file).expect("it is ours");
    std::fs::create_dir(&file).expect("it is ours");
    for args in [&["doctor"][..], &["import", "cursor"]] {
        let folder = doctor(args);
        assert!(folder.contains("it is a folder") && folder.contains("the host reads no such thing"), "{folder}");
    }
}

#[test]
fn add_and_remove_say_that_a_pipe_is_no_configuration_and_when_a_gateway_takes_what_they_wrote() {
    let scratch = Scratch::new();
    let home = scratch.path();
    let pipe = home.join("trunkline.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("it starts").success());
    // Whoever opens it to read it would wait for what writes to it.
    let ends = |args: &[&str]| {
        let mut command = Command::new("timeout");
        command
            .arg("20")
            .arg(beside(GATEWAY))
            .args(args)
            .env("HOME", home)
            .env_remove("TRUNKLINE_CONFIG")
            .current_dir(home);
        text(&command.output().expect("it starts"))
    };
    for args in [&["add", "x", "--", "sh"][..], &["remove", "x"]] {
        let said = ends(args);
        assert!(said.starts_with("exit 1") && said.contains("not a regular file"), "{args:?}: {said}");
    }
    std::fs::remove_file(&pipe).expect("it is ours");
    put(home, "trunkline.toml", "[upstreams.bad]\nurl = 'nope'\n[upstreams.good]\ncommand = 'sh'\n");
    let later = "a running gateway takes it over only once 1 fault of the configuration is mended";
    let said = text(&run(home, &["add", "x", "--", "sh"]));
    assert!(said.starts_with("exit 0") && said.contains(later), "{said}");
    let said = text(&run(home, &["remove", "good"]));
    assert!(said.starts_with("exit 0") && said.contains(later), "{said}");
    let said = text(&run(home, &["remove", "bad"]));
    assert!(said.starts_with("exit 0") && said.contains("a running gateway takes it over by itself"), "{said}");
}

#[test]
fn a_name_that_stands_twice_is_told_in_the_line_that_it_has_before_install() {
    let scratch = Scratch::new();
    let home = scratch.path();
    put(home, "trunkline.toml", "[upstreams.a]\ncommand = 'sh'\n");
    put(home, ".cursor/mcp.json", r#"{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}"#);
    let said = text(&run(home, &["install", "cursor"]));
    assert!(said.starts_with("exit 1") && said.contains("defined twice, first in line 1"), "{said}");
}

#[test]
fn a_server_that_is_not_imported_is_told_with_what_was_expected() {
    let scratch = Scratch::new();
    let home = scratch.path();
    put(home, "mcp.json", r#"{"mcpServers": {"a": {"url": "ht!tp://bad url"}}}"#);
    let said = text(&run(home, &["import", "mcp.json"]));
    assert!(said.contains("not imported: invalid value for `upstreams.a.url`: expected a URL"), "{said}");
}
