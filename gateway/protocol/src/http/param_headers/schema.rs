//! Reads the annotations of an input schema in one walk over its raw text.

use super::node::{ANNOTATIONS_MAX, Node, shown};
use crate::http::headers::PARAM_PREFIX;
use crate::json;
use crate::json::{Fault, Members};
use http::HeaderName;
use std::collections::HashSet;

/// The keyword that asks for a header.
pub(super) const ANNOTATION: &str = "x-mcp-header";

/// The headers that a schema asks for, and the paths to what they mirror.
pub(super) fn read(schema: &[u8]) -> Result<(Vec<HeaderName>, Node), String> {
    let mut reader = Reader { raw: schema, headers: Vec::new(), claimed: HashSet::new() };
    let mut root = Node::default();
    let start = json::space(schema, 0);
    reader.schema(start, Some((&mut root, None)), 0)?;
    Ok((reader.headers, root))
}

struct Reader<'a> {
    raw: &'a [u8],
    headers: Vec<HeaderName>,
    claimed: HashSet<HeaderName>,
}

/// What one schema says of itself.
#[derive(Default)]
struct Said<'a> {
    annotation: Option<&'a [u8]>,
    kind: Option<&'a [u8]>,
}

impl<'a> Reader<'a> {
    /// Reads the schema at `at` and returns where it ends. `place` is where in the arguments stands what it describes, with the name
    /// of that; `None` where no chain of `properties` leads to it, so that it may ask for no header.
    fn schema(&mut self, at: usize, place: Option<(&mut Node, Option<&str>)>, depth: u32) -> Result<usize, String> {
        if depth > json::DEPTH_MAX {
            return Err("the schema is nested too deep".into());
        }
        let raw = self.raw;
        match raw.get(at) {
            Some(b'{') => {}
            Some(b'[') => return self.array(at, depth),
            _ => return json::value(raw, at).map_err(unread),
        }
        let (mut node, name) = place.map_or((None, None), |(node, name)| (Some(node), name));
        let mut said = Said::default();
        let mut members = Members::at(raw, at).map_err(unread)?;
        while let Some(member) = members.next_key().map_err(unread)? {
            let value = member.value;
            let end = match &*member.key(raw).unwrap_or_default() {
                b"properties" if raw.get(value) == Some(&b'{') => self.properties(value, node.as_deref_mut(), depth)?,
                b"default" | b"const" | b"enum" | b"examples" => json::value(raw, value).map_err(unread)?,
                b"x-mcp-header" => {
                    let end = json::value(raw, value).map_err(unread)?;
                    if said.annotation.replace(&raw[value..end]).is_some() {
                        return Err("x-mcp-header stands twice in one schema".into());
                    }
                    end
                }
                b"type" => {
                    let end = self.schema(value, None, depth + 1)?;
                    said.kind = Some(&raw[value..end]);
                    end
                }
                _ => self.schema(value, None, depth + 1)?,
            };
            members.resume(end);
        }
        if let Some(annotation) = said.annotation {
            let (Some(node), Some(name)) = (node, name) else {
                return Err("x-mcp-header stands where no chain of `properties` leads".into());
            };
            node.header = Some(self.claim(annotation, said.kind, name)?);
        }
        Ok(members.end())
    }

    /// As [`Self::schema`], of the schemas of an object's members.
    fn properties(&mut self, at: usize, mut node: Option<&mut Node>, depth: u32) -> Result<usize, String> {
        let raw = self.raw;
        let mut members = Members::at(raw, at).map_err(unread)?;
        while let Some(member) = members.next_key().map_err(unread)? {
            let key = member.key(raw).unwrap_or_default();
            let name = std::str::from_utf8(&key).map_err(|_| "invalid UTF-8")?;
            let mut below = Node::default();
            let place = node.is_some().then_some((&mut below, Some(name)));
            let end = self.schema(member.value, place, depth + 1)?;
            if let Some(node) = node.as_deref_mut() {
                if node.members.contains_key(name) {
                    return Err(format!("the property {:?} stands twice", shown(name)));
                }
                // Only what leads to a header is kept.
                if below != Node::default() {
                    node.members.insert(name.into(), below);
                }
            }
            members.resume(end);
        }
        Ok(members.end())
    }

    fn array(&mut self, at: usize, depth: u32) -> Result<usize, String> {
        let mut at = json::space(self.raw, at + 1);
        if self.raw.get(at) == Some(&b']') {
            return Ok(at + 1);
        }
        loop {
            at = json::space(self.raw, self.schema(at, None, depth + 1)?);
            match self.raw.get(at) {
                Some(b',') => at = json::space(self.raw, at + 1),
                Some(b']') => return Ok(at + 1),
                _ => return Err(unread(Fault::Syntax(at))),
            }
        }
    }

    /// Takes a header for an argument; returns its number.
    fn claim(&mut self, annotation: &[u8], kind: Option<&[u8]>, name: &str) -> Result<usize, String> {
        let text = json::unquote(annotation).filter(|text| !text.is_empty()).ok_or("x-mcp-header must be a text")?;
        let header = HeaderName::from_bytes(format!("{PARAM_PREFIX}{text}").as_bytes())
            .map_err(|_| format!("x-mcp-header {:?} is no header name", shown(&text)))?;
        let kind = kind.and_then(json::unquote).unwrap_or_default();
        if !matches!(&*kind, "string" | "integer" | "boolean") {
            return Err(format!("x-mcp-header on {:?}, which is no string, integer or boolean", shown(name)));
        }
        if self.headers.len() >= ANNOTATIONS_MAX {
            return Err(format!("it has more than {ANNOTATIONS_MAX} x-mcp-header annotations"));
        }
        if !self.claimed.insert(header.clone()) {
            return Err(format!("two arguments claim the header {}", shown(header.as_str())));
        }
        self.headers.push(header);
        Ok(self.headers.len() - 1)
    }
}

fn unread(fault: Fault) -> String {
    fault.to_string()
}
