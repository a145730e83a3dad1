//! Hosts' files: which dialect one is written in, and its servers in the keys of `[upstreams.NAME]`.

// What is said of a server, with its place.
mod note;
// Where the servers stand in a file, and whose dialect that is.
mod dialect;
// The keys of hosts' files: what has a meaning here, and what has none.
mod words;
// One server: its keys as ours.
mod entry;
// References to variables, from the form of a host to ours.
mod variables;

use std::collections::HashMap;
use std::ops::Range;

use super::node::Node;

pub(crate) use note::Note;

/// What is said of an entry that is a part of its host and no server: who takes servers over hears it, and nobody else.
pub(crate) const PART: &str = "part-of-host";

/// The servers of a host's file, and what is to be said of them.
#[derive(Debug, Default)]
pub(crate) struct Hosted {
    pub(crate) servers: Vec<Server>,
    pub(crate) notes: Vec<Note>,
}

/// One server, in our keys.
#[derive(Debug)]
pub(crate) struct Server {
    /// As an upstream is named.
    pub(crate) slug: String,
    /// As the host names it.
    pub(crate) name: String,
    pub(crate) node: Node,
}

/// Whether a file is a host's: it has servers under a key of a host, and none under ours.
pub(crate) fn is_hosted(root: &Node) -> bool {
    root.get("upstreams").is_none() && root.get("mcp_servers").is_some()
}

/// Reads the servers of a file. Of those that cannot be named, or whose name is taken, a note is left.
pub(crate) fn read(root: &Node) -> Hosted {
    let mut hosted = Hosted::default();
    let mut taken: HashMap<String, (String, Range<usize>)> = HashMap::new();
    let inputs = variables::Inputs::of(root);
    for found in dialect::servers(root) {
        let slug = slug(&found.name);
        let at = found.node.key_or_span();
        if slug.is_empty() {
            let (text, label) = match found.name.is_empty() {
                true => ("a server without a name is left out".to_owned(), "write its `name`".to_owned()),
                false => (
                    format!("invalid upstream name `{}`; it is left out", found.name),
                    "rename it: a name needs a letter or a digit of a-z, 0-9".to_owned(),
                ),
            };
            hosted.notes.push(Note { label: Some(label), ..Note::new("bad-name", at, text) });
            continue;
        }
        if let Some(kind) = found.part_of_host() {
            let text = format!("`{}` is {kind}, which only Goose can run; it stays there", found.name);
            hosted.notes.push(Note::new(PART, at, text));
            continue;
        }
        if let Some((other, first)) = taken.get(&slug) {
            // The same name in two projects of one host: the nearer one counts.
            let what = match *other == found.name {
                true => format!("`{other}` is defined twice"),
                false => format!("`{other}` and `{}` are both named `{slug}`", found.name),
            };
            let label = Some("left out; rename one".to_owned());
            hosted.notes.push(Note { label, other: Some(first.clone()), ..Note::new("duplicate-name", at, what) });
            continue;
        }
        taken.insert(slug.clone(), (found.name.clone(), at.clone()));
        match entry::read(&found.name, found.node, found.dialect, &inputs, &mut hosted.notes) {
            Ok(node) => hosted.servers.push(Server { slug, name: found.name, node }),
            Err(note) => {
                let text = format!("{}; `{}` is left out", note.text, found.name);
                hosted.notes.push(Note { text, ..note });
            }
        }
    }
    hosted
}

/// A name made of what may stand in a name: lower case, everything else one hyphen.
pub(crate) fn slug(name: &str) -> String {
    let mut slug = String::new();
    for char in name.chars().flat_map(char::to_lowercase) {
        if char.is_ascii_alphanumeric() {
            slug.push(char);
        } else if !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.trim_matches('-').chars().take(32).collect::<String>().trim_end_matches('-').to_owned()
}

/// Whether a host's entry starts this program: as an upstream it would start itself without end.
pub(crate) fn starts_us(command: &str, args: &[String]) -> bool {
    let stem = std::path::Path::new(command).file_stem().map(|stem| stem.to_string_lossy());
    stem.is_some_and(|stem| stem == "trunkline" || stem.starts_with("trunkline-"))
        && args.iter().any(|arg| arg == "stdio")
}

#[cfg(test)]
mod tests;
