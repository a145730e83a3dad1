//! What a host needs beside the entry: the variables that the configuration takes from the environment.

use crate::cli::setup::hosts::EVERYWHERE;
use crate::config::fault::{Fault, Severity, printable};
use crate::config::source::Environment;

/// The variables of this environment that texts refer to, each once, but for those that every program has.
pub(super) fn taken(texts: &[String], environment: &Environment) -> Vec<String> {
    let lines = texts.iter().flat_map(|text| text.lines()).filter(|line| !line.trim_start().starts_with('#'));
    let inside = lines.flat_map(|line| line.split("${").skip(1)).filter_map(|rest| rest.split_once('}'));
    let names = inside.filter_map(|(inside, _)| {
        let inside = inside.strip_prefix("env:").unwrap_or(inside);
        // What has a default can do without.
        let name = inside.split_once(":?").map_or(inside, |(name, _)| name);
        let is_name = !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
        is_name.then_some(name)
    });
    let mut names: Vec<String> = names.filter(|name| !EVERYWHERE.contains(name)).map(str::to_owned).collect();
    names.retain(|name| environment.get(name).is_some());
    names.sort();
    names.dedup();
    names
}

/// What to say where an entry does not start, starts without some servers, or may not start in a host that has other variables than this
/// shell. `faults` are those of the configuration, warnings among them.
pub(super) fn note(faults: &[Fault], taken: &[String]) -> Option<String> {
    let errors: Vec<&Fault> = faults.iter().filter(|fault| fault.severity == Severity::Error).collect();
    let Some(first) = errors.first() else {
        // Those of an upstream that is switched off keep nothing from anybody.
        let unset = unset(&faults.iter().filter(|fault| fault.upstream.is_some()).collect::<Vec<_>>());
        let (have, them) = if unset.len() == 1 { ("has", "it") } else { ("have", "them") };
        let left_out = (!unset.is_empty()).then(|| {
            let names = joined(&unset);
            format!(
                "note: {names} {have} no value: the servers that need {them} are left out; `trunkline check` names them"
            )
        });
        let taken = (!taken.is_empty()).then(|| {
            format!(
                "note: the configuration takes {} from this shell, and a host that is started from a desktop may not have \
                 it; keep values in files: `env_file`, or `${{file:/path}}` in place of `${{NAME}}`",
                taken.join(", ")
            )
        });
        let notes: Vec<String> = left_out.into_iter().chain(taken).collect();
        return (!notes.is_empty()).then(|| notes.join("\n"));
    };
    let unset = unset(&errors);
    let why = if unset.len() > 1 { format!("{} have no value", joined(&unset)) } else { first.text.clone() };
    Some(format!("note: the entry does not start yet: {}; `trunkline check` says more", printable(&why)))
}

/// The variables without a value, each once.
fn unset(faults: &[&Fault]) -> Vec<String> {
    let mut unset: Vec<String> =
        faults.iter().filter_map(|fault| Some(format!("${{{}}}", fault.unset.as_ref()?))).collect();
    unset.sort_unstable();
    unset.dedup();
    unset
}

/// Names in a sentence.
fn joined(names: &[String]) -> String {
    match names {
        [firsts @ .., last] if !firsts.is_empty() => format!("{} and {last}", firsts.join(", ")),
        _ => names.concat(),
    }
}
