//! Messages that wait for a stream of their session: bounded in number and in bytes, and counted for its client.

use crate::memory::StandingCharge;
use crate::memory::budget::Budget;
use crate::metrics;
use std::collections::VecDeque;

/// The most messages that wait in one queue.
const MESSAGES_MAX: usize = 64;
/// The most bytes of them together.
const BYTES_MAX: usize = 1024 * 1024;

/// Messages that wait.
#[derive(Debug)]
pub(crate) struct WaitingMessages {
    budget: Budget,
    messages: VecDeque<(Vec<u8>, StandingCharge)>,
    bytes: usize,
}

impl WaitingMessages {
    /// An empty queue of the client that owns the budget.
    pub(crate) fn new(budget: &Budget) -> Self {
        Self { budget: budget.clone(), messages: VecDeque::new(), bytes: 0 }
    }

    /// Whether no more messages are taken, however small.
    pub(crate) fn is_full(&self) -> bool {
        self.messages.len() >= MESSAGES_MAX
    }

    /// Takes a message; one that finds no room is dropped and counted.
    pub(crate) fn push(&mut self, message: Vec<u8>) {
        let bytes = self.bytes.saturating_add(message.len());
        match self.budget.stand(message.len()) {
            Ok(charge) if !self.is_full() && bytes <= BYTES_MAX => {
                self.bytes = bytes;
                self.messages.push_back((message, charge));
            }
            _ => metrics::dropped("overflow").increment(1),
        }
    }

    /// The oldest message.
    pub(crate) fn pop(&mut self) -> Option<Vec<u8>> {
        let (message, _) = self.messages.pop_front()?;
        self.bytes -= message.len();
        Some(message)
    }

    /// Drops all of them.
    pub(crate) fn clear(&mut self) {
        self.messages.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_messages_are_bounded_in_number_and_bytes_and_counted() {
        let budget = Budget::new(64 << 20);
        let mut waiting = WaitingMessages::new(&budget);
        (0..1000).for_each(|_| waiting.push(vec![b'x'; 1024]));
        assert_eq!((waiting.messages.len(), waiting.bytes), (MESSAGES_MAX, MESSAGES_MAX * 1024));
        assert_eq!(budget.used(), MESSAGES_MAX * 1024);
        waiting.clear();
        (0..10).for_each(|_| waiting.push(vec![b'x'; 300 * 1024]));
        assert_eq!(waiting.messages.len(), 3);
        assert!(budget.used() >= 900 * 1024);
        while waiting.pop().is_some() {}
        assert_eq!((waiting.bytes, budget.used()), (0, 0));
        // Of one client's many sessions all queues together have its part.
        let mut many: Vec<_> = (0..64).map(|_| WaitingMessages::new(&budget)).collect();
        many.iter_mut().for_each(|one| (0..64).for_each(|_| one.push(vec![b'x'; 16 * 1024])));
        assert_eq!(budget.used(), 8 << 20);
    }
}
