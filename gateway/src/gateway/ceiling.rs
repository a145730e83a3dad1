//! How much memory the process may have: what its control groups say, else what the machine has; and its address space.

use crate::runtime::system::{AddressSpace, workers};
use std::path::{Path, PathBuf};

/// What peers may make the gateway keep where nobody says: half of what there is, and no more than this.
const DEFAULT_MAX: usize = 1 << 30;

/// The default of `server.memory_limit`.
pub(super) fn default_limit() -> usize {
    let space =
        AddressSpace::of_process(workers()).map(|space| usize::try_from(space.for_peers()).unwrap_or(usize::MAX));
    limit_of(Path::new("/")).min(space.unwrap_or(usize::MAX))
}

/// A half of the lowest limit of any control group around the process, at most [`DEFAULT_MAX`]; where there is none, a half of the
/// machine's memory.
fn limit_of(root: &Path) -> usize {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let groups = read(&root.join("proc/self/cgroup")).unwrap_or_default();
    let in_groups = groups.lines().filter_map(limit_files).flat_map(|(mount, path, file)| {
        let group = root.join(mount).join(path.trim_start_matches('/'));
        let mount = root.join(mount);
        // What holds for a group holds for all below it; in a container its own root is all that is seen.
        let around: Vec<PathBuf> =
            group.ancestors().take_while(|up| up.starts_with(&mount)).map(Path::to_owned).collect();
        around.into_iter().filter_map(move |group| number(&read(&group.join(file))?))
    });
    let of_machine = || {
        let info = read(&root.join("proc/meminfo"))?;
        let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        number(line.trim().trim_end_matches("kB").trim())?.checked_mul(1024)
    };
    let machine = of_machine();
    let least = in_groups.chain(machine).min();
    least.map_or(DEFAULT_MAX, |bytes| usize::try_from(bytes / 2).unwrap_or(DEFAULT_MAX).min(DEFAULT_MAX))
}

/// Where the limit of one line of `/proc/self/cgroup` stands: the mount, the group's path, the file.
fn limit_files(line: &str) -> Option<(&'static str, &str, &'static str)> {
    let mut parts = line.splitn(3, ':');
    let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    match (number, controllers) {
        ("0", "") => Some(("sys/fs/cgroup", path, "memory.max")),
        (_, list) if list.split(',').any(|one| one == "memory") => {
            Some(("sys/fs/cgroup/memory", path, "memory.limit_in_bytes"))
        }
        _ => None,
    }
}

/// Bytes; `max` and what stands for it in the first version are more than any machine has.
fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// A machine of 8 GiB whose files say this.
    fn limit(name: &str, files: &[(&str, String)]) -> usize {
        let root = std::env::temp_dir().join(format!("trunkline-ceiling-{}-{name}", std::process::id()));
        let all = [("proc/meminfo", format!("MemTotal:  {} kB\nMemFree: 7 kB\n", 8 * GIB / 1024))];
        for (path, text) in all.iter().chain(files) {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let limit = limit_of(&root);
        std::fs::remove_dir_all(root).unwrap();
        limit
    }

    #[test]
    fn the_lowest_limit_around_the_process_counts_in_both_versions() {
        let text = |bytes: u64| bytes.to_string();
        let v2 = |path: &str| ("proc/self/cgroup", format!("0::{path}\n"));
        assert_eq!(limit("none", &[]), GIB as usize);
        let max = ("sys/fs/cgroup/a/b/memory.max", "max\n".to_owned());
        assert_eq!(limit("unlimited", &[v2("/a/b"), max.clone()]), GIB as usize);
        let outer = ("sys/fs/cgroup/a/memory.max", text(512 << 20));
        assert_eq!(limit("nested", &[v2("/a/b"), max, outer]), 256 << 20);
        let root = ("sys/fs/cgroup/memory.max", text(64 << 20));
        assert_eq!(limit("container", &[v2("/"), root.clone()]), 32 << 20);
        assert_eq!(limit("hidden", &[v2("/../elsewhere"), root]), 32 << 20);
        let v1 = ("proc/self/cgroup", "9:cpu:/\n4:memory:/a/b\n0::/\n".to_owned());
        let far = ("sys/fs/cgroup/memory/memory.limit_in_bytes", text(9_223_372_036_854_771_712));
        let near = ("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", text(256 << 20));
        assert_eq!(limit("v1", &[v1.clone(), far.clone(), near]), 128 << 20);
        assert_eq!(limit("v1_unlimited", &[v1, far]), GIB as usize);
    }
}
