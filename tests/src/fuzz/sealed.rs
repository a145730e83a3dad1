//! What clients carry for us: states and ids of tasks. What was altered never opens.

use super::target::{Shape, Target};
use trunkline::fuzzing::downstream;
use trunkline::fuzzing::router;

pub(super) const TARGETS: &[Target] = &[
    Target { name: "seals", body: seals, words: &["trunkline-1.", "AAAA", "=", "-", "_"] },
    Target { name: "session_ids", body: session_ids, words: &["trunkline-s1.", "AAAA", "=", "-", "{\"roots\":{}}"] },
    Target { name: "task_ids", body: task_ids, words: &["AAAA", "=", "task", "\u{e4}"] },
];

/// A place in a text and another character for it.
fn altered(text: &str, place: usize, by: u8) -> Option<String> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=";
    let mut bytes = text.as_bytes().to_vec();
    let (at, new) = (place % bytes.len(), ALPHABET[usize::from(by) % ALPHABET.len()]);
    let old = std::mem::replace(&mut bytes[at], new);
    (old != new).then(|| String::from_utf8(bytes).expect("it is ASCII"))
}

fn seals(input: &[u8]) -> Shape {
    let text = String::from_utf8_lossy(input);
    // Nobody has this key's states but us.
    assert_eq!(downstream::open(b"key", &text, "p", "u", b""), None, "a text of a stranger opens");
    let [place, high, by, inner @ ..] = input else { return Shape::of(0) };
    let mut nonce = [0; 12];
    nonce.iter_mut().zip(inner).for_each(|(to, from)| *to = *from);
    let state = downstream::close(b"key", "p", "u", inner, nonce);
    assert_eq!(downstream::open(b"key", &state, "p", "u", inner), Some(true));
    assert_eq!(downstream::open(b"other", &state, "p", "u", inner), None, "another key opens it");
    let place = usize::from(*place) + 256 * usize::from(*high);
    if let Some(altered) = altered(&state, place, *by) {
        assert_eq!(downstream::open(b"key", &altered, "p", "u", inner), None, "an altered state opens");
    }
    let cut = &state[..place % state.len()];
    assert_eq!(downstream::open(b"key", cut, "p", "u", inner), None, "a cut state opens");
    assert_eq!(downstream::open(b"key", &format!("{state}A"), "p", "u", inner), None);
    Shape::of(inner.len().checked_ilog2())
}

/// Capabilities and the name of a client, each on its line: another run reads both, and nobody else anything.
fn session_ids(input: &[u8]) -> Shape {
    let text = String::from_utf8_lossy(input);
    assert_eq!(downstream::session("k", &text, "p"), None, "a text of a stranger opens");
    assert_eq!(downstream::session("k", &format!("trunkline-s1.{text}"), "p"), None, "a text of a stranger opens");
    let [place, high, by, rest @ ..] = input else { return Shape::of(0) };
    let mut lines = rest.splitn(2, |byte| *byte == b'\n');
    let (declared, client) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let client = String::from_utf8_lossy(client);
    let Some(id) = downstream::session_id("k", "p", declared, &client) else {
        assert!(declared.len() + client.len() > 600, "what is short is sealed");
        return Shape::of(1);
    };
    assert!(id.len() <= 1000 && id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
    let read = downstream::session("k", &id, "p").expect("another run reads it");
    assert_eq!((&read.0[..], &*read.1), (declared, &*client));
    assert_eq!(downstream::session("k", &id, "q"), None, "another's id opens");
    assert_eq!(downstream::session("o", &id, "p"), None, "another key opens it");
    let place = usize::from(*place) + 256 * usize::from(*high);
    if let Some(altered) = altered(&id, place, *by) {
        assert_eq!(downstream::session("k", &altered, "p"), None, "an altered id opens");
    }
    assert_eq!(downstream::session("k", &id[..place % id.len()], "p"), None, "a cut id opens");
    Shape::of((2, id.len().checked_ilog2(), client.len().min(3)))
}

fn task_ids(input: &[u8]) -> Shape {
    let text = String::from_utf8_lossy(input);
    assert_eq!(router::open(b"key", &text, "p", &["a", "b"]), None, "a text of a stranger opens");
    let [place, high, by, own @ ..] = input else { return Shape::of(0) };
    let own = String::from_utf8_lossy(own);
    let public = router::close(b"key", "b", "p", &own);
    assert_eq!(router::close(b"key", "b", "p", &own), public);
    let opened = router::open(b"key", &public, "p", &["a", "b"]);
    assert!(opened == Some((1, own.clone().into_owned())) || public.len() > 8192);
    assert_eq!(router::open(b"key", &public, "q", &["a", "b"]), None, "another's id opens");
    if let Some(altered) = altered(&public, usize::from(*place) + 256 * usize::from(*high), *by) {
        assert_eq!(router::open(b"key", &altered, "p", &["a", "b"]), None, "an altered id opens");
    }
    Shape::of((own.len().checked_ilog2(), opened.is_some()))
}
