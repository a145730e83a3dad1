//! Compares the trees of two commits file by file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use anyhow::Result;

use super::compare::{compare, strings};
use super::facts;
use super::lexer::{Kind, Token, lex};
use super::normal::{Terms, normal};
use super::table::Table;
use super::tree;

/// The findings of a comparison.
#[derive(Debug, Default)]
pub struct Findings {
    /// Differences: the commit is not what it claims to be.
    pub faults: Vec<String>,
    /// Facts that comments no longer mention.
    pub lost_facts: Vec<String>,
    /// Other places to look at: changed strings of one word, names that existed before.
    pub notes: Vec<String>,
    /// The number of files compared, and of those among them that changed.
    pub files: (usize, usize),
    /// The files left to a person.
    pub skipped: Vec<String>,
}

/// Compares two commits; `.` as the new one is the working tree.
///
/// # Errors
/// When git fails.
pub fn commits(repository: &Path, old: &str, new: &str, table: &Table, terms: Terms) -> Result<Findings> {
    let moves = tree::moves(repository, old, new)?;
    let (old, new) = (tree::rust_files(repository, old)?, tree::rust_files(repository, new)?);
    Ok(trees(&old, &new, &moves, table, terms))
}

/// Compares two trees; `moves` holds the files that git takes for moved.
#[must_use]
pub fn trees(
    old: &BTreeMap<String, String>,
    new: &BTreeMap<String, String>,
    moves: &BTreeMap<String, String>,
    table: &Table,
    terms: Terms,
) -> Findings {
    let mut findings = Findings::default();
    let mut met = BTreeSet::new();
    for (path, text) in old {
        let is_kept = || new.contains_key(path).then(|| path.clone());
        let target = table.moved(path).or_else(is_kept).or_else(|| moves.get(path).cloned());
        met.extend(target.clone());
        if table.skips(path) {
            findings.skipped.push(path.clone());
            continue;
        }
        match target.as_ref().and_then(|target| Some((target, new.get(target)?))) {
            Some((target, other)) => {
                findings.files.0 += 1;
                findings.files.1 += usize::from(text != other || target != path);
                file(&mut findings, (path, text), (target, other), table, terms);
            }
            None => findings.faults.push(format!("{path}: the file is gone")),
        }
    }
    for path in new.keys().filter(|path| !met.contains(*path)) {
        match table.skips(path) {
            true => findings.skipped.push(path.clone()),
            false => findings.faults.push(format!("{path}: the file is new")),
        }
    }
    findings.faults.extend(table.unused().iter().map(|line| format!("line {line} of the table is unused")));
    findings
}

/// Compares two files, each with its path.
fn file(findings: &mut Findings, old: (&str, &str), new: (&str, &str), table: &Table, terms: Terms) {
    let names = table.names_in(old.0);
    if old.1 == new.1 && names.is_empty() {
        return;
    }
    let (one, other) = match (lex(old.1), lex(new.1)) {
        (Ok(one), Ok(other)) => (one, other),
        (one, other) => {
            let error = |path: &str, result: Result<_, String>| result.err().map(|error| format!("{path}: {error}"));
            findings.faults.extend(error(old.0, one.map(drop)).into_iter().chain(error(new.0, other.map(drop))));
            return;
        }
    };
    if let Err(difference) = compare(&normal(&one, terms), &normal(&other, terms), &names, terms) {
        findings.faults.push(format!(
            "{}:{} -> {}:{}\n    old: {}\n    new: {}",
            old.0, difference.old_line, new.0, difference.new_line, difference.old, difference.new
        ));
        return;
    }
    if terms.is_prose {
        let strings = strings(&one, &other);
        let place = |old_line: u32, new_line: u32| format!("{}:{old_line} -> {}:{new_line}", old.0, new.0);
        for (one, other) in &strings.placeholders {
            let place = place(one.line, other.line);
            findings
                .faults
                .push(format!("{place}: other placeholders\n    old: {}\n    new: {}", one.text, other.text));
        }
        for (one, other) in &strings.words {
            findings.notes.push(format!("{}: {} is now {}", place(one.line, other.line), one.text, other.text));
        }
        let lost = facts::lost(&one, &other);
        if !lost.is_empty() {
            findings.lost_facts.push(format!("{}: {}", new.0, lost.join(" ")));
        }
    }
    let words = |tokens: &[Token<'_>]| -> BTreeSet<String> {
        tokens.iter().filter(|token| token.kind == Kind::Word).map(|token| token.text.to_owned()).collect()
    };
    let (before, after) = (words(&one), words(&other));
    for name in &before {
        let is_old = |target: &&str| target != name && before.contains(*target) && after.contains(*target);
        for target in names.targets_of(name).filter(is_old) {
            findings.notes.push(format!("{}: {name} is now {target}, a name that the file had already", new.0));
        }
    }
}

impl Findings {
    /// The report, and whether the commit holds what it claims.
    #[must_use]
    pub fn report(&self, table: &Table, strict_facts: bool) -> (String, bool) {
        let mut text = String::new();
        let mut list = |title: &str, lines: &[String]| {
            if !lines.is_empty() {
                let _ = writeln!(text, "{title} ({}):", lines.len());
                for line in lines {
                    let _ = writeln!(text, "  {line}");
                }
            }
        };
        list("differences", &self.faults);
        list("facts that comments no longer mention", &self.lost_facts);
        list("to look at", &self.notes);
        list("skipped", &self.skipped);
        let uses: Vec<String> = table.uses().iter().map(|(name, uses)| format!("{uses:6}  {name}")).collect();
        list("renames", &uses);
        let is_clean = self.faults.is_empty() && (!strict_facts || self.lost_facts.is_empty());
        let verdict = if is_clean { "ok" } else { "FAILED" };
        let (files, changed) = self.files;
        let _ = writeln!(text, "{verdict}: {files} files compared, {changed} of them changed");
        (text, is_clean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn moved_lost_and_new_files_are_told_apart() {
        let old = tree(&[("a/x.rs", "fn said() {}"), ("a/y.rs", "y"), ("c.rs", "c"), ("d.rs", "d"), ("g.rs", "g")]);
        let new = tree(&[("b/x.rs", "fn text() {}"), ("b/y.rs", "y"), ("e.rs", "e"), ("f.rs", "d"), ("h.rs", "")]);
        let table = Table::parse("a/ => b/\nsaid -> text\nskip g.rs\nskip h.rs\nunused -> gone").unwrap();
        let moves = [("d.rs".to_owned(), "f.rs".to_owned())].into();
        let findings = trees(&old, &new, &moves, &table, Terms::default());
        let expected = ["c.rs: the file is gone", "e.rs: the file is new", "line 5 of the table is unused"];
        assert_eq!(findings.faults, expected);
        assert_eq!((findings.files, findings.skipped.len()), ((3, 3), 2));
        let (report, is_clean) = findings.report(&table, false);
        assert!(
            !is_clean && report.contains("     1  said -> text") && report.contains("FAILED: 3 files compared"),
            "{report}"
        );
    }

    #[test]
    fn lost_facts_fail_only_where_that_is_asked_for() {
        let (old, new) = (tree(&[("a.rs", "// 60 s\nf(\"{a}\")")]), tree(&[("a.rs", "// soon\nf(\"{a}.\")")]));
        let terms = Terms { is_prose: true, ..Terms::default() };
        let findings = trees(&old, &new, &BTreeMap::new(), &Table::default(), terms);
        assert_eq!(findings.lost_facts, ["a.rs: 60"]);
        assert_eq!([false, true].map(|strict| findings.report(&Table::default(), strict).1), [true, false]);
        let other = tree(&[("a.rs", "// 60 s\nf(\"{b}\")")]);
        assert_eq!(trees(&old, &other, &BTreeMap::new(), &Table::default(), terms).faults.len(), 1);
    }

    #[test]
    fn names_that_a_file_had_already_are_noted() {
        let (old, new) = (tree(&[("a.rs", "said(text)")]), tree(&[("a.rs", "text(text)")]));
        let table = Table::parse("said -> text").unwrap();
        let findings = trees(&old, &new, &BTreeMap::new(), &table, Terms::default());
        assert_eq!((findings.faults.len(), findings.notes.len()), (0, 1));
    }
}
