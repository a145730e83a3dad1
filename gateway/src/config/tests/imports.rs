//! A host's `mcpServers` file, taken as it is.

use std::time::Duration;

use super::loading::load_texts;
use crate::upstream::config::Transport;

const HOST: &str = r#"{
  // what a host keeps
  "theme": {"dark": true},
  "mcpServers": {
    "My Files": {"command": "npx", "args": ["-y", "server", "${HOME}"], "env": {"A": "${env:KEY}", "N": 1}, "cwd": "/tmp", "autoApprove": ["x"]},
    "remote": {"type": "streamableHttp", "url": "https://h.example/mcp", "headers": {"Authorization": "Bearer ${KEY}"}, "timeout": 1500},
    "wind": {"type": "sse", "serverUrl": "http://h.example/mcp", "timeout": 0},
    "off": {"command": "x", "disabled": true, "args": null},
    "gateway": {"command": "/usr/local/bin/trunkline", "args": ["stdio"]},
  },
}"#;

#[test]
fn entries_are_taken_as_they_are() {
    let loaded =
        load_texts(&[("mcp.json", HOST)], &[("KEY", "k"), ("HOME", "/h")]).unwrap_or_else(|faults| panic!("{faults}"));
    let [files, remote, wind] = &loaded.config.upstreams[..] else { panic!("{:?}", loaded.config.upstreams) };
    assert_eq!((&*files.name, files.title.as_deref(), &*files.prefix), ("my-files", Some("My Files"), "my-files"));
    let Transport::Stdio { command, args, env, cwd } = &files.transport else { panic!() };
    assert_eq!(
        (command.as_str(), args.join(" "), cwd.as_deref()),
        ("npx", "-y server /h".to_owned(), Some("/tmp".as_ref()))
    );
    assert!(env.contains(&("A".into(), "k".into())) && env.contains(&("N".into(), "1".into())));
    let Transport::Http { headers, .. } = &remote.transport else { panic!() };
    assert_eq!(headers["authorization"], "Bearer k");
    assert_eq!(
        (remote.title.as_ref(), remote.call_timeout, wind.call_timeout),
        (None, Some(Duration::from_millis(1500)), None)
    );
    assert_eq!((wind.transport.word(), remote.transport.word()), ("sse", "http"));
    let kinds: Vec<_> = loaded.warnings.iter().map(|fault| (fault.kind, fault.text.as_str())).collect();
    assert_eq!(
        kinds,
        [
            ("unused-key", "`autoApprove` of `My Files` is ignored: Trunkline has no such setting"),
            ("own-entry", "`gateway` starts Trunkline itself and is left out")
        ]
    );
}

#[test]
fn a_key_named_servers_and_a_file_without_its_ending_do_too() {
    let text = r#"  {"servers": {"a": {"type": "stdio", "command": "x"}}}"#;
    assert_eq!(load_texts(&[("mcp", text)], &[]).unwrap().config.upstreams.len(), 1);
}

#[test]
fn what_cannot_be_taken_is_said_with_its_place() {
    let text = "{\"mcpServers\": {\n  \"a b\": {\"type\": \"auto\", \"url\": \"http://x/\"},\n  \"A-B\": {\"command\": 1},\n  \"日本\": {\"command\": \"x\"},\n  \"c\": {\"command\": \"${NO}\"}\n}}";
    let faults = load_texts(&[("mcp.json", text)], &[]).unwrap_err().to_string();
    for (kind, at) in [
        ("unknown-transport", "2:19"),
        ("duplicate-name", "3:3"),
        ("bad-value", "3:22"),
        ("bad-name", "4:3"),
        ("unset-variable", "5:21"),
    ] {
        let found =
            faults.split("error[").any(|fault| fault.starts_with(kind) && fault.contains(&format!("mcp.json:{at}\n")));
        assert!(found, "{kind} at {at} is missing in\n{faults}");
    }
}

#[test]
fn a_broken_file_is_said_with_its_place() {
    for (text, at) in [
        ("{\"mcpServers\": {\n \"a\": {\"command\": \"x\" \"args\": []}}}", "2:23"),
        ("{\"other\": 1}", "1:1"),
        ("[]", "1:1"),
    ] {
        let faults = load_texts(&[("mcp.json", text)], &[]).unwrap_err().to_string();
        assert!(faults.contains("error[syntax]") && faults.contains(&format!("mcp.json:{at}\n")), "{faults}");
    }
}
