//! The objects of a stream, and what ConfigMaps and Secrets among them hold.

use std::collections::HashMap;
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::config::fault::{Fault, Place, excerpt};
use crate::config::source::node::{Node, Shape};
use crate::config::source::yaml;

use super::object::{items, kind, name};

/// What stands before the first document of a stream, and between two.
const MARK: &str = "---";

/// All objects of a stream.
pub(super) struct Objects {
    /// In their order.
    pub(super) all: Vec<Node>,
    /// ConfigMaps and Secrets, by kind and name.
    data: HashMap<(String, String), Vec<(String, String)>>,
}

impl Objects {
    /// Those of a text.
    pub(super) fn of(text: &str) -> Result<Self, Box<Fault>> {
        let all: Vec<Node> = documents(text)?.into_iter().flat_map(items).collect();
        let named = all.iter().filter_map(|object| Some(((kind(object).to_owned(), name(object)?), object)));
        let data = named.map(|(name, object)| (name, content(object))).collect();
        Ok(Self { all, data })
    }

    /// The data of an object of this kind and name, where it is among the manifests.
    pub(super) fn data(&self, kind: &str, name: &str) -> Option<&[(String, String)]> {
        self.data.get(&(kind.to_owned(), name.to_owned())).map(Vec::as_slice)
    }
}

/// The documents of a stream. A mark at the beginning of a line is no part of any value.
fn documents(text: &str) -> Result<Vec<Node>, Box<Fault>> {
    let (mut pieces, mut start, mut at) = (Vec::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        if line.strip_prefix(MARK).is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace)) {
            pieces.push(start..at);
            start = at + MARK.len();
        }
        at += line.len();
    }
    pieces.push(start..at);
    pieces.into_iter().map(|piece| document(text, piece)).collect()
}

fn document(text: &str, piece: Range<usize>) -> Result<Node, Box<Fault>> {
    let whole = yaml::whole(&text[piece.clone()]).map_err(|syntax| {
        let at = piece.start + syntax.at.start..piece.start + syntax.at.end;
        let place = Place::File { path: "stdin".to_owned(), excerpt: excerpt(text, at, &[], &[]) };
        Box::new(Fault::error("syntax", syntax.text).at(Some(place)))
    })?;
    Ok(whole.root)
}

/// The data of a ConfigMap or of a Secret as texts.
fn content(object: &Node) -> Vec<(String, String)> {
    let is_secret = kind(object) == "Secret";
    let of = |key: &str| object.get(key).map(Node::entries).unwrap_or_default();
    let of_text = |(name, node): &(String, Node)| match &node.shape {
        Shape::Text(text) => Some((name.clone(), text.clone())),
        _ => None,
    };
    let decoded = |(name, text): (String, String)| {
        let bytes = STANDARD.decode(text.trim()).ok()?;
        Some((name, String::from_utf8(bytes).ok()?))
    };
    match is_secret {
        true => {
            let encoded = of("data").iter().filter_map(of_text).filter_map(decoded);
            encoded.chain(of("stringData").iter().filter_map(of_text)).collect()
        }
        false => of("data").iter().filter_map(of_text).collect(),
    }
}
