//! Exemplars: of what each bucket of a histogram has counted, the last request that was part of a sampled trace.

use crate::protocol::meta::trace::Context;
use std::cell::Cell;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

/// A trace and a span in it.
type Place = ([u8; 16], [u8; 8]);

thread_local! {
    /// Whose measurements this thread records just now.
    static MEASURED: Cell<Option<Place>> = const { Cell::new(None) };
}

/// Runs what records measurements of a span: where that is sampled, each is an exemplar of its bucket.
pub(crate) fn of_span<T>(span: Option<&Context>, record: impl FnOnce() -> T) -> T {
    let Some(span) = span.filter(|span| span.is_sampled()) else { return record() };
    MEASURED.set(Some((span.trace, span.span)));
    let recorded = record();
    MEASURED.set(None);
    recorded
}

/// One measurement, and the span that it was made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exemplar {
    pub(super) trace: [u8; 16],
    pub(super) span: [u8; 8],
    pub(super) value: f64,
    pub(super) time: SystemTime,
}

/// Those of one histogram, a place for each bucket. Without a sampled trace there is none, and no memory for one.
#[derive(Debug, Default)]
pub(super) struct Exemplars(OnceLock<Box<[Mutex<Option<Exemplar>>]>>);

impl Exemplars {
    /// A bucket of so many has counted a value.
    #[inline]
    pub(super) fn counted(&self, bucket: usize, of: usize, value: f64) {
        if let Some(place) = MEASURED.get() {
            self.keep(bucket, of, value, place);
        }
    }

    #[cold]
    fn keep(&self, bucket: usize, of: usize, value: f64, (trace, span): Place) {
        let places = self.0.get_or_init(|| (0..of).map(|_| Mutex::default()).collect());
        let exemplar = Exemplar { trace, span, value, time: SystemTime::now() };
        *places[bucket].lock().unwrap_or_else(PoisonError::into_inner) = Some(exemplar);
    }

    /// That of a bucket.
    pub(super) fn of(&self, bucket: usize) -> Option<Exemplar> {
        *self.0.get()?[bucket].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
