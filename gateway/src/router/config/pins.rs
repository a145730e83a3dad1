//! The tools that somebody has approved, by their definitions: a line of JSON for each, so that another definition is another line.

use crate::protocol::value::canonical;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

/// How a digest begins.
const DIGEST: &str = "sha256:";

/// What becomes of tools that nobody has approved as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pin {
    /// They are like all others.
    #[default]
    Off,
    /// They are warned of.
    Warn,
    /// They are not listed, and cannot be called.
    Hold,
}

impl Pin {
    /// Its word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Warn => "warn",
            Self::Hold => "hold",
        }
    }
}

/// What is asked of tools, and which have been approved.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pins {
    /// What becomes of those that have not.
    pub pin: Pin,
    /// Where those stand that have; `None` where there is no folder for that.
    pub file: Option<PathBuf>,
    /// They.
    pub approved: Approved,
}

/// The approved tools, by upstream and own name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Approved(Arc<BTreeMap<Box<str>, Tools>>);

/// Those of one upstream. A tool may have a definition for each era.
type Tools = BTreeMap<Box<str>, Vec<Approval>>;

/// A definition that was approved.
#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    /// What the tool is by it.
    pub digest: [u8; 32],
    /// Its text, where that was kept.
    pub definition: Option<Box<str>>,
}

/// One of them, as it stands in the file.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Line {
    upstream: Box<str>,
    tool: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    definition: Option<Box<RawValue>>,
}

impl Approval {
    /// That of a definition, whose text is kept.
    pub fn of(definition: &str) -> Self {
        Self { digest: canonical::definition(definition.as_bytes(), None), definition: Some(definition.into()) }
    }

    /// The same, without the text.
    #[must_use]
    pub fn without_text(self) -> Self {
        Self { definition: None, ..self }
    }
}

impl Approved {
    /// What stands in a file: an error says in which line, and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut all: BTreeMap<Box<str>, Tools> = BTreeMap::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (upstream, tool, approval) = parse(line).map_err(|why| (at + 1, why))?;
            all.entry(upstream).or_default().entry(tool).or_default().push(approval);
        }
        Ok(Self(Arc::new(all)))
    }

    /// The text of a file that has them, in order.
    pub fn lines(&self) -> String {
        let mut out = String::new();
        for (upstream, tools) in &*self.0 {
            for (tool, approval) in tools.iter().flat_map(|(tool, all)| all.iter().map(move |one| (tool, one))) {
                let text = approval.definition.as_deref();
                let definition = text.and_then(|text| RawValue::from_string(text.to_owned()).ok());
                let digest = definition.is_none().then(|| shown(&approval.digest));
                let line = Line { upstream: upstream.clone(), tool: tool.clone(), digest, definition };
                out.push_str(&serde_json::to_string(&line).expect("texts can be written"));
                out.push('\n');
            }
        }
        out
    }

    /// From now on a tool is approved as it is by these definitions, and by no other.
    pub fn set(&mut self, upstream: &str, tool: &str, approvals: Vec<Approval>) {
        Arc::make_mut(&mut self.0).entry(upstream.into()).or_default().insert(tool.into(), approvals);
    }

    /// What another one has counts here, too, with its texts or without.
    pub fn take(&mut self, other: &Self, digests: bool) {
        let bare = |one: &Approval| if digests { one.clone().without_text() } else { one.clone() };
        for (upstream, tools) in &*other.0 {
            for (tool, all) in tools {
                self.set(upstream, tool, all.iter().map(bare).collect());
            }
        }
    }

    /// As what a tool was approved; nothing where it never was.
    pub fn of(&self, upstream: &str, tool: &str) -> &[Approval] {
        self.0.get(upstream).and_then(|tools| tools.get(tool)).map_or(&[], |all| all)
    }

    /// The tools of an upstream, by their own names.
    pub fn tools_of(&self, upstream: &str) -> impl Iterator<Item = (&str, &[Approval])> {
        self.0.get(upstream).into_iter().flatten().map(|(tool, all)| (&**tool, &**all))
    }
}

/// A digest as a text.
pub fn shown(digest: &[u8; 32]) -> String {
    let mut text = DIGEST.to_owned();
    digest.iter().for_each(|byte| _ = write!(text, "{byte:02x}"));
    text
}

fn parse(line: &str) -> Result<(Box<str>, Box<str>, Approval), String> {
    let Line { upstream, tool, digest, definition } = serde_json::from_str(line).map_err(|error| {
        // It names the line within the line.
        let said = error.to_string();
        said.split(" at line ").next().unwrap_or_default().to_owned()
    })?;
    let approval = match (definition, digest) {
        (Some(definition), None) => match definition.get().starts_with('{') {
            true => Approval::of(definition.get()),
            false => return Err("`definition` must be an object".to_owned()),
        },
        (None, Some(digest)) => {
            let read = digest.strip_prefix(DIGEST).and_then(read);
            let digest = read.ok_or_else(|| format!("`digest` must be \"{DIGEST}\" and 64 hexadecimal digits"))?;
            Approval { digest, definition: None }
        }
        _ => return Err("it needs either `definition` or `digest`".to_owned()),
    };
    Ok((upstream, tool, approval))
}

/// 64 hexadecimal digits.
fn read(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, at) in digest.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: &str = r#"{"name":"read","description":"Reads","inputSchema":{"type":"object","properties":{}}}"#;

    #[test]
    fn what_was_written_is_read_back_by_text_or_by_digest() {
        let mut approved = Approved::default();
        approved.set("fs", "read", vec![Approval::of(READ)]);
        approved.set("a", "b", vec![Approval::of("{}"), Approval::of(r#"{"name":"b"}"#).without_text()]);
        let text = approved.lines();
        assert_eq!(text.lines().count(), 3);
        assert!(
            text.ends_with(&format!("{{\"upstream\":\"fs\",\"tool\":\"read\",\"definition\":{READ}}}\n")),
            "{text}"
        );
        assert_eq!(Approved::parse(&format!("# by hand\n\n{text}")), Ok(approved.clone()));
        assert_eq!(approved.of("fs", "read")[0].digest, Approval::of(READ).digest);
        assert!(approved.of("fs", "write").is_empty() && approved.of("b", "read").is_empty());
        approved.set("fs", "read", Vec::new());
        assert!(approved.of("fs", "read").is_empty());
    }

    #[test]
    fn a_tool_is_the_same_in_another_order_and_spacing_and_with_other_icons_and_not_with_another_word() {
        let same = r#"{ "_meta": {"at": 3}, "inputSchema": {"properties": {}, "type": "object"}, "name": "read", "icons": [],
            "description": "Reads" }"#;
        assert_eq!(Approval::of(same).digest, Approval::of(READ).digest);
        for (part, other) in [
            ("Reads", "Reads "),
            ("\"name\":\"read\"", "\"name\":\"reads\""),
            ("\"properties\":{}", "\"properties\":{\"path\":{}}"),
            ("\"name\"", "\"annotations\":{\"readOnlyHint\":true},\"name\""),
            ("\"name\"", "\"title\":\"x\",\"name\""),
            ("\"name\"", "\"outputSchema\":{},\"name\""),
        ] {
            assert_ne!(Approval::of(&READ.replacen(part, other, 1)).digest, Approval::of(READ).digest, "{other}");
        }
    }

    #[test]
    fn a_line_that_says_nothing_certain_is_named_by_its_number() {
        let digest = format!("sha256:{}", "0f".repeat(32));
        let good = format!(r#"{{"upstream":"a","tool":"b","digest":"{digest}"}}"#);
        assert_eq!(shown(&Approved::parse(&good).unwrap().of("a", "b")[0].digest), digest);
        for (line, why) in [
            ("{", "EOF"),
            (r#"{"upstream":"a","tool":"b"}"#, "either `definition` or `digest`"),
            (&*good.replace("\"digest\"", "\"definition\":{},\"digest\""), "either"),
            (&*good.replace("sha256:", ""), "64 hexadecimal"),
            (&*good.replace("0f0f", "+f0f"), "64 hexadecimal"),
            (r#"{"upstream":"a","tool":"b","definition":[]}"#, "an object"),
            (r#"{"upstream":"a","tool":"b","definition":{},"by":"me"}"#, "unknown field `by`"),
            (r#"{"tool":"b","definition":{}}"#, "missing field `upstream`"),
        ] {
            let (at, said) = Approved::parse(&format!("{good}\n{line}")).unwrap_err();
            assert!(at == 2 && said.contains(why) && !said.contains(" at line "), "{at} {said}");
        }
    }
}
