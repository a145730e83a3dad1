//! What the translator's tests share: objects of text, and every kind of payload in every pair of revisions.

use super::super::*;
use bytes::Bytes;

pub(super) fn object(text: &str) -> Object {
    Object::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

/// A result as a peer of revision `to` gets it.
pub(super) fn told(method: Method, raw: &str, from: Revision, to: Revision) -> String {
    let (mut out, raw) = (Vec::new(), object(raw));
    let told = result(&method, &raw, from, to);
    write_result(&method, told.as_ref().unwrap_or(&raw), (from, to), b"{\"name\":\"t\"}", &mut out);
    String::from_utf8(out).unwrap()
}

/// A question as a peer of revision `to` is asked it.
pub(super) fn asked(method: Method, raw: &str, from: Revision, to: Revision) -> Option<String> {
    text(question(&method, &object(raw), from, to))
}

/// An answer as a peer of revision `to` is told it.
pub(super) fn answered(method: Method, raw: &str, from: Revision, to: Revision) -> Option<String> {
    text(answer(&method, &object(raw), from, to))
}

fn text(object: Option<Object>) -> Option<String> {
    Some(String::from_utf8(object?.raw().to_vec()).unwrap())
}

/// Every pair of revisions.
pub(super) fn pairs() -> impl Iterator<Item = (Revision, Revision)> {
    Revision::ALL.into_iter().flat_map(|from| Revision::ALL.map(|to| (from, to)))
}
