//! JSON or a stream: decided late, when it is known what comes first.

use crate::downstream::turns::{Turn, Turns};
use std::task::Poll;
use std::time::Duration;

/// How long headers wait for the first event or the outcome before a stream is opened.
const DECIDE_AFTER: Duration = Duration::from_secs(2);

/// The first frame, where it comes before a stream must be opened.
pub(super) async fn first(work: &mut impl Turns) -> Option<Turn> {
    // What is there at once needs no clock.
    match std::future::poll_fn(|cx| Poll::Ready(work.poll_turn(cx))).await {
        Poll::Ready(turn) => Some(turn),
        Poll::Pending => tokio::time::timeout(DECIDE_AFTER, work.turn()).await.ok(),
    }
}

/// The response, for a client that reads no streams and so hears of no event.
pub(super) async fn last(work: &mut impl Turns) -> Turn {
    loop {
        let turn = work.turn().await;
        if !matches!(turn, Turn::Event(_)) {
            return turn;
        }
    }
}
