//! What a browser asks a page for.

use http::{HeaderMap, HeaderValue};

/// A longer name has no upstream.
const NAME_MAX: usize = 32;

/// Whether an upstream may be called so.
pub(super) fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=NAME_MAX).contains(&text.len()) && text.bytes().all(is_plain)
}

/// Whether nobody has asked for a page yet: a browser only thinks that somebody will.
pub(super) fn is_prefetched(headers: &HeaderMap) -> bool {
    let says = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    ["sec-purpose", "purpose", "x-moz"].into_iter().any(|name| says(name).contains("prefetch"))
}

/// The one `state` of a query.
pub(super) fn state_in(query: &str) -> Option<String> {
    let mut states = query.split('&').filter_map(|pair| pair.strip_prefix("state="));
    match (states.next(), states.next()) {
        // Ours has nothing in it that a URL writes otherwise.
        (Some(state), None) if !state.is_empty() => Some(state.replace("%2D", "-").replace("%5F", "_")),
        _ => None,
    }
}
