//! What is told by where a file lies: whose numbers it has; and where the entry stands in a file of which two versions are read.

use trunkline_tests::scratch::Scratch;

use super::{put, read, run, text};

#[test]
fn the_numbers_of_a_host_that_is_named_are_those_of_that_host() {
    let server = r#"{"mcpServers": {"a": {"command": "sh", "timeout": 1800}, "b": {"command": "sh", "autoApprove": [], "timeout": 1800}}}"#;
    for (host, place, expected) in [
        ("cline", ".cline/mcp.json", "1800s"),
        ("cline", ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", "1800s"),
        ("kiro", ".kiro/settings/mcp.json", "1800ms"),
    ] {
        let scratch = Scratch::new();
        let home = scratch.path();
        let file = put(home, place, server);
        let imported = text(&run(home, &["import", host]));
        let written = read(&home.join("trunkline.toml"));
        let line = format!("call_timeout = \"{expected}\"");
        assert_eq!(written.matches(&line).count(), 2, "{host}: {imported}\n{written}");
        // A gateway that reads the file itself counts as `import` does.
        let shown = text(&run(home, &["config", "show", "--config", &file.display().to_string()]));
        assert_eq!(shown.matches(&line).count(), 2, "{host}: {shown}");
    }
}

#[test]
fn an_entry_of_opencode_stands_where_the_version_of_its_file_has_servers() {
    let scratch = Scratch::new();
    let home = scratch.path();
    put(home, "trunkline.toml", "[upstreams.a]\ncommand = 'sh'\n");
    let local = "{ \"type\": \"local\", \"command\": [\"sh\"] }";
    for (before, is_nested) in [
        (format!("{{\n  // mine\n  \"mcp\": {{ \"servers\": {{ \"x\": {local} }} }}\n}}\n"), true),
        ("{\n  \"mcp\": { \"servers\": {} }\n}\n".to_owned(), true),
        // A server of that name.
        (format!("{{\n  \"mcp\": {{ \"servers\": {local} }}\n}}\n"), false),
        (format!("{{\n  \"mcp\": {{ \"x\": {local} }}\n}}\n"), false),
        ("{\n  \"model\": \"m\"\n}\n".to_owned(), false),
    ] {
        let file = put(home, ".config/opencode/opencode.json", &before);
        let installed = text(&run(home, &["install", "opencode"]));
        assert!(installed.starts_with("exit 0"), "{installed}");
        let uncommented = read(&file).replace("// mine\n", "");
        let written: serde_json::Value = serde_json::from_str(&uncommented).expect("it is JSON");
        let entry = |at: &str| written.pointer(at).is_some();
        let found = (entry("/mcp/servers/trunkline/command"), entry("/mcp/trunkline/command"));
        assert_eq!(found, (is_nested, !is_nested), "{written:#}");
        let doctor = text(&run(home, &["doctor", "--host", "opencode"]));
        assert!(!doctor.contains("has no entry"), "{doctor}");
        let gone = text(&run(home, &["uninstall", "opencode"]));
        assert_eq!(read(&file), before, "{gone}");
    }
    // One that was put beside the servers of the second version, where that does not look.
    let entry = format!("{{ \"type\": \"local\", \"command\": [{:?}, \"stdio\"] }}", "/usr/bin/trunkline");
    let before = format!("{{ \"mcp\": {{ \"trunkline\": {entry}, \"servers\": {{ \"x\": {local} }} }} }}\n");
    let file = put(home, ".config/opencode/opencode.json", &before);
    let installed = text(&run(home, &["install", "opencode"]));
    let written: serde_json::Value = serde_json::from_str(&read(&file)).expect("it is JSON");
    assert!(
        written["mcp"]["servers"]["trunkline"]["command"].is_array() && written["mcp"]["trunkline"].is_null(),
        "{installed}\n{written:#}"
    );
    run(home, &["uninstall", "opencode"]);
    assert!(!read(&file).contains("trunkline"), "{}", read(&file));
}
