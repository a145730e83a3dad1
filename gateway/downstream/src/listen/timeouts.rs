//! Watches a connection: a head that never ends, an idle peer, a peer that does not read.

use super::connections::Arrival;
use super::framing::Framing;
use super::leaving::Leaving;
use super::lingering::Rest;
use crate::memory::account::Kind;
use crate::memory::budget::{Budget, UNCOUNTED};
use crate::memory::charged;
use crate::metrics::clients::Present;
use crate::metrics::edges::Face;
use crate::runtime::timer::late::passed;
use crate::runtime::watched::{Pieces, Watch};
use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long a connection may lie idle between two requests.
const IDLE: Duration = Duration::from_secs(300);
/// How long one may on which nobody has shown a credential that is asked for.
const IDLE_STRANGER: Duration = Duration::from_secs(5);
/// How long a peer may take nothing of what is written to it.
const UNREAD: Duration = Duration::from_secs(60);

/// What is known of one connection, in milliseconds since it began plus one; 0 means no.
#[derive(Debug)]
pub(crate) struct ConnectionWatch {
    began: Instant,
    head: Duration,
    arrival: Arrival,
    serving: AtomicBool,
    /// Since when a head has been coming in.
    head_since: AtomicU64,
    /// Since when there has been no request, as far as the watch has noticed: it costs a request no look at the clock.
    idle_since: AtomicU64,
    /// Since when the peer has not been reading.
    unread_since: AtomicU64,
    budget: Budget,
    /// What is on its way to the peer has lost its memory: the connection is closed.
    cut: Notify,
    /// The framing of a body was in doubt: the connection is closed with the answer.
    is_doubtful: AtomicBool,
    leaving: Leaving,
    /// Where its answers and bytes are counted.
    face: Face,
    /// Counts it for as long as it is there.
    _connected: Present,
}

impl ConnectionWatch {
    /// A connection that must send a head within `head` of its first byte, or of its beginning.
    pub(crate) fn new(head: Duration, arrival: Arrival, budget: Budget, leaving: Leaving, face: Face) -> Self {
        Self {
            began: Instant::now(),
            head,
            arrival,
            serving: AtomicBool::new(false),
            head_since: AtomicU64::new(1),
            idle_since: AtomicU64::new(0),
            unread_since: AtomicU64::new(0),
            budget,
            cut: Notify::new(),
            is_doubtful: AtomicBool::new(false),
            leaving,
            _connected: face.connected(),
            face,
        }
    }

    /// A head has come in whole and is being served, until the guard is gone.
    pub(crate) fn serve(self: &Arc<Self>) -> Serving {
        self.head_since.store(0, Ordering::Relaxed);
        self.serves(true);
        Serving(self.clone())
    }

    /// Whether anything is being served: where that is much at once, it is counted elsewhere.
    pub(crate) fn serves(&self, is_serving: bool) {
        self.serving.store(is_serving, Ordering::Relaxed);
        if is_serving {
            self.idle_since.store(0, Ordering::Relaxed);
        }
    }

    /// Whether a head is coming in, where that does not follow from what is being served.
    pub(crate) fn reads_head(&self, is_reading: bool) {
        match (is_reading, self.head_since.load(Ordering::Relaxed)) {
            (true, 0) => self.head_since.store(self.now(), Ordering::Relaxed),
            (false, 1..) => self.head_since.store(0, Ordering::Relaxed),
            _ => {}
        }
    }

    /// How long its peer may take nothing of what it is sent.
    pub(crate) fn unread_limit(&self) -> Duration {
        if self.arrival.is_admitted() { UNREAD } else { IDLE_STRANGER }
    }

    /// Where its answers and bytes are counted.
    pub(crate) fn face(&self) -> &Face {
        &self.face
    }

    /// Whether its client is to leave.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.is_asked()
    }

    /// Resolves when patience has come to its end. One timer a connection, which a request does not touch.
    pub(crate) async fn stalled(&self) {
        loop {
            let is_idle = !self.serving.load(Ordering::Relaxed);
            if is_idle && self.idle_since.load(Ordering::Relaxed) == 0 {
                self.idle_since.store(self.now(), Ordering::Relaxed);
            }
            let idle = if self.arrival.is_admitted() { IDLE } else { IDLE_STRANGER };
            let unread = self.unread_limit();
            let limits = [(&self.head_since, self.head), (&self.idle_since, idle), (&self.unread_since, unread)];
            let due = limits.map(|(since, limit)| match since.load(Ordering::Relaxed) {
                0 => self.now() + limit.as_millis() as u64,
                since => since + limit.as_millis() as u64,
            });
            let next = due.into_iter().min().unwrap_or_default();
            if next <= self.now() {
                return;
            }
            tokio::select! {
                () = self.cut.notified() => return,
                () = passed(self.began + Duration::from_millis(next - 1)) => {}
            }
        }
    }

    /// Counts a large part of a response until it is sent. Where there is no memory for it, or none any more before the peer has
    /// read it, `cut` is woken.
    fn counted(&self, data: Bytes, cut: Waker) -> Option<Bytes> {
        let budget = match self.arrival.share() {
            Some(share) => self.budget.owned_by(share.owner()),
            None => self.budget.clone(),
        };
        let Ok(charge) = budget.charge(Kind::Answer, data.len()) else {
            cut.wake();
            return None;
        };
        let _not_yet = charge.poll_lost(&Context::from_waker(&cut));
        Some(charged(data, charge))
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_millis() as u64 + 1
    }

    fn read(&self) {
        if !self.serving.load(Ordering::Relaxed) && self.head_since.load(Ordering::Relaxed) == 0 {
            self.head_since.store(self.now(), Ordering::Relaxed);
        }
    }

    /// Something was written, or `is_pending`: nothing is taken now.
    pub(crate) fn wrote(&self, is_pending: bool) {
        let unread = self.unread_since.load(Ordering::Relaxed);
        if is_pending && unread == 0 {
            self.unread_since.store(self.now(), Ordering::Relaxed);
        } else if !is_pending && unread != 0 {
            self.unread_since.store(0, Ordering::Relaxed);
        }
    }
}

/// Closes a connection when it is woken.
struct Cut(Weak<ConnectionWatch>);

impl Wake for Cut {
    fn wake(self: Arc<Self>) {
        if let Some(pulse) = self.0.upgrade() {
            pulse.cut.notify_one();
        }
    }
}

/// Keeps a request under watch until its response is sent.
pub(crate) trait Guard {
    /// Its connection.
    fn watch(&self) -> &Arc<ConnectionWatch>;

    /// What ends it when it is woken: what is on its way to the peer has lost its memory.
    fn cut(&self) -> Waker;

    /// A piece of the response is handed over to be sent, and it may be the last one.
    fn hands(&mut self, piece: Bytes, is_last: bool) -> Bytes {
        let _unseen = is_last;
        piece
    }

    /// Whether the response may end with the piece that was handed over last.
    fn may_end(&self) -> bool {
        true
    }

    /// Resolves when every piece was taken, where the response does not end before.
    fn poll_taken(&mut self, cx: &Context<'_>) -> Poll<()> {
        let _unused = cx;
        Poll::Ready(())
    }
}

/// A request is being served for as long as this lives.
pub(crate) struct Serving(Arc<ConnectionWatch>);

impl Guard for Serving {
    fn watch(&self) -> &Arc<ConnectionWatch> {
        &self.0
    }

    fn cut(&self) -> Waker {
        Waker::from(Arc::new(Cut(Arc::downgrade(&self.0))))
    }
}

impl Serving {
    /// Whether no request may follow on the connection: where the next one begins is in doubt, or the client is to leave.
    pub(crate) fn is_last(&self) -> bool {
        self.0.is_doubtful.load(Ordering::Relaxed) || self.0.leaving.is_asked()
    }

    /// Goes on until the response's body is sent.
    pub(crate) fn until_sent<R>(self, response: Response<R>) -> Response<Sending<R>> {
        Sending::of(response, self)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.serving.store(false, Ordering::Relaxed);
    }
}

/// A response's body that tells when it is sent.
pub(crate) struct Sending<R, G = Serving> {
    body: R,
    guard: G,
    /// What is left of a part of it.
    part: Pieces,
    /// There is no more of it.
    has_ended: bool,
}

impl<R, G: Guard> Sending<R, G> {
    /// A response, which is counted; its guard goes with the last of its body.
    pub(crate) fn of(response: Response<R>, guard: G) -> Response<Self> {
        guard.watch().face.answered(response.status().as_u16());
        response.map(|body| Self { body, guard, part: Pieces::default(), has_ended: false })
    }
}

impl<R: Body<Data = Bytes> + Unpin, G: Guard> Sending<R, G> {
    /// The first piece of data, whose rest is kept; `Pending` where there is no memory for it, and it is about to be cut.
    fn part(&mut self, data: Bytes) -> Poll<Option<Bytes>> {
        if data.len() <= UNCOUNTED {
            return Poll::Ready(Some(data));
        }
        let Some(data) = self.guard.watch().counted(data, self.guard.cut()) else { return Poll::Pending };
        self.part = data.into();
        Poll::Ready(self.part.take())
    }

    fn handed(&mut self, piece: Bytes) -> Frame<Bytes> {
        let is_last = self.is_last();
        Frame::data(self.guard.hands(piece, is_last))
    }

    /// Whether nothing is left of it.
    fn is_last(&self) -> bool {
        self.part.left() == 0 && self.body.is_end_stream()
    }
}

impl<R: Body<Data = Bytes> + Unpin, G: Guard + Unpin> Body for Sending<R, G> {
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, R::Error>>> {
        if let Some(piece) = self.part.take() {
            return Poll::Ready(Some(Ok(self.handed(piece))));
        }
        if !self.has_ended {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    return match frame.into_data() {
                        Ok(data) => self.part(data).map(|piece| piece.map(|piece| Ok(self.handed(piece)))),
                        Err(frame) => Poll::Ready(Some(Ok(frame))),
                    };
                }
                Poll::Ready(None) => self.has_ended = true,
                polled => return polled,
            }
        }
        self.guard.poll_taken(cx).map(|()| None)
    }

    fn is_end_stream(&self) -> bool {
        self.is_last() && self.guard.may_end()
    }

    fn size_hint(&self) -> SizeHint {
        let (left, body) = (self.part.left() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(left + body.lower());
        body.upper().into_iter().for_each(|upper| hint.set_upper(left + upper));
        hint
    }
}

/// A connection's bytes, for its pulse: what comes in is followed from request to request.
pub(crate) struct Followed {
    pulse: Arc<ConnectionWatch>,
    framing: Framing,
    /// What is left of a request that was answered before its end, once the connection is to be closed.
    rest: Option<Box<Rest>>,
}

impl Followed {
    pub(crate) fn new(pulse: Arc<ConnectionWatch>) -> Self {
        let framing = Framing::until(pulse.arrival.switch().clone());
        Self { pulse, framing, rest: None }
    }

    /// Another protocol than HTTP is spoken from now on.
    pub(crate) fn switch(&mut self) {
        self.framing.end();
    }
}

impl<S: AsyncRead + Unpin> Watch<S> for Followed {
    fn room(&self) -> usize {
        self.framing.room()
    }

    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<()> {
        self.pulse.face.bytes().read.increment(bytes.len() as u64);
        self.framing.follow(bytes);
        if self.framing.is_body_spoilt() {
            self.pulse.is_doubtful.store(true, Ordering::Relaxed);
        }
        self.pulse.read();
        Ok(())
    }

    fn wrote(&mut self, is_pending: bool) {
        self.pulse.wrote(is_pending);
    }

    fn sent(&mut self, count: usize) {
        self.pulse.face.bytes().written.increment(count as u64);
    }

    fn poll_shut(&mut self, stream: &mut S, cx: &mut Context<'_>) -> Poll<()> {
        let Self { framing, rest, .. } = self;
        if rest.is_none() && !framing.is_within() {
            return Poll::Ready(());
        }
        rest.get_or_insert_with(|| Box::new(Rest::new())).poll(stream, framing, cx)
    }
}
