//! The map in the README against the folder `gateway/src`.
//!
//! The map is the fenced block under the heading "Map": one level of indentation is two columns, names end in `.rs` or
//! `/`, several may stand on a line, and what comes after them is explanation. A folder with nothing below it stands for
//! all that it holds; one with something below it must name everything (files of tests aside).

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::source::{below, root};

pub(crate) fn faults() -> Vec<String> {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("there is a README");
    let Some(map) = fenced(&readme) else { return vec!["README.md has no map".into()] };
    let drawn = drawn(&map);
    let real = real();
    let mut faults = Vec::new();
    if !drawn.contains_key("") {
        faults.push("the map draws nothing".to_owned());
    }
    for (folder, names) in &drawn {
        let Some(actual) = real.get(folder) else {
            faults.push(format!("the map draws {folder:?}, which is not there"));
            continue;
        };
        faults.extend(names.difference(actual).map(|name| format!("the map draws {folder}{name}, which is not there")));
        faults.extend(actual.difference(names).map(|name| format!("the map lacks {folder}{name}")));
    }
    faults
}

fn fenced(readme: &str) -> Option<String> {
    let section = readme.split_once("\n## Map\n")?.1;
    let block = section.split_once("```")?.1.split_once('\n')?.1;
    Some(block.split_once("```")?.0.to_owned())
}

/// What the map draws: folder, and the names in it.
fn drawn(map: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut drawn: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut above: Vec<(usize, String)> = Vec::new();
    for line in map.lines() {
        let line: String = line.chars().map(|letter| if "│├└─".contains(letter) { ' ' } else { letter }).collect();
        let depth = line.chars().take_while(|letter| *letter == ' ').count();
        let names: Vec<&str> = line
            .split_whitespace()
            .map(|word| word.trim_end_matches(','))
            .take_while(|word| word.ends_with(".rs") || word.ends_with('/'))
            .collect();
        above.retain(|(other, _)| *other < depth);
        let folder = above.last().map_or(String::new(), |(_, folder)| folder.clone());
        for name in names {
            if name == "gateway/src/" {
                above.push((depth, String::new()));
                continue;
            }
            drawn.entry(folder.clone()).or_default().insert(name.to_owned());
            if name.ends_with('/') {
                above.push((depth, format!("{folder}{name}")));
            }
        }
    }
    drawn
}

/// What there is: folder, and the names in it.
fn real() -> BTreeMap<String, BTreeSet<String>> {
    let mut real: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in below("gateway/src") {
        let path = source.path.strip_prefix("gateway/src/").expect("it is below");
        let parts: Vec<&str> = path.split('/').collect();
        if parts.iter().any(|part| matches!(*part, "tests" | "tests.rs") || part.ends_with("_tests.rs")) {
            continue;
        }
        for (level, part) in parts.iter().enumerate() {
            let folder: String = parts[..level].iter().map(|part| format!("{part}/")).collect();
            let name = if level + 1 == parts.len() { (*part).to_owned() } else { format!("{part}/") };
            real.entry(folder).or_default().insert(name);
        }
    }
    real
}
