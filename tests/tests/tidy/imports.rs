//! Which module a file names: `use` trees and paths in code, resolved to the files that they mean.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::source::Source;

/// What each door shows: a name, and the child that it comes from.
pub(crate) type Doors = BTreeMap<Vec<String>, BTreeMap<String, Vec<String>>>;

/// The doors of all files: `pub use child::Name` in a file that declares `child`.
pub(crate) fn doors(files: &[Source]) -> Doors {
    let modules: BTreeSet<Vec<String>> = files.iter().map(Source::module).collect();
    let mut doors = Doors::new();
    for source in files {
        let own = source.module();
        for shown in
            source.product.split(';').filter_map(|item| item.split_once("use ").filter(|(vis, _)| vis.contains("pub")))
        {
            let (mut trees, tree) = (Vec::new(), shown.1.split_whitespace().collect::<String>());
            expand(&tree, &mut Vec::new(), &mut trees);
            for path in trees.iter().filter(|path| path.len() > 1) {
                let whole: Vec<String> = own.iter().chain(path).cloned().collect();
                let child = (own.len() + 1..whole.len()).rev().map(|length| whole[..length].to_vec());
                if let Some(child) = child.into_iter().find(|child| modules.contains(child)) {
                    let name = path.last().expect("it has two parts or more").clone();
                    doors.entry(own.clone()).or_default().insert(name, child);
                }
            }
        }
    }
    doors
}

/// The modules that a file names, each as a path from the crate's root. What a door shows counts as named where it stands.
pub(crate) fn of(source: &Source, modules: &BTreeSet<Vec<String>>, doors: &Doors) -> BTreeSet<Vec<String>> {
    let own = source.module();
    let mut found = BTreeSet::new();
    for path in paths(&source.product) {
        let Some(absolute) = absolute(&own, &path) else { continue };
        let known =
            (0..=absolute.len()).rev().map(|length| absolute[..length].to_vec()).find(|path| modules.contains(path));
        let Some(mut module) = known.filter(|module| !module.is_empty()) else { continue };
        if let Some(name) = absolute.get(module.len()) {
            while let Some(behind) = doors.get(&module).and_then(|door| door.get(name)) {
                module = behind.clone();
            }
        }
        if module != own {
            found.insert(module);
        }
    }
    found
}

/// A path as it is seen from the crate's root; nothing for other crates.
fn absolute(own: &[String], path: &[String]) -> Option<Vec<String>> {
    let mut base = own.to_vec();
    let mut rest = path;
    match path.first().map(String::as_str) {
        Some("crate") => {
            base.clear();
            rest = &path[1..];
        }
        Some("self") => rest = &path[1..],
        Some("super") => {
            while rest.first().is_some_and(|part| part == "super") {
                base.pop()?;
                rest = &rest[1..];
            }
        }
        _ => return None,
    }
    base.extend(rest.iter().cloned());
    Some(base)
}

/// All paths that begin with `crate`, `self` or `super`, out of `use` trees and out of code.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_' || letter == ':' || letter == '(')
            {
                continue; // in the middle of a path, or `pub(super)`
            }
            expand(&code[at..], &mut Vec::new(), &mut found);
        }
    }
    found
}

/// Takes a path, or a tree of them, apart.
fn expand(text: &str, prefix: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> usize {
    let depth = prefix.len();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let word: String = rest.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
        if !word.is_empty() {
            at += word.len();
            prefix.push(word);
            if text[at..].starts_with("::") {
                at += 2;
                continue;
            }
        } else if rest.starts_with('{') {
            at += 1;
            while !text[at..].starts_with('}') && at < text.len() {
                let next = text[at..].chars().next().expect("not at the end");
                if next.is_alphanumeric() || next == '_' || next == '{' {
                    at += expand(&text[at..], prefix, found);
                } else {
                    at += next.len_utf8();
                }
            }
            prefix.truncate(depth);
            return at + 1;
        }
        break;
    }
    found.push(prefix.clone());
    prefix.truncate(depth);
    at
}

/// The children that a file declares.
pub(crate) fn declared(source: &Source, modules: &BTreeSet<Vec<String>>) -> BTreeSet<Vec<String>> {
    let own = source.module();
    let child = |line: &str| {
        let rest = line.trim().strip_suffix(';')?;
        let name = rest.rsplit_once("mod ").filter(|(before, _)| before.is_empty() || before.ends_with(' '))?.1;
        let path: Vec<String> = own.iter().cloned().chain([name.to_owned()]).collect();
        modules.contains(&path).then_some(path)
    };
    source.product.lines().filter_map(child).collect()
}

#[test]
fn trees_are_taken_apart() {
    let found = paths("use crate::{a, b::{c, self as d}}; fn x() { super::y::z() } pub(super) fn w() {}");
    let found: Vec<String> = found.iter().map(|path| path.join("::")).collect();
    for wanted in ["crate::a", "crate::b::c", "super::y::z"] {
        assert!(found.contains(&wanted.to_owned()), "{wanted} in {found:?}");
    }
    assert!(!found.iter().any(|path| path.starts_with("super") && path != "super::y::z"), "{found:?}");
}
