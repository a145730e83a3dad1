//! What is particular to Linux: who bears a mark, adopting and reaping strangers, dying with a parent.

use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid as NixPid;
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, getpid, getppid, pidfd_open, pidfd_send_signal, set_child_subreaper,
    set_parent_process_death_signal, setrlimit,
};
use std::fs;
use std::io;
use std::path::PathBuf;

/// The program that this process runs: by its name where that is still there, since under a debugger or a profiler the link
/// leads to that one's program; else by the link, which outlives the file.
pub fn own_program() -> PathBuf {
    let named = std::env::current_exe().ok().filter(|path| path.exists());
    named.unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

/// Signals a process that is still the one that is meant. It is held by a handle while it is looked at again, so that no other
/// process that was given its number meanwhile is hit.
pub(crate) fn signal_if(pid: i32, signal: Signal, is_meant: impl Fn(i32) -> bool) {
    let Some(handle) = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return };
    if is_meant(pid) {
        // It may have ended by itself, which is what is wanted.
        let _ = pidfd_send_signal(&handle, signal);
    }
}

/// One member of a process's `stat`, counted from its state on.
fn stat<T: std::str::FromStr>(pid: i32, state_may: fn(&str) -> bool, at: usize) -> Option<T> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold anything, also brackets.
    let mut members = stat.rsplit_once(") ")?.1.split(' ');
    let state = members.next().filter(|state| state_may(state))?;
    match at {
        0 => state.parse().ok(),
        at => members.nth(at - 1)?.parse().ok(),
    }
}

/// The group of a process that lives; one that only waits to be reaped does not.
pub(crate) fn group(pid: i32) -> Option<i32> {
    stat(pid, |state| !matches!(state, "Z" | "X"), 2)
}

/// When a process was started, in ticks since the system was. With its number it tells one process from all others.
pub(crate) fn began(pid: i32) -> Option<u64> {
    stat(pid, |_| true, 19)
}

/// The number that was given last to a process.
pub(crate) fn newest() -> Option<i32> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().nth(4)?.parse().ok()
}

/// From now on what our descendants leave behind comes to us instead of to the system's first process.
pub(crate) fn adopt_strangers() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// What waits to be reaped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Dead {
    /// Nobody.
    Nobody,
    /// One that somebody here waits for.
    Ours,
    /// Cannot be told now: a start is under way.
    Perhaps,
    /// A stranger, who is reaped now.
    Stranger(i32),
}

/// Reaps one stranger; `is_ours` tells whom somebody here waits for, and whose status must not be taken from them.
pub(crate) fn reap(is_ours: impl Fn(i32) -> bool) -> Dead {
    let peek = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    let dead = match waitid(Id::All, peek) {
        Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..)) => pid,
        Ok(_) | Err(Errno::ECHILD) => return Dead::Nobody,
        Err(_) => return Dead::Nobody,
    };
    if is_ours(dead.as_raw()) {
        return Dead::Ours;
    }
    let _ = waitpid(NixPid::from_raw(dead.as_raw()), Some(WaitPidFlag::WNOHANG));
    Dead::Stranger(dead.as_raw())
}

/// Has this process told to end when the thread that started it does, which is when that process ends. An error where it has
/// ended already.
pub(crate) fn end_with(parent: i32) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::TERM))?;
    // Whoever died in between will not signal any more.
    match getppid().map(|pid| pid.as_raw_nonzero().get()) {
        Some(now) if now == parent => Ok(()),
        _ => Err(io::Error::other("the gateway has ended")),
    }
}

/// A crash of this process, or of what it becomes or starts, leaves no copy of its memory: that may hold credentials.
pub(crate) fn leave_no_core() -> io::Result<()> {
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?)
}

/// Neither this process nor what it becomes or starts gains rights by running a program that has more (setuid, file capabilities).
pub(crate) fn gain_no_rights() -> io::Result<()> {
    Ok(rustix::thread::set_no_new_privs(true)?)
}

/// Closes whatever is open beyond stdin, stdout and stderr: what was handed down to us is not for those that we start.
pub(crate) fn close_inherited() {
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<i32> = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        // One of them was the listing itself, and is closed by now.
        let _ = nix::unistd::close(number);
    }
}

/// So many processes of one tree are looked at.
const TREE_MAX: usize = 64;

/// How long a process and those whom it has started have been at work, in nanoseconds; `None` while one of them is at work, or
/// would be if it had a processor, and where it cannot be told.
pub fn worked(root: u32) -> Option<u64> {
    let (mut tree, mut next, mut sum) = (vec![root.to_string()], 0, 0);
    while let Some(pid) = tree.get(next).filter(|_| next < TREE_MAX).cloned() {
        next += 1;
        for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
            let thread = thread.ok()?.path();
            let stat = fs::read_to_string(thread.join("stat")).ok()?;
            // The name before it may hold anything, also brackets.
            let state = stat.rsplit_once(") ")?.1.chars().next()?;
            if matches!(state, 'R' | 'D') {
                return None;
            }
            let times = fs::read_to_string(thread.join("schedstat")).ok()?;
            sum += times.split(' ').next()?.parse::<u64>().ok()?;
            let children = fs::read_to_string(thread.join("children")).ok()?;
            tree.extend(children.split_whitespace().map(str::to_owned));
        }
    }
    Some(sum)
}

/// Gives this process another name in the system's lists; where that cannot be, it keeps its own.
pub(crate) fn be_called(name: &str) {
    let _ = std::fs::write("/proc/self/comm", name);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn work_is_seen_in_whoever_was_started_and_rest_as_no_more_of_it() {
        let shell = |script: &str| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("there is a shell")
        };
        // A wrapper waits for what works, and for what reads.
        let mut works = shell("(while :; do :; done); true");
        let mut rests = shell("(read -r line); true");
        let looks = || std::iter::repeat_with(std::thread::yield_now);
        let begun = tokio::time::Instant::now();
        let mut seen = None;
        let is_at_rest = looks().any(|()| {
            let now = worked(rests.id());
            let is_same = now.is_some() && now == std::mem::replace(&mut seen, now);
            is_same || begun.elapsed().as_secs() > 20
        });
        assert!(is_at_rest && seen.is_some());
        let first = worked(works.id());
        let goes_on = looks().any(|()| {
            let now = worked(works.id());
            now.is_none() || now != first || begun.elapsed().as_secs() > 20
        });
        assert!(goes_on && begun.elapsed().as_secs() < 20);
        for child in [&mut works, &mut rests] {
            for pid in descendants(child.id()) {
                let _ = rustix::process::kill_process(Pid::from_raw(pid).expect("a process"), Signal::KILL);
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        assert_eq!(worked(works.id()), None, "who is gone says nothing");
    }

    fn descendants(pid: u32) -> Vec<i32> {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }
}
