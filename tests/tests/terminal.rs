//! Commands on a terminal: `top` gives the screen back whichever way it ends, `call` asks the person, and neither does without one.

use std::process::{Output, Stdio};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::process;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{until, within};

const LEGACY: Revision = Revision::R2025_11_25;

/// The same command on a terminal of its own, which `script` makes.
fn on_terminal(gateway: &Gateway, arguments: &[&str]) -> Child {
    let plain = gateway.command(arguments);
    let plain = plain.as_std();
    let quoted = |text: &std::ffi::OsStr| format!("'{}'", text.to_string_lossy().replace('\'', "'\\''"));
    let line: Vec<String> = [plain.get_program()].into_iter().chain(plain.get_args()).map(quoted).collect();
    let line = format!(
        "stty cols 100 rows 30; before=$(stty -g); {}; code=$?; [ \"$before\" = \"$(stty -g)\" ] && echo; echo ended $code as before",
        line.join(" ")
    );
    let mut command = Command::new("script");
    command.args(["-qefc", &line, "/dev/null"]);
    command
        .envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    command.spawn().expect("`script` of util-linux is there")
}

/// Reads what is on the terminal until this stands there; gives all of it.
async fn sees(child: &mut Child, seen: &mut String, text: &str) {
    let stdout = child.stdout.as_mut().expect("it is piped");
    let mut bytes = [0; 4096];
    while !seen.contains(text) {
        let count = within(&format!("the terminal shows {text}; so far: {seen}"), stdout.read(&mut bytes))
            .await
            .expect("it can be read");
        assert!(count > 0, "it ended without {text}: {seen}");
        seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
}

async fn types(child: &mut Child, text: &str) {
    child.stdin.as_mut().expect("it is piped").write_all(text.as_bytes()).await.expect("it is there");
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
