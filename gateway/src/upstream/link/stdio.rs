//! A child process as a pipe: started in its own process group with exactly the environment it was given.

use super::child::{Keeper, last_words};
use super::inbox::Inbox;
use super::mark::Mark;
use super::nursery::{Start, nursery};
use super::pipe::Pipe;
use super::program;
use super::pump::{self, ReadEnd};
use super::stderr::{self, Tail};
use crate::lifecycle::Tasks;
use crate::signals;
use rustix::io::Errno;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What is started.
pub(crate) struct Spec<'a> {
    pub(crate) name: &'a Arc<str>,
    pub(crate) command: &'a str,
    pub(crate) args: &'a [String],
    pub(crate) env: &'a [(OsString, OsString)],
    pub(crate) cwd: Option<&'a PathBuf>,
    pub(crate) max_message: usize,
    pub(crate) stop_timeout: Duration,
    /// Counts lines on stderr.
    pub(crate) stderr_lines: metrics::Counter,
}

/// A running child.
#[derive(Clone)]
pub(crate) struct Child {
    pub(crate) pipe: Arc<Pipe>,
    pub(crate) pid: u32,
    pub(crate) tail: Tail,
    status: Arc<OnceLock<ExitStatus>>,
    /// Has it killed without being asked to end.
    at_once: CancellationToken,
    read_end: watch::Receiver<Option<ReadEnd>>,
}

impl Child {
    /// Whether what it writes is not MCP, so that it is of no use to start it again as it is.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(*self.read_end.borrow(), Some(ReadEnd::NotMcp(_)))
    }

    /// What it has said so far of why it does not answer, for the end of a cause.
    pub(crate) fn last_words(&self) -> String {
        last_words(&self.pipe, &self.tail)
    }

    /// How it exited, once it has.
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        self.status.get().copied()
    }

    /// Kills it and all of its tree at once. Its calls end now, with the cause.
    pub(crate) fn kill(&self, cause: &Arc<str>) {
        self.at_once.cancel();
        self.pipe.close(cause.clone());
    }
}

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct SpawnFault {
    /// What is wrong, for a person.
    pub(crate) text: String,
    /// Whether trying again soon is of use.
    pub(crate) is_passing: bool,
}

/// A pipe whose requests in flight are told in the metrics for as long as it is there.
fn counted(name: &str, pipe: Arc<Pipe>) -> Arc<Pipe> {
    let counted = Arc::downgrade(&pipe);
    signals::pending(name, move || Some(counted.upgrade()?.in_flight()));
    pipe
}

/// Starts the child. Ending `tasks` stops it, and `tasks.ended()` proves that it and its group are gone.
pub(crate) fn start(spec: Spec<'_>, inbox: Arc<dyn Inbox>, tasks: &Tasks) -> Result<Child, SpawnFault> {
    let mark = Mark::new();
    let start = Start { command: spec.command, args: spec.args, env: spec.env, cwd: spec.cwd, mark: &mark };
    check(&spec)?;
    let mut child = nursery().start(&start).map_err(|error| fault(spec.command, &error))?;
    let parts = (child.id(), child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(pid), Some(stdin), Some(stdout), Some(stderr)) = parts else {
        return Err(SpawnFault { text: "its pipes could not be made".into(), is_passing: true });
    };
    let pipe = counted(spec.name, Pipe::new(inbox, tasks.clone()));
    let tail = Tail::default();
    let status = Arc::new(OnceLock::new());
    let (read_ended, read_end) = watch::channel(None);
    let (drain_ended, drained) = watch::channel(false);

    let (writing, name, ended) = (pipe.clone(), spec.name.clone(), read_ended.clone());
    tasks.spawn(async move {
        if let Err(error) = pump::write(&writing, stdin).await {
            // Its exit, if it is one, follows at once and says more.
            tracing::debug!(upstream = %name, %error, "cannot write to stdin");
            let end = ReadEnd::Failed("it closed its stdin".into());
            ended.send_if_modified(|seen| seen.is_none() && seen.replace(end).is_none());
        }
    });
    let (reading, max) = (pipe.clone(), spec.max_message);
    tasks.spawn(async move {
        let end = tokio::select! {
            end = pump::read(&reading, stdout, max) => end,
            _ = reading.closed() => ReadEnd::Eof,
        };
        read_ended.send_replace(Some(end));
    });
    let (name, lines, counter) = (spec.name.clone(), tail.clone(), spec.stderr_lines);
    let gone = CancellationToken::new();
    let over = gone.clone();
    tasks.spawn(async move {
        // What left the group may hold stderr open: it is drained until the group is gone, and not longer.
        tokio::select! {
            () = stderr::drain(&name, stderr, lines, |count| counter.increment(count)) => {}
            () = over.cancelled() => {}
        }
        drain_ended.send_replace(true);
    });
    let at_once = CancellationToken::new();
    let keeper = Keeper {
        at_once: at_once.clone(),
        child,
        pid,
        mark,
        name: spec.name.clone(),
        pipe: pipe.clone(),
        tail: tail.clone(),
        read_end: read_end.clone(),
        drained,
        status: status.clone(),
        stop_timeout: spec.stop_timeout,
    };
    let level = tasks.clone();
    tasks.spawn(async move {
        keeper.keep(level).await;
        gone.cancel();
    });
    Ok(Child { pipe, pid, tail, status, at_once, read_end })
}

/// What can be seen to be wrong before anything is started.
fn check(spec: &Spec<'_>) -> Result<(), SpawnFault> {
    if let Some(cwd) = spec.cwd.filter(|cwd| !cwd.is_dir()) {
        let hint = cwd.to_str().and_then(program::hint).map(|hint| format!("; {hint}")).unwrap_or_default();
        let text = format!("its working directory `{}` is not there{hint}", cwd.display());
        return Err(SpawnFault { text, is_passing: false });
    }
    let refusal = program::refusal(spec.command, spec.env, spec.cwd.map(PathBuf::as_path));
    refusal.map_or(Ok(()), |error| Err(fault(spec.command, &error)))
}

fn fault(command: &str, error: &std::io::Error) -> SpawnFault {
    use std::io::ErrorKind;
    let (text, is_passing) = match error.kind() {
        ErrorKind::NotFound => (
            format!(
                "the command `{command}` was not found ({error}); {}",
                program::hint(command).unwrap_or("is it installed, and on the PATH that it is given?")
            ),
            false,
        ),
        ErrorKind::PermissionDenied => (format!("the command `{command}` may not be run ({error})"), false),
        _ => {
            let what_to_do = match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::AGAIN) => {
                    "; there are as many processes and threads as may be: end some, or raise `ulimit -u`, or `pids.max` of the \
                     control group"
                }
                Some(Errno::MFILE) => "; the gateway has as many files open as it may: raise its `ulimit -n`",
                Some(Errno::NFILE) => "; the system has as many files open as it may: raise `fs.file-max`",
                Some(Errno::NOMEM) => "; there is no memory left for another process",
                Some(Errno::TOOBIG) => "; its arguments and its environment are too long together",
                _ => "",
            };
            (format!("the command `{command}` could not be started: {error}{what_to_do}"), true)
        }
    };
    SpawnFault { text, is_passing }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_refuses_for_now_is_tried_again_and_said_with_what_helps() {
        for (errno, word) in [
            (Errno::AGAIN, "`ulimit -u`"),
            (Errno::MFILE, "`ulimit -n`"),
            (Errno::NFILE, "`fs.file-max`"),
            (Errno::NOMEM, "no memory"),
        ] {
            let said = fault("npx", &std::io::Error::from_raw_os_error(errno.raw_os_error()));
            assert!(said.is_passing && said.text.contains(word) && said.text.contains("`npx`"), "{said}");
        }
        for (errno, word) in [(Errno::NOENT, "not found"), (Errno::ACCESS, "may not be run")] {
            let said = fault("npx", &std::io::Error::from_raw_os_error(errno.raw_os_error()));
            assert!(!said.is_passing && said.text.contains(word), "{said}");
        }
    }
}
