//! What is particular to Linux: who bears a mark, adopting and reaping strangers, dying with a parent.

use super::mark;
use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid as NixPid;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getppid, pidfd_open, pidfd_send_signal, set_child_subreaper,
    set_parent_process_death_signal,
};
use std::fs;
use std::io;
use std::path::PathBuf;

/// The program that this process runs: by its name where that is still there, since under a debugger or a profiler the link
/// leads to that one's program; else by the link, which outlives the file.
pub(super) fn own_program() -> PathBuf {
    let named = std::env::current_exe().ok().filter(|path| path.exists());
    named.unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

/// The living processes that bear a mark with this text, ourselves aside.
pub(super) fn marked(text: &str) -> Vec<i32> {
    let own = getpid().as_raw_nonzero().get();
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // What is gone, or only waits to be reaped, has no environment any more.
    pids.filter(|pid| *pid != own && is_marked(*pid, text)).collect()
}

fn is_marked(pid: i32, text: &str) -> bool {
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| mark::bears(&environment, text))
}

/// Signals a process that bears the mark. It is held by a handle while it is looked at again, so that no other process that was
/// given its number meanwhile is hit.
pub(super) fn signal_marked(pid: i32, text: &str, signal: Signal) {
    let Some(handle) = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return };
    if is_marked(pid, text) {
        // It may have ended by itself, which is what is wanted.
        let _ = pidfd_send_signal(&handle, signal);
    }
}

/// From now on what our descendants leave behind comes to us instead of to the system's first process.
pub(super) fn adopt_strangers() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// What waits to be reaped.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Dead {
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
pub(super) fn reap(is_ours: impl Fn(i32) -> bool) -> Dead {
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
pub(super) fn end_with(parent: i32) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::TERM))?;
    // Whoever died in between will not signal any more.
    match getppid().map(|pid| pid.as_raw_nonzero().get()) {
        Some(now) if now == parent => Ok(()),
        _ => Err(io::Error::other("the gateway has ended")),
    }
}

/// Closes whatever is open beyond stdin, stdout and stderr: what was handed down to us is not for those that we start.
pub(super) fn close_inherited() {
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
pub(crate) fn worked(root: u32) -> Option<u64> {
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
pub(super) fn be_called(name: &str) {
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
