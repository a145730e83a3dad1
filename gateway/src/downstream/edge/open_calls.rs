//! The open calls of one client connection or session: where a cancellation finds the call it means.

use crate::call::refusal::{Reason, Refusal};
use crate::protocol::frame::message::Id;
use slab::Slab;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The most calls that one client may have open at once.
const OPEN_MAX: usize = 4096;

/// The open calls of one client.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    calls: Slab<Entry>,
    /// Tells which of two calls with the same id is the newer one.
    serial: u64,
    /// The client is gone: every call is cancelled, new ones too.
    closed: bool,
}

#[derive(Debug)]
struct Entry {
    id: Id,
    serial: u64,
    cancelled: bool,
    waker: Option<Waker>,
}

/// One open call's place in the table; it leaves with the call.
#[derive(Debug)]
pub(crate) struct OpenCall {
    calls: Arc<OpenCalls>,
    at: usize,
}

impl OpenCalls {
    /// Takes a place.
    pub(crate) fn enter(self: &Arc<Self>, id: &Id) -> Result<OpenCall, Refusal> {
        let mut table = self.lock();
        if table.closed {
            return Err(Refusal::new(Reason::Session, "the session has ended; initialize anew"));
        }
        if table.calls.len() >= OPEN_MAX {
            let why = format!("{OPEN_MAX} calls of this client are open; wait for some to end");
            return Err(Refusal::new(Reason::Busy, why));
        }
        table.serial += 1;
        let entry = Entry { id: id.clone(), serial: table.serial, cancelled: false, waker: None };
        let at = table.calls.insert(entry);
        Ok(OpenCall { calls: self.clone(), at })
    }

    /// Cancels the newest call of an id that is not cancelled yet; ids are compared as raw bytes.
    pub(crate) fn cancel(&self, id: &[u8]) -> bool {
        let mut table = self.lock();
        let named = table.calls.iter_mut().map(|(_, entry)| entry).filter(|e| !e.cancelled && e.id.raw() == id);
        let waker = named.max_by_key(|entry| entry.serial).map(Entry::cancel);
        drop(table);
        let found = waker.is_some();
        waker.flatten().into_iter().for_each(Waker::wake);
        found
    }

    /// Cancels every call, and those that come.
    pub(crate) fn close(&self) {
        let mut table = self.lock();
        table.closed = true;
        let wakers: Vec<_> = table.calls.iter_mut().filter_map(|(_, entry)| entry.cancel()).collect();
        drop(table);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether no call is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().calls.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn cancel(&mut self) -> Option<Waker> {
        self.cancelled = true;
        self.waker.take()
    }
}

impl OpenCall {
    /// Ready when the client has withdrawn the call.
    pub(crate) fn poll_cancelled(&self, cx: &Context<'_>) -> Poll<()> {
        let mut table = self.calls.lock();
        let entry = &mut table.calls[self.at];
        if entry.cancelled {
            return Poll::Ready(());
        }
        if !entry.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            entry.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let entry = self.calls.lock().calls.try_remove(self.at);
        drop(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn a_cancellation_hits_the_newest_open_call_of_its_id() {
        let calls = Arc::new(OpenCalls::default());
        let id = |text: &'static str| Id::from_raw(Bytes::from_static(text.as_bytes())).unwrap();
        let [older, newer, text] = [id("1"), id("1"), id("\"1\"")].map(|id| calls.enter(&id).unwrap());
        let is_cancelled = |call: &OpenCall| call.poll_cancelled(&Context::from_waker(Waker::noop())).is_ready();
        assert!(calls.cancel(b"1"));
        assert!(is_cancelled(&newer) && !is_cancelled(&older) && !is_cancelled(&text));
        assert!(calls.cancel(b"1") && !calls.cancel(b"1") && !calls.cancel(b"2"));
        drop((older, newer));
        assert!(!calls.is_empty());
        calls.close();
        assert!(is_cancelled(&text) && calls.enter(&id("2")).is_err());
    }
}
