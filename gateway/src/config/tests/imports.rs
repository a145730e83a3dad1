//! A host's `mcpServers` file, taken as it is.

use std::time::Duration;

use super::loading::{load_texts, shown};
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
    let Transport::Http(reached) = &remote.transport else { panic!() };
    assert_eq!(reached.headers["authorization"], "Bearer k");
    assert_eq!(
        (remote.title.as_ref(), remote.call_timeout, wind.call_timeout),
        // Cline alone writes the transport so, and its time-outs in seconds.
        (None, Some(Duration::from_secs(1500)), None)
    );
    assert_eq!((wind.transport.word(), remote.transport.word()), ("sse", "http"));
    let kinds: Vec<_> = loaded.warnings.iter().map(|fault| (fault.kind, fault.text.as_str())).collect();
    assert_eq!(
        kinds,
        [
            ("unused-key", "`autoApprove` of `My Files` is ignored: Trunkline has no such setting"),
            ("own-entry", "`gateway` starts Trunkline itself and is left out"),
        ]
    );
}

#[test]
fn a_key_named_servers_and_a_file_without_its_ending_do_too() {
    let text = r#"  {"servers": {"a": {"type": "stdio", "command": "x"}}}"#;
    assert_eq!(load_texts(&[("mcp", text)], &[]).unwrap().config.upstreams.len(), 1);
}

#[test]
fn what_cannot_be_taken_is_left_out_and_said_with_its_place() {
    let text = "{\"mcpServers\": {\n  \"a b\": {\"type\": \"auto\", \"url\": \"http://x/\"},\n  \"x\": {\"command\": 1}, \"X\": {\"command\": \"x\"},\n  \"日本\": {\"command\": \"x\"},\n  \"c\": {\"command\": \"${NO}\"},\n  \"off\": {\"command\": \"${NO}\", \"enabled\": false},\n  \"good\": {\"command\": \"x\"}\n}}";
    let loaded = load_texts(&[("mcp.json", text)], &[]).unwrap_or_else(|faults| panic!("{faults}"));
    let names = |loaded: &crate::config::Loaded| -> Vec<String> {
        loaded.config.upstreams.iter().map(|one| one.name.to_string()).collect()
    };
    assert_eq!(
        (names(&loaded), &*loaded.config.disabled[0]),
        (["x-2", "server-1", "good"].map(str::to_owned).to_vec(), "off")
    );
    let said: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    for (kind, at) in
        [("unknown-transport", "2:19"), ("bad-value", "3:20"), ("duplicate-name", "3:24"), ("unset-variable", "5:21")]
    {
        let is_it = |fault: &&String| {
            fault.starts_with(&format!("warning[{kind}]")) && fault.contains(&format!("mcp.json:{at}\n"))
        };
        assert_eq!(said.iter().filter(is_it).count(), 1, "{kind} at {at} is missing in\n{}", said.join("\n"));
    }
    assert_eq!(said.len(), 4, "{}", said.join("\n"));
}

#[test]
fn a_name_of_which_a_letter_is_left_is_told_another() {
    for (name, like) in
        [("Ünï 😀", "my-server"), ("日本", "my-server"), ("Meine Dateien", "meine-dateien"), ("a9_", "my-server")]
    {
        let said = shown(&format!("[upstreams.\"{name}\"]\ncommand = \"x\"\n"));
        assert!(said.contains(&format!("try `{like}`")), "{said}");
    }
}

#[test]
fn what_is_written_over_a_hosts_server_lies_over_it_and_is_judged_strictly() {
    let json = r#"{"mcpServers": {"My Git": {"command": "git-server", "args": ["a"], "timeout": 5}}}"#;
    let over = "[upstreams.my-git]\nprefix = \"git\"\nsharing = \"per-session\"\n";
    let loaded = load_texts(&[("mcp.json", json), ("a.toml", over)], &[]).unwrap_or_else(|faults| panic!("{faults}"));
    let [git] = &loaded.config.upstreams[..] else { panic!("{:?}", loaded.config.upstreams) };
    assert_eq!(
        (&*git.prefix, git.title.as_deref(), git.call_timeout),
        ("git", Some("My Git"), Some(Duration::from_secs(5)))
    );
    let bad = over.replace("per-session", "per-sesion");
    let faults = load_texts(&[("mcp.json", json), ("a.toml", &bad)], &[]).unwrap_err().to_string();
    assert!(faults.contains("error[bad-value]") && faults.contains("a.toml:3:"), "{faults}");
}

#[test]
fn of_two_hosts_with_the_same_server_the_later_has_it_whole() {
    let first = r#"{"mcpServers": {"a": {"command": "x", "args": ["1"]}, "b": {"command": "x"}}}"#;
    let second = r#"{"mcpServers": {"A": {"command": "y"}}}"#;
    let loaded = load_texts(&[("1.json", first), ("2.json", second)], &[]).unwrap_or_else(|faults| panic!("{faults}"));
    let args: Vec<_> = loaded.config.upstreams.iter().filter_map(|one| one.transport.child()).collect();
    let args: Vec<_> = args.iter().map(|child| (child.command, child.args.len())).collect();
    assert_eq!(args, [("x", 0), ("y", 0)]);
    let said = loaded.warnings[0].to_string();
    assert!(said.contains("warning[replaced]: `a` is defined twice: ") && said.contains("1.json:1:17"), "{said}");
}

#[test]
fn a_file_of_variables_is_read_below_those_that_are_written() {
    let folder = crate::runtime::Scratch::new();
    let file = folder.write(".env", "# of me\nexport A=1\nB=\"two words\"\nTOKEN='canary-of-a-file'\n");
    let json = format!(
        r#"{{"mcpServers": {{"a": {{"command": "x", "env": {{"A": "0"}}, "envFile": "{}"}}}}}}"#,
        file.display()
    );
    let loaded = load_texts(&[("mcp.json", &json)], &[]).unwrap_or_else(|faults| panic!("{faults}"));
    let env = loaded.config.upstreams[0].transport.child().unwrap().env.to_vec();
    let pair = |name: &str, value: &str| (name.into(), value.into());
    assert_eq!(env, [pair("A", "0"), pair("B", "two words"), pair("TOKEN", "canary-of-a-file")]);
    assert_eq!(loaded.config.secrets.masked("a canary-of-a-file"), "a [secret]");
}

#[test]
fn what_stands_in_a_list_is_named_by_its_place_and_not_by_its_value() {
    let json = r#"{"mcpServers": {"A b": {"command": "x", "args": ["a", 778899123, true]}}}"#;
    let loaded = load_texts(&[("mcp.json", json)], &[]).unwrap_or_else(|faults| panic!("{faults}"));
    let said: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    let said = said.join("\n");
    assert!(said.contains("`A b.args.1` must be") && said.contains("`A b.args.2` must be"), "{said}");
    assert!(!said.contains("778899123"), "{said}");
}

#[test]
fn slips_in_a_hosts_file_are_understood() {
    let said = |text: &str| load_texts(&[("mcp.json", text)], &[]).unwrap_err().to_string();
    assert!(said(r#"{"mcpServer": {"a": {"command": "x"}}}"#).contains("did you mean `mcpServers`?"));
    let double = said("{\"mcpServers\": {},\n\"mcpServers\": {\"a\": {\"command\": \"y\"}\n}}");
    assert!(double.contains("`mcpServers` is defined twice, first in line 1") && double.contains("mcp.json:2:1\n"));
    assert!(said("{'mcpServers': {}}").contains("JSON has double quotes"), "{}", said("{'mcpServers': {}}"));
    assert!(said("{\"mcpServers\": {\"a\": {\"command\": 'x'}}}").contains("JSON has double quotes"));
}

#[test]
fn a_broken_file_is_said_with_its_place() {
    for (text, at, kind) in [
        ("{\"mcpServers\": {\n \"a\": {\"command\": \"x\" \"args\": []}}}", "2:23", "syntax"),
        ("{\"other\": 1}", "1:1", "no-servers"),
        ("[]", "1:1", "syntax"),
    ] {
        let faults = load_texts(&[("mcp.json", text)], &[]).unwrap_err().to_string();
        assert!(faults.contains(&format!("error[{kind}]")) && faults.contains(&format!("mcp.json:{at}\n")), "{faults}");
    }
}

#[test]
fn a_server_with_a_value_that_cannot_be_used_is_left_out_and_the_others_serve() {
    let json = [
        ("null", r#""command": "x", "args": ["a", null]"#, "item 2 of `args` is null"),
        ("twice", r#""command": "x", "command": "y""#, "the key `command` is defined twice, first in line 3"),
        ("same", r#""command": "x"}, "same": {"command": "y""#, "the key `same` is defined twice, first in line 4"),
        ("number", r#""command": "x", "timeout": 1e999"#, "number out of range"),
        ("half", r#""command": "x", "env": {"A": "\ud800"}"#, "half of a character"),
        ("off", r#""command": "x", "disabled": "true""#, "`disabled` of `off` must be true or false"),
        ("headers", r#""url": "http://h/", "headers": ["A: b"]"#, "`headers` of `headers` must be an object of names"),
        ("env", r#""command": "x", "env": "A=b""#, "`env` of `env` must be an object of names"),
        ("vars", r#""command": "x", "env_vars": [null]"#, "item 1 of `env_vars` is null"),
        ("gone", "", "it is null"),
    ];
    let silent = [
        r#""never": {"command": null, "args": [null], "disabled": true}"#,
        r#""ours": {"command": "x", "autoApprove": [null], "gallery": {"a": 1, "a": 2}}"#,
    ];
    let entries = json.iter().map(|(name, entry, _)| match *entry {
        "" => format!("\"{name}\": null"),
        entry => format!("\"{name}\": {{{entry}}}"),
    });
    let entries: Vec<_> = entries.chain(silent.map(str::to_owned)).collect();
    let json_text = format!("{{\"mcpServers\": {{\n{}\n}}}}", entries.join(",\n"));
    let yaml_text = "extensions:\n  good:\n    cmd: x\n    type: stdio\n  bad:\n    cmd: x\n    args: [a, ~]\n  mute:\n  two:\n    cmd: x\n    envs: {A: 1, A: 2}\n  one: {cmd: x}\n  one: {cmd: y}\nGOOSE_MODEL: a\nGOOSE_MODEL: b\n";
    let files = [("mcp.json", json_text.as_str()), ("goose.yaml", yaml_text)];
    let loaded = load_texts(&files, &[]).unwrap_or_else(|faults| panic!("{faults}"));
    let names: Vec<_> = loaded.config.upstreams.iter().map(|one| &*one.name).collect();
    assert_eq!((names, &*loaded.config.disabled[0]), (vec!["ours", "good"], "never"));
    let said: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    let yaml = [
        ("bad", "item 2 of `args` is null"),
        ("mute", "it is null"),
        ("two", "the key `A` is defined twice, first in line 11"),
        ("one", "the key `one` is defined twice, first in line 12"),
    ];
    let expected = json.iter().map(|(name, _, why)| (*name, *why)).chain(yaml);
    for (name, why) in expected.clone() {
        let is_it = |fault: &&String| fault.contains(why) && fault.contains(&format!("; `{name}` is left out"));
        assert_eq!(said.iter().filter(is_it).count(), 1, "{name} is missing in\n{}", said.join("\n"));
    }
    // Beside them nothing but the key that has no meaning here.
    assert_eq!(said.len(), expected.count() + 1, "{}", said.join("\n"));
    assert!(said.iter().any(|fault| fault.contains("goose.yaml:7:15\n")), "{}", said.join("\n"));
}

#[test]
fn a_server_that_is_none_or_needs_what_only_its_host_knows_is_left_out_by_its_name() {
    let json = r#"{"mcpServers": {"No One": null, "here": {"command": "x", "args": ["${workspaceFolder}"]}, "on": {"command": "x"},
        "off": {"command": "${workspaceFolder}", "disabled": true}, "here too": {"command": "x", "cwd": "${workspaceFolderBasename}"}}}"#;
    let config = load_texts(&[("mcp.json", json)], &[]).unwrap_or_else(|faults| panic!("{faults}")).config;
    let left_out: Vec<_> = config.left_out.iter().map(|one| (&*one.name, &*one.why)).collect();
    assert_eq!(
        left_out,
        [
            ("no-one", "there is no server: it is null"),
            ("here", "`${workspaceFolder}` has no value here; write the path of the folder"),
            ("here-too", "`${workspaceFolderBasename}` has no value here; write the path of the folder"),
        ]
    );
    assert!(config.left_out.iter().all(|one| one.advice.contains("`trunkline reload`")));
    // A later file that has a server of the name puts it in its place.
    let later = r#"{"mcpServers": {"here": {"command": "y"}}}"#;
    let config =
        load_texts(&[("mcp.json", json), ("b.json", later)], &[]).unwrap_or_else(|faults| panic!("{faults}")).config;
    assert!(
        config.left_out.iter().all(|one| one.name != "here") && config.upstreams.iter().any(|one| &*one.name == "here")
    );
}

#[test]
fn an_excerpt_masks_values_and_no_keys_whatever_is_made_of_them() {
    let json = r#"{"theme": {"b": "canary"}, "mcpServers": {"a": {"command": "x", "autoApprove": ["y"], "args": 3, "env": {}}}}"#;
    let yaml = "extensions: {a: {cmd: x, type: stdio, args: 3, display: canary}}\n";
    for (name, text, keys) in [
        ("mcp.json", json, &["theme", "b", "mcpServers", "a", "command", "autoApprove", "args", "env"][..]),
        ("goose.yaml", yaml, &["extensions", "a", "cmd", "type", "args", "display"]),
    ] {
        let said = load_texts(&[(name, text)], &[]).map_or_else(|faults| faults.0, |loaded| loaded.warnings);
        let said: Vec<_> = said.iter().map(ToString::to_string).filter(|fault| fault.contains("args")).collect();
        let line = said[0].lines().find(|line| line.contains(" 1│ ")).unwrap();
        assert!(keys.iter().all(|key| line.contains(key)) && !said[0].contains("canary"), "{line}");
    }
}

#[test]
fn a_number_among_the_variables_is_the_text_that_the_host_would_hand_on() {
    let yaml = "extensions:\n  a:\n    cmd: x\n    timeout: 0x10\n    envs: {A: 1.0, B: 0x10, C: 1e3, D: 017, E: 0o17, F: True, G: 1_0, H: 12345678901234567890}\n";
    let toml = "[upstreams.b]\ncommand = 'x'\nenv = { A = 1.0, B = 0x10, C = 1e3, F = true, G = 1_0 }\n";
    let json = r#"{"mcpServers": {"c": {"command": "x", "env": {"A": 1.0, "C": 1e3, "F": true}}}}"#;
    let files = [("goose.yaml", yaml), ("a.toml", toml), ("mcp.json", json)];
    let loaded = load_texts(&files, &[]).unwrap_or_else(|faults| panic!("{faults}"));
    let shown: Vec<String> = loaded
        .config
        .upstreams
        .iter()
        .map(|one| one.transport.child().map_or(&[][..], |child| child.env))
        .map(|env| {
            env.iter()
                .map(|(name, value)| [name, value].map(|text| text.to_string_lossy()).join("="))
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    assert_eq!(
        shown,
        [
            "A=1.0 B=0x10 C=1e3 D=017 E=0o17 F=True G=1_0 H=12345678901234567890",
            "A=1.0 B=16 C=1e3 F=true G=10",
            "A=1 C=1000 F=true"
        ]
    );
    assert_eq!(loaded.config.upstreams[0].call_timeout, Some(Duration::from_secs(16)));
}

#[test]
fn an_optional_upstream_is_left_out_where_a_variable_or_a_file_is_missing_and_nothing_else_is_forgiven() {
    let other = "[upstreams.b]\ncommand = \"x\"\n";
    let with = |keys: &str| load_texts(&[("a.toml", &format!("[upstreams.a]\n{keys}\n{other}"))], &[]);
    let names = |loaded: &crate::config::Loaded| {
        loaded.config.upstreams.iter().map(|one| one.name.to_string()).collect::<Vec<_>>()
    };
    for keys in [
        "command = \"x\"\nargs = [\"${NO}\"]",
        "command = \"x\"\nenv.A = \"${NO:?is needed}\"",
        "command = \"x\"\nenv_file = \"/no/such/file\"",
        "url = \"https://h/\"\nheaders.A = \"${file:/no/such/file}\"",
    ] {
        assert!(with(keys).is_err(), "{keys}");
        let loaded = with(&format!("{keys}\noptional = true")).unwrap();
        assert_eq!(names(&loaded), ["b"], "{keys}");
        let said = loaded.warnings[0].to_string();
        assert!(said.contains("; `a` is left out, since it is `optional`"), "{said}");
        let off = with(&format!("{keys}\noptional = true\nenabled = false")).is_ok();
        assert_eq!(off, !keys.contains("/no/such"), "{keys}");
    }
    for keys in ["command = \"x\"\nargs = [\"${NO}\"]\nstart = \"never\"", "args = [\"${NO}\"]"] {
        assert!(with(&format!("{keys}\noptional = true")).is_err(), "{keys}");
    }
    assert_eq!(names(&with("command = \"x\"\noptional = true").unwrap()), ["a", "b"]);
}
