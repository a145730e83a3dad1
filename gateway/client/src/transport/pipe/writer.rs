//! The writer of a pipe: it takes all that is queued at once, and gives back what it cannot write yet, so that what nobody waits for
//! any more can be taken out.

use super::exchange::Pipe;
use super::outbox::Batch;
use crate::health::{Cause, CauseCode};
use crate::memory::budget::UNCOUNTED;
use crate::runtime::poll::poll_when_woken;
use crate::transport::condition::Condition;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::time::sleep;

/// A write buffer that grew beyond this is not kept. A pipe has two of them, which count nowhere while they are empty.
pub(super) const KEEP_BYTES: usize = UNCOUNTED;
/// How often it is looked whether a pipe that is full has moved. It is looks that are counted and not time: whoever was frozen
/// itself has not looked.
const LOOK: Duration = Duration::from_secs(1);
/// The interval of looks for open calls after the peer has closed its end.
const HUNG_UP_LOOK: Duration = Duration::from_millis(20);
/// After so many looks without a byte it is shown that the upstream does not read.
const SHOWN_AFTER: u32 = 5;
/// After so many, the pipe ends where a frame is written in part that nobody waits for: its rest would have it run.
const HALF_MAX: u32 = 10;

/// What became of what was queued.
enum Turn {
    /// All of it is written.
    Written,
    /// There was nothing.
    Nothing,
    /// The pipe is closed.
    Closed,
}

/// Writes the queue until the pipe closes; the error of a write that failed. `hung_up` resolves once the peer has closed its end:
/// then writing ends with an error before the next call comes, as soon as no open call can still be answered.
pub async fn write(
    pipe: &Pipe,
    mut output: impl AsyncWrite + Unpin,
    hung_up: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut spare = Batch::default();
    let mut unread = Unread { pipe, is_shown: false };
    // One for all turns: each that is made anew stands in a list of those that are to be told.
    let mut closed = pin!(poll_when_woken(pipe.closed()));
    let mut hung_up = pin!(poll_when_woken(async {
        hung_up.await;
        while pipe.in_flight() > 0 {
            sleep(HUNG_UP_LOOK).await;
        }
    }));
    loop {
        let mut turn = poll_fn(|cx| Poll::Ready(poll_turn(pipe, &mut output, &mut spare, cx))).await;
        if turn.is_pending() {
            turn = Poll::Ready(once_it_reads(pipe, &mut output, &mut spare, &mut unread).await);
        }
        let Poll::Ready(turn) = turn else { continue };
        match turn? {
            Turn::Closed => return Ok(()),
            Turn::Written => unread.is_over(),
            Turn::Nothing => {
                unread.is_over();
                tokio::select! {
                    biased;
                    () = pipe.filled.notified() => {}
                    _ = closed.as_mut() => return Ok(()),
                    () = hung_up.as_mut() => return Err(io::ErrorKind::BrokenPipe.into()),
                }
            }
        }
    }
}

/// Writes what is queued, as far as there is room, and flushes it. Flushed is also where nothing is queued: an output may have more to
/// write than what it was given, such as pongs.
fn poll_turn(
    pipe: &Pipe,
    output: &mut (impl AsyncWrite + Unpin),
    spare: &mut Batch,
    cx: &mut Context<'_>,
) -> Poll<io::Result<Turn>> {
    let Some(mut batch) = pipe.out().take(spare) else { return Poll::Ready(Ok(Turn::Closed)) };
    if batch.is_written() {
        *spare = batch.emptied(KEEP_BYTES);
        return Pin::new(output).poll_flush(cx).map_ok(|()| Turn::Nothing);
    }
    while !batch.is_written() {
        match Pin::new(&mut *output).poll_write(cx, batch.rest()) {
            Poll::Pending => {
                pipe.out().put_back(batch);
                return Poll::Pending;
            }
            Poll::Ready(Ok(count @ 1..)) => batch.advance(count),
            Poll::Ready(failed) => {
                // Frames without a written byte were not sent: the outbox must know them when it closes.
                pipe.out().put_back(batch);
                return Poll::Ready(Err(failed.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into())));
            }
        }
    }
    *spare = batch.emptied(KEEP_BYTES);
    Pin::new(output).poll_flush(cx).map_ok(|()| Turn::Written)
}

/// Waits for room and writes what is queued. An upstream that does not read is shown as that; where it would run what has ended
/// once it reads again, the pipe is given up.
async fn once_it_reads(
    pipe: &Pipe,
    output: &mut (impl AsyncWrite + Unpin),
    spare: &mut Batch,
    unread: &mut Unread<'_>,
) -> io::Result<Turn> {
    let (mut looks, mut half_looks, mut moved) = (0, 0, None);
    loop {
        tokio::select! {
            biased;
            turn = poll_fn(|cx| poll_turn(pipe, output, spare, cx)) => return turn,
            _ = pipe.closed() => return Ok(Turn::Closed),
            () = sleep(LOOK) => {}
        }
        let (stuck, has_half) = {
            let out = pipe.out();
            (out.stuck(), out.has_half())
        };
        // All that was queued was given to the output, which cannot flush it.
        let (waiting, written) = stuck.unwrap_or((0, usize::MAX));
        if moved.replace(written) != Some(written) {
            (looks, half_looks) = (0, 0);
            unread.is_over();
        }
        looks += 1;
        half_looks = if has_half { half_looks + 1 } else { 0 };
        if looks >= SHOWN_AFTER {
            unread.show(waiting, LOOK * looks);
        }
        if half_looks >= HALF_MAX {
            let why =
                format!("input not read for {} s, with part of an ended call in its pipe", (LOOK * looks).as_secs());
            pipe.close(Cause::new(CauseCode::InputNotRead, why));
        }
    }
}

/// Shows that an upstream does not read, until it does.
struct Unread<'a> {
    pipe: &'a Pipe,
    is_shown: bool,
}

impl Unread<'_> {
    fn show(&mut self, waiting: usize, time: Duration) {
        if std::mem::replace(&mut self.is_shown, true) {
            return;
        }
        let messages = match waiting {
            0 => String::new(),
            1 => "; message waits".to_owned(),
            _ => format!("; {waiting} messages wait"),
        };
        let why = format!("input not read for {} s{messages}", time.as_secs());
        self.pipe.set_unread(true);
        self.pipe.inbox.set_condition(Condition::Unread, Some(&Cause::new(CauseCode::InputNotRead, &*why)));
        self.pipe.inbox.failed("unread", CauseCode::InputNotRead, &why);
    }

    fn is_over(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            self.pipe.set_unread(false);
            self.pipe.inbox.set_condition(Condition::Unread, None);
        }
    }
}

#[cfg(test)]
mod tests;
