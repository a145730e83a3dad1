//! What is looked for: every form of every secret, and its middle, which all that may be left of it has.

use super::filter::Filter;
use super::forms::{self, BYTES_MIN};
use super::view::View;
use crate::steps;
use aho_corasick::{AhoCorasick, MatchKind};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// So often escapes are resolved in what was resolved.
const ROUNDS: usize = 4;
/// So much of a text is looked at as one, and at least so many margins. Up to five forms of it are kept meanwhile, each of nine bytes
/// for one of the text; the allocator keeps them for the thread afterwards, so the window is small.
const WINDOW_BYTES: usize = 16 * 1024;
const WINDOW_MARGINS: usize = 4;
/// Escaped, a byte of a secret takes so many bytes at most, and so much more of a text must be there for it.
const ESCAPED_MAX: usize = 12;
const MARGIN_MAX: usize = 32 * 1024;
/// So much is compared for each byte of a text.
const LOOKS: usize = 16;
/// So many characters of a secret, in one piece, stand in no other text.
const SURE: usize = 12;

/// All that is looked for.
pub(super) struct Needles {
    automaton: AhoCorasick,
    /// What each pattern of the automaton is.
    patterns: Vec<Pattern>,
    forms: Vec<Form>,
    /// Tells most texts that hold none from the others.
    filter: Option<Filter>,
    /// Whether any of them has characters beyond ASCII.
    is_foreign: bool,
    /// How much of a text one secret may take.
    pub(super) margin: usize,
}

#[derive(Default)]
struct Pattern {
    /// Whether it is a form as a whole.
    is_whole: bool,
    /// The forms that have it in their middle, and where: two thirds of a form hold it, whichever they are.
    middles: Vec<(usize, usize)>,
}

/// One way to write a secret, or a piece of it.
struct Form {
    bytes: Vec<u8>,
    /// So much of it counts where it stands alone: the rest was cut off.
    least: usize,
    /// So much of it counts wherever it stands: no other text has it.
    sure: usize,
}

impl Needles {
    /// Of these values, and of words where they stand as credentials; `None` where there are none.
    pub(super) fn of(values: &BTreeSet<String>, words: &BTreeSet<String>) -> Option<Self> {
        let sum = values.iter().map(String::len).sum();
        let (mut found, mut longest): (BTreeMap<Vec<u8>, (usize, usize)>, usize) = (BTreeMap::new(), 0);
        // What is misread is not looked for in what was encoded twice.
        let misread = forms::misread(values.iter());
        let misread = misread.iter().map(|value| (value, usize::MAX));
        for (value, sum) in values.iter().map(|value| (value, sum)).chain(misread) {
            longest = longest.max(value.len());
            for form in forms::all(value, sum).into_iter().chain(normal_forms(value)) {
                let (part, value) = ((form.len() * 2).div_ceil(3), value.len().min(forms::WHOLE_MAX));
                let of = |characters: usize| (form.len() * characters).div_ceil(value).max(part).min(form.len());
                let limits = (of(BYTES_MIN), of(SURE));
                found.entry(form).or_insert(limits);
            }
        }
        // Whole, or not at all: cut, they are other words.
        found.extend(words.iter().flat_map(|word| forms::of_credential(word)).map(|form| {
            let length = form.len();
            (form, (length, length))
        }));
        let longest = longest.min(forms::WHOLE_MAX).max(found.keys().map(Vec::len).max()?);
        let (mut patterns, mut all): (BTreeMap<Vec<u8>, Pattern>, Vec<Form>) = (BTreeMap::new(), Vec::new());
        // Whatever holds a form holds its middle.
        let parts = found.iter().map(|(bytes, (least, _))| match bytes.len() - least {
            0 => &bytes[..],
            from => &bytes[from..*least],
        });
        let is_foreign = values.iter().any(|value| !value.is_ascii());
        let filter = Filter::of(parts, is_foreign);
        for (bytes, (least, sure)) in found {
            let from = bytes.len() - least;
            if least < bytes.len() {
                patterns.entry(bytes[from..least].to_vec()).or_default().middles.push((all.len(), from));
            }
            patterns.entry(bytes.clone()).or_default().is_whole = true;
            all.push(Form { bytes, least, sure });
        }
        let automaton =
            AhoCorasick::builder().match_kind(MatchKind::Standard).ascii_case_insensitive(true).build(patterns.keys());
        let automaton = automaton.ok()?;
        let margin = (longest * ESCAPED_MAX).min(MARGIN_MAX).max(longest);
        let patterns = patterns.into_values().collect();
        Some(Self { automaton, patterns, forms: all, filter, is_foreign, margin })
    }

    /// Whether a text quotes any of them as it is.
    pub(super) fn has(&self, text: &str) -> bool {
        !self.places(text.as_bytes(), false).is_empty()
    }

    /// Which bytes of a text quote a secret, in order. `is_json` says that the text stands between the quotes of a JSON string.
    pub(super) fn places(&self, text: &[u8], is_json: bool) -> Vec<Range<usize>> {
        if self.filter.as_ref().is_some_and(|filter| !filter.may_hold(text, is_json)) {
            return Vec::new();
        }
        let (mut found, mut start) = (Vec::new(), 0);
        let length = WINDOW_BYTES.max(WINDOW_MARGINS * self.margin);
        while text.len() - start >= BYTES_MIN {
            let end = (start + length + self.margin).min(text.len());
            let window = &text[start..end];
            let base = if is_json { View::of_json(window) } else { View::plain(window) };
            let (next, is_end) = (base.behind(length), end == text.len());
            // An escape at the end of a window may be cut; the next window has it whole.
            let most = if is_end { window.len() } else { window.len() - ESCAPED_MAX };
            self.look(base, is_end, |place| {
                if place.end <= most {
                    found.push(start + place.start..start + place.end);
                }
            });
            if is_end {
                break;
            }
            start += next;
        }
        joined(found)
    }

    /// Looks into all normal forms of a text.
    fn look(&self, base: View, is_end: bool, mut found: impl FnMut(Range<usize>)) {
        let mut look = |view: &View| self.scan(view, is_end, &mut found);
        let mut last = base;
        look(&last);
        if let Some(joined) = last.joined() {
            look(&joined);
        }
        let mut is_resolved = false;
        for _ in 0..ROUNDS {
            let Some(next) = last.resolved() else { break };
            last = next;
            is_resolved = true;
            look(&last);
        }
        let unquoted = last.unquoted();
        let digits = last.of_digits();
        let joined = is_resolved.then(|| last.joined()).flatten();
        let joined_too = unquoted.as_ref().and_then(View::joined);
        [unquoted, digits, joined, joined_too].iter().flatten().for_each(&mut look);
        // What was encoded before it was put into base64, or has its characters in another form there.
        for decoded in (0..4).map_while(|first| last.decoded(first)) {
            let resolved = decoded.resolved();
            let folded = self.folded(resolved.as_ref().unwrap_or(&decoded));
            [resolved, folded].iter().flatten().for_each(&mut look);
        }
        let folded = self.folded(&last);
        let joined = folded.as_ref().and_then(View::joined);
        [folded, joined].iter().flatten().for_each(look);
    }

    /// The form in which it does not matter how a character is made up, where that is looked for.
    fn folded(&self, view: &View) -> Option<View> {
        self.is_foreign.then(|| view.folded()).flatten()
    }

    fn scan(&self, view: &View, is_end: bool, found: &mut impl FnMut(Range<usize>)) {
        let text = &view.bytes;
        steps::add(text.len());
        // Middles that go on for long, one in the other, would cost more than in proportion.
        let mut left = LOOKS * (text.len() + 4096);
        for one in self.automaton.find_overlapping_iter(text) {
            let pattern = &self.patterns[one.pattern().as_usize()];
            let whole = pattern.is_whole.then(|| one.range());
            let parts = pattern.middles.iter().filter_map(|(form, from)| {
                let (form, to) = (&self.forms[*form], from + one.len());
                if left == 0 {
                    // All that it could be.
                    let end = one.end() + form.bytes.len() - to;
                    return Some(one.start().saturating_sub(*from)..end.min(text.len()));
                }
                let is_same = |(one, other): &(&u8, &u8)| one.eq_ignore_ascii_case(other);
                let after = form.bytes[to..].iter().zip(&text[one.end()..]).take_while(is_same).count();
                let before = form.bytes[..*from].iter().rev().zip(text[..one.start()].iter().rev());
                let before = before.take_while(is_same).count();
                steps::add(before + after);
                left = left.saturating_sub(before + after + 1);
                let part = one.start() - before..one.end() + after;
                let is_part = part.len() >= form.sure || part.len() >= form.least && stands_alone(text, &part, is_end);
                is_part.then(|| trimmed(text, part))
            });
            whole.into_iter().chain(parts).filter_map(|range| view.place(range)).for_each(&mut *found);
        }
    }
}

/// The part without white space at its ends, which may as well be that of the text around it.
fn trimmed(text: &[u8], part: Range<usize>) -> Range<usize> {
    let inside = text[part.clone()].trim_ascii_start();
    let start = part.end - inside.len();
    start..start + inside.trim_ascii_end().len()
}

/// Whether what stands around a part of a text is no part of the same word. One character may be: the last digit of a value that was
/// cut and then encoded is another one.
fn stands_alone(text: &[u8], part: &Range<usize>, is_end: bool) -> bool {
    let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80);
    let is_before = |at: usize| at == 0 || !is_word(text.get(at - 1));
    let is_behind = |at: usize| if at >= text.len() { is_end } else { !is_word(text.get(at)) };
    (is_before(part.start) || is_before(part.start - 1)) && (is_behind(part.end) || is_behind(part.end + 1))
}

/// The forms that a value has itself where a text is brought into a normal form.
fn normal_forms(value: &str) -> Vec<Vec<u8>> {
    let mut views = vec![View::plain(value.as_bytes())];
    for _ in 0..ROUNDS {
        views.extend(views.last().and_then(View::resolved));
    }
    let more: Vec<View> =
        views.iter().flat_map(|view| [view.joined(), view.unquoted(), view.folded()]).flatten().collect();
    views.extend(more);
    let whole = |view: View| (BYTES_MIN..=forms::WHOLE_MAX).contains(&view.bytes.len()).then_some(view.bytes);
    views.into_iter().filter_map(whole).collect()
}

/// Places in order, those that overlap as one.
fn joined(mut places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    places.sort_unstable_by_key(|place| (place.start, place.end));
    let mut out: Vec<Range<usize>> = Vec::new();
    for place in places {
        match out.last_mut() {
            Some(last) if place.start < last.end => last.end = last.end.max(place.end),
            _ => out.push(place),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    /// What texts are put together of: what secrets are made of, what stands between, and what is resolved.
    const PIECES: [&str; 32] = [
        "s3cr3t/v",
        "a+lue?",
        "\"x\"=",
        "0x73",
        "33",
        "6372",
        "3374",
        "2f76",
        " ",
        "-",
        ":",
        "\\n",
        "\\\"",
        "\\/",
        "%2B",
        "%",
        "&amp;",
        "&#4",
        "=",
        "=\n",
        "=3D",
        "<b>",
        "<",
        "\u{1b}[1m",
        "\u{200b}",
        "ä",
        "\\u00",
        "2b",
        "czNjcjN0L3Y",
        "YStsdWU",
        "JTczJTMz",
        "word ",
    ];

    proptest! {
        #[test]
        fn the_first_look_passes_over_nothing(pieces in prop::collection::vec(0..PIECES.len(), 1..12), cut in 0..8_usize, is_foreign in any::<bool>()) {
            let plain = ["s3cr3t/va+lue?\"x\"=", "s3cr3t/v"].map(str::to_owned);
            let values = if is_foreign { BTreeSet::from(["s3cr3t/vä+lue?ä".to_owned()]) } else { BTreeSet::from(plain) };
            let with = Needles::of(&values, &BTreeSet::new()).unwrap();
            let without = Needles { filter: None, ..Needles::of(&values, &BTreeSet::new()).unwrap() };
            prop_assert!(with.filter.is_some());
            let text: String = pieces.into_iter().map(|at| PIECES[at]).collect();
            for text in [text.clone(), STANDARD.encode(&text), text.replace("word", &STANDARD.encode(&text)), text.chars().take(cut).collect::<String>() + "s3cr3t/va+lue?"] {
                for is_json in [false, true] {
                    let bytes = text.as_bytes();
                    prop_assert_eq!(with.places(bytes, is_json), without.places(bytes, is_json), "{}", text);
                }
            }
        }
    }
}
