//! The one that writes to a WebSocket: each frame of ours is one text message, and what is small goes together.

use crate::memory::account::Kind;
use crate::memory::budget::{Budget, UNCOUNTED};
use crate::metrics::messages;
use crate::protocol::framing::websocket::{Kind as Opcode, write_head};
use bytes::Bytes;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// So many frames are put together for one write.
const TOGETHER: usize = 32;
/// The most bytes of a close frame's reason, which is ASCII.
const REASON_BYTES: usize = 123;
/// The code of a connection that is closed for want of memory.
const TRY_AGAIN_LATER: u16 = 1013;

/// So many pings are answered each; of more that come before these answers are written, the newest is (RFC 6455, 5.5.3).
const PONGS_MAX: usize = 32;

/// The answers to pings that wait to be written.
#[derive(Default)]
pub(super) struct Pongs {
    due: Mutex<VecDeque<Bytes>>,
    filled: Notify,
}

impl Pongs {
    /// Has a ping answered.
    pub(super) fn put(&self, payload: Bytes) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        due.truncate(PONGS_MAX - 1);
        due.push_back(payload);
        drop(due);
        self.filled.notify_one();
    }

    async fn next(&self) -> Bytes {
        loop {
            let next = self.due.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            match next {
                Some(payload) => return payload,
                None => self.filled.notified().await,
            }
        }
    }
}

/// What is written besides frames of MCP and answers to pings.
pub(super) enum Order {
    /// The end. Where it `is_last`, what waits is written before it.
    Close { code: Option<u16>, reason: String, is_last: bool },
}

/// Writes what comes, until it is ordered to close or must, for want of memory; a ping where nothing came for so long. After the close
/// frame it sends nothing more, and says so to the system.
pub(super) async fn write<W: AsyncWrite + Unpin>(
    out: W,
    (mut frames, pongs, mut orders): (Receiver<Bytes>, &Pongs, Receiver<Order>),
    budget: &Budget,
    keepalive: Duration,
) -> io::Result<()> {
    let mut out = Out { out, bytes: Vec::new(), budget };
    let mut ticks = interval_at(Instant::now() + keepalive, keepalive);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut together, mut is_silent) = (Vec::with_capacity(TOGETHER), true);
    loop {
        tokio::select! {
            biased;
            Some(order) = orders.recv() => match order {
                Order::Close { code, reason, is_last } => {
                    while is_last && let Ok(frame) = frames.try_recv() {
                        if !out.text(&frame).await? {
                            return Ok(());
                        }
                    }
                    return out.close(code, &reason).await;
                }
            },
            payload = pongs.next() => out.small(Opcode::Pong, &payload),
            1.. = frames.recv_many(&mut together, TOGETHER) => {
                is_silent = false;
                for frame in together.drain(..) {
                    if !out.text(&frame).await? {
                        return Ok(());
                    }
                }
            }
            _ = ticks.tick() => {
                if std::mem::replace(&mut is_silent, true) {
                    out.small(Opcode::Ping, b"");
                }
            }
        }
        out.flush().await?;
    }
}

struct Out<'a, W> {
    out: W,
    /// What is small and not written yet.
    bytes: Vec<u8>,
    budget: &'a Budget,
}

impl<W: AsyncWrite + Unpin> Out<'_, W> {
    fn small(&mut self, kind: Opcode, payload: &[u8]) {
        write_head(kind, payload.len(), &mut self.bytes);
        self.bytes.extend_from_slice(payload);
    }

    /// Writes a message. A large one is counted until it is written; without memory for it the connection is closed, and this is false.
    async fn text(&mut self, frame: &[u8]) -> io::Result<bool> {
        messages::CLIENT.sent();
        if frame.len() <= UNCOUNTED {
            self.small(Opcode::Text, frame);
            if self.bytes.len() > UNCOUNTED {
                self.send().await?;
            }
            return Ok(true);
        }
        let Ok(charge) = self.budget.charge(Kind::Answer, frame.len()) else {
            self.close(Some(TRY_AGAIN_LATER), "there is no memory for an answer").await?;
            return Ok(false);
        };
        write_head(Opcode::Text, frame.len(), &mut self.bytes);
        let writing = async {
            self.send().await?;
            self.out.write_all(frame).await.map(|()| true)
        };
        tokio::select! {
            biased;
            () = poll_fn(|cx| charge.poll_lost(cx)) => Err(io::ErrorKind::OutOfMemory.into()),
            written = writing => written,
        }
    }

    async fn close(&mut self, code: Option<u16>, reason: &str) -> io::Result<()> {
        let code = code.map(u16::to_be_bytes);
        let reason = &reason.as_bytes()[..reason.len().min(REASON_BYTES)];
        let payload = match &code {
            Some(code) => [code, reason].concat(),
            None => Vec::new(),
        };
        self.small(Opcode::Close, &payload);
        self.flush().await?;
        self.out.shutdown().await
    }

    async fn send(&mut self) -> io::Result<()> {
        self.out.write_all(&self.bytes).await?;
        self.bytes.clear();
        Ok(())
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.send().await?;
        self.out.flush().await
    }
}
