//! JSON or a stream: decided late, when it is known what comes first.

use crate::downstream::turns::{Turn, Turns};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::time::sleep;

/// How long headers wait for the first event or the outcome before a stream is opened.
const DECIDE_AFTER: Duration = Duration::from_secs(2);

/// The first frame, where it comes before a stream must be opened.
pub(super) async fn first(work: &mut impl Turns) -> Option<Turn> {
    let mut alarm = pin!(None);
    poll_fn(|cx| {
        if let Poll::Ready(turn) = work.poll_turn(cx) {
            return Poll::Ready(Some(turn));
        }
        // What is there at once needs no clock.
        if alarm.is_none() {
            alarm.set(Some(sleep(DECIDE_AFTER)));
        }
        alarm.as_mut().as_pin_mut().map_or(Poll::Pending, |alarm| alarm.poll(cx).map(|()| None))
    })
    .await
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
