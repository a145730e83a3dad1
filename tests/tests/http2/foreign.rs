//! Other people's HTTP/2: node's own library on either side, the Python SDK on httpx2, curl.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use trunkline_tests::client::Client;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::peers::{self, Peers};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{all, within_limit};

use super::GREETING;
use crate::face_tls::Files;
use trunkline_tests::certificates::Authority;

/// How long such a program may take on a crowded machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// A gateway with TLS before an upstream with the tool `echo`, and the file of who has signed its certificate.
struct Stage {
    _upstream: Upstream,
    gateway: Gateway,
    ca: String,
    _files: Files,
    _scratch: Scratch,
}

async fn stage() -> Stage {
    let (files, scratch) = (Files::new(), Scratch::new());
    let upstream = Upstream::http(Script::new("up", Revision::R2025_11_25)).await;
    let gateway = Gateway::serve(&Config::new().over_tls().section(&files.section("")).upstream(&upstream)).await;
    let ca = scratch.file("ca.pem", &files.authority.pem).display().to_string();
    Stage { _upstream: upstream, gateway, ca, _files: files, _scratch: scratch }
}

/// Runs a program to its end: what it has said.
async fn run(program: &Path, args: &[&str]) -> String {
    let mut command = Command::new(program);
    let output = command.args(args).stdin(Stdio::null()).kill_on_drop(true).output();
    let output = within_limit(PATIENCE, "it ends", output).await.expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// The same for one that prints a line of JSON.
async fn report(program: &Path, args: &[&str]) -> Value {
    let said = run(program, args).await;
    serde_json::from_str(&said).unwrap_or_else(|why| panic!("{why}: {said}"))
}

/// What twenty calls are answered that each say their number.
fn numbers() -> Value {
    (0..20).map(|number| json!(format!("{{\"number\":{number}}}"))).collect()
}

/// A script of node's, or of Python's.
fn script(dir: &Path, name: &str) -> String {
    dir.join(name).display().to_string()
}

#[tokio::test]
async fn nodes_own_client_makes_many_calls_over_one_connection() {
    let Some(Peers { node, node_dir, .. }) = peers::ready() else { return };
    let stage = stage().await;
    let seen = report(node, &[&script(node_dir, "http2.mjs"), "call", &stage.ca, &stage.gateway.url]).await;
    assert_eq!(seen, json!({ "spoken": "h2", "noted": 202, "texts": numbers() }));
}

#[tokio::test]
#[ignore = "takes long; .ci/full runs it"]
async fn the_python_sdk_makes_many_calls_over_http2() {
    let Some(Peers { python_bin, python_dir, .. }) = peers::ready() else { return };
    let stage = stage().await;
    let python = python_bin.join("python");
    let seen = report(&python, &[&script(python_dir, "http2.py"), &stage.ca, &stage.gateway.url]).await;
    assert_eq!(seen["spoken"], json!(["HTTP/2"]));
    let texts = seen["texts"].as_array().expect("they are listed").iter();
    let plain = texts.map(|text| json!(text.as_str().expect("a text").replace(' ', "")));
    assert_eq!(plain.collect::<Value>(), numbers());
}

#[tokio::test]
async fn curl_is_answered_over_http2() {
    let Some(curl) = peers::curl() else { return };
    let stage = stage().await;
    let accepts = "accept: application/json, text/event-stream";
    let (kind, shown) = ("content-type: application/json", "\n%{http_version} %{http_code}");
    let mut args = vec!["--silent", "--show-error", "--http2", "--noproxy", "*", "--cacert", &stage.ca];
    args.extend(["--write-out", shown, "--header", kind, "--header", accepts, "--data", GREETING, &stage.gateway.url]);
    let said = run(&curl, &args).await;
    assert!(said.contains("\"serverInfo\"") && said.ends_with("\n2 200"), "{said}");
}

#[tokio::test]
async fn a_server_on_nodes_own_library_is_called_over_http2() {
    let Some(Peers { node, node_dir, .. }) = peers::ready() else { return };
    let (authority, scratch) = (Authority::new(), Scratch::new());
    let (cert, key) = authority.certify("127.0.0.1", 2999).pem();
    let file = |name: &str, text: &str| scratch.file(name, text).display().to_string();
    let (cert, key, ca) = (file("cert.pem", &cert), file("key.pem", &key), file("ca.pem", &authority.pem));
    let mut command = Command::new(node);
    command.args([&script(node_dir, "http2.mjs"), "serve", &cert, &key]);
    let mut server = command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("it runs");
    let mut lines = BufReader::new(server.stdout.take().expect("it is piped")).lines();
    let port = within_limit(PATIENCE, "it listens", lines.next_line()).await.expect("a line").expect("a port");
    // It speaks nothing but HTTP/2.
    let section = format!("[upstreams.up]\nurl = \"https://127.0.0.1:{port}/mcp\"\ntls = {{ ca = \"{ca}\" }}\n");
    let gateway = Gateway::serve(&Config::new().section(&section)).await;
    for revision in [Revision::R2025_11_25, Revision::MODERN] {
        let client = Client::connect(&gateway.reach(), revision).await;
        client.tools_until("its tool is listed", |tools| tools.contains(&"up__echo".into())).await;
        let calls: Vec<_> = (0..20).map(|number| format!("{{\"number\":{number}}}")).collect();
        let answers = all(calls.iter().map(|call| client.call_once("up__echo", call))).await;
        let texts: Value = answers.iter().map(|answer| json!(answer.text())).collect();
        assert_eq!(texts, numbers());
    }
}
