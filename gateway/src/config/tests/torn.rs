//! Syntax faults stand beside all others, and none is told that only follows from them.

use super::loading::{load_texts, shown};
use crate::config::Inputs;
use crate::runtime::Scratch;

/// The kinds of the faults and the line of each.
fn kinds(files: &[(&str, &str)]) -> Vec<(&'static str, usize)> {
    let faults = load_texts(files, &[]).unwrap_err().0;
    let line = |place: &Option<crate::config::fault::Place>| match place {
        Some(crate::config::fault::Place::File { excerpt, .. }) => excerpt.line,
        _ => 0,
    };
    faults.iter().map(|fault| (fault.kind, line(&fault.place))).collect()
}

#[test]
fn a_syntax_fault_is_told_beside_the_faults_of_all_other_files() {
    let broken = ("a.toml", "[upstreams.a]\ncommand = npx\n");
    let other = ("b.toml", "[server]\nlissten = 1\n[upstreams.b]\ncomand = \"x\"\nargs = []\n");
    let host = ("c.json", "{\"mcpServers\": {\"c\": {\"command\": 1}, \"d\": {\"command\" 1}}}");
    let missing = ("no-text.toml", "");
    let found =
        [("syntax", 2), ("unknown-key", 2), ("missing-key", 3), ("unknown-key", 4), ("bad-value", 1), ("syntax", 1)];
    let mut told = kinds(&[broken, other, host, missing]);
    let mut expected = found.to_vec();
    told.sort_unstable();
    expected.sort_unstable();
    assert_eq!(told, expected);
}

#[test]
fn all_syntax_faults_of_a_file_are_told_and_its_other_faults() {
    let text = "[server]\nlissten = 1\n[upstreams.a]\ncommand = npx\ncall_timeout = \"soon\"\n[upstreams.b]\nurl = https://h/\ncolour = 1\n";
    assert_eq!(
        kinds(&[("a.toml", text)]),
        [("unknown-key", 2), ("syntax", 4), ("bad-value", 5), ("syntax", 7), ("unknown-key", 8)]
    );
    let said = shown(text);
    for line in [
        "error[syntax]: the value of `command` needs quotes",
        "4│ command = ***",
        "error[syntax]: the value of `url` needs quotes",
        "7│ url = *****:****",
        "5 errors",
    ] {
        assert!(said.contains(line), "{line} is missing in\n{said}");
    }
}

#[test]
fn no_fault_is_told_that_only_follows_from_what_could_not_be_read() {
    let syntax = |line| vec![("syntax", line)];
    // The command, whether it is enabled, what a listener and a door need.
    assert_eq!(kinds(&[("a.toml", "[upstreams.a]\ncommand = x\nargs = [\"${UNSET}\"]\n")]), syntax(2));
    assert_eq!(
        kinds(&[("a.toml", "[upstreams.a]\ncommand = \"x\"\nenabled = flase\nenv.A = \"${UNSET}\"\n")]),
        syntax(3)
    );
    // In a host's file, too, whose names become ours.
    assert_eq!(
        kinds(&[("config.toml", "[mcp_servers.Git_Hub]\nurl = https://h/mcp\n[mcp_servers.b]\nurl = 'http://h/'\n")]),
        syntax(2)
    );
    // A file of Codex stays one, also where its servers are what cannot be read.
    let codex = "model = \"x\"\n[mcp_servers.a\ncommand = \"x\"\n[profiles.p]\nmodel = \"y\"\n";
    assert_eq!(kinds(&[("config.toml", codex)]), syntax(2));
    let door = "[server]\nlisten = \"0.0.0.0:1\"\n[[auth.tokens]]\nname = \"a\"\ntoken = x\n";
    assert_eq!(kinds(&[("a.toml", door)]), syntax(5));
    let pause = "[defaults.restart]\nbackoff_min = \"2h\"\nbackoff_max = 3 h\n";
    assert_eq!(kinds(&[("a.toml", pause)]), syntax(3));
    // What lies over a server of another file.
    let over = ("over.toml", "[upstreams.a]\nprefix = \"b\"\n");
    for (name, text) in [
        ("mcp.json", "{\"mcpServers\": {\"a\": {\"command\": x}}}"),
        ("mcp.json", "{\"mcpServers\": {\"a\": {\"command\": \"x"),
        ("a.toml", "[upstreams.a]\ncommand = x\n"),
        ("a.yaml", "extensions:\n  a: {\n"),
    ] {
        let told = kinds(&[(name, text), over]);
        assert_eq!(told.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), ["syntax"], "{text}");
    }
    let nowhere = Inputs { files: vec!["/nowhere/a.toml".into(), Scratch::new().0.join("b")], ..Inputs::default() };
    let faults = crate::config::load(nowhere).unwrap_err().0;
    assert_eq!(faults.iter().map(|fault| fault.kind).collect::<Vec<_>>(), ["unreadable-file", "unreadable-file"]);
}

#[test]
fn the_servers_around_a_syntax_fault_in_yaml_are_judged() {
    let text = "extensions:\n  a:\n    cmd: x: y\n  b:\n    type: stdio\n  c:\n    args: [x\n  d:\n    cmd: x\n";
    let mut found = kinds(&[("config.yaml", text)]);
    found.sort_unstable();
    assert_eq!(found, [("missing-key", 4), ("syntax", 3), ("syntax", 6)]);
}

#[test]
fn what_is_certain_is_told_of_a_table_with_a_syntax_fault() {
    let text = "[upstreams.a]\ncommand = x\nstart = \"never\"\n[upstreams.b]\nargs = []\n";
    assert_eq!(kinds(&[("a.toml", text)]), [("syntax", 2), ("bad-value", 3), ("missing-key", 4)]);
}

#[test]
fn the_line_of_a_fault_is_shown_as_it_stands_in_the_file() {
    let text = "{\"mcpServers\": {\n  \"a\": {\"command\": \"x\"},\n  \"b\": {\"command\": \"x\", \"args\": [\"y\"";
    let folder = Scratch::new();
    let files = vec![folder.write("mcp.json", text)];
    let said = crate::config::load(Inputs { files, ..Inputs::default() }).unwrap_err().to_string();
    assert!(said.contains("3│   \"b\": {\"command\": \"*\", \"args\": [\"*\"\n"), "{said}");
}

#[test]
fn what_an_editor_or_a_path_has_brought_in_is_told_in_plain_words() {
    for (name, text, why) in [
        ("a.toml", "[upstreams.a]\ncommand = \"C:\\Users\\x\"\n", "a backslash in \"…\" begins an escape"),
        ("a.toml", "[upstreams.a]\ncommand = \"C:\\Program\"\n", "a backslash in \"…\" begins an escape"),
        ("a.toml", "[upstreams.a]\ncommand = “npx”\n", "these are curly quotes"),
        ("a.toml", "[upstreams.a]\nargs = [“npx”]\n", "these are curly quotes"),
        ("a.toml", "[upstreams.a]\nargs = ['x', ‘npx’]\n", "these are curly quotes"),
        ("a.json", "{\"mcpServers\": {\"a\": {\"command\": “npx”}}}", "these are curly quotes"),
        ("a.json", "{“mcpServers”: {}}", "these are curly quotes"),
        ("a.json", "{\"mcpServers\": {\"a\": {\"command\": \"C:\\Program\"}}}", "write \\\\ for each"),
    ] {
        let said = load_texts(&[(name, text)], &[]).unwrap_err().to_string();
        assert!(said.contains(why) && said.matches("error[").count() == 1, "{text}: {said}");
    }
}

#[test]
fn yaml_that_is_not_well_written_is_told_in_plain_words() {
    for (text, why) in [
        ("extensions:\n  a:\n    cmd: \"x\n", "a closing quote is missing"),
        ("mcpServers:\n  - name: c\n    command: x\n   args: [y]\n", "indented otherwise than the lines around it"),
        ("extensions:\n  a:\n    args: [x\n", "a `]` or a comma is missing"),
        ("extensions:\n  a:\n    cmd: x: y\n", "a text with one in it needs quotes"),
        ("extensions:\n  a:\n   cmd: x\n    args: [y]\n", "indented otherwise than the lines around it"),
        ("extensions:\n  a:\n    cmd: \"x\n  b:\n    cmd: y\n", "a closing quote is missing"),
        ("extensions:\n\ta:\n\t\tcmd: x\n", "YAML is indented by blanks"),
        ("extensions:\n  a:\n    cmd: @x\n", "a text that begins with `@` needs quotes"),
        ("extensions:\n  a:\n    cmd: *x\n", "a text that begins with `*` needs quotes"),
        ("extensions:\n  a:\n    cmd: \"\\q\"\n", "a backslash in \"…\" begins an escape"),
        ("extensions:\n  a:\n    args: [x,, y]\n", "a value is missing"),
        ("extensions:\n  a:\n    envs: {}}\n", "a bracket is too many"),
        ("exten", "YAML is read as the file of Goose or Continue"),
        ("mcpServers", "expected `extensions` or `mcpServers`"),
    ] {
        let folder = Scratch::new();
        let files = vec![folder.write("a.yaml", text)];
        let said = crate::config::load(Inputs { files, ..Inputs::default() }).unwrap_err().to_string();
        assert!(said.contains(why) && said.contains("error[syntax]"), "{text}: {said}");
    }
}
