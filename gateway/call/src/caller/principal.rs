//! Whose credential a request bears.

use crate::metrics::edges;
use ::metrics::Counter;
use sha2::{Digest, Sha256};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock, OnceLock};

/// Whose credential a request bears; what has an owner is bound to it.
#[derive(Clone)]
pub struct Principal(Arc<Inner>);

struct Inner {
    name: Arc<str>,
    /// The digest of what its access token allows, where it has one.
    allows: Option<[u8; 32]>,
    /// Found when it calls first, and kept: a call looks up nothing.
    calls: OnceLock<Counter>,
}

static ANONYMOUS: LazyLock<Principal> = LazyLock::new(|| Principal::named(""));

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Principal {}

impl Hash for Principal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Principal").field(&self.0.name).finish()
    }
}

impl Principal {
    /// The one of a gateway without `[auth]`, and of its own stdio.
    pub fn anonymous() -> Self {
        ANONYMOUS.clone()
    }

    /// The one of a bearer token, by the token's name. Its own name begins with how it was told, so that the same name of another
    /// kind of credential is another principal.
    pub fn of_token(name: &str) -> Self {
        Self::named(&format!("token:{name}"))
    }

    /// The one of a client's certificate, by its subject.
    pub fn of_certificate(subject: &str) -> Self {
        Self::named(&format!("cert:{subject}"))
    }

    /// The one of a user of this machine, by number, as the system names who is at the other end of a socket.
    pub fn of_user(number: u32) -> Self {
        Self::named(&format!("unix:{number}"))
    }

    /// The one of an access token: who, at which authorization server, by which client of it. All three tell principals apart.
    pub fn of_access_token(issuer: &str, client: &str, subject: &str) -> Self {
        // Neither part can be taken for another one: what is between them is in none of them.
        let plain = |text: &str| -> String {
            let odd = |char: char| char.is_whitespace() || char.is_control() || char == '%';
            let mut shown = String::new();
            for char in text.chars() {
                match odd(char) {
                    true => char.to_string().bytes().for_each(|byte| shown.push_str(&format!("%{byte:02X}"))),
                    false => shown.push(char),
                }
            }
            shown
        };
        Self::named(&format!("oauth:{} {} {}", plain(subject), plain(client), plain(issuer)))
    }

    /// The one of this whole name, as [`Self::name`] gives it.
    pub fn named(name: &str) -> Self {
        Self(Arc::new(Inner { name: name.into(), allows: None, calls: OnceLock::new() }))
    }

    /// The same, as it comes with an access token that allows this.
    #[must_use]
    pub fn allowed(self, what: &str) -> Self {
        let (name, allows) = (self.shared_name(), Some(Sha256::digest(what).into()));
        Self(Arc::new(Inner { name, allows, calls: OnceLock::new() }))
    }

    /// The digest of what its access token allows. Two tokens of one principal may allow different things: it is no part of who it is, and
    /// tells apart only what is made with the token itself.
    pub fn allows(&self) -> Option<[u8; 32]> {
        self.0.allows
    }

    /// Whether it is the same principal, and came with an access token that allows the same.
    pub fn is_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self == other && self.0.allows == other.0.allows)
    }

    /// The same, whatever its access token allows.
    #[must_use]
    pub fn in_general(&self) -> Self {
        let (name, calls) = (self.shared_name(), OnceLock::new());
        self.0.allows.map_or_else(|| self.clone(), |_| Self(Arc::new(Inner { name, allows: None, calls })))
    }

    /// Whether what is for this one is for that one: all of the same principal, or those whose access tokens allow what this one does.
    pub fn includes(&self, other: &Self) -> bool {
        self.is_as(other) || (self == other && self.0.allows.is_none())
    }

    /// Whether it is the one without a credential.
    pub fn is_anonymous(&self) -> bool {
        self.0.name.is_empty()
    }

    /// The name, without a copy.
    pub fn shared_name(&self) -> Arc<str> {
        self.0.name.clone()
    }

    /// The name; empty for the anonymous one.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Counts a request of it.
    pub fn calls(&self) -> &Counter {
        self.0.calls.get_or_init(|| edges::principal(&self.0.name))
    }
}
