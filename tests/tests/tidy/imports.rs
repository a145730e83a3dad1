//! Which module a file names: `use` trees and paths in code, resolved to the files that they mean.

use std::collections::BTreeSet;

use crate::tidy::source::Source;

/// The modules that a file names, each as a path from the crate's root, with what it names there.
pub(crate) fn of(source: &Source, modules: &BTreeSet<Vec<String>>) -> BTreeSet<Vec<String>> {
    let own = source.module();
    let mut found = BTreeSet::new();
    for path in paths(&source.product) {
        let Some(absolute) = absolute(&own, &path) else { continue };
        let known =
            (0..=absolute.len()).rev().map(|length| absolute[..length].to_vec()).find(|path| modules.contains(path));
        if let Some(module) = known.filter(|module| !module.is_empty() && *module != own) {
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
