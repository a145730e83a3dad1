//! What calls are routed by: public names, paths into raw JSON, cursors, URIs and templates.

use super::target::{Shape, Target, WORDS};
use super::values::is_object;
use bytes::Bytes;
use std::collections::HashSet;
use trunkline::fuzzing::router;
use trunkline::fuzzing::upstream;
use trunkline::protocol::frame::Method;
use trunkline::protocol::value::Object;
use trunkline::router::config::Strategy;

pub(super) const TARGETS: &[Target] = &[
    Target { name: "names", body: names, words: &["\n", " ", "a__b", "__", "a b__c"] },
    Target { name: "splices", body: splices, words: WORDS },
    Target { name: "cursors", body: cursors, words: &["AAAAAAAAAAAAAAAAAA", "_", "-", "="] },
    Target {
        name: "uris",
        body: uris,
        words: &["{", "}", "{+x}", "{?q}", "://", "ui://", "https://", "b+", "b.", "/", "\n"],
    },
];

/// The first byte chooses the rules; then a line for each upstream: its name, its prefix and its own names.
fn names(input: &[u8]) -> Shape {
    let (first, rest) = input.split_first().unwrap_or((&0, &[]));
    let strategy = [Strategy::Prefix, Strategy::PrefixOnConflict, Strategy::Flat][usize::from(first % 3)];
    let max_length = 16 + usize::from(first / 3 % 64);
    let text = String::from_utf8_lossy(rest);
    let mut seen = HashSet::new();
    let upstream = |line| -> Option<router::Named<'_>> {
        let mut words = str::split(line, ' ').filter(|word| !word.is_empty());
        let (name, prefix) = (words.next()?, words.next().unwrap_or_default());
        Some((name, if prefix == "-" { "" } else { prefix }, words.collect()))
    };
    let all: Vec<_> = text.lines().filter_map(upstream).filter(|(name, ..)| seen.insert(*name)).take(8).collect();
    let assigned = router::names(strategy, max_length, &all);
    let is_transparent = all.len() == 1 && strategy == Strategy::Flat;
    let mut taken = HashSet::new();
    for public in assigned.iter().flatten().flatten() {
        assert!(taken.insert(public), "{public} is two things");
        let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        assert!(is_transparent || (public.len() <= max_length && public.chars().all(is_legal)), "{public}");
    }
    // What comes later changes nobody's names, unless nothing told one from another before.
    if let Some((_, fewer)) = all.split_last().filter(|(_, fewer)| fewer.len() != 1) {
        assert_eq!(router::names(strategy, max_length, fewer), assigned[..fewer.len()]);
    }
    let hidden = assigned.iter().flatten().filter(|public| public.is_none()).count();
    Shape::of((first % 3, all.len(), hidden.min(4), taken.len().min(20)))
}

/// A path, a line end, an object: one value is replaced and the rest stays.
fn splices(input: &[u8]) -> Shape {
    let mut parts = input.splitn(2, |byte| *byte == b'\n');
    let path = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let raw = parts.next().unwrap_or_default();
    let Ok(object) = Object::parse(Bytes::copy_from_slice(raw)) else { return Shape::of(0) };
    let path: Vec<&str> = path.split('.').collect();
    let published = router::publish("b", &["a:1", "a:{x}"], &Method::ToolsCall, object.clone());
    assert!(is_object(published.raw()));
    let pages = router::pages(object.raw());
    let Some(place) = router::find(object.raw(), &path) else { return Shape::of((1, pages.len())) };
    let raw = object.raw();
    let changed = router::replace(raw, &[(place.clone(), "\"new\"".to_owned())]);
    assert_eq!(changed[..place.start], raw[..place.start]);
    assert_eq!(changed[place.start + 5..], raw[place.end..]);
    assert!(is_object(&changed), "what is left is no JSON");
    let found = router::find(&changed, &path).expect("it is there still");
    assert_eq!(&changed[found], b"\"new\"");
    let item = upstream::item(raw.clone(), "name");
    Shape::of((2, path.len(), pages.len(), item.map(|(_, compiled)| compiled.is_ok()), published != object))
}

/// A cursor that is taken is the one text for what it says.
fn cursors(input: &[u8]) -> Shape {
    let text = String::from_utf8_lossy(input);
    let read = router::cursor(&text);
    if let Some(written) = &read {
        assert_eq!(*written, text);
    }
    Shape::of((read.is_some(), text.len().min(24)))
}

/// An upstream, a template and a URI, each on its line: marks come off, and a template takes what is made of it.
fn uris(input: &[u8]) -> Shape {
    let text = String::from_utf8_lossy(input);
    let mut lines = text.splitn(3, '\n');
    let (name, template, uri) =
        (lines.next().unwrap_or_default(), lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let marked = router::mark(name, uri);
    if let Some(public) = &marked {
        assert_eq!(router::unmark(name, public).as_deref(), Some(uri));
    }
    if let Some(own) = router::unmark(name, uri) {
        assert!(own.len() < uri.len());
    }
    if let Some(origin) = router::origin_of(uri) {
        assert!(uri.starts_with(origin) && router::origin_of(origin) == Some(origin));
    }
    let matches = router::matches(template, uri);
    if !template.contains('{') {
        assert_eq!(matches, template == uri);
    }
    if template.len() < 40 {
        let made = template.replace(['{', '}'], "");
        let inner = |part: &str| part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !part.is_empty();
        let is_simple = template
            .split('{')
            .skip(1)
            .all(|part| part.split_once('}').is_some_and(|(name, rest)| inner(name) && !rest.contains('}')));
        let first = template.split('{').next().unwrap_or_default();
        assert!(!is_simple || first.contains('}') || router::matches(template, &made), "{template} takes no {made}");
    }
    upstream::told(&[uri, template], &[uri, &format!("{template}/x")]);
    Shape::of((marked.is_some(), matches, router::origin_of(uri).is_some()))
}
