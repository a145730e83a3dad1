//! Processes: what to start, where our own programs are, and who is alive.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// So long a process may take to stop.
const STOPS_WITHIN: Duration = Duration::from_secs(60);

/// How many ticks of the system's books make a second.
const TICKS: f64 = 100.0;

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

/// The gateway's program as it is built together with the tests.
pub const GATEWAY: &str = "trunkline-under-test";

/// Where a program of this package has been built: in the directory of the test, or above its `deps`. The gateway may be
/// another one: `$TRUNKLINE_BIN`.
#[must_use]
pub fn beside(name: &str) -> PathBuf {
    if name == GATEWAY
        && let Some(given) = std::env::var_os("TRUNKLINE_BIN")
    {
        return PathBuf::from(given);
    }
    let own = std::env::current_exe().expect("a process knows its file");
    let mut directory = own.parent().expect("a file is in a directory").to_owned();
    if directory.ends_with("deps") {
        directory.pop();
    }
    let path = directory.join(name);
    // A test has had its package's programs built; a program that is run by itself has not.
    let what_to_do =
        match std::env::current_exe().is_ok_and(|own| own.parent().is_some_and(|own| own.ends_with("deps"))) {
            true => "run the tests with `cargo test -p trunkline-tests`",
            false if cfg!(debug_assertions) => "run `cargo build --workspace --bins --locked`",
            false => "run `cargo build --release --workspace --bins --locked`",
        };
    assert!(path.exists(), "{} has not been built: {what_to_do}", path.display());
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

/// The children of this process that have ended and were not reaped.
#[must_use]
pub fn zombies(pid: u32) -> Vec<u32> {
    children(pid).into_iter().filter(|child| !is_alive(*child)).collect()
}

/// How many threads a process has.
#[must_use]
pub fn threads(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
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

/// Sends a signal by its name (`TERM`, `KILL`, `STOP`, `CONT`). A process that is told to stop has stopped then: until one of its threads
/// has had the signal, the others go on.
pub fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status();
    assert!(status.is_ok_and(|status| status.success()), "no signal {name} could be sent to {pid}");
    let until = Instant::now() + STOPS_WITHIN;
    while name == "STOP" && !has_stopped(pid) {
        assert!(Instant::now() < until, "{pid} does not stop");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether no thread of a process goes on: all have stopped or ended, or it is gone.
fn has_stopped(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let state = |thread: std::fs::DirEntry| {
        let text = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        text.rsplit_once(") ").and_then(|(_, behind)| behind.chars().next())
    };
    threads.map(state).all(|state| matches!(state, None | Some('T' | 't' | 'Z' | 'X')))
}

/// How many seconds of processor time a process has had.
#[must_use]
pub fn seconds_at_work(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let behind = text.rsplit_once(')').map_or("", |(_, behind)| behind);
    behind.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / TICKS
}

/// How many seconds the machine's processors were at work, and how many there were altogether.
#[must_use]
pub fn machine_at_work() -> (f64, f64) {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    // The time of guests stands in that of users already.
    let ticks: Vec<f64> = line.split_whitespace().skip(1).take(8).filter_map(|ticks| ticks.parse().ok()).collect();
    let (all, idle): (f64, f64) = (ticks.iter().sum(), ticks.iter().skip(3).take(2).sum());
    ((all - idle) / TICKS, all / TICKS)
}

/// Resident memory of a process in KiB.
#[must_use]
pub fn resident_kib(pid: u32) -> Option<u64> {
    status_kib(pid, "VmRSS:")
}

/// Resident memory of a process that no file backs, in KiB: without the pages of its program.
#[must_use]
pub fn anonymous_kib(pid: u32) -> Option<u64> {
    status_kib(pid, "RssAnon:")
}

/// The most resident memory that a process has had, in KiB.
#[must_use]
pub fn peak_kib(pid: u32) -> Option<u64> {
    status_kib(pid, "VmHWM:")
}

fn status_kib(pid: u32, field: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(field))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The words that a process was started with, in one text.
#[must_use]
pub fn command_line(pid: u32) -> String {
    String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).into_owned()
}

/// What a process has open, in words: for a connection its two ends and its state, as the kernel numbers it.
#[must_use]
pub fn what_is_open(pid: u32) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
    let of = |line: &str| -> Option<(String, String)> {
        let parts: Vec<&str> = line.split_whitespace().collect();
        let port = |at: usize| u16::from_str_radix(parts.get(at)?.rsplit(':').next()?, 16).ok();
        let said = format!("tcp {} -> {} in state {}", port(1)?, port(2)?, parts.get(3)?);
        Some((format!("socket:[{}]", parts.get(9)?), said))
    };
    let known: HashMap<String, String> = text.lines().skip(1).filter_map(of).collect();
    let links = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut all: Vec<String> = links
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .map(|link| link.display().to_string())
        .map(|link| known.get(&link).cloned().unwrap_or(link))
        .collect();
    all.sort();
    all
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
