//! What is sent beside the exchanges: notifications, answers to what the upstream asks, the end of a session. What waits to be sent
//! is bounded in number and bytes, and a few senders at a time send it: an upstream that asks without end costs no more than that.

use super::client::HttpClient;
use super::connection::Beside;
use super::connection::pool::Lane;
use super::response::body::beside_status;
use super::response::refusal;
use super::send::Course;
use super::session::{HasId, HttpSession};
use super::status::StatusClass;
use crate::call::share::Share;
use crate::health::{Cause, CauseCode};
use crate::memory::budget::Charge;
use crate::metrics::messages;
use crate::protocol::frame::Decimal;
use crate::protocol::frame::Method;
use crate::protocol::value::Object;
use crate::runtime::timer::late::within;
use crate::transport::exchange::mailbox::{Arrival, Mailbox};
use crate::transport::exchange::{Lost, Request};
use crate::transport::questions::AnswerTo;
use bytes::Bytes;
use http_body::Body as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::sleep;

/// How long what nobody waits for may take.
pub(super) const ASIDE_MAX: Duration = Duration::from_secs(10);
/// How long the end of a session waits for the last words in it, and how often it looks whether they are said.
const LAST_WORDS: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(10);
/// What a message takes beside its text.
const AROUND: usize = 256;
/// How long the proof that a session is known may take; without one whoever denied it is believed.
const PROOF_MAX: Duration = Duration::from_secs(5);

/// What a message is for.
enum Purpose {
    /// Something that the upstream is told.
    Notice,
    /// The answer to a ping.
    Ping,
    /// An answer that needs nobody, and the call that cannot go on without it.
    AtOnce(Option<Arc<Mailbox>>),
    /// A client's answer, and the call that cannot go on without it.
    Answer(Option<Arc<Mailbox>>),
}

/// Frames that want no answer and are sent one after the other.
struct Message {
    http: Arc<HttpSession>,
    frames: Vec<Bytes>,
    purpose: Purpose,
    /// The client whose call it belongs to.
    share: Option<Share>,
}

impl Beside for Message {
    fn bytes(&self) -> usize {
        AROUND + self.frames.iter().map(Bytes::len).sum::<usize>()
    }

    fn is_at_once(&self) -> bool {
        matches!(self.purpose, Purpose::Ping | Purpose::AtOnce(_))
    }

    fn share(&self) -> Option<&Share> {
        self.share.as_ref()
    }

    fn deliver(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.send())
    }

    fn was_dropped(&self, why: &str) {
        self.was_not_taken(&Cause::new(CauseCode::QueueFull, why));
    }
}

impl Message {
    /// Sends its frames, each within its time.
    async fn send(&self) {
        for frame in &self.frames {
            self.http.wire.breaker.rested().await;
            match within(ASIDE_MAX, told(&self.http, frame)).await {
                Ok(Ok(())) => {}
                Ok(Err(lost)) => self.was_not_taken(lost.text()),
                Err(_) => {
                    let said = format!("nothing came back for {} s", ASIDE_MAX.as_secs());
                    self.was_not_taken(&Cause::new(CauseCode::TimedOut, said));
                }
            }
        }
    }

    /// A call that cannot go on without it ends with that, and is withdrawn: it would wait for what never comes.
    fn was_not_taken(&self, why: &Cause) {
        tracing::debug!(cause = &*why.full(), "message to upstream not accepted");
        let (Purpose::AtOnce(Some(call)) | Purpose::Answer(Some(call))) = &self.purpose else { return };
        let id = self.http.number_of(call);
        let lost = Lost::Unknown(
            Cause::new(CauseCode::MessageRefused, "the answer to its question was not accepted: ").then(why),
        );
        if call.finish(Arrival::Lost(lost))
            && let Some(id) = id
        {
            self.http.aside(vec![withdrawal(id)], call.share.clone());
        }
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        self.http.beside.fetch_sub(1, Ordering::Relaxed);
        if let Purpose::Ping = self.purpose {
            self.http.is_ping_open.store(false, Ordering::Release);
        }
    }
}

/// Sends what waits until nothing does.
async fn send_waiting(wire: Arc<HttpClient>) {
    while let Some(message) = wire.beside.next() {
        message.deliver().await;
        wire.beside.is_over(&*message);
    }
}

impl HttpSession {
    /// Whether the upstream no longer knows the session, of which one answer says so. Another request in it is the proof: what
    /// one tool refuses is no loss for the others. One request is enough for all who ask meanwhile.
    pub(super) async fn is_lost(&self) -> bool {
        let before = self.proofs.load(Ordering::Acquire);
        let mut known_until = self.known_until.lock().await;
        if self.was_lost.load(Ordering::Acquire) {
            return true;
        }
        if *known_until > before {
            return false;
        }
        let number = self.proofs.fetch_add(1, Ordering::AcqRel) + 1;
        let is_known = self.is_known().await;
        if is_known {
            *known_until = number;
        }
        if !is_known {
            self.lose();
        }
        self.was_lost.load(Ordering::Acquire)
    }

    /// Whether a ping in the session is answered, with whatever speaks of the ping.
    async fn is_known(&self) -> bool {
        let (id, nothing) = (self.next_id(), Object::empty());
        let frame = Request::new(&Method::Ping, &nothing, None).frame(id, Charge::default());
        let make = || self.post(frame.clone(), None);
        let proof = async {
            let received = self.wire.send(Lane::Beside, &mut Some(make()), &make, &|_| ()).await.ok()?;
            if received.response.status().is_success() {
                return Some(true);
            }
            let refused = refusal::read(received.response, self, Some(id)).await;
            Some(refused.error.is_some() && !refused.denies_session)
        };
        within(PROOF_MAX, proof).await.ok().flatten().unwrap_or(false)
    }

    /// Whether the upstream answers a ping in the session: then it still knows it; `None` where it cannot be asked just now.
    pub async fn is_still_known(&self) -> Option<bool> {
        let (id, nothing) = (self.next_id(), Object::empty());
        let frame = Request::new(&Method::Ping, &nothing, None).frame(id, Charge::default());
        let make = || self.post(frame.clone(), None);
        let asked = async {
            let received = self.wire.send(Lane::Beside, &mut Some(make()), &make, &|_| ()).await;
            received.ok().map(|received| received.response.status())
        };
        let status = within(PROOF_MAX, asked).await.ok()??;
        match status.is_success() {
            false if StatusClass::of(status.as_u16()).says_nothing() => None,
            is_known => Some(is_known),
        }
    }

    /// Sends a notification aside.
    pub(crate) fn notify(self: &Arc<Self>, request: &Request<'_>) {
        let mut body = Vec::new();
        request.write_notification(&mut body);
        self.aside(vec![body.into()], request.share.clone());
    }

    /// Sends a notification and waits until it was taken.
    pub(crate) async fn tell(self: &Arc<Self>, request: &Request<'_>) -> Result<(), Lost> {
        let mut body = Vec::new();
        request.write_notification(&mut body);
        let frame = body.into();
        self.wire.breaker.rested().await;
        within(ASIDE_MAX, told(self, &frame)).await.unwrap_or_else(|_| {
            Err(Lost::Unknown(Cause::new(CauseCode::TimedOut, "notification not accepted in time")))
        })
    }

    /// Sends frames that want no answer, one after the other, and waits for none of it.
    pub(super) fn aside(self: &Arc<Self>, frames: Vec<Bytes>, share: Option<Share>) {
        self.put(frames, Purpose::Notice, share);
    }

    /// Sends the answer to what the upstream asked. A ping is answered once while the last answer is on its way.
    pub(super) fn reply(self: &Arc<Self>, frame: Bytes, to: AnswerTo<'_>) {
        let purpose = match to {
            AnswerTo::Ping if self.is_ping_open.swap(true, Ordering::AcqRel) => {
                let why = "a ping arrived before the answer to the last one was accepted; it was not answered";
                return self.inbox.failed("ping", CauseCode::InputNotRead, &why);
            }
            AnswerTo::Ping => Purpose::Ping,
            AnswerTo::AtOnce(call) => Purpose::AtOnce(call.cloned()),
            AnswerTo::Question(call) => Purpose::Answer(call.cloned()),
        };
        let share = match &purpose {
            Purpose::AtOnce(call) | Purpose::Answer(call) => call.as_ref().and_then(|call| call.share.clone()),
            Purpose::Notice | Purpose::Ping => None,
        };
        self.put(vec![frame], purpose, share);
    }

    fn put(self: &Arc<Self>, frames: Vec<Bytes>, purpose: Purpose, share: Option<Share>) {
        let wire = &self.wire;
        self.beside.fetch_add(1, Ordering::Relaxed);
        let message = Box::new(Message { http: self.clone(), frames, purpose, share });
        match wire.beside.push(message, wire.inbox.budget()) {
            Ok(false) => {}
            Ok(true) => {
                let (wire, tasks) = (wire.clone(), wire.tasks.clone());
                self.wire.tasks.spawn(async move {
                    tokio::select! {
                        () = send_waiting(wire) => {}
                        // What is left then is for nobody.
                        () = async { tasks.ending().await; sleep(ASIDE_MAX).await } => {}
                    }
                });
            }
            Err(message) => {
                let why = "too much waits to be sent to it beside its calls";
                wire.inbox.failed(
                    "one_way_full",
                    CauseCode::QueueFull,
                    &format_args!("{why}; the newest message was dropped"),
                );
                message.was_dropped(why);
            }
        }
    }

    /// Waits a moment until no exchange is open in it, and what was to be said beside them is said: of a session that has ended nobody
    /// knows what such a word is about.
    pub async fn falls_silent(&self) {
        let silent = async {
            while self.is_busy() || self.beside.load(Ordering::Relaxed) > 0 {
                sleep(LOOK).await;
            }
        };
        let _in_time = within(LAST_WORDS, silent).await;
    }

    /// Ends the session, where there is one: the upstream may forget it.
    pub async fn farewell(&self) {
        self.release();
        let Some(request) = self.delete().filter(|_| !self.wire.breaker.is_resting()) else { return };
        let again = request.clone();
        let sent = async {
            let make = || again.clone();
            _ = self.wire.send(Lane::Beside, &mut Some(request), &make, &|_| ()).await;
        };
        let _in_time = within(Duration::from_secs(1), sent).await;
    }
}

/// What withdraws a request.
pub(super) fn withdrawal(id: u64) -> Bytes {
    let mut text = b"{\"requestId\":".to_vec();
    text.extend_from_slice(Decimal::of(id).as_bytes());
    text.push(b'}');
    let params = Object::parse(text.into()).unwrap_or_default();
    let mut cancelled = Vec::new();
    Request::new(&Method::Cancelled, &params, None).write_notification(&mut cancelled);
    cancelled.into()
}

/// Sends what wants no answer.
async fn told(http: &Arc<HttpSession>, frame: &Bytes) -> Result<(), Lost> {
    http.is_there()?;
    let make = || http.post(frame.clone(), None);
    let comes = |course| {
        if course == Course::MayHaveLeft {
            messages::UPSTREAM.sent();
        }
    };
    let received = http.wire.send(Lane::Beside, &mut Some(make()), &make, &comes).await?;
    let (response, held) = (received.response, received.held);
    if response.status().is_success() {
        // Whatever a body says here means nothing; a small one is read so that the connection can be used again.
        if response.body().is_end_stream() || beside_status(response.into_body(), http.inbox.budget()).await.is_some() {
            http.wire.pool.put(held);
        }
        return Ok(());
    }
    let refused = refusal::read(response, http, None).await;
    Err(if refused.denies_session { Lost::Session(refused.why.text) } else { Lost::Status(refused.why) })
}
