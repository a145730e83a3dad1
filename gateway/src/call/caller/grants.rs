//! The public names that a caller may see and use.

use std::sync::Arc;

/// What a caller may see and use. The router sees the catalog through it, so lists and calls cannot disagree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Grants(Option<Arc<[Box<str>]>>);

impl Grants {
    /// Everything there is.
    pub fn all() -> Self {
        Self(None)
    }

    /// These names and no others.
    pub fn only(names: impl IntoIterator<Item = Box<str>>) -> Self {
        Self(Some(names.into_iter().collect()))
    }

    /// Whether nothing is kept from the caller, so that lists need no copy of their own.
    pub fn is_all(&self) -> bool {
        self.0.is_none()
    }

    /// Whether the public name may be seen and used.
    pub fn admits(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|names| names.iter().any(|granted| &**granted == name))
    }
}
