//! What `install` writes into the file of a host, `uninstall` takes out again, and leaves what was there.

use std::process::Command;

use trunkline_tests::scratch::Scratch;

use super::{put, read, run, text};

#[test]
fn a_file_that_install_could_not_undo_is_left_alone() {
    let scratch = Scratch::new();
    let home = scratch.path();
    put(home, "trunkline.toml", "[upstreams.a]\ncommand = 'sh'\n");
    let place = ".cursor/mcp.json";
    for (content, why) in [
        ("{\"mcpServers\": {},\n \"mcpServers\": {}}", "the key `mcpServers` is defined twice"),
        ("{\"mcpServers\": {\"a\": {\"command\": \"x\"}, \"a\": {}}}", "the key `a` is defined twice"),
        ("{\"mcpServers\": {\"Trunkline\": {\"command\": \"x\"}}}", "rename `Trunkline`"),
    ] {
        let file = put(home, place, content);
        let said = text(&run(home, &["install", "cursor"]));
        assert!(said.starts_with("exit 1") && said.contains(why), "{content}: {said}");
        assert_eq!(read(&file), content);
    }
    let large = format!("{{\"x\": \"{}\", \"mcpServers\": {{}}}}", "a".repeat(32 << 20));
    let file = put(home, place, &large);
    let said = text(&run(home, &["install", "cursor"]));
    assert!(said.starts_with("exit 1") && said.contains("larger than 32 MiB"), "{said}");
    std::fs::remove_file(&file).expect("it is there");
    let piped = Command::new("mkfifo").arg(&file).status().expect("it runs");
    assert!(piped.success());
    for command in ["install", "uninstall"] {
        let said = text(&run(home, &[command, "cursor"]));
        assert!(said.starts_with("exit 1") && said.contains("not a regular file"), "{said}");
    }
    std::fs::remove_file(&file).expect("it is there");
    std::os::unix::fs::symlink("nothing.json", &file).expect("it can be made");
    let said = text(&run(home, &["install", "cursor"]));
    assert!(said.starts_with("exit 1") && said.contains("is a link to a file that is not there"), "{said}");
    assert!(file.is_symlink());
    std::fs::remove_file(&file).expect("it is there");
    std::os::unix::fs::symlink("mcp.json", &file).expect("it can be made");
    for args in [&["install", "cursor"][..], &["import", "cursor"], &["doctor"], &["check", "--config", place]] {
        let said = text(&run(home, args));
        assert!(
            !said.starts_with("exit 0") && said.contains("is a link that leads back to itself"),
            "{args:?}: {said}"
        );
        assert!(!said.contains("os error"), "{args:?}: {said}");
    }
}

#[test]
fn what_was_there_before_install_is_there_after_uninstall() {
    let scratch = Scratch::new();
    let home = scratch.path();
    put(home, "trunkline.toml", "[upstreams.a]\ncommand = 'sh'\n");
    for (host, place, content) in [
        ("cursor", ".cursor/mcp.json", ""),
        ("cursor", ".cursor/mcp.json", "\u{feff}{\"mcpServers\": {}}\r\n"),
        ("cursor", ".cursor/mcp.json", "\u{feff}"),
        (
            "cursor",
            ".cursor/mcp.json",
            "{\"mcpServers\": {\"a\": {\"args\": [null], \"command\": 1, \"command\": 2}}}\n",
        ),
        ("cursor", ".cursor/mcp.json", "{\"mcpServers\": {\"a\": null}}\n"),
        (
            "goose",
            ".config/goose/config.yaml",
            "extensions:\n  a:\n    cmd: x\n    envs: {A: 1, A: 2}\n  b:\nGOOSE_MODEL: x\nGOOSE_MODEL: y\n",
        ),
        ("codex", ".codex/config.toml", "# mine\r\nmodel = 'x'\r\n"),
        // What install would write into a file that it makes.
        ("continue", ".continue/config.yaml", "name: Local Config\nversion: 1.0.0\nschema: v1\n"),
        ("codex", ".codex/config.toml", "\u{feff}[mcp_servers.a]\r\ncommand = 'x'"),
    ] {
        let file = put(home, place, content);
        for is_link in [false, true] {
            if is_link {
                std::fs::rename(&file, home.join("real")).expect("it can be moved");
                std::os::unix::fs::symlink(home.join("real"), &file).expect("it can be made");
            }
            // A host that is named twice is meant once.
            let said = text(&run(home, &["install", host, host]));
            assert!(said.starts_with("exit 0") && read(&file).contains("trunkline"), "{content:?}: {said}");
            let lone = read(&file).lines().count() != read(&file).matches("\r\n").count();
            assert!(host != "codex" || content.ends_with('x') || !lone, "{:?}", read(&file));
            let said = text(&run(home, &["uninstall", host, host]));
            assert!(said.starts_with("exit 0") && read(&file) == content, "{content:?}: {said}{:?}", read(&file));
            let names = std::fs::read_dir(file.parent().expect("it has one")).expect("it is there").count();
            assert!(names == 1 && file.is_symlink() == is_link, "{content:?}: {said}");
        }
        std::fs::remove_file(&file).expect("it is there");
    }
}

#[test]
fn comments_stay_when_the_entry_is_taken_out_of_a_file_that_was_edited_meanwhile() {
    let scratch = Scratch::new();
    let home = scratch.path();
    put(home, "trunkline.toml", "[upstreams.a]\ncommand = 'sh'\n");
    for (host, place, content, tail) in [
        ("goose", ".config/goose/config.yaml", "extensions:   # mine\nz: 1\n", "y: 2\n"),
        ("continue", ".continue/config.yaml", "name: x\nmcpServers: # mine\n", "y: 2\n"),
        ("codex", ".codex/config.toml", "# mine\n[mcp_servers] # too\n", "# tail\n"),
        (
            "cursor",
            ".cursor/mcp.json",
            "{ // mine\n  \"mcpServers\": { // too\n    // more\n  } // end\n}",
            "\n// tail\n",
        ),
        (
            "vscode",
            ".config/Code/User/mcp.json",
            "{\n  \"servers\": {\n    \"a\": {\"command\": \"x\"} // a\n    // b\n  }\n}\n",
            "// c\n",
        ),
    ] {
        let file = put(home, place, content);
        let said = text(&run(home, &["install", host]));
        assert!(said.starts_with("exit 0"), "{said}");
        std::fs::write(&file, format!("{}{tail}", read(&file))).expect("it can be written");
        let backup = file.with_file_name(format!("{}.trunkline-bak", file.file_name().expect("one").to_string_lossy()));
        let is_kept = backup.exists();
        let said = text(&run(home, &["uninstall", host]));
        let is_told =
            ["then: restart it\n", "then: it reads the file by itself\n"].iter().any(|then| said.contains(then));
        assert!(is_told, "{said}");
        assert!(said.starts_with("exit 0"), "{said}");
        assert_eq!(read(&file), format!("{content}{tail}"), "{said}");
        let stays = format!("{} stays: it has what the file was", backup.display());
        assert_eq!((backup.exists(), said.contains(&stays)), (is_kept, is_kept), "{host}: {said}");
    }
}
