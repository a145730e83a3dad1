//! The public interface of the product, compared with the files in `tests/public` and the generated page of configuration keys.
//!
//! `tests/public` has no prose: help texts, descriptions and messages may change.

mod commands;
mod errors;
mod json;
mod keys;
mod live;
mod metrics;
mod names;
mod product;

use std::collections::BTreeSet;

use crate::tidy::source::root;

pub(crate) use commands::{commands, exit_codes};
pub(crate) use errors::errors;
pub(crate) use json::json;
pub(crate) use keys::{defaults, keys};
pub(crate) use metrics::metrics;
pub(crate) use names::names;

/// With this variable the files are written anew.
const WRITE: &str = "TRUNKLINE_WRITE_PUBLIC";

/// Compares the interface of one kind with its file.
pub(crate) fn compare(name: &str, lines: &[String]) {
    compare_file(&format!("tests/public/{name}"), lines);
}

/// Compares a generated page with its file.
pub(crate) fn compare_page(file: &str, page: &str) {
    compare_file(file, &page.lines().map(str::to_owned).collect::<Vec<_>>());
}

fn compare_file(file: &str, lines: &[String]) {
    let path = root().join(file);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &text).expect("the folder of a checked-in file exists");
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    let known: Vec<String> = known.lines().map(str::to_owned).collect();
    let differences = differences(&known, lines);
    assert!(
        differences.is_empty(),
        "{file}: the public interface has changed (- before, + now):\n{}\n\
         To accept this, run `{WRITE}=1 cargo test --workspace --locked --test tidy public` and give the reason for each difference \
         in the commit message.",
        differences.join("\n")
    );
}

/// The lines that only one side has, and else a changed order.
fn differences(known: &[String], lines: &[String]) -> Vec<String> {
    let (before, now): (BTreeSet<&String>, BTreeSet<&String>) = (known.iter().collect(), lines.iter().collect());
    let gone = known.iter().filter(|line| !now.contains(line)).map(|line| format!("- {line}"));
    let new = lines.iter().filter(|line| !before.contains(line)).map(|line| format!("+ {line}"));
    let found: Vec<String> = gone.chain(new).collect();
    match found.is_empty() && known != lines {
        true => vec!["(the same lines in another order, or repeated)".to_owned()],
        false => found,
    }
}

/// Sorted lines, each once.
fn sorted(lines: impl IntoIterator<Item = String>) -> Vec<String> {
    lines.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}

#[test]
fn differences_name_both_sides() {
    let lines = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(differences(&lines("a b c"), &lines("a d c")), ["- b", "+ d"]);
    assert_eq!(differences(&lines("a b"), &lines("a b")), [""; 0]);
    assert_eq!(differences(&lines("a b"), &lines("b a")).len(), 1);
}
