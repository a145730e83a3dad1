//! One source of configuration: a tree of values, each with where it stands; a figment provider.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;

use figment::value::{Dict, Empty, Map, Tag, Value};
use figment::{Error, Metadata, Profile, Provider};

use super::comments::{is_plain, keys};
use crate::config::fault::{Place, excerpt, line_of};
use crate::steps;

/// The most keys of one table, and items of one list: more than any configuration that a person keeps.
pub(crate) const ENTRIES_MAX: usize = 2048;
/// The deepest that tables and lists lie in one another.
pub(crate) const DEPTH_MAX: usize = 32;

/// So many bytes on either side of a place references are looked for: more than an excerpt shows.
const NEAR: usize = 1024;

/// What is said of a value that is null where one must be.
pub(crate) const NULL: &str = "it is null";

/// One source: a file, an environment variable, a flag, or what is built in.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) origin: Origin,
    /// The whole text, for excerpts; empty where there is none.
    pub(crate) text: String,
    pub(crate) root: Node,
    /// The upstreams that are a host's servers: their names here and there.
    pub(crate) imported: Vec<(String, String)>,
    /// Of a host's servers those that cannot be used.
    pub(crate) left_out: Vec<Unusable>,
    /// The keys of the text, also those of which nothing was taken.
    pub(crate) names: Names,
}

/// A server of a host's file that cannot be used.
#[derive(Clone, Debug)]
pub(crate) struct Unusable {
    /// As an upstream is named.
    pub(crate) slug: String,
    /// As the host names it.
    pub(crate) name: String,
    pub(crate) at: Range<usize>,
    pub(crate) why: String,
}

/// Where the keys of a text stand of which not all is in the tree of values.
#[derive(Debug, Default)]
pub(crate) struct Names(OnceLock<Vec<Range<usize>>>);

impl Names {
    /// Those of a tree, before anything is left out of it.
    pub(crate) fn of(root: &Node) -> Self {
        let mut found = Vec::new();
        root.keys_in(&(0..usize::MAX), &mut found);
        found.sort_unstable_by_key(|key| key.start);
        Self(OnceLock::from(found))
    }

    /// Those in a line of a text. Those of well written JSON are looked for when they are first asked for.
    fn within(&self, line: &Range<usize>, text: &str) -> &[Range<usize>] {
        let found = self.0.get_or_init(|| keys(text));
        let from = found.partition_point(|key| key.start < line.start);
        let to = found.partition_point(|key| key.end <= line.end);
        found.get(from..to).unwrap_or_default()
    }
}

/// What kind of source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Origin {
    File(PathBuf),
    Variable(String),
    Flag(&'static str),
    Builtin,
}

/// One value, the bytes of its key, and its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Node {
    pub(crate) key: Range<usize>,
    pub(crate) span: Range<usize>,
    pub(crate) shape: Shape,
}

/// What a value is, in file order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
    /// In the file of a host: no value can be made of it, and why. It stands at what is wrong.
    Broken(String),
}

impl Default for Shape {
    fn default() -> Self {
        Self::Table(Vec::new())
    }
}

impl Source {
    /// A source of a single text at `path`.
    pub(crate) fn single(origin: Origin, path: &[String], text: String) -> Self {
        let mut root = Node { shape: Shape::Text(text), ..Node::default() };
        for name in path.iter().rev() {
            root = Node { shape: Shape::Table(vec![(name.clone(), root)]), ..Node::default() };
        }
        Self { origin, text: String::new(), root, imported: Vec::new(), left_out: Vec::new(), names: Names::default() }
    }

    /// The value at `path`, where this source has one.
    pub(crate) fn node(&self, path: &[String]) -> Option<&Node> {
        path.iter().try_fold(&self.root, |node, name| match &node.shape {
            Shape::Table(entries) => {
                steps::add(entries.len());
                entries.iter().find(|(key, _)| key == name).map(|(_, node)| node)
            }
            Shape::List(items) => items.get(name.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// Where `mark` stands, for a person; `open` are the pieces of its line that may be shown.
    pub(crate) fn place(&self, mark: Range<usize>, open: &[Range<usize>]) -> Option<Place> {
        match &self.origin {
            Origin::File(path) => {
                let (line, mut keys) = (line_of(&self.text, mark.start), Vec::new());
                self.root.keys_in(&line, &mut keys);
                keys.extend_from_slice(self.names.within(&line, &self.text));
                keys.sort_unstable_by_key(|key| key.start);
                keys.dedup();
                let open = [open, &references(&self.text, &line, mark.start)].concat();
                let excerpt = excerpt(&self.text, mark, &open, &keys);
                Some(Place::File { path: path.display().to_string(), excerpt })
            }
            Origin::Variable(name) => Some(Place::Variable(name.clone())),
            Origin::Flag(name) => Some(Place::Flag(name)),
            Origin::Builtin => None,
        }
    }
}

/// The references to variables near a place in its line: the name of a variable is no secret, but what stands for it without a value
/// may be one. A dollar sign that is written twice begins none.
fn references(text: &str, line: &Range<usize>, at: usize) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let (from, to) = (line.start.max(at.saturating_sub(NEAR)), line.end.min(at.saturating_add(NEAR)));
    let reference = |start: usize| {
        let name = bytes[start + 2..].iter().take_while(|byte| byte.is_ascii_uppercase() || **byte == b'_').count();
        let end = start + 2 + name;
        let is_one = name > 0 && !bytes[..start].ends_with(b"$");
        is_one.then_some(())?;
        match bytes.get(end) {
            Some(b'}') => Some(start..end + 1),
            Some(b':') => Some(start..end),
            _ => None,
        }
    };
    let near = bytes.get(from..to).unwrap_or_default();
    memchr::memmem::find_iter(near, b"${").filter_map(|start| reference(from + start)).collect()
}

impl Node {
    /// The members of a table, in file order; none of anything else.
    pub(crate) fn entries(&self) -> &[(String, Node)] {
        match &self.shape {
            Shape::Table(entries) => entries,
            _ => &[],
        }
    }

    /// Takes the member at `path` away.
    pub(crate) fn remove(&mut self, path: &[String]) {
        let (Shape::Table(entries), Some((name, below))) = (&mut self.shape, path.split_first()) else { return };
        match below {
            [] => entries.retain(|(key, _)| key != name),
            below => entries.iter_mut().filter(|(key, _)| key == name).for_each(|(_, node)| node.remove(below)),
        }
    }

    /// Where its key stands; its value where it has none.
    pub(crate) fn key_or_span(&self) -> Range<usize> {
        if self.key.is_empty() { self.span.clone() } else { self.key.clone() }
    }

    /// The member of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        steps::add(self.entries().len());
        self.entries().iter().find(|(key, _)| key == name).map(|(_, node)| node)
    }

    /// Whether this is a single value: one that holds others may hold a secret.
    pub(crate) fn is_single(&self) -> bool {
        !matches!(self.shape, Shape::List(_) | Shape::Table(_))
    }

    /// What is wrong in this value or below it, the first of it, and why.
    pub(crate) fn broken(&self) -> Option<(&Node, &str)> {
        match &self.shape {
            Shape::Broken(why) => Some((self, why)),
            Shape::List(items) => items.iter().find_map(Self::broken),
            Shape::Table(entries) => entries.iter().find_map(|(_, node)| node.broken()),
            _ => None,
        }
    }

    /// Whether two say the same, wherever they stand.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (&self.shape, &other.shape) {
            (Shape::Table(one), Shape::Table(other)) => {
                let has =
                    |(key, node): &(String, Self)| other.iter().any(|(name, other)| key == name && node.is_like(other));
                one.len() == other.len() && one.iter().all(has)
            }
            (Shape::List(one), Shape::List(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.is_like(other))
            }
            // A line that is named is another one where lines were put in above.
            (Shape::Broken(one), Shape::Broken(other)) => {
                let why = |text: &str| text.split(", first in line").next().map(str::to_owned);
                why(one) == why(other)
            }
            (one, other) => one == other,
        }
    }

    /// The keys at and below this value that stand in a line.
    fn keys_in(&self, line: &Range<usize>, keys: &mut Vec<Range<usize>>) {
        let below = |node: &Self, keys: &mut Vec<_>| {
            // A table with a heading has other parts elsewhere; the place of a single value says all.
            if !node.is_single() {
                node.keys_in(line, keys);
            }
        };
        match &self.shape {
            Shape::Table(entries) => {
                steps::add(entries.len());
                for (name, node) in entries {
                    if is_plain(name)
                        && !node.key.is_empty()
                        && line.start <= node.key.start
                        && node.key.end <= line.end
                    {
                        keys.push(node.key.clone());
                    }
                    below(node, keys);
                }
            }
            Shape::List(items) => items.iter().for_each(|node| below(node, keys)),
            _ => {}
        }
    }

    fn value(&self) -> Value {
        match &self.shape {
            Shape::Bool(value) => Value::from(*value),
            Shape::Integer(value) => Value::from(*value),
            Shape::Float(value) => Value::from(*value),
            Shape::Text(value) => Value::from(value.as_str()),
            Shape::List(items) => Value::from(items.iter().map(Self::value).collect::<Vec<_>>()),
            Shape::Table(entries) => Value::from(dict(entries)),
            // No server that has one is taken.
            Shape::Broken(_) => Value::Empty(Tag::Default, Empty::None),
        }
    }
}

impl Provider for Source {
    fn metadata(&self) -> Metadata {
        Metadata::named(match &self.origin {
            Origin::File(path) => path.display().to_string(),
            Origin::Variable(name) => name.clone(),
            Origin::Flag(name) => (*name).to_owned(),
            Origin::Builtin => "built in".to_owned(),
        })
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        let entries = match &self.root.shape {
            Shape::Table(entries) => dict(entries),
            _ => Dict::new(),
        };
        Ok(Profile::Default.collect(entries))
    }
}

fn dict(entries: &[(String, Node)]) -> Dict {
    entries.iter().map(|(key, node)| (key.clone(), node.value())).collect()
}
