//! Processes: what to start, where our own programs are, and who is alive.

use std::path::PathBuf;
use std::process::Command;

/// A program to start.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its path.
    pub path: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// What is added to its environment.
    pub env: Vec<(String, String)>,
}

impl Program {
    /// One of this package's own programs with arguments.
    #[must_use]
    pub fn ours(name: &str, args: &[&str]) -> Program {
        Program { path: beside(name), args: args.iter().map(ToString::to_string).collect(), env: Vec::new() }
    }
}

/// Where a program of this package has been built: in the directory of the test, or above its `deps`.
#[must_use]
pub fn beside(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a process knows its file");
    let mut directory = own.parent().expect("a file is in a directory").to_owned();
    if directory.ends_with("deps") {
        directory.pop();
    }
    let path = directory.join(name);
    assert!(path.exists(), "{} has not been built: run the tests with `cargo test -p trunkline-tests`", path.display());
    path
}

/// Whether a process runs; one that is dead but not yet reaped does not.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| stat.state != 'Z' && stat.state != 'X')
}

/// The processes that have this one as parent, zombies included.
#[must_use]
pub fn children(pid: u32) -> Vec<u32> {
    all().into_iter().filter(|other| stat(*other).is_some_and(|stat| stat.parent == pid)).collect()
}

/// The living processes of a process group.
#[must_use]
pub fn group(pgid: u32) -> Vec<u32> {
    let inside = |pid: &u32| stat(*pid).is_some_and(|stat| stat.group == pgid && stat.state != 'Z');
    all().into_iter().filter(inside).collect()
}

/// The group that a process is in.
#[must_use]
pub fn group_of(pid: u32) -> Option<u32> {
    stat(pid).map(|stat| stat.group)
}

/// Sends a signal by its name (`TERM`, `KILL`, `STOP`, `CONT`).
pub fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status();
    assert!(status.is_ok_and(|status| status.success()), "no signal {name} could be sent to {pid}");
}

/// Resident memory of a process in KiB.
#[must_use]
pub fn resident_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// How many files a process has open.
#[must_use]
pub fn open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

struct Stat {
    state: char,
    parent: u32,
    group: u32,
}

/// The fields behind the name in `/proc/PID/stat`; the name itself may hold anything.
fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut rest = text.rsplit_once(')')?.1.split_whitespace();
    Some(Stat {
        state: rest.next()?.chars().next()?,
        parent: rest.next()?.parse().ok()?,
        group: rest.next()?.parse().ok()?,
    })
}

fn all() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("there is /proc");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}
