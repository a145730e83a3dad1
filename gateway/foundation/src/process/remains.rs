//! What may be left of children: who bears a mark, and who is in a process group that was started as ours.

use super::{linux, mark};
use rustix::process::Signal;
use std::collections::HashMap;
use std::fs;

/// Process groups, each by its number, and when the process that began it was started.
pub(crate) type Groups = HashMap<i32, u64>;

/// Who is to be ended.
#[derive(Debug)]
pub(crate) struct Remains {
    /// What marks contain. Empty: no mark counts, since every marked process contains that.
    mark: String,
    groups: Groups,
}

impl Remains {
    /// Those who bear a mark with this text, and the members of these groups. A group whose number another process has been given
    /// since is not ours: while it has members, its number is given to nobody.
    pub(crate) fn new(mark: &str, mut groups: Groups) -> Self {
        groups.retain(|pid, began| linux::began(*pid).is_none_or(|now| now == *began));
        Self { mark: mark.to_owned(), groups }
    }

    /// The living processes among them, ourselves aside.
    pub(crate) fn look(&self) -> Vec<i32> {
        let own = std::process::id().cast_signed();
        let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        pids.filter(|pid| *pid != own && self.has(*pid)).collect()
    }

    fn has(&self, pid: i32) -> bool {
        self.is_marked(pid)
            || (!self.groups.is_empty() && linux::group(pid).is_some_and(|group| self.groups.contains_key(&group)))
    }

    fn is_marked(&self, pid: i32) -> bool {
        // What is gone, or only waits to be reaped, has no environment any more.
        let environment = || fs::read(format!("/proc/{pid}/environ"));
        !self.mark.is_empty() && environment().is_ok_and(|environment| mark::bears(&environment, &self.mark))
    }

    /// Signals one of them.
    pub(crate) fn signal(&self, pid: i32, signal: Signal) {
        linux::signal_if(pid, signal, |pid| self.has(pid));
    }

    /// Ends the newest process of the system, or one that comes next, where that is one of them.
    pub(crate) fn strike(&self, newest: i32) {
        /// So many numbers from the newest on are tried: it may have forked again meanwhile.
        const AHEAD: i32 = 3;
        for pid in newest..newest.saturating_add(AHEAD) {
            if self.has(pid) {
                self.signal(pid, Signal::KILL);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    #[test]
    fn members_of_a_group_are_found_unless_its_number_was_given_to_another() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "read -r line"]).env_clear().stdin(Stdio::piped()).process_group(0);
        let mut child = command.spawn().unwrap();
        let pid = child.id().cast_signed();
        let began = crate::process::linux::began(pid).unwrap();
        let found = |began| Remains::new("", Groups::from([(pid, began)])).look();
        assert_eq!((found(began), found(began + 1)), (vec![pid], Vec::new()));
        child.kill().unwrap();
        // One that only waits to be reaped is nobody.
        while crate::process::linux::group(pid).is_some() {
            std::thread::yield_now();
        }
        assert_eq!(found(began), Vec::<i32>::new());
        child.wait().unwrap();
    }
}
