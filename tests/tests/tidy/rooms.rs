//! Rooms: how much stands in a folder, how much its door shows, and that the methods of a type stand beside it.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::source::Source;

/// Files and folders in one folder; `mod.rs` and tests do not count.
const ENTRIES: usize = 12;
/// The same for the crate, which is a list of rooms.
const ROOMS: usize = 18;
/// What a door shows: modules, and names of its children.
const SHOWN: usize = 10;

/// Folders with more entries than a reader takes in at once.
pub(crate) fn crowded(files: &[Source]) -> Vec<String> {
    let tests_only = tests_only(files);
    let mut folders: BTreeMap<Vec<String>, BTreeSet<String>> = BTreeMap::new();
    for module in
        files.iter().map(Source::module).filter(|module| !tests_only.iter().any(|only| module.starts_with(only)))
    {
        for depth in 0..module.len() {
            folders.entry(module[..depth].to_vec()).or_default().insert(module[depth].clone());
        }
    }
    let most = |folder: &[String]| if folder.is_empty() { ROOMS } else { ENTRIES };
    let crowded = folders.iter().filter(|(folder, entries)| entries.len() > most(folder));
    crowded.map(|(folder, entries)| format!("{}/ has {} entries", folder.join("/"), entries.len())).collect()
}

/// Doors that show too much.
pub(crate) fn wide(files: &[Source]) -> Vec<String> {
    let doors = files.iter().filter(|source| source.path.ends_with("/mod.rs") && !source.product.is_empty());
    let shown = doors.map(|source| (source, shown(&source.product)));
    let wide = shown.filter(|(_, shown)| *shown > SHOWN);
    wide.map(|(source, shown)| format!("{}: the door shows {shown} items", source.path)).collect()
}

/// How many items a file shows: modules, functions and types of its own, and names of its children.
fn shown(code: &str) -> usize {
    let mut count = 0;
    let mut only_in_tests = false;
    for item in items(code) {
        let is_test = std::mem::replace(&mut only_in_tests, false);
        let item = item.trim();
        if item.starts_with("#[cfg(test)]") || is_test {
            only_in_tests = item == "#[cfg(test)]";
            continue;
        }
        let Some(rest) = item
            .strip_prefix("pub")
            .map(|rest| rest.trim_start_matches("(crate)").trim_start_matches("(super)").trim_start())
        else {
            continue;
        };
        let first = rest.split_whitespace().next().unwrap_or_default();
        count += match first {
            "use" => rest
                .split_once('{')
                .map_or(1, |(_, names)| names.split(',').filter(|name| name.contains(char::is_alphanumeric)).count()),
            "mod" | "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "async" => 1,
            _ => 0,
        };
    }
    count
}

/// The lines that begin an item at the margin, each joined with what belongs to it up to `;` or `{`.
fn items(code: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    let mut open = false;
    for line in code.lines() {
        if open {
            items.last_mut().expect("one is open").push_str(line);
        } else if !line.starts_with([' ', '}', '/']) && !line.trim().is_empty() {
            items.push(line.to_owned());
        } else {
            continue;
        }
        open = items.last().is_some_and(|item| item.contains("use ") && !item.contains(';'));
    }
    items
}

/// Children that a door declares without a line that says what lives there.
pub(crate) fn unsaid(files: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for source in files.iter().filter(|source| source.path.ends_with("/mod.rs") && !source.product.is_empty()) {
        let lines: Vec<&str> = source.text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let is_child =
                line.ends_with(';') && (line.starts_with("mod ") || line.starts_with("pub")) && line.contains("mod ");
            let above = lines[..number].iter().rev().find(|line| **line == "#[cfg(test)]" || !line.starts_with("#["));
            if is_child && !above.is_some_and(|line| line.starts_with("// ") || *line == "#[cfg(test)]") {
                faults.push(format!("{}:{}: `{line}` has no line of its own", source.path, number + 1));
            }
        }
    }
    faults
}

/// Methods that stand in another folder than their type.
pub(crate) fn strays(files: &[Source]) -> Vec<String> {
    let folder = |source: &Source| source.path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
    let mut homes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in files {
        for line in source.product.lines() {
            let words: Vec<&str> = line
                .split(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
                .filter(|word| !word.is_empty())
                .collect();
            for pair in words.windows(2) {
                if matches!(pair[0], "struct" | "enum" | "union" | "trait") {
                    homes.entry(pair[1].to_owned()).or_default().insert(folder(source));
                }
            }
        }
    }
    let mut faults = Vec::new();
    for source in files {
        for (number, line) in source.product.lines().enumerate() {
            let Some(name) = inherent(line) else { continue };
            if homes.get(name).is_some_and(|homes| !homes.contains(&folder(source))) {
                faults.push(format!("{}:{}: methods of `{name}` stand far from it", source.path, number + 1));
            }
        }
    }
    faults
}

/// The type of an inherent `impl`, in whose line it begins.
fn inherent(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    if line.contains(" for ") {
        return None;
    }
    let rest = match rest.strip_prefix('<') {
        None => rest,
        Some(generic) => {
            let mut depth = 1;
            let end = generic.find(|letter| {
                depth += match letter {
                    '<' => 1,
                    '>' => -1,
                    _ => 0,
                };
                depth == 0
            })?;
            &generic[end + 1..]
        }
    };
    let name = rest.strip_prefix(' ')?;
    let end = name.find(|letter: char| !(letter.is_alphanumeric() || letter == '_')).unwrap_or(name.len());
    Some(&name[..end]).filter(|name| !name.is_empty())
}

/// The modules that are there for tests alone.
fn tests_only(files: &[Source]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for source in files {
        let mut lines = source.text.lines().peekable();
        while let Some(line) = lines.next() {
            let next = lines.peek().map_or("", |next| next.trim());
            let name = next.strip_suffix(';').and_then(|item| item.rsplit_once("mod ")).map(|(_, name)| name);
            if let Some(name) = name.filter(|_| line.trim() == "#[cfg(test)]") {
                found.push(source.module().into_iter().chain([name.to_owned()]).collect());
            }
        }
    }
    found
}

#[test]
fn what_a_room_may_not_have_is_seen() {
    let file = |path: &str, code: &str| Source {
        path: format!("gateway/src/{path}"),
        text: code.to_owned(),
        code: code.to_owned(),
        product: code.to_owned(),
    };
    let many: Vec<Source> = (0..13).map(|number| file(&format!("a/f{number}.rs"), "")).collect();
    assert_eq!(crowded(&many), ["a/ has 13 entries"]);
    assert_eq!(crowded(&many[..12]), [""; 0]);
    let names: Vec<String> = (0..11).map(|number| format!("N{number}")).collect();
    let door =
        |names: &[String]| file("a/mod.rs", &format!("mod b;\npub(crate) use b::{{\n    {},\n}};\n", names.join(", ")));
    assert_eq!(wide(&[door(&names)]).len(), 1);
    assert_eq!(wide(&[door(&names[..10])]).len(), 0);
    let tested = file("a/mod.rs", "#[cfg(test)]\npub(crate) use b::X;\npub mod c;\npub(crate) fn f() {\n}\n");
    assert_eq!(shown(&tested.product), 2);
    let door = |text: &str| file("a/mod.rs", text);
    assert_eq!(unsaid(&[door("// What b is.\n#[doc(hidden)]\npub mod b;\n#[cfg(test)]\nmod tests;\n")]).len(), 0);
    assert_eq!(unsaid(&[door("// What b is.\nmod b;\nmod c;\n")]).len(), 1);
    let home = file("a/x.rs", "pub struct X;\nimpl X {\n}\n");
    assert_eq!(strays(&[home, file("b/y.rs", "impl<T: Into<U>> X {\n}\nimpl Clone for X {\n}\n")]).len(), 1);
}
