//! Sockets that a service manager has bound: taken over by name, kept from children, and refused where they are none.

#![allow(clippy::disallowed_methods)] // a test's tasks end with its runtime

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UnixStream};
use tokio::process::{Child, Command};
use trunkline_tests::process::{self, GATEWAY};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::tape::Tape;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within;

const GREETING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// A shell that plays the service manager: what it has as its input and its output are the first two sockets of what it starts.
const MANAGER: &str = "exec 3<&0 4>&1 </dev/null >/dev/null; export LISTEN_PID=$$; exec \"$@\"";

/// A gateway that a manager has started.
struct Activated {
    child: Child,
    stderr: Arc<Tape<String>>,
    _scratch: Scratch,
}

impl Activated {
    fn start(sections: &str, environment: &[(&str, &str)], sockets: [OwnedFd; 2]) -> Activated {
        let scratch = Scratch::new();
        let file = scratch.file("trunkline.toml", &format!("[admin]\nlisten = \"off\"\n{sections}"));
        let [first, second] = sockets;
        let mut child = Command::new("sh")
            .args(["-c", MANAGER, "sh"])
            .arg(process::beside(GATEWAY))
            .args(["serve", "--config", &file.display().to_string()])
            .env("HOME", scratch.path())
            .env("XDG_RUNTIME_DIR", scratch.path().join("run"))
            .envs(environment.iter().copied())
            .stdin(Stdio::from(first))
            .stdout(Stdio::from(second))
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        let stderr = Arc::new(Tape::default());
        let (tape, pipe) = (stderr.clone(), child.stderr.take().expect("a pipe was asked for"));
        tokio::spawn(async move {
            let mut lines = BufReader::new(pipe).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                tape.push(line);
            }
        });
        Activated { child, stderr, _scratch: scratch }
    }

    async fn says(&self, text: &str) {
        self.stderr.wait(&format!("it says {text}"), |line| line.contains(text).then_some(())).await;
    }

    async fn ends(mut self) -> bool {
        within("it ends", self.child.wait()).await.expect("it can be waited for").success()
    }
}

/// A port and a socket, as a manager binds them: bound before anybody accepts.
struct Bound {
    scratch: Scratch,
    port: std::net::TcpListener,
    local: std::os::unix::net::UnixListener,
}

impl Bound {
    fn new() -> Bound {
        let scratch = Scratch::new();
        let local = std::os::unix::net::UnixListener::bind(scratch.path().join("mcp.sock")).expect("the folder is new");
        Bound { scratch, port: std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port"), local }
    }

    fn sockets(&self) -> [OwnedFd; 2] {
        [self.port.try_clone().expect("it can").into(), self.local.try_clone().expect("it can").into()]
    }

    fn address(&self) -> String {
        self.port.local_addr().expect("it is bound").to_string()
    }

    fn path(&self) -> PathBuf {
        self.scratch.path().join("mcp.sock")
    }
}

async fn greets<S: AsyncReadExt + AsyncWriteExt + Unpin>(mut stream: S, host: &str, headers: &str) -> String {
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\nconnection: close\r\n\
         accept: application/json, text/event-stream\r\n{headers}content-length: {}\r\n\r\n{GREETING}",
        GREETING.len()
    );
    stream.write_all(request.as_bytes()).await.expect("it is taken");
    let mut answer = Vec::new();
    within("the answer", stream.read_to_end(&mut answer)).await.expect("it is read");
    String::from_utf8_lossy(&answer).split(' ').nth(1).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn sockets_are_taken_over_by_name_and_children_have_neither_them_nor_their_variables() {
    let bound = Bound::new();
    let upstream = Upstream::stdio(Script::new("up", Revision::R2025_11_25)).await;
    let program = upstream.program();
    let args = program.args.iter().map(|arg| format!("{arg:?}")).collect::<Vec<_>>().join(", ");
    let sections = format!(
        "[[server.listeners]]\naddress = \"systemd:web\"\nfaces = [\"mcp\"]\ntokens = [\"ann\"]\n\
         [[server.listeners]]\naddress = \"systemd\"\ntokens = []\n\
         [[auth.tokens]]\nname = \"ann\"\ntoken = \"ann-has-a-long-token\"\n\
         [upstreams.up]\ncommand = {:?}\nargs = [{args}]\nenv_inherit = [\"*\"]\n",
        program.path.display().to_string()
    );
    // Whoever comes before the gateway is served once it is there.
    let early = tokio::spawn(greets(UnixStream::connect(bound.path()).await.expect("it is bound"), "x", ""));
    let names = [("LISTEN_FDS", "2"), ("LISTEN_FDNAMES", "web:local")];
    let gateway = Activated::start(&sections, &names, bound.sockets());
    gateway.says(&format!("http://{}/mcp", bound.address())).await;
    gateway.says(&format!("unix://{}#/mcp", bound.path().display())).await;
    assert_eq!(early.await.expect("it ends"), "200");
    let dial = async || TcpStream::connect(bound.address()).await.expect("it is bound");
    assert_eq!(greets(dial().await, &bound.address(), "").await, "401");
    let bearer = "authorization: Bearer ann-has-a-long-token\r\n";
    assert_eq!(greets(dial().await, &bound.address(), bearer).await, "200");

    let (child, _) = upstream.started(0).await;
    let environment = std::fs::read(format!("/proc/{child}/environ")).expect("it is ours");
    let environment = String::from_utf8_lossy(&environment).into_owned();
    assert!(environment.contains("XDG_RUNTIME_DIR=") && !environment.contains("LISTEN_"), "{environment}");
    let sockets = bound.sockets().map(|socket| std::fs::File::from(socket).metadata().expect("it is open").ino());
    for entry in std::fs::read_dir(format!("/proc/{child}/fd")).expect("it is ours").flatten() {
        let open = std::fs::metadata(entry.path()).map(|seen| seen.ino()).unwrap_or_default();
        assert!(!sockets.contains(&open), "the child has {}", entry.path().display());
    }

    process::signal(gateway.child.id().expect("it runs"), "TERM");
    assert!(gateway.ends().await);
    assert!(bound.path().exists(), "it is the manager's");
    // The manager has its sockets still: the next gateway takes them over.
    let gateway = Activated::start(&sections, &names, bound.sockets());
    let next = UnixStream::connect(bound.path()).await.expect("it is bound");
    assert_eq!(greets(next, "x", "").await, "200");
    process::signal(gateway.child.id().expect("it runs"), "TERM");
    assert!(gateway.ends().await);
}

#[tokio::test]
async fn what_was_not_handed_over_or_cannot_be_listened_on_keeps_the_gateway_from_its_start() {
    let bound = Bound::new();
    let of = |address: &str| format!("[server]\nlisten = \"{address}\"\n");
    let two = ("LISTEN_FDS", "2");
    let names = ("LISTEN_FDNAMES", "web:local");
    let file = || {
        let file = std::fs::File::open("/dev/null").expect("it is there");
        [file.try_clone().expect("it can").into(), file.into()]
    };
    let connection = || {
        let (one, other) = std::os::unix::net::UnixStream::pair().expect("there is room");
        [one.into(), other.into()]
    };
    for (address, environment, sockets, says) in [
        (
            "systemd",
            &[][..],
            bound.sockets(),
            "the service manager has handed over no socket; start the gateway by its .socket unit",
        ),
        ("systemd:other", &[two, names], bound.sockets(), "no socket of this name was handed over, only web, local"),
        ("systemd", &[two], file(), "the socket `unknown` that the service manager hands over cannot be used"),
        ("systemd", &[two], connection(), "it is a connection, as with Accept=yes"),
        ("systemd", &[("LISTEN_FDS", "1000000")], bound.sockets(), "LISTEN_FDS is 1000000"),
    ] {
        let gateway = Activated::start(&of(address), environment, sockets);
        gateway.says(says).await;
        assert!(!gateway.ends().await, "{says}");
    }
    // Nobody beyond this machine gets in unasked.
    let everywhere = std::net::TcpListener::bind("0.0.0.0:0").expect("there is a port");
    let sockets = [everywhere.into(), bound.local.try_clone().expect("it can").into()];
    let gateway = Activated::start(&of("systemd"), &[("LISTEN_FDS", "1")], sockets);
    gateway.says("can be reached from other machines and no tokens are configured").await;
    assert!(!gateway.ends().await);
    // What no listener takes is said.
    let gateway = Activated::start(&of("systemd:web"), &[two, names], bound.sockets());
    gateway.says("socket of the service manager not used").await;
    drop(gateway);
}
