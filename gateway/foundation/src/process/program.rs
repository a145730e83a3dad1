//! Whether a command can be found and run, as the operating system would look for it.

// Which variables of the gateway a child was not given.
pub mod withheld;

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// So much of a PATH is shown in a cause: it has no place to break a line at.
pub const PATH_CHARS_MAX: usize = 56;

/// Why `command` could not be started with the environment `env` in the folder `cwd`, for a person.
pub fn missing(command: &str, env: &[(OsString, OsString)], cwd: Option<&Path>) -> Option<String> {
    refusal(command, env, cwd)?;
    let what_to_do = hint(command).map(|hint| format!("; {hint}")).unwrap_or_default();
    let named = named(command);
    Some(match command.contains('/') {
        true => format!("`{named}` does not exist or is not executable{what_to_do}"),
        false => format!("`{named}` not found in PATH ({}){what_to_do}", searched(env)),
    })
}

/// As much of a command as may be shown: arguments and variables that somebody wrote into it may be secrets.
pub fn named(command: &str) -> Cow<'_, str> {
    let first = command.split_whitespace().next().unwrap_or_default();
    match first {
        _ if first.contains('=') || first.contains("://") => Cow::Borrowed("…"),
        _ if first.len() < command.trim().len() => Cow::Owned(format!("{first} …")),
        _ => Cow::Borrowed(command),
    }
}

/// As much of the PATH of a child as fits in a line beside other things, cut between folders where there are several.
pub fn searched(env: &[(OsString, OsString)]) -> String {
    let path = path_of(env).to_string_lossy();
    let Some((at, next)) = path.char_indices().nth(PATH_CHARS_MAX) else { return path.into_owned() };
    let whole = path[..at + next.len_utf8()].rfind(':').filter(|end| *end > 0).map_or(at, |end| end + 1);
    format!("{}…", &path[..whole])
}

/// What the text of a path or a command that leads nowhere shows to be wrong with it.
pub fn hint(text: &str) -> Option<&'static str> {
    if text.starts_with('~') {
        return Some("`~` is not expanded: write `${HOME}`");
    }
    text.trim().contains(char::is_whitespace).then_some("write the arguments in `args`")
}

/// Commands that may download a program before they start it.
const INSTALLERS: [&str; 12] =
    ["bun", "bunx", "deno", "docker", "npm", "npx", "pipx", "pnpm", "podman", "uv", "uvx", "yarn"];

/// The name of `command` where it may download a program before it starts one.
pub fn installer(command: &str) -> Option<&'static str> {
    let name = command.rsplit('/').next().unwrap_or(command);
    INSTALLERS.into_iter().find(|known| *known == name)
}

/// The PATH of a child with this environment.
pub(crate) fn path_of(env: &[(OsString, OsString)]) -> &OsStr {
    env.iter().find(|(name, _)| name == "PATH").map_or(OsStr::new(""), |(_, value)| value.as_os_str())
}

/// The error that the system would give, where it would give one. It is asked before anything is started, since what starts a
/// child is our own program, which is always there.
pub fn refusal(command: &str, env: &[(OsString, OsString)], cwd: Option<&Path>) -> Option<io::Error> {
    const ABSENT: i32 = 2;
    const FORBIDDEN: i32 = 13;
    let judge = |path: &Path| match path.metadata() {
        Ok(found) if found.is_file() && found.permissions().mode() & 0o111 != 0 => None,
        Ok(_) => Some(FORBIDDEN),
        Err(error) => Some(error.raw_os_error().unwrap_or(ABSENT)),
    };
    let code = if command.contains('/') {
        judge(&cwd.unwrap_or(Path::new("")).join(command))
    } else {
        let mut found = Some(ABSENT);
        for folder in std::env::split_paths(path_of(env)) {
            match judge(&folder.join(command)) {
                None => return None,
                Some(FORBIDDEN) => found = Some(FORBIDDEN),
                Some(_) => {}
            }
        }
        found
    };
    code.map(io::Error::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_on_the_childs_path_and_not_on_ours() {
        let env = |path: &str| vec![("PATH".into(), path.into())];
        assert_eq!(missing("sh", &env("/nowhere:/bin"), None), None);
        assert_eq!(missing("sh", &env("/nowhere"), None).as_deref(), Some("`sh` not found in PATH (/nowhere)"));
        assert!(missing("sh", &[], None).is_some());
        let long = missing("sh", &env(&format!("/nowhere:/{}", "x".repeat(2 * PATH_CHARS_MAX))), None).unwrap();
        assert_eq!(long, "`sh` not found in PATH (/nowhere:…)");
        let one = missing("sh", &env(&format!("/{}", "é".repeat(2 * PATH_CHARS_MAX))), None).unwrap();
        assert!(one.starts_with("`sh` not found in PATH (/éé") && one.ends_with("é…)"), "{one}");
        assert!(one.chars().count() < PATH_CHARS_MAX + 40, "{one}");
        assert!(
            missing("npx -y @a/b", &env("/bin"), None)
                .is_some_and(|why| why.ends_with("write the arguments in `args`"))
        );
        for (command, shown) in [
            ("API_KEY=hunter npx", "`…` not found"),
            ("npx -y foo --api-key hunter", "`npx …` not found"),
            ("bash -c 'export TOKEN=hunter; foo/x'", "`bash …` does not exist"),
        ] {
            let why = missing(command, &[], None).unwrap();
            assert!(why.starts_with(shown) && !why.contains("hunter"), "{why}");
        }
        assert!(missing("~/bin/x", &[], None).is_some_and(|why| why.ends_with("write `${HOME}`")));
        assert_eq!(missing("/bin/sh", &[], None), None);
        assert_eq!(missing("./sh", &[], Some(Path::new("/bin"))), None);
        assert!(missing("/bin", &[], None).is_some());
        let kind = |command| refusal(command, &[], None).map(|error| error.kind());
        assert_eq!(kind("/etc/passwd"), Some(io::ErrorKind::PermissionDenied));
        assert_eq!(kind("/no/such"), Some(io::ErrorKind::NotFound));
        assert_eq!((installer("/usr/bin/uvx"), installer("npx"), installer("node")), (Some("uvx"), Some("npx"), None));
    }
}
