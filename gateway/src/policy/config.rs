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

impl Auth {
    /// The same, but that of the tokens only those with these names count; `None`: all.
    pub fn only(&self, names: Option<&[Arc<str>]>) -> Self {
        let counts = |token: &&Token| names.is_none_or(|names| names.contains(&token.name));
        Self { tokens: self.tokens.iter().filter(counts).cloned().collect(), ..self.clone() }
    }

    /// Whether anybody may call who shows no certificate, without having been told to.
    pub fn is_open(&self) -> bool {
        self.tokens.is_empty() && !self.allow_unauthenticated
    }
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
