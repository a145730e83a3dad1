//! What the gateway does without: nobody who reads its stderr, few open files, little address space, no home, no temporary folder.

use std::io::Write;
use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use trunkline_tests::client::{Client, Reach, http};
use trunkline_tests::gateway::{Config, Gateway, free_port};
use trunkline_tests::process::{self, GATEWAY, beside};
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
    let program = beside(GATEWAY);
    // What follows the program may close its function and say how that is run.
    let ending = if shell.contains('}') { "" } else { "; }; run" };
    let line = format!(
        "EXEC=; run() {{ exec $EXEC '{}' serve --config '{}' {shell}{ending}",
        program.display(),
        file.display()
    );
    command.arg("-c").arg(line);
    command.env("HOME", scratch.path()).env("XDG_CACHE_HOME", scratch.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).kill_on_drop(true);
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

#[tokio::test]
async fn few_open_files_stop_nothing_for_long() {
    let (mut child, up, url, scratch) = silent(Stdio::null(), "2>/dev/null; }; ulimit -n 40; run").await;
    let client = Client::connect(&Reach::Url(url.clone()), Revision::R2025_11_25).await;
    client.tools_until("its child runs", |tools| tools.contains(&"up__echo".into())).await;
    drop(client);
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let mut held = Vec::new();
    for _ in 0..80 {
        held.push(tokio::net::TcpStream::connect(&address).await.expect("the system takes it"));
    }
    // Those for whom there is no room are told so, and the others leave files for all else.
    let mut told = String::new();
    let last = held.last_mut().expect("there are many");
    let _ = within("the last one is answered and closed", last.read_to_string(&mut told)).await;
    assert!(told.starts_with("HTTP/1.1 503"), "{told}");
    let open = process::open_files(child.id().expect("it runs"));
    assert!(open < 40, "{open}");
    assert!(child.try_wait().expect("it can be asked").is_none(), "it lives");
    drop(held);
    // The gateway sees the end of these connections when it next reads from them.
    until("there is room again", || async { takes_requests(&address).await.then_some(()) }).await;
    serves_and_ends((child, up, url, scratch)).await;
}

/// Whether a new connection gets an answer other than that there is no room for it.
async fn takes_requests(address: &str) -> bool {
    let Ok(mut stream) = tokio::net::TcpStream::connect(address).await else { return false };
    let request = format!("GET /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    let _closed_before = stream.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let _reset = within("the connection is closed", stream.read_to_end(&mut answer)).await;
    answer.starts_with(b"HTTP/1.1 ") && !answer.starts_with(b"HTTP/1.1 503")
}

#[tokio::test]
async fn no_home_and_no_temporary_folder_stop_nothing() {
    let without = "env -i PATH=/usr/bin:/bin TMPDIR=/no/such/folder";
    serves_and_ends(silent(Stdio::null(), &format!("2>/dev/null; }}; EXEC='{without}'; run")).await).await;
    let nowhere =
        "env -i PATH=/usr/bin:/bin HOME=/proc/no-such-home XDG_CACHE_HOME=/proc/nowhere XDG_STATE_HOME=/proc/nowhere";
    serves_and_ends(silent(Stdio::null(), &format!("2>/dev/null; }}; EXEC='{nowhere}'; run")).await).await;
}

#[tokio::test]
async fn serve_with_too_little_address_space_is_refused_in_words() {
    let scratch = Scratch::new();
    let file = scratch.file("trunkline.toml", "[upstreams.a]\ncommand = '/bin/cat'\n");
    let line = format!("ulimit -v 65536; exec '{}' serve --config '{}'", beside(GATEWAY).display(), file.display());
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &line]).env("HOME", scratch.path()).kill_on_drop(true);
    let output = within("it ends", command.output()).await.expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("address space is limited to 64 MiB") && told.contains("ulimit -v"), "{told}");
}

#[tokio::test]
async fn default_memory_limit_follows_the_address_space() {
    let up = Upstream::http(Script::new("up", Revision::R2025_11_25)).await;
    let limited = ["/bin/sh", "-c", "ulimit -v 1048576; exec \"$@\"", "sh"];
    let gateway = Gateway::serve_under(&limited, &Config::new().upstream(&up)).await;
    let page = gateway.look_until("/metrics", "the limit is there", |page| page.contains("memory_limit_bytes ")).await;
    let line = page.lines().find_map(|line| line.strip_prefix("trunkline_memory_limit_bytes "));
    let bytes: f64 = line.expect("a sample").parse().expect("a number");
    assert!(bytes < f64::from(1 << 28), "{bytes}");
}
