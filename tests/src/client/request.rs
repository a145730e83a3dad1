//! A request as data: what it says, and what is put around it in a revision.

use crate::frame::{quote, with_meta};
use crate::revision::Revision;

/// A request or notification before it is sent.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its method.
    pub method: String,
    /// Its parameters: a JSON object as text, without `_meta`.
    pub params: String,
    /// Its raw id; without one the client counts.
    pub id: Option<String>,
    /// Its raw progress token.
    pub token: Option<String>,
    /// What it declares in the stateless era: JSON text; empty stands for what the client declares.
    pub capabilities: String,
    /// Further fields of `_meta`, each `"key":value`.
    pub meta: Vec<String>,
}

/// A call of a tool with arguments (JSON text).
#[must_use]
pub fn tool(name: &str, arguments: &str) -> Request {
    Request::new("tools/call", &format!("{{\"name\":{},\"arguments\":{arguments}}}", quote(name)))
}

impl Request {
    /// A request with parameters (JSON text).
    #[must_use]
    pub fn new(method: &str, params: &str) -> Request {
        Request {
            method: method.into(),
            params: params.into(),
            id: None,
            token: None,
            capabilities: String::new(),
            meta: Vec::new(),
        }
    }

    /// The same with this raw id.
    #[must_use]
    pub fn id(mut self, raw: &str) -> Request {
        self.id = Some(raw.into());
        self
    }

    /// The same with this raw progress token.
    #[must_use]
    pub fn token(mut self, raw: &str) -> Request {
        self.token = Some(raw.into());
        self
    }

    /// The same, declaring these capabilities (JSON text) in place of the client's.
    #[must_use]
    pub fn capabilities(mut self, capabilities: &str) -> Request {
        self.capabilities = capabilities.into();
        self
    }

    /// The same with one more field of `_meta`, its value as JSON text.
    #[must_use]
    pub fn meta(mut self, key: &str, value: &str) -> Request {
        self.meta.push(format!("{}:{value}", quote(key)));
        self
    }

    /// The whole frame.
    #[must_use]
    pub fn text(&self, revision: Revision, id: &str) -> String {
        let method = quote(&self.method);
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method},\"params\":{}}}", self.dressed(revision))
    }

    /// The whole frame, without an id.
    #[must_use]
    pub fn notification(&self, revision: Revision) -> String {
        let method = quote(&self.method);
        format!("{{\"jsonrpc\":\"2.0\",\"method\":{method},\"params\":{}}}", self.dressed(revision))
    }

    fn dressed(&self, revision: Revision) -> String {
        let mut meta = Vec::new();
        if revision.is_modern() {
            meta.push(format!("\"io.modelcontextprotocol/protocolVersion\":\"{revision}\""));
            let declared = if self.capabilities.is_empty() { "{}" } else { &self.capabilities };
            meta.push(format!("\"io.modelcontextprotocol/clientCapabilities\":{declared}"));
            meta.push("\"io.modelcontextprotocol/clientInfo\":{\"name\":\"scripted\",\"version\":\"1\"}".to_owned());
        }
        if let Some(token) = &self.token {
            meta.push(format!("\"progressToken\":{token}"));
        }
        meta.extend(self.meta.iter().cloned());
        with_meta(&self.params, &meta)
    }
}
