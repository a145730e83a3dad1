//! One tool, resource, template or prompt that an upstream offers.

use crate::protocol::http::param_headers::ParamHeaders;
use crate::protocol::json;
use crate::protocol::value::{Object, canonical};
use crate::secrets::mask;
use crate::secrets::mask::Kept;
use bytes::Bytes;
use std::sync::{Arc, OnceLock};

/// A larger definition is left out.
pub(super) const DEFINITION_BYTES_MAX: usize = 1 << 20;
/// What an item takes beside its texts: its places, their boxes, and what tells it apart while it is read.
const ITEM_BYTES: usize = 512;

/// One tool, resource, template or prompt.
#[derive(Debug, Clone)]
pub struct Item {
    /// The name of a tool or prompt, the URI of a resource, the template's text.
    pub key: Arc<str>,
    /// The definition as the upstream wrote it.
    pub definition: Object,
    /// Of a tool: which arguments are told in headers.
    pub headers: Option<Arc<ParamHeaders>>,
    /// Whether the gateway offers it itself.
    is_of_gateway: bool,
    /// What it is by its definition, once that was asked for.
    digest: OnceLock<[u8; 32]>,
}

impl Item {
    /// The name of the gateway's own tool to log in, where each principal logs in for itself.
    pub(super) const LOGIN: &str = "trunkline_login";

    /// One that is defined so.
    pub(crate) fn new(key: Arc<str>, definition: Object) -> Self {
        Self { key, definition, headers: None, is_of_gateway: false, digest: OnceLock::new() }
    }

    /// One that the gateway offers itself.
    pub(crate) fn of_gateway(key: Arc<str>, definition: Object) -> Self {
        Self { is_of_gateway: true, ..Self::new(key, definition) }
    }

    /// Whether the gateway offers it itself: nobody has to approve it, and who may see its upstream may call it.
    pub(crate) fn is_of_gateway(&self) -> bool {
        self.is_of_gateway
    }

    /// A definition without secrets of ours, named by this member of it; `None` where it has no name, or one for one client and another for the next.
    pub(crate) fn parse(raw: Bytes, key: &str) -> Option<Self> {
        let raw = mask::masked_json(&raw, Kept::Definition).unwrap_or(raw);
        let definition = Object::parse(raw).ok().filter(|definition| definition.doubled().is_none())?;
        let key = definition.find(key).and_then(json::unquote)?.as_ref().into();
        Some(Self::new(key, definition))
    }

    /// Whether a client could tell the two apart.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.key == other.key && self.definition.raw() == other.definition.raw()
    }

    /// What it takes of the budget.
    pub(super) fn weight(&self) -> usize {
        let definition = self.definition.raw().len();
        // Paths and names of headers stand in the definition too.
        let headers = if self.headers.is_some() { ITEM_BYTES + definition } else { 0 };
        ITEM_BYTES + self.key.len() + definition + headers
    }

    /// The same, sharing no memory with the page that it came on.
    pub(super) fn detached(self) -> Self {
        Self { definition: self.definition.detached(), ..self }
    }

    /// Of a tool: finds out which arguments are told in headers, or what is wrong with what says so.
    pub(crate) fn compile_headers(&mut self) -> Result<(), String> {
        let compiled = self.definition.find("inputSchema").map_or(Ok(None), ParamHeaders::compile)?;
        self.headers = compiled.map(Arc::new);
        Ok(())
    }

    /// What it is by its definition, as a digest.
    pub(crate) fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| canonical::definition(self.definition.raw(), None))
    }

    /// Whether it is a tool that must be called as a task.
    pub(crate) fn runs_as_a_task(&self) -> bool {
        let support = self.definition.find("execution").and_then(|raw| json::get(raw, "taskSupport"));
        support.and_then(json::unquote).as_deref() == Some("required")
    }
}
