//! Folders: each child has a line in its `mod.rs`, and the methods of a type stand beside it.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::source::Source;

/// Children that a door declares without a line that says what lives there.
pub(crate) fn unsaid(files: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for source in files.iter().filter(|source| source.path.ends_with("/mod.rs") && !source.product.is_empty()) {
        let lines: Vec<&str> = source.text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let is_child =
                line.ends_with(';') && (line.starts_with("mod ") || line.starts_with("pub")) && line.contains("mod ");
            let above = lines[..number].iter().rev().find(|line| **line == "#[cfg(test)]" || !line.starts_with("#["));
            if is_child
                && !above
                    .is_some_and(|line| line.starts_with("// ") || line.starts_with("/// ") || *line == "#[cfg(test)]")
            {
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

#[test]
fn what_a_room_may_not_have_is_seen() {
    let file = |path: &str, code: &str| Source {
        path: format!("gateway/src/{path}"),
        text: code.to_owned(),
        code: code.to_owned(),
        product: code.to_owned(),
    };
    let door = |text: &str| file("a/mod.rs", text);
    assert_eq!(unsaid(&[door("// What b is.\n#[doc(hidden)]\npub mod b;\n#[cfg(test)]\nmod tests;\n")]).len(), 0);
    assert_eq!(unsaid(&[door("// What b is.\nmod b;\nmod c;\n")]).len(), 1);
    let home = file("a/x.rs", "pub struct X;\nimpl X {\n}\n");
    assert_eq!(strays(&[home, file("b/y.rs", "impl<T: Into<U>> X {\n}\nimpl Clone for X {\n}\n")]).len(), 1);
}
