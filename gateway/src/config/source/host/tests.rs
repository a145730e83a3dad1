//! Each dialect becomes the same keys, and what cannot be used is named.

use super::*;
use crate::config::source::node::Shape;
use crate::config::source::{json, toml, yaml};

fn hosted(text: &str) -> Hosted {
    let root = if text.starts_with('{') {
        json::parse(text).map_err(|fault| fault.text).unwrap()
    } else if text.starts_with(['e', 'm']) {
        yaml::parse(text).map_err(|fault| fault.text).unwrap()
    } else {
        toml::parse(text).map_err(|fault| fault.text).unwrap()
    };
    read(&root, None)
}

/// A server in one line.
fn shown(shape: &Shape) -> String {
    match shape {
        Shape::Text(text) => text.clone(),
        Shape::Bool(flag) => flag.to_string(),
        Shape::Integer(number) => number.to_string(),
        Shape::Float(number) => number.to_string(),
        Shape::Broken(why) => why.clone(),
        Shape::List(items) => {
            format!("[{}]", items.iter().map(|item| shown(&item.shape)).collect::<Vec<_>>().join(" "))
        }
        Shape::Table(entries) => {
            let one = |(key, node): &(String, Node)| format!("{key}={}", shown(&node.shape));
            format!("{{{}}}", entries.iter().map(one).collect::<Vec<_>>().join(" "))
        }
    }
}

fn one(text: &str) -> String {
    let hosted = hosted(text);
    assert_eq!(hosted.notes.iter().map(|note| &note.text).collect::<Vec<_>>(), [""; 0], "{text}");
    shown(&hosted.servers[0].node.shape)
}

#[test]
fn a_server_tells_whose_words_it_has_where_its_place_does_not() {
    for (text, expected) in [
        (
            r#"{"mcpServers": {"a": {"command": "x", "disabled": false, "timeout": 60}}}"#,
            "{command=x call_timeout=60s}",
        ),
        (
            r#"{"mcpServers": {"a": {"type": "streamableHttp", "url": "http://h", "timeout": 7200}}}"#,
            "{transport=http url=http://h call_timeout=7200s}",
        ),
        (
            r#"{"mcp": {"servers": {"a": {"type": "remote", "url": "http://h", "headers": {"K": "{env:V}"}}}}}"#,
            "{url=http://h headers={K=${V:-}}}",
        ),
        // A list as a command is of opencode alone, also where no type stands beside it.
        (
            r#"{"servers": {"a": {"command": ["x", "{env:V}"], "timeout": 5}}}"#,
            "{command=x args=[${V:-}] startup_timeout=5ms}",
        ),
        // A number that no other key tells: these two are written by Cline alone.
        (
            r#"{"mcpServers": {"a": {"transportType": "http", "url": "http://h", "timeout": 1800}}}"#,
            "{transport=http url=http://h call_timeout=1800s}",
        ),
        (
            r#"{"mcpServers": {"a": {"transport": {"type": "stdio", "command": "x"}, "timeout": 1800}}}"#,
            "{command=x call_timeout=1800s}",
        ),
        // No bound on a start is none here.
        (r#"{"mcp": {"a": {"type": "local", "command": ["x"], "timeout": 0}}}"#, "{command=x args=[]}"),
    ] {
        assert_eq!(one(text), expected, "{text}");
    }
}

#[test]
fn the_place_of_a_file_tells_whose_numbers_it_has_where_its_keys_cannot() {
    let text = r#"{"mcpServers": {"a": {"command": "x", "autoApprove": [], "timeout": 1800}, "b": {"command": "x", "timeout": 1800}}}"#;
    let root = json::parse(text).map_err(|fault| fault.text).unwrap();
    for (place, expected) in [
        (
            "/h/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ["1800s", "1800s"],
        ),
        ("/h/.cline/mcp.json", ["1800s", "1800s"]),
        ("/h/.kiro/settings/mcp.json", ["1800ms", "1800ms"]),
        ("/h/.gemini/settings.json", ["1800ms", "1800ms"]),
        ("/h/any.json", ["1800s", "1800ms"]),
    ] {
        let servers = read(&root, at(std::path::Path::new(place))).servers;
        let times: Vec<_> = servers.iter().map(|one| shown(&one.node.get("call_timeout").unwrap().shape)).collect();
        assert_eq!(times, expected, "{place}");
    }
}

#[test]
fn both_versions_of_opencode_are_read_and_what_stands_beside_the_servers_of_the_second() {
    let local = r#""type": "local", "command": ["x"]"#;
    for (mcp, expected) in [
        (
            format!(r#""servers": {{"a": {{{local}, "timeout": {{"startup": 1, "execution": 2, "catalog": 3}}}}}}"#),
            vec!["a={command=x args=[] startup_timeout=1ms call_timeout=2ms}"],
        ),
        (
            format!(r#""servers": {{"a": {{{local}, "timeout": {{"request": 2}}}}}}, "timeout": {{"startup": 9}}"#),
            vec!["a={command=x args=[] call_timeout=2ms}"],
        ),
        (
            format!(r#""b": {{{local}}}, "servers": {{"type": {{{local}}}}}"#),
            vec!["type={command=x args=[]}", "b={command=x args=[]}"],
        ),
        (
            format!(r#""servers": {{{local}}}, "b": {{{local}}}"#),
            vec!["servers={command=x args=[]}", "b={command=x args=[]}"],
        ),
    ] {
        let found = hosted(&format!(r#"{{"mcp": {{{mcp}}}}}"#));
        assert!(found.notes.is_empty(), "{mcp}: {:?}", found.notes);
        let servers = found.servers.iter().map(|one| format!("{}={}", one.slug, shown(&one.node.shape)));
        assert_eq!(servers.collect::<Vec<_>>(), expected, "{mcp}");
    }
}

#[test]
fn a_server_that_the_settings_of_gemini_shut_out_is_switched_off_here_too() {
    let servers = r#""mcpServers": {"a": {"httpUrl": "http://h/"}, "b": {"command": "x"}, "c": 1}"#;
    for (mcp, on) in [
        (r#""excluded": ["a", "c"]"#, vec!["b"]),
        (r#""allowed": ["a"]"#, vec!["a"]),
        (r#""allowed": ["a", "b"], "excluded": ["b", "c"]"#, vec!["a"]),
        (r#""allowed": [], "excluded": ["c"]"#, vec!["a", "b"]),
    ] {
        let found = hosted(&format!("{{{servers}, \"mcp\": {{{mcp}}}}}"));
        let is_on = |one: &&Server| one.node.get("enabled").is_none();
        let named: Vec<_> = found.servers.iter().filter(is_on).map(|one| &*one.slug).collect();
        assert_eq!(named, on, "{mcp}");
    }
}

#[test]
fn the_login_of_a_host_is_named_with_what_stands_in_its_place_here() {
    let said = |more: &str| {
        let notes = hosted(&format!("{{\"mcpServers\": {{\"My X\": {{\"url\": \"https://h/\", {more}}}}}}}")).notes;
        notes.into_iter().map(|note| note.text).collect::<Vec<_>>()
    };
    for (key, value) in [("auth", r#"{"CLIENT_ID": "x"}"#), ("oauth", r#"{"clientId": "x"}"#)] {
        let said = said(&format!("\"{key}\": {value}"));
        let words = ["`trunkline login my-x` logs in here", "[upstreams.my-x.auth], with `type = \"oauth\"`"];
        assert!(said.len() == 1 && words.iter().all(|word| said[0].contains(word)), "{said:?}");
    }
    assert_eq!(said("\"oauth\": false"), [""; 0]);
}

#[test]
fn each_dialect_becomes_the_same_keys() {
    for (text, expected) in [
        (
            r#"{"mcpServers": {"a": {"command": "x", "args": ["$$", "$HOME"], "timeout": 60000}}}"#,
            "{command=x args=[$$$$ $$HOME] call_timeout=60000ms}",
        ),
        (
            r#"{"mcpServers": {"a": {"command": "x", "autoApprove": ["y"], "timeout": 60}}}"#,
            "{command=x call_timeout=60s}",
        ),
        (
            r#"{"mcpServers": {"a": {"transport": {"type": "sse", "url": "http://h/"}}}}"#,
            "{transport=sse url=http://h/}",
        ),
        (
            r#"{"mcpServers": {"a": {"httpUrl": "http://h/", "headers": {"X": "$KEY-${env:B}"}, "excludeTools": ["z"]}}, "security": {}}"#,
            "{url=http://h/ headers={X=${KEY:-}-${B:-}} tools={deny=[z]}}",
        ),
        (
            r#"{"mcpServers": {"a": {"serverUrl": "http://h/", "disabledTools": ["z"], "disabled": true}}}"#,
            "{url=http://h/ tools={deny=[z]} enabled=false}",
        ),
        (
            r#"{"servers": {"a": {"type": "stdio", "command": "x", "env": {"K": "${input:my-key}"}, "envFile": "${userHome}/.env"}},
            "inputs": [{"id": "my-key", "type": "promptString"}]}"#,
            "{command=x env={K=${MY_KEY}} env_file=${HOME}/.env}",
        ),
        (
            r#"{"context_servers": {"a": {"source": "custom", "command": {"path": "x", "args": ["y"], "env": {"A": "1"}}}}}"#,
            "{command=x args=[y] env={A=1}}",
        ),
        (
            "[mcp_servers.a]\ncommand = 'x'\nargs = ['${A}']\nenv_vars = ['TOKEN']\nstartup_timeout_sec = 20\ntool_timeout_sec = 1.5\nenabled_tools = ['t']\n",
            "{command=x args=[$${A}] env={TOKEN=${TOKEN:-}} call_timeout=1500ms startup_timeout=20s tools={allow=[t]}}",
        ),
        (
            "extensions:\n  a: {type: stdio, cmd: x, args: ['$A'], envs: {B: '$C'}, env_keys: [D], timeout: 9, available_tools: [t]}\n",
            "{command=x args=[$$A] env={B=$$C D=${D:-}} call_timeout=9s tools={allow=[t]}}",
        ),
        (
            "extensions:\n  a:\n    type: streamable_http\n    uri: http://h/\n    envs: {B: 'c$'}\n    env_keys: [D]\n    headers: {X: '${ D }-$B-$E-$'}\n",
            "{transport=http url=http://h/ headers={X=${D}-c$$-$$E-$$}}",
        ),
        (
            "mcpServers:\n- name: a\n  type: stdio\n  command: x\n  args: ['${A}', '${{ inputs.B }}']\n  connectionTimeout: 5\n",
            "{command=x args=[$${A} ${B}] startup_timeout=5ms}",
        ),
        (
            "mcpServers:\n- name: a\n  type: streamable-http\n  url: http://h/\n  requestOptions: {headers: {X: 'Bearer ${{secrets.o/k.T}}'}}\n",
            "{transport=http url=http://h/ headers={X=Bearer ${T}}}",
        ),
        (
            "[mcp_servers.a]\nurl = 'http://h/'\nbearer_token_env_var = 'T'\nenv_http_headers = { X-A = 'B' }\n",
            "{url=http://h/ headers={X-A=${B} Authorization=Bearer ${T}}}",
        ),
        (
            r#"{"mcp": {"a": {"type": "local", "command": ["x", "y"], "environment": {"K": "{env:V}"}, "timeout": 5000}}}"#,
            "{command=x args=[y] env={K=${V:-}} startup_timeout=5000ms}",
        ),
        (
            r#"{"mcp": {"a": {"type": "remote", "url": "http://h/", "enabled": false}}}"#,
            "{url=http://h/ enabled=false}",
        ),
        (r#"{"amp.mcpServers": {"a": {"type": "local", "command": "x", "tools": ["*"]}}}"#, "{command=x}"),
        (r#"{"projects": {"/no/such": {"history": [1], "mcpServers": {"a": {"command": "x"}}}}}"#, "{command=x}"),
    ] {
        let found = hosted(text);
        assert_eq!(shown(&found.servers[0].node.shape), expected, "{text}");
    }
}

#[test]
fn what_cannot_be_used_is_named() {
    let text = r#"{"mcpServers": {"A b": {"comand": "x"}, "a-B": {"command": "y"}, "日本": {"command": "z"}, "w": {"command": "x", "cwd": "${workspaceFolder}"}, "off": {"command": "${workspaceFolder}", "disabled": true}, "n": 1}}"#;
    let found = hosted(text);
    let said: Vec<_> = found.notes.iter().map(|note| (note.kind, &text[note.at.clone()])).collect();
    assert_eq!(
        said,
        [
            ("unused-key", "\"comand\""),
            ("duplicate-name", "\"a-B\""),
            ("bad-reference", "\"cwd\""),
            ("bad-value", "\"n\"")
        ]
    );
    assert_eq!(found.notes[0].label.as_deref(), Some("did you mean `command`?"));
    assert_eq!(
        found.servers.iter().map(|server| &*server.slug).collect::<Vec<_>>(),
        ["a-b", "a-b-2", "server-1", "off"]
    );
    assert_eq!(one(r#"{"mcpServers": {"x": {"url": "http://h/"}}}"#), "{url=http://h/}");
}

#[test]
fn a_name_of_any_script_gets_one_of_ours_that_no_other_has() {
    let one = |name: &str| format!("\"{name}\": {{\"command\": \"x\"}}");
    let names = ["server-1", "😀", "A", "a", "a-2", "á", "日本"].map(one).join(", ");
    let found = hosted(&format!("{{\"context_servers\": {{{names}}}, \"servers\": {{{}}}}}", one("日本")));
    let said: Vec<_> = found.notes.iter().map(|note| (note.kind, note.text.as_str())).collect();
    assert_eq!(said[0].0, "duplicate-name", "{said:?}");
    let named: Vec<_> = found.servers.iter().map(|one| format!("{}={}", one.name, one.slug)).collect();
    assert_eq!(named, ["日本=server-2", "server-1=server-1", "😀=server-3", "A=a", "a=a-3", "a-2=a-2", "á=server-4"]);
}

#[test]
fn a_file_whose_text_is_sent_to_a_server_is_named() {
    let said = |server: &str| {
        let notes = hosted(&format!("{{\"mcpServers\": {{\"a\": {{{server}}}}}}}")).notes;
        notes.into_iter().map(|note| format!("{}: {}", note.kind, note.text)).collect::<Vec<_>>()
    };
    let url = r#""url": "https://h/", "headers": {"X": "Bearer ${file:/home/ann/.ssh/id}"}"#;
    let expected = "`headers` of `a` sends what the file /home/ann/.ssh/id holds to the address of the server";
    assert_eq!(said(url), [format!("file-sent: {expected}")]);
    assert_eq!(said(r#""url": "https://h/?k=${file:/k}""#).len(), 1);
    // Whoever writes a command needs no reference to read a file; and these are none.
    for well in [
        r#""command": "x", "env": {"K": "${file:/k}"}"#,
        r#""url": "https://h/", "headers": {"X": "$file:/k", "Y": "${KEY}"}"#,
    ] {
        assert_eq!(said(well), [""; 0], "{well}");
    }
    let opencode = r#"{"mcp": {"a": {"type": "remote", "url": "https://h/", "headers": {"X": "{file:~/k}"}}}}"#;
    assert_eq!(hosted(opencode).notes.iter().map(|note| note.kind).collect::<Vec<_>>(), ["file-sent"]);
}

#[test]
fn of_the_projects_of_claude_code_the_nearest_to_the_working_folder_comes_first_then_the_user_then_others() {
    let own = std::env::current_dir().unwrap();
    let server = |command: &str| format!("{{\"mcpServers\": {{\"a\": {{\"command\": \"{command}\"}}}}}}");
    let above = own.parent().unwrap();
    let project = |path: &std::path::Path, command: &str| {
        format!("{}: {}", serde_json::to_string(path).unwrap(), server(command))
    };
    let other =
        project("/no/such/project/whose/path/is/longer/than/any/of/those/that/tests/are/run/in".as_ref(), "other");
    let user = "\"mcpServers\": {\"a\": {\"command\": \"user\"}}";
    let (own, above) = (project(&own, "own"), project(above, "above"));
    for (projects, first) in
        [(format!("{other}, {above}, {own}"), "own"), (format!("{other}, {above}"), "above"), (other.clone(), "user")]
    {
        let found = hosted(&format!("{{\"projects\": {{{projects}}}, {user}}}"));
        let commands: Vec<_> = found.servers.iter().map(|one| shown(&one.node.shape)).collect();
        assert_eq!(commands, [format!("{{command={first}}}")], "{projects}");
    }
}

#[test]
fn a_slug_is_made_of_what_may_stand_in_a_name() {
    assert_eq!(slug("My Files (2)"), "my-files-2");
    assert_eq!(slug("@scope/server.name"), "scope-server-name");
    assert_eq!(slug("日本"), "");
}

#[test]
fn what_is_a_part_of_its_host_or_has_no_name_is_no_server() {
    let found = hosted(
        "extensions:\n  a: {type: builtin}\n  b: {type: platform, enabled: false}\n  c: {type: stdio, cmd: x}\n",
    );
    assert_eq!(found.servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["c"]);
    assert!(found.notes.iter().all(|note| note.kind == PART) && found.notes.len() == 2, "{:?}", found.notes);
    let found =
        hosted("mcpServers:\n- uses: team/memory\n- command: x\n- name: c\n  command: x\n  env: {A: '${{ x.y }}'}\n");
    let said: Vec<_> = found.notes.iter().map(|note| note.text.as_str()).collect();
    assert!(found.servers.is_empty() && said.len() == 3, "{said:?}");
    assert!(said[0].contains("block of Continue's hub") && said[1].contains("without a name"), "{said:?}");
    assert!(said[2].contains("has no value here"), "{said:?}");
}
