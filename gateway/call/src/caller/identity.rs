//! Who makes a call: principal, grants, revision, capabilities.

use super::client_session::{ClientSession, SessionRights};
use super::grants::Grants;
use super::principal::Principal;
use crate::protocol::capabilities::Capabilities;
use crate::protocol::capabilities::beyond::{Beyond, Declared};
use crate::protocol::revision::Revision;
use crate::share::Share;
use bytes::Bytes;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

/// Who makes a call, and in which terms.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Whose credential it is.
    pub principal: Principal,
    /// The address of its client, where one is known: for shares and logs, and for nothing else.
    pub address: Option<IpAddr>,
    /// What may be seen and used.
    pub grants: Grants,
    /// What the caller's payloads are written in.
    pub revision: Revision,
    /// The capabilities that the client has declared, raw; of its session, or of this very request. Those of a client that
    /// cannot be asked on this call are without questions.
    pub capabilities: Bytes,
    /// The legacy session it comes from; a modern caller has none.
    pub tenant: Option<Arc<ClientSession>>,
    /// What it has declared, once somebody wanted to know.
    pub can: Can,
}

/// What a caller has declared, read when it is first wanted: most calls are never asked anything.
#[derive(Debug, Clone, Default)]
pub struct Can(OnceLock<Declared>);

impl Caller {
    /// Whose share of what all have in common its calls take.
    pub fn share(&self) -> Share {
        Share::of(&self.principal, self.address)
    }

    /// Its rights.
    pub fn rights(&self) -> SessionRights {
        SessionRights { principal: self.principal.clone(), grants: self.grants.clone() }
    }

    /// The same caller with these rights.
    #[must_use]
    pub fn with_rights(&self, rights: &SessionRights) -> Self {
        Self { principal: rights.principal.clone(), grants: rights.grants.clone(), ..self.clone() }
    }

    /// What it can be asked.
    pub fn can(&self) -> Capabilities {
        self.declared().can
    }

    /// What it has declared beyond the protocol.
    pub fn beyond(&self) -> &Beyond {
        &self.declared().beyond
    }

    /// What its client has declared: of a session what that has, whatever a single call of it says.
    pub fn declares(&self) -> Declared {
        Declared { can: self.client_can(), beyond: self.beyond().clone() }
    }

    /// Whether that is this.
    pub fn has_declared(&self, set: &Declared) -> bool {
        self.client_can() == set.can && *self.beyond() == set.beyond
    }

    fn client_can(&self) -> Capabilities {
        self.tenant.as_ref().map_or_else(|| self.can(), |tenant| tenant.can())
    }

    fn declared(&self) -> &Declared {
        self.can.0.get_or_init(|| Declared::parse(&self.capabilities, self.revision))
    }
}
