//! One source of configuration: a tree of values, each with where it stands; a figment provider.

use std::ops::Range;
use std::path::PathBuf;

use figment::value::{Dict, Map, Value};
use figment::{Error, Metadata, Profile, Provider};

use super::excerpt::excerpt;
use super::fault::Place;

/// One source: a file, an environment variable, a flag, or what is built in.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) origin: Origin,
    /// The whole text, for excerpts; empty where there is none.
    pub(super) text: String,
    pub(super) root: Node,
}

/// What kind of source.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Origin {
    File(PathBuf),
    Variable(String),
    Flag(&'static str),
    Builtin,
}

/// One value, the bytes of its key, and its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Node {
    pub(super) key: Range<usize>,
    pub(super) span: Range<usize>,
    pub(super) shape: Shape,
}

/// What a value is, in file order.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
}

impl Default for Shape {
    fn default() -> Self {
        Self::Table(Vec::new())
    }
}

impl Source {
    /// A source of a single text at `path`.
    pub(super) fn single(origin: Origin, path: &[String], text: String) -> Self {
        let mut root = Node { shape: Shape::Text(text), ..Node::default() };
        for name in path.iter().rev() {
            root = Node { shape: Shape::Table(vec![(name.clone(), root)]), ..Node::default() };
        }
        Self { origin, text: String::new(), root }
    }

    /// The value at `path`, where this source has one.
    pub(super) fn node(&self, path: &[String]) -> Option<&Node> {
        path.iter().try_fold(&self.root, |node, name| match &node.shape {
            Shape::Table(entries) => entries.iter().find(|(key, _)| key == name).map(|(_, node)| node),
            Shape::List(items) => items.get(name.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// Where `mark` stands, for a person; `open` are the pieces of its line that may be shown.
    pub(super) fn place(&self, mark: Range<usize>, open: &[Range<usize>]) -> Option<Place> {
        match &self.origin {
            Origin::File(path) => {
                Some(Place::File { path: path.display().to_string(), excerpt: excerpt(&self.text, mark, open) })
            }
            Origin::Variable(name) => Some(Place::Variable(name.clone())),
            Origin::Flag(name) => Some(Place::Flag(name)),
            Origin::Builtin => None,
        }
    }
}

impl Node {
    /// Whether this is a single value: one that holds others may hold a secret.
    pub(super) fn is_single(&self) -> bool {
        !matches!(self.shape, Shape::List(_) | Shape::Table(_))
    }

    fn value(&self) -> Value {
        match &self.shape {
            Shape::Bool(value) => Value::from(*value),
            Shape::Integer(value) => Value::from(*value),
            Shape::Float(value) => Value::from(*value),
            Shape::Text(value) => Value::from(value.as_str()),
            Shape::List(items) => Value::from(items.iter().map(Self::value).collect::<Vec<_>>()),
            Shape::Table(entries) => Value::from(dict(entries)),
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
