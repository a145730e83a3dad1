//! `trunkline doctor`: what keeps servers and hosts from working on this machine, as a numbered list with what to do.

// The entries in the files of hosts.
mod entries;
// What to do about a problem: a command or a line as it is typed or written.
mod fix;
// The tools that upstreams had when they were last read.
mod kept;
// Whether servers take connections.
mod network;
// The programs that run servers.
mod runtimes;
// The gateway that runs for the configuration.
mod running;
// One thing that is wrong.
mod problem;

use std::io::Write;

use anyhow::anyhow;
use kept::Kept;
use network::Ways;
use problem::Problem;
use running::Gateway;
use runtimes::Runtimes;

use super::{doubts, personal};
use crate::cli::args::settings;
use crate::cli::args::setup::Doctor;
use crate::cli::look::Row;
use crate::cli::process::table::{Room, wrapped};
use crate::cli::process::{Failure, answer};
use crate::cli::setup::hosts::{HOSTS, Host};
use crate::config::Config;
use crate::config::fault::printable;
use crate::config::source::{Environment, file};
use crate::downstream::parking::key;

/// What stands before what to do.
const FIX: &str = "   fix: ";
/// Faults of a configuration that say why a server does not start.
const STARTLESS: [&str; 3] = ["no-command", "no-folder", "no-login"];

/// Looks at everything and prints what is wrong.
pub(crate) fn run(doctor: &Doctor) -> Result<(), Failure> {
    let environment = Environment::of_process();
    let host = doctor.host.as_deref().map(Host::named).transpose().map_err(|why| anyhow!(why))?;
    let (faults, config) = match settings::read_or_part(&doctor.shared) {
        Ok(settings) => {
            let mut faults = settings.loaded.warnings;
            faults.extend(settings.loaded.doubts);
            faults.extend(doubts::all(&settings.files, &settings.loaded.config, &environment));
            (faults, settings.loaded.config)
        }
        Err(part) => {
            let mut faults = part.faults.0;
            faults.extend(part.doubts);
            faults.extend(doubts::of_upstreams(&part.config, &environment));
            (faults, part.config)
        }
    };
    let Ways { unreached, told: of_network } = network::ways(&config);
    let startless = faults.iter().filter(|fault| STARTLESS.contains(&fault.kind));
    let named = startless.map(|fault| &fault.upstream).chain(unreached.iter().map(|problem| &problem.upstream));
    let known: Vec<String> = named.flatten().cloned().collect();
    let mut problems: Vec<_> = faults.iter().map(Problem::from).chain(unreached).collect();
    let gateway = Gateway::of(&doctor.shared);
    problems.extend(sick(&gateway, &known));
    problems.extend(signing_key(&config));
    let tools = gateway.tools();
    let kept = if tools.is_none() { Kept::of(&config) } else { None };
    let known = tools.as_deref().or(kept.as_ref().map(|kept| &*kept.tools));
    // A file that cannot be read may have an entry.
    let installed = |host: &&Host| entries::may_have_one(host, &environment);
    let hosts: Vec<&Host> = match host {
        Some(host) => vec![host],
        None => HOSTS.iter().filter(installed).collect(),
    };
    for host in &hosts {
        problems.extend(entries::all(host, &environment));
        problems.extend(known.iter().flat_map(|tools| limits(host, tools)));
    }
    let Runtimes { problems: old, told: mut notes } = runtimes::all(&config, &hosts);
    problems.extend(old);
    notes.extend(of_network);
    notes.extend(personal::told(&config));
    let files = file::find(&doctor.shared.config, &environment);
    problems.iter_mut().for_each(|problem| problem.fix = fix::as_typed(&problem.fix, &doctor.shared, &files));
    let mut out = answer();
    if doctor.json {
        let hosts: Vec<&str> = hosts.iter().map(|host| host.id).collect();
        let tools = known.map(<[String]>::len);
        let report = serde_json::json!({ "problems": problems, "notes": notes, "hosts": hosts, "tools": tools });
        out.json(&format!("{report:#}"))?;
    } else {
        notes.push(gateway.told(tools.as_deref(), kept.as_ref()));
        write!(out, "{}", shown(&problems, &hosts, &notes, Room::of_stdout().columns))?;
    }
    if problems.is_empty() { Ok(()) } else { Err(Failure::Found) }
}

fn shown(problems: &[Problem], hosts: &[&Host], notes: &[String], columns: usize) -> String {
    let mut out = String::new();
    for (number, Problem { text, fix, .. }) in problems.iter().enumerate() {
        let text = format!("{}. {}", number + 1, printable(text));
        let fix = format!("{FIX}{}", printable(fix));
        out.push_str(&format!("{}\n{}\n", wrapped(&text, 3, columns), wrapped(&fix, FIX.len(), columns)));
    }
    let named: Vec<&str> = hosts.iter().map(|host| host.title).collect();
    let named = if named.is_empty() { "none has an entry of Trunkline".to_owned() } else { named.join(", ") };
    out.push_str(&format!("hosts: {named}\n"));
    notes.iter().for_each(|note| out.push_str(&format!("{}\n", wrapped(&printable(note), 3, columns))));
    match problems.len() {
        0 => out.push_str("No problems found\n"),
        1 => out.push_str("1 problem\n"),
        many => out.push_str(&format!("{many} problems\n")),
    }
    out
}

/// The reason that sessions end with each process of the gateway.
fn signing_key(config: &Config) -> Option<Problem> {
    let cause = key::look(&config.server.session.signing_keys, config.server.state_folder.as_deref())?;
    let fix = "correct that, or set `signing_key` under [server.session]; then restart the gateway";
    Some(Problem::new(format!("signing key not kept, sessions end with the gateway's process: {cause}"), fix))
}

/// What is wrong with the upstreams of the running gateway, but for those of which it is known.
fn sick(gateway: &Gateway, known: &[String]) -> Vec<Problem> {
    let Some(whole) = gateway.whole() else { return Vec::new() };
    whole.upstreams.iter().filter(|row| !known.contains(&row.name)).filter_map(ailing).collect()
}

/// What is wrong with an upstream of the running gateway. Its cause knows best what to do.
fn ailing(row: &Row) -> Option<Problem> {
    let Row { name, state, transport, .. } = row;
    let (cause, advice) = row.ailment()?;
    // Only a child has a stderr.
    let logs = if transport == "stdio" { format!(" and `trunkline logs {name}`") } else { String::new() };
    let fix = match advice {
        "" => format!("look at `trunkline status {name}`{logs}; `trunkline restart {name}` tries it again"),
        advice => advice.to_owned(),
    };
    Some(Problem::of_upstream(name, format!("upstream `{name}` ({state}): {cause}"), fix))
}

/// What is more, or longer, than a host takes.
fn limits(host: &Host, tools: &[String]) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(most) = host.limits.tools.filter(|most| tools.len() > *most) {
        let text = format!("{} takes {most} tools, and there are {}", host.title, tools.len());
        let fix = "write `tools = { deny = [\"PATTERN\"] }`, or `enabled = false`, under [upstreams.NAME] of what is not needed";
        problems.push(Problem::new(text, fix));
    }
    let (before, most) = (host.limits.before, host.limits.name);
    let long: Vec<&str> = tools.iter().filter(|name| name.len() + before > most).map(String::as_str).collect();
    if let Some(first) = long.first() {
        let longer = match long.len() {
            1 => format!("one is longer: `{first}`"),
            count => format!("{count} are longer, such as `{first}`"),
        };
        let text = format!(
            "{}: names of tools have {most} characters at most, with {before} of its own; {longer}",
            host.title
        );
        let room = most - before;
        problems.push(Problem::new(text, format!("write `max_length = {room}` under [naming]")));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::fault::Fault;

    #[test]
    fn what_is_more_than_a_host_takes_is_told() {
        let cursor = Host::named("cursor").unwrap();
        let tools: Vec<String> = (0..81).map(|number| format!("tool{number}")).chain(["x".repeat(52)]).collect();
        let said: Vec<String> = limits(cursor, &tools).into_iter().map(|problem| problem.text).collect();
        assert!(
            said[0].contains("takes 80 tools, and there are 82") && said[1].contains("60 characters at most"),
            "{said:?}"
        );
        assert!(limits(cursor, &tools[..80]).is_empty());
    }

    #[test]
    fn a_sick_server_is_told_by_its_cause_and_the_fix_is_the_one_that_the_cause_advises() {
        let of = |text: &str| {
            let row: Row =
                serde_json::from_str(&format!("{{\"name\":\"x\",\"since_seconds\":1,\"restarts\":0,{text}}}")).unwrap();
            ailing(&row).map(|problem| (problem.text, problem.fix))
        };
        let login = r#""transport":"http","state":"failed","cause":"needs login; run `trunkline login x`","advice":"run `trunkline login x`""#;
        assert_eq!(of(login), Some(("upstream `x` (failed): needs login".into(), "run `trunkline login x`".into())));
        let (_, remote) = of(r#""transport":"http","state":"failed","cause":"gone""#).unwrap();
        assert_eq!(remote, "look at `trunkline status x`; `trunkline restart x` tries it again");
        let (_, child) = of(r#""transport":"stdio","state":"failed","cause":"gone""#).unwrap();
        assert_eq!(child, "look at `trunkline status x` and `trunkline logs x`; `trunkline restart x` tries it again");
        assert_eq!(
            of(r#""transport":"stdio","state":"starting","downtime_seconds":1,"cause":"it has not answered yet""#),
            None
        );
    }

    #[test]
    fn each_fault_that_does_not_say_what_to_do_is_told_with_what_to_run_or_to_write() {
        let page = include_str!("../../../../docs/security.md");
        let table = page.split("## What check warns of").nth(1).unwrap();
        let cells = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next());
        let kinds: Vec<&'static str> = cells.flat_map(|cell| cell.split('`')).filter(|kind| kind.len() > 3).collect();
        // These always come with a hint or a label.
        let own = [
            "no-upstreams",
            "no-audit",
            "over-memory-limit",
            "no-login",
            "file-sent",
            "duplicate-name",
            "bad-name",
            "no-folder",
            "admin-token",
            "expired-token",
            "open-file",
            "unused-role",
        ];
        for kind in kinds.iter().filter(|kind| !own.contains(kind)) {
            let fix = Problem::from(&Fault::of_upstream(kind, "x", "")).fix;
            assert!(!fix.contains("docs/") && !fix.starts_with("run `trunkline check`"), "{kind}: {fix}");
        }
        assert!(kinds.len() > 20, "{kinds:?}");
    }

    #[test]
    fn a_problem_of_a_fault_names_the_upstream_that_the_fault_names() {
        let problem = Problem::from(&Fault::of_upstream("no-command", "x", "`npxx` not found"));
        assert_eq!((problem.upstream.as_deref(), &*problem.text), (Some("x"), "upstream `x`: `npxx` not found"));
        let general = Problem::from(&Fault::warning("x", "upstream `x`: this only looks like one"));
        assert_eq!(general.upstream, None);
    }

    #[test]
    fn problems_are_numbered_and_go_on_below_themselves() {
        let problem = Problem::new("upstream `a` (failed): it exited with status 1", "look at its stderr and mend it");
        let text = shown(&[problem], &[], &[], 36);
        let lines = [
            "1. upstream `a` (failed): it exited",
            "   with status 1",
            "   fix: look at its stderr and mend",
            "        it",
        ];
        assert!(text.starts_with(&(lines.join("\n") + "\nhosts: ")), "{text}");
    }
}
