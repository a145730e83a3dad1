//! What a person orders an upstream to do, until its supervisor has done it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::sync::{Notify, oneshot};

/// So many orders wait for one upstream.
const ORDERS_MAX: usize = 16;

/// What an upstream can be ordered to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// To run, whatever kept it from that.
    Start,
    /// To end, and to stay so until it is ordered to start.
    Stop,
    /// To end once its running calls have, which is waited for a while, and to run again.
    Restart,
    /// To end, and to run again.
    RestartNow,
}

impl Order {
    /// Every order.
    pub const ALL: [Self; 4] = [Self::Start, Self::Stop, Self::Restart, Self::RestartNow];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::RestartNow => "restart-now",
        }
    }
}

/// Why an order was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotOrdered {
    /// There is no such upstream.
    #[error("no upstream")]
    Unknown,
    /// Too many orders wait already.
    #[error("too many commands are waiting for this upstream")]
    Busy,
}

/// An order that its supervisor has taken. Dropping it tells that it is no longer being done.
#[derive(Debug)]
pub struct Ordered {
    /// What is to be done.
    pub order: Order,
    /// All who wait for it.
    done: Vec<oneshot::Sender<()>>,
}

impl Ordered {
    /// It was done.
    pub fn done(self) {
        for done in self.done {
            // Whoever ordered it may have gone.
            let _ = done.send(());
        }
    }

    /// The next order in place of this one; whoever waits for this one waits for that.
    pub fn and(mut self, next: Self) -> Self {
        self.done.extend(next.done);
        Self { order: next.order, done: self.done }
    }
}

/// Where the orders of one upstream wait.
#[derive(Debug, Default)]
pub(super) struct Orders {
    waiting: Mutex<VecDeque<Ordered>>,
    given: Notify,
}

impl Orders {
    /// Takes an order; resolves once it was done, or fails when it never will be.
    pub(super) fn give(&self, order: Order) -> Result<oneshot::Receiver<()>, NotOrdered> {
        let (done, wait) = oneshot::channel();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|ordered| ordered.done.iter().any(|done| !done.is_closed()));
        if waiting.len() >= ORDERS_MAX {
            return Err(NotOrdered::Busy);
        }
        waiting.push_back(Ordered { order, done: vec![done] });
        drop(waiting);
        self.given.notify_one();
        Ok(wait)
    }

    /// The next order. Dropping the future loses none.
    pub(super) async fn next(&self) -> Ordered {
        loop {
            let next = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            match next {
                Some(ordered) => return ordered,
                None => self.given.notified().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn orders_are_done_in_their_order_and_bounded() {
        let orders = Orders::default();
        let (one, two) = (orders.give(Order::Stop).unwrap(), orders.give(Order::Start).unwrap());
        let taken = orders.next().await;
        assert_eq!(taken.order, Order::Stop);
        taken.done();
        one.await.unwrap();
        drop(orders.next().await);
        assert!(two.await.is_err(), "nobody does it any more");
        let (one, two) = (orders.give(Order::Restart).unwrap(), orders.give(Order::Stop).unwrap());
        let both = orders.next().await.and(orders.next().await);
        assert_eq!(both.order, Order::Stop);
        both.done();
        assert!(one.await.is_ok() && two.await.is_ok(), "who ordered the first waits for the second");
        let kept: Vec<_> = (0..ORDERS_MAX).map(|_| orders.give(Order::Start).unwrap()).collect();
        assert_eq!(orders.give(Order::Stop).unwrap_err(), NotOrdered::Busy);
        drop(kept);
        assert!(orders.give(Order::Stop).is_ok(), "what nobody waits for is not done");
    }
}
