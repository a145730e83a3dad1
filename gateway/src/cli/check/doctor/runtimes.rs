//! The programs that run servers: their versions, and whether a host that is started from a desktop finds them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};

use super::problem::Problem;
use crate::cli::setup::hosts::Host;
use crate::config::Config;
use crate::config::source::file::shown;
use crate::upstream::config::ChildCommand;

/// So long a program may take to say its version.
const WAIT: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);
/// A longer answer is none.
const SAID_MAX: u64 = 256;
/// The PATH of a program that a desktop has started, where it has read no file of a shell.
const OF_DESKTOP: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Hosts that are started from a desktop.
const DESKTOP: [&str; 7] = ["claude-desktop", "cursor", "vscode", "windsurf", "zed", "lm-studio", "kiro"];

/// A program that runs servers.
struct Runtime {
    name: &'static str,
    /// Commands that are it, or that it runs.
    commands: &'static [&'static str],
    /// The oldest version that the SDKs for it take.
    least: Option<(u32, u32)>,
}

const RUNTIMES: [Runtime; 3] = [
    Runtime { name: "node", commands: &["node", "npx", "npm", "pnpm", "yarn"], least: Some((18, 0)) },
    Runtime { name: "python3", commands: &["python3", "python", "pipx"], least: Some((3, 10)) },
    Runtime { name: "uv", commands: &["uv", "uvx"], least: None },
];

/// What is there.
#[derive(Default)]
pub(super) struct Runtimes {
    pub(super) problems: Vec<Problem>,
    pub(super) told: Vec<String>,
}

/// Asks those for their versions that servers of the configuration use, as these find them, and looks where `hosts` would find them.
pub(super) fn all(config: &Config, hosts: &[&Host]) -> Runtimes {
    let mut found = Runtimes::default();
    // Of each program what it says, and who uses it.
    let mut users: BTreeMap<PathBuf, (&Runtime, ChildCommand<'_>, Vec<&str>)> = BTreeMap::new();
    let mut short: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for upstream in config.upstreams.iter().chain(&config.lacking) {
        let Some(child) = upstream.transport.child() else { continue };
        let command = child.command.rsplit('/').next().unwrap_or_default();
        let path = path_of(&child);
        if !child.command.contains('/')
            && within(path, command).is_some()
            && within(OF_DESKTOP.as_ref(), command).is_none()
        {
            short.entry(child.command).or_default().push(&upstream.name);
        }
        let Some(runtime) = RUNTIMES.iter().find(|one| one.commands.contains(&command)) else { continue };
        // `python` need not be what `python3` is, and one that is named by its path stands for itself.
        let own = if command.starts_with("python") { child.command } else { runtime.name };
        let program = if own.contains('/') { Some(PathBuf::from(own)) } else { within(path, own) };
        if let Some(program) = program {
            users.entry(program).or_insert_with(|| (runtime, child, Vec::new())).2.push(&upstream.name);
        }
    }
    for (program, (runtime, child, names)) in users {
        found.judge(runtime, &program, version(&program, &child, WAIT).as_deref(), &names.join(", "));
    }
    let desktop: Vec<&str> = hosts.iter().filter(|host| DESKTOP.contains(&host.id)).map(|host| host.title).collect();
    if !desktop.is_empty() && !short.is_empty() {
        let missing: Vec<String> =
            short.iter().map(|(name, users)| format!("`{name}` ({})", users.join(", "))).collect();
        found.told.push(format!(
            "path: {} may be started with the PATH of a desktop ({OF_DESKTOP}), where {} is not found; absolute paths as \
             `command`, or `env.PATH`, help",
            desktop.join(", "),
            missing.join(", ")
        ));
    }
    found
}

impl Runtimes {
    fn judge(&mut self, runtime: &Runtime, program: &Path, version: Option<&str>, users: &str) {
        let (name, program) = (runtime.name, shown(program));
        let Some(version) = version else {
            self.told.push(format!("{name}: {program} does not say its version, for {users}"));
            return;
        };
        self.told.push(format!("{name}: {version}, {program}, for {users}"));
        if let Some((least, (major, minor))) = runtime.least.zip(numbers(version))
            && (major, minor) < least
        {
            let (of, to) = least;
            let least = if to == 0 { of.to_string() } else { format!("{of}.{to}") };
            let text = format!("{name} {version} ({program}) is older than servers for it take: {users}");
            self.problems
                .push(Problem::new(text, format!("install {name} {least} or newer, first on the PATH of the gateway")));
        }
    }
}

fn path_of<'a>(child: &ChildCommand<'a>) -> &'a OsStr {
    child.env.iter().find(|(name, _)| name == "PATH").map_or(OsStr::new(""), |(_, value)| value)
}

/// The first program of this name on a PATH.
fn within(path: &OsStr, name: &str) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    std::env::split_paths(path).map(|folder| folder.join(name)).find(is_program)
}

/// The first two numbers of a version.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    Some((parts.next()??, parts.next().flatten().unwrap_or(0)))
}

/// What a program says to `--version`: its first word that begins with a digit. One that runs longer than `wait` says nothing.
#[allow(clippy::disallowed_methods, reason = "a command that does nothing else")]
fn version(program: &Path, child: &ChildCommand<'_>, wait: Duration) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").env_clear().envs(child.env.iter().map(|(name, value)| (name, value)));
    let mut started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let until = Instant::now() + wait;
    loop {
        match started.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if Instant::now() < until => sleep(LOOK),
            _ => {
                // It may have ended by now.
                let _ = started.kill();
                let _ = started.wait();
                return None;
            }
        }
    }
    let mut said = String::new();
    started.stdout.take()?.take(SAID_MAX).read_to_string(&mut said).ok()?;
    let words = said.split_whitespace().map(|word| word.trim_start_matches('v'));
    let mut words = words.filter(|word| word.starts_with(|char: char| char.is_ascii_digit()));
    words.next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Inputs, load};
    use crate::runtime::Scratch;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn versions_are_told_and_one_that_servers_do_not_take_is_a_problem() {
        let scratch = Scratch::new();
        let program = |name: &str, said: &str| {
            let path = scratch.write(name, &format!("#!/bin/sh\n{said}\n"));
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        program("node", "echo v16.20.2");
        program("npx", "exit 1");
        // It is asked with the variables of the server.
        program("python3", "echo Python $VERSION_HERE");
        program("python", "echo Python 3.9.1");
        // What cannot be started is passed over.
        std::fs::create_dir(scratch.0.join("first")).unwrap();
        scratch.write("first/node", "#!/bin/sh\necho v9\n");
        program("uv", "exit 3");
        program("uvx", "exit 1");
        let path = scratch.0.display();
        let upstream = |name: &str, command: &str| {
            let env = format!("{{ PATH = '{path}/first:{path}', VERSION_HERE = '3.12.1' }}");
            format!("[upstreams.{name}]\ncommand = '{command}'\nenv = {env}\n")
        };
        let all = [("a", "npx"), ("b", "node"), ("c", "python3"), ("d", "uvx"), ("e", "sh"), ("f", "python")];
        let text: String = all.iter().map(|(name, command)| upstream(name, command)).collect();
        // One that is named by its path, and one that is left out and would need it.
        let named = upstream("g", &format!("{path}/npx"));
        let lacking = upstream("h", "npx").replace("3.12.1", "${NO_SUCH_VARIABLE}") + "optional = true\n";
        let text = [text, named, lacking].concat();
        let files = vec![scratch.write("trunkline.toml", &text)];
        let config = load(Inputs { files, ..Inputs::default() }).unwrap_or_else(|faults| panic!("{faults}")).config;
        let cursor = Host::named("cursor").unwrap();
        let Runtimes { problems, told } = super::all(&config, &[cursor]);
        let told: Vec<String> = told.iter().map(|line| line.replace(&path.to_string(), "…")).collect();
        assert_eq!(
            told[..4],
            [
                "node: 16.20.2, …/node, for a, b, g, h",
                "python3: 3.9.1, …/python, for f",
                "python3: 3.12.1, …/python3, for c",
                "uv: …/uv does not say its version, for d",
            ]
        );
        let problems: Vec<_> = problems.into_iter().map(|problem| (problem.text, problem.fix)).collect();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].0.contains("is older than servers for it take: a, b, g, h"), "{problems:?}");
        assert!(problems[1].0.contains("take: f") && problems[1].1.contains("3.10 or newer"), "{problems:?}");
        assert!(problems[0].1.starts_with("install node 18 or newer"), "{problems:?}");
    }

    #[test]
    fn a_program_that_does_not_end_says_nothing_and_is_ended() {
        let scratch = Scratch::new();
        let marks = scratch.0.join("runs");
        let path = scratch.write("node", &format!("#!/bin/sh\necho $$ > {}\nexec sleep 600\n", marks.display()));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let env = [("PATH".into(), "/usr/bin:/bin".into())];
        let child = ChildCommand { command: "node", args: &[], env: &env, cwd: None };
        assert_eq!(version(&path, &child, Duration::from_millis(1)), None);
        // It was ended before it could write that, or is gone.
        let left =
            std::fs::read_to_string(marks).ok().and_then(|pid| std::fs::metadata(format!("/proc/{}", pid.trim())).ok());
        assert!(left.is_none());
    }

    #[test]
    fn only_the_beginning_of_a_long_answer_is_read_for_a_version() {
        let scratch = Scratch::new();
        let env = [("PATH".into(), "/usr/bin:/bin".into())];
        let child = ChildCommand { command: "node", args: &[], env: &env, cwd: None };
        let of = |blanks: u64| {
            let said = format!("#!/bin/sh\nprintf '%{blanks}s%s\\n' '' v20.1.0\n");
            let path = scratch.write(&format!("node-{blanks}"), &said);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            version(&path, &child, WAIT)
        };
        assert_eq!(of(SAID_MAX - 10), Some("20.1.0".to_owned()));
        assert_eq!(of(SAID_MAX), None);
    }

    #[test]
    fn what_the_path_of_a_desktop_does_not_have_is_told_for_hosts_that_are_started_there() {
        let scratch = Scratch::new();
        let path = scratch.write("only-here", "#!/bin/sh\n");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let own = scratch.0.display();
        let text = format!(
            "[upstreams.a]\ncommand = 'only-here'\nenv = {{ PATH = '{own}' }}\n\
             [upstreams.b]\ncommand = 'sh'\nenv = {{ PATH = '/usr/bin:/bin' }}\n\
             [upstreams.c]\ncommand = 'nowhere'\n\
             [upstreams.d]\ncommand = '{own}/only-here'\nenv = {{ PATH = '{own}' }}\n"
        );
        let files = vec![scratch.write("trunkline.toml", &text)];
        let config = load(Inputs { files, ..Inputs::default() }).unwrap_or_else(|faults| panic!("{faults}")).config;
        let of = |host: &str| super::all(&config, &[Host::named(host).unwrap()]).told;
        let told = of("claude-desktop");
        assert!(told.len() == 1 && told[0].contains("where `only-here` (a) is not found"), "{told:?}");
        assert_eq!(of("claude-code"), [""; 0]);
    }

    #[test]
    fn the_first_two_numbers_of_a_version_count() {
        for (version, expected) in [
            ("20.1.0", Some((20, 1))),
            ("3.9", Some((3, 9))),
            ("18", Some((18, 0))),
            ("x", None),
            ("22.0.0-rc", Some((22, 0))),
        ] {
            assert_eq!(numbers(version), expected, "{version}");
        }
    }
}
