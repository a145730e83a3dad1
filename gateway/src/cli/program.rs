//! Whether a command can be found, as the operating system would look for it.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Why `command` could not be started with the environment `env` in the folder `cwd`.
pub(super) fn missing(command: &str, env: &[(OsString, OsString)], cwd: Option<&Path>) -> Option<String> {
    if command.contains('/') {
        let path = cwd.unwrap_or(Path::new("")).join(command);
        return (!is_program(&path)).then(|| format!("{command} is not there, or cannot be executed"));
    }
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let path = path.unwrap_or(OsStr::new(""));
    let found = std::env::split_paths(path).any(|folder| is_program(&folder.join(command)));
    (!found).then(|| format!("{command}: not found. PATH={}", path.display()))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_on_the_childs_path_and_not_on_ours() {
        let env = |path: &str| vec![("PATH".into(), path.into())];
        assert_eq!(missing("sh", &env("/nowhere:/bin"), None), None);
        assert_eq!(missing("sh", &env("/nowhere"), None).as_deref(), Some("sh: not found. PATH=/nowhere"));
        assert!(missing("sh", &[], None).is_some());
        assert_eq!(missing("/bin/sh", &[], None), None);
        assert_eq!(missing("./sh", &[], Some(Path::new("/bin"))), None);
        assert!(missing("/etc/passwd", &[], None).is_some());
        assert!(missing("/bin", &[], None).is_some());
    }
}
