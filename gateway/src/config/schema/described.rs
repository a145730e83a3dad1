//! What each key means, in the words of `docs/configuration.md`, so that an editor shows what the documentation says.

use std::collections::HashMap;

use crate::config::read::ANY;

/// Tables of keys below headings such as `[server]` and `[[auth.tokens]]`.
const DOCS: &str = include_str!("../../../../docs/configuration.md");

/// The meanings of keys and tables, each by its path.
#[derive(Debug)]
pub(super) struct Described(HashMap<Vec<String>, String>);

impl Described {
    /// Reads the documentation.
    pub(super) fn read() -> Self {
        let (mut found, mut section, mut is_new) = (HashMap::new(), None, false);
        for line in DOCS.lines().filter(|line| !line.is_empty()) {
            if let Some(heading) = line.strip_prefix("## ") {
                (section, is_new) = (path_of(heading), true);
                continue;
            }
            let Some(path) = &section else { continue };
            match line.strip_prefix("| `").and_then(|rest| rest.split_once('`')) {
                Some((key, rest)) => {
                    // The type, the default, the meaning.
                    if let [_, _, default, meaning] = rest.splitn(4, '|').map(str::trim).collect::<Vec<_>>()[..] {
                        let key = [&path[..], &[key.to_owned()]].concat();
                        found.insert(key, said(meaning.trim_end_matches(['|', ' ']), default));
                    }
                }
                None if is_new && !line.starts_with(['|', '`']) => drop(found.insert(path.clone(), plain(line))),
                None => {}
            }
            is_new = false;
        }
        Self(found)
    }

    /// What is said of the key at a path. What an upstream may say of itself is said of `[defaults]`, and what an address of several
    /// may say of the one under `[server]`.
    pub(super) fn of(&self, path: &[String]) -> Option<&str> {
        let below = |short: &str, from: usize| [&[short.to_owned()], &path[from..]].concat();
        let other = match path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["upstreams", ANY, ..] => below("defaults", 2),
            ["server", "listeners", ANY, ..] => below("server", 3),
            _ => path.to_vec(),
        };
        self.0.get(path).or_else(|| self.0.get(&other)).map(String::as_str)
    }
}

/// The path of a heading: `[upstreams.NAME]` is that of each upstream.
fn path_of(heading: &str) -> Option<Vec<String>> {
    let name = heading.strip_prefix('[')?.trim_matches(['[', ']']);
    let part = |part: &str| if part == "NAME" { ANY.to_owned() } else { part.to_owned() };
    let mut path: Vec<String> = name.split('.').map(part).collect();
    // What lies in an entry of a list lies in each of them.
    if name.starts_with("auth.issuers.") {
        path.insert(2, ANY.to_owned());
    }
    if heading.starts_with("[[") || name.ends_with("override") {
        path.push(ANY.to_owned());
    }
    Some(path)
}

fn said(meaning: &str, default: &str) -> String {
    match default {
        "" => plain(meaning),
        default => format!("{} (default: {})", plain(meaning), plain(default)),
    }
}

/// A text without the targets of its links, which lead nowhere in an editor.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        // The bracket of a link is the last one before its target.
        let (head, label) = before.rsplit_once('[').unwrap_or((before, ""));
        out.push_str(head);
        out.push_str(label);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_their_words() {
        assert_eq!(plain("a [b `[c]`](d.md#e) f [g](h)"), "a [b `c]` f g");
        assert_eq!(plain("`a` [b](c)."), "`a` b.");
    }
}
