//! A connection's bytes on their way out: whether they are taken, and that none of a request go out behind its end.

use crate::health::{Cause, CauseCode};
use crate::metrics::edges::Bytes;
use crate::runtime::watched::Watch;
use crate::transport::condition::Condition;
use crate::transport::events::LinkEvents;
use socket2::SockRef;
use std::error::Error;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// What a peer's system takes of a request, whether or not the peer reads: it cannot be had back. A connection that ends behind a
/// longer one is reset, so that the system sends nothing more of it.
const TAKEN_BYTES: usize = 32 * 1024;
/// How often it is looked whether a connection that is full has moved, and after how many looks without a byte that is shown.
const LOOK: Duration = Duration::from_secs(1);
const SHOWN_AFTER: u32 = 5;

/// The most bytes of a response's head, and about so much is read at once.
pub(super) const HEAD_BYTES_MAX: usize = 32 * 1024;

/// The most bytes that are read of a request's answer before its head is whole: what is more is interim heads (1xx) without end. The
/// head itself has a bound of its own; what is read of the body before the head was handed over is less than this.
const INTERIM_BYTES_MAX: usize = 256 * 1024;

/// What is known of one connection's way out, and of the head that is waited for on its way in.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// A request is under way whose answer has not begun.
    is_waiting: AtomicBool,
    /// How much was read meanwhile.
    interim: AtomicUsize,
    /// A long request is under way whose answer has not begun.
    is_under_way: AtomicBool,
    /// There was no room for more.
    is_full: AtomicBool,
    /// How often there was again.
    moves: AtomicU32,
    filled: Notify,
    bytes: Bytes,
    /// Bytes that the socket has taken.
    sent: AtomicU64,
    /// Bytes that were received: within TLS, decrypted ones.
    received: AtomicU64,
    /// The connection is encrypted: [`Decrypted`] or the reader of frames counts `received`.
    is_encrypted: bool,
    /// The end of the connection is checked before the next write.
    must_check_end: AtomicBool,
    /// The connection has several requests at once: unread bytes may belong to one of them.
    is_shared: AtomicBool,
    /// The start of the idle time, while the connection is in the pool.
    idle_since: Mutex<Option<Instant>>,
}

/// Byte counts of a connection at the start of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlowMark {
    sent: u64,
    received: u64,
}

impl Flow {
    /// Of a connection whose bytes are counted.
    pub(crate) fn counted(bytes: Bytes, is_encrypted: bool) -> Self {
        Self { bytes, is_encrypted, ..Self::default() }
    }

    /// Returns the byte counts before a request is sent.
    pub(super) fn mark(&self) -> FlowMark {
        FlowMark { sent: self.sent.load(Ordering::Acquire), received: self.received.load(Ordering::Acquire) }
    }

    /// Whether the socket has taken a byte since the mark. If not, the request did not leave.
    pub(super) fn has_sent_since(&self, mark: FlowMark) -> bool {
        self.sent.load(Ordering::Acquire) != mark.sent
    }

    /// Whether a byte was received since the mark.
    pub(super) fn has_received_since(&self, mark: FlowMark) -> bool {
        self.received.load(Ordering::Acquire) != mark.received
    }

    /// Counts bytes that the socket has taken.
    pub(super) fn send(&self, count: usize) {
        self.sent.fetch_add(count as u64, Ordering::Release);
    }

    /// Counts received bytes, decrypted ones within TLS.
    pub(super) fn receive(&self, count: usize) {
        self.received.fetch_add(count as u64, Ordering::Release);
    }

    /// Has the end of the connection checked before the next write: the connection was idle.
    pub(super) fn check_end(&self) {
        self.must_check_end.store(true, Ordering::Release);
    }

    /// Marks the connection as shared by concurrent requests.
    pub(super) fn share(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    /// Starts the idle time.
    pub(super) fn start_idle(&self) {
        *self.idle_since() = Some(Instant::now());
    }

    /// Ends the idle time and returns it. `None` if the connection is not idle.
    pub(super) fn end_idle(&self) -> Option<Duration> {
        self.idle_since().take().map(|since| since.elapsed())
    }

    fn idle_since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.idle_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request of so many bytes goes out.
    pub(crate) fn begins(&self, bytes: u64) {
        self.is_under_way.store(bytes > TAKEN_BYTES as u64, Ordering::Release);
        self.interim.store(0, Ordering::Relaxed);
        self.is_waiting.store(true, Ordering::Release);
    }

    /// The head of its answer has come; so much was read meanwhile.
    pub(crate) fn answered(&self) -> usize {
        self.is_under_way.store(false, Ordering::Release);
        self.is_waiting.store(false, Ordering::Release);
        self.interim.load(Ordering::Relaxed)
    }

    /// Shows for as long as it runs that the upstream does not take what it is sent.
    pub(crate) async fn watch(&self, unread: &Arc<Unread>) {
        loop {
            self.filled.notified().await;
            let (mut looks, mut moves, mut shown) = (0, self.moves(), None);
            while self.is_full.load(Ordering::Acquire) {
                if self.moves() != moves {
                    (looks, moves, shown) = (0, self.moves(), None);
                }
                if looks >= SHOWN_AFTER {
                    shown.get_or_insert_with(|| unread.show());
                }
                looks += 1;
                sleep(LOOK).await;
            }
        }
    }

    fn moves(&self) -> u32 {
        self.moves.load(Ordering::Relaxed)
    }
}

/// Reports the traffic of a connection to its [`Flow`].
pub(super) struct FlowWatch(pub(super) Arc<Flow>);

impl<S: AsFd> Watch<S> for FlowWatch {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.0.bytes.read.increment(bytes.len() as u64);
        if !self.0.is_encrypted {
            self.0.receive(bytes.len());
        }
        if self.0.is_waiting.load(Ordering::Acquire)
            && self.0.interim.fetch_add(bytes.len(), Ordering::Relaxed) + bytes.len() > INTERIM_BYTES_MAX
        {
            let limit = INTERIM_BYTES_MAX / 1024;
            return Err(io::Error::other(format!(
                "more than {limit} KiB of interim (1xx) heads came before the answer"
            )));
        }
        Ok(())
    }

    fn before_write(&mut self, stream: &S) -> io::Result<()> {
        if self.0.must_check_end.load(Ordering::Acquire)
            && self.0.must_check_end.swap(false, Ordering::AcqRel)
            && has_ended(stream, self.0.is_shared.load(Ordering::Relaxed))
        {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the upstream closed the idle connection"));
        }
        Ok(())
    }

    fn wrote(&mut self, is_pending: bool) {
        if is_pending {
            if !self.0.is_full.swap(true, Ordering::AcqRel) {
                self.0.filled.notify_one();
            }
        } else if self.0.is_full.load(Ordering::Relaxed) {
            self.0.moves.fetch_add(1, Ordering::Relaxed);
            self.0.is_full.store(false, Ordering::Release);
        }
    }

    fn sent(&mut self, count: usize) {
        self.0.send(count);
        self.0.bytes.written.increment(count as u64);
    }

    fn closes(&mut self, stream: &S) {
        if self.0.is_under_way.load(Ordering::Acquire) {
            // A system that refuses this sends the rest, as it would have without it.
            let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
        }
    }
}

/// Whether the peer has closed an idle connection.
///
/// The socket is asked, since the runtime learns of an end only at its next turn. Unread bytes on an idle connection are an end, too:
/// within TLS they are its `close_notify`, without TLS a response without a request. A session ticket that arrives at this moment costs a
/// connection. A shared connection reads control frames at any time, and a server announces its end by GOAWAY.
fn has_ended(stream: &impl AsFd, is_shared: bool) -> bool {
    match SockRef::from(stream).peek(&mut [MaybeUninit::uninit()]) {
        Ok(0) => true,
        Ok(_) => !is_shared,
        Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
    }
}

/// Counts the decrypted bytes of a connection within TLS.
pub(super) struct Decrypted(pub(super) Arc<Flow>);

impl<S> Watch<S> for Decrypted {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.0.receive(bytes.len());
        Ok(())
    }

    fn wrote(&mut self, _is_pending: bool) {}
}

/// How many connections to one upstream do not move.
pub(crate) struct Unread {
    inbox: Arc<dyn LinkEvents>,
    connections: Mutex<usize>,
}

impl Unread {
    pub(crate) fn new(inbox: Arc<dyn LinkEvents>) -> Arc<Self> {
        Arc::new(Self { inbox, connections: Mutex::default() })
    }

    /// Where the bytes of the connections are counted.
    pub(crate) fn bytes(&self) -> Bytes {
        self.inbox.bytes()
    }

    fn show(self: &Arc<Self>) -> Shown {
        // Held until that is shown: the end of another one may come meanwhile.
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        *connections += 1;
        if *connections == 1 {
            let why = format!("input not read for {} s", (LOOK * SHOWN_AFTER).as_secs());
            self.inbox.set_condition(Condition::Unread, Some(&Cause::new(CauseCode::InputNotRead, &*why)));
            self.inbox.failed("unread", CauseCode::InputNotRead, &why);
        }
        drop(connections);
        Shown(self.clone())
    }
}

/// One of them is shown.
struct Shown(Arc<Unread>);

impl Drop for Shown {
    fn drop(&mut self) {
        let mut connections = self.0.connections.lock().unwrap_or_else(PoisonError::into_inner);
        *connections -= 1;
        if *connections == 0 {
            self.0.inbox.set_condition(Condition::Unread, None);
        }
    }
}

/// An error with what caused it; in words of our own where those of the libraries tell a person nothing.
pub(crate) fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(own) = in_words(cause) {
            return own;
        }
        next = cause.source();
        next.iter().for_each(|cause| text = format!("{text}: {cause}"));
    }
    text
}

fn in_words(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref::<hyper::Error>() {
        return match () {
            () if error.is_parse() => Some(format!("what it sends is no HTTP ({error})")),
            () if error.is_incomplete_message() => {
                Some("it closed the connection before its answer was whole".to_owned())
            }
            () => None,
        };
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        let is_end = error.kind() == io::ErrorKind::UnexpectedEof;
        return is_end.then(|| "it closed the connection".to_owned());
    }
    let error = error.downcast_ref::<h2::Error>().filter(|error| error.is_reset() && error.is_remote())?;
    Some(format!("it reset the request (HTTP/2: {:?})", error.reason()?))
}

/// An error that has ended a connection, and what to do about it. An upstream that has enough of us says so in HTTP/2 with a reason of its
/// own.
pub(super) fn broken(error: &hyper::Error) -> Cause {
    let fault = error.source().and_then(|cause| cause.downcast_ref::<h2::Error>());
    let reason = fault.and_then(h2::Error::reason);
    let is_calmed = reason == Some(h2::Reason::ENHANCE_YOUR_CALM) && fault.is_some_and(h2::Error::is_remote);
    let code = if is_calmed { CauseCode::RateLimited } else { CauseCode::ConnectionLost };
    let cause = Cause::new(code, format!("the connection broke: {}", causes(error)));
    match reason {
        Some(h2::Reason::HTTP_1_1_REQUIRED) => cause.advise("set `http2 = false` in its `tls`"),
        _ if error.is_parse() => {
            cause.advise("check `url`: where the server has a certificate it begins with https:// or wss://")
        }
        _ => cause,
    }
}

/// A break of a reused connection before the first byte of the answer: most likely the upstream closed it while it was idle.
pub(super) fn broken_reused(error: &hyper::Error) -> Cause {
    let said = format!("the reused connection broke before the first byte of the answer: {}", causes(error));
    Cause::new(CauseCode::ReusedConnectionLost, said)
}

#[cfg(test)]
mod tests;
