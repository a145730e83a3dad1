//! A child process as a pipe: started in its own process group with exactly the environment it was given.

use super::reaper::{Reaper, last_words};
use super::stderr;
use super::stderr::StderrTail;
use super::stderr_log::StderrLog;
use crate::health::{Cause, CauseCode};
use crate::process::spawner::{Start, spawner};
use crate::process::{ChildLimits, Mark, program};
use crate::runtime::Tasks;
use crate::runtime::watched::{Counted, Watched};
use crate::transport::events::LinkEvents;
use crate::transport::pipe::{Pipe, ReadEnd, reader, writer};
use rustix::io::Errno;
use std::ffi::OsString;
use std::future::pending;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::unix::pipe;
use tokio::process::ChildStdin;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What is started.
pub struct ChildSpec<'a> {
    /// The name of the upstream.
    pub name: &'a Arc<str>,
    /// The program.
    pub command: &'a str,
    /// The arguments.
    pub args: &'a [String],
    /// The whole environment.
    pub env: &'a [(OsString, OsString)],
    /// The working directory; `None` is that of the gateway.
    pub cwd: Option<&'a PathBuf>,
    /// The longest message, in bytes.
    pub max_message: usize,
    /// The time from closed stdin to SIGKILL.
    pub stop_timeout: Duration,
    /// The limits of the process.
    pub limits: ChildLimits,
    /// Counts and logs the lines on stderr.
    pub stderr: StderrLog,
}

/// A running child.
#[derive(Clone)]
pub struct Child {
    /// The pipe over stdin and stdout.
    pub pipe: Arc<Pipe>,
    /// The process id.
    pub pid: u32,
    /// The last lines on stderr.
    pub tail: StderrTail,
    status: Arc<OnceLock<ExitStatus>>,
    /// Has it killed without being asked to end.
    at_once: CancellationToken,
    read_end: watch::Receiver<Option<ReadEnd>>,
}

impl Child {
    /// Whether what it writes is not MCP, so that it is of no use to start it again as it is.
    pub fn is_foreign(&self) -> bool {
        matches!(*self.read_end.borrow(), Some(ReadEnd::NotMcp(_)))
    }

    /// Whether it has closed one of its pipes, or speaks no MCP, and is not known to have exited.
    pub fn has_hung_up(&self) -> bool {
        self.status().is_none() && self.read_end.borrow().is_some()
    }

    /// What it has said so far of why it does not answer, for the end of a cause.
    pub fn last_words(&self) -> Cause {
        last_words(&self.pipe, &self.tail)
    }

    /// How it exited, once it has.
    pub fn status(&self) -> Option<ExitStatus> {
        self.status.get().copied()
    }

    /// Kills it and all of its tree at once. Its calls end now, with the cause.
    pub fn kill(&self, cause: &Cause) {
        self.at_once.cancel();
        self.pipe.close(cause.clone());
    }
}

/// Why nothing was started.
#[derive(Debug)]
pub struct SpawnFault {
    /// What is wrong, for a person.
    pub(crate) text: Cause,
    /// Whether trying again soon is of use.
    pub(crate) is_passing: bool,
}

/// Starts the child. Ending `tasks` stops it, and `tasks.ended()` proves that it and its group are gone.
pub fn start(spec: ChildSpec<'_>, inbox: Arc<dyn LinkEvents>, tasks: &Tasks) -> Result<Child, SpawnFault> {
    let mark = Mark::new();
    let (command, args, env, cwd, limits) = (spec.command, spec.args, spec.env, spec.cwd, spec.limits);
    let start = Start { command, args, env, cwd, mark: &mark, limits };
    check(&spec)?;
    let mut child = spawner().start(&start).map_err(|error| fault(spec.command, spec.env, &error))?;
    let parts = (child.id(), child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(pid), Some(stdin), Some(stdout), Some(stderr)) = parts else {
        return Err(SpawnFault {
            text: Cause::new(CauseCode::SpawnFailed(None), "its pipes could not be made"),
            is_passing: true,
        });
    };
    let (bytes, hung_up) = (inbox.bytes(), hung_up(&stdin));
    let (stdin, stdout) = (Watched::new(stdin, Counted(bytes.clone())), Watched::new(stdout, Counted(bytes)));
    let pipe = Pipe::new(inbox, tasks.clone());
    pipe.count_for(spec.name);
    let (tail, status) = (StderrTail::default(), Arc::new(OnceLock::new()));
    let (read_ended, read_end) = watch::channel(None);
    let (drain_ended, drained) = watch::channel(false);

    let (writing, name, ended) = (pipe.clone(), spec.name.clone(), read_ended.clone());
    tasks.spawn(async move {
        if let Err(error) = writer::write(&writing, stdin, hung_up).await {
            // Its exit, if it is one, follows at once and says more.
            tracing::debug!(upstream = %name, %error, "cannot write to stdin");
            let end = ReadEnd::Failed("closed its stdin".into());
            ended.send_if_modified(|seen| seen.is_none() && seen.replace(end).is_none());
        }
    });
    let (reading, max) = (pipe.clone(), spec.max_message);
    tasks.spawn(async move {
        let end = tokio::select! {
            end = reader::read(&reading, stdout, max) => end,
            _ = reading.closed() => ReadEnd::Eof,
        };
        read_ended.send_replace(Some(end));
    });
    let (lines, log) = (tail.clone(), spec.stderr);
    let gone = CancellationToken::new();
    let over = gone.clone();
    tasks.spawn(async move {
        // What left the group may hold stderr open: it is drained until the group is gone, and not longer.
        tokio::select! {
            () = stderr::drain(stderr, lines, &log) => {}
            () = over.cancelled() => {}
        }
        drain_ended.send_replace(true);
    });
    let at_once = CancellationToken::new();
    let keeper = Reaper {
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

/// Resolves once the child has closed its stdin. Without a file for this watch the next write finds out.
fn hung_up(stdin: &ChildStdin) -> impl Future<Output = ()> + use<> {
    let watched = stdin.as_fd().try_clone_to_owned().and_then(pipe::Sender::from_owned_fd);
    async move {
        match watched {
            Ok(watched) => drop(watched.ready(Interest::ERROR).await),
            Err(_) => pending().await,
        }
    }
}

/// What can be seen to be wrong before anything is started.
fn check(spec: &ChildSpec<'_>) -> Result<(), SpawnFault> {
    if let Some(cwd) = spec.cwd.filter(|cwd| !cwd.is_dir()) {
        let hint = cwd.to_str().and_then(program::hint).unwrap_or_default();
        let text = Cause::new(CauseCode::DirectoryNotFound, "working directory");
        let text = text.foreign(&format!(" `{}`", cwd.display())).own(" does not exist").advise(hint);
        return Err(SpawnFault { text, is_passing: false });
    }
    let refusal = program::refusal(spec.command, spec.env, spec.cwd.map(PathBuf::as_path));
    refusal.map_or(Ok(()), |error| Err(fault(spec.command, spec.env, &error)))
}

fn fault(command: &str, env: &[(OsString, OsString)], error: &std::io::Error) -> SpawnFault {
    use std::io::ErrorKind;
    if error.kind() == ErrorKind::NotFound {
        let (own, path) = match command.contains('/') {
            true => (" does not exist", String::new()),
            false => (" not found in PATH", format!(" ({})", program::searched(env))),
        };
        let text = Cause::new(CauseCode::CommandNotFound, "")
            .foreign_or(&format!("`{}`", program::named(command)), "command")
            .own(own);
        let text = text.foreign(&path).advise(program::hint(command).unwrap_or("is it installed?"));
        return SpawnFault { text, is_passing: false };
    }
    let (code, text, advice) = match error.kind() {
        ErrorKind::PermissionDenied => (CauseCode::CommandNotExecutable, format!(" cannot be executed ({error})"), ""),
        _ => {
            let (more, advice) = match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::AGAIN) => (
                    "; the limit of processes and threads is reached",
                    "end some, or raise `ulimit -u`, or `pids.max` of the control group",
                ),
                Some(Errno::MFILE) => ("; the gateway's limit of open files is reached", "raise its `ulimit -n`"),
                Some(Errno::NFILE) => ("; the system's limit of open files is reached", "raise `fs.file-max`"),
                Some(Errno::NOMEM) => ("; there is no memory left for another process", ""),
                Some(Errno::TOOBIG) => ("; its arguments and environment together are too long", ""),
                _ => ("", ""),
            };
            let code = CauseCode::SpawnFailed(error.raw_os_error());
            (code, format!(" could not be started: {error}{more}"), advice)
        }
    };
    let is_passing = matches!(code, CauseCode::SpawnFailed(_));
    // Where a program lies is for the operator to know.
    let text =
        Cause::new(code, "command").foreign(&format!(" `{}`", program::named(command))).own(&text).advise(advice);
    SpawnFault { text, is_passing }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::program::PATH_CHARS_MAX;

    fn said(command: &str, errno: Errno) -> SpawnFault {
        let path = format!("/opt/bin:/usr/bin:/{}", "x".repeat(2 * PATH_CHARS_MAX));
        let env = [("PATH".into(), path.into())];
        fault(command, &env, &std::io::Error::from_raw_os_error(errno.raw_os_error()))
    }

    #[test]
    fn a_command_that_is_not_found_is_named_with_the_path_that_was_searched() {
        let bare = said("npx", Errno::NOENT).text;
        let full = bare.full();
        assert_eq!(full, "`npx` not found in PATH (/opt/bin:/usr/bin:…); is it installed?");
        assert_eq!(bare.public(), "command not found in PATH; is it installed?");
        assert_eq!(said("./x", Errno::NOENT).text.full(), "`./x` does not exist; is it installed?");
    }

    #[test]
    fn what_the_system_refuses_for_now_is_tried_again_and_said_with_what_helps() {
        for (errno, word) in [
            (Errno::AGAIN, "`ulimit -u`"),
            (Errno::MFILE, "`ulimit -n`"),
            (Errno::NFILE, "`fs.file-max`"),
            (Errno::NOMEM, "no memory"),
        ] {
            let said = said("npx", errno);
            assert!(
                said.is_passing && said.text.full().contains(word) && said.text.full().contains("`npx`"),
                "{said:?}"
            );
        }
        for (errno, word) in [(Errno::NOENT, "not found"), (Errno::ACCESS, "cannot be executed")] {
            let said = said("npx", errno);
            assert!(!said.is_passing && said.text.full().contains(word), "{said:?}");
        }
    }
}
