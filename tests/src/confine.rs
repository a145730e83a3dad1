//! Limits of the system on a group of processes (control groups of either version), where this machine lets a test set them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A control group of a test's own; it goes when this is dropped and nobody is in it.
#[derive(Debug)]
pub struct Confine {
    folder: PathBuf,
}

impl Confine {
    /// At most so many processes and threads.
    ///
    /// # Errors
    /// Why this machine does not let us.
    pub fn processes(most: u32) -> Result<Confine, String> {
        Confine::new("pids", &[("pids.max", &most.to_string())], &[("pids.max", &most.to_string())])
    }

    /// At most so many bytes of memory, and no swapping.
    ///
    /// # Errors
    /// Why this machine does not let us.
    pub fn memory(most: u64) -> Result<Confine, String> {
        let most = most.to_string();
        Confine::new("memory", &[("memory.max", &most), ("memory.swap.max", "0")], &[("memory.limit_in_bytes", &most)])
    }

    fn new(controller: &str, second: &[(&str, &str)], first: &[(&str, &str)]) -> Result<Confine, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let (root, version) = mounted(controller)?;
        let folder = root.join(format!("trunkline-tests-{}-{number}", std::process::id()));
        fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let confine = Confine { folder };
        for (file, value) in if version == 2 { second } else { first } {
            let path = confine.folder.join(file);
            // Without swap there is nothing to forbid.
            if path.exists() || *file != "memory.swap.max" {
                fs::write(&path, value).map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
        Ok(confine)
    }

    /// What a shell does to put itself, and all that it starts, into the group.
    #[must_use]
    pub fn enter(&self) -> String {
        format!("echo $$ > '{}'", self.folder.join("cgroup.procs").display())
    }

    /// From now on at most so many processes and threads; those that are there stay.
    ///
    /// # Panics
    /// When the system takes that back.
    pub fn allow_processes(&self, most: u32) {
        fs::write(self.folder.join("pids.max"), most.to_string()).expect("a limit can be changed");
    }

    /// The processes in it.
    #[must_use]
    pub fn members(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }
}

impl Drop for Confine {
    fn drop(&mut self) {
        // What is not empty yet is left to the system.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Where groups of a controller are made, and of which version.
fn mounted(controller: &str) -> Result<(PathBuf, u8), String> {
    let mounts = fs::read_to_string("/proc/mounts").map_err(|error| error.to_string())?;
    for line in mounts.lines() {
        let mut parts = line.split(' ').skip(1);
        let (Some(place), Some(kind), Some(options)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let root = Path::new(place);
        if kind == "cgroup" && options.split(',').any(|option| option == controller) {
            return Ok((root.to_owned(), 1));
        }
        let has = |file: &str| {
            let text = fs::read_to_string(root.join(file)).unwrap_or_default();
            text.split_whitespace().any(|name| name == controller)
        };
        if kind == "cgroup2" && has("cgroup.controllers") {
            if !has("cgroup.subtree_control") {
                let handed = fs::write(root.join("cgroup.subtree_control"), format!("+{controller}"));
                handed.map_err(|error| format!("the controller {controller} is not handed down: {error}"))?;
            }
            return Ok((root.to_owned(), 2));
        }
    }
    Err(format!("no control groups with {controller} are mounted here"))
}

/// The value, or nothing; then the reason stands on stderr.
pub fn or_skip<T>(what: Result<T, String>) -> Option<T> {
    what.map_err(|reason| {
        // Not `eprintln!`: the test runner would swallow it, and a silent skip is a lie.
        let _ = writeln!(std::io::stderr(), "skipped: {reason}");
    })
    .ok()
}
