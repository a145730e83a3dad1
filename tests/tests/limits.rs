//! What the gateway does without: nobody who reads its stderr.

use std::io::Write;
use std::process::Stdio;

use tokio::process::{Child, Command};
use trunkline_tests::client::{Client, Reach, http};
use trunkline_tests::gateway::{Config, free_port};
use trunkline_tests::process::{self, beside};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{until, within};

/// A gateway that says nothing that we could wait for.
async fn silent(stderr: Stdio, shell: &str) -> (Child, Upstream, String, Scratch) {
    let (port, admin, scratch) = (free_port(), free_port(), Scratch::new());
    let up = Upstream::stdio(Script::new("up", Revision::R2025_11_25)).await;
    let file = scratch.file("trunkline.toml", &Config::new().upstream(&up).text(port, admin));
    let mut command = Command::new("/bin/sh");
    let program = beside("trunkline-under-test");
    command.arg("-c").arg(format!("exec '{}' serve --config '{}' {shell}", program.display(), file.display()));
    command.env("HOME", scratch.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).kill_on_drop(true);
    let child = command.spawn().expect("it starts");
    until("it is alive", || async {
        tokio::net::TcpStream::connect(("127.0.0.1", admin)).await.ok()?;
        let answer = http::exchange(&format!("http://127.0.0.1:{admin}/livez"), "GET", &[], "").await;
        (answer.status == 200).then_some(())
    })
    .await;
    (child, up, format!("http://127.0.0.1:{port}/mcp"), scratch)
}

async fn serves_and_ends((mut child, _up, url, _scratch): (Child, Upstream, String, Scratch)) {
    let client = Client::connect(&Reach::Url(url), Revision::R2025_11_25).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    process::signal(child.id().expect("it runs"), "TERM");
    let status = within("it ends", child.wait()).await.expect("it can be waited for");
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn a_closed_stderr_stops_nothing() {
    serves_and_ends(silent(Stdio::null(), "2>&-").await).await;
}

#[tokio::test]
async fn a_stderr_that_nobody_reads_any_more_stops_nothing() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    serves_and_ends(silent(writer.into(), "").await).await;
}

#[tokio::test]
async fn a_full_stderr_stops_nothing() {
    let (_reader, mut writer) = std::io::pipe().expect("a pipe");
    // The room that a pipe has by default; less is filled by the first lines.
    let filler = std::thread::spawn({
        let mut writer = writer.try_clone().expect("a second handle");
        move || drop(writer.write_all(&[b'x'; 1 << 20]))
    });
    until("the pipe is full", || async { (!filler.is_finished()).then_some(()) }).await;
    let _ = writer.flush();
    serves_and_ends(silent(writer.into(), "").await).await;
}
