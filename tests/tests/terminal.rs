//! Commands on a terminal: `top` gives the screen back whichever way it ends, `call` asks the person, and neither does without one.

mod colours;
mod narrow;

use std::process::{Output, Stdio};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::Order;
use trunkline_tests::process::{self, GATEWAY, Program, beside};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::terminal::{on_terminal_after, sees, types};
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{until, within};

const LEGACY: Revision = Revision::R2025_11_25;

/// The same command on a terminal of its own, which `script` makes.
fn on_terminal(gateway: &Gateway, arguments: &[&str]) -> Child {
    on_terminal_of(gateway, arguments, 100, "")
}

/// One of another width; `redirect` is a shell's word behind the command.
fn on_terminal_of(gateway: &Gateway, arguments: &[&str], columns: usize, redirect: &str) -> Child {
    on_terminal_after(gateway, &[], arguments, columns, redirect)
}

/// `serve` in a home of its own, on a terminal of so many columns, with a variable of its own.
fn serve_at(home: &Scratch, variable: &str, columns: usize) -> Child {
    let line = format!("stty cols {columns} rows 30; exec env {variable} {} serve", beside(GATEWAY).display());
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("HOME", home.path()).env("XDG_RUNTIME_DIR", home.path());
    command.env_remove("XDG_CONFIG_HOME").env_remove("TRUNKLINE_CONFIG").env("SHELL", "/bin/sh");
    command.env("TERM", "xterm").current_dir(home.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    command.spawn().expect("`script` of util-linux is there")
}

/// What stands on the screen after the last time that it was drawn: a line each, without colours.
fn screen(seen: &str) -> Vec<String> {
    let last = seen.rsplit("\u{1b}[H").next().unwrap_or_default();
    let last = last.split("\u{1b}[J").next().unwrap_or_default();
    plain(last).lines().map(str::to_owned).collect()
}

/// A text without what a terminal obeys.
fn plain(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|char: char| char.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        out.push_str(&part[end..]);
    }
    out.replace('\r', "")
}

async fn stage() -> (Upstream, Gateway) {
    let up = Upstream::stdio(Script::new("up", LEGACY).asking()).await;
    let gateway = Gateway::serve(&Config::new().upstream(&up)).await;
    gateway.look_until("/readyz?verbose", "it is up", |page| page.contains("  ready  ")).await;
    (up, gateway)
}

#[tokio::test]
async fn top_draws_the_upstreams_and_gives_the_terminal_back_whichever_way_it_ends() {
    let (_up, gateway) = stage().await;
    for way in ["q", "\u{3}", "TERM", "INT"] {
        let (mut child, mut seen) = (on_terminal(&gateway, &["top"]), String::new());
        sees(&mut child, &mut seen, "1 of 1 server ready").await;
        sees(&mut child, &mut seen, "\u{1b}[32mready").await;
        assert!(seen.contains("\u{1b}[?1049h"), "{seen:?}");
        match way {
            "TERM" | "INT" => {
                let script = child.id().expect("it runs");
                let shells = process::children(script);
                let top = until("`top` runs", || async {
                    shells
                        .iter()
                        .flat_map(|shell| process::children(*shell))
                        .find(|pid| process::command_line(*pid).contains("top"))
                })
                .await;
                process::signal(top, way);
            }
            key => types(&mut child, key).await,
        }
        sees(&mut child, &mut seen, "as before").await;
        let after = seen.split("\u{1b}[?1049l").nth(1).expect("the screen is given back");
        assert!(after.trim_start().starts_with("ended 0") && seen.contains("\u{1b}[?25h"), "{way}: {seen:?}");
        assert!(
            seen.contains("\r\n\r\nended 0") || after.starts_with("\r\nended 0"),
            "its modes are what they were: {seen:?}"
        );
    }
}

#[tokio::test]
async fn top_is_printed_once_where_stdout_is_no_terminal() {
    let (_up, gateway) = stage().await;
    let Output { status, stdout, .. } = within("it ends", gateway.command(&["top"]).output()).await.expect("it runs");
    let said = String::from_utf8_lossy(&stdout).into_owned();
    assert!(status.success() && said.starts_with("1 of 1 server ready, ") && !said.contains('\u{1b}'), "{said}");
    assert!(said.contains("NAME") && said.lines().any(|line| line.starts_with("up ")), "{said}");
    let json = within("it ends", gateway.command(&["top", "--json"]).output()).await.expect("it runs").stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).expect("it is JSON");
    assert_eq!(json["status"]["upstreams"][0]["name"], "up");
}

#[tokio::test]
async fn call_asks_the_person_at_the_terminal_by_way_of_the_gateway_that_runs() {
    let (up, gateway) = stage().await;
    up.caught_up().await;
    let begun = up.frames_with("\"initialize\"");
    let call = ["call", "up__ask", "plan=form", "who=Ada", "nonce=n"];
    let (mut child, mut seen) = (on_terminal(&gateway, &call), String::new());
    sees(&mut child, &mut seen, "asks: ").await;
    sees(&mut child, &mut seen, "): ").await;
    types(&mut child, "Ada\n").await;
    sees(&mut child, &mut seen, "optional): ").await;
    types(&mut child, "\n").await;
    sees(&mut child, &mut seen, "send this?").await;
    types(&mut child, "y\n").await;
    sees(&mut child, &mut seen, "ended 0").await;
    up.caught_up().await;
    assert_eq!(up.frames_with("\"initialize\""), begun, "no other gateway was started");
    let (mut child, mut seen) = (on_terminal(&gateway, &call), String::new());
    sees(&mut child, &mut seen, "): ").await;
    types(&mut child, ":decline\n").await;
    sees(&mut child, &mut seen, "ended ").await;
}

#[tokio::test]
async fn without_a_terminal_a_question_is_declined_and_said() {
    let (_up, gateway) = stage().await;
    let mut command = gateway.command(&["call", "up__ask", "plan=form", "who=Ada", "nonce=n"]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let mut said = String::new();
    while let Some(line) = within("it says so", lines.next_line()).await.expect("text") {
        said.push_str(&line);
    }
    assert!(said.contains("declined, since stdin is no terminal: the server asks: "), "{said}");
    let _status = within("it ends", child.wait()).await.expect("it runs");
}

/// A server whose words would clear the screen, turn lines round, and take two columns each.
fn hostile() -> Program {
    let words = "\\033[2J\\033]0;x\\007\\342\\200\\256\\346\\227\\245\\346\\234\\254".repeat(6);
    Program {
        path: "/bin/sh".into(),
        args: vec!["-c".into(), format!("printf '{words}\\n'; sleep 600")],
        env: Vec::new(),
    }
}

#[tokio::test]
async fn lists_and_top_are_cut_to_the_terminal_and_obey_nothing_that_a_server_says() {
    let up = Upstream::stdio(Script::new("up", LEGACY)).await;
    let config = Config::new().upstream(&up).program("evil", &hostile(), "");
    let gateway = Gateway::serve(&config).await;
    until("the cause is known", || async {
        let listed = within("it ends", gateway.command(&["ls"]).output()).await.expect("it runs");
        String::from_utf8_lossy(&listed.stdout).contains("other things than MCP").then_some(())
    })
    .await;
    for columns in [20, 80, 120] {
        let (mut child, mut seen) = (on_terminal_of(&gateway, &["ls"], columns, ""), String::new());
        sees(&mut child, &mut seen, "ended 0").await;
        let table: Vec<_> = plain(&seen).lines().take(3).map(str::to_owned).collect();
        assert!(table[1..].iter().all(|line| line.chars().count() <= columns), "{columns}: {table:#?}");
        assert!(table[0].starts_with("NAME") && table.iter().any(|line| line.starts_with("evil")), "{table:#?}");
        assert!(columns < 120 || table.iter().any(|line| line.contains("no answer yet")), "{table:#?}");
        let (mut child, mut seen) = (on_terminal_of(&gateway, &["top"], columns, ""), String::new());
        sees(&mut child, &mut seen, "evil").await;
        sees(&mut child, &mut seen, "\u{1b}[J").await;
        types(&mut child, "q").await;
        sees(&mut child, &mut seen, "ended 0").await;
        let shown = screen(&seen);
        assert!(shown.iter().any(|line| line.starts_with("evil")), "{shown:#?}");
        assert!(shown.iter().all(|line| line.chars().count() <= columns), "{columns}: {shown:#?}");
        assert!(!seen.contains("\u{1b}[2J") && !seen.contains("\u{1b}]0") && !seen.contains('\u{202e}'), "{seen:?}");
        assert!(
            seen.contains("\u{1b}[?7l") && seen.contains("\u{1b}[?7h"),
            "a line does not go on in the next: {seen:?}"
        );
    }
}

#[tokio::test]
async fn top_is_drawn_anew_when_the_terminal_changes_and_printed_once_where_nobody_can_type() {
    let (_up, gateway) = stage().await;
    let (mut child, mut seen) = (on_terminal_of(&gateway, &["top"], 100, ""), String::new());
    sees(&mut child, &mut seen, "LAST").await;
    let script = child.id().expect("it runs");
    let terminal = until("`top` runs", || async {
        let all = process::children(script).into_iter().flat_map(process::children);
        let mut all = all.filter(|pid| process::command_line(*pid).contains("top"));
        all.next().and_then(|pid| std::fs::read_link(format!("/proc/{pid}/fd/1")).ok())
    })
    .await;
    let sized = Command::new("stty").arg("-F").arg(&terminal).args(["cols", "30"]).status().await;
    assert!(sized.expect("stty runs").success());
    let is_narrow = |seen: &str| {
        let shown = screen(seen);
        !shown.is_empty() && shown.iter().all(|line| line.chars().count() <= 30) && !shown[2].contains("LAST")
    };
    seen.clear();
    let mut frames = 0;
    while !is_narrow(&seen) {
        seen.clear();
        sees(&mut child, &mut seen, "\u{1b}[J").await;
        frames += 1;
        assert!(frames < 60, "{seen:?}");
    }
    types(&mut child, "q").await;
    let (mut child, mut seen) = (on_terminal_of(&gateway, &["top"], 100, "< /dev/null"), String::new());
    sees(&mut child, &mut seen, "ended 0").await;
    assert!(seen.contains("NAME") && !seen.contains("\u{1b}[?1049h"), "{seen:?}");
}

#[tokio::test]
async fn what_was_typed_before_a_question_does_not_answer_it() {
    let gate = Rule::on_tool("ask", vec![Act::Gate("g".into())]);
    let up = Upstream::stdio(Script::new("up", LEGACY).asking().rule(gate)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&up)).await;
    gateway.look_until("/readyz?verbose", "it is up", |page| page.contains("  ready  ")).await;
    let call = ["call", "up__ask", "plan=form", "who=Ada", "nonce=n"];
    let (mut child, mut seen) = (on_terminal(&gateway, &call), String::new());
    up.waiting_at("g").await;
    // The terminal has it, as it shows it.
    types(&mut child, "Eve\n\ny\n").await;
    sees(&mut child, &mut seen, "Eve\r\n\r\ny\r\n").await;
    up.order(Order::Open("g".into())).await;
    sees(&mut child, &mut seen, "): ").await;
    // Nor does what is pasted behind one answer the next.
    types(&mut child, "Ada\n\ny\n").await;
    sees(&mut child, &mut seen, "optional): ").await;
    types(&mut child, "\n").await;
    sees(&mut child, &mut seen, "send this?").await;
    types(&mut child, "d\n").await;
    sees(&mut child, &mut seen, "ended ").await;
    up.caught_up().await;
    assert!(up.frames_with("decline") > 0 && up.frames_with("\"accept\"") == 0, "{seen}");
}

#[tokio::test]
async fn top_ends_with_its_terminal() {
    let (_up, gateway) = stage().await;
    let (mut child, mut seen) = (on_terminal(&gateway, &["top"]), String::new());
    sees(&mut child, &mut seen, "LAST").await;
    let top = until("`top` runs", || async {
        let all = process::children(child.id()?).into_iter().flat_map(process::children);
        let mut all = all.filter(|pid| process::command_line(*pid).contains("top"));
        all.next()
    })
    .await;
    let told = Command::new("kill").args(["-HUP", &top.to_string()]).status().await;
    assert!(told.expect("kill runs").success());
    sees(&mut child, &mut seen, "ended 0").await;
    assert!(seen.contains("\u{1b}[?1049l"), "the screen is given back: {seen:?}");
}

#[tokio::test]
async fn a_question_that_nobody_would_see_is_declined_and_ctrl_c_in_one_ends_the_call() {
    let (up, gateway) = stage().await;
    let call = ["call", "up__ask", "plan=form", "who=Ada", "nonce=n"];
    let (mut child, mut seen) = (on_terminal_of(&gateway, &call, 100, "2> /dev/null"), String::new());
    sees(&mut child, &mut seen, "ended ").await;
    let (mut child, mut seen) = (on_terminal(&gateway, &call), String::new());
    sees(&mut child, &mut seen, "): ").await;
    types(&mut child, "\u{3}").await;
    let _ended = within("the terminal is given back", child.wait()).await.expect("it runs");
    until("the upstream hears of it", || async { (up.frames_with("cancel") > 0).then_some(()) }).await;
    gateway.look_until("/readyz?verbose", "it is there", |page| page.contains("  ready  ")).await;
}

#[tokio::test]
async fn a_line_of_the_log_at_a_terminal_has_the_time_of_day_there_and_begins_with_its_server() {
    let crash = "echo cannot find module >&2; exit 1";
    let crash = Program { path: "/bin/sh".into(), args: vec!["-c".into(), crash.into()], env: Vec::new() };
    let gateway = Gateway::serve(&Config::new().program("crash", &crash, "")).await;
    let (mut child, mut seen) = (on_terminal(&gateway, &["stdio"]), String::new());
    sees(&mut child, &mut seen, "Press Ctrl-D").await;
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#;
    types(&mut child, &format!("{hello}\n")).await;
    sees(&mut child, &mut seen, "crash: cannot find module").await;
    let line = seen.lines().find(|line| line.contains("cannot find module")).unwrap_or_default();
    let (time, rest) = line.split_once(' ').unwrap_or_default();
    assert!(time.len() == 12 && time.as_bytes()[2] == b':', "{seen}");
    assert!(rest.starts_with("INFO  crash: cannot find module") && !rest.contains("stream="), "{seen}");
}

/// SIGHUP alone reloads; the terminal that showed the log is gone when it comes for that.
#[tokio::test]
async fn a_gateway_ends_with_the_terminal_that_shows_its_log() {
    let (_up, gateway) = stage().await;
    let folder = Scratch::new();
    let log = folder.path().join("serve.log");
    for (redirect, ends) in [(String::new(), true), (format!("2>{}", log.display()), false)] {
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--admin", "off"];
        let mut child = on_terminal_of(&gateway, &arguments, 100, &redirect);
        let script = child.id().expect("it runs");
        let served = until("`serve` has its child", || async {
            let shells = process::children(script);
            let mut serving = shells.iter().flat_map(|shell| process::children(*shell));
            serving.find(|pid| process::children(*pid).len() > 1)
        })
        .await;
        child.kill().await.expect("it runs");
        if !ends {
            until("the configuration is read again", || async {
                std::fs::read_to_string(&log).ok().filter(|log| log.contains("read anew"))
            })
            .await;
            assert!(process::is_alive(served), "it runs where its log is a file");
            process::signal(served, "TERM");
        }
        until("it has ended", || async { (!process::is_alive(served)).then_some(()) }).await;
    }
}
