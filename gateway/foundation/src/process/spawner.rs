//! Where children are started: from one thread that never ends, known by their numbers until somebody has seen their end, and
//! watched over by the guard.

use super::exec::ChildLimits;
use super::guard::{GUARD, GuardNote};
use super::linux::Dead;
use super::mark::Mark;
use super::remains::Groups;
use super::{linux, mark};
use crate::health::chain;
use crate::runtime::Tasks;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep};

/// How long one of ours that is dead has until somebody looks at it, before strangers behind it are looked for again.
const RETRY: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));
/// A guard that ends by itself is replaced no sooner than this after it was started.
const GUARD_MIN: Duration = Duration::from_secs(1);
/// How long the guard has to end once it is no longer needed.
const GUARD_END: Duration = Duration::from_secs(2);
/// How many starts wait for the one thread; more wait for these.
const QUEUE: usize = 64;
/// File handles that must be free when a process is started.
const FREE_HANDLES: usize = 16;

/// What is to be started, and its environment, whole.
pub struct Start<'a> {
    /// The program.
    pub command: &'a str,
    /// Its arguments.
    pub args: &'a [String],
    /// Its environment.
    pub env: &'a [(OsString, OsString)],
    /// Its working folder; `None`: that of the gateway.
    pub cwd: Option<&'a PathBuf>,
    /// The mark that its whole process tree inherits.
    pub mark: &'a Mark,
    /// The limits on its resources.
    pub limits: ChildLimits,
}

/// The processes that this one has started.
#[derive(Default)]
pub struct Spawner {
    /// By number, and how often: a number may be given anew between an end and its being known.
    ours: Mutex<HashMap<i32, u32>>,
    /// Held from a start to its being known, by which time it has a number above. A start takes its time, so that nobody waits
    /// for this but another start.
    starting: Mutex<()>,
    /// Whether children are started by way of our own program, and guarded.
    owns: OnceLock<()>,
    /// Where they are started then, from the first one on: who answers its first client soon does not wait for a thread.
    thread: Mutex<Option<SyncSender<Job>>>,
    guard: Mutex<Option<Guard>>,
    /// The process groups of children of which something may be left. Taken after the guard's lock.
    groups: Mutex<Groups>,
}

/// The guard that was started last.
struct Guard {
    child: Child,
    /// Its stdin. It lives for as long as that is open.
    notes: Option<File>,
    pid: Option<u32>,
    since: Instant,
}

struct Job {
    command: Command,
    runtime: Handle,
    started: SyncSender<io::Result<Child>>,
}

/// The one of this process.
pub fn spawner() -> &'static Spawner {
    static NURSERY: OnceLock<Spawner> = OnceLock::new();
    NURSERY.get_or_init(Spawner::default)
}

/// Takes over the care for all that this process starts, and for what that leaves behind. Only the program itself does: it starts
/// children by way of itself.
pub fn own_processes(tasks: &Tasks) -> io::Result<()> {
    linux::adopt_strangers()?;
    let _is_first = spawner().owns.set(());
    let children = signal(SignalKind::child())?;
    tasks.spawn_until_end(reap(children));
    Ok(())
}

/// Ends the guard, where there is one: nothing is left that it would have to look for.
pub async fn leave_guard() {
    let guard = spawner().guard.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut guard) = guard else { return };
    guard.tell(GuardNote::Over);
    drop(guard.notes.take());
    let mut guard = guard.child;
    if tokio::time::timeout(GUARD_END, guard.wait()).await.is_err() {
        let _ = guard.kill().await;
    }
}

/// Fails with `EMFILE` if fewer than [`FREE_HANDLES`] file handles are free. A child keeps up to five, so at least eleven stay for clients
/// and probes. Without this check children could take the last handle, and no probe could report why the other children do not start.
fn check_free_handles() -> io::Result<()> {
    let _free = (0..FREE_HANDLES / 2).map(|_| io::pipe()).collect::<io::Result<Vec<_>>>()?;
    Ok(())
}

impl Spawner {
    /// Starts a child in a process group of its own, with pipes to it. Blocks until it has been started.
    pub fn start(&self, start: &Start<'_>) -> io::Result<Child> {
        let mut command = match self.owns.get() {
            Some(()) => {
                let mut command = Command::new(linux::own_program());
                command.args(start.limits.words(std::process::id())).arg("--").arg(start.command);
                command
            }
            None => Command::new(start.command),
        };
        command.args(start.args).env_clear();
        command.envs(start.env.iter().filter(|(name, _)| !mark::is_variable(name)).map(|(name, value)| (name, value)));
        command.env(mark::VARIABLE, start.mark.value());
        command.envs(chain::for_children().map(|value| (chain::VARIABLE, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
        if let Some(cwd) = start.cwd {
            command.current_dir(cwd);
        }
        if self.owns.get().is_some() {
            self.keep_guard();
        }
        let child = self.spawn(command)?;
        if let Some(pid) = child.id().map(u32::cast_signed)
            && let Some(began) = linux::began(pid)
        {
            self.note(GuardNote::Started(pid, began));
        }
        Ok(child)
    }

    /// Nothing is left of the group of a child.
    pub fn swept(&self, pid: u32) {
        self.note(GuardNote::Ended(pid.cast_signed()));
    }

    /// Keeps what the next guard has to know, and tells the one that is there.
    fn note(&self, note: GuardNote) {
        let mut guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        match note {
            GuardNote::Started(pid, began) => _ = self.groups().insert(pid, began),
            GuardNote::Ended(pid) => _ = self.groups().remove(&pid),
            GuardNote::Over => {}
        }
        guard.iter_mut().for_each(|guard| guard.tell(note));
    }

    fn groups(&self) -> MutexGuard<'_, Groups> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody has seen the end of a child of ours.
    pub fn ended(&self, pid: u32) {
        if let Entry::Occupied(mut times) = self.ours().entry(pid.cast_signed()) {
            *times.get_mut() -= 1;
            if *times.get() == 0 {
                times.remove();
            }
        }
    }

    /// Starts the guard with the first child, and again where it has ended.
    fn keep_guard(&self) {
        self.renew_guard(self.guard.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Something of ours has ended. Was it the guard, another one takes its place: until then nobody would end what a killed
    /// gateway leaves.
    fn mend_guard(&self) {
        let guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        // One that cannot stay is not started without end; who calls comes again while it lies dead.
        if guard.as_ref().is_some_and(|guard| guard.since.elapsed() >= GUARD_MIN) {
            self.renew_guard(guard);
        }
    }

    fn renew_guard(&self, mut guard: MutexGuard<'_, Option<Guard>>) {
        if let Some(running) = &mut *guard {
            match running.child.try_wait() {
                Ok(None) => return,
                Ok(Some(status)) => tracing::warn!(%status, "the process guard exited; starting another one"),
                Err(error) => tracing::warn!(%error, "the process guard is gone; starting another one"),
            }
        }
        let mut command = Command::new(linux::own_program());
        command.args([GUARD, mark::run()]).env_clear().process_group(0).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        match self.spawn(command) {
            Ok(child) => {
                let mut new = Guard::of(child);
                self.groups().iter().for_each(|(pid, began)| new.tell(GuardNote::Started(*pid, *began)));
                if let Some(before) = guard.replace(new).and_then(|before| before.pid) {
                    self.ended(before);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot start the process guard; if this process is killed, children may survive")
            }
        }
    }

    fn spawn(&self, command: Command) -> io::Result<Child> {
        if self.owns.get().is_none() {
            return self.spawn_here(command);
        }
        let (started, start) = sync_channel(1);
        let job = Job { command, runtime: Handle::current(), started };
        let gone = || io::Error::other("the thread that starts children is gone");
        self.nursery()?.send(job).map_err(|_| gone())?;
        start.recv().map_err(|_| gone())?
    }

    /// The thread that starts children.
    fn nursery(&self) -> io::Result<SyncSender<Job>> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(jobs) = &*thread {
            return Ok(jobs.clone());
        }
        let (jobs, queue) = sync_channel(QUEUE);
        std::thread::Builder::new().name("nursery".into()).spawn(move || start_all(&queue))?;
        Ok(thread.insert(jobs).clone())
    }

    /// No stranger is reaped between a start and its being known.
    fn spawn_here(&self, mut command: Command) -> io::Result<Child> {
        let _starting = self.starting();
        check_free_handles()?;
        let child = command.spawn()?;
        if let Some(pid) = child.id() {
            *self.ours().entry(pid.cast_signed()).or_default() += 1;
        }
        Ok(child)
    }

    /// Reaps one stranger, unless a start is under way.
    fn reap(&self) -> Dead {
        match self.starting.try_lock() {
            Err(TryLockError::WouldBlock) => Dead::Perhaps,
            Ok(_) | Err(TryLockError::Poisoned(_)) => {
                let ours = self.ours();
                linux::reap(|pid| ours.contains_key(&pid))
            }
        }
    }

    fn starting(&self) -> MutexGuard<'_, ()> {
        self.starting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ours(&self) -> MutexGuard<'_, HashMap<i32, u32>> {
        self.ours.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guard {
    fn of(mut child: Child) -> Self {
        let notes = child.stdin.take().and_then(|stdin| stdin.into_owned_fd().ok()).and_then(|pipe| {
            // A guard that does not read must hold nobody up.
            rustix::io::ioctl_fionbio(&pipe, true).ok()?;
            Some(File::from(pipe))
        });
        Self { pid: child.id(), since: Instant::now(), notes, child }
    }

    fn tell(&mut self, note: GuardNote) {
        if let Some(notes) = &mut self.notes
            && let Err(error) = notes.write_all(note.line().as_bytes())
        {
            // One that has ended is replaced, and the next one is told all.
            tracing::debug!(%error, "cannot tell the process guard about a process group");
        }
    }
}

/// A child is told when the thread that started it ends, so this one never does.
fn start_all(queue: &Receiver<Job>) {
    while let Ok(Job { command, runtime, started }) = queue.recv() {
        let _entered = runtime.enter();
        let _unheard = started.send(spawner().spawn_here(command));
    }
}

/// Reaps what was left to us by those that we started.
async fn reap(mut children: tokio::signal::unix::Signal) {
    let mut retry = RETRY.0;
    loop {
        match spawner().reap() {
            Dead::Stranger(pid) => {
                retry = RETRY.0;
                tracing::debug!(pid, "orphaned process ended");
            }
            Dead::Ours => {
                spawner().mend_guard();
                // Whoever waits for it comes soon; strangers may stand behind it.
                sleep(retry).await;
                retry = (retry * 2).min(RETRY.1);
            }
            Dead::Perhaps => sleep(RETRY.0).await,
            Dead::Nobody => {
                retry = RETRY.0;
                if children.recv().await.is_none() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
