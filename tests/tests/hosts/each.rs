//! What commands do with several hosts, and what they say of what was left.

use trunkline_tests::scratch::Scratch;

use super::{put, read, run, text};

#[test]
fn a_host_that_cannot_be_done_keeps_no_other_from_it_and_is_named_at_the_end() {
    let scratch = Scratch::new();
    let home = scratch.path();
    put(home, "trunkline.toml", "[upstreams.a]\ncommand = 'sh'\n");
    let twice = "extensions: {}\nextensions: {}\n";
    let goose = put(home, ".config/goose/config.yaml", twice);
    let said = text(&run(home, &["install", "goose", "cursor", "emacs", "codex"]));
    assert!(said.starts_with("exit 1") && said.contains("error: 2 of 4 hosts were not changed:\n  Goose: "), "{said}");
    assert!(said.contains("(line 2): ") && said.contains("\n  emacs: unknown host `emacs`"), "{said}");
    assert_eq!(read(&goose), twice);
    let (cursor, codex) = (home.join(".cursor/mcp.json"), home.join(".codex/config.toml"));
    assert!(read(&cursor).contains("trunkline") && read(&codex).contains("trunkline"), "{said}");
    // A host without an entry is as it was wanted.
    std::fs::remove_file(&goose).expect("it is there");
    let said = text(&run(home, &["uninstall", "goose", "cursor", "codex"]));
    assert!(said.starts_with("exit 0") && said.contains("Goose has no entry `trunkline` in "), "{said}");
    assert!(!cursor.exists() && !codex.exists(), "{said}");
    let json = run(home, &["uninstall", "goose", "emacs", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("it is JSON");
    assert_eq!(json["hosts"][0]["changed"], false, "{json}");
    assert!(json["hosts"][1]["error"].as_str().expect("a text").contains("unknown host"), "{json}");
}

#[test]
fn a_file_that_is_no_json_is_refused_with_the_line() {
    let scratch = Scratch::new();
    let home = scratch.path();
    put(home, "trunkline.toml", "[upstreams.a]\ncommand = 'sh'\n");
    put(home, ".cursor/mcp.json", "{\n  \"mcpServers\": {\n    \"a\": oops\n  }\n}\n");
    let said = text(&run(home, &["install", "cursor"]));
    assert!(said.starts_with("exit 1") && said.contains("it is not JSON (line 3): "), "{said}");
    let (cursor, goose, codex) = (".cursor/mcp.json", ".config/goose/config.yaml", ".codex/config.toml");
    for (host, place, content, why) in [
        (
            "cursor",
            cursor,
            "{\n  \"mcpServers\": {\n",
            "it is not JSON (line 3): the file ends too early: a `}` is missing",
        ),
        ("cursor", cursor, "[]\n", "it holds no object (line 1): the file of a host is one, and begins with `{`"),
        ("cursor", cursor, "{\"mcpServers\": {'a': 1}}", "(line 1): JSON has double quotes"),
        ("goose", goose, "GOOSE_MODEL: x\nbroken\nextensions: {}\n", "it is not YAML (line 2): this line is neither"),
        ("codex", codex, "model = 'x'\n[mcp_servers\n", "it is not TOML (line 2): "),
    ] {
        let file = put(home, place, content);
        for command in ["install", "uninstall"] {
            let said = text(&run(home, &[command, host]));
            assert!(said.starts_with("exit 1") && said.contains(why), "{command}: {said}");
            assert!(said.contains("Mend that, or move the file away"), "{command}: {said}");
            assert_eq!(read(&file), content);
        }
    }
}

#[test]
fn the_path_that_install_writes_has_no_way_back_in_it_and_the_link_that_was_named() {
    let scratch = Scratch::new();
    let home = scratch.path();
    let real = put(home, "real/a.toml", "[upstreams.a]\ncommand = 'sh'\n");
    std::fs::create_dir_all(home.join("x/y")).expect("it can be made");
    std::os::unix::fs::symlink(&real, home.join("linked.toml")).expect("it can be made");
    std::os::unix::fs::symlink(home.join("x/y"), home.join("short")).expect("it can be made");
    let whole = home.canonicalize().expect("it is there");
    for (named, written) in [
        ("x/../linked.toml", whole.join("linked.toml")),
        ("short/../../linked.toml", whole.join("linked.toml")),
        ("short/../../real/a.toml", whole.join("real/a.toml")),
        ("./linked.toml", home.join("linked.toml")),
    ] {
        let said = text(&run(home, &["install", "cursor", "--config", named]));
        let expected = format!("\"--config\", \"{}\"]", written.display());
        let file = read(&home.join(".cursor/mcp.json"));
        assert!(said.starts_with("exit 0") && file.contains(&expected), "{named}: {said}{file}");
    }
}

#[test]
fn an_import_says_how_to_import_anew_and_names_the_file_that_it_wrote() {
    let scratch = Scratch::new();
    let home = scratch.path();
    let servers = r#"{"mcpServers": {"a": {"command": "x", "env": {"API_KEY": "canary"}}, "b": {"command": "y"}}}"#;
    put(home, "mcp.json", servers);
    let said = text(&run(home, &["import", "mcp.json", "-o", "other.toml"]));
    let other = home.join("other.toml").display().to_string();
    let next = format!("next: `trunkline check --config {other}`, then `trunkline install --config {other} HOST`");
    assert!(said.contains(&next), "{said}");
    let secrets = ["import", "mcp.json", "-o", "other.toml", "--secret-files", "kept"];
    let said = text(&run(home, &secrets));
    let order = format!("to import it anew, first run `trunkline remove --config {other} a b`");
    assert!(said.starts_with("exit 0") && said.contains(&order), "{said}");
    assert!(run(home, &["remove", "--config", &other, "a", "b"]).status.success());
    let said = text(&run(home, &secrets));
    assert!(said.contains("2 servers written") && read(&home.join("kept/API_KEY")) == "canary", "{said}");
    let said = text(&run(home, &["import", "mcp.json", "-o", "third.toml", "--secret-files", "mcp.json"]));
    let file = home.join("mcp.json").display().to_string();
    assert!(said.starts_with("exit 1") && said.contains(&format!("{file} is no folder; name one")), "{said}");
    assert!(!home.join("third.toml").exists());
    let said = text(&run(home, &["import", "mcp.json"]));
    assert!(said.contains("next: `trunkline check`, then `trunkline install HOST`"), "{said}");
}

#[test]
fn a_dry_import_prints_what_would_be_added_and_not_what_is_there() {
    let scratch = Scratch::new();
    let home = scratch.path();
    put(home, "trunkline.toml", "[upstreams.mine]\ncommand = 'sh'\n");
    put(home, "mcp.json", r#"{"mcpServers": {"new": {"command": "y"}}}"#);
    let said = text(&run(home, &["import", "mcp.json", "--dry-run"]));
    assert!(said.contains("[upstreams.new]") && !said.contains("[upstreams.mine]"), "{said}");
}

#[test]
fn every_fault_is_told_beside_a_variable_that_has_no_value() {
    let scratch = Scratch::new();
    let home = scratch.path();
    let deaf = "[upstreams.deaf]\nurl = 'http://127.0.0.1:9/mcp'\nheaders = { X-A = '${NO_SUCH_HEADER}' }\n";
    let gone = "[upstreams.gone]\ncommand = 'no-such-program'\nargs = ['${NO_SUCH_ARGUMENT}']\n";
    put(home, "trunkline.toml", &format!("{deaf}{gone}[upstreams.blank]\ncommand = '${{NO_SUCH_COMMAND}}'\n"));
    let said = text(&run(home, &["check"]));
    assert!(said.starts_with("exit 3") && said.matches("error[unset-variable]").count() == 3, "{said}");
    assert!(said.contains("upstream `gone`: `no-such-program` not found in PATH (/nonexistent)"), "{said}");
    let json = run(home, &["check", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("it is JSON");
    assert_eq!((&json["upstreams"], json["faults"].as_array().expect("a list").len()), (&2.into(), 4), "{json}");
    let said = text(&run(home, &["doctor"]));
    assert!(said.starts_with("exit 1") && said.contains("`no-such-program` not found in PATH"), "{said}");
    assert!(
        said.contains("upstream `deaf`: cannot connect to 127.0.0.1:9") && said.contains("NO_SUCH_HEADER"),
        "{said}"
    );
}
