//! `Mcp-Param-*`: the tool arguments that a schema wants mirrored in headers, compiled once per tool.

mod node;
mod schema;

use super::headers::{decode, encode};
use crate::json;
use crate::json::{Fault, Members};
use crate::steps;
use http::{HeaderName, HeaderValue};
use node::{Node, shown};

/// The largest integer that may be mirrored: beyond it peers disagree on its value.
const INTEGER_MAX: i64 = (1 << 53) - 1;

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// Its arguments mean two things.
    Arguments(String),
    /// Its headers and its arguments do not agree.
    Headers(String),
}

/// Which arguments of a tool are mirrored, and in which headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamHeaders {
    headers: Vec<HeaderName>,
    /// The root of the paths that lead to them.
    root: Node,
}

impl ParamHeaders {
    /// Reads an input schema's `x-mcp-header` annotations. `Ok(None)`: it has none. An error names what breaks the rules:
    /// such a tool may not be offered over HTTP.
    pub fn compile(input_schema: &[u8]) -> Result<Option<Self>, String> {
        steps::add(input_schema.len());
        if memchr::memmem::find(input_schema, schema::ANNOTATION.as_bytes()).is_none() {
            return Ok(None);
        }
        let (headers, root) = schema::read(input_schema)?;
        Ok((!headers.is_empty()).then_some(Self { headers, root }))
    }

    /// The headers for raw arguments that [`Self::check`] has let pass.
    pub fn make(&self, arguments: Option<&[u8]>) -> Vec<(HeaderName, HeaderValue)> {
        let found = self.look_up(arguments).unwrap_or_default();
        let texts = self.headers.iter().zip(found).filter_map(|(header, raw)| Some((header, text(raw?)?)));
        texts.map(|(header, text)| (header.clone(), encode(&text))).collect()
    }

    /// Whether raw arguments say one thing to every receiver, and the headers of a request, where it has any of this kind, agree
    /// with them; headers that no annotation asks for are let be.
    pub fn check(&self, arguments: Option<&[u8]>, given: Option<&[(HeaderName, HeaderValue)]>) -> Result<(), Unfit> {
        let found = self.look_up(arguments).map_err(Unfit::Arguments)?;
        given.map_or(Ok(()), |given| self.agree(found, given).map_err(Unfit::Headers))
    }

    fn agree(&self, found: Vec<Option<&[u8]>>, given: &[(HeaderName, HeaderValue)]) -> Result<(), String> {
        for (header, raw) in self.headers.iter().zip(found) {
            let mut values = given.iter().filter(|(name, _)| name == header).map(|(_, value)| value);
            let value = values.next();
            if values.next().is_some() {
                return Err(format!("the header `{header}` stands twice"));
            }
            match (raw.and_then(text), value) {
                (None, None) => {}
                (None, Some(_)) => return Err(format!("the header `{header}` has no argument")),
                (Some(_), None) => return Err(format!("the header `{header}` is missing")),
                (Some(expected), Some(value)) => match decode(value) {
                    Some(seen) if same(&seen, &expected) => {}
                    Some(_) => return Err(format!("the header `{header}` and the argument disagree")),
                    None => return Err(format!("the header `{header}` cannot be decoded")),
                },
            }
        }
        Ok(())
    }

    /// The raw values that the headers mirror, by one walk over the arguments for all of them.
    fn look_up<'a>(&self, arguments: Option<&'a [u8]>) -> Result<Vec<Option<&'a [u8]>>, String> {
        let mut found = vec![None; self.headers.len()];
        if let Some(raw) = arguments {
            let end = Walk { raw, found: &mut found }.value(json::space(raw, 0), &self.root);
            end.map_err(|why| why.unwrap_or_else(|| "the arguments cannot be read".to_owned()))?;
        }
        Ok(found)
    }
}

/// One walk over raw arguments.
struct Walk<'a, 'f> {
    raw: &'a [u8],
    found: &'f mut [Option<&'a [u8]>],
}

impl Walk<'_, '_> {
    /// Notes what the paths from here lead to and returns where the value ends. An error without a text: it is not valid.
    fn value(&mut self, at: usize, node: &Node) -> Result<usize, Option<String>> {
        let unread = |_: Fault| None;
        let end = if node.members.is_empty() || self.raw.get(at) != Some(&b'{') {
            json::value(self.raw, at).map_err(unread)?
        } else {
            let (mut members, mut seen) = (Members::at(self.raw, at).map_err(unread)?, Vec::new());
            while let Some(member) = members.next_key().map_err(unread)? {
                let key = member.key(self.raw).unwrap_or_default();
                let next = std::str::from_utf8(&key).ok().and_then(|key| node.members.get_key_value(key));
                let end = match next {
                    // One receiver reads the first, another the last.
                    Some((name, _)) if seen.contains(&name) => {
                        return Err(Some(format!("the argument `{}` stands twice", shown(name))));
                    }
                    Some((name, next)) => {
                        seen.push(name);
                        self.value(member.value, next)?
                    }
                    None => json::value(self.raw, member.value).map_err(unread)?,
                };
                members.resume(end);
            }
            members.end()
        };
        if let Some(header) = node.header {
            self.found[header] = Some(&self.raw[at..end]);
        }
        Ok(end)
    }
}

/// The text that a raw value is mirrored as; `None` for null and for what cannot be mirrored.
fn text(raw: &[u8]) -> Option<String> {
    match raw.first()? {
        b'"' => json::unquote(raw).map(Into::into),
        b't' | b'f' => String::from_utf8(raw.to_vec()).ok(),
        b'{' | b'[' => None,
        _ => integer(std::str::from_utf8(raw).ok()?).map(|number| number.to_string()),
    }
}

fn same(seen: &str, expected: &str) -> bool {
    seen == expected || (integer(seen).is_some() && integer(seen) == integer(expected))
}

/// An integer in any spelling that is one: `42`, `42.0`, `4.2e1`.
fn integer(text: &str) -> Option<i64> {
    let number = text.parse::<i64>().ok().or_else(|| {
        let float: f64 = text.parse().ok()?;
        (float.fract() == 0.0 && float.abs() <= INTEGER_MAX as f64).then_some(float as i64)
    })?;
    (number.unsigned_abs() <= INTEGER_MAX as u64).then_some(number)
}

#[cfg(test)]
mod tests;
