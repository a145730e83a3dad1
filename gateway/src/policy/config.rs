//! Who may call: checked values, made from the files by `config`.

use std::fmt;
use std::sync::Arc;

/// Who may call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Auth {
    /// One of them must be presented; empty means that nobody is asked.
    pub tokens: Vec<Token>,
    /// Listening beyond loopback without tokens was asked for.
    pub allow_unauthenticated: bool,
}

/// One static bearer token. Only its digest is kept.
#[derive(Clone, PartialEq)]
pub struct Token {
    /// The principal that it stands for.
    pub name: Arc<str>,
    /// SHA-256 of the token.
    pub digest: [u8; 32],
}

/// A digest of a weak token could be searched for, so it is not shown either.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("name", &self.name).finish_non_exhaustive()
    }
}
