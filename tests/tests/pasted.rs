//! The snippets that `serve` prints, pasted: each is read as the file of the hosts that are named above it, and leads to the tools.

use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use trunkline_tests::process;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::shell;
use trunkline_tests::within::within;

use crate::laptop::{entry, in_home, text};

/// A token that a snippet has a place for.
const TOKEN: &str = "a-token-that-is-long-enough-0123456789";

/// The lines from one that begins so, up to the next heading.
fn below(lines: &[String], heading: &str) -> Value {
    let snippet = lines.iter().skip_while(|line| !line.starts_with(heading)).skip(1);
    let snippet: Vec<_> = snippet.take_while(|line| line.starts_with(['{', '}', ' '])).map(String::as_str).collect();
    serde_json::from_str(&snippet.join("\n")).unwrap_or_else(|error| panic!("{heading}: {error}: {lines:#?}"))
}

#[tokio::test]
async fn what_serve_prints_works_where_it_is_pasted() {
    let home = Scratch::new();
    let well = entry("sh", &shell::upstream(&[("hello", "said ok")]));
    let door = format!("[log]\nformat = 'text'\n[[auth.tokens]]\nname = 'me'\ntoken = '{TOKEN}'\n");
    let config = home.file("trunkline.toml", &format!("{door}{well}")).display().to_string();
    let mut serve = in_home(&home, &["serve", "--listen", "127.0.0.1:0", "--admin", "off"]);
    let mut serve = serve.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut said = BufReader::new(serve.stderr.take().expect("it is piped")).lines();
    let mut lines = Vec::new();
    while !lines.last().is_some_and(|line: &String| line.starts_with("`trunkline install HOST` writes it")) {
        lines.push(within("it says where it serves", said.next_line()).await.expect("text").expect("it runs"));
    }
    let by_url = below(&lines, "For Claude Code (.mcp.json), Cursor");
    let by_command = below(&lines, "For Claude Desktop (claude_desktop_config.json)");
    // As these hosts take it: an address has a type, and a command is found from anywhere.
    let (remote, local) = (&by_url["mcpServers"]["trunkline"], &by_command["mcpServers"]["trunkline"]);
    assert!(remote["type"] == "http" && remote["url"].as_str().is_some_and(|url| url.ends_with("/mcp")), "{by_url}");
    let command = local["command"].as_str().unwrap_or_default();
    assert!(command.starts_with('/') && local["args"] == serde_json::json!(["stdio", "--config", config]), "{local}");
    // Read by ourselves as the file of each host, from another folder.
    let other = Scratch::new();
    for place in [".mcp.json", "cursor-mcp.json"] {
        let pasted = by_url.to_string().replace("YOUR-TOKEN", TOKEN);
        let file = other.file(place, &pasted).display().to_string();
        let listed =
            within("it lists", in_home(&other, &["tools", "--config", &file]).output()).await.expect("it runs");
        let (stdout, stderr) = (text(&listed.stdout), text(&listed.stderr));
        assert!(stdout.contains("sh__hello\n1 tool\n"), "{place}: {stdout}{stderr}");
    }
    let file = other.file("claude_desktop_config.json", &by_command.to_string()).display().to_string();
    let imported = within("it ends", in_home(&other, &["import", &file, "--dry-run"]).output()).await.expect("it runs");
    let shown = text(&imported.stdout);
    assert!(shown.contains("trunkline") && shown.contains("it starts Trunkline itself"), "{shown}");
    // And started as it stands there.
    let args: Vec<&str> = local["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut host = tokio::process::Command::new(command);
    host.args(args).env("HOME", other.path()).env("XDG_RUNTIME_DIR", other.path()).current_dir("/").kill_on_drop(true);
    let hosted = host.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let tools = asked(hosted).await;
    assert!(tools.contains("sh__hello"), "{tools}");
    process::signal(serve.id().expect("it runs"), "TERM");
    let _status = within("it ends", serve.wait()).await.expect("it runs");
}

/// The answer of a gateway on stdio to who asks for its tools.
async fn asked(mut host: tokio::process::Child) -> String {
    use tokio::io::AsyncWriteExt;
    let frames = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
        "\n",
    );
    let mut stdin = host.stdin.take().expect("it is piped");
    stdin.write_all(frames.as_bytes()).await.expect("it reads");
    let mut answers = BufReader::new(host.stdout.take().expect("it is piped")).lines();
    loop {
        let line = within("it answers", answers.next_line()).await.expect("text").expect("it runs");
        if line.contains("\"id\":2") {
            return line;
        }
    }
}
