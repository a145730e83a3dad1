//! Lines have an end on a terminal: what is longer goes on below, and nothing that a person needs is cut.

use super::*;

/// What a command shows on a terminal of so many columns, in a home of its own.
fn shown(home: &Scratch, args: &str, columns: usize) -> String {
    let line = format!("stty cols {columns} rows 30; exec {} {args}", beside(GATEWAY).display());
    let mut command = std::process::Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("HOME", home.path()).env("XDG_RUNTIME_DIR", home.path());
    command.env_remove("XDG_CONFIG_HOME").env_remove("TRUNKLINE_CONFIG").env("SHELL", "/bin/sh").env("TERM", "xterm");
    let ended =
        command.current_dir(home.path()).stdin(Stdio::null()).output().expect("`script` of util-linux is there");
    plain(&String::from_utf8_lossy(&ended.stdout))
}

fn too_long(said: &str, columns: usize) -> Vec<&str> {
    said.lines().filter(|line| line.chars().count() > columns).collect()
}

/// The same text, whatever ends its lines.
fn joined(said: &str) -> String {
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn faults_are_told_in_lines_that_a_terminal_has_room_for_and_the_mark_stands_below_what_it_marks() {
    let home = Scratch::new();
    let address = "https://me:canary@h/a/path/that/goes/on/and/on/and/on/until/no/terminal/has/room/for/it/all/x?y=z";
    let text = format!("[upstreams.a]\nurl = \"{address}\"\n[upstreams.b]\ncommand = 'npxx'\nstrat = 1\n");
    let _file = home.file("trunkline.toml", &text);
    let advice = "a user name and password in a URL are not sent; use headers = { Authorization = \"Basic …\" }";
    for columns in [60, 80, 120] {
        let said = shown(&home, "check", columns);
        assert_eq!(too_long(&said, columns), [""; 0], "{columns}: {said}");
        assert!(joined(&said).contains(advice) && said.contains("2 errors, 1 warning"), "{columns}: {said}");
        assert!(said.contains("│ ^^^^^ did you mean `start`?"), "what fits stays beside the mark: {said}");
        let lines: Vec<&str> = said.lines().collect();
        let at = lines.iter().position(|line| line.starts_with(" 2│ url = \"")).expect("the line is shown");
        assert!(lines[at + 1].contains('^') && lines[at + 1].chars().count() <= lines[at].chars().count(), "{said}");
    }
}

#[test]
fn what_an_import_says_is_read_whole_on_a_narrow_terminal() {
    let home = Scratch::new();
    let servers = r#"{"mcpServers": {
        "a-server-with-a-long-name": {"command": "sh", "args": ["${workspaceFolder}"]},
        "files": {"command": "sh", "env": {"API_KEY": "canary-one"}}}}"#;
    let _file = home.file("mcp.json", servers);
    // A path is not broken, however long it is.
    let path = home.path().display().to_string();
    for columns in [60, 80] {
        let said = shown(&home, "import mcp.json --dry-run", columns);
        let why =
            "mcp.json:2 not imported: `${workspaceFolder}` has no value here; write the path of the folder files ";
        assert!(said.contains("\n  not imported: ") && joined(&said).contains(why), "{said}");
        let told: String = said.lines().filter(|line| !line.contains(&path)).map(|line| format!("{line}\n")).collect();
        assert_eq!(too_long(&told, columns), [""; 0], "{columns}: {said}");
    }
    let said = shown(&home, "import mcp.json --dry-run", 200);
    assert!(said.contains("mcp.json:2  not imported: `${workspaceFolder}` has"), "what fits stands in the row: {said}");
    // So does what ends a command.
    let said = shown(&home, "import curser", 60);
    assert!(said.starts_with("error: unknown host `curser`") && said.lines().count() > 1, "{said}");
    assert_eq!(too_long(&said, 60), [""; 0], "{said}");
}

#[tokio::test]
async fn what_serve_says_first_ends_at_the_width_and_what_is_pasted_stays_as_it_is() {
    let home = Scratch::new();
    let ports = "[server]\nlisten = '127.0.0.1:0'\n[admin]\nlisten = '127.0.0.1:0'\n";
    let left_out = "[upstreams.a]\ncommand = 'sh'\nenv = { KEY = '${NOT_SET_HERE}' }\noptional = true\n";
    let _file = home.file("trunkline.toml", &format!("{ports}{left_out}"));
    let (mut child, mut seen) = (serve_at(&home, "", 60), String::new());
    sees(&mut child, &mut seen, "Codex, Goose, opencode.").await;
    types(&mut child, "\u{3}").await;
    let said = plain(&seen);
    let path = home.path().display().to_string();
    assert_eq!(
        too_long(&said, 60)
            .into_iter()
            .filter(|line| !line.contains(&path) && !line.contains("\"command\""))
            .collect::<Vec<_>>(),
        [""; 0],
        "{said}"
    );
    assert!(joined(&said).contains("`a` is left out, since it is `optional`"), "{said}");
    assert!(!said.contains("no upstreams are configured"), "the reason is told: {said}");
    let json = said.split('{').skip(1).collect::<Vec<_>>().join("{");
    assert!(json.contains("\"url\": \"http://127.0.0.1:"), "{said}");
}
