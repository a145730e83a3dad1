//! What a host needs beside the entry: the variables that the configuration takes from the environment.

use crate::config::fault::{Fault, Faults, Severity, printable};
use crate::config::source::Environment;

/// What every program of a desktop has.
const EVERYWHERE: [&str; 8] = ["HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR", "PWD"];

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

/// What to say where an entry does not start, or may not start in a host that has other variables than this shell.
pub(super) fn note(faults: Option<Faults>, taken: &[String]) -> Option<String> {
    let faults = faults.map(|Faults(faults)| faults).unwrap_or_default();
    let errors: Vec<&Fault> = faults.iter().filter(|fault| fault.severity == Severity::Error).collect();
    let Some(first) = errors.first() else {
        return (!taken.is_empty()).then(|| {
            format!(
                "note: the configuration takes {} from this shell, and a host that is started from a desktop may not have \
                 it; keep values in files: `env_file`, or `${{file:/path}}` in place of `${{NAME}}`",
                taken.join(", ")
            )
        });
    };
    let mut unset: Vec<String> =
        errors.iter().filter_map(|fault| Some(format!("${{{}}}", fault.unset.as_ref()?))).collect();
    unset.sort_unstable();
    unset.dedup();
    let why = match unset.as_slice() {
        [] | [_] => first.text.clone(),
        [firsts @ .., last] => format!("{} and {last} have no value", firsts.join(", ")),
    };
    Some(format!("note: the entry does not start yet: {}; `trunkline check` says more", printable(&why)))
}
