//! What this process and the children take of the system, as the system tells it.
//!
//! Looked up when the metrics are read, at most once a second and of a bounded number of processes, however often they are read and
//! however many processes there are.

use crate::health::row::Health;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use trunkline_foundation::metrics::resources::{self, Own, Usage};

/// What is younger is not looked up again.
const FRESH: Duration = Duration::from_secs(1);
/// So many processes are looked at in one go.
const PROCESSES_MAX: usize = 2048;
/// So many files of one process are counted, where the system does not say how many they are.
const FILES_MAX: usize = 16 * 1024;

/// What was looked up.
#[derive(Default)]
pub(super) struct Processes(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    at: Option<Instant>,
    /// What each group took when it was looked at.
    groups: HashMap<i32, Usage>,
    /// The time on a processor of each process that was in a group then, by its number and its start.
    cpu: HashMap<(i32, u64), u64>,
}

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    group: i32,
    /// In ticks since the system was started: with its number it tells one process from all others.
    started: u64,
    threads: u64,
    usage: Usage,
}

impl Processes {
    /// Shows what this process takes, and the children of each of these upstreams.
    pub(super) fn show(&self, upstreams: &[Health]) {
        if let Some(own) = own() {
            resources::own(&own);
        }
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let with_children = || upstreams.iter().filter(|health| health.transport == "stdio");
        let is_fresh = seen.at.is_some_and(|at| at.elapsed() < FRESH);
        if !is_fresh {
            seen.look(&with_children().flat_map(groups).collect());
        }
        for health in with_children() {
            let mut all = Usage::default();
            for one in groups(health).filter_map(|group| seen.groups.get(&group)) {
                // What was added since is told once.
                all.cpu += if is_fresh { 0 } else { one.cpu };
                all.resident += one.resident;
                all.open_fds += one.open_fds;
            }
            resources::children(&health.name, all);
        }
    }
}

/// The process groups of an upstream's children: each child leads one.
fn groups(health: &Health) -> impl Iterator<Item = i32> + '_ {
    let pids = health.instances.values().chain([health]).filter_map(|health| health.pid);
    pids.filter_map(|pid| i32::try_from(pid).ok())
}

impl Seen {
    fn look(&mut self, wanted: &HashSet<i32>) {
        let before = std::mem::take(&mut self.cpu);
        self.groups.clear();
        self.at = Some(Instant::now());
        if wanted.is_empty() {
            return;
        }
        for pid in candidates(wanted) {
            let Some(process) = process(&pid.to_string()).filter(|process| wanted.contains(&process.group)) else {
                continue;
            };
            let key = (pid, process.started);
            self.cpu.insert(key, process.usage.cpu);
            let all = self.groups.entry(process.group).or_default();
            all.cpu += process.usage.cpu.saturating_sub(before.get(&key).copied().unwrap_or_default());
            all.resident += process.usage.resident;
            all.open_fds += open_fds(&pid.to_string());
        }
    }
}

/// The processes that may be of these groups: where there are too many, those that were started after the first of the groups.
fn candidates(wanted: &HashSet<i32>) -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids: Vec<i32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    let first = wanted.iter().min().copied().unwrap_or_default();
    let at = pids.partition_point(|pid| *pid < first);
    pids.rotate_left(at);
    pids.truncate(PROCESSES_MAX);
    pids
}

/// What the system tells of a process, but for its files.
fn process(name: &str) -> Option<Process> {
    read(&fs::read_to_string(format!("/proc/{name}/stat")).ok()?)
}

fn read(stat: &str) -> Option<Process> {
    // The name before it may hold anything, also brackets.
    let members: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let member = |at: usize| members.get(at)?.trim().parse::<u64>().ok();
    let ticks = member(11)? + member(12)?;
    let usage = Usage {
        cpu: ticks.saturating_mul(1_000_000) / clock_ticks_per_second().max(1),
        resident: member(21)?.saturating_mul(page_size() as u64),
        open_fds: 0,
    };
    Some(Process { group: members.get(2)?.parse().ok()?, started: member(19)?, threads: member(17)?, usage })
}

/// How many files a process has open; 0 where that may not be seen.
fn open_fds(name: &str) -> u64 {
    let folder = format!("/proc/{name}/fd");
    // Newer systems tell the number itself.
    match fs::metadata(&folder).map(|seen| seen.len()) {
        Ok(0) => fs::read_dir(folder).map_or(0, |files| files.take(FILES_MAX).count() as u64),
        Ok(count) => count,
        Err(_) => 0,
    }
}

fn own() -> Option<Own> {
    let process = process("self")?;
    let started = process.started as f64 / clock_ticks_per_second().max(1) as f64;
    Some(Own {
        usage: Usage { open_fds: open_fds("self"), ..process.usage },
        max_fds: getrlimit(Resource::Nofile).current,
        started: booted() + started,
        threads: process.threads,
    })
}

/// When the system was started, in seconds since 1970.
fn booted() -> f64 {
    static BOOTED: OnceLock<f64> = OnceLock::new();
    *BOOTED.get_or_init(|| {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let line = stat.lines().find_map(|line| line.strip_prefix("btime "));
        line.and_then(|seconds| seconds.trim().parse().ok()).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::StatusBoard;
    use crate::recorder::Registry;
    use crate::recorder::exposition::Format;

    #[test]
    fn a_process_is_read_whatever_its_name_holds() {
        let stat = "7 (a) b) (S 1) S 1 70 70 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 3 0 9000 1000000 25 1844674407\n";
        let process = read(stat).unwrap();
        let cpu = 200 * 1_000_000 / clock_ticks_per_second();
        assert_eq!((process.group, process.started, process.threads), (70, 9000, 3));
        assert_eq!((process.usage.cpu, process.usage.resident), (cpu, 25 * page_size() as u64));
        assert!(read("7 (a").is_none() && read("7 (a) S 1 2").is_none());
    }

    #[test]
    fn this_process_has_memory_files_and_a_start() {
        let own = own().unwrap();
        assert!(own.usage.resident > 0 && own.usage.open_fds >= 3 && own.threads >= 1);
        assert!(own.started > 1e9 && own.max_fds.is_none_or(|most| most >= own.usage.open_fds));
    }

    #[tokio::test(start_paused = true)]
    async fn children_are_counted_by_group_and_their_time_once_however_often_it_is_read() {
        let (board, processes, registry) = (StatusBoard::default(), Processes::default(), Registry::default());
        // The group of this very process stands for a child's.
        let group = rustix::process::getpgrp().as_raw_nonzero().get();
        board.add(&"a".into(), "stdio").update(|health| health.pid = u32::try_from(group).ok());
        board.add(&"b".into(), "stdio");
        board.add(&"c".into(), "http");
        let value = |name: &str| {
            ::metrics::with_local_recorder(&registry, || processes.show(&board.snapshot()));
            let text = registry.render(Format::Prometheus);
            let line = text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()));
            line.unwrap_or_else(|| panic!("{name} is not in {text}")).parse::<f64>().unwrap()
        };
        assert!(value("trunkline_child_memory_bytes{upstream=\"a\"}") > 0.0);
        assert_eq!(value("trunkline_child_memory_bytes{upstream=\"b\"}"), 0.0);
        assert!(!registry.render(Format::Prometheus).contains("upstream=\"c\""), "an upstream over HTTP has no child");
        let first = value("trunkline_child_cpu_seconds_total{upstream=\"a\"}");
        assert_eq!(value("trunkline_child_cpu_seconds_total{upstream=\"a\"}"), first, "not looked up again");
        tokio::time::advance(FRESH).await;
        let second = value("trunkline_child_cpu_seconds_total{upstream=\"a\"}");
        assert!(second >= first && second < first + first + 60.0, "{first} and {second}: what was known is not added");
    }
}
