//! The gateway under test: configured, started, watched and stopped.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use crate::client::{Answer, Reach, http};
use crate::process::{self, GATEWAY, Program};
use crate::scratch::Scratch;
use crate::tape::Tape;
use crate::upstream::Way;
use crate::within::within;

pub mod config;
pub use config::Config;

/// What details and orders cost at the administration address of every gateway here.
pub const ADMIN_TOKEN: &str = "the-token-of-those-who-run-it";

/// What stands behind the last line on stderr.
const STDERR_ENDED: &str = "(stderr has ended)";

/// So many pairs of ports are tried: other test processes look for theirs at the same time.
const PORTS_TRIED: usize = 5;

/// A gateway that serves HTTP.
pub struct Gateway {
    /// Its process id.
    pub pid: u32,
    /// Its endpoint.
    pub url: String,
    /// Its administration address, `http://host:port`.
    pub admin: String,
    /// Its lines on stderr.
    pub stderr: Arc<Tape<String>>,
    /// Its configuration.
    pub file: PathBuf,
    child: Mutex<Child>,
    scratch: Scratch,
}

impl Gateway {
    /// Starts `serve`, and waits until it has said where its endpoint is.
    pub async fn serve(config: &Config) -> Gateway {
        Gateway::serve_under(&[], config).await
    }

    /// The same, by way of another program, which is given ours to run. The process id is then that program's.
    pub async fn serve_under(wrapper: &[&str], config: &Config) -> Gateway {
        for _ in 0..PORTS_TRIED {
            let gateway = Gateway::begin(wrapper, config);
            if gateway.opens().await {
                return gateway;
            }
        }
        panic!("others were quicker on all of {PORTS_TRIED} pairs of ports");
    }

    fn begin(wrapper: &[&str], config: &Config) -> Gateway {
        let (port, admin_port) = (free_port(), free_port());
        let scratch = Scratch::new();
        let file = written(&scratch, config, port, admin_port);
        let (child, stderr) = Gateway::spawn(wrapper, (&scratch, &file), config);
        let pid = child.id().expect("it has just started");
        Gateway {
            pid,
            url: format!("{}://127.0.0.1:{port}/mcp", config.scheme()),
            admin: format!("http://127.0.0.1:{admin_port}"),
            stderr,
            file,
            child: Mutex::new(child),
            scratch,
        }
    }

    /// Ends it, and starts it again at the same addresses, with the same files: its clients are still there.
    pub async fn restart(&mut self, config: &Config) {
        assert!(self.stop().await.success());
        self.again(config).await;
    }

    /// Kills it: it has no time to tell anybody anything.
    pub async fn kill(&self) {
        process::signal(self.pid, "KILL");
        assert!(!self.ended().await.success());
    }

    /// Starts one that has ended again, at the same addresses, with the same files.
    pub async fn again(&mut self, config: &Config) {
        let (child, stderr) = Gateway::spawn(&[], (&self.scratch, &self.file), config);
        (self.pid, self.stderr) = (child.id().expect("it has just started"), stderr);
        self.child = Mutex::new(child);
        assert!(self.opens().await, "somebody has taken its port");
    }

    fn spawn(wrapper: &[&str], (scratch, file): (&Scratch, &Path), config: &Config) -> (Child, Arc<Tape<String>>) {
        let program = process::beside(GATEWAY).display().to_string();
        let line: Vec<&str> = wrapper.iter().copied().chain([program.as_str()]).collect();
        let mut child = Command::new(line[0])
            .args(&line[1..])
            .args(["serve", "--config", &file.display().to_string()])
            .env("HOME", scratch.path())
            // Runs are independent: no gateway finds what another has kept, unless a test says so.
            .env("XDG_CACHE_HOME", scratch.path().join("cache"))
            // Nor is it found by whoever looks for another.
            .env("XDG_RUNTIME_DIR", scratch.path().join("run"))
            .envs(config.environment().iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .expect("the gateway starts");
        let stderr = Arc::new(Tape::default());
        let (tape, pipe) = (stderr.clone(), child.stderr.take().expect("a pipe was asked for"));
        tokio::spawn(async move {
            let mut lines = BufReader::new(pipe).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                tape.push(line);
            }
            tape.push(STDERR_ENDED.to_owned());
        });
        (child, stderr)
    }

    /// A command of a person who runs the gateway: of the same user, with the same configuration.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(process::beside(GATEWAY));
        command.args(arguments).args(["--config", &self.file.display().to_string()]);
        command.env("HOME", self.scratch.path()).env("XDG_RUNTIME_DIR", self.runtime()).kill_on_drop(true);
        command
    }

    /// The folder of what it keeps for its next run.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.scratch.path().join(".local/state/trunkline")
    }

    /// Where its control socket is, in a folder.
    #[must_use]
    pub fn runtime(&self) -> PathBuf {
        self.scratch.path().join("run")
    }

    /// Waits for its endpoint; says whether there is one, or somebody else has taken its port since that was found free.
    async fn opens(&self) -> bool {
        let pick = |line: &String| match line.as_str() {
            line if line.contains(&self.url) => Some(true),
            STDERR_ENDED => Some(false),
            _ => None,
        };
        let open = self.stderr.wait("the gateway prints its endpoint", pick).await;
        if !open {
            let status = self.ended().await;
            let said = self.stderr.all().join("\n");
            assert!(said.contains("Address already in use"), "the gateway ended before it was open: {status}\n{said}");
        }
        open
    }

    /// The text of a configuration for this gateway, with its own addresses.
    #[must_use]
    pub fn text(&self, config: &Config) -> String {
        let port = |url: &str| url.rsplit([':', '/']).find_map(|part| part.parse().ok()).expect("a port");
        told(config, port(&self.url), port(&self.admin), &self.file.display().to_string())
    }

    /// Writes another configuration to its file, in one go.
    pub fn configure(&self, config: &Config) {
        let beside = self.file.with_extension("new");
        std::fs::write(&beside, self.text(config)).expect("a file can be written");
        std::fs::rename(&beside, &self.file).expect("it can be renamed");
    }

    /// How a client reaches it.
    #[must_use]
    pub fn reach(&self) -> Reach {
        Reach::Url(self.url.clone())
    }

    /// How a client reaches it over one of these ways.
    #[must_use]
    pub fn reach_by(&self, way: Way) -> Reach {
        let at = |scheme: &str, path: &str| self.url.replace("http://", scheme).replace("/mcp", path);
        match way {
            Way::WebSocket => Reach::WebSocket(at("ws://", "/ws")),
            Way::Sse => Reach::Sse(at("http://", "/sse")),
            Way::Unix => Reach::Socket(PathBuf::from(config::socket(&self.file.display().to_string()))),
            _ => self.reach(),
        }
    }

    /// Reads a page of the administration address.
    pub async fn look(&self, path: &str) -> Answer {
        let token = format!("Bearer {ADMIN_TOKEN}");
        http::exchange(&format!("{}{path}", self.admin), "GET", &[("authorization", &token)], "").await
    }

    /// Asks for an administration page until it says what the test waits for.
    pub async fn look_until(&self, path: &str, what: &str, content: impl Fn(&str) -> bool) -> String {
        self.look_until_within(crate::within::LIMIT, path, what, content).await
    }

    /// As [`Gateway::look_until`], for what takes its time.
    pub async fn look_until_within(
        &self,
        limit: Duration,
        path: &str,
        what: &str,
        content: impl Fn(&str) -> bool,
    ) -> String {
        crate::within::until_within(limit, what, || async {
            let answer = self.look(path).await;
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            content(&text).then_some(text)
        })
        .await
    }

    /// Its children, by process id.
    #[must_use]
    pub fn children(&self) -> Vec<u32> {
        process::children(self.pid)
    }

    /// Waits for a line on stderr that holds all these texts.
    pub async fn says(&self, texts: &[&str]) -> String {
        let pick = |line: &String| texts.iter().all(|text| line.contains(text)).then(|| line.clone());
        self.stderr.wait(&format!("the gateway says {texts:?}"), pick).await
    }

    /// Tells it to end, and waits until it has.
    pub async fn stop(&self) -> ExitStatus {
        process::signal(self.pid, "TERM");
        self.ended().await
    }

    /// Waits until it has ended, and all that it wrote is read.
    pub async fn ended(&self) -> ExitStatus {
        let mut child = self.child.lock().await;
        let status = within("the gateway ends", child.wait()).await.expect("a child can be waited for");
        self.stderr.wait("its stderr ends", |line| (line == STDERR_ENDED).then_some(())).await;
        status
    }
}

/// A gateway that a client starts on stdio; the files it needs live as long as this does.
pub struct StdioGateway {
    /// The program for the client to start.
    pub program: Program,
    _scratch: Scratch,
}

impl StdioGateway {
    /// Prepares `trunkline stdio`.
    #[must_use]
    pub fn prepare(config: &Config) -> StdioGateway {
        let scratch = Scratch::new();
        let file = written(&scratch, config, free_port(), free_port());
        let mut program = Program::ours(GATEWAY, &["stdio", "--config", &file.display().to_string()]);
        program.env.push(("HOME".into(), scratch.path().display().to_string()));
        program.env.push(("XDG_CACHE_HOME".into(), scratch.path().join("cache").display().to_string()));
        program.env.push(("XDG_RUNTIME_DIR".into(), scratch.path().join("run").display().to_string()));
        program.env.extend_from_slice(config.environment());
        StdioGateway { program, _scratch: scratch }
    }

    /// How a client reaches it.
    #[must_use]
    pub fn reach(&self) -> Reach {
        Reach::Child(self.program.clone())
    }
}

/// The configuration as a file.
fn written(scratch: &Scratch, config: &Config, port: u16, admin_port: u16) -> PathBuf {
    let path = scratch.path().join("trunkline.toml").display().to_string();
    scratch.file("trunkline.toml", &told(config, port, admin_port, &path))
}

/// The text of that file; in it `$PORT` stands for the endpoint's port, and `$FILE` for the file's own path.
fn told(config: &Config, port: u16, admin_port: u16, path: &str) -> String {
    config.text(port, admin_port).replace("$PORT", &port.to_string()).replace("$FILE", path)
}

/// A port below those that the system gives out itself, different for every caller and test process.
#[must_use]
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let place = u32::from(NEXT.fetch_add(1, Ordering::Relaxed)) + std::process::id().wrapping_mul(97);
        let port = 18_000 + u16::try_from(place % 12_000).expect("below 12000");
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
