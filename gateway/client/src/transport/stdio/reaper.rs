//! A child process from its start to its proven end: the leader reaped, and nothing left of its group, nor of those who bear its
//! mark.

use crate::health::{Cause, CauseCode};
use crate::process::Mark;
use crate::process::spawner::spawner;
use crate::process::sweep;
use crate::runtime::Tasks;
use crate::transport::pipe::{Pipe, ReadEnd};
use crate::transport::stdio::{StderrTail, diagnosis};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// How long stdin is closed before the group is asked by a signal.
const EOF_GRACE: Duration = Duration::from_secs(1);
/// How long what is left of a group has after its leader ended.
const SWEEP_GRACE: Duration = Duration::from_millis(500);
/// How long the last words may take to arrive after the end.
const LAST_WORDS: Duration = Duration::from_millis(40);
/// How long an exit status may take after stdout was closed: calls wait for it.
const STATUS_WAIT: Duration = Duration::from_millis(30);

/// Keeps one child: sees its end, or brings it about.
pub(crate) struct Reaper {
    pub(crate) child: tokio::process::Child,
    pub(crate) pid: u32,
    /// What its whole tree bears.
    pub(crate) mark: Mark,
    /// The upstream whose it is.
    pub(crate) name: Arc<str>,
    pub(crate) pipe: Arc<Pipe>,
    pub(crate) tail: StderrTail,
    /// How reading its stdout ended, once it has.
    pub(crate) read_end: watch::Receiver<Option<ReadEnd>>,
    /// Whether stderr is drained.
    pub(crate) drained: watch::Receiver<bool>,
    /// Where the exit status goes.
    pub(crate) status: Arc<OnceLock<ExitStatus>>,
    pub(crate) stop_timeout: Duration,
    /// Cancelled where it is to be killed without being asked to end.
    pub(crate) at_once: CancellationToken,
}

impl Reaper {
    /// Runs until the child is reaped and its group is gone.
    pub(crate) async fn keep(mut self, tasks: Tasks) {
        let mut read_end = self.read_end.clone();
        tokio::select! {
            status = self.child.wait() => {
                self.died(status.ok()).await;
                return self.sweep().await;
            }
            () = async { drop(read_end.wait_for(Option::is_some).await) } => {
                let status = match timeout(STATUS_WAIT, self.child.wait()).await {
                    Ok(status) => Some(status.ok()),
                    // The word of an end may itself be late.
                    Err(_) => self.child.try_wait().ok().flatten().map(Some),
                };
                if let Some(status) = status {
                    self.died(status).await;
                    return self.sweep().await;
                }
                let why = match &*self.read_end.borrow() {
                    Some(ReadEnd::NotMcp(why)) => Cause::new(CauseCode::NotMcp, why.as_str()),
                    Some(ReadEnd::Failed(why)) => self.with_last_words(Cause::new(CauseCode::PipeClosed, why.as_str())),
                    _ => self.with_last_words(Cause::new(CauseCode::PipeClosed, "closed its stdout")),
                };
                self.pipe.close(why);
            }
            _ = self.pipe.closed() => {}
            () = tasks.ending() => self.pipe.close(Cause::new(CauseCode::StoppedByOrder, "stopped on request")),
        }
        self.stop().await;
    }

    /// Stdin is closed already, with the pipe. Then signals, to the whole group, until the leader is reaped.
    async fn stop(&mut self) {
        let begun = Instant::now();
        let eof = EOF_GRACE.min(self.stop_timeout / 2);
        let kill = if self.at_once.is_cancelled() { Duration::ZERO } else { self.stop_timeout };
        for (until, signal) in
            [(eof, Signal::TERM), (kill, Signal::KILL)].into_iter().filter(|(until, _)| *until <= kill)
        {
            tokio::select! {
                status = self.child.wait() => {
                    self.note(status.ok());
                    return self.sweep().await;
                }
                () = sleep_until(begun + until) => self.signal(signal),
            }
        }
        let status = self.child.wait().await;
        self.note(status.ok());
        self.sweep().await;
    }

    /// The leader ended by itself: every call ends now, with what is known of why.
    async fn died(&mut self, status: Option<ExitStatus>) {
        self.note(status);
        let mut read_end = self.read_end.clone();
        let mut drained = self.drained.clone();
        // Answers that were written before the end still count; a grandchild may hold the pipe open, so not for long.
        let _ = timeout(LAST_WORDS, async {
            let _ = read_end.wait_for(Option::is_some).await;
            let _ = drained.wait_for(|done| *done).await;
        })
        .await;
        let cause = match &*self.read_end.borrow() {
            // Why it ended matters less than why it cannot be used.
            Some(ReadEnd::NotMcp(why)) => {
                Cause::new(CauseCode::NotMcp, why.as_str()).foreign(&diagnosis::of_stderr(&self.tail.lines()))
            }
            _ => self.with_last_words(status.map_or_else(|| Cause::new(CauseCode::PipeClosed, "it ended"), describe)),
        };
        self.pipe.close(cause);
    }

    /// Ends what is left after the leader: of its group, also who has cleared its environment, and of those who bear the mark,
    /// also who has left the group.
    async fn sweep(&self) {
        let group = async {
            if !self.has_members() {
                return;
            }
            self.signal(Signal::TERM);
            let until = Instant::now() + SWEEP_GRACE;
            while self.has_members() {
                if Instant::now() >= until {
                    return self.signal(Signal::KILL);
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        let ((), left) = tokio::join!(group, sweep::end_marked(self.mark.text()));
        spawner().swept(self.pid);
        if !left.is_empty() {
            tracing::error!(upstream = &*self.name, pids = ?left, "cannot end processes of the upstream");
        }
    }

    fn note(&self, status: Option<ExitStatus>) {
        spawner().ended(self.pid);
        if let Some(status) = status {
            let _ = self.status.set(status);
        }
    }

    fn has_members(&self) -> bool {
        self.group().is_some_and(|group| test_kill_process_group(group).is_ok())
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group() {
            // The group may be gone already, which is what is wanted.
            let _ = kill_process_group(group, signal);
        }
    }

    fn group(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.pid).ok()?)
    }

    fn with_last_words(&self, what: Cause) -> Cause {
        what.then(&last_words(&self.pipe, &self.tail))
    }
}

/// What a child has said of why, for the end of a cause.
pub(crate) fn last_words(pipe: &Pipe, tail: &StderrTail) -> Cause {
    pipe.noise.told().foreign(&diagnosis::of_stderr(&tail.lines()))
}

/// An exit status as a cause.
fn describe(status: ExitStatus) -> Cause {
    if let Some(code) = status.code() {
        // So a shell says what ended its own child.
        let by = match code {
            137 => " (SIGKILL)",
            143 => " (SIGTERM)",
            _ => "",
        };
        return Cause::new(CauseCode::Exited(code), format!("exited with status {code}{by}"));
    }
    let signal = status.signal().unwrap_or_default();
    let said = match signal {
        9 => "killed by SIGKILL".to_owned(),
        15 => "terminated by SIGTERM".to_owned(),
        11 => "crashed with SIGSEGV".to_owned(),
        6 => "aborted with SIGABRT".to_owned(),
        signal => format!("ended by signal {signal}"),
    };
    Cause::new(CauseCode::Killed(signal), said)
}
