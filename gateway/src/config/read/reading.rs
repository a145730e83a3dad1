//! The merged configuration while it is read: values with their places, and the faults found so far.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use figment::Figment;
use figment::value::{Dict, Num, Value};

use super::kind::Sketch;
use crate::config::fault::{Fault, Place, SHOWN_MAX};
use crate::config::secret::{looks, shown};
use crate::config::source::expand::{Lookup, Problem, expand};
use crate::config::source::node::{Node, Origin, Shape, Source, Unusable};
use crate::config::source::torn::Gaps;
use crate::config::source::{Environment, file};

/// All sources, merged; and what was found wrong with them.
pub(crate) struct Reading {
    pub(crate) merged: Dict,
    pub(crate) environment: Environment,
    /// What of the sources was not read: nothing is called missing that may stand there.
    pub(crate) gaps: Gaps,
    /// Low to high.
    sources: Vec<Source>,
    faults: RefCell<Vec<Fault>>,
    /// What is doubtful about the files that references name.
    doubts: RefCell<Vec<Fault>>,
    /// What references were filled in with, and what else is secret.
    secrets: RefCell<BTreeSet<String>>,
    /// What each text with references came to, by its key, and what else the environment decides.
    pub(super) filled: RefCell<BTreeMap<String, String>>,
    /// The keys of the sections that were read.
    known: RefCell<Vec<(String, Vec<&'static str>)>>,
    /// What each key takes, where that is asked for.
    pub(crate) sketch: Option<Sketch>,
    /// Every key that was asked for, so that a test can hold the example file to them.
    #[cfg(test)]
    pub(crate) asked: RefCell<std::collections::BTreeSet<Vec<String>>>,
}

/// Which part of an entry a fault is about.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Key,
    Value,
}

/// So many faults have a place: more than are shown, and each costs a look at its whole file.
const PLACES_MAX: usize = 2 * SHOWN_MAX;

/// Under these names secrets stand, so that no value there is ever shown.
pub(super) const SECRET: [&str; 13] = [
    "args",
    "env",
    "headers",
    "url",
    "proxy",
    "token",
    "hash",
    "signing_key",
    "endpoint",
    "resource",
    "password",
    "client_secret",
    "params",
];

impl Reading {
    /// Merges `sources`, low to high.
    pub(crate) fn new(sources: Vec<Source>, environment: Environment, faults: Vec<Fault>) -> Self {
        let figment = sources.iter().fold(Figment::new(), |figment, source| figment.merge(source));
        let (merged, faults) = match figment.extract::<Dict>() {
            Ok(merged) => (merged, faults),
            Err(error) => {
                (Dict::new(), faults.into_iter().chain([Fault::error("bad-value", error.to_string())]).collect())
            }
        };
        Self {
            merged,
            environment,
            gaps: Gaps::default(),
            sources,
            faults: RefCell::new(faults),
            doubts: RefCell::default(),
            secrets: RefCell::default(),
            filled: RefCell::default(),
            known: RefCell::default(),
            sketch: None,
            #[cfg(test)]
            asked: RefCell::default(),
        }
    }

    /// The servers of hosts that cannot be used, each with the reason.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = &Unusable> {
        self.sources.iter().flat_map(|source| &source.left_out)
    }

    /// Notes a fault.
    pub(crate) fn fault(&self, fault: Fault) {
        self.faults.borrow_mut().push(fault);
    }

    /// Notes the keys of a section; those of tables with names of their own are not of one section.
    pub(crate) fn know(&self, path: &[String], keys: &[&'static str]) {
        let is_named = path.iter().any(|part| matches!(part.as_str(), "upstreams" | "tokens" | "listeners"));
        if !path.is_empty() && !is_named {
            self.known.borrow_mut().push((path.join("."), keys.to_vec()));
        }
    }

    /// Where a key belongs that stands outside of every section: `[server] listen`. Of several sections the first one that was read.
    pub(crate) fn section_of(&self, key: &str) -> Option<String> {
        let known = self.known.borrow();
        let (section, _) = known.iter().find(|(_, keys)| keys.contains(&key))?;
        Some(format!("[{section}] {key}"))
    }

    /// Notes a value that nobody may read in a text.
    pub(crate) fn secret(&self, value: &str) {
        self.secrets.borrow_mut().insert(value.to_owned());
    }

    /// Notes what the environment says of a key, or of something that no key names: it counts as written.
    pub(crate) fn note(&self, key: &str, value: &str) {
        self.filled.borrow_mut().insert(key.to_owned(), value.to_owned());
    }

    /// Notes what only whoever checks the configuration is told.
    pub(crate) fn doubt(&self, doubt: Fault) {
        self.doubts.borrow_mut().push(doubt);
    }

    /// Others have to do with this file.
    pub(crate) fn doubt_file(&self, path: &str, file::Doubt { why, fix }: file::Doubt) {
        self.doubt(Fault::warning("open-file", format!("the file {path}: {why}")).hint(fix));
    }

    /// What is doubtful about the files that references name, each once.
    pub(crate) fn doubts(&self) -> Vec<Fault> {
        let mut doubts = self.doubts.borrow().clone();
        doubts.dedup();
        doubts
    }

    /// Those that were noted.
    pub(crate) fn secrets(&self) -> BTreeSet<String> {
        self.secrets.borrow().clone()
    }

    /// How many were noted so far.
    pub(crate) fn faults_so_far(&self) -> usize {
        self.faults.borrow().len()
    }

    /// Changes those noted after the first `from`.
    pub(crate) fn revise(&self, from: usize, change: impl Fn(&mut Fault)) {
        self.faults.borrow_mut()[from..].iter_mut().for_each(change);
    }

    /// Forgets those noted after the first `from`.
    pub(crate) fn forget(&self, from: usize) {
        self.faults.borrow_mut().truncate(from);
    }

    /// Keeps only such of those noted after the first `from`.
    pub(crate) fn keep(&self, from: usize, is_such: impl Fn(&Fault) -> bool) {
        let mut faults = self.faults.borrow_mut();
        let later = faults.split_off(from);
        faults.extend(later.into_iter().filter(is_such));
    }

    /// Of those noted after the first `from`, which are not about upstreams: keeps only what does not follow from something unread.
    pub(crate) fn keep_certain(&self, from: usize) {
        if self.gaps.has_section() {
            self.keep(from, |fault| !fault.may_follow());
        }
    }

    /// Whether one of those noted after the first `from` is such.
    pub(crate) fn any(&self, from: usize, is_such: impl Fn(&Fault) -> bool) -> bool {
        self.faults.borrow()[from..].iter().any(is_such)
    }

    /// What there is to say of those noted after the first `from`.
    pub(crate) fn seen<T>(&self, from: usize, say: impl Fn(&[Fault]) -> T) -> T {
        say(&self.faults.borrow()[from..])
    }

    /// All that was noted.
    pub(crate) fn into_faults(self) -> Vec<Fault> {
        self.faults.into_inner()
    }

    /// Where the value at `path` stands: in the highest source that has it. Of too many faults the rest have no place.
    pub(crate) fn place(&self, path: &[String], part: Part) -> Option<Place> {
        if self.faults_so_far() > PLACES_MAX {
            return None;
        }
        let (source, node) = self.find(path)?;
        let key = list_of(source, path, node).map_or(&node.key, |list| &list.key).clone();
        match part {
            Part::Key => source.place(node.key.clone(), &[key]),
            Part::Value if node.is_single() && !is_secret(path) && is_open(source, path, node) => {
                source.place(node.span.clone(), &[key, node.span.clone()])
            }
            Part::Value => source.place(node.span.clone(), &[key]),
        }
    }

    /// Where `path` stands among others: by its first source, then by its place there.
    pub(crate) fn order(&self, path: &[String]) -> (usize, usize) {
        let found = self.sources.iter().enumerate().find_map(|(index, source)| Some((index, source.node(path)?)));
        found.map_or((usize::MAX, 0), |(index, node)| (index, node.key.start))
    }

    /// The name that a host has for the upstream at `path`, where a host's file defines it.
    pub(crate) fn imported(&self, path: &[String]) -> Option<&str> {
        let name = path.get(1).filter(|_| path[0] == "upstreams")?;
        let known = self.sources.iter().flat_map(|source| &source.imported);
        known.rev().find(|(slug, _)| slug == name).map(|(_, name)| name.as_str())
    }

    /// Whether this place is in a host's file.
    pub(crate) fn is_of_host(&self, place: Option<&Place>) -> bool {
        let Some(Place::File { path, .. }) = place else { return place.is_none() };
        let is_it = |source: &Source| matches!(&source.origin, Origin::File(own) if own.display().to_string() == *path);
        self.sources.iter().any(|source| !source.imported.is_empty() && is_it(source))
    }

    /// A key as it is written: in a host's file in the words of the host.
    pub(crate) fn spelled(&self, path: &[String]) -> String {
        let own = || path.join(".");
        let Some(((source, node), name)) = self.find(path).zip(self.imported(path)) else { return own() };
        if !source.imported.iter().any(|(slug, _)| *slug == path[1]) || path.len() < 3 {
            return own();
        }
        // An item of a list has a number for its name, and what is written there is its value.
        if let Some((index, list)) = path.split_last().filter(|(last, _)| last.parse::<usize>().is_ok()) {
            return format!("{}.{index}", self.spelled(list));
        }
        let above = path[..path.len() - 1].iter().skip(2).cloned();
        let key = source.text.get(node.key.clone()).unwrap_or_default().trim_matches('"');
        let is_plain = !key.is_empty() && key.chars().all(|char| char.is_ascii_alphanumeric() || "-_.".contains(char));
        let last = if is_plain { key.to_owned() } else { path[path.len() - 1].clone() };
        [name.to_owned()].into_iter().chain(above).chain([last]).collect::<Vec<_>>().join(".")
    }

    /// Whether the value at `path` was written in a file.
    pub(crate) fn is_file(&self, path: &[String]) -> bool {
        self.find(path).is_some_and(|(source, _)| matches!(source.origin, Origin::File(_)))
    }

    /// The text of `value`; references are filled in where a file wrote it.
    pub(crate) fn text(&self, path: &[String], value: &Value) -> Option<String> {
        match value {
            Value::String(_, text) if self.is_file(path) => {
                let filled = expand(text, self).map_err(|problems| self.report(path, text, problems)).ok()?;
                if filled != *text {
                    self.filled.borrow_mut().insert(path.join("."), filled.clone());
                }
                Some(filled)
            }
            Value::String(_, text) => Some(text.clone()),
            _ => {
                self.wrong_kind(path, "a string in quotes");
                None
            }
        }
    }

    /// The text of `value`, which may be a number or a flag too.
    pub(crate) fn scalar(&self, path: &[String], value: &Value) -> Option<String> {
        match value {
            Value::Bool(_, flag) => Some(flag.to_string()),
            Value::Num(_, Num::F64(number)) => Some(number.to_string()),
            Value::Num(_, number) => number.to_i128().map(|number| number.to_string()),
            Value::Dict(..) | Value::Array(..) => {
                self.wrong_kind(path, "a single value");
                None
            }
            _ => self.text(path, value),
        }
    }

    /// As `scalar`, for what is handed on as a text: a number with a point or an exponent stays as a file of ours has it.
    pub(crate) fn as_written(&self, path: &[String], value: &Value) -> Option<String> {
        let written = matches!(value, Value::Num(_, Num::F64(_))).then(|| self.find(path)).flatten();
        // A host that reads JSON knows the number alone.
        let own = written.filter(|(source, _)| source.imported.is_empty());
        match own.and_then(|(source, node)| source.text.get(node.span.clone())).filter(|text| !text.is_empty()) {
            Some(text) => Some(text.to_owned()),
            None => self.scalar(path, value),
        }
    }

    /// Reports a value of another kind. Only its key is shown: what it holds is anybody's guess.
    pub(crate) fn wrong_kind(&self, path: &[String], expected: &str) {
        let text = format!("`{}` must be {expected}", self.spelled(path));
        self.fault(Fault::error("bad-value", text).at(self.place(path, Part::Key)));
    }

    /// As `wrong_kind`, with what to write; the value is shown where it is no secret.
    pub(crate) fn wrong_value(&self, path: &[String], expected: &str, label: &str) {
        let text = format!("`{}` must be {expected}", self.spelled(path));
        self.fault(Fault::error("bad-value", text).at(self.place(path, Part::Value)).label(label));
    }

    fn report(&self, path: &[String], text: &str, problems: Vec<Problem>) {
        for problem in problems {
            let found = self.find(path).filter(|_| self.faults_so_far() < PLACES_MAX);
            let place = found.and_then(|(source, node)| {
                let mark = within(source, node, &text[problem.range.clone()]);
                let key = list_of(source, path, node).map_or(&node.key, |list| &list.key).clone();
                source.place(mark.clone(), &[key, mark])
            });
            let fault = Fault::error(problem.kind, problem.text).at(place);
            self.fault(Fault { hint: problem.hint, unset: problem.unset, ..fault });
        }
    }

    /// The highest source that has a value at `path`, and the value.
    pub(super) fn find(&self, path: &[String]) -> Option<(&Source, &Node)> {
        self.sources.iter().rev().find_map(|source| Some((source, source.node(path)?)))
    }
}

impl Lookup for Reading {
    fn variable(&self, name: &str) -> Result<Option<String>, String> {
        let Some(value) = self.environment.get(name) else { return Ok(None) };
        let value = value.to_str().ok_or_else(|| "the value is not UTF-8".to_owned())?;
        if !looks::is_plain(name, value) {
            self.secret(value);
        }
        Ok(Some(value.to_owned()))
    }

    fn file(&self, path: &str) -> Result<String, String> {
        // The working directory is whatever a host happened to choose.
        if !Path::new(path).is_absolute() {
            return Err("the path must be absolute".to_owned());
        }
        let read = file::secret(Path::new(path))?;
        read.doubt.into_iter().for_each(|doubt| self.doubt_file(path, doubt));
        let text = read.text.trim_end_matches(['\n', '\r']).to_owned();
        self.secret(&text);
        Ok(text)
    }
}

/// The list that an item stands in, by whose key it is known; `None` for a whole table, which has a heading.
fn list_of<'a>(source: &'a Source, path: &[String], node: &Node) -> Option<&'a Node> {
    let (_, above) = path.split_last()?;
    let is_heading = matches!(node.shape, Shape::Table(_)) && !is_secret(path);
    source.node(above).filter(|list| matches!(list.shape, Shape::List(_)) && !is_heading)
}

fn is_secret(path: &[String]) -> bool {
    path.iter().any(|name| SECRET.contains(&name.as_str()))
}

/// Whether a value that stands under the name of no secret holds none.
fn is_open(source: &Source, path: &[String], node: &Node) -> bool {
    let written = source.text.get(node.span.clone()).unwrap_or_default().trim_matches(['"', '\'']);
    // The items of a list have numbers for names.
    let key = path.iter().rev().find(|name| name.parse::<usize>().is_err());
    key.is_some_and(|key| shown::is_open(key, written))
}

/// The bytes of `piece` in the written form of a value; the whole where escapes hide it.
fn within(source: &Source, node: &Node, piece: &str) -> Range<usize> {
    let written = source.text.get(node.span.clone()).unwrap_or_default();
    match written.find(piece) {
        Some(at) => node.span.start + at..node.span.start + at + piece.len(),
        None => node.span.start..node.span.start,
    }
}
