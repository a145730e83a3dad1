//! How an upstream is spoken to: by the protocol, or by calls of tools alone.

use crate::protocol::json;
use bytes::Bytes;

/// The longest name of a tool.
const NAME_BYTES_MAX: usize = 128;

/// How an upstream is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// By the protocol, which begins with a handshake or a question for the era.
    #[default]
    Mcp,
    /// By `tools/list` and `tools/call`, each by itself, with nothing before: an HTTP server that keeps no sessions.
    CallsOnly,
    /// By one object a call, `{id, name, arguments}`, which is answered by one with the same id.
    Bare,
}

/// What the tools of an upstream are that has no list of them.
#[derive(Debug, Default)]
pub struct Definitions(Vec<u8>);

impl Definitions {
    /// Takes the definition of a tool, JSON without its name; what is wrong with it, where it is none.
    pub fn add(&mut self, name: &str, text: &str) -> Result<(), String> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(format!("the name of a tool has 1 to {NAME_BYTES_MAX} bytes"));
        }
        let text = text.as_bytes();
        let is_object = |raw: &[u8]| raw.starts_with(b"{");
        if json::document(text).is_err() || !is_object(text) {
            let example = r#"'{"description":"…","inputSchema":{"type":"object","properties":{}}}'"#;
            return Err(format!("expected a JSON object such as {example}"));
        }
        if json::get(text, "name").is_some() {
            return Err("its name is the key; leave `name` out".to_owned());
        }
        let schema = json::get(text, "inputSchema");
        if schema.is_some_and(|schema| !is_object(schema)) {
            return Err("`inputSchema` must be an object".to_owned());
        }
        let Self(list) = self;
        list.extend_from_slice(if list.is_empty() { b"" } else { b"," });
        list.extend_from_slice(format!("{{\"name\":{}", json::quote(name)).as_bytes());
        if schema.is_none() {
            list.extend_from_slice(b",\"inputSchema\":{\"type\":\"object\"}");
        }
        json::others(text, &[], list);
        list.push(b'}');
        Ok(())
    }

    /// What `tools/list` would answer; `None` where no tool is defined.
    pub fn list(self) -> Option<Bytes> {
        let Self(list) = self;
        (!list.is_empty()).then(|| [b"{\"tools\":[", &list[..], b"]}"].concat().into())
    }
}
