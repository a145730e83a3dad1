//! The search for one pattern, in a time that is linear in the text.
//!
//! Each pattern is searched for by itself: in an alternation, a form with an unbounded tail would read the rest of the text again after
//! each match of another form. Forms of the gateway's own have no such tails, so their window is the text. A pattern of the
//! configuration is searched for in windows that overlap by the longest match.

use regex_automata::hybrid::{dfa, regex as hybrid};
use regex_automata::nfa::thompson;
use regex_automata::util::pool::Pool;
use regex_automata::util::prefilter::Prefilter;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchError, MatchKind, meta};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// The longest match of a pattern of the configuration that is always found.
pub(super) const MATCH_MAX: usize = 4 << 10;
/// Windows overlap by [`MATCH_MAX`], so a text without matches is read 1.33 times.
const WINDOW: usize = 4 * MATCH_MAX;
/// The memory of one compiled pattern, and of the states that its searches keep.
const BYTES_MAX: usize = 4 << 20;
/// A search may read so many bytes for each byte of its text. The densest text of matches takes less than four.
const READS_PER_BYTE: usize = 8;
/// What a search may read beyond that, so that a short text is never withheld.
const READS_BASE: usize = 4 << 10;

/// A pattern cannot be used.
#[derive(Debug, PartialEq)]
pub(super) enum Unusable {
    Syntax(String),
    MatchesEmpty,
    TooLong,
    TooLarge,
}

/// The budget of a search is spent, or nobody waits for it.
#[derive(Debug, PartialEq)]
pub(super) struct Stopped;

/// The bytes that one search may still read.
#[derive(Debug)]
struct Budget<'a> {
    left: usize,
    is_cancelled: &'a AtomicBool,
}

impl Budget<'_> {
    fn spend(&mut self, bytes: usize) -> Result<(), Stopped> {
        // A match of no text, or at once, is work too.
        self.left = self.left.checked_sub(bytes.max(1)).ok_or(Stopped)?;
        if self.is_cancelled.load(Ordering::Relaxed) { Err(Stopped) } else { Ok(()) }
    }
}

type CachePool = Pool<Option<hybrid::Cache>, fn() -> Option<hybrid::Cache>>;

/// One compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: hybrid::Regex,
    caches: CachePool,
    window: usize,
    /// For patterns of the configuration: takes over where the automaton cannot decide, as `\b` beside a letter beyond ASCII.
    fallback: Option<meta::Regex>,
    /// The longest match, where the pattern bounds it.
    len_max: Option<usize>,
}

impl Pattern {
    /// A form of the gateway's own. Its search is linear without windows, and its matches are as long as they are.
    pub(super) fn of_form(pattern: &str) -> Result<Self, Unusable> {
        Self::compiled(pattern, false)
    }

    /// A pattern of the configuration.
    pub(super) fn configured(pattern: &str) -> Result<Self, Unusable> {
        Self::compiled(pattern, true)
    }

    fn compiled(pattern: &str, is_configured: bool) -> Result<Self, Unusable> {
        let hir = syntax::parse(pattern).map_err(|error| Unusable::Syntax(error.to_string()))?;
        match hir.properties().minimum_len() {
            // It would be found between all letters.
            Some(0) => return Err(Unusable::MatchesEmpty),
            Some(min) if min > MATCH_MAX => return Err(Unusable::TooLong),
            _ => {}
        }
        let prefilter = Prefilter::from_hir_prefix(MatchKind::LeftmostFirst, &hir).filter(Prefilter::is_fast);
        let thompson = thompson::Config::new().nfa_size_limit(Some(BYTES_MAX));
        let automaton = dfa::Config::new()
            .specialize_start_states(prefilter.is_some())
            .prefilter(prefilter)
            .unicode_word_boundary(true)
            .cache_capacity(BYTES_MAX)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(is_configured.then_some(3))
            .minimum_bytes_per_state(Some(10));
        let regex = hybrid::Regex::builder()
            .thompson(thompson)
            .dfa(automaton)
            .build(pattern)
            .map_err(|_| Unusable::TooLarge)?;
        let fallback = match is_configured {
            true => {
                let config = meta::Config::new().nfa_size_limit(Some(BYTES_MAX)).hybrid_cache_capacity(BYTES_MAX);
                let built = meta::Builder::new().configure(config).build_from_hir(&hir);
                Some(built.map_err(|_| Unusable::TooLarge)?)
            }
            false => None,
        };
        let caches: CachePool = Pool::new(|| None);
        let window = if is_configured { WINDOW } else { usize::MAX };
        let len_max = hir.properties().maximum_len().filter(|max| *max <= MATCH_MAX);
        Ok(Self { regex, caches, window, fallback, len_max })
    }

    pub(super) fn is_configured(&self) -> bool {
        self.window == WINDOW
    }

    /// The memory that the compiled pattern takes.
    pub(super) fn bytes(&self) -> usize {
        self.regex.forward().get_nfa().memory_usage() + self.regex.reverse().get_nfa().memory_usage()
    }

    /// Adds all matches in a text, in order; how many bytes were read for them.
    pub(super) fn find_all(
        &self,
        text: &str,
        is_cancelled: &AtomicBool,
        found: &mut Vec<Range<usize>>,
    ) -> Result<usize, Stopped> {
        let whole = text.len().saturating_mul(READS_PER_BYTE).saturating_add(READS_BASE);
        let mut budget = Budget { left: whole, is_cancelled };
        let mut cache = self.caches.get();
        let cache = cache.get_or_insert_with(|| self.regex.create_cache());
        let mut at = 0;
        while at < text.len() {
            let end = text.len().min(at.saturating_add(self.window));
            match self.find(cache, text, at..end, &mut budget)? {
                // The end of the window may have cut it: the next window begins with it.
                Some(place) if end < text.len() && place.start > at && place.start + MATCH_MAX > end => {
                    at = place.start;
                }
                Some(place) => {
                    at = place.end;
                    found.push(place);
                }
                None if end == text.len() => break,
                None => {
                    let mut next = (at..=end - MATCH_MAX + 1).rev();
                    at = next.find(|next| text.is_char_boundary(*next)).unwrap_or(end);
                }
            }
        }
        Ok(whole - budget.left)
    }

    /// The first match in a window of a text.
    fn find(
        &self,
        cache: &mut hybrid::Cache,
        text: &str,
        window: Range<usize>,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Range<usize>>, Stopped> {
        let (found, read) = self.find_by_automaton(cache, text, window.clone());
        budget.spend(read)?;
        if let Ok(place) = found {
            return Ok(place);
        }
        let Some(fallback) = &self.fallback else { return Ok(None) };
        let found = fallback.find(Input::new(text).span(window.clone())).map(|found| found.range());
        // The most that it can have read: it does not tell.
        let read_to = match (&found, self.len_max) {
            (Some(found), Some(max)) => window.end.min(found.start + max),
            _ => window.end,
        };
        budget.spend(read_to - window.start)?;
        Ok(found)
    }

    /// The first match, and how many bytes were read for it. An error means that the automaton cannot decide.
    fn find_by_automaton(
        &self,
        cache: &mut hybrid::Cache,
        text: &str,
        window: Range<usize>,
    ) -> (Result<Option<Range<usize>>, MatchError>, usize) {
        let (start, end) = (window.start, window.end);
        let (forward, reverse) = cache.as_parts_mut();
        let input = Input::new(text).span(window);
        let before = (forward.search_total_len(), forward.clear_count());
        let found = self.regex.forward().try_search_fwd(forward, &input);
        let read = match forward.clear_count() == before.1 {
            true => forward.search_total_len().saturating_sub(before.0),
            false => end - start,
        };
        let found = match found {
            Ok(Some(found)) => found.offset(),
            // A prefilter has passed over what was not read otherwise.
            Ok(None) => return (Ok(None), end - start),
            Err(error) => return (Err(error), read),
        };
        let input = input.span(start..found).anchored(Anchored::Yes);
        let begin = self.regex.reverse().try_search_rev(reverse, &input);
        let read = read.max(found - start) + (found - start);
        (begin.map(|begin| begin.map(|begin| begin.offset()..found)), read)
    }
}
