//! How long one task may go on at a stretch: whoever reads or writes what never ends lets others have their turn.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

/// After so much others have their turn: about a quarter of a millisecond's worth of the smallest messages.
const MOST: usize = 64 * 1024;
/// What a message costs, however small it is, in bytes of a large one.
const MESSAGE: usize = 512;
/// A read of less has taken all that there was: the next one waits, and others have their turn then.
const LITTLE: usize = 8 * 1024;
/// So many messages that answer nothing are heard on one stream in [`PACE`]: who says more is made to wait. Each costs a turn of
/// the task that reads its connection and one of that which reads the stream, so that a flood of them keeps two processors busy
/// however short each turn is. On a pipe, where a read brings hundreds, and answers of other calls, nobody is made to wait.
const PACE_MESSAGES: u32 = 32;
const PACE: Duration = Duration::from_millis(2);

/// What a task has done since others had their turn.
#[derive(Debug, Default)]
pub struct FairShare {
    /// In bytes of a large message.
    done: usize,
    /// How many messages were heard, and since when.
    heard: u32,
    since: Option<Instant>,
}

impl FairShare {
    /// So many bytes were read at once, and are dealt with.
    pub async fn read(&mut self, bytes: usize) {
        match bytes < LITTLE {
            true => self.done = 0,
            false => self.did(bytes).await,
        }
    }

    /// A message of so many bytes is dealt with.
    pub async fn message(&mut self, bytes: usize) {
        self.did(bytes + MESSAGE).await;
    }

    /// A message of so many bytes is dealt with that answers nothing: of these only so many are heard in a while.
    pub async fn heard(&mut self, bytes: usize) {
        let since = *self.since.get_or_insert_with(Instant::now);
        self.heard += 1;
        if self.heard >= PACE_MESSAGES {
            (self.done, self.heard) = (0, 0);
            // Long past where so many came in a longer time.
            sleep_until(since + PACE).await;
            self.since = Some(Instant::now());
        }
        self.message(bytes).await;
    }

    /// A message of so many bytes is written; [`Self::poll_turn`] is asked before the next one.
    pub fn wrote(&mut self, bytes: usize) {
        self.done += bytes + MESSAGE;
    }

    /// Whether the task may go on; else it is polled again after others.
    pub fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.done < MOST {
            return Poll::Ready(());
        }
        self.done = 0;
        // A plain wake would not do: a connection polls itself again at once when it wakes itself.
        pin!(yield_now()).poll(cx)
    }

    async fn did(&mut self, cost: usize) {
        self.done += cost;
        if self.done >= MOST {
            self.done = 0;
            yield_now().await;
        }
    }
}

#[cfg(any(test, feature = "test-support"))]
/// Counts the turns of a second task on the same thread until `work` has ended.
pub async fn turns_beside(work: impl Future<Output = ()>) -> usize {
    let (turns, is_over) = (std::cell::Cell::new(0), std::cell::Cell::new(false));
    let neighbour = async {
        while !is_over.get() {
            turns.set(turns.get() + 1);
            yield_now().await;
        }
    };
    let work = async {
        work.await;
        is_over.set(true);
    };
    tokio::join!(work, neighbour);
    turns.get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::poll::repoll_on_self_wake;
    use std::future::poll_fn;

    const MESSAGES: usize = 10_000;

    #[tokio::test(start_paused = true)]
    async fn small_messages_count_for_more_than_their_bytes() {
        let mut stretch = FairShare::default();
        let reader = async {
            for _ in 0..MESSAGES {
                stretch.message(80).await;
            }
        };
        let turns = turns_beside(reader).await;
        assert!((MESSAGES / 128..MESSAGES / 64).contains(&turns), "{turns} turns beside {MESSAGES} messages");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_polls_itself_again_gives_way_all_the_same() {
        let (mut stretch, mut left) = (FairShare::default(), MESSAGES);
        let writer = repoll_on_self_wake(poll_fn(move |cx| {
            while left > 0 {
                std::task::ready!(stretch.poll_turn(cx));
                stretch.wrote(80);
                left -= 1;
            }
            Poll::Ready(())
        }));
        let turns = turns_beside(writer).await;
        assert!(turns >= MESSAGES / 128, "{turns} turns beside {MESSAGES} messages");
    }

    #[tokio::test(start_paused = true)]
    async fn who_says_more_than_anybody_would_is_made_to_wait() {
        let (begun, mut stretch) = (Instant::now(), FairShare::default());
        for _ in 0..100 * PACE_MESSAGES {
            stretch.heard(80).await;
        }
        assert_eq!(begun.elapsed(), 100 * PACE);
        // Who says so many in a longer time is not.
        let begun = Instant::now();
        for _ in 0..10 * PACE_MESSAGES {
            tokio::time::advance(PACE / 16).await;
            stretch.heard(80).await;
        }
        assert_eq!(begun.elapsed(), 10 * PACE_MESSAGES * (PACE / 16));
    }
}
