//! Proves that a commit changes only names (with a table), or only comments and strings (`--prose`).
//!
//! `tokens OLD NEW [--table FILE] [--prose] [--strict-facts] [--any-visibility] [--repository FOLDER]`; `.` as NEW is the working tree.

#![allow(clippy::print_stdout, reason = "the report is the purpose of this program")]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use trunkline_tests::tokens::check;
use trunkline_tests::tokens::normal::Terms;
use trunkline_tests::tokens::table::Table;

const USAGE: &str = "usage: tokens OLD NEW [--table FILE] [--prose] [--strict-facts] [--any-visibility] [--repository FOLDER]\n\
                     OLD is a commit, NEW a commit or `.` for the working tree. The module `table` describes the table.";

struct Wish {
    commits: [String; 2],
    table: Option<PathBuf>,
    repository: PathBuf,
    terms: Terms,
    strict_facts: bool,
}

fn main() -> ExitCode {
    let Some(wish) = wish(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(&wish) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn wish(mut words: impl Iterator<Item = String>) -> Option<Wish> {
    let mut commits = Vec::new();
    let (mut table, mut repository, mut terms, mut strict_facts) = (None, PathBuf::from("."), Terms::default(), false);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--table" => table = Some(words.next()?.into()),
            "--repository" => repository = words.next()?.into(),
            "--prose" => terms.is_prose = true,
            "--strict-facts" => strict_facts = true,
            "--any-visibility" => terms.any_visibility = true,
            other if other.starts_with("--") => return None,
            _ => commits.push(word),
        }
    }
    Some(Wish { commits: commits.try_into().ok()?, table, repository, terms, strict_facts })
}

fn run(wish: &Wish) -> Result<bool> {
    let text = match &wish.table {
        Some(path) => std::fs::read_to_string(path).with_context(|| path.display().to_string())?,
        None => String::new(),
    };
    let table = Table::parse(&text).map_err(anyhow::Error::msg)?;
    let [old, new] = &wish.commits;
    let findings = check::commits(&wish.repository, old, new, &table, wish.terms)?;
    let (report, is_clean) = findings.report(&table, wish.strict_facts);
    print!("{report}");
    Ok(is_clean)
}
