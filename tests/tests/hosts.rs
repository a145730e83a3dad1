//! The files of hosts as they are: what `check` and `import` make of each, compared with what was looked at and kept.

mod each;
mod judged;
mod paths;
mod told;
mod undone;
mod units;
mod unusable;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use trunkline_tests::golden::{compare, folder};
use trunkline_tests::process::{GATEWAY, beside};
use trunkline_tests::scratch::Scratch;

/// Runs the program where nothing is set but what is said: no variable of this machine, and no program, is found.
pub(crate) fn run(home: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(beside(GATEWAY));
    command.args(args).env_clear().env("HOME", home).env("PATH", "/nonexistent").current_dir(home);
    command.output().expect("it starts")
}

pub(crate) fn text(output: &Output) -> String {
    let said = [&output.stdout[..], &output.stderr].concat();
    format!("exit {}\n{}", output.status.code().unwrap_or(-1), String::from_utf8_lossy(&said))
}

/// The hosts' files, each with its name.
pub(crate) fn files() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder()).expect("the folder is there").flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.is_file()).collect();
    files.sort();
    let read = |path: PathBuf| {
        let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
        (name, std::fs::read_to_string(&path).expect("it can be read"))
    };
    files.into_iter().map(read).collect()
}

#[test]
fn the_files_of_hosts_are_checked_and_imported_as_they_were_looked_at() {
    let mut changed = Vec::new();
    for (name, content) in files() {
        let scratch = Scratch::new();
        let file = scratch.file(&name, &content).display().to_string();
        let check = text(&run(scratch.path(), &["check", "--config", &file]));
        let import = text(&run(scratch.path(), &["import", &file, "--dry-run"]));
        for said in [&check, &import] {
            assert!(!said.contains("canary"), "{name}: a secret is shown\n{said}");
        }
        changed.extend(compare(&format!("{name}.check"), scratch.path(), &check));
        changed.extend(compare(&format!("{name}.import"), scratch.path(), &import));
    }
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}

#[test]
fn what_was_imported_is_a_configuration_that_holds() {
    for (name, content) in files() {
        let scratch = Scratch::new();
        let file = scratch.file(&name, &content).display().to_string();
        let imported = run(scratch.path(), &["import", &file, "--secret-files", "secrets"]);
        assert!(imported.status.success() || name == "ours.json", "{name}: {}", text(&imported));
        assert!(!text(&imported).contains("canary"), "{name}: {}", text(&imported));
        let config = scratch.path().join("trunkline.toml");
        let Ok(written) = std::fs::read_to_string(&config) else { continue };
        assert!(!written.contains("canary"), "{name}: {written}");
        // What hosts ask for, or take from elsewhere, is not there: such a server is left out, as in its host, and the others serve.
        let said = text(&run(scratch.path(), &["check"]));
        assert!(said.starts_with("exit 0") && !said.contains("error["), "{name}: {said}\n{written}");
        let again = text(&run(scratch.path(), &["import", &file]));
        assert_eq!(std::fs::read_to_string(&config).expect("it is there"), written, "{name}: {again}");
        for (path, value) in trunkline_tests::scratch::texts(&scratch.path().join("secrets")) {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
            assert!(mode & 0o777 == 0o600 && value.contains("canary"), "{path}: {mode:o} {value}");
        }
    }
}

#[test]
fn without_a_name_all_hosts_that_are_there_are_read() {
    let scratch = Scratch::new();
    let put = |path: &str, content: &str| {
        let path = scratch.path().join(path);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("it can be written");
        std::fs::write(path, content).expect("it can be written");
    };
    let a = r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}"#;
    put(".cursor/mcp.json", a);
    put(".claude.json", r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "z", "args": ["1"]}}}"#);
    put(".config/zed/settings.json", "{\"theme\": \"x\"}");
    put(".codex/config.toml", "[mcp_servers.c]\ncommand = 'x'\n");
    put(".config/goose/config.yaml", "GOOSE_MODEL: x\n");
    put(".gemini/settings.json", "{\"mcpServers\": }");
    // What a host has that has no servers yet is no fault; what cannot be read is one, and is said.
    let seen = text(&run(scratch.path(), &["import", "--dry-run"]));
    assert_eq!((seen.matches("error[").count(), seen.contains("settings.json:1:16")), (1, true), "{seen}");
    for (host, file) in [("zed", "zed/settings.json"), ("goose", "goose/config.yaml")] {
        let nothing = text(&run(scratch.path(), &["import", host]));
        assert!(!nothing.contains("error[") && nothing.contains("no servers to import: looked at"), "{nothing}");
        assert!(nothing.contains(file), "{nothing}");
    }
    let imported = run(scratch.path(), &["import", "--json"]);
    let said: serde_json::Value = serde_json::from_slice(&imported.stdout).expect("it is JSON");
    let names: Vec<_> =
        said["servers"].as_array().expect("a list").iter().map(|one| (&one["name"], &one["skipped"])).collect();
    let names: Vec<_> = names.iter().map(|(name, why)| (name.as_str().unwrap_or_default(), why.is_null())).collect();
    assert_eq!(names, [("a", true), ("b", true), ("a", false), ("b-cursor", true), ("c", true)]);
    let checked = text(&run(scratch.path(), &["check", "--strict", "--json"]));
    assert!(checked.starts_with("exit 3") && checked.contains("\"no-command\""), "{checked}");
    let nothing = text(&run(scratch.path(), &["import", "windsurf"]));
    assert!(nothing.starts_with("exit 1") && nothing.contains("Windsurf has no file here"), "{nothing}");
}

/// Where each host looks for its file, below the home folder.
const PLACES: [(&str, &str, &str); 17] = [
    ("claude-desktop.json", "claude-desktop", ".config/Claude/claude_desktop_config.json"),
    ("claude-code.json", "claude-code", ".claude.json"),
    ("cursor.json", "cursor", ".cursor/mcp.json"),
    ("vscode.json", "vscode", ".config/Code/User/mcp.json"),
    ("windsurf.json", "windsurf", ".codeium/windsurf/mcp_config.json"),
    ("zed.json", "zed", ".config/zed/settings.json"),
    ("codex.toml", "codex", ".codex/config.toml"),
    ("gemini.json", "gemini", ".gemini/settings.json"),
    ("cline.json", "cline", ".cline/mcp.json"),
    ("opencode.jsonc", "opencode", ".config/opencode/opencode.jsonc"),
    ("opencode-2.jsonc", "opencode", ".config/opencode/opencode.jsonc"),
    ("lm-studio.json", "lm-studio", ".lmstudio/mcp.json"),
    ("copilot-cli.json", "copilot-cli", ".copilot/mcp-config.json"),
    ("kiro.json", "kiro", ".kiro/settings/mcp.json"),
    ("amp.json", "amp", ".config/amp/settings.json"),
    ("goose.yaml", "goose", ".config/goose/config.yaml"),
    ("continue.yaml", "continue", ".continue/config.yaml"),
];

fn put(home: &Path, path: &str, content: &str) -> PathBuf {
    let path = home.join(path);
    std::fs::create_dir_all(path.parent().expect("it has one")).expect("it can be written");
    std::fs::write(&path, content).expect("it can be written");
    path
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("it can be read")
}

#[test]
fn an_entry_is_written_into_the_file_of_each_host_and_taken_out_without_a_trace() {
    let mut changed = Vec::new();
    for (name, content) in files() {
        let Some((_, host, place)) = PLACES.iter().find(|(file, ..)| *file == name) else { continue };
        let scratch = Scratch::new();
        let home = scratch.path();
        let file = put(home, place, &content);
        put(home, "trunkline.toml", "[upstreams.a]\ncommand = 'sh'\n");
        let dry = text(&run(home, &["install", host, "--dry-run"]));
        assert_eq!(read(&file), content, "{dry}");
        let said = text(&run(home, &["install", host]));
        assert!(said.starts_with("exit 0") && !said.contains("canary"), "{said}");
        let written = read(&file);
        changed.extend(compare(&format!("{name}.install"), home, &format!("{said}\n{written}")));
        let again = text(&run(home, &["install", host]));
        assert!(again.contains("is up to date") && read(&file) == written, "{again}");
        // The entry is one that Trunkline itself would leave out, so the file holds.
        let checked = text(&run(home, &["check", "--config", &file.display().to_string()]));
        assert!(checked.contains("warning[own-entry]"), "{checked}");
        let gone = text(&run(home, &["uninstall", host]));
        assert_eq!(read(&file), content, "{name}: {gone}");
        let left: Vec<_> =
            std::fs::read_dir(file.parent().expect("it has one")).expect("it is there").flatten().collect();
        let left: Vec<_> =
            left.iter().map(std::fs::DirEntry::file_name).filter(|left| left != "trunkline.toml").collect();
        let left: Vec<_> = left.iter().filter(|left| left.to_string_lossy().contains("trunkline-bak")).collect();
        assert!(left.is_empty(), "{name}: {left:?}");
        let none = text(&run(home, &["uninstall", host]));
        assert!(none.starts_with("exit 0") && none.contains("has no entry `trunkline`"), "{none}");
    }
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}

#[test]
fn a_file_that_was_not_there_is_made_and_goes_again() {
    for (_, host, _) in PLACES {
        let scratch = Scratch::new();
        let home = scratch.path();
        put(home, "trunkline.toml", "[upstreams.a]\ncommand = 'sh'\n");
        let said = text(&run(home, &["install", host, "--json"]));
        let json: serde_json::Value =
            serde_json::from_str(said.split_once('\n').expect("two lines").1).expect("it is JSON");
        let file = PathBuf::from(json["hosts"][0]["file"].as_str().expect("a path"));
        assert!(read(&file).contains("--config"), "{host}: {said}");
        let gone = text(&run(home, &["uninstall", host]));
        assert!(!file.exists(), "{host}: {gone}");
    }
}

#[test]
fn what_is_changed_after_the_entry_stays_when_it_is_taken_out() {
    let scratch = Scratch::new();
    let home = scratch.path();
    let file = put(home, ".cursor/mcp.json", "{\n  // mine\n  \"mcpServers\": {}\n}\n");
    put(home, "trunkline.toml", "[upstreams.a]\ncommand = 'sh'\n");
    run(home, &["install", "cursor"]);
    put(home, ".cursor/mcp.json", &read(&file).replace("// mine", "// still mine"));
    let said = text(&run(home, &["uninstall", "cursor"]));
    assert!(read(&file).contains("// still mine") && !read(&file).contains("trunkline"), "{said}\n{}", read(&file));
    let other = put(home, ".cursor/mcp.json", "{\"mcpServers\": {\"trunkline\": {\"command\": \"another\"}}}");
    let refused = text(&run(home, &["install", "cursor"]));
    assert!(refused.starts_with("exit 1") && refused.contains("does not start Trunkline"), "{refused}");
    assert!(read(&other).contains("another"));
    let unknown = text(&run(home, &["install", "emacs"]));
    assert!(unknown.contains("unknown host `emacs`. Known: claude-desktop"), "{unknown}");
    let project = text(&run(home, &["install", "vscode", "--scope", "project"]));
    assert!(home.join(".vscode/mcp.json").exists(), "{project}");
    let nothing = Scratch::new();
    let said = text(&run(nothing.path(), &["install", "cursor"]));
    assert!(said.starts_with("exit 1") && said.contains("trunkline import"), "{said}");
}

#[test]
fn an_upstream_is_added_and_removed_and_the_comments_stay() {
    let scratch = Scratch::new();
    let home = scratch.path();
    let before = "# mine\n[upstreams.a] # the first\ncommand = 'sh'\n";
    let file = put(home, "trunkline.toml", before);
    let said = text(&run(home, &["add", "git", "--env", "A=1", "--", "/bin/sh", "-c", "true"]));
    assert!(said.starts_with("exit 0") && said.contains("added `git`"), "{said}");
    let with = "\n[upstreams.git]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"true\"]\nenv = { A = \"1\" }\n";
    assert_eq!(read(&file), format!("{before}{with}"));
    let said = text(&run(home, &["add", "docs", "https://example.com/mcp", "--header", "X-A: b"]));
    assert!(read(&file).contains("headers = { X-A = \"b\" }"), "{said}");
    // What would be a fault is not written.
    for (args, why) in [
        (&["add", "bad_name", "--", "sh"][..], "invalid upstream name"),
        (&["add", "x", "https://me:secret@example.com/"], "user name and password"),
        (&["add", "git", "--", "sh"], "already"),
        (&["add", "y"], "expected `trunkline add y -- COMMAND"),
        (&["remove", "z"], "no upstream `z`"),
    ] {
        let kept = read(&file);
        let said = text(&run(home, args));
        assert!(!said.starts_with("exit 0") && said.contains(why), "{args:?}: {said}");
        assert_eq!(read(&file), kept, "{args:?}");
    }
    let said = text(&run(home, &["remove", "git", "docs"]));
    assert_eq!(read(&file), before, "{said}");
    let files: Vec<_> =
        std::fs::read_dir(home).expect("it is there").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(files, ["trunkline.toml"]);
}

#[test]
fn upstreams_that_are_added_at_once_are_all_there() {
    let scratch = Scratch::new();
    let home = scratch.path();
    let file = put(home, "trunkline.toml", "");
    let add = |number: usize| {
        let mut command = Command::new(beside(GATEWAY));
        command.args(["add", &format!("p{number}"), "--", "/bin/sh"]).env_clear().env("HOME", home).current_dir(home);
        command.stdout(std::process::Stdio::null()).spawn().expect("it starts")
    };
    for mut added in (0..8).map(add).collect::<Vec<_>>() {
        assert!(added.wait().expect("it ends").success());
    }
    let written = read(&file);
    assert!((0..8).all(|number| written.contains(&format!("[upstreams.p{number}]"))), "{written}");
}

#[test]
fn a_configuration_is_edited_as_it_was_written() {
    let scratch = Scratch::new();
    let home = scratch.path();
    let before = "\u{feff}# mine\r\n[upstreams.a] # the first\r\ncommand = 'sh'\r\n";
    let file = put(home, "trunkline.toml", before);
    let added = text(&run(home, &["add", "b", "--", "/bin/sh"]));
    assert_eq!(read(&file), format!("{before}\r\n[upstreams.b]\r\ncommand = \"/bin/sh\"\r\n"), "{added}");
    let removed = text(&run(home, &["remove", "b"]));
    assert_eq!(read(&file), before, "{removed}");
    put(home, "host.json", "{\"mcpServers\": {}}");
    put(home, "codex.toml", "[mcp_servers.a]\ncommand = 'sh'\n");
    let of_folder = || std::fs::metadata(home).and_then(|seen| seen.modified()).expect("it is there");
    let changed = of_folder();
    for (args, why) in [
        (&["add", "c", "https://example.com/", "--env", "A=b"][..], "--env is for a program"),
        (&["add", "c", "--header", "A: b", "--", "sh"], "--header is for a URL"),
        (&["add", "c", "--env", "A=b", "--env", "A=c", "--", "sh"], "`A` is given twice"),
        (&["add", "c", "--env", "=b", "--", "sh"], "expected --env NAME=value"),
        (&["add", "c", "-c", "host.json", "--", "sh"], "host.json is the file of a host"),
        (&["add", "c", "-c", "codex.toml", "--", "sh"], "codex.toml is the file of a host"),
        (&["import", "host.json", "-o", "codex.toml"], "codex.toml is the file of a host"),
        (&["add", "bad_name", "--", "sh"], "invalid upstream name"),
    ] {
        let said = text(&run(home, args));
        assert!(!said.starts_with("exit 0") && said.contains(why), "{args:?}: {said}");
    }
    // What is tried is tried in memory: a file with secrets beside it would be one more to guard.
    assert_eq!(of_folder(), changed);
    assert_eq!(read(&file), before);
}

#[test]
fn a_server_whose_arguments_are_not_all_texts_is_not_taken_over_without_them() {
    let scratch = Scratch::new();
    let home = scratch.path();
    put(home, "host.json", "{\"mcpServers\": {\"g\": {\"command\": \"sh\", \"args\": [\"--port\", 8080]}}}");
    let said = text(&run(home, &["import", "host.json", "--dry-run"]));
    assert!(said.contains("item 2 of its `args` is no text") && !said.contains("--port"), "{said}");
}

#[test]
fn a_second_import_keeps_the_secrets_of_the_first() {
    let scratch = Scratch::new();
    let home = scratch.path();
    let server = |name: &str, secret: &str| {
        format!("{{\"mcpServers\": {{\"{name}\": {{\"command\": \"sh\", \"env\": {{\"A_TOKEN\": \"{secret}\"}}}}}}}}")
    };
    for (name, secret) in [("one", "canary-one"), ("two", "canary-two")] {
        put(home, "host.json", &server(name, secret));
        let said = text(&run(home, &["import", "host.json", "--secret-files", "secrets"]));
        assert!(said.starts_with("exit 0"), "{said}");
        let said = text(&run(home, &["import", "host.json", "-o", "plain.toml"]));
        assert!(said.starts_with("exit 0"), "{said}");
    }
    assert_eq!(read(&home.join("secrets/A_TOKEN")), "canary-one");
    assert_eq!(read(&home.join("secrets/TWO_A_TOKEN")), "canary-two");
    let written = read(&home.join("trunkline.toml"));
    assert!(written.contains("secrets/A_TOKEN}") && written.contains("secrets/TWO_A_TOKEN}"), "{written}");
    let plain = read(&home.join("plain.toml"));
    assert!(plain.contains("\"${A_TOKEN}\"") && plain.contains("\"${TWO_A_TOKEN}\""), "{plain}");
    // A link that someone has put there is not written through.
    std::os::unix::fs::symlink(home.join("victim"), home.join("secrets/THREE_A_TOKEN")).expect("it can be made");
    put(home, "host.json", &server("three", "canary-three"));
    let said = text(&run(home, &["import", "host.json", "--secret-files", "secrets"]));
    assert!(said.starts_with("exit 0") && !home.join("victim").exists(), "{said}");
}

#[test]
fn what_is_wrong_with_a_file_is_said_in_words_that_help() {
    let scratch = Scratch::new();
    let home = scratch.path();
    std::fs::create_dir(home.join("folder")).expect("it can be made");
    let host = |entry: &str| format!("{{\"mcpServers\": {{{entry}}}}}");
    for (name, content, why) in [
        ("folder", None, "folder: it is a folder"),
        ("list.json", Some("[]".to_owned()), "the file of a host is an object: it begins with `{`"),
        ("word.json", Some("hello".to_owned()), "the file of a host is an object: it begins with `{`"),
        ("hole.json", Some("{\"mcpServers\": {\"a\": }}".to_owned()), "a value is missing: a text in double quotes"),
        ("near.json", Some("{\"mcpServer\": {}}".to_owned()), " 1│ {\"mcpServer\": {}}"),
        ("near.yaml", Some("extension:\n  a: {cmd: x}\n".to_owned()), " 1│ extension:"),
        ("both.json", Some("{\"mcpServers\": {},\n\"mcpServers\": {}}".to_owned()), " 2│ \"mcpServers\": {}}"),
        ("none.json", Some(host("")), "hint: add one to this file of a host, or name a file of your own"),
        ("key.json", Some(host(r#""a": {"url": "https://h/", "headers": {"X": "${NO}"}}"#)), "\"headers\": {\"X\": "),
    ] {
        content.iter().for_each(|content| drop(put(home, name, content)));
        let said = text(&run(home, &["check", "--config", name]));
        assert!(said.contains(why) && !said.contains("[upstreams.files]"), "{name}: {said}");
        let said = text(&run(home, &["import", &home.join(name).display().to_string(), "--dry-run"]));
        assert!(!said.contains("Name a file") && !said.contains("TRUNKLINE_UPSTREAMS"), "{name}: {said}");
    }
    let entries = r#""n": {"command": 3}, "e": {"url": ""}, "x": {"args": []}"#;
    put(home, "ways.json", &host(entries));
    let said = text(&run(home, &["import", "ways.json", "--dry-run"]));
    for why in
        ["its `command` is no text: put it in quotes", "its `url` is empty", "it has neither `command` nor `url`"]
    {
        assert!(said.contains(why), "{said}");
    }
}
