//! What a person types: `tools`, `call`, `logs`, `calls`, `doctor`, `config`, `completions`.

use crate::hosts;
use std::process::{Output, Stdio};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use trunkline_tests::client::Client;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::process::{self, GATEWAY, Program, beside};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::shell;
use trunkline_tests::within::{until, within};

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A command of the program in a home of its own.
pub(crate) fn in_home(home: &Scratch, args: &[&str]) -> Command {
    let mut command = Command::new(beside(GATEWAY));
    command.args(args).env("HOME", home.path()).env("XDG_RUNTIME_DIR", home.path()).env_remove("XDG_CONFIG_HOME");
    command.env_remove("TRUNKLINE_CONFIG").current_dir(home.path()).kill_on_drop(true);
    command
}

async fn run(home: &Scratch, args: &[&str]) -> Output {
    within("the command ends", in_home(home, args).output()).await.expect("it runs")
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text can be written")
}

pub(crate) fn entry(name: &str, program: &Program) -> String {
    let args: Vec<String> = program.args.iter().map(|arg| quoted(&arg.replace('$', "$$"))).collect();
    format!(
        "[upstreams.{name}]\ncommand = {}\nargs = [{}]\n",
        quoted(&program.path.display().to_string()),
        args.join(", ")
    )
}

#[tokio::test]
async fn tools_are_listed_and_called_without_a_running_gateway() {
    let home = Scratch::new();
    let progress = r#"printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"total":2,"message":"half way"}}\n' "$(printf %s "$line" | sed 's/.*"progressToken":\("[^"]*"\|[0-9]*\).*/\1/')"; said done"#;
    let bad = r#"answer '{"content":[{"type":"text","text":"it is broken"}],"isError":true}'"#;
    let program = shell::upstream(&[("hello", "said \"$line\""), ("slow", progress), ("bad", bad)]);
    let _file = home.file("trunkline.toml", &entry("sh", &program));
    let listed = run(&home, &["tools"]).await;
    assert_eq!(text(&listed.stdout), "sh__hello\nsh__slow\nsh__bad\n3 tools\n", "{}", text(&listed.stderr));
    let json = run(&home, &["tools", "slow", "--json"]).await;
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("it is JSON");
    assert_eq!(json["tools"][0]["name"], "sh__slow");
    let called = run(&home, &["call", "sh__slow", "a=1"]).await;
    assert_eq!(text(&called.stdout), "done\n");
    assert!(text(&called.stderr).contains("1 of 2: half way"), "{}", text(&called.stderr));
    let failed = run(&home, &["call", "sh__bad", "{}"]).await;
    assert_eq!((failed.status.code(), text(&failed.stdout)), (Some(1), "it is broken\n".to_owned()));
    let unknown = run(&home, &["call", "hello"]).await;
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("did you mean `sh__hello`?"), "{}", text(&unknown.stderr));
    let slip = run(&home, &["call", "sh__helo"]).await;
    assert!(text(&slip.stderr).contains("did you mean `sh__hello`?"), "{}", text(&slip.stderr));
    // What cannot be read starts no server, and so is the only thing that is said.
    let unread = run(&home, &["call", "sh__hello", "nope"]).await;
    let said = text(&unread.stderr);
    assert!(said.starts_with("error: expected key=value") && said.lines().count() == 1, "{said}");
    let torn = text(&run(&home, &["call", "sh__hello", "{\"a\":"]).await.stderr);
    let expected = "error: the argument is not a JSON object: a `}` is missing at the end; write key=value, or one object in \
        single quotes: '{\"key\": \"value\"}'\n";
    assert_eq!(torn, expected);
}

#[tokio::test]
async fn a_list_of_upstreams_that_all_fail_is_an_error_and_one_that_is_empty_is_not() {
    let home = Scratch::new();
    let broken = "[upstreams.broken]\ncommand = '/bin/false'\n";
    let well = entry("sh", &shell::upstream(&[("hello", "said ok")]));
    for (file, args, code) in [
        (broken.to_owned(), &["tools"][..], 1),
        (broken.to_owned(), &["tools", "--json"], 1),
        (broken.to_owned(), &["prompts"], 1),
        (format!("{broken}{well}"), &["tools"], 0),
        (well.clone(), &["prompts"], 0),
    ] {
        let _file = home.file("trunkline.toml", &file);
        let listed = run(&home, args).await;
        let said = text(&listed.stderr);
        assert_eq!(listed.status.code(), Some(code), "{args:?}: {said}");
        assert_eq!(said.contains("none of the upstreams works (broken)"), code == 1, "{args:?}: {said}");
        // Why it fails is told in a line of its own, and no log beside it.
        let told = said.matches("not listed: upstream `broken` is ").count();
        assert_eq!(told, usize::from(file.contains("broken")), "{args:?}: {said}");
        assert!(!said.contains("upstream unavailable"), "{args:?}: {said}");
    }
}

#[test]
fn an_entry_that_is_a_fault_is_named_and_not_imported() {
    let scratch = Scratch::new();
    let entries = [
        r#""well": {"command": "x", "env": {"A": "${UNSET_HERE}"}}"#,
        r#""off": {"command": "x", "disabled": true}"#,
        r#""off-too": {"url": "no address", "disabled": true}"#,
        r#""number": {"command": 1}"#,
        r#""both": {"command": "x", "url": "https://h/"}"#,
        r#""address": {"url": "no address"}"#,
        r#""way": {"url": "https://h/", "type": "pigeon"}"#,
        r#""list": {"command": "x", "args": "one two"}"#,
        r#""header": {"url": "https://h/", "headers": {"a b": "c"}}"#,
        r#""folder": {"command": "x", "args": ["${workspaceFolder}"]}"#,
        r#""none": null"#,
    ];
    let file = scratch.file("mcp.json", &format!("{{\"mcpServers\": {{{}}}}}", entries.join(", ")));
    let file = file.display().to_string();
    let imported = hosts::run(scratch.path(), &["import", &file, "--json"]);
    let said: serde_json::Value = serde_json::from_slice(&imported.stdout).expect("it is JSON");
    let servers = said["servers"].as_array().expect("a list");
    let taken: Vec<_> =
        servers.iter().filter(|one| one["skipped"].is_null()).filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(taken, ["well", "off"], "{said:#}");
    // Each has its row, also one that no gateway can use, with the reason.
    assert_eq!(servers.len(), entries.len(), "{said:#}");
    let table = hosts::text(&hosts::run(scratch.path(), &["import", &file, "--dry-run"]));
    for (name, why) in [
        ("folder", "not imported: `${workspaceFolder}` has no value here; write the path of the folder"),
        ("none", "not imported: there is no server: it is null"),
    ] {
        let has_row = table.lines().any(|line| line.starts_with(&format!("{name} ")) && line.contains(why));
        assert!(has_row, "{name}: {table}");
    }
    let checked = hosts::text(&hosts::run(scratch.path(), &["check"])).replace("error[unset-variable]", "");
    assert!(!checked.contains("error["), "{checked}");
}

#[tokio::test]
async fn what_upstreams_say_and_what_was_called_is_printed() {
    let program = shell::upstream(&[("shout", "echo 'a line on stderr' >&2; said ok")]);
    let gateway = Gateway::serve(&Config::new().program("sh", &program, "")).await;
    let client = Client::connect(&gateway.reach(), Revision::R2025_11_25).await;
    client.tools_until("it is up", |tools| tools.contains(&"sh__shout".into())).await;
    assert_eq!(client.call("sh__shout", "{}").await.text(), "ok");
    until("the line is there", || async {
        let said = gateway.command(&["logs", "sh"]).output().await.expect("it runs");
        (text(&said.stdout) == "a line on stderr\n").then_some(())
    })
    .await;
    let calls = within("it answers", gateway.command(&["calls", "--json"]).output()).await.expect("it runs");
    let said = text(&calls.stdout);
    let is_it = |line: &str| line.contains("\"name\":\"shout\"") || line.contains("\"name\":\"sh__shout\"");
    assert!(said.lines().any(is_it), "{said}{}", text(&calls.stderr));
    // Below headings, with the time; requests for lists where they are asked for.
    let table = async |args: &[&str]| {
        text(&within("it answers", gateway.command(args).output()).await.expect("it runs").stdout)
    };
    let (uses, all) = (table(&["calls"]).await, table(&["calls", "--all"]).await);
    assert!(uses.starts_with("BEGAN") && uses.contains("tools/call") && !uses.contains("/list"), "{uses}");
    assert!(all.starts_with("BEGAN") && all.contains("tools/call") && all.contains("tools/list"), "{all}");
    let unknown = within("it answers", gateway.command(&["logs", "nobody"]).output()).await.expect("it runs");
    assert!(text(&unknown.stderr).contains("no upstream `nobody`. Known: sh"), "{}", text(&unknown.stderr));
}

#[tokio::test]
async fn the_doctor_numbers_what_is_wrong_and_says_what_to_do() {
    let home = Scratch::new();
    let _file = home.file("trunkline.toml", "[upstreams.a]\ncommand = '/bin/sh'\n");
    let well = run(&home, &["doctor"]).await;
    assert!(well.status.success() && text(&well.stdout).ends_with("No problems found\n"), "{}", text(&well.stdout));
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it has one");
    let sick = format!("[upstreams.a]\ncommand = 'npxx'\n[upstreams.b]\nurl = 'http://{closed}/mcp'\n");
    let _file = home.file("trunkline.toml", &sick);
    let mut command = Command::new(beside(GATEWAY));
    command
        .args(["doctor", "--host", "cursor"])
        .env("HOME", home.path())
        .current_dir(home.path())
        .env("XDG_RUNTIME_DIR", home.path());
    for proxy in
        ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "TRUNKLINE_CONFIG"]
    {
        command.env_remove(proxy);
    }
    let said = within("it ends", command.output()).await.expect("it runs");
    let lines = text(&said.stdout);
    assert_eq!(said.status.code(), Some(1), "{lines}");
    for (number, what) in [(1, "npxx"), (2, "cannot connect to"), (3, "Cursor has no entry of Trunkline")] {
        assert!(lines.lines().any(|line| line.starts_with(&format!("{number}. ")) && line.contains(what)), "{lines}");
    }
    assert!(lines.contains("fix: run `trunkline install cursor`") && lines.ends_with("3 problems\n"), "{lines}");
    let _file = home.file("trunkline.toml", "[upstreams.a]\ncommand = 'sh'\nargs = ['${UNSET_VARIABLE}']\n");
    let unset = run(&home, &["doctor"]).await;
    assert!(text(&unset.stdout).contains("${UNSET_VARIABLE} has no value"), "{}", text(&unset.stdout));
}

#[tokio::test]
async fn the_configuration_and_completions_are_printed() {
    let home = Scratch::new();
    let file = home.file("trunkline.toml", "[upstreams.a]\ncommand = 'sh'\nenv = { TOKEN = 'canary-of-a-token' }\n");
    let path = run(&home, &["config"]).await;
    assert_eq!(text(&path.stdout).trim(), file.display().to_string());
    let shown = text(&run(&home, &["config", "show"]).await.stdout);
    assert!(shown.contains("upstreams.a.command = \"sh\"") && shown.contains("trunkline.toml:2"), "{shown}");
    assert!(!shown.contains("canary"), "{shown}");
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&run(&home, &["completions", shell]).await.stdout);
        assert!(script.contains("uninstall") && script.contains("log-level"), "{shell}");
        for hidden in ["demo-upstream", "start-upstream", "serve-shared", "serve-once", "guard-upstreams"] {
            assert!(!script.contains(hidden), "{shell}: {hidden}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_written_is_said_in_one_line_and_what_was_done_is_whole() {
    let home = Scratch::new();
    let to = |stdout: Stdio, args: &[&str]| {
        let mut command = in_home(&home, args);
        command.stdout(stdout).stderr(Stdio::piped());
        async move { within("the command ends", command.spawn().expect("it starts").wait_with_output()).await }
    };
    let commands: [&[&str]; 6] = [
        &["add", "one", "--", "cat"],
        &["install", "cursor", "gemini"],
        &["completions", "bash"],
        &["config", "path"],
        &["version"],
        &["check"],
    ];
    for args in commands {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("the system has it");
        let ended = to(full.into(), args).await.expect("it runs");
        let expected = "error: stdout cannot be written: No space left on device (os error 28)\n";
        assert_eq!((ended.status.code(), &*text(&ended.stderr)), (Some(1), expected), "{args:?}");
        let (reader, unread) = std::io::pipe().expect("a pipe");
        drop(reader);
        // What was done needs no second time.
        if !["add", "install"].contains(&args[0]) {
            let ended = to(unread.into(), args).await.expect("it runs");
            assert_eq!((ended.status.code(), &*text(&ended.stderr)), (Some(1), ""), "{args:?}");
        }
    }
    for file in [".cursor/mcp.json", ".gemini/settings.json"] {
        let written = std::fs::read_to_string(home.path().join(file)).expect("each host has its file");
        assert!(written.contains("trunkline"), "{file}: {written}");
    }
}

#[tokio::test]
async fn an_older_backup_or_a_link_in_its_place_is_not_taken_for_what_a_file_was() {
    let home = Scratch::new();
    let _config = home.file("trunkline.toml", "[upstreams.a]\ncommand = 'sh'\n");
    std::fs::create_dir(home.path().join(".codex")).expect("it can be made");
    // Without an end of its last line it cannot be taken apart again without a trace.
    let before = "[mcp_servers.a]\ncommand = 'x'";
    let (file, backup) =
        (home.file(".codex/config.toml", before), home.path().join(".codex/config.toml.trunkline-bak"));
    let way = |is_link: bool| match is_link {
        true => std::os::unix::fs::symlink(home.path().join("victim"), &backup),
        false => std::fs::write(&backup, "model = 'older'\n"),
    };
    for is_link in [false, true] {
        way(is_link).expect("it can be made");
        let refused = run(&home, &["install", "codex"]).await;
        let said = text(&refused.stderr);
        assert!(refused.status.code() == Some(1) && said.contains("config.toml.trunkline-bak is in the way"), "{said}");
        assert_eq!(std::fs::read_to_string(&file).expect("it is there"), before);
        assert!(!home.path().join("victim").exists());
        std::fs::remove_file(&backup).expect("it is there");
    }
    for args in [["install", "codex"], ["install", "codex"], ["uninstall", "codex"]] {
        let done = run(&home, &args).await;
        assert!(done.status.success(), "{args:?}: {}", text(&done.stderr));
    }
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), before);
    assert!(!backup.exists());
}

#[tokio::test]
async fn an_entry_that_shares_is_written_where_it_is_asked_for_and_taken_back() {
    let home = Scratch::new();
    let _config = home.file("trunkline.toml", "[upstreams.a]\ncommand = 'sh'\n");
    let file = |host: &str| std::fs::read_to_string(home.path().join(host)).expect("it is there");
    let args = ["install", "cursor", "codex", "goose", "opencode", "--shared"];
    let shared = run(&home, &args).await;
    assert!(shared.status.success(), "{}", text(&shared.stderr));
    for (host, entry) in [
        (".cursor/mcp.json", "\"args\": [\"stdio\", \"--shared\", \"--config\", "),
        (".codex/config.toml", "args = [\"stdio\", \"--shared\", \"--config\", "),
        (".config/goose/config.yaml", "args: [\"stdio\", \"--shared\", \"--config\", "),
        (".config/opencode/opencode.json", "\"stdio\", \"--shared\", \"--config\", "),
    ] {
        assert!(file(host).contains(entry), "{host}: {}", file(host));
    }
    let alone = run(&home, &args[..5]).await;
    assert!(alone.status.success() && !text(&alone.stdout).contains("is up to date"), "{}", text(&alone.stdout));
    assert!(!file(".cursor/mcp.json").contains("--shared") && !file(".config/goose/config.yaml").contains("--shared"));
    let gone = run(&home, &["uninstall", "cursor", "codex", "goose", "opencode"]).await;
    assert!(gone.status.success() && !home.path().join(".cursor/mcp.json").exists(), "{}", text(&gone.stderr));
}

#[tokio::test]
async fn yaml_keeps_all_that_is_not_the_entry() {
    let home = Scratch::new();
    let _config = home.file("trunkline.toml", "[upstreams.a]\ncommand = 'sh'\n");
    for folder in [".config/goose", ".continue"] {
        std::fs::create_dir_all(home.path().join(folder)).expect("it can be made");
    }
    let (goose, other) = (".config/goose/config.yaml", ".continue/config.yaml");
    for (host, file, before) in [
        ("goose", goose, "extensions: {}   # none yet\nGOOSE_MODEL: x\n"),
        ("goose", goose, "extensions: {a: {cmd: x, type: stdio}, b: {type: builtin}}\n"),
        ("goose", goose, "extensions:   # mine\n\n  # first\n  a:\n    cmd: x\n    text: |\n      b\n\n# end\nz: 1"),
        ("goose", goose, "extensions:\r\n    a: {cmd: x}\r\n"),
        ("goose", goose, "---\n# only this"),
        ("goose", goose, "extensions: # none\nz: 1\n"),
        ("goose", goose, "\u{feff}a: 1\nextensions:\n"),
        ("continue", other, "name: x\nmcpServers:\n- name: a # b\n  command: x\n-\n  name: b\n  command: y\nz: 1\n"),
        ("continue", other, "name: x\nmcpServers: []\n"),
        ("continue", other, "mcpServers: [{name: a, command: x}] # one\n"),
        ("continue", other, "mcpServers:\n    - {name: a, command: x}\n\n\n"),
        ("continue", other, "mcpServers:\n- {name: a, command: x}"),
        ("continue", other, "  name: x\n  models: []\n"),
    ] {
        let path = home.file(file, before);
        let read = || std::fs::read_to_string(&path).expect("it is there");
        for args in [&["install", host][..], &["install", host], &["install", host, "--shared"]] {
            let done = run(&home, args).await;
            assert!(done.status.success(), "{before:?}: {}{}", text(&done.stderr), read());
        }
        let with = read();
        assert!(
            with.contains("--shared")
                && with.matches("trunkline:").count() + with.matches("name: trunkline").count() < 3
        );
        let lone = with.matches('\n').count() - with.matches("\r\n").count();
        assert!(!before.contains('\r') || lone == 0, "{with:?}");
        let checked = run(&home, &["check", "--config", file]).await;
        assert!(text(&checked.stderr).contains("own-entry") || text(&checked.stdout).contains("own-entry"), "{with}");
        let gone = run(&home, &["uninstall", host]).await;
        assert_eq!(read(), before, "{}", text(&gone.stderr));
        assert!(!home.path().join(format!("{file}.trunkline-bak")).exists());
    }
    for (host, file, before, why) in [
        ("goose", goose, "extensions: [a]\n", "`extensions` in it is no table"),
        ("goose", goose, "extensions: x\n", "`extensions` in it is no table"),
        ("goose", goose, "extensions: ~\n", "has no value but ~"),
        ("goose", goose, "a: &x {b: {cmd: y}}\nextensions: *x\n", "an anchor, an alias or a tag"),
        ("goose", goose, "a: 1\n---\nb: 2\n", "more than one document"),
        ("goose", goose, "a: [1\n", "it is not YAML"),
        ("goose", goose, "extensions: {}\nextensions: {}\n", "the key `extensions` is defined twice"),
        ("goose", goose, "extensions:\n  b: {cmd: x}\n  b: {cmd: y}\n", "`b` is defined twice, first in line 2"),
        (
            "goose",
            goose,
            "a: 1\nextensions:\n  b: {cmd: x}\n\n  b: {cmd: y}\n",
            "`b` is defined twice, first in line 3",
        ),
        ("goose", goose, "extensions:\n  trunkline: {cmd: other, type: stdio}\n", "does not start Trunkline"),
        ("continue", other, "mcpServers: {}\n", "`mcpServers` in it is no list"),
    ] {
        let path = home.file(file, before);
        let refused = run(&home, &["install", host]).await;
        let said = text(&refused.stderr);
        assert!(refused.status.code() == Some(1) && said.contains(why), "{before:?}: {said}");
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), before);
    }
}

#[tokio::test]
async fn without_a_configuration_the_demo_is_served_and_how_to_begin_is_said() {
    let begin = "no configuration file: serving the built-in demo; to begin, run `trunkline import`";
    let home = Scratch::new();
    // Off a terminal each line of `serve` is an object, and `stdio` writes what hosts show to people.
    let addresses = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    for (args, is_json) in [(&[&["serve"], &addresses[..]].concat()[..], true), (&["stdio"], false)] {
        let mut command = in_home(&home, args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let (mut all, mut is_said) = (Vec::new(), false);
        while !is_said {
            let line = within("it says something", lines.next_line()).await.expect("text").expect("it runs");
            is_said |= line.contains(begin);
            all.push(line);
        }
        process::signal(child.id().expect("it runs"), "TERM");
        while let Some(line) = within("it ends", lines.next_line()).await.expect("text") {
            all.push(line);
        }
        for line in &all {
            assert_eq!(serde_json::from_str::<serde_json::Value>(line).is_ok(), is_json, "{args:?}: {line}");
        }
        let _status = within("it ends", child.wait()).await.expect("it runs");
    }
}
