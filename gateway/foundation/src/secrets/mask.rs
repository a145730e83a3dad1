//! The secrets of the configuration, and their mask: nobody may read them in a log, an error, a notification or a page, in any form.

mod filter;
mod forms;
mod json;
mod needles;
mod view;

pub use forms::{BYTES_MAX, BYTES_MIN, MASK};
pub use json::Kept;

use crate::secrets::random::looks_given;
use arc_swap::ArcSwapOption;
use bytes::Bytes;
use needles::Needles;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// Those of this process.
static KNOWN: ArcSwapOption<Known> = ArcSwapOption::const_empty();
/// What they are made of.
static SOURCES: Mutex<Sources> =
    Mutex::new(Sources { configured: Secrets(None), learned: BTreeMap::new(), holders: 0 });
/// So many of the values that one holder has learned are kept: those who were shown an older one quote it no more.
const LEARNED_MAX: usize = 4;

/// Where the secrets of the process come from.
struct Sources {
    configured: Secrets,
    /// By holder, the newest last, and whether it is masked wherever it stands.
    learned: BTreeMap<u64, VecDeque<(String, bool)>>,
    holders: u64,
}

/// A set of secrets. Cheap to clone.
#[derive(Clone, Default)]
pub struct Secrets(Option<Arc<Known>>);

struct Known {
    values: BTreeSet<String>,
    needles: Needles,
}

impl Secrets {
    /// Of these values; those that are too short are no secrets.
    pub fn of(values: impl IntoIterator<Item = String>) -> Self {
        let mut known = BTreeSet::new();
        for value in values {
            // Each line alone, too: whoever quotes a key in lines quotes them one by one. And what is padded without its padding.
            let lines = value.lines().map(str::trim).filter(|line| !line.starts_with("-----"));
            let parts = lines.chain([value.trim()]).flat_map(|part| [part, part.trim_end_matches('=')]);
            known.extend(parts.filter(|part| part.len() >= BYTES_MIN).map(str::to_owned));
        }
        Self::made(known, &BTreeSet::new())
    }

    fn made(values: BTreeSet<String>, words: &BTreeSet<String>) -> Self {
        let needles = Needles::of(&values, words);
        Self(needles.map(|needles| Arc::new(Known { values, needles })))
    }

    /// These and words that are secrets where they stand as credentials.
    fn and_words(&self, words: impl Iterator<Item = String>) -> Self {
        let words: BTreeSet<String> = words.filter(|word| word.len() >= BYTES_MIN).collect();
        match words.is_empty() {
            true => self.clone(),
            false => Self::made(self.0.as_ref().map(|known| known.values.clone()).unwrap_or_default(), &words),
        }
    }

    /// Whether a text holds any of them.
    pub fn has(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|known| known.needles.has(text))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// These and others.
    #[must_use]
    pub fn and(&self, others: &Self) -> Self {
        Self::of([self, others].into_iter().flat_map(|one| &one.0).flat_map(|known| known.values.iter().cloned()))
    }

    /// From now on these are the secrets of the process, beside those that it has learned.
    pub fn keep(&self) {
        let mut sources = SOURCES.lock().unwrap_or_else(PoisonError::into_inner);
        sources.configured = self.clone();
        sources.apply();
    }

    /// A text without them.
    pub fn masked<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.0.as_ref().map_or(Cow::Borrowed(text), |known| known.masked(text))
    }

    /// A JSON text without them; `None` where it quotes none.
    pub fn masked_json(&self, text: &[u8], kept: Kept) -> Option<Vec<u8>> {
        json::masked(&self.0.as_ref()?.needles, text, kept)
    }
}

impl Sources {
    fn apply(&self) {
        let (values, words): (Vec<_>, Vec<_>) =
            self.learned.values().flatten().cloned().partition(|(_, is_all)| *is_all);
        let all = match values.is_empty() {
            true => self.configured.clone(),
            false => self.configured.and(&Secrets::of(values.into_iter().map(|(value, _)| value))),
        };
        KNOWN.store(all.and_words(words.into_iter().map(|(word, _)| word)).0);
    }
}

/// Secrets that one holder was given while the process ran, such as tokens: the last few are secrets of the process for as long as it is
/// there.
#[derive(Debug)]
pub struct Learned(u64);

impl Learned {
    /// None so far.
    pub fn new() -> Self {
        let mut sources = SOURCES.lock().unwrap_or_else(PoisonError::into_inner);
        sources.holders += 1;
        Self(sources.holders)
    }

    /// Another one.
    pub fn note(&self, value: &str) {
        self.learn(value, true);
    }

    /// Another one that a server gave out. One that may be a word is masked where it stands as a credential alone: else a server could have
    /// any word of others masked.
    pub fn note_given(&self, value: &str) {
        self.learn(value, looks_given(value));
    }

    fn learn(&self, value: &str, is_all: bool) {
        let mut sources = SOURCES.lock().unwrap_or_else(PoisonError::into_inner);
        let own = sources.learned.entry(self.0).or_default();
        if own.iter().any(|(known, _)| known == value) {
            return;
        }
        own.push_back((value.to_owned(), is_all));
        if own.len() > LEARNED_MAX {
            own.pop_front();
        }
        sources.apply();
    }

    /// Those of before are no secrets of the process any more.
    pub fn forget(&self) {
        let mut sources = SOURCES.lock().unwrap_or_else(PoisonError::into_inner);
        if sources.learned.remove(&self.0).is_some() {
            sources.apply();
        }
    }
}

impl Default for Learned {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Learned {
    fn drop(&mut self) {
        self.forget();
    }
}

impl PartialEq for Secrets {
    fn eq(&self, other: &Self) -> bool {
        let values = |one: &Self| one.0.as_ref().map(|known| known.values.clone());
        values(self) == values(other)
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.0.as_ref().map_or(0, |known| known.values.len()))
    }
}

/// A text without the secrets of the process. It is masked before it is cut: half a secret is not found any more.
pub fn masked(text: &str) -> Cow<'_, str> {
    KNOWN.load().as_ref().map_or(Cow::Borrowed(text), |known| known.masked(text))
}

/// As how many bytes a text counts where it is decided whether it is masked beside the workers: each is looked at several times, if there
/// are secrets at all.
pub fn cost(bytes: usize) -> usize {
    if KNOWN.load().is_some() { bytes.saturating_mul(4) } else { 0 }
}

/// A JSON text without the secrets of the process; `None` where it quotes none.
pub fn masked_json(text: &[u8], kept: Kept) -> Option<Bytes> {
    json::masked(&KNOWN.load().as_ref()?.needles, text, kept).map(Bytes::from)
}

/// The first bytes of a text without secrets, cut between two characters. The text has [`margin`] more than that, or is whole: a
/// secret that begins in what is shown is masked, and one that is itself cut stands behind it.
pub fn masked_and_cut(text: &str, bytes: usize) -> String {
    let at = (0..=bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    match KNOWN.load().as_ref() {
        Some(known) => known.written(text, at).unwrap_or_else(|| text[..at].to_owned()),
        None => text[..at].to_owned(),
    }
}

/// How much more of a text must be there than is shown of it, so that no secret is cut before it is masked.
pub fn margin() -> usize {
    KNOWN.load().as_ref().map_or(0, |known| known.needles.margin)
}

impl Known {
    fn masked<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.written(text, text.len()).map_or(Cow::Borrowed(text), Cow::Owned)
    }

    /// What begins in the first `length` bytes of a text, masked; `None` where it holds no secret.
    fn written(&self, text: &str, length: usize) -> Option<String> {
        let places = self.needles.places(text.as_bytes(), false);
        if places.is_empty() {
            return None;
        }
        let mut out = String::with_capacity(length);
        let mut at = 0;
        for place in places.into_iter().filter(|place| place.start < length) {
            // What is left of a secret may end within a character.
            let start = (0..=place.start).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
            let end = (place.end..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
            out.push_str(text.get(at..start).unwrap_or_default());
            out.push_str(MASK);
            at = end;
        }
        out.push_str(text.get(at..length).unwrap_or_default());
        Some(out)
    }
}

#[cfg(test)]
mod tests;
