//! One POST an exchange, polled in its caller's task.

use super::breaker::Attempt;
use super::connection::pool::{Lane, Outgoing};
use super::one_way::{ASIDE_MAX, withdrawal};
use super::response::answer;
use super::response::answer::Asked;
use super::send::{Course, Received};
use super::session::{Drive, HttpSession, OwnHeaders};
use crate::call::share::SharePermit;
use crate::health::{Cause, CauseCode};
use crate::memory::account::Kind;
use crate::metrics::messages;
use crate::protocol::frame::Method;
use crate::protocol::frame::message::Body;
use crate::runtime::timer::late::within;
use crate::transport::exchange::mailbox::{Arrival, Mailbox};
use crate::transport::exchange::{Lost, Request, Withheld};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Where the frame of a request starts that waits for an access token.
const TOKENLESS: u64 = u64::MAX - 1;

impl HttpSession {
    /// Sends a request once it is polled.
    pub(crate) fn exchange(self: &Arc<Self>, request: &Request<'_>) -> Result<HttpExchange, Lost> {
        let budget = self.inbox.budget();
        let charge = budget
            .charge(Kind::Queue, request.room())
            .map_err(|why| Lost::Busy(Cause::new(CauseCode::MemoryFull, why.to_string())))?;
        let attempt = Attempt::begin(self, *request.method == Method::Listen)?;
        let place = match &request.share {
            Some(share) => Some(self.wire.exchanges.take(share).ok_or_else(too_many)?),
            None => None,
        };
        self.open.fetch_add(1, Ordering::Relaxed);
        let id = self.next_id();
        let slot = Arc::new(Mailbox::of(request));
        self.opened(id, &slot);
        let frame = request.frame(id, charge);
        let first = self.post(frame.clone(), Some(request));
        let mut always: OwnHeaders = request.attempt.map(|attempt| attempt.headers().collect()).unwrap_or_default();
        always.extend(request.identity.as_deref().cloned());
        let posting = Posting { first: Some(first), frame, own: request.headers.clone(), always };
        let asks = Asked {
            id,
            epoch: attempt.epoch,
            is_meeting: matches!(request.method, Method::Initialize | Method::Discover),
            is_repeatable: is_repeatable(request.method),
            opens: *request.method == Method::Initialize,
            listens: *request.method == Method::Listen,
        };
        let drive = Box::pin(drive(self.clone(), posting, asks, slot.clone(), attempt));
        let drive = self.levels.behind(request, drive);
        // A handshake may not be cancelled, and a stateless request is by its stream alone.
        let quiet = *request.method == Method::Initialize || request.envelope.is_some();
        Ok(HttpExchange {
            http: self.clone(),
            id,
            slot,
            drive: Some(drive),
            ended: false,
            has_left: false,
            quiet,
            over: None,
            _place: place,
        })
    }
}

/// Whether a request may be sent twice: it only reads.
fn is_repeatable(method: &Method) -> bool {
    matches!(
        method,
        Method::Ping
            | Method::Discover
            | Method::ToolsList
            | Method::PromptsList
            | Method::ResourcesList
            | Method::TemplatesList
            | Method::ResourcesRead
    )
}

fn too_many() -> Lost {
    Lost::Busy(Cause::new(CauseCode::QueueFull, "too many requests of this client are in flight"))
}

/// A request as it goes out first, and what makes it once more.
struct Posting {
    first: Option<Outgoing>,
    frame: Bytes,
    /// The headers that are its own, and those that say of which trace it is a part and whose call it is.
    own: OwnHeaders,
    always: OwnHeaders,
}

/// Sends a request and brings all that comes back to its slot.
#[allow(clippy::manual_async_fn, reason = "an async fn keeps its arguments twice, and every call has one of these")]
fn drive(
    http: Arc<HttpSession>,
    posting: Posting,
    asked: Asked,
    slot: Arc<Mailbox>,
    attempt: Attempt,
) -> impl Future<Output = ()> + Send {
    // Whoever sends it takes it out of its place.
    let mut posting = posting;
    async move {
        let mut outcome = match attempt.may_go_on().and_then(|()| http.is_there()) {
            Ok(()) => run(&http, &mut posting, asked, &slot).await,
            Err(lost) => Err(lost),
        };
        attempt.end(&mut outcome);
        let end = match outcome {
            Ok(body) => {
                http.made.answered(asked.id, &slot, &body);
                Arrival::Response(body)
            }
            Err(lost) => Arrival::Lost(lost),
        };
        slot.finish(end);
    }
}

/// Where the frame of a request starts, as its slot has it: beyond everything while it has not left, or has not run.
fn start_at(course: Course) -> u64 {
    match course {
        Course::AwaitsConnection => u64::MAX,
        Course::AwaitsToken => TOKENLESS,
        Course::MayHaveLeft => 0,
    }
}

/// Sends a request and waits for the head of its response.
async fn send(http: &Arc<HttpSession>, posting: &mut Posting, asked: Asked, slot: &Mailbox) -> Result<Received, Lost> {
    let Posting { first, frame, own, always } = posting;
    let lane = Lane::Exchange(slot.share.as_ref().or(http.share.as_ref()));
    // While nothing is agreed on its headers cannot be made from its frame.
    let kept = if asked.is_meeting { first.clone().map(Box::new) } else { None };
    let again = || kept.as_deref().cloned().unwrap_or_else(|| http.post_again(frame, (own, always)));
    let comes = |course| {
        if course == Course::MayHaveLeft {
            messages::UPSTREAM.sent();
        }
        slot.enqueued_at(start_at(course));
    };
    let received = match http.wire.send(lane, first, &again, &comes).await {
        Err(Lost::Unknown(why)) if asked.is_repeatable && why.code() == CauseCode::ReusedConnectionLost => {
            // Boxed, as it is rare: every call has a future of the size of this one.
            Box::pin(http.wire.send(lane, &mut Some(again()), &again, &comes)).await?
        }
        received => received?,
    };
    if asked.is_meeting {
        http.wire.moves_to(received.moved_to.as_deref().unwrap_or(&http.wire.home));
    }
    // Nothing of it is needed any more.
    (posting.frame, posting.own, posting.always) = Default::default();
    Ok(received)
}

async fn run(http: &Arc<HttpSession>, posting: &mut Posting, asked: Asked, slot: &Arc<Mailbox>) -> Result<Body, Lost> {
    let received = send(http, posting, asked, slot).await?;
    answer::read(http, received, asked, slot).await
}

/// One request over HTTP: its connection is driven by whoever polls it.
pub struct HttpExchange {
    http: Arc<HttpSession>,
    id: u64,
    slot: Arc<Mailbox>,
    drive: Option<Drive>,
    ended: bool,
    /// Whether it is said that it is no longer open.
    has_left: bool,
    quiet: bool,
    /// Ends its driving, where that was handed over.
    over: Option<DropGuard>,
    /// Its place among the exchanges of clients.
    _place: Option<SharePermit>,
}

impl HttpExchange {
    /// The next frame that belongs to it. While frames wait nothing more is read: who is slow slows its own upstream stream.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Arrival> {
        let mut arrival = self.slot.pop_or_look();
        if let (None, Some(drive)) = (&arrival, &mut self.drive) {
            if drive.as_mut().poll(cx).is_ready() {
                self.drive = None;
            }
            arrival = self.slot.pop();
        }
        let can_be_asked = self.slot.caller.is_some() && !self.http.is_modern();
        if arrival.is_none() && (can_be_asked || self.slot.progress) {
            // It can be asked by another stream than its own, and told of its progress later.
            arrival = match self.slot.poll(cx) {
                Poll::Ready(arrival) => Some(arrival),
                Poll::Pending => None,
            };
        }
        match arrival {
            Some(arrival) => {
                if let Arrival::Ask(_) = arrival {
                    self.hand_over();
                }
                if matches!(arrival, Arrival::Response(_) | Arrival::Lost(_)) {
                    (self.ended, self.has_left) = (true, true);
                    let said = self.http.left(self.id);
                    if !said.is_empty() {
                        self.http.aside(said, self.slot.share.clone());
                    }
                }
                Poll::Ready(arrival)
            }
            None => Poll::Pending,
        }
    }

    /// While a person is asked nobody may read the reply: its stream is read all the same, since the upstream can withdraw
    /// the question there, and ask more.
    fn hand_over(&mut self) {
        let Some(drive) = self.drive.take() else { return };
        let over = CancellationToken::new();
        self.over = Some(over.clone().drop_guard());
        let (slot, tasks) = (self.slot.clone(), self.http.wire.tasks.clone());
        self.http.wire.tasks.spawn(async move {
            tokio::select! {
                () = drive => {}
                () = over.cancelled() => {}
                () = tasks.ending() => {
                    slot.finish(Arrival::Lost(Lost::Unknown(Cause::new(CauseCode::Stopping, "upstream stopping"))));
                }
            }
        });
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Where its frames wait.
    pub(crate) fn slot(&self) -> &Mailbox {
        &self.slot
    }

    /// Since when a question is open on it.
    pub(crate) fn asked_since(&self) -> Option<Instant> {
        self.slot.asked_since()
    }

    /// Takes it back, where nothing of it was sent or it has not run, and says what kept it. Then it never will be.
    pub(crate) fn take_back(&mut self) -> Option<Withheld> {
        if self.ended || self.was_sent() {
            return None;
        }
        // What waits for a token or a connection waits no longer.
        (self.drive, self.over) = (None, None);
        Some(if self.slot.start() == TOKENLESS { Withheld::Tokenless } else { Withheld::Unconnected })
    }

    /// Whether it may have run.
    fn was_sent(&self) -> bool {
        self.slot.start() < TOKENLESS
    }

    /// Lets it run on unwatched.
    pub(crate) fn detach(mut self) {
        self.ended = true;
        if let Some(over) = self.over.take() {
            over.disarm();
        }
        if let Some(drive) = self.drive.take() {
            self.http.wire.tasks.spawn(async move {
                let _in_time = within(ASIDE_MAX, drive).await;
            });
        }
    }
}

impl Drop for HttpExchange {
    fn drop(&mut self) {
        self.http.open.fetch_sub(1, Ordering::Relaxed);
        let mut said = if self.has_left { Vec::new() } else { self.http.left(self.id) };
        let was_sent = self.was_sent();
        if !self.ended {
            self.slot.leave();
        }
        if self.ended || self.quiet || !was_sent {
            return;
        }
        // Its questions are answered before it is withdrawn.
        said.push(withdrawal(self.id));
        self.http.aside(said, self.slot.share.clone());
    }
}
