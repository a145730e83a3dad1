//! Which inventory a file holds: that of one configuration, read in one era with one set of declared capabilities.

use crate::protocol::capabilities::beyond::Declared;
use crate::protocol::revision::{Era, Revision};
use crate::upstream::config::{ChildCommand, Config, Credentials, Transport};
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Variables that differ from login to login, and say nothing of what a program offers.
const OF_THE_LOGIN: [&str; 7] = [
    "TERM",
    "SSH_AUTH_SOCK",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "FNM_MULTISHELL_PATH",
];
/// Of the variables that begin with `XDG_`, those that say where files are; the others are of the login too.
const XDG_FOLDERS: [&str; 6] =
    ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_DIRS"];
/// So much of a digest is in a name: enough that no two are alike by chance.
const DIGITS: usize = 32;

/// What the files of an upstream begin with: a digest of all in its configuration that decides what it offers. Secrets are in
/// it, and cannot be read from it. Its tool filter is not: that is applied to what was read.
pub(super) fn of(config: &Config) -> String {
    let mut digest = Sha256::new();
    let mut put = |part: &[u8]| {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    };
    put(config.era.word().as_bytes());
    put(config.transport.word().as_bytes());
    if let Some(ChildCommand { command, args, env, cwd }) = config.transport.child() {
        put(command.as_bytes());
        put(&(args.len() as u64).to_le_bytes());
        args.iter().for_each(|arg| put(arg.as_bytes()));
        // What is named without a path may be another program in another folder.
        let here = cwd.is_none().then(|| std::env::current_dir().ok()).flatten();
        put(cwd.or(here.as_deref()).map_or(OsStr::new(""), Path::as_os_str).as_bytes());
        for (name, value) in env.iter().filter(|(name, _)| !is_of_the_login(name)) {
            put(name.as_bytes());
            put(value.as_bytes());
        }
    }
    if let Transport::Lines(place) = &config.transport {
        put(place.to_string().as_bytes());
    }
    if let Some(remote) = config.transport.remote() {
        put(remote.url.to_string().as_bytes());
        if let Some(socket) = &remote.socket {
            put(socket.as_os_str().as_bytes());
        }
        for (name, value) in &remote.headers {
            put(name.as_str().as_bytes());
            put(value.as_bytes());
        }
    }
    config.defined.iter().for_each(|list| put(list));
    config.credentials.iter().flat_map(Credentials::parts).for_each(|part| put(&part));
    hex(&digest.finalize())
}

/// The name of the file for clients of this era, where they are all of one, for whom these capabilities are declared.
pub(super) fn name(config: &str, era: Option<Era>, declared: &Declared) -> String {
    let era = match era {
        None => "any",
        Some(Era::Legacy) => "legacy",
        Some(Era::Modern) => "modern",
    };
    format!("{config}-{era}-{}.json", &hex(&Sha256::digest(declared.to_json(Revision::NEWEST_MODERN)))[..DIGITS / 2])
}

fn is_of_the_login(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    OF_THE_LOGIN.contains(&name) || (name.starts_with("XDG_") && !XDG_FOLDERS.contains(&name))
}

/// The first digits of a digest.
pub(super) fn hex(digest: &[u8]) -> String {
    let digits = digest.iter().take(DIGITS / 2).flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::capabilities::Capabilities;
    use crate::upstream::config::{EraChoice, Filter, Glob, Remote};
    use crate::upstream::tests::rig::config;

    fn stdio(args: &[&str], env: &[(&str, &str)], cwd: Option<&str>) -> Config {
        let env = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        Config { transport: Transport::Stdio { command: "c".into(), args, env, cwd: cwd.map(Into::into) }, ..config() }
    }

    fn http(url: &str, header: &str) -> Config {
        let headers = [(http::header::AUTHORIZATION, header.parse().unwrap())].into_iter().collect();
        Config { transport: Transport::Http(Remote::new(url.parse().unwrap(), headers)), ..config() }
    }

    #[test]
    fn what_decides_what_is_offered_is_in_the_key_and_nothing_else() {
        let one = stdio(&["a", "b"], &[("KEY", "1")], Some("/x"));
        let others = [
            stdio(&["ab"], &[("KEY", "1")], Some("/x")),
            stdio(&["a", "b", "KEY", "1"], &[], Some("/x")),
            stdio(&["a", "b"], &[("KEY", "2")], Some("/x")),
            stdio(&["a", "b"], &[("KEY", "1")], None),
            Config { era: EraChoice::Legacy, ..one.clone() },
            http("http://h/a", "Bearer 1"),
            http("http://h/a", "Bearer 2"),
            http("http://h/b", "Bearer 2"),
        ];
        let keys: std::collections::HashSet<_> = others.iter().chain([&one]).map(of).collect();
        assert_eq!(keys.len(), others.len() + 1);
        let deny = vec![Glob::new("x")];
        let same = [
            Config { tools: Filter { allow: Vec::new(), deny }, name: "other".into(), max_message: 1, ..one.clone() },
            stdio(
                &["a", "b"],
                &[("KEY", "1"), ("TERM", "vt100"), ("SSH_AUTH_SOCK", "/s"), ("XDG_SESSION_ID", "7")],
                Some("/x"),
            ),
        ];
        assert!(same.iter().all(|same| of(same) == of(&one)));
        assert_ne!(of(&one), of(&stdio(&["a", "b"], &[("KEY", "1"), ("XDG_DATA_HOME", "/d")], Some("/x"))));
        let eras = [None, Some(Era::Legacy), Some(Era::Modern)];
        let sets = [Capabilities::FORM, Capabilities::ROOTS];
        let names = eras.into_iter().flat_map(|era| sets.map(|set| name("k", era, &set.into())));
        assert_eq!(names.collect::<std::collections::HashSet<_>>().len(), eras.len() * sets.len());
    }
}
