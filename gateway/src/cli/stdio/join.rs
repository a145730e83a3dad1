//! The way to the gateway that runs for the same configuration; started where there is none. Of several that would start it one does, and
//! the others join that.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use futures_util::future::join_all;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

use super::started::READY;
use crate::admin::control::{self, StartLock, join};
use crate::cli::args::{Shared, settings};
use crate::config::Config;
use crate::config::fault::printable;
use crate::gateway::own_program;
use crate::telemetry::config::Control;
use crate::telemetry::logging::say;

/// How long all of it may take: a gateway that ends is waited for, and the next one started.
const JOIN_WITHIN: Duration = Duration::from_secs(90);
/// How long a gateway may take to let a client in.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How long a gateway may take to start.
const START_WITHIN: Duration = Duration::from_secs(30);
/// How often it is looked whether another process has started it.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// So often a gateway is started whose configuration changes meanwhile.
const STARTS_MAX: usize = 3;
/// The longest head of an answer that is read.
const HEAD_BYTES_MAX: u64 = 8 * 1024;
/// So much of a log is shown.
const LOG_BYTES_SHOWN: u64 = 4 * 1024;

/// The way to it.
pub(super) struct Joiner {
    shared: Shared,
    /// The gateways that were told of because they are not the one that is meant.
    told: Vec<u32>,
    /// Those that did not answer while one was looked for.
    hung: Vec<u32>,
    /// What is waited for, as the end of a sentence.
    waits_for: String,
}

/// What is there.
enum Found {
    /// The client is in.
    In(BufReader<UnixStream>),
    /// One that is meant ends: its process.
    Ending(i32),
    /// None that is meant.
    Nothing,
}

impl Joiner {
    pub(super) fn new(shared: &Shared) -> Self {
        Self { shared: shared.clone(), told: Vec::new(), hung: Vec::new(), waits_for: String::new() }
    }

    /// Joins the gateway of this configuration, as that is now.
    pub(super) async fn join(&mut self) -> Result<BufReader<UnixStream>, anyhow::Error> {
        let until = Instant::now() + JOIN_WITHIN;
        let mut starts = 0;
        self.hung.clear();
        self.waits_for.clear();
        while Instant::now() < until {
            let (config, identity) = self.configuration()?;
            let control = config.admin.control.as_ref().context("the configuration has no control socket")?;
            match self.look(control, &identity).await {
                Found::In(lines) => return Ok(lines),
                Found::Ending(process) => {
                    self.waits_for =
                        format!(": process {process} is still shutting down; end it, or wait for its calls");
                    ended(process, until).await;
                    continue;
                }
                Found::Nothing => {}
            }
            let lock = StartLock::try_take(&control.folders, &control.files);
            let Some(_lock) = lock.context("cannot lock the start of the shared gateway")? else {
                self.waits_for = ": another process is starting it, or hangs while it does".to_owned();
                sleep(LOOK_EVERY).await;
                continue;
            };
            // Another one may have been quicker.
            match self.look(control, &identity).await {
                Found::In(lines) => return Ok(lines),
                Found::Ending(process) => ended(process, until).await,
                Found::Nothing if starts == STARTS_MAX => {
                    bail!(
                        "the shared gateway was started {STARTS_MAX} times and could not be joined: its configuration changes all the time, or its files cannot be read twice"
                    )
                }
                Found::Nothing => {
                    starts += 1;
                    self.start(control).await?;
                    if let Found::In(lines) = self.look(control, &identity).await {
                        return Ok(lines);
                    }
                }
            }
        }
        bail!("no shared gateway could be joined within {} s{}", JOIN_WITHIN.as_secs(), self.waits_for)
    }

    /// Why it was not joined, where that was given up.
    pub(super) fn given_up(&self, why: &str) -> anyhow::Error {
        anyhow!("{why}{}", self.waits_for)
    }

    /// What it says now, and what a gateway that has it in force is known by.
    fn configuration(&self) -> Result<(Config, String), anyhow::Error> {
        let loaded = settings::reader(&self.shared, &[])().map_err(|faults| anyhow!("{faults}"))?;
        let identity = loaded.config.written.identity();
        Ok((loaded.config, identity))
    }

    async fn look(&mut self, Control { folders, files }: &Control, identity: &str) -> Found {
        let meant = control::running(folders).into_iter().filter(|one| one.mode.is_of_many() && one.is_of(files));
        // All at once: one that hangs keeps nobody from the next, which lets go of who says nothing.
        let asked = meant
            .filter(|one| !self.hung.contains(&one.pid))
            .map(|one| async move { (one.pid, timeout(ANSWER_WITHIN, asked(one.stream, identity)).await) });
        let (mut found, mut ending) = (None, None);
        for (pid, answer) in join_all(asked.collect::<Vec<_>>()).await {
            match answer {
                // The first is that of everybody.
                Ok(Ok(Answer::In(lines))) => found = found.or(Some(lines)),
                Ok(Ok(Answer::Ending(process))) => ending = Some(process),
                Ok(Ok(Answer::Other(why))) => self.tell(pid, &why),
                Ok(Err(error)) => tracing::debug!(pid, %error, "a gateway does not let clients join"),
                Err(_) => {
                    self.hung.push(pid);
                    self.tell(pid, "it does not answer: end it with `kill -9`, or let it go on with `kill -CONT`");
                }
            }
        }
        match (found, ending) {
            (Some(lines), _) => Found::In(lines),
            (None, Some(process)) => Found::Ending(process),
            (None, None) => Found::Nothing,
        }
    }

    /// Says once of each process why it is not the one that is meant.
    fn tell(&mut self, pid: u32, why: &str) {
        if !self.told.contains(&pid) {
            self.told.push(pid);
            say(&format!("note: a gateway runs with these files (process {pid}), but {why}; it is not shared"));
        }
    }

    /// Starts it, and waits until it can be joined.
    async fn start(&self, control: &Control) -> Result<(), anyhow::Error> {
        let log = control::start_log(&control.folders, &control.files);
        let (path, log) = log.context("cannot create the log of the shared gateway")?;
        let mut command = Command::new(own_program());
        command.arg("serve-shared");
        for file in &self.shared.config {
            command.arg("--config").arg(file);
        }
        if let Some(level) = &self.shared.log_level {
            command.args(["--log-level", level]);
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("cannot start the shared gateway")?;
        let stdout = child.stdout.take().context("the shared gateway has no stdout")?;
        let mut line = String::new();
        let said = timeout(START_WITHIN, BufReader::new(stdout.take(64)).read_line(&mut line)).await;
        match said {
            Ok(Ok(_)) if line.trim_end() == READY => Ok(()),
            Ok(_) => {
                let status = timeout(ANSWER_WITHIN, child.wait()).await;
                let status = status.map_or_else(
                    |_| "it still runs".to_owned(),
                    |status| status.map_or_else(|error| error.to_string(), |status| status.to_string()),
                );
                bail!("the shared gateway did not start ({status}){}", last_words(&path))
            }
            Err(_) => {
                // It may hang; the next one is not to find it in its way.
                let _ = child.start_kill();
                bail!("the shared gateway did not start within {} s{}", START_WITHIN.as_secs(), last_words(&path))
            }
        }
    }
}

/// What a gateway says to a client.
enum Answer {
    In(BufReader<UnixStream>),
    Ending(i32),
    Other(String),
}

async fn asked(stream: std::os::unix::net::UnixStream, identity: &str) -> Result<Answer, anyhow::Error> {
    stream.set_nonblocking(true)?;
    let mut stream = BufReader::new(UnixStream::from_std(stream)?);
    stream.get_mut().write_all(join::request(identity).as_bytes()).await?;
    let (mut head, mut left) = (String::new(), HEAD_BYTES_MAX);
    while !head.ends_with("\r\n\r\n") {
        let read = (&mut stream).take(left).read_line(&mut head).await?;
        left = left.saturating_sub(read as u64);
        if read == 0 {
            bail!("the answer is not HTTP");
        }
    }
    let status = head.split(' ').nth(1).unwrap_or_default();
    let of = |closed: join::Closed| closed.status().as_str() == status;
    if status == "101" {
        return Ok(Answer::In(stream));
    }
    if of(join::Closed::Ending) {
        let pid = stream.get_ref().peer_cred()?.pid();
        return Ok(Answer::Ending(pid.context("its process is not known")?));
    }
    if of(join::Closed::Full) {
        return Ok(Answer::Other("it has too many clients".to_owned()));
    }
    let version = head.lines().find_map(|line| line.strip_prefix(join::VERSION.as_str())?.strip_prefix(": "));
    let own = env!("CARGO_PKG_VERSION");
    Ok(Answer::Other(match version {
        Some(version) if version == own => "it has other values, or was started in another folder".to_owned(),
        Some(version) => format!("it is of version {}, and this is {own}", printable(version)),
        None => format!("it is of another version, and this is {own}"),
    }))
}

/// Resolves once the process has ended, or the time is over.
async fn ended(process: i32, until: Instant) {
    while runs(process) && Instant::now() < until {
        sleep(LOOK_EVERY).await;
    }
}

/// Whether a process runs; one whose end nobody has taken notice of does not.
fn runs(process: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// The end of a log, as a part of a message.
fn last_words(path: &Path) -> String {
    let read = || -> io::Result<String> {
        let mut file = std::fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES_SHOWN)))?;
        let mut text = Vec::new();
        file.take(LOG_BYTES_SHOWN).read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    let text = read().unwrap_or_default();
    let lines: Vec<_> = text.lines().map(printable).collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!(":\n{}", lines.join("\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    async fn said(answer: &str) -> Result<Answer, anyhow::Error> {
        let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        theirs.write_all(answer.as_bytes()).unwrap();
        timeout(ANSWER_WITHIN, asked(ours, "0")).await.unwrap()
    }

    #[tokio::test]
    async fn why_a_gateway_is_not_the_one_that_is_meant_is_said() {
        let own = env!("CARGO_PKG_VERSION");
        for (answer, why) in [
            (
                "409 Conflict\r\ntrunkline-version: 0.0.9".to_owned(),
                format!("it is of version 0.0.9, and this is {own}"),
            ),
            (
                format!("409 Conflict\r\ntrunkline-version: {own}"),
                "it has other values, or was started in another folder".into(),
            ),
            ("404 Not Found".to_owned(), format!("it is of another version, and this is {own}")),
            ("429 Too Many Requests".to_owned(), "it has too many clients".into()),
        ] {
            match said(&format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n")).await.unwrap() {
                Answer::Other(said) => assert_eq!(said, why),
                _ => panic!("{answer}"),
            }
        }
        assert!(matches!(said("HTTP/1.1 101 Switching Protocols\r\n\r\n").await, Ok(Answer::In(_))));
        assert!(matches!(said("HTTP/1.1 503 Service Unavailable\r\n\r\n").await, Ok(Answer::Ending(_))));
        assert!(said("nonsense\r\n\r\n").await.is_ok_and(|answer| matches!(answer, Answer::Other(_))));
    }
}
