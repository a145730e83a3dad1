//! Whose credential a request bears.

use std::sync::Arc;

/// Whose credential a request bears; what has an owner is bound to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// The one of a gateway without `[auth]`, and of its own stdio.
    pub fn anonymous() -> Self {
        Self("".into())
    }

    /// The one of a bearer token, by the token's name. Its own name begins with how it was told, so that the same name of another
    /// kind of credential is another principal.
    pub fn of_token(name: &str) -> Self {
        Self(format!("token:{name}").into())
    }

    /// The one of this whole name, as [`Self::name`] gives it.
    pub fn named(name: &str) -> Self {
        Self(name.into())
    }

    /// Whether it is the one without a credential.
    pub fn is_anonymous(&self) -> bool {
        self.0.is_empty()
    }

    /// The name, without a copy.
    pub(crate) fn shared_name(&self) -> Arc<str> {
        self.0.clone()
    }

    /// The name; empty for the anonymous one.
    pub fn name(&self) -> &str {
        &self.0
    }
}
