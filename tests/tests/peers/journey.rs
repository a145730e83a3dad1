//! A new user's way: the servers of a host, taken over, one entry in two hosts, and the commands of a day, with real servers.

use super::errand::{five_upstreams, reading_only};
use super::{judge, plan};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;
use tokio::process::Command;
use trunkline_tests::golden::compare;
use trunkline_tests::peers::{self, Connect, Mode, Sdk, Served, Workplace, none_left, trunkline};
use trunkline_tests::within::{until, within};

/// A command of the program, as that person runs it.
fn command(place: &Workplace, args: &[&str]) -> Command {
    let mut command = Command::new(trunkline());
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.args(args).env_clear().env("HOME", place.home()).env("PATH", path).current_dir(place.home());
    command.kill_on_drop(true);
    command
}

async fn run(place: &Workplace, args: &[&str]) -> Output {
    within("the command ends", command(place, args).output()).await.expect("it runs")
}

/// What a command prints, which has to work.
async fn works(place: &Workplace, args: &[&str]) -> String {
    let Output { status, stdout, stderr } = run(place, args).await;
    let (said, beside) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{args:?}: {status}\n{said}{beside}");
    // Whether a server is waited for so long that it is said is a matter of the machine.
    let beside = beside.lines().filter(|line| !line.starts_with("waiting for `")).map(|line| format!("{line}\n"));
    format!("{said}{}", beside.collect::<String>())
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("it can be read")
}

/// The file of Cursor, with what people have in it.
fn cursor(place: &Workplace, servers: &Value) -> PathBuf {
    let file = place.home().join(".cursor/mcp.json");
    std::fs::create_dir_all(file.parent().expect("it has one")).expect("it can be made");
    let text = serde_json::to_string_pretty(&json!({ "mcpServers": servers })).expect("JSON can be written");
    std::fs::write(&file, format!("// my servers\n{text}\n")).expect("it can be written");
    file
}

/// The program that the entry in a host's file starts, as the host starts it.
fn entry(place: &Workplace, file: &Path) -> Connect {
    let text = read(file);
    let json = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<String>();
    let file: Value = serde_json::from_str(&json).expect("it is JSON");
    let entry = &file["mcpServers"]["trunkline"];
    let args = entry["args"].as_array().expect("a list").iter().map(|arg| arg.as_str().expect("a text").to_owned());
    Connect::Command {
        command: PathBuf::from(entry["command"].as_str().expect("a program")),
        args: args.collect(),
        env: BTreeMap::from([("HOME".to_owned(), place.home().display().to_string())]),
    }
}

#[tokio::test]
async fn an_official_client_starts_the_entry_that_was_written_and_uses_what_was_imported() {
    let Some(peers) = peers::ready() else { return };
    let place = Workplace::new();
    let of_cursor = cursor(&place, &place.five_entries(peers));
    let before = read(&of_cursor);
    let imported = works(&place, &["import", &of_cursor.display().to_string()]).await;
    assert!(imported.contains("5 servers written to "), "{imported}");
    let installed = works(&place, &["install", "claude-code", "cursor"]).await;
    assert!(installed.contains("Claude Code: ") && installed.contains("Cursor: "), "{installed}");
    let of_claude = place.home().join(".claude.json");
    for (file, sdk, errand) in [
        (&of_claude, Sdk::TypeScript1, five_upstreams(&place)),
        (&of_cursor, Sdk::Python2(Mode::Auto), reading_only(&place)),
    ] {
        let report = sdk.run(peers, &plan(entry(&place, file), &errand)).await;
        judge(sdk, sdk.revision(), &report, &errand);
        none_left(&place.mark()).await;
    }
    works(&place, &["uninstall", "claude-code", "cursor"]).await;
    assert_eq!(read(&of_cursor), before);
    assert!(!of_claude.exists(), "what was made is gone");
}

/// A line in which runs of blanks are two.
fn squeezed(line: &str) -> String {
    line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect::<Vec<_>>().join("  ")
}

/// The text without what is another in each run: how long something took, what number a process has, the time of day.
fn masked(text: &str) -> String {
    let is_number = |word: &str| word.parse::<f64>().is_ok();
    let is_unit = |word: &str| ["ms", "s", "min", "h"].contains(&word.trim_end_matches([',', ';', ')']));
    let is_clock = |word: &str| word.split(':').count() == 3 && word.split(':').all(is_number);
    let mut out = String::new();
    for line in text.lines() {
        let line = squeezed(line);
        let words: Vec<&str> = line.split(' ').collect();
        let one = |(at, word): (usize, &&str)| {
            let before = words[..at].iter().rfind(|word| !word.is_empty()).copied().unwrap_or_default();
            let bare = word.trim_end_matches([')', ',', ';']);
            let is_taken = words.get(at + 1).is_some_and(|next| is_unit(next));
            match () {
                () if is_clock(word) => "#:#:#".to_owned(),
                () if is_number(bare) && (is_taken || ["pid", "process", "(process"].contains(&before)) => {
                    word.replace(bare, "#")
                }
                () => (*word).to_owned(),
            }
        };
        let line = words.iter().enumerate().map(one).collect::<Vec<_>>().join(" ");
        // In which units a time is told depends on how long it was.
        out.push_str(&line.replace("# min # s", "# s").replace("# ms", "# s"));
        out.push('\n');
    }
    out
}

/// What the doctor says but for the version of Node and its path, which are those of this machine, and for how many of the servers were
/// read by commands that waited for one of them.
fn without_versions(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix("node: ").and_then(|rest| rest.split_once(", for ")) {
        Some((_, users)) => format!("node: #, for {users}\n"),
        None if line.contains(", as they were last read") => "tools: #, as they were last read\n".to_owned(),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Two servers from npm and two from PyPI, and what a person asks in a day, in the order of a day.
#[tokio::test]
async fn the_commands_of_a_day_print_what_was_looked_at_and_kept() {
    let Some(peers) = peers::ready() else { return };
    let place = Workplace::new();
    let mut servers = place.five_entries(peers);
    servers.as_object_mut().expect("an object").remove("filesystem");
    let of_cursor = cursor(&place, &servers);
    let mut day = String::new();
    let imported = works(&place, &["import", &of_cursor.display().to_string()]).await;
    let mut said = |args: &[&str], what: &str| day.push_str(&format!("$ trunkline {}\n{what}\n", args.join(" ")));
    // How wide its columns are is a matter of the paths of this machine.
    let imported: String = imported.lines().map(|line| format!("{}\n", squeezed(line))).collect();
    said(&["import", "~/.cursor/mcp.json"], &imported);
    for args in [
        &["check"][..],
        &["install", "cursor"],
        &["tools", "time"],
        &["call", "everything__echo", "message=hello"],
        &["doctor"],
    ] {
        said(args, &without_versions(&works(&place, args).await));
    }
    // The gateway of this configuration: all that follows is asked of it. Others may have its usual ports on this machine.
    let served = Served::of(command(&place, &["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])).await;
    until("all are ready", || async { (works(&place, &["ls"]).await.matches(" ready ").count() == 4).then_some(()) })
        .await;
    for args in [
        &["ls"][..],
        &["status", "time"],
        &["call", "everything__get-sum", "a=2", "b=3"],
        &["call", "time__get_current_time", "timezone=Nowhere/Atall"],
        &["calls"],
        &["logs", "everything"],
        &["restart", "time"],
        &["top"],
        &["doctor"],
    ] {
        let what = match args {
            // What a tool says of its own fault ends the command with code 1.
            ["call", "time__get_current_time", ..] => {
                let Output { status, stdout, .. } = run(&place, args).await;
                assert_eq!(status.code(), Some(1));
                String::from_utf8_lossy(&stdout).into_owned()
            }
            args => works(&place, args).await,
        };
        said(args, &masked(&without_versions(&what)));
    }
    served.stop().await;
    said(&["uninstall", "cursor"], &works(&place, &["uninstall", "cursor"]).await);
    none_left(&place.mark()).await;
    let day = day.replace(&peers.node_dir.display().to_string(), "NODE");
    let day = day.replace(&peers.python_bin.display().to_string(), "PYTHON");
    assert!(read(&of_cursor).contains("// my servers"));
    let changed = compare("day", &place.home(), &day);
    assert!(changed.is_none(), "{}", changed.unwrap_or_default());
}
