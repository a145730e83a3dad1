//! What commands say where something is wrong: what is done beside it, where it stands, what is meant, and all of it for a program.

use serde_json::Value;
use trunkline_tests::scratch::Scratch;

use super::{put, read, run, text};

const TWO: &str = "[upstreams.files]\ncommand = 'sh'\n\n[upstreams.git]\ncommand = 'sh'\n";

/// The exit code, and the error that a command says in the last line of stderr.
fn error(output: &std::process::Output) -> (Option<i32>, Value) {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = said.lines().last().unwrap_or_default();
    (output.status.code(), serde_json::from_str(last).unwrap_or_else(|_| panic!("{said}")))
}

/// Each line as JSON.
fn json_lines(said: &[u8]) -> Vec<Value> {
    let said = String::from_utf8_lossy(said);
    said.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}"))).collect()
}

#[test]
fn a_file_that_is_imported_by_name_and_cannot_be_read_is_a_failure_and_the_others_are_imported() {
    let scratch = Scratch::new();
    let home = scratch.path();
    put(home, "good.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#);
    put(home, "bad.json", r#"{"mcpServers": {"b": {"command" "x"}}}"#);
    let said = text(&run(home, &["import", "good.json", "bad.json"]));
    assert!(
        said.starts_with("exit 1") && said.contains("bad.json:1:33") && said.contains("1 server written"),
        "{said}"
    );
    let output = run(home, &["import", "bad.json", "good.json", "-o", "other.toml", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!((output.status.code(), &report["faults"][0]["kind"]), (Some(1), &"syntax".into()), "{report}");
    assert_eq!(report["written"], true);
    assert!(text(&run(home, &["import", "good.json", "-o", "third.toml"])).starts_with("exit 0"));
}

#[test]
fn an_imported_server_without_its_variable_is_left_out_and_the_others_serve() {
    let scratch = Scratch::new();
    let home = scratch.path();
    let servers = r#"{"mcpServers": {
        "needy": {"command": "sh", "env": {"API_TOKEN": "${NO_SUCH_TOKEN}"}},
        "given": {"command": "sh", "args": ["${HOME}/x"]},
        "plain": {"command": "sh"}}}"#;
    put(home, "mcp.json", servers);
    let said = text(&run(home, &["import", "mcp.json"]));
    let told = "variables to set, or the servers that need them are left out: NO_SUCH_TOKEN";
    assert!(said.starts_with("exit 0") && said.contains(told), "{said}");
    let written = read(&home.join("trunkline.toml"));
    assert_eq!(written.matches("optional = true").count(), 1, "{written}");
    let json = run(home, &["check", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).expect("it is JSON");
    assert_eq!(json["upstreams"], 2, "{json}");
    let said = text(&run(home, &["check"]));
    let why = "warning[unset-variable]: ${NO_SUCH_TOKEN} has no value and no default; `needy` is left out, since it is `optional`";
    assert!(said.starts_with("exit 0") && said.contains(why), "{said}");
    let said = text(&run(home, &["install", "cursor"]));
    let note =
        "note: ${NO_SUCH_TOKEN} has no value: the servers that need it are left out; `trunkline check` names them";
    assert!(said.starts_with("exit 0") && said.contains(note), "{said}");
    // What a person writes is strict.
    put(home, "trunkline.toml", &written.replace("optional = true\n", ""));
    let said = text(&run(home, &["serve"]));
    assert!(said.starts_with("exit 3") && said.contains("error[unset-variable]"), "{said}");
}

#[test]
fn the_folders_that_install_has_made_go_with_the_file_where_nothing_else_is_in_them() {
    let scratch = Scratch::new();
    let home = scratch.path();
    put(home, "trunkline.toml", TWO);
    for host in ["vscode", "cursor", "windsurf", "goose"] {
        assert!(run(home, &["install", host]).status.success(), "{host}");
        let said = text(&run(home, &["uninstall", host]));
        assert!(said.contains(" is removed: it was empty"), "{host}: {said}");
        let left: Vec<_> = std::fs::read_dir(home).expect("it is there").flatten().map(|one| one.file_name()).collect();
        assert_eq!(left, ["trunkline.toml"], "{host}");
    }
    assert!(run(home, &["install", "cursor", "--scope", "project"]).status.success());
    assert!(run(home, &["uninstall", "cursor", "--scope", "project"]).status.success());
    assert!(!home.join(".cursor").exists());
    put(home, ".config/Code/User/settings.json", "{}");
    assert!(run(home, &["install", "vscode"]).status.success());
    let said = text(&run(home, &["uninstall", "vscode"]));
    assert!(!said.contains("it was empty") && home.join(".config/Code/User/settings.json").exists(), "{said}");
    assert!(run(home, &["install", "vscode", "--dry-run"]).status.success() && !home.join(".cursor").exists());
    // Those that were there before stay, however empty they are.
    for (folder, host) in [(".cursor", "cursor"), (".gemini", "gemini"), (".codeium", "windsurf")] {
        std::fs::create_dir_all(home.join(folder)).expect("it can be made");
        assert!(run(home, &["install", host]).status.success(), "{host}");
        // Again: what was made is known still.
        assert!(run(home, &["install", host]).status.success(), "{host}");
        assert!(run(home, &["uninstall", host]).status.success(), "{host}");
        let left: Vec<_> = std::fs::read_dir(home.join(folder)).expect("it stays").flatten().collect();
        assert!(left.is_empty(), "{host}: {left:?}");
    }
}

#[test]
fn what_is_not_added_is_told_without_a_line_that_nobody_has() {
    let scratch = Scratch::new();
    let home = scratch.path();
    let file = put(home, "b.toml", "[upstreams.a]\ncommand = 'sh'\n");
    for (args, why) in [
        (&["add", "Bad", "-c", "b.toml", "--", "sh"][..], "invalid upstream name `Bad`"),
        (&["add", "c", "-c", "b.toml", "--", "sh", "${NO_SUCH}"], "${NO_SUCH} has no value"),
        (&["add", "d", "-c", "b.toml", "https://me:secret@h.example/"], "user name and password"),
    ] {
        let said = text(&run(home, args));
        assert!(said.starts_with("exit 3") && said.contains(why) && said.contains("b.toml is unchanged"), "{said}");
        assert!(!said.contains("b.toml:") && !said.contains("secret@"), "{said}");
        assert_eq!(read(&file), "[upstreams.a]\ncommand = 'sh'\n");
    }
}

#[test]
fn of_several_upstreams_those_that_are_there_are_removed_and_each_other_is_named() {
    let scratch = Scratch::new();
    let home = scratch.path();
    let file = put(home, "trunkline.toml", TWO);
    let said = text(&run(home, &["remove", "gti", "files", "nosuch", "files"]));
    assert!(said.starts_with("exit 1\nremoved `files` from trunkline.toml"), "{said}");
    assert!(said.contains("error: no upstream `gti` in trunkline.toml; did you mean `git`? Known: git"), "{said}");
    assert!(said.contains("no upstream `nosuch` in trunkline.toml. Known: git"), "{said}");
    assert_eq!(read(&file).trim_start(), "[upstreams.git]\ncommand = 'sh'\n");
    let output = run(home, &["remove", "nosuch", "git", "--json"]);
    let done: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(done["upstreams"], serde_json::json!(["git"]));
    let (code, why) = error(&output);
    assert!(code == Some(1) && why["error"].as_str().is_some_and(|why| why.contains("`nosuch`")), "{why}");
    put(home, "trunkline.toml", &TWO.replace("files", "alpha"));
    let said = text(&run(home, &["remove", "alpha", "alpa"]));
    assert!(said.contains("no upstream `alpa` in trunkline.toml (`alpha` is gone now). Known: git"), "{said}");
    let each = json_lines(&run(home, &["remove", "gti", "nosuch", "--json"]).stderr);
    let each: Vec<_> = each.iter().filter_map(|one| one["error"].as_str()).collect();
    assert!(each.len() == 2 && each[0].contains("did you mean `git`") && each[1].contains("`nosuch`"), "{each:?}");
    let help = text(&run(home, &["remove", "--help"]));
    assert!(help.contains("those that are there are removed"), "{help}");
}

#[test]
fn the_name_that_is_meant_is_told() {
    let scratch = Scratch::new();
    let home = scratch.path();
    put(home, "trunkline.toml", TWO);
    for (args, meant) in [
        (&["install", "curser"][..], "unknown host `curser`; did you mean `cursor`? Known: claude-desktop,"),
        (&["uninstall", "claudecode"], "unknown host `claudecode`; did you mean `claude-code`?"),
        (&["import", "vs-code"], "unknown host `vs-code`; did you mean `vscode`?"),
        (&["doctor", "--host", "zedd"], "unknown host `zedd`; did you mean `zed`?"),
        (&["login", "fils"], "no upstream `fils`; did you mean `files`? Known: files, git"),
    ] {
        let said = text(&run(home, args));
        assert!(said.starts_with("exit 1") && said.contains(meant), "{args:?}: {said}");
    }
}

#[test]
fn a_host_that_is_mistyped_is_told_before_the_configuration_that_is_not_there() {
    let scratch = Scratch::new();
    let home = scratch.path();
    let host = "error: unknown host `cursr`; did you mean `cursor`?";
    for (args, then) in [
        (&["install", "cursr"][..], "no configuration to start with"),
        (&["install", "cursor", "cursr", "--config", "nosuch.toml"], "cannot read "),
    ] {
        let said = text(&run(home, args));
        let (host, other) = (said.find(host), said.rfind("error: "));
        assert!(host.is_some() && host < other && said.contains(then), "{args:?}: {said}");
    }
    let both = json_lines(&run(home, &["install", "cursr", "--json"]).stderr);
    assert!(both.len() == 2 && both[0]["error"].as_str().is_some_and(|why| why.contains("`cursor`")), "{both:?}");
}

#[test]
fn an_error_is_one_json_object_where_json_is_asked_for() {
    let scratch = Scratch::new();
    let home = scratch.path();
    put(home, "trunkline.toml", TWO);
    put(home, "bad.toml", "[upstreams.a]\ncommand = npx\nstart = 'never'\n");
    for (args, code, why) in [
        (&["ls", "--json"][..], 1, "no gateway found"),
        (&["ls", "--json", "-c", "trunkline.toml"], 1, "is `trunkline serve --config trunkline.toml` running?"),
        (&["top", "--json"], 1, "no gateway found"),
        (&["status", "files", "--json"], 1, "no gateway found"),
        (&["logs", "--json"], 1, "no gateway found"),
        (&["calls", "--json"], 1, "no gateway found"),
        (&["start", "files", "--json"], 1, "no gateway found"),
        (&["restart", "files", "--json"], 1, "no gateway found"),
        (&["reload", "--json"], 1, "no gateway found"),
        (&["import", "nosuch", "--json"], 1, "unknown host"),
        (&["install", "nosuch", "--json"], 1, "unknown host"),
        (&["uninstall", "nosuch", "--json"], 1, "unknown host"),
        (&["doctor", "--host", "nosuch", "--json"], 1, "unknown host"),
        (&["add", "files", "--json", "--", "sh"], 1, "already"),
        (&["remove", "nosuch", "--json"], 1, "no upstream `nosuch`"),
        (&["login", "nosuch", "--json"], 1, "no upstream `nosuch`"),
        (&["logout", "nosuch", "--json"], 1, "no upstream `nosuch`"),
        (&["token", "revoke", "nosuch", "--json"], 1, "no token `nosuch`"),
        (&["call", "nosuch", "x", "--json"], 1, "expected key=value"),
        (&["config", "show", "--json", "-c", "bad.toml"], 3, "the configuration is wrong: 2 errors"),
        (&["tools", "--json", "-c", "bad.toml"], 3, "the configuration is wrong: 2 errors"),
        (&["add", "Bad", "--json", "--", "sh"], 3, "the configuration is wrong: 1 error"),
        (&["ls", "--json", "--nonsense"], 2, "unexpected argument '--nonsense'"),
    ] {
        let (exit, said) = error(&run(home, args));
        assert_eq!((exit, &said["exit_code"]), (Some(code), &code.into()), "{args:?}: {said}");
        assert!(said["error"].as_str().is_some_and(|text| text.contains(why)), "{args:?}: {said}");
        assert_eq!(said["faults"].is_array(), code == 3, "{args:?}: {said}");
    }
    let plain = text(&run(home, &["ls"]));
    assert!(plain.contains("\nerror: no gateway found"), "{plain}");
}

#[test]
fn each_fix_of_the_doctor_can_be_typed_as_it_stands() {
    let scratch = Scratch::new();
    let home = scratch.path();
    let secret = put(home, "secret", "x").display().to_string();
    std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("it is ours");
    put(
        home,
        "my own.toml",
        &format!(
            "[upstreams.a]\ncommand = 'sh'\ncwd = '/no/such folder'\nenv = {{ A = '${{file:{secret}}}' }}\n\
             [upstreams.b]\nurl = 'http://127.0.0.1:1/'\nauth = {{ type = 'oauth' }}\n\
             [[auth.tokens]]\nname = 'old'\ntoken = 'a-long-token-of-old'\nexpires = '2020-01-01'\nroles = ['r']\n\
             [auth.roles.r]\nupstreams = ['nosuch']\n[auth.roles.empty]\nupstreams = ['*']\n"
        ),
    );
    put(home, ".cursor/mcp.json", "{}");
    let output = run(home, &["doctor", "--json", "--host", "cursor", "--config", "my own.toml"]);
    let said: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let fixes: Vec<&str> =
        said["problems"].as_array().expect("a list").iter().filter_map(|one| one["fix"].as_str()).collect();
    for what in [
        "run `trunkline login b --config 'my own.toml'`",
        "run `trunkline install cursor --config 'my own.toml'`",
        "run `trunkline token new old-2 --role r --config 'my own.toml'`, give it to the client, then run \
         `trunkline token revoke old --config 'my own.toml'`",
        "run `mkdir -p '/no/such folder'`",
        &format!("run `chmod o-r {secret}`"),
        "write `roles = [\"empty\"]` under",
    ] {
        assert!(fixes.iter().any(|fix| fix.contains(what)), "{what}: {fixes:#?}");
    }
    for fix in fixes {
        let commands = fix.split('`').skip(1).step_by(2).filter(|one| one.starts_with("trunkline "));
        commands.for_each(|command| assert!(command.contains("--config 'my own.toml'"), "{fix}"));
    }
    // What is said of the file of a host does not lead into that file.
    put(home, "mcp.json", r#"{"mcpServers": {"a": {"command": "npxx"}}}"#);
    let host = text(&run(home, &["doctor", "--json", "--config", "mcp.json"]));
    assert!(host.contains("named behind mcp.json: --config mcp.json --config trunkline.toml"), "{host}");
    // The configuration that is not there is made by the command that is told.
    let none = text(&run(home, &["doctor", "--json", "--config", "new.toml"]));
    assert!(none.contains("run `trunkline import --config new.toml`"), "{none}");
    assert!(run(home, &["import", "mcp.json", "--config", "new.toml"]).status.success());
    assert!(read(&home.join("new.toml")).contains("[upstreams.a]"));
}

#[test]
fn what_is_said_beside_an_answer_is_json_where_json_is_asked_for() {
    let scratch = Scratch::new();
    let home = scratch.path();
    let lacks = "[upstreams.lacks]\ncommand = 'sh'\nargs = ['${NOT_SET_HERE}']\noptional = true\n";
    let fails = "[upstreams.fails]\ncommand = '/bin/false'\n";
    put(home, "trunkline.toml", &format!("{lacks}{fails}"));
    for (args, what) in [
        (&["tools", "--json"][..], "is left out"),
        (&["tools", "lacks", "--json"], "is left out"),
        (&["call", "fails__x", "--json"], "fails"),
        (&["install", "cursor", "--json"], "NOT_SET_HERE"),
    ] {
        let output = run(home, args);
        let said = json_lines(&output.stderr);
        assert!(!said.is_empty() && said.iter().any(|one| one.to_string().contains(what)), "{args:?}: {said:?}");
    }
}

#[test]
fn a_tool_of_a_server_that_fails_is_refused_with_what_helps_without_a_running_gateway() {
    let scratch = Scratch::new();
    let home = scratch.path();
    put(home, "trunkline.toml", "[upstreams.sick]\ncommand = '/bin/sh'\nargs = ['-c', 'exit 3']\n");
    let said = text(&run(home, &["call", "sick__x"]));
    assert!(
        said.starts_with("exit 1") && said.contains("`tools/call` of `sick__x` was not sent: upstream `sick` is"),
        "{said}"
    );
    assert!(!said.contains("trunkline status"), "{said}");
    // A command that is told leads to the configuration that was named.
    let named = text(&run(home, &["call", "sick__x", "--config", "trunkline.toml"]));
    assert!(named.contains("`trunkline tools sick --log-level info --config trunkline.toml` shows what it"), "{named}");
}

#[test]
fn a_configuration_that_is_not_toml_is_told_with_its_line_and_with_the_command_that_shows_it() {
    let scratch = Scratch::new();
    let home = scratch.path();
    put(home, "my own.toml", "# mine\n[upstreams.a]\ncommand = npx\n");
    put(home, "mcp.json", r#"{"mcpServers": {"b": {"command": "sh"}}}"#);
    let config = ["--config", "my own.toml"];
    for args in [&["add", "x", "--", "sh"][..], &["remove", "a"], &["import", "mcp.json"]] {
        let end = args.iter().position(|arg| *arg == "--").unwrap_or(args.len());
        let said = text(&run(home, &[&args[..end], &config, &args[end..]].concat()));
        let expected =
            "my own.toml is not TOML (line 3): the value of `command` needs quotes: \"…\"; `trunkline check --config '";
        assert!(said.starts_with("exit 1") && said.contains(expected), "{args:?}: {said}");
        assert!(said.contains("my own.toml'` shows the line"), "{args:?}: {said}");
    }
}
