//! The open calls of one client connection or session: where a cancellation finds the call it means.

use crate::call::refusal::{Reason, Refusal};
use crate::protocol::frame::message::Id;
use crate::runtime::Keyed;
use slab::Slab;
use std::collections::HashMap;
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
    /// The ids of the calls that are not cancelled, where the answers share one pipe: nothing but the id tells them apart there.
    /// Over HTTP each answer has a stream of its own, and some clients number every request alike.
    ids: Option<HashMap<Id, usize, Keyed>>,
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
    /// The calls of a client whose answers share one pipe.
    pub(crate) fn on_one_pipe() -> Self {
        Self(Mutex::new(Table { ids: Some(HashMap::default()), ..Table::default() }))
    }

    /// Whether a request may have this id. On one pipe it may not as long as another one has it; it is free again once that is answered
    /// or cancelled.
    pub(crate) fn admits(&self, id: &Id) -> Result<(), Refusal> {
        if !self.lock().ids.as_ref().is_some_and(|ids| ids.contains_key(id)) {
            return Ok(());
        }
        let why = "a request with this `id` is under way, and goes on; give each request an id of its own";
        Err(Refusal::new(Reason::InvalidRequest, why))
    }

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
        if let Some(ids) = &mut table.ids {
            *ids.entry(id.clone()).or_default() += 1;
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
        if waker.is_some() {
            table.frees(id);
        }
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

impl Table {
    /// One call less has the id.
    fn frees(&mut self, id: &[u8]) {
        let Some(ids) = &mut self.ids else { return };
        match ids.get_mut(id) {
            Some(count) if *count > 1 => *count -= 1,
            _ => _ = ids.remove(id),
        }
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
        let mut table = self.calls.lock();
        let entry = table.calls.try_remove(self.at);
        if let Some(entry) = entry.as_ref().filter(|entry| !entry.cancelled) {
            table.frees(entry.id.raw());
        }
        drop(table);
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

    #[test]
    fn on_one_pipe_an_id_is_of_one_call_that_is_open() {
        let calls = Arc::new(OpenCalls::on_one_pipe());
        let id = |text: &'static str| Id::from_raw(Bytes::from_static(text.as_bytes())).unwrap();
        let [older, text] = [id("1"), id("\"1\"")].map(|id| calls.enter(&id).unwrap());
        let is_cancelled = |call: &OpenCall| call.poll_cancelled(&Context::from_waker(Waker::noop())).is_ready();
        let is_admitted = |text| calls.admits(&id(text)).is_ok();
        let refused = calls.admits(&id("1")).unwrap_err();
        assert!(refused.message.contains("is under way") && !is_cancelled(&older) && is_admitted("2"), "{refused:?}");
        // Its answer never comes now; and the end of the old call does not free the id of the new one.
        assert!(calls.cancel(b"1") && is_cancelled(&older) && !is_cancelled(&text) && is_admitted("1"));
        let newer = calls.enter(&id("1")).unwrap();
        drop(older);
        assert!(!is_admitted("1") && !is_cancelled(&newer));
        drop(newer);
        assert!(is_admitted("1") && !is_admitted("\"1\""));
        // Elements of the method `batch` may have the same one: their answers stand in that of the whole.
        let [one, other] = [(), ()].map(|()| calls.enter(&id("3")).unwrap());
        drop(one);
        assert!(!is_admitted("3"));
        drop(other);
        assert!(is_admitted("3") && Arc::new(OpenCalls::default()).admits(&id("3")).is_ok());
    }
}
