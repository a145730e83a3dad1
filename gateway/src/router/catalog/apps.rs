//! MCP Apps: the page that a tool names for showing its results. Pure.

use crate::protocol::value::splice;
use std::ops::Range;

/// Where definitions name their page: nested as the extension has it, and in one key as its first drafts had it.
const PLACES: [&[&str]; 2] = [&["_meta", "ui", "resourceUri"], &["_meta", "ui/resourceUri"]];
/// What the URI of a page begins with.
const SCHEME: &str = "ui://";

/// The pages that a tool definition names, and where, in order.
pub(crate) fn pages(definition: &[u8]) -> Vec<(String, Range<usize>)> {
    let named = PLACES.iter().filter_map(|path| splice::text(definition, path));
    let mut pages: Vec<_> = named.filter(|(uri, _)| uri.starts_with(SCHEME)).collect();
    pages.sort_by_key(|(_, place)| place.start);
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_naming_a_page_are_seen_and_other_schemes_are_not() {
        let uris = |raw: &str| pages(raw.as_bytes()).into_iter().map(|(uri, _)| uri).collect::<Vec<_>>();
        let both = r#"{"_meta":{"ui/resourceUri":"ui://a","ui":{"x":1,"resourceUri":"ui://b"}},"name":"t"}"#;
        assert_eq!(uris(both), ["ui://a", "ui://b"]);
        assert_eq!(uris(r#"{"_meta":{"ui":{"resourceUri":"https://a"}}}"#), Vec::<String>::new());
        assert_eq!(uris(r#"{"_meta":{"ui":7,"ui/resourceUri":null}}"#), Vec::<String>::new());
    }
}
