//! Hosts' files: which dialect one is written in, and its servers in the keys of `[upstreams.NAME]`.

// The name of a server as that of an upstream.
mod slug;
// What is said of a server, with its place.
mod note;
// Where the servers stand in a file, and whose dialect that is.
mod dialect;
// The keys of hosts' files: what has a meaning here, and what has none.
mod words;
// One server: its keys as ours.
mod entry;
// Time-outs, in the units of the host.
mod times;
// References to variables, from the form of a host to ours.
mod variables;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::node::{Node, Unusable};

pub(crate) use dialect::at;
pub(crate) use note::Note;
pub(crate) use slug::slug;
pub(crate) use words::HOST_DOC;

/// What is said of an entry that is a part of its host and no server: who takes servers over hears it, and nobody else.
pub(crate) const PART: &str = "part-of-host";

/// The servers of a host's file, and what is to be said of them.
#[derive(Debug, Default)]
pub(crate) struct Hosted {
    pub(crate) servers: Vec<Server>,
    pub(crate) notes: Vec<Note>,
    pub(crate) left_out: Vec<Unusable>,
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

/// Whether a file has servers of opencode where its second version has them, and the one of this name not beside those alone.
pub(crate) fn is_of_opencode_two(root: &Node, name: &str) -> bool {
    let Some(mcp) = root.get("mcp") else { return false };
    dialect::nested(mcp).is_some_and(|servers| servers.get(name).is_some() || mcp.get(name).is_none())
}

/// Reads the servers of a file, whose dialect is `certain` where its place tells it. Of those that have no name, or the name of another, a
/// note is left.
pub(crate) fn read(root: &Node, certain: Option<dialect::Dialect>) -> Hosted {
    let mut hosted = Hosted::default();
    let mut taken: HashMap<String, (String, Range<usize>)> = HashMap::new();
    let inputs = variables::Inputs::of(root);
    let all = dialect::servers(root, certain);
    let mut slugs = Slugs { all: all.iter().map(|found| slug(&found.name)).collect(), next: HashMap::new() };
    let mut known: HashMap<String, Range<usize>> = HashMap::new();
    for found in all {
        let at = found.node.key_or_span();
        if found.name.is_empty() {
            let note = Note::new("bad-name", at, "a server without a name is left out");
            hosted.notes.push(Note { label: Some("write its `name`".to_owned()), ..note });
            continue;
        }
        if let Some(kind) = found.part_of_host() {
            let text = format!("`{}` is {kind}, which only Goose can run; it stays there", found.name);
            hosted.notes.push(Note::new(PART, at, text));
            continue;
        }
        // The same name in two projects of one host: the nearer one counts.
        if let Some(first) = known.get(&found.name) {
            let (label, text) = (Some("left out; rename one".to_owned()), format!("`{}` is defined twice", found.name));
            hosted.notes.push(Note { label, other: Some(first.clone()), ..Note::new("duplicate-name", at, text) });
            continue;
        }
        let mut slug = slug(&found.name);
        if slug.is_empty() {
            slug = slugs.numbered("server", 1);
        } else if let Some((other, first)) = taken.get(&slug) {
            let text = format!("`{other}` and `{}` are both named `{slug}`", found.name);
            slug = slugs.numbered(&slug, 2);
            let label = Some(format!("here it is `{slug}`; rename one to choose"));
            hosted.notes.push(Note {
                label,
                other: Some(first.clone()),
                ..Note::new("duplicate-name", at.clone(), text)
            });
        }
        known.insert(found.name.clone(), at.clone());
        taken.insert(slug.clone(), (found.name.clone(), at.clone()));
        let off = dialect::is_shut_out(root, &found);
        match entry::read(&found.name, (found.node, off), found.dialect, &inputs, &mut hosted.notes) {
            Ok(node) => hosted.servers.push(Server { slug, name: found.name, node }),
            Err(note) => {
                let text = format!("{}; `{}` is left out", note.text, found.name);
                hosted.left_out.push(Unusable { slug, name: found.name, at, why: note.text.clone() });
                hosted.notes.push(Note { text, ..note });
            }
        }
    }
    hosted
}

/// The names that servers of a file have here.
struct Slugs {
    all: HashSet<String>,
    /// Of a name that was numbered: the number that is tried next.
    next: HashMap<String, usize>,
}

impl Slugs {
    /// The first name with a number behind it that no server has.
    fn numbered(&mut self, begin: &str, first: usize) -> String {
        let begin = begin.get(..26).unwrap_or(begin).trim_end_matches('-');
        let next = self.next.entry(begin.to_owned()).or_insert(first);
        loop {
            let name = format!("{begin}-{next}");
            *next += 1;
            if self.all.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// Whether a host's entry starts this program: as an upstream it would start itself without end.
pub(crate) fn starts_us(command: &str, args: &[String]) -> bool {
    let stem = std::path::Path::new(command).file_stem().map(|stem| stem.to_string_lossy());
    stem.is_some_and(|stem| stem == "trunkline" || stem.starts_with("trunkline-"))
        && args.iter().any(|arg| arg == "stdio")
}

#[cfg(test)]
mod tests;
