//! A tape: an append-only record of what happened, on which a test can wait for something to happen.

use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use crate::within::within;

/// What happened, in order. Everything stays readable; waiting starts at the beginning unless told otherwise.
#[derive(Debug)]
pub struct Tape<T> {
    entries: Mutex<Vec<T>>,
    length: watch::Sender<usize>,
}

impl<T> Default for Tape<T> {
    fn default() -> Tape<T> {
        Tape { entries: Mutex::new(Vec::new()), length: watch::Sender::new(0) }
    }
}

impl<T: Clone> Tape<T> {
    /// Adds an entry and wakes whoever waits.
    pub fn push(&self, entry: T) {
        let length = {
            let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            entries.push(entry);
            entries.len()
        };
        self.length.send_replace(length);
    }

    /// Everything up to now.
    #[must_use]
    pub fn all(&self) -> Vec<T> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Everything up to now, which is forgotten: marks taken before mean nothing any more.
    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many entries there are: a mark to wait from.
    #[must_use]
    pub fn mark(&self) -> usize {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The first entry from `mark` on for which `pick` gives something, if it is there already.
    pub fn find<R>(&self, mark: usize, mut pick: impl FnMut(&T) -> Option<R>) -> Option<R> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().skip(mark).find_map(&mut pick)
    }

    /// Waits for an entry by its number, however long that takes.
    pub async fn nth(&self, number: usize) -> T {
        let mut length = self.length.subscribe();
        let _open = length.wait_for(|length| *length > number).await;
        self.find(number, |entry| Some(entry.clone())).expect("nothing is forgotten meanwhile")
    }

    /// Waits, bounded, for the first entry for which `pick` gives something.
    pub async fn wait<R>(&self, what: &str, pick: impl FnMut(&T) -> Option<R>) -> R {
        self.wait_from(0, what, pick).await
    }

    /// As [`Tape::wait`], but entries before `mark` do not count.
    pub async fn wait_from<R>(&self, mark: usize, what: &str, mut pick: impl FnMut(&T) -> Option<R>) -> R {
        let mut length = self.length.subscribe();
        let mut seen = mark;
        within(what, async {
            loop {
                length.mark_unchanged();
                let found = {
                    let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
                    let from = seen.min(entries.len());
                    seen = seen.max(entries.len());
                    entries[from..].iter().find_map(&mut pick)
                };
                if let Some(found) = found {
                    return found;
                }
                if length.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        })
        .await
    }
}
