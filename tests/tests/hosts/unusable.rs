//! What cannot be taken over, or written, is told with the reason: in the words of a person, and by the exit code.

use serde_json::Value;
use trunkline_tests::scratch::Scratch;

use super::{put, run, text};

const TWO: &str = "[upstreams.files]\ncommand = 'sh'\n\n[upstreams.git]\ncommand = 'sh'\n";

#[test]
fn an_import_in_which_no_server_can_be_used_is_a_failure_that_says_so() {
    let scratch = Scratch::new();
    let home = scratch.path();
    put(home, "mcp.json", r#"{"mcpServers": {"a": {"command": "sh", "args": ["${workspaceFolder}"]}, "b": {}}}"#);
    for more in [&[][..], &["--dry-run"]] {
        let said = text(&run(home, &[&["import", "mcp.json"], more].concat()));
        assert!(
            said.starts_with("exit 1") && said.contains("nothing is imported: no server can be used here"),
            "{said}"
        );
        assert!(said.contains("not imported: ") && !said.contains("next: "), "{said}");
    }
    let output = run(home, &["import", "mcp.json", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!((output.status.code(), &report["written"]), (Some(1), &Value::Bool(false)), "{report}");
    assert!(!home.join("trunkline.toml").exists());
    // What is there already, or is Trunkline itself, is none to mend.
    put(home, "ours.json", r#"{"mcpServers": {"trunkline": {"command": "/bin/trunkline", "args": ["stdio"]}}}"#);
    let said = text(&run(home, &["import", "ours.json"]));
    assert!(said.starts_with("exit 0") && said.contains("trunkline.toml is not written"), "{said}");
    put(home, "trunkline.toml", TWO);
    put(home, "two.json", r#"{"mcpServers": {"git": {"command": "sh"}, "b": {}}}"#);
    let said = text(&run(home, &["import", "two.json"]));
    assert!(said.starts_with("exit 0") && said.contains("trunkline.toml is unchanged"), "{said}");
}

#[test]
fn servers_are_listed_as_their_file_has_them_and_one_that_is_written_otherwise_is_said_to_be() {
    let scratch = Scratch::new();
    let home = scratch.path();
    let git = "[upstreams.git]\ncommand = 'sh'\nargs = ['${TOKEN}', 'x']\n\n[upstreams.web]\nurl = 'https://h/a'\n";
    put(home, "trunkline.toml", git);
    for (server, is_like) in [
        (r#""git": {"command": "sh", "args": ["a", "x"]}"#, true),
        (r#""git": {"command": "sh", "args": ["a", "y"]}"#, false),
        (r#""git": {"command": "sh", "args": ["a"]}"#, false),
        (r#""git": {"command": "bash", "args": ["a", "x"]}"#, false),
        (r#""git": {"url": "https://h/a"}"#, false),
        (r#""web": {"url": "https://h/a"}"#, true),
        (r#""web": {"url": "https://h/b"}"#, false),
    ] {
        put(home, "mcp.json", &format!("{{\"mcpServers\": {{{server}}}}}"));
        let said = text(&run(home, &["import", "mcp.json"]));
        assert_eq!(said.contains("trunkline.toml has it already"), is_like, "{said}");
        let other = "trunkline.toml has a server of this name that is written otherwise";
        assert_eq!(said.contains(other), !is_like, "{said}");
    }
    let servers =
        "{\"mcpServers\": {\n\"a\": {\"command\": \"sh\"},\n\"b\": {\"command\": 1},\n\"c\": {\"command\": \"sh\"}}}";
    put(home, "three.json", servers);
    let said = text(&run(home, &["import", "three.json", "--dry-run"]));
    let at = |name: &str| said.lines().position(|line| line.starts_with(name)).expect("it has a row");
    assert!(at("a ") < at("b ") && at("b ") < at("c "), "{said}");
}

#[test]
fn of_an_import_whose_secrets_cannot_be_kept_nothing_is_left() {
    let scratch = Scratch::new();
    let home = scratch.path();
    // The second secret has a name that is too long for a file.
    let long = "L".repeat(260);
    let servers = format!(
        r#"{{"mcpServers": {{"a": {{"command": "sh", "env": {{"API_KEY": "canary", "{long}_TOKEN": "canary"}}}}}}}}"#
    );
    put(home, "mcp.json", &servers);
    let said = text(&run(home, &["import", "mcp.json", "--secret-files", "secrets"]));
    assert!(said.starts_with("exit 1") && said.contains("cannot keep the secrets"), "{said}");
    assert!(!home.join("secrets").exists() && !home.join("trunkline.toml").exists(), "{said}");
    std::fs::create_dir(home.join("secrets")).expect("it can be made");
    let said = text(&run(home, &["import", "mcp.json", "--secret-files", "secrets"]));
    let left = std::fs::read_dir(home.join("secrets")).expect("it stays").count();
    assert!(said.starts_with("exit 1") && left == 0, "{left} {said}");
}

#[test]
fn what_stands_in_the_way_of_the_file_of_a_host_is_told_by_a_dry_run_too() {
    let scratch = Scratch::new();
    let home = scratch.path();
    put(home, "trunkline.toml", TWO);
    std::os::unix::fs::symlink(home.join("nowhere"), home.join(".cursor")).expect("it can be made");
    for more in [&[][..], &["--dry-run"]] {
        let said = text(&run(home, &[&["install", "cursor"], more].concat()));
        assert!(said.starts_with("exit 1") && said.contains(" is a link to a folder that is not there"), "{said}");
    }
}

#[test]
fn what_is_imported_is_judged_with_its_secrets_and_what_is_disabled_is_said_to_be() {
    for more in [&[][..], &["--secret-files", "secrets"]] {
        let scratch = Scratch::new();
        let home = scratch.path();
        let servers = r#"{"mcpServers": {
            "address": {"url": "https://me:canary-word@h/mcp"},
            "off": {"command": "sh", "args": ["${workspaceFolder}"], "disabled": true},
            "plain": {"command": "sh", "env": {"API_KEY": "canary-two"}}}}"#;
        put(home, "mcp.json", servers);
        let said = text(&run(home, &[&["import", "mcp.json"], more].concat()));
        assert!(said.starts_with("exit 0") && said.contains("1 server written"), "{said}");
        let row = |name: &str| said.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        assert!(row("address ").contains("a user name and password in a URL are not sent"), "{said}");
        assert!(row("off ").contains("not imported: it is disabled in the host"), "{said}");
        let checked = text(&run(home, &["check"]));
        assert!(checked.starts_with("exit 0") && !said.contains("canary"), "{said}{checked}");
    }
    // Where nothing else is there, nothing is to be mended.
    let scratch = Scratch::new();
    put(scratch.path(), "mcp.json", r#"{"mcpServers": {"off": {"command": "${workspaceFolder}", "disabled": true}}}"#);
    let said = text(&run(scratch.path(), &["import", "mcp.json"]));
    assert!(said.starts_with("exit 0") && said.contains("nothing to import"), "{said}");
    // A file without servers, or one that cannot be read, ends alike for a person and for a program.
    for (content, why) in [
        ("{\"mcpServers\": {}}", "no servers to import: looked at "),
        ("{\"mcpServers\": {", "mend what is told above"),
    ] {
        put(scratch.path(), "mcp.json", content);
        let said = text(&run(scratch.path(), &["import", "mcp.json"]));
        assert!(said.starts_with("exit 1") && said.contains(why), "{said}");
        assert_eq!(run(scratch.path(), &["import", "mcp.json", "--json"]).status.code(), Some(1), "{content}");
    }
}

#[test]
fn what_stands_in_the_way_of_a_folder_is_named_and_what_is_true_of_all_names_is_said_once() {
    let scratch = Scratch::new();
    let home = scratch.path();
    put(home, "trunkline.toml", TWO);
    put(home, ".cursor", "a file");
    std::os::unix::fs::symlink("nowhere", home.join(".kiro")).expect("it is ours");
    for (args, why) in [
        (
            ["install", "cursor"],
            format!("cannot create {0}: {0} is a file and no folder", home.join(".cursor").display()),
        ),
        (["uninstall", "cursor"], "/.cursor/mcp.json: a part of its path is a file and no folder".to_owned()),
        (["install", "kiro"], format!("{} is a link to a folder that is not there", home.join(".kiro").display())),
    ] {
        let said = text(&run(home, &args));
        assert!(said.starts_with("exit 1") && said.contains(&why) && !said.contains("os error"), "{args:?}: {said}");
    }
    let said = text(&run(home, &["restart", "files", "git"]));
    assert!(said.starts_with("exit 1") && said.matches("no gateway found").count() == 1, "{said}");
    let json = run(home, &["restart", "files", "git", "--json"]);
    let rows: Value = serde_json::from_slice(&json.stdout).expect("it is JSON");
    assert!((0..2).all(|row| rows[row]["error"].as_str().is_some_and(|why| why.contains("no gateway"))), "{rows}");
}
