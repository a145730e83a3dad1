//! Paths that are no UTF-8: what cannot be written as it is, is not written.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use trunkline_tests::process::{GATEWAY, beside};
use trunkline_tests::scratch::Scratch;

use super::{put, read, text};

/// What is said of the folder.
const WHY: &str = "`b\\xff\\xfe` in it is not UTF-8. Rename that, or move what is in it elsewhere";
const HOST: &str = "{\"mcpServers\": {\"a\": {\"command\": \"sh\", \"env\": {\"A_TOKEN\": \"canary\"}}}}";

fn odd_folder(home: &Path) -> PathBuf {
    let folder = home.join(OsStr::from_bytes(b"b\xff\xfe"));
    std::fs::create_dir(&folder).expect("it can be made");
    folder
}

fn run_in(folder: &Path, home: &Path, program: &Path, args: &[&OsStr]) -> Output {
    let mut command = Command::new(program);
    command.args(args).env_clear().env("HOME", home).env("PATH", "/nonexistent").current_dir(folder);
    command.output().expect("it starts")
}

#[test]
fn a_path_that_is_no_utf_8_is_written_into_no_hosts_file() {
    let scratch = Scratch::new();
    let (home, gateway) = (scratch.path(), beside(GATEWAY));
    let folder = odd_folder(home);
    std::fs::write(folder.join("trunkline.toml"), "[upstreams.a]\ncommand = 'sh'\n").expect("it can be written");
    put(home, "trunkline.toml", "[upstreams.a]\ncommand = 'sh'\n");
    let file = put(home, ".cursor/mcp.json", "{}");
    let program = folder.join("trunkline");
    // Not a copy where that can be: while a file is written, a program that another test starts holds it open, too, and it cannot be run.
    std::fs::hard_link(&gateway, &program)
        .or_else(|_| std::fs::copy(&gateway, &program).map(drop))
        .expect("it can be put there");
    let config = folder.join("trunkline.toml");
    let words = |args: &[&'static str]| args.iter().map(|arg| OsStr::new(*arg)).collect::<Vec<_>>();
    let named = [words(&["install", "cursor", "--config"]), vec![config.as_os_str()]].concat();
    for (folder, program, args) in [
        (folder.as_path(), &gateway, words(&["install", "cursor"])),
        (home, &gateway, named),
        (home, &program, words(&["install", "cursor", "--dry-run"])),
        (home, &program, words(&["install", "cursor"])),
    ] {
        let said = text(&run_in(folder, home, program, &args));
        assert!(said.starts_with("exit 1") && said.contains(WHY) && !said.contains('\u{fffd}'), "{said}");
        assert_eq!(read(&file), "{}");
    }
}

#[test]
fn what_import_and_add_write_in_a_folder_that_is_no_utf_8_says_nothing_false() {
    let scratch = Scratch::new();
    let (home, gateway) = (scratch.path(), beside(GATEWAY));
    let folder = odd_folder(home);
    std::fs::write(folder.join("host.json"), HOST).expect("it can be written");
    let run = |args: &[&str]| run_in(&folder, home, &gateway, &args.iter().map(OsStr::new).collect::<Vec<_>>());
    let refused = text(&run(&["import", "host.json", "--secret-files", "secrets"]));
    assert!(refused.starts_with("exit 1") && refused.contains(WHY) && !folder.join("secrets").exists(), "{refused}");
    assert!(!folder.join("trunkline.toml").exists());
    let taken = run(&["import", "host.json", "-o", "other.toml", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&taken.stdout).unwrap_or_else(|_| panic!("{}", text(&taken)));
    assert!(json["configuration"].as_str().is_some_and(|path| path.ends_with("/b\\xff\\xfe/other.toml")), "{json}");
    let next = text(&run(&["import", "host.json", "-o", "third.toml"]));
    assert!(next.contains("check --config $'") && next.contains("/b\\xff\\xfe/third.toml'"), "{next}");
    let added = text(&run(&["add", "b", "--json", "--config", "other.toml", "--", "sh"]));
    assert!(added.starts_with("exit 0"), "{added}");
    let written = read(&folder.join("other.toml"));
    assert!(written.contains("b\\xff\\xfe/host.json") && !written.contains('\u{fffd}'), "{written}");
}

#[test]
fn config_path_says_that_a_path_is_no_utf_8() {
    let scratch = Scratch::new();
    let (home, gateway) = (scratch.path(), beside(GATEWAY));
    let folder = odd_folder(home);
    std::fs::write(folder.join("trunkline.toml"), "").expect("it can be written");
    for more in [&["config", "path"][..], &["config", "path", "--json"]] {
        let args: Vec<_> = more.iter().map(OsStr::new).collect();
        let output = run_in(&folder, home, &gateway, &args);
        let said = text(&output);
        let said = said.replace("\\\\", "\\");
        assert!(
            said.starts_with("exit 0")
                && ["note: ", "\"note\":"].iter().any(|note| said.contains(note))
                && said.contains(WHY),
            "{said}"
        );
        let path = String::from_utf8(output.stdout).expect("it is UTF-8").replace("\\\\", "\\");
        assert!(path.contains("/b\\xff\\xfe/trunkline.toml") && !said.contains('\u{fffd}'), "{said}");
    }
    let plain = text(&run_in(home, home, &gateway, &["config", "path"].map(OsStr::new)));
    assert!(!plain.contains("note:"), "{plain}");
}
