//! Who makes a call: principal, grants, revision, capabilities.

use super::grants::Grants;
use super::tenant::Tenant;
use crate::protocol::Revision;
use crate::protocol::beyond::{Beyond, Declared};
use crate::protocol::capability::Capabilities;
use bytes::Bytes;
use std::sync::{Arc, OnceLock};

/// Whose credential a request bears; what has an owner is bound to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// The one of a gateway without `[auth]`, and of its own stdio.
    pub fn anonymous() -> Self {
        Self("".into())
    }

    /// The one of a named credential.
    pub fn named(name: &str) -> Self {
        Self(name.into())
    }

    /// The name; empty for the anonymous one.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// Who makes a call, and in which terms.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Whose credential it is.
    pub principal: Principal,
    /// What may be seen and used.
    pub grants: Grants,
    /// What the caller's payloads are written in.
    pub revision: Revision,
    /// The capabilities that the client has declared, raw; of its session, or of this very request. Those of a client that
    /// cannot be asked on this call are without questions.
    pub capabilities: Bytes,
    /// The legacy session it comes from; a modern caller has none.
    pub tenant: Option<Arc<Tenant>>,
    /// What it has declared, once somebody wanted to know.
    pub can: Can,
}

/// What a caller has declared, read when it is first wanted: most calls are never asked anything.
#[derive(Debug, Clone, Default)]
pub struct Can(OnceLock<Declared>);

impl Caller {
    /// What it can be asked.
    pub fn can(&self) -> Capabilities {
        self.declared().can
    }

    /// What it has declared beyond the protocol.
    pub fn beyond(&self) -> &Beyond {
        &self.declared().beyond
    }

    fn declared(&self) -> &Declared {
        self.can.0.get_or_init(|| Declared::parse(&self.capabilities, self.revision))
    }
}
