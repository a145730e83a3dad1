//! `trunkline config schema`, by the validator that other people wrote: it refuses what `check` refuses for its shape, and nothing else.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use trunkline_tests::peers;
use trunkline_tests::process::{GATEWAY, beside};
use trunkline_tests::scratch::Scratch;
use trunkline_tests::within::within;

fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config.example.toml");
    std::fs::read_to_string(path).expect("it is there")
}

/// The file with its examples, which begin with `#` and no space, switched on.
fn with_examples() -> String {
    let on = |line: &str| match line.strip_prefix('#') {
        Some(rest) if !rest.is_empty() && !rest.starts_with(' ') => rest.to_owned(),
        _ => line.to_owned(),
    };
    example().lines().map(on).collect::<Vec<_>>().join("\n")
}

/// What the schema has against each text.
async fn judged(texts: &BTreeMap<String, String>) -> Option<BTreeMap<String, Vec<String>>> {
    let peers = peers::ready()?;
    let schema =
        within("it ends", Command::new(beside(GATEWAY)).args(["config", "schema"]).output()).await.expect("it runs");
    let schema: Value = serde_json::from_slice(&schema.stdout).expect("it is JSON");
    let mut python = Command::new(peers.python_bin.join("python"))
        .arg(peers.python_dir.join("schema.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    let asked = json!({ "schema": schema, "texts": texts }).to_string();
    let mut stdin = python.stdin.take().expect("it is piped");
    stdin.write_all(asked.as_bytes()).await.expect("it reads");
    drop(stdin);
    let said = within("it ends", python.wait_with_output()).await.expect("it runs");
    Some(serde_json::from_slice(&said.stdout).expect("it is JSON"))
}

/// Whether `check` takes a text, and the kinds of its faults.
async fn checked(text: &str) -> Vec<String> {
    let home = Scratch::new();
    let file = home.file("trunkline.toml", text);
    let mut command = Command::new(beside(GATEWAY));
    command.args(["check", "--json", "--config", &file.display().to_string()]).env("HOME", home.path());
    command.env("A_TOKEN", "0123456789abcdef").current_dir(home.path());
    let said = within("it ends", command.output()).await.expect("it runs");
    let said: Value = serde_json::from_slice(&said.stdout).expect("it is JSON");
    let faults = said["faults"].as_array().expect("a list").iter().filter(|fault| fault["severity"] == "error");
    faults.map(|fault| fault["kind"].as_str().expect("a text").to_owned()).collect()
}

#[tokio::test]
async fn the_schema_takes_the_example_and_every_value_that_the_parser_takes() {
    let taken = [
        "",
        "[upstreams.a]\ncommand = 'x'\nargs = ['-y', '${A_TOKEN}']\nenv = { A = 1, B = true, C = 'x' }\n",
        "[upstreams.a]\nurl = 'http://127.0.0.1:1/mcp'\nheaders = { X = 'y' }\ncall_timeout = 5\nmax_response = 4096\n",
        "[upstreams.a]\ncommand = 'x'\ncall_timeout = '${A_NONE:-5s}'\nmax_concurrency = '4'\nstart = '${A_NONE:-lazy}'\nhang_restart = 'true'\n",
        "[upstreams.a]\ncommand = 'x'\ntools = { allow = ['*'], override = { t = { call_timeout = '1.5s' } } }\n",
        "[server]\nlisten = 'localhost:0'\nmax_body = '1MB'\n[[auth.tokens]]\nname = 'a'\ntoken = '${A_TOKEN}'\n",
        "[mcpServers.a]\ncommand = 'x'\n",
    ];
    let mut texts: BTreeMap<String, String> =
        taken.iter().map(|text| ((*text).to_owned(), (*text).to_owned())).collect();
    for text in taken {
        assert_eq!(checked(text).await, Vec::<String>::new(), "{text}");
    }
    texts.insert("the example".to_owned(), example());
    texts.insert("with examples".to_owned(), with_examples());
    let Some(judged) = judged(&texts).await else { return };
    for (text, faults) in judged {
        assert!(faults.is_empty(), "{text}: {faults:?}");
    }
}

#[tokio::test]
async fn the_schema_refuses_unknown_keys_and_values_of_another_kind_as_the_parser_does() {
    let mut texts: Vec<String> = [
        "[upstreams.a]\ncommand = 'x'\nargs = 'y'\n",
        "[upstreams.a]\ncommand = ['x']\n",
        "[upstreams.a]\ncommand = 'x'\ncall_timeout = true\n",
        "[upstreams.a]\ncommand = 'x'\ncall_timeout = '5 parsecs'\n",
        "[upstreams.a]\ncommand = 'x'\nstart = 'soon'\n",
        "[upstreams.a]\ncommand = 'x'\nenv = ['A']\n",
        "[upstreams.A_B]\ncommand = 'x'\n",
        "[server]\nlisten = 8808\n",
        "[server]\nwebsocket = 1\n",
        "[catalog]\npage_size = 0\n",
        "[auth]\ntokens = { name = 'a' }\n",
        "log = 'debug'\n",
    ]
    .map(str::to_owned)
    .to_vec();
    // Beside every line of the example one with a key that nobody knows.
    let example = example();
    let headings = example.lines().filter(|line| line.starts_with('['));
    texts.extend(headings.map(|heading| {
        let heading = heading.split_inclusive(']').next().unwrap_or(heading);
        format!("{heading}\nno_such_key = 1\n")
    }));
    texts.push("no_such_section = {}\n".to_owned());
    texts.push("[upstreams.a]\ncommand = 'x'\nno_such_key = 1\n".to_owned());
    texts.push("[upstreams.a]\ncommand = 'x'\ntools = { none = [] }\n".to_owned());
    texts.push("[[auth.tokens]]\nname = 'a'\ntoken = '${A_TOKEN}'\nnone = 1\n".to_owned());
    for text in &texts {
        assert!(!checked(text).await.is_empty(), "`check` takes it: {text}");
    }
    let texts = texts.into_iter().map(|text| (text.clone(), text)).collect();
    let Some(judged) = judged(&texts).await else { return };
    for (text, faults) in judged {
        assert!(!faults.is_empty(), "the schema takes it: {text}");
    }
}
