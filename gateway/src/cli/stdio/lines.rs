//! Between the client and one gateway, to the end of either side.

use std::cell::RefCell;
use std::io;
use std::pin::pin;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::{Mutex, Notify};

use super::ledger::{Frames, Ledger};
use super::parting::Parting;
use super::reader::Reader;
use crate::call::refusal::{Reason, Refusal};
use crate::memory::budget::Budget;
use crate::protocol::frame::message::error;
use crate::protocol::framing::Untaken;
use crate::protocol::framing::lines::Line;
use crate::protocol::revision::Revision;

/// A connection to a gateway.
pub(super) type Gateway = BufReader<UnixStream>;

/// A shorter frame is written in one go with its line end.
const TOGETHER_BYTES: usize = 64 * 1024;

/// How a gateway was left.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The client has closed stdin, and what runs had its time.
    Client,
    /// The same, and it did not read what was written to it: half a line is there.
    Unread,
    /// The gateway has ended.
    Gateway,
}

/// What a client and a gateway are bridged by.
pub(super) struct Between<'a, R, W> {
    pub(super) client: &'a mut Reader<R>,
    /// The longest line of the client.
    pub(super) max: usize,
    pub(super) stdout: &'a mut W,
    pub(super) budget: &'a Budget,
    pub(super) ledger: &'a RefCell<Ledger>,
    pub(super) parting: &'a Parting,
}

/// Bridges to one gateway. Nothing that is waited for here outlasts a client that has left: neither a gateway that does not read, nor one that
/// does not answer, nor a client that does not read either.
pub(super) async fn bridged<R, W>(between: Between<'_, R, W>, gateway: Gateway) -> Result<End, anyhow::Error>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let Between { client, max, stdout, budget, ledger, parting } = between;
    let (reading, mut writing) = tokio::io::split(gateway);
    let mut gateway = Reader::new(reading, budget, budget.longest());
    let (stdout, answered) = (Mutex::new(stdout), Notify::new());
    let mut frames = ledger.borrow_mut().greeting();
    let up = async {
        loop {
            match parting.before_over(write(&mut writing, &frames)).await {
                Some(Ok(())) => {}
                // A gateway that cannot be written to is noticed where it is read.
                Some(Err(_)) => std::future::pending().await,
                None => return Ok::<_, anyhow::Error>(()),
            }
            while !ledger.borrow().has_room() {
                if parting.before_over(answered.notified()).await.is_none() {
                    return Ok(());
                }
            }
            frames = match client.next().await? {
                Some(Line::Frame(line)) => ledger.borrow_mut().up(line),
                Some(line) => {
                    let said: Frames = untaken(&line, max).into_iter().collect();
                    let saying = async { write(&mut **stdout.lock().await, &said).await };
                    match parting.before_over(saying).await {
                        Some(said) => said?,
                        None => return Ok(()),
                    }
                    Frames::new()
                }
                None => {
                    parting.begin();
                    let _unwritten = writing.shutdown().await;
                    return Ok(());
                }
            };
        }
    };
    let down = async {
        // One that ends in the midst of a line is as good as ended.
        while let Some(line) = gateway.next().await.unwrap_or_default() {
            let frames = match line {
                Line::Frame(line) => ledger.borrow_mut().down(line),
                Line::Untaken { head, why, .. } => {
                    let why = format!("the answer was dropped: {why}");
                    ledger.borrow_mut().untaken(&head, &why)
                }
            };
            answered.notify_one();
            write(&mut **stdout.lock().await, &frames).await?;
        }
        Ok::<_, anyhow::Error>(())
    };
    let mut down = pin!(down);
    tokio::select! {
        left = up => left?,
        ended = down.as_mut() => return ended.map(|()| End::Gateway),
    }
    // What still runs is answered in its time, or not at all.
    match parting.before_over(down.as_mut()).await {
        Some(ended) => ended.map(|()| End::Client),
        None => Ok(if stdout.try_lock().is_ok() { End::Client } else { End::Unread }),
    }
}

/// What is said of a line that cannot be taken.
pub(super) fn untaken(line: &Line, max: usize) -> Option<Bytes> {
    let Line::Untaken { why, .. } = line else { return None };
    let why = match why {
        Untaken::TooLong => format!("a line is longer than {max} bytes, the limit set by `server.max_body`"),
        why => format!("a message was dropped: {why}"),
    };
    let refusal = Refusal::new(Reason::InvalidRequest, why);
    Some(error(None, refusal.to_rpc(Revision::NEWEST_LEGACY).raw()))
}

/// Writes frames, a line each.
pub(super) async fn write<W: AsyncWrite + Unpin>(out: &mut W, frames: &[Bytes]) -> io::Result<()> {
    for frame in frames {
        if frame.len() < TOGETHER_BYTES {
            let mut line = Vec::with_capacity(frame.len() + 1);
            line.extend_from_slice(frame);
            line.push(b'\n');
            out.write_all(&line).await?;
        } else {
            out.write_all(frame).await?;
            out.write_all(b"\n").await?;
        }
    }
    if frames.is_empty() { Ok(()) } else { out.flush().await }
}
