//! A child process as a pipe: started in its own process group with exactly the environment it was given.

use super::child::Keeper;
use super::inbox::Inbox;
use super::mark::Mark;
use super::nursery::{Start, nursery};
use super::pipe::Pipe;
use super::program;
use super::pump::{self, ReadEnd};
use super::stderr::{self, Tail};
use crate::lifecycle::Tasks;
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
}

impl Child {
    /// How it exited, once it has.
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        self.status.get().copied()
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

/// Starts the child. Ending `tasks` stops it, and `tasks.ended()` proves that it and its group are gone.
pub(crate) fn start(spec: Spec<'_>, inbox: Arc<dyn Inbox>, tasks: &Tasks) -> Result<Child, SpawnFault> {
    if let Some(cwd) = spec.cwd.filter(|cwd| !cwd.is_dir()) {
        return Err(SpawnFault {
            text: format!("its working directory `{}` is not there", cwd.display()),
            is_passing: false,
        });
    }
    if let Some(error) = program::refusal(spec.command, spec.env, spec.cwd.map(PathBuf::as_path)) {
        return Err(fault(spec.command, &error));
    }
    let mark = Mark::new();
    let start = Start { command: spec.command, args: spec.args, env: spec.env, cwd: spec.cwd, mark: &mark };
    let mut child = nursery().start(&start).map_err(|error| fault(spec.command, &error))?;
    let parts = (child.id(), child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(pid), Some(stdin), Some(stdout), Some(stderr)) = parts else {
        return Err(SpawnFault { text: "its pipes could not be made".into(), is_passing: true });
    };
    let pipe = Pipe::new(inbox, tasks.clone());
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
    let keeper = Keeper {
        child,
        pid,
        mark,
        name: spec.name.clone(),
        pipe: pipe.clone(),
        tail: tail.clone(),
        read_end,
        drained,
        status: status.clone(),
        stop_timeout: spec.stop_timeout,
    };
    let level = tasks.clone();
    tasks.spawn(async move {
        keeper.keep(level).await;
        gone.cancel();
    });
    Ok(Child { pipe, pid, tail, status })
}

fn fault(command: &str, error: &std::io::Error) -> SpawnFault {
    use std::io::ErrorKind;
    let (text, is_passing) = match error.kind() {
        ErrorKind::NotFound => (
            format!(
                "the command `{command}` was not found ({error}); is it installed, and on the PATH that it is given?"
            ),
            false,
        ),
        ErrorKind::PermissionDenied => (format!("the command `{command}` may not be run ({error})"), false),
        _ => (format!("the command `{command}` could not be started: {error}"), true),
    };
    SpawnFault { text, is_passing }
}
