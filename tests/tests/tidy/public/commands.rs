//! Commands, arguments and options, from the help of the program; and its exit codes.

use std::process::{Command, Output, Stdio};

use trunkline_tests::process::{GATEWAY, beside};
use trunkline_tests::scratch::Scratch;

/// Runs the program in a home of its own.
pub(super) fn run(home: &Scratch, args: &[&str]) -> Output {
    let mut command = Command::new(beside(GATEWAY));
    command.args(args).current_dir(home.path()).stdin(Stdio::null());
    for name in ["HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"] {
        command.env(name, home.path());
    }
    command.env_remove("TRUNKLINE_CONFIG").env("COLUMNS", "400");
    command.output().unwrap_or_else(|error| panic!("{args:?}: {error}"))
}

pub(crate) fn commands() -> Vec<String> {
    let mut lines = Vec::new();
    command(&Scratch::new(), &[], &mut lines);
    lines
}

fn command(home: &Scratch, path: &[&str], lines: &mut Vec<String>) {
    let output = run(home, &[path, &["--help"]].concat());
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    let name = ["trunkline"].iter().chain(path).copied().collect::<Vec<_>>().join(" ");
    let usage = help.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap_or_default();
    lines.push(format!("{name}: {}", usage.split_once(' ').map_or("", |(_, usage)| usage).trim()));
    let mut below = Vec::new();
    for (section, entry) in entries(&help) {
        let head = entry[0].trim().split("  ").next().unwrap_or_default().to_owned();
        match section {
            "Commands" if !["help"].contains(&&*head) => below.push(head),
            "Arguments" | "Options" => lines.push(format!("{name}: {head}{}", facts(&entry))),
            _ => {}
        }
    }
    for name in &below {
        command(home, &[path, &[name.as_str()]].concat(), lines);
    }
}

/// The entries of a help text: the section, and the lines of the entry.
fn entries(help: &str) -> Vec<(&str, Vec<&str>)> {
    let mut section = "";
    let mut entries: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in help.lines().filter(|line| !line.trim().is_empty()) {
        let indent = line.len() - line.trim_start().len();
        let text = line.trim_start();
        match indent {
            0 => section = line.strip_suffix(':').unwrap_or(""),
            // Two columns, or six for an option without a short form.
            2 | 6 if indent == 2 || text.starts_with('-') => entries.push((section, vec![line])),
            _ => entries.last_mut().into_iter().for_each(|(_, lines)| lines.push(line)),
        }
    }
    entries
}

/// Possible values, default and aliases of an argument.
fn facts(entry: &[&str]) -> String {
    let text = entry.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    let marks = ["[possible values: ", "[default: ", "[alias: ", "[aliases: ", "[env: "];
    let mut facts: Vec<String> = Vec::new();
    for mark in marks {
        let fact = text.split_once(mark).and_then(|(_, rest)| rest.split_once(']')).map(|(fact, _)| fact);
        facts.extend(fact.map(|fact| format!(" {mark}{fact}]")));
    }
    let listed = entry.iter().filter_map(|line| line.trim().strip_prefix("- ")?.split(':').next());
    facts.extend(listed.map(|value| format!(" value {}", value.trim())));
    facts.concat()
}

const FAULTY: &str = "[nonsense]\nx = 1\n";
const LACKING: &str = "[upstreams.a]\ncommand = '/no/such/program'\n";

pub(crate) fn exit_codes() -> Vec<String> {
    let home = Scratch::new();
    let _ = home.file("faulty.toml", FAULTY);
    let _ = home.file("lacking.toml", LACKING);
    let lines: [&[&str]; 22] = [
        &["version"],
        &["--version"],
        &["--help"],
        &[],
        &["--nonsense"],
        &["nonsense"],
        &["status", "--pid", "x"],
        &["config"],
        &["config", "show", "-c", "faulty.toml"],
        &["check", "-c", "lacking.toml"],
        &["check", "-c", "lacking.toml", "--strict"],
        &["check", "-c", "faulty.toml"],
        &["check", "-c", "absent.toml"],
        &["serve", "-c", "faulty.toml"],
        &["stdio", "-c", "faulty.toml"],
        &["doctor", "-c", "lacking.toml"],
        &["tools", "-c", "lacking.toml"],
        &["call", "a__b", "-c", "lacking.toml"],
        &["ls", "-c", "lacking.toml"],
        &["restart", "a", "-c", "lacking.toml"],
        &["logout", "a", "-c", "lacking.toml"],
        &["import", "--dry-run", "-c", "lacking.toml"],
    ];
    let code = |args: &&[&str]| {
        let status = run(&home, args).status;
        format!(
            "{}: {}",
            ["trunkline"].iter().chain(*args).copied().collect::<Vec<_>>().join(" "),
            status.code().unwrap_or(-1)
        )
    };
    lines.iter().map(code).collect()
}

#[test]
fn help_texts_are_reduced_to_names_and_values() {
    let help = "About\n\nUsage: x [OPTIONS]\n\nOptions:\n  -c, --config <FILE>  Prose [default: a]\n      --scope <SCOPE>\n          Prose\n\n          \
                Possible values:\n          - user: Prose\n";
    let found: Vec<String> =
        entries(help).iter().map(|(section, entry)| format!("{section} {}", facts(entry))).collect();
    assert_eq!(found[found.len() - 2..], ["Options  [default: a]", "Options  value user"]);
}
