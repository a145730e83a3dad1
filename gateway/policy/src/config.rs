//! Who may call: checked values, made from the files by `config`.

// Moments as people write them: a day, or a day and a time, of UTC.
pub mod moment;
// Tokens that clients present: made of chance, and one that the gateway makes for itself.
pub mod client_token;
// What is a secret by its form.
pub mod redaction;
// Authorization servers whose access tokens clients may bear.
pub mod issuer;

use crate::call::caller::Principal;
pub use crate::call::caller::rights::Role;
pub use crate::call::share::Rate;
pub use issuer::{Issuer, Resource, ResourceFace};
pub use redaction::Redaction;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// Who may call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Auth {
    /// One of them must be presented; empty means that nobody is asked.
    pub tokens: Vec<Token>,
    /// Access tokens of these are taken, too.
    pub issuers: Vec<Issuer>,
    /// What the gateway is for them.
    pub resource: Resource,
    /// What the bearers of certificates may see; empty means that all may see everything.
    pub certificates: Vec<Certificate>,
    /// What may be given to either.
    pub roles: Vec<Arc<Role>>,
    /// Listening beyond loopback without tokens was asked for.
    pub allow_unauthenticated: bool,
    /// The token that the gateway makes for itself where nobody is asked for any.
    pub generated: Generated,
}

/// The token that a gateway makes for itself, where that is wanted and needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Generated {
    /// It is not wanted.
    #[default]
    Off,
    /// Wanted, where one is needed.
    Wanted,
    /// Wanted wherever the gateway listens.
    Demanded,
    /// Needed, and not made yet.
    Lacking,
    /// It is among the tokens, and kept in a file.
    Kept,
}

impl Auth {
    /// The same, but that only the tokens with these names count, and no others' tokens; `None`: all.
    pub fn only(&self, names: Option<&[Arc<str>]>) -> Self {
        let Some(names) = names else { return self.clone() };
        let tokens = self.tokens.iter().filter(|token| names.contains(&token.name)).cloned().collect();
        Self { tokens, issuers: Vec::new(), ..self.clone() }
    }

    /// Whether a token is asked for.
    pub fn asks_token(&self) -> bool {
        !self.tokens.is_empty() || !self.issuers.is_empty()
    }

    /// Whether principals are told apart by what they are given: a token, that which is yet to be made with them, or a role of a certificate.
    pub fn tells_apart(&self) -> bool {
        self.asks_token() || self.generated == Generated::Lacking || !self.certificates.is_empty()
    }

    /// How many there are of those who may call, as far as that is known: of the bearers of access tokens there are more than one.
    pub fn principals(&self) -> usize {
        self.tokens.len().max(1) + self.issuers.len()
    }

    /// Whether anybody may call who shows no certificate, without having been told to.
    pub fn is_open(&self) -> bool {
        !self.asks_token() && !self.allow_unauthenticated
    }
}

/// How much one client may have of calls, prompts and reads; `None` is as much as it likes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// So many in so much time.
    pub calls: Option<Rate>,
    /// So many at once.
    pub max_concurrency: Option<usize>,
    /// So many bytes of parameters and results in so much time.
    pub bytes: Option<Rate>,
}

/// One static bearer token. Only its digest is kept.
#[derive(Clone, PartialEq)]
pub struct Token {
    /// The principal that it stands for.
    pub name: Arc<str>,
    /// SHA-256 of the token.
    pub digest: [u8; 32],
    /// The roles of its bearer; `None` means that it may see everything.
    pub roles: Option<Vec<Arc<str>>>,
    /// From then on it is good no more.
    pub expires: Option<SystemTime>,
}

impl Token {
    /// Whether it has expired.
    pub fn is_over(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }
}

/// What the bearer of a certificate may see.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// The subject, or `*` for those that no other entry names.
    pub name: Arc<str>,
    /// The roles of its bearer.
    pub roles: Vec<Arc<str>>,
}

impl Auth {
    /// The roles that a principal has by its name; `None` means that it may see everything.
    pub fn roles_of(&self, principal: &Principal) -> Option<&[Arc<str>]> {
        if let Some(name) = principal.name().strip_prefix("token:") {
            let token = self.tokens.iter().find(|token| *token.name == *name);
            // One that is gone sees nothing, in the moment before its sessions end.
            return token.map_or(Some(&[]), |token| token.roles.as_deref());
        }
        let subject = principal.name().strip_prefix("cert:").filter(|_| !self.certificates.is_empty())?;
        let named = |name: &str| self.certificates.iter().find(|one| *one.name == *name);
        Some(named(subject).or_else(|| named("*")).map_or(&[], |one| &one.roles))
    }
}

/// A digest of a weak token could be searched for, so it is not shown either.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("name", &self.name).finish_non_exhaustive()
    }
}
