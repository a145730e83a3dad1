//! What is said once to whoever sets a gateway up, what each command prints as JSON, and lines that come while they are waited for.

use std::process::{Output, Stdio};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use trunkline_tests::client::Client;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::process::{GATEWAY, beside};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::shell;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within;

const LEGACY: Revision = Revision::R2025_11_25;

async fn run(mut command: Command) -> Output {
    within("the command ends", command.stdin(Stdio::null()).output()).await.expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn a_pattern_that_matches_no_tool_is_a_warning_once_the_list_is_known() {
    let program = shell::upstream(&[("read_file", "said ok"), ("write_file", "said ok")]);
    let keys = "tools = { allow = ['read_*', 'reed_*'], deny = ['drop'], override = { read = { call_timeout = 1 }, read_file = { call_timeout = 1 } } }\n";
    let well = "tools = { allow = ['read_*', '*_file'], deny = ['write*'] }\n";
    let config = Config::new().program("odd", &program, keys).program("well", &program, well);
    let gateway = Gateway::serve(&config).await;
    gateway.look_until("/readyz?verbose", "both are ready", |page| page.matches("  ready  ").count() == 2).await;
    gateway
        .says(&[
            "a pattern matches no tool",
            "`reed_*` in `tools.allow`, `drop` in `tools.deny`, `read` in `tools.override`",
        ])
        .await;
    let listed = text(&run(gateway.command(&["ls"])).await.stdout);
    let line = |name: &str| listed.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("odd").contains("no tool is matched by `reed_*`"), "{listed}");
    assert!(!line("well").contains("matched"), "{listed}");
}

/// A client of `trunkline stdio` that calls itself so; lists the tools twice, and gives what stood on stderr.
async fn listed_twice(home: &Scratch, client: &str) -> (usize, String) {
    let mut command = Command::new(beside(GATEWAY));
    command.arg("stdio").env("HOME", home.path()).env_remove("XDG_RUNTIME_DIR").current_dir(home.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child: Child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let hello = format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"{client}","version":"1"}}}}}}"#
    );
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let list = |id: usize| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#);
    let mut count = 0;
    for (id, frames) in
        [format!("{hello}\n{ready}\n"), format!("{}\n", list(1)), format!("{}\n", list(2))].iter().enumerate()
    {
        stdin.write_all(frames.as_bytes()).await.expect("it reads");
        loop {
            let line = within("it answers", lines.next_line()).await.expect("text").expect("a line");
            let frame: Value = serde_json::from_str(&line).expect("it is JSON");
            if frame["id"] == id {
                count = frame["result"]["tools"].as_array().map_or(0, Vec::len);
                break;
            }
        }
    }
    drop((stdin, lines));
    let ended = within("it ends", child.wait_with_output()).await.expect("it runs");
    (count, text(&ended.stderr))
}

#[tokio::test]
async fn more_tools_than_a_known_host_takes_is_said_once() {
    let home = Scratch::new();
    let program = shell::lister(1, 90, 1);
    let args: Vec<_> = program.args.iter().map(|arg| Value::from(arg.replace('$', "$$")).to_string()).collect();
    let _file =
        home.file("trunkline.toml", &format!("[upstreams.a]\ncommand = '/bin/sh'\nargs = [{}]\n", args.join(", ")));
    for (client, times) in [("cursor-vscode", 1), ("Visual Studio Code", 0), ("someone", 0)] {
        let (count, said) = listed_twice(&home, client).await;
        assert_eq!(count, 90, "{client}: {said}");
        assert_eq!(said.matches("more tools than this host takes").count(), times, "{client}: {said}");
        assert!(times == 0 || said.contains("Cursor") && said.contains("80"), "{said}");
    }
}

#[tokio::test]
async fn every_command_prints_json_where_it_is_asked_for() {
    let program = shell::upstream(&[("hello", "echo words >&2; said ok")]);
    let gateway = Gateway::serve(&Config::new().program("sh", &program, "")).await;
    gateway.look_until("/readyz?verbose", "it is ready", |page| page.contains("  ready  ")).await;
    let home = Scratch::new();
    let cursor = home.file("mcp.json", "{\"mcpServers\": {\"a\": {\"command\": \"sh\"}}}").display().to_string();
    let output = home.path().join("out.toml").display().to_string();
    for args in [
        &["call", "sh__hello"][..],
        &["tools"],
        &["resources"],
        &["prompts"],
        &["ls"],
        &["status", "sh"],
        &["top"],
        &["check"],
        &["config", "path"],
        &["config", "show"],
        &["config", "schema"],
        &["doctor"],
        &["doctor", "--host", "cursor"],
        &["install", "cursor", "goose", "--dry-run"],
        &["import", &cursor, "--output", &output, "--dry-run"],
        &["restart", "sh"],
        &["stop", "--all"],
        &["start", "sh"],
        &["reload"],
        &["ui", "--print"],
    ] {
        let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        let Output { stdout, stderr, .. } = run(gateway.command(&args)).await;
        let parsed: Result<Value, _> = serde_json::from_slice(&stdout);
        assert!(
            parsed.is_ok_and(|value| value.is_object() || value.is_array()),
            "{args:?}: {}{}",
            text(&stdout),
            text(&stderr)
        );
    }
    // What comes line by line is an object on each line.
    for args in [["logs", "--json"], ["calls", "--json"]] {
        let Output { stdout, stderr, .. } = run(gateway.command(&args)).await;
        let said = text(&stdout);
        assert!(!said.is_empty(), "{args:?}: {}", text(&stderr));
        assert!(
            said.lines().all(|line| serde_json::from_str::<Value>(line).is_ok_and(|value| value.is_object())),
            "{said}"
        );
    }
    for args in [&["add", "b", "--json", "--", "/bin/sh"][..], &["remove", "b", "--json"]] {
        let mut command = Command::new(beside(GATEWAY));
        command.args(args).env("HOME", home.path()).current_dir(home.path());
        let Output { stdout, stderr, .. } = run(command).await;
        assert!(serde_json::from_slice::<Value>(&stdout).is_ok(), "{args:?}: {}{}", text(&stdout), text(&stderr));
    }
}

#[tokio::test]
async fn lines_and_calls_that_come_are_printed_while_they_are_waited_for() {
    let program = shell::upstream(&[("shout", "echo \"heard $id\" >&2; said ok")]);
    let gateway = Gateway::serve(&Config::new().program("sh", &program, "")).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("it is up", |tools| tools.contains(&"sh__shout".into())).await;
    client.call("sh__shout", "{}").await.text();
    let follow = |args: &[&str]| {
        let mut command = gateway.command(args);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        (child, lines)
    };
    let (_logs, mut logs) = follow(&["logs", "sh", "-f"]);
    let (_calls, mut calls) = follow(&["calls", "-f"]);
    let first = within("the first line", logs.next_line()).await.expect("text").expect("a line");
    assert!(first.starts_with("heard "), "{first}");
    client.call("sh__shout", "{}").await.text();
    let second = within("the line that came", logs.next_line()).await.expect("text").expect("a line");
    assert!(second.starts_with("heard ") && second != first, "{first} {second}");
    let mut shouted = 0;
    while shouted < 2 {
        let line = within("a call", calls.next_line()).await.expect("text").expect("a line");
        shouted += usize::from(line.contains("shout"));
    }
}

/// A program of this name in a folder of its own, which a shell carries out.
fn program(home: &Scratch, name: &str, script: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(home.path().join("bin")).expect("it can be made");
    let path = home.file(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("it can be set");
    home.path().join("bin").display().to_string()
}

#[tokio::test]
async fn claude_code_writes_its_file_itself_and_what_it_does_not_do_is_done_here() {
    // It keeps the words that it was given, and writes its file as it likes.
    let well = r#"printf '%s\n' "$*" >> "$HOME/asked"
case "$2" in
add-json) printf '{"numStartups":9,"mcpServers":{"trunkline":%s}}' "$6" > "$HOME/.claude.json" ;;
remove) printf '{"numStartups":9,"mcpServers":{}}' > "$HOME/.claude.json" ;;
esac"#;
    for (script, is_by_it) in [(well, true), ("exit 1", false), ("echo done", false)] {
        let home = Scratch::new();
        let _config = home.file("trunkline.toml", "[upstreams.a]\ncommand = 'sh'\n");
        let before = "{\n  \"numStartups\": 8\n}\n";
        let file = home.file(".claude.json", before);
        let bin = program(&home, "claude", script);
        let run = |args: &[&str]| {
            let mut command = Command::new(beside(GATEWAY));
            command.args(args).env_clear().env("HOME", home.path()).env("PATH", format!("{bin}:/usr/bin:/bin"));
            command.current_dir(home.path());
            run(command)
        };
        let read = || std::fs::read_to_string(&file).expect("it is there");
        let dry = run(&["install", "claude-code", "--dry-run"]).await;
        assert!(dry.status.success() && read() == before, "{}", text(&dry.stderr));
        let done = run(&["install", "claude-code"]).await;
        let said = text(&done.stdout);
        assert_eq!(said.contains("is changed, by `claude mcp`"), is_by_it, "{said}{}", text(&done.stderr));
        assert!(read().contains("trunkline") && read().contains("--config"), "{}", read());
        assert_eq!(read().contains("\"numStartups\":9"), is_by_it, "{}", read());
        let again = run(&["install", "claude-code", "--shared"]).await;
        assert!(again.status.success() && read().contains("--shared"), "{}{}", text(&again.stderr), read());
        let gone = run(&["uninstall", "claude-code"]).await;
        assert!(gone.status.success() && !read().contains("trunkline"), "{}{}", text(&gone.stderr), read());
        if is_by_it {
            let asked = std::fs::read_to_string(home.path().join("asked")).expect("it was asked");
            let verbs: Vec<_> = asked.lines().map(|line| line.split(' ').nth(1).unwrap_or_default()).collect();
            assert_eq!(verbs, ["add-json", "remove", "add-json", "remove"], "{asked}");
            assert!(asked.starts_with("mcp add-json --scope user trunkline {"), "{asked}");
        } else {
            assert_eq!(read(), before);
        }
    }
}

#[tokio::test]
async fn the_files_of_other_hosts_are_edited_and_their_programs_are_not_asked() {
    let home = Scratch::new();
    let _config = home.file("trunkline.toml", "[upstreams.a]\ncommand = 'sh'\n");
    let hosts = [
        ("vscode", "code"),
        ("codex", "codex"),
        ("gemini", "gemini"),
        ("copilot-cli", "copilot"),
        ("opencode", "opencode"),
        ("amp", "amp"),
        ("goose", "goose"),
    ];
    let asked = "echo \"$0 $*\" >> \"$HOME/asked\"";
    let bins: Vec<_> = hosts.iter().map(|(_, name)| program(&home, name, asked)).collect();
    for order in ["install", "uninstall"] {
        for (host, _) in hosts {
            let mut command = Command::new(beside(GATEWAY));
            command.args([order, host]).env_clear().env("HOME", home.path());
            command.env("PATH", format!("{}:/usr/bin:/bin", bins[0])).current_dir(home.path());
            let done = run(command).await;
            assert!(done.status.success(), "{order} {host}: {}", text(&done.stderr));
        }
    }
    assert!(!home.path().join("asked").exists());
}

#[tokio::test]
async fn the_doctor_names_the_sick_servers_of_the_running_gateway_once() {
    let well = Upstream::stdio(Script::new("well", LEGACY)).await;
    let crash = "command = \"sh\"\nargs = [\"-c\", \"echo a token is missing >&2; exit 3\"]";
    let config = Config::new()
        .upstream(&well)
        .section(&format!("[upstreams.crash]\n{crash}"))
        .section("[upstreams.gone]\ncommand = \"/no/such/program\"")
        .section("[upstreams.deaf]\nurl = \"http://127.0.0.1:9/mcp\"");
    let gateway = Gateway::serve(&config).await;
    let all_spoke =
        |page: &str| ["a token is missing", "does not exist", "cannot connect"].iter().all(|why| page.contains(why));
    gateway.look_until("/readyz?verbose", "all have spoken", all_spoke).await;
    let seen = run(gateway.command(&["doctor"])).await;
    let told = text(&seen.stdout);
    assert_eq!(seen.status.code(), Some(1), "{told}{}", text(&seen.stderr));
    let crash: Vec<_> = told.lines().filter(|line| line.contains("upstream `crash` (")).collect();
    assert!(crash.len() == 1 && crash[0].contains("last line on stderr: a token is missing"), "{told}");
    let file = gateway.file.display();
    let look = format!("look at `trunkline status crash --config {file}` and `trunkline logs crash --config {file}`");
    assert!(told.contains(&look), "{told}");
    // What is found without the gateway is said once.
    for name in ["gone", "deaf"] {
        assert_eq!(told.matches(&format!("upstream `{name}`")).count(), 1, "{told}");
    }
    assert!(!told.contains("`well`"), "{told}");
}

#[tokio::test]
async fn an_entry_that_does_not_start_yet_is_said_to_and_why() {
    let home = Scratch::new();
    let install = |value: Option<&str>| {
        let mut command = Command::new(beside(GATEWAY));
        command.args(["install", "cursor"]).env_clear().env("HOME", home.path()).current_dir(home.path());
        command.envs(value.map(|value| ("A_TOKEN", value)));
        run(command)
    };
    let _config = home.file("trunkline.toml", "[upstreams.a]\ncommand = 'sh'\nargs = ['${A_TOKEN}']\n");
    let said = text(&install(None).await.stderr);
    assert!(said.contains("the entry does not start yet: ${A_TOKEN} has no value"), "{said}");
    let said = text(&install(Some("x")).await.stderr);
    let taken = "note: the configuration takes A_TOKEN from this shell";
    assert!(said.starts_with(taken) && said.contains("`env_file`") && said.lines().count() == 1, "{said}");
    let three =
        "[upstreams.a]\ncommand = 'sh'\nargs = ['${A_TOKEN}', '${HOME}']\nenv = { B = '${B_B}', C = '${C_C}' }\n";
    let _config = home.file("trunkline.toml", three);
    let said = text(&install(None).await.stderr);
    assert!(said.contains("${A_TOKEN}, ${B_B} and ${C_C} have no value"), "{said}");
    // What has a default is not missed, and what every program has needs no word.
    let _config = home.file("trunkline.toml", "[upstreams.a]\ncommand = 'sh'\nargs = ['${A_TOKEN:-x}', '${HOME}']\n");
    assert_eq!(text(&install(Some("x")).await.stderr), "");
}

#[tokio::test]
async fn each_command_says_of_an_upstream_that_is_sick_or_disabled_or_unknown_that_it_is() {
    let well = Upstream::stdio(Script::new("well", LEGACY)).await;
    let config = Config::new()
        .upstream(&well)
        .section("[upstreams.gone]\ncommand = \"/no/such/program\"")
        .section("[upstreams.off]\ncommand = \"sh\"\nenabled = false");
    let gateway = Gateway::serve(&config).await;
    let both = |page: &str| page.contains("does not exist") && page.contains("  ready  ");
    gateway.look_until("/readyz?verbose", "one is up and one is not", both).await;
    let off = "`off` is disabled in the configuration: set `enabled = true` in [upstreams.off]";
    for (args, code, what) in [
        (&["tools", "gone"][..], 1, "no tools: upstream `gone` is "),
        (&["tools", "gone"], 1, "does not exist"),
        (&["tools", "nosuch"], 1, "no upstream `nosuch`. Known: well, gone (disabled: off)"),
        (&["tools", "off"], 1, off),
        (&["prompts", "well"], 0, ""),
        (&["call", "gone__find"], 1, "upstream `gone`, which may have it, is not available"),
        (&["call", "gone__find"], 1, "does not exist"),
        (&["call", "nosuch__find"], 1, "no tool `nosuch__find`"),
        (&["call", "off__find"], 1, off),
        (&["status", "off"], 1, off),
        (&["logs", "off"], 1, off),
        (&["start", "off"], 1, off),
        (&["restart", "off"], 1, off),
        (&["enable", "off"], 1, off),
        (&["login", "gone"], 1, "`gone` is a child process, which logs in by itself"),
    ] {
        let Output { status, stdout, stderr } = run(gateway.command(args)).await;
        let said = text(&stdout) + &text(&stderr);
        assert!(status.code() == Some(code) && said.contains(what), "{args:?}: {said}");
        assert!(!said.contains("did you mean") && !said.contains("oauth"), "{args:?}: {said}");
    }
}

#[tokio::test]
async fn a_server_that_still_starts_is_not_said_to_be_broken() {
    let slow = "[upstreams.slow]\ncommand = \"/bin/sleep\"\nargs = [\"600\"]";
    let gateway = Gateway::serve(&Config::new().section(slow)).await;
    gateway.look_until("/readyz?verbose", "it starts", |page| page.contains("  starting  ")).await;
    let doctor = run(gateway.command(&["doctor"])).await;
    assert!(doctor.status.success() && !text(&doctor.stdout).contains("slow"), "{}", text(&doctor.stdout));
    for (args, what) in [
        (&["tools"][..], "no tools yet: all upstreams are still starting (slow): try again"),
        (&["tools", "slow"], "no tools: upstream `slow` is still starting; try again"),
    ] {
        let Output { status, stderr, .. } = run(gateway.command(args)).await;
        assert!(status.code() == Some(1) && text(&stderr).contains(what), "{args:?}: {}", text(&stderr));
    }
}

#[tokio::test]
async fn a_command_in_a_folder_without_a_configuration_says_which_gateway_it_asks() {
    let well = Upstream::stdio(Script::new("well", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&well)).await;
    let elsewhere = Scratch::new();
    let ask = |args: &[&str]| {
        let known = gateway.command(&[]);
        let mut command = Command::new(beside(GATEWAY));
        command.args(args).current_dir(elsewhere.path());
        command.envs(known.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
        run(command)
    };
    for args in [&["tools"][..], &["call", "well__echo"]] {
        let Output { status, stdout, stderr } = ask(args).await;
        assert!(status.success() && !stdout.is_empty(), "{args:?}: {}{}", text(&stdout), text(&stderr));
        let note = text(&stderr);
        assert!(
            note.contains("note: no configuration here: asking the gateway that runs (process "),
            "{args:?}: {note}"
        );
    }
    let Output { stderr, .. } = run(gateway.command(&["tools"])).await;
    assert_eq!(text(&stderr), "", "the configuration is its own");
}
