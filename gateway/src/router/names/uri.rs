//! Public URIs: a resource keeps its own unless an earlier upstream has the same; then a reversible form. Pure.

use super::namespace::hash;
use super::template::{Looks, Template};
use crate::call::refusal::{Reason, Refusal};
use std::collections::HashSet;
use std::sync::Arc;

/// Longer URIs are not looked into, and not echoed.
pub(crate) const BYTES_MAX: usize = 8192;

/// The refusal of a URI that is too long, where it is.
pub(crate) fn refuse_long(uri: &str) -> Option<Refusal> {
    (uri.len() > BYTES_MAX)
        .then(|| Refusal::new(Reason::InvalidParams, format!("a URI must not be longer than {BYTES_MAX} bytes")))
}

/// What marks the URIs of one upstream where they must be told apart from another's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag(String);

impl Tag {
    /// The tag of a configured name: legal as a scheme and as a label of a host name.
    pub(crate) fn of(upstream: &str) -> Self {
        let is_legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if upstream.starts_with(|c: char| c.is_ascii_lowercase()) && upstream.chars().all(is_legal) {
            return Self(upstream.to_owned());
        }
        let legal: String =
            upstream.chars().map(|c| c.to_ascii_lowercase()).map(|c| if is_legal(c) { c } else { '-' }).collect();
        Self(format!("u{legal}-{}", hash(upstream, "")))
    }

    /// The public form of a contested URI or template; `None` for what a client may fetch by itself.
    pub(crate) fn mark(&self, own: &str) -> Option<String> {
        let scheme = own.split(':').next().unwrap_or_default();
        if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") {
            return None;
        }
        // Hosts of apps know them by the scheme.
        Some(match own.strip_prefix("ui://") {
            Some(rest) => format!("ui://{}.{rest}", self.0),
            None => format!("{}+{own}", self.0),
        })
    }

    /// What [`Self::mark`] was given.
    pub(crate) fn unmark(&self, public: &str) -> Option<String> {
        if let Some(rest) = public.strip_prefix("ui://") {
            return Some(format!("ui://{}", rest.strip_prefix(&self.0)?.strip_prefix('.')?));
        }
        Some(public.strip_prefix(&self.0)?.strip_prefix('+')?.to_owned())
    }
}

/// Which URIs of one upstream are marked. Kept only for upstreams that have any: only their results are looked into.
#[derive(Debug)]
pub(crate) struct Marked {
    pub(crate) tag: Tag,
    /// Own URIs that stand in its list unmarked.
    pub(crate) plain: HashSet<Arc<str>>,
    /// Own URIs that are contested.
    pub(crate) uris: HashSet<Arc<str>>,
    /// Own templates that are contested.
    pub(crate) templates: Vec<Template>,
}

impl Marked {
    /// The public form of an own URI that is put on a list: its own where that is not taken.
    pub(crate) fn claim(&self, own: &Arc<str>, taken: &mut HashSet<Arc<str>>, transparent: bool) -> Option<String> {
        if taken.insert(own.clone()) {
            return Some(own.to_string());
        }
        if transparent || self.plain.contains(own) || self.uris.contains(own) {
            return None;
        }
        self.tag.mark(own).filter(|public| taken.insert(public.as_str().into()))
    }

    /// The public form of an own URI, where it has one that differs.
    pub(crate) fn publish(&self, own: &str, looks: &mut Looks) -> Option<String> {
        let mut by_template =
            || !self.plain.contains(own) && self.templates.iter().any(|template| template.matches(own, looks));
        if self.uris.contains(own) || by_template() { self.tag.mark(own) } else { None }
    }
}

/// The scheme and authority of a URI that has one: not `memo:x`, and not `file:///x`.
pub(crate) fn authority(uri: &str) -> Option<&str> {
    origin(uri).filter(|origin| !origin.ends_with([':', '/']))
}

/// The scheme and authority of a URI: what tells whose it may be when nobody lists it.
pub(crate) fn origin(uri: &str) -> Option<&str> {
    let colon = uri.find(':')?;
    match uri[colon + 1..].strip_prefix("//") {
        Some(rest) => {
            let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            Some(&uri[..colon + 3 + authority])
        }
        None => Some(&uri[..=colon]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn marks_keep_what_hosts_know_a_uri_by() {
        let tag = Tag::of("b");
        assert_eq!(tag.mark("file:///{path}").as_deref(), Some("b+file:///{path}"));
        assert_eq!(tag.mark("ui://clock/main").as_deref(), Some("ui://b.clock/main"));
        assert_eq!(tag.mark("HTTPS://x"), None);
        assert_eq!(tag.unmark("c+file:///x"), None);
        assert_eq!(tag.unmark("ui://c.clock"), None);
    }

    #[test]
    fn tags_are_legal_schemes_and_differ() {
        assert_eq!(Tag::of("git-hub"), Tag("git-hub".into()));
        assert!(Tag::of("3d").0.starts_with("u3d-"));
        assert_ne!(Tag::of("3d"), Tag::of("3D"));
    }

    #[test]
    fn origins_are_scheme_and_authority() {
        assert_eq!(origin("file:///a/b"), Some("file://"));
        assert_eq!(origin("db://host:1/x"), Some("db://host:1"));
        assert_eq!(origin("memo:x"), Some("memo:"));
        assert_eq!(origin("x"), None);
        let of = [authority("db://host/x"), authority("file:///a"), authority("memo:x"), authority("x")];
        assert_eq!(of, [Some("db://host"), None, None, None]);
    }

    proptest! {
        #[test]
        fn a_mark_can_be_taken_off(upstream in "[a-zA-Z0-9._-]{1,12}", own in "(ui|file|x)?:?/{0,2}[ -~]{0,20}") {
            let tag = Tag::of(&upstream);
            if let Some(public) = tag.mark(&own) {
                prop_assert_ne!(&public, &own);
                prop_assert_eq!(tag.unmark(&public), Some(own));
            }
        }
    }
}
