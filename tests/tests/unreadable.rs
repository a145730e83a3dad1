//! Files that this user may not read, or folders that take no file: each is named with the reason, and all else goes on.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::hosts::text;
use trunkline_tests::client::Client;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::process::{GATEWAY, beside};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within;

/// What starts a program for which modes count. They do for everybody but root, who has that taken away.
fn bound() -> &'static [&'static str] {
    match std::fs::metadata("/proc/self").expect("the system has it").uid() {
        0 => &["setpriv", "--bounding-set=-dac_override,-dac_read_search"],
        _ => &[],
    }
}

/// Runs the program in a home where nothing else is set; what it says, with its exit code.
fn run(home: &Path, args: &[&str]) -> String {
    let program = beside(GATEWAY).display().to_string();
    let line: Vec<&str> = bound().iter().copied().chain([program.as_str()]).chain(args.iter().copied()).collect();
    let mut command = Command::new(line[0]);
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.args(&line[1..]).env_clear().env("HOME", home).env("PATH", path).env("XDG_RUNTIME_DIR", home);
    text(&command.current_dir(home).output().expect("it starts"))
}

/// A file or folder with a mode, until the test is over: then it can be removed.
struct Mode(PathBuf);

impl Mode {
    fn set(path: PathBuf, mode: u32) -> Mode {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("it is there");
        Mode(path)
    }
}

impl Drop for Mode {
    fn drop(&mut self) {
        // What is gone needs none.
        let _ = std::fs::set_permissions(&self.0, PermissionsExt::from_mode(0o700));
    }
}

fn put(home: &Path, path: &str, content: &str) -> PathBuf {
    let path = home.join(path);
    std::fs::create_dir_all(path.parent().expect("it has one")).expect("it can be made");
    std::fs::write(&path, content).expect("it can be written");
    path
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("it can be read")
}

const SERVERS: &str = "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}";
const CONFIG: &str = "[upstreams.a]\ncommand = 'sh'\n";

#[test]
fn files_of_hosts_that_this_user_may_not_read_are_named_and_the_others_are_imported() {
    let home = Scratch::new();
    let home = home.path();
    put(home, ".claude.json", SERVERS);
    let _cursor = Mode::set(put(home, ".cursor/mcp.json", "{\"mcpServers\": {\"b\": {\"command\": \"x\"}}}"), 0o000);
    put(home, ".gemini/settings.json", SERVERS);
    let _gemini = Mode::set(home.join(".gemini"), 0o000);
    std::fs::create_dir_all(home.join(".kiro/settings/mcp.json")).expect("it can be made");
    let said = run(home, &["import"]);
    assert!(said.starts_with("exit 0") && said.contains("1 server written to "), "{said}");
    for (file, why) in [
        (".cursor/mcp.json", "permission denied"),
        (".gemini/settings.json", "permission denied"),
        (".kiro/settings/mcp.json", "it is a folder"),
    ] {
        let expected = format!("cannot read {}: {why}", home.join(file).display());
        assert!(said.contains(&expected), "{expected}: {said}");
    }
    assert_eq!(said.matches("cannot read").count(), 3, "hosts that are not there are not spoken of: {said}");
    assert!(read(&home.join("trunkline.toml")).contains("[upstreams.a]"));
    for host in ["cursor", "gemini"] {
        let said = run(home, &["import", host]);
        assert!(said.starts_with("exit 1") && said.contains("permission denied"), "{host}: {said}");
        assert!(!said.contains("has no file here"), "{host}: {said}");
    }
}

#[test]
fn what_cannot_be_read_or_written_is_neither_installed_nor_harmed() {
    let home = Scratch::new();
    let home = home.path();
    let config = put(home, "trunkline.toml", CONFIG);
    let file = put(home, ".cursor/mcp.json", SERVERS);
    let refused = |args: &[&str], why: &str| {
        let said = run(home, args);
        assert!(said.starts_with("exit 1") && said.contains(why), "{args:?}: {said}");
    };
    for args in [["install", "cursor"], ["uninstall", "cursor"]] {
        let _mode = Mode::set(file.clone(), 0o000);
        refused(&args, &format!("cannot read {}: permission denied", file.display()));
    }
    {
        let _mode = Mode::set(config.clone(), 0o000);
        refused(&["install", "cursor"], &format!("cannot read {}: permission denied", config.display()));
    }
    let is_alone = || std::fs::read_dir(home.join(".cursor")).expect("it is there").count() == 1;
    let full = |more: &str| format!("cannot write {}{more}: no new file can be made in its folder: ", file.display());
    {
        let _mode = Mode::set(home.join(".cursor"), 0o500);
        // It is kept as it is before it is changed.
        refused(&["install", "cursor"], &full(".trunkline-bak"));
    }
    assert!(read(&file) == SERVERS && is_alone());
    std::fs::write(&file, "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}\n  }\n}\n")
        .expect("it can be written");
    {
        let _mode = Mode::set(home.join(".cursor"), 0o500);
        refused(&["install", "cursor"], &full(""));
    }
    assert!(run(home, &["install", "cursor"]).starts_with("exit 0"));
    let written = read(&file);
    {
        let _mode = Mode::set(home.join(".cursor"), 0o500);
        refused(&["uninstall", "cursor"], &full(""));
    }
    assert!(read(&file) == written && is_alone());
    // A folder that cannot be made is named, too.
    let _mode = Mode::set(home.to_owned(), 0o500);
    refused(&["install", "gemini"], &format!("cannot create {}", home.join(".gemini").display()));
}

#[test]
fn the_doctor_names_what_cannot_be_read_and_says_what_to_do() {
    let home = Scratch::new();
    let home = home.path();
    let config = put(home, "trunkline.toml", CONFIG);
    let file = put(home, ".cursor/mcp.json", SERVERS);
    assert!(run(home, &["install", "cursor"]).starts_with("exit 0"));
    let entry = read(&file);
    let well = run(home, &["doctor"]);
    assert!(well.contains("hosts: Cursor") && well.contains("No problems found"), "{well}");
    let problem = |args: &[&str], text: &str, fix: &str| {
        let said = run(home, args);
        let is_it = said.lines().zip(said.lines().skip(1)).any(|(one, next)| {
            one.starts_with(|first: char| first.is_ascii_digit()) && one.contains(text) && next.contains(fix)
        });
        assert!(said.starts_with("exit 1") && is_it, "{args:?}: {said}");
    };
    let denied = format!("Cursor: cannot read {}: permission denied", file.display());
    for args in [&["doctor"][..], &["doctor", "--host", "cursor"]] {
        let _mode = Mode::set(file.clone(), 0o000);
        problem(args, &denied, "fix: see with `ls -l` who may read it");
    }
    std::fs::write(&file, "{\"mcpServers\": {").expect("it can be written");
    problem(&["doctor"], &format!("Cursor: {}:1:", file.display()), "fix: ");
    {
        let _mode = Mode::set(config.clone(), 0o000);
        problem(&["doctor"], "cannot read trunkline.toml: permission denied", "fix: see with `ls -l`");
    }
    let program = put(home, "bin/trunkline", "");
    let other = entry.replace(&beside(GATEWAY).display().to_string(), &program.display().to_string());
    std::fs::write(&file, &other).expect("it can be written");
    let _mode = Mode::set(program.clone(), 0o644);
    let starts = format!("starts {}, which this user may not start", program.display());
    problem(&["doctor"], &starts, "fix: run `trunkline install cursor`");
    let _mode = Mode::set(home.join("bin"), 0o000);
    let starts = format!("starts {}, which this user may not look at", program.display());
    problem(&["doctor"], &starts, "fix: run `trunkline install cursor`");
}

#[test]
fn a_configuration_that_this_user_may_not_read_is_named_and_no_demo_takes_its_place() {
    let home = Scratch::new();
    let home = home.path();
    let secret = put(home, "token", "canary-of-a-secret");
    let secret = Mode::set(secret, 0o000);
    let config = put(home, "trunkline.toml", CONFIG);
    let host = put(home, "mcp.json", SERVERS);
    let user = put(home, ".config/trunkline/config.toml", CONFIG);
    let denied = |args: &[&str], path: &Path, code: &str| {
        let said = run(home, args);
        let why = format!("cannot read {}: permission denied", path.display());
        assert!(said.starts_with(code) && said.contains(&why) && !said.contains("demo"), "{args:?}: {said}");
    };
    for path in [&config, &host] {
        let _mode = Mode::set(path.clone(), 0o000);
        for command in ["check", "serve", "stdio"] {
            denied(&[command, "--config", &path.display().to_string()], path, "exit 3");
        }
    }
    {
        let _mode = Mode::set(config.clone(), 0o000);
        denied(&["check"], Path::new("trunkline.toml"), "exit 3");
    }
    std::fs::remove_file(&config).expect("it is there");
    for hidden in [user.clone(), home.join(".config/trunkline")] {
        let _mode = Mode::set(hidden, 0o000);
        denied(&["check"], &user, "exit 3");
    }
    let file = secret.0.display();
    let refers = format!("{CONFIG}env = {{ A = '${{file:{file}}}' }}\n");
    put(home, "trunkline.toml", &refers);
    let said = run(home, &["check"]);
    assert!(said.starts_with("exit 3") && said.contains("trunkline.toml:3:"), "{said}");
    assert!(said.contains("permission denied") && !said.contains("canary"), "{said}");
}

#[tokio::test]
async fn a_configuration_that_can_no_longer_be_read_changes_nothing_until_it_can() {
    let up = Upstream::stdio(Script::new("up", Revision::R2025_11_25)).await;
    let config = Config::new().upstream(&up);
    let gateway = Gateway::serve_under(bound(), &config).await;
    let client = Client::connect(&gateway.reach(), Revision::R2025_11_25).await;
    client.tools_until("it is up", |tools| tools.contains(&"up__echo".into())).await;
    let reload = async || {
        let done = within("it answers", gateway.command(&["reload"]).output()).await.expect("it runs");
        text(&done)
    };
    {
        let _mode = Mode::set(gateway.file.clone(), 0o000);
        let said = reload().await;
        let why = format!("cannot read {}: permission denied", gateway.file.display());
        assert!(said.starts_with("exit 3") && said.contains(&why), "{said}");
        let shown = within("it answers", gateway.command(&["ls"]).output()).await.expect("it runs");
        assert!(text(&shown).contains(&why), "{}", text(&shown));
        assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    }
    let said = reload().await;
    assert!(said.starts_with("exit 0"), "{said}");
    let shown = within("it answers", gateway.command(&["ls"]).output()).await.expect("it runs");
    assert!(!text(&shown).contains("cannot read"), "{}", text(&shown));
    assert_eq!(client.call("up__echo", "{\"a\":2}").await.text(), "{\"a\":2}");
}
