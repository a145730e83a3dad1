//! What waits to be sent beside the exchanges: bounded in number and bytes, of each client too, and sent by turns.

use crate::call::share::{Share, Tally, may_have};
use crate::memory::account::Kind;
use crate::memory::budget::{Budget, Charge};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many messages wait or are being sent, and how many bytes they are.
const MESSAGES_MAX: usize = 1024;
const BYTES_MAX: usize = 8 * 1024 * 1024;
/// How many of them are answers that are given at once: an upstream that asks without end leaves room for what others say to it.
const AT_ONCE_MAX: usize = 64;
/// How many are sent at a time.
const SENDERS_MAX: usize = 16;

/// A message that is sent beside the exchanges.
pub(crate) trait Beside: Send + Sync {
    /// How much of the budget it takes.
    fn bytes(&self) -> usize;

    /// Whether it is an answer that is given at once.
    fn is_at_once(&self) -> bool;

    /// The client whose call it belongs to; `None` for what is the gateway's own.
    fn share(&self) -> Option<&Share>;

    /// Sends it; whoever waits for it hears where it is not taken.
    fn deliver(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// It is not sent, for this reason.
    fn was_dropped(&self, why: &str);
}

/// What waits to be sent to one upstream, whatever session it is of.
#[derive(Default)]
pub(crate) struct BesideQueue(Mutex<Inner>);

/// What waits for one client.
struct Lane {
    share: Option<Share>,
    messages: VecDeque<Box<dyn Beside>>,
}

#[derive(Default)]
struct Inner {
    /// What waits, by client; the clients take turns. Nobody stands here with nothing.
    lanes: VecDeque<Lane>,
    /// How many messages, and how many bytes, each client has here.
    messages_of: Tally,
    bytes_of: Tally,
    /// How many wait or are being sent, how many of them are answers that were given at once, and how many bytes they are.
    messages: usize,
    at_once: usize,
    bytes: usize,
    charge: Charge,
    senders: usize,
}

impl BesideQueue {
    /// Takes a message in; whether another sender is wanted. The newest is given back where too many wait, or where its client has no
    /// fewer than there is still room for.
    pub(crate) fn push(&self, message: Box<dyn Beside>, budget: &Budget) -> Result<bool, Box<dyn Beside>> {
        let mut inner = self.lock();
        let is_at_once = message.is_at_once();
        let bytes = inner.bytes + message.bytes();
        let is_full = inner.messages >= MESSAGES_MAX
            || is_at_once && inner.at_once >= AT_ONCE_MAX
            || bytes > BYTES_MAX
            || message.share().is_some_and(|share| !inner.has_part_for(share, message.bytes()))
            || inner.charge.grow(budget, Kind::Queue, bytes).is_err();
        if is_full {
            return Err(message);
        }
        inner.bytes = bytes;
        inner.messages += 1;
        inner.at_once += usize::from(is_at_once);
        inner.take(message);
        let is_wanted = inner.senders < SENDERS_MAX;
        inner.senders += usize::from(is_wanted);
        Ok(is_wanted)
    }

    /// The next message for a sender; without one the sender has gone.
    pub(crate) fn next(&self) -> Option<Box<dyn Beside>> {
        let mut inner = self.lock();
        let next = inner.next();
        inner.senders -= usize::from(next.is_none());
        next
    }

    /// A message was sent, or never will be.
    pub(crate) fn is_over(&self, message: &dyn Beside) {
        self.lock().counts_no_more(message);
    }

    /// Forgets all that waits: the connections that it was for are gone.
    pub(crate) fn clear(&self) {
        let mut inner = self.lock();
        let lanes = std::mem::take(&mut inner.lanes);
        lanes.iter().flat_map(|lane| &lane.messages).for_each(|message| inner.counts_no_more(&**message));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Whether a client may have so many bytes more: one that has nothing may have one message of any size.
    fn has_part_for(&self, share: &Share, bytes: usize) -> bool {
        let own = self.bytes_of.of(share);
        may_have(self.messages_of.of(share), MESSAGES_MAX - self.messages)
            && (own == 0 || own + bytes <= BYTES_MAX - self.bytes)
    }

    fn take(&mut self, message: Box<dyn Beside>) {
        let share = message.share().cloned();
        if let Some(share) = &share {
            self.messages_of.add(share);
            self.bytes_of.add_many(share, message.bytes());
        }
        match self.lanes.iter_mut().find(|lane| lane.share == share) {
            Some(lane) => lane.messages.push_back(message),
            None => self.lanes.push_back(Lane { share, messages: VecDeque::from([message]) }),
        }
    }

    fn next(&mut self) -> Option<Box<dyn Beside>> {
        let mut lane = self.lanes.pop_front()?;
        let message = lane.messages.pop_front();
        if !lane.messages.is_empty() {
            self.lanes.push_back(lane);
        }
        message
    }

    fn counts_no_more(&mut self, message: &dyn Beside) {
        self.messages -= 1;
        self.at_once -= usize::from(message.is_at_once());
        self.bytes -= message.bytes();
        if let Some(share) = message.share() {
            self.messages_of.remove(share);
            self.bytes_of.remove_many(share, message.bytes());
        }
        self.charge.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::caller::Principal;

    struct Said(Option<Share>, usize);

    impl Beside for Said {
        fn bytes(&self) -> usize {
            self.1
        }
        fn is_at_once(&self) -> bool {
            false
        }
        fn share(&self) -> Option<&Share> {
            self.0.as_ref()
        }
        fn deliver(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
            Box::pin(std::future::ready(()))
        }
        fn was_dropped(&self, _: &str) {}
    }

    #[test]
    fn one_clients_messages_leave_room_for_those_of_others_and_are_sent_by_turns() {
        let (queue, budget) = (BesideQueue::default(), Budget::default());
        let share = |name: &str| (!name.is_empty()).then(|| Share::Principal(Principal::named(name)));
        let push = |name: &str, bytes| queue.push(Box::new(Said(share(name), bytes)), &budget).is_ok();
        let of_ann = (0..2 * MESSAGES_MAX).take_while(|_| push("ann", 1)).count();
        assert_eq!(of_ann, MESSAGES_MAX / 2);
        assert!(push("bob", 1) && push("bob", 1) && push("", 1), "others find room");
        let next = || queue.next().map(|message| (queue.is_over(&*message), message.share().cloned()).1);
        let first: Vec<_> = (0..6).map_while(|_| next()).collect();
        assert_eq!(first, ["ann", "bob", "", "ann", "bob", "ann"].map(share));
        assert!(push("bob", BYTES_MAX / 2) && !push("bob", BYTES_MAX / 4), "its bytes are bounded, too");
        assert!(push("eve", BYTES_MAX / 3));
        queue.clear();
        assert!(next().is_none());
        let inner = queue.lock();
        assert!(inner.messages_of.is_empty() && inner.bytes_of.is_empty() && inner.messages == 0);
    }
}
