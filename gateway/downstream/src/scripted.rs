//! For the tests of this layer: a handler whose replies a test plays by hand.

use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::ask::{Answer, Answered, Ask};
use crate::call::reply::{Ending, Event, Failure, Guard, Outcome, Reply, Source, Step};
use crate::call::share::Abandoned;
use crate::call::{Call, Handle};
use crate::protocol::frame::Method;
use crate::protocol::frame::rpc_error::RpcError;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use bytes::Bytes;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// A client that declares this is refused at `server/discover`.
pub(super) const UNWANTED: &str = r#"{"extensions":{"un/wanted":{}}}"#;

/// Answers `server/discover` and the tool `echo` at once; everything else waits for the test.
pub(super) struct Scripted {
    hands: mpsc::Sender<Hand>,
    revision: Revision,
}

/// The test's end of a call.
pub(super) struct Hand {
    pub(super) call: Call,
    /// Where it is told that nobody waits for the answer.
    pub(super) abandoned: Arc<Mutex<Option<Arc<Abandoned>>>>,
    steps: mpsc::Sender<(Step, Withdrawn)>,
}

/// A question that is withdrawn as a step is taken.
type Withdrawn = Option<oneshot::Receiver<Answered>>;

/// The calls that reached the handler, in their order.
pub(super) struct Hands(mpsc::Receiver<Hand>);

/// Counts a place for the call.
struct Counted(Arc<Mutex<Option<Arc<Abandoned>>>>);

impl Guard for Counted {
    fn done(&mut self, _: &Ending<'_>) {}

    fn abandoned(&mut self, call: &Arc<Abandoned>) {
        call.hold();
        *self.0.lock().expect("nothing panics with it") = Some(call.clone());
    }
}

struct Played {
    steps: mpsc::Receiver<(Step, Withdrawn)>,
    revision: Revision,
}

/// A handler whose upstreams speak `revision`.
pub(super) fn scripted(revision: Revision) -> (Arc<Scripted>, Hands) {
    let (hands, taken) = mpsc::channel(4096);
    (Arc::new(Scripted { hands, revision }), Hands(taken))
}

pub(super) fn object(text: &str) -> Object {
    Object::parse(Bytes::copy_from_slice(text.as_bytes())).expect("the test writes an object")
}

/// A question of the upstream `up`, and where its answer arrives.
pub(super) fn question(method: Method, params: &str) -> (Box<Ask>, oneshot::Receiver<Answered>) {
    static KEYS: AtomicU64 = AtomicU64::new(1);
    let (answer, incoming) = Answer::new();
    let (request, revision) = (object(params), Revision::V2025_11_25);
    let key = KEYS.fetch_add(1, Ordering::Relaxed);
    (Box::new(Ask { key, upstream: "up".into(), method, request, revision, answer }), incoming)
}

/// What happens in time or, as a test's clock goes on by itself, never.
pub(super) async fn soon<T>(happens: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(600), happens).await.expect("it happens")
}

impl Handle for Scripted {
    fn handle(&self, call: Call) -> Reply {
        if call.method == Method::Discover && call.caller.capabilities.as_ref() == UNWANTED.as_bytes() {
            let why = "the test does not want this client";
            return Reply::refuse(Revision::NEWEST_MODERN, Refusal::new(Reason::InvalidParams, why));
        }
        if call.method == Method::Discover {
            let offer = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"completions":{}},"instructions":"hi"}"#;
            return Reply::complete(Revision::NEWEST_MODERN, object(offer));
        }
        if call.params.find("name") == Some(b"\"echo\"") {
            let text = call.params.find("arguments").unwrap_or(b"{}");
            let result = format!(r#"{{"content":[],"structuredContent":{}}}"#, String::from_utf8_lossy(text));
            return Reply::complete(self.revision, object(&result));
        }
        if call.is_notification {
            let revision = call.revision();
            let _full = self.hands.try_send(Hand { call, abandoned: Arc::default(), steps: mpsc::channel(1).0 });
            return Reply::complete(revision, Object::empty());
        }
        let (steps, played) = mpsc::channel(64);
        let abandoned = Arc::<Mutex<_>>::default();
        let counted = Box::new(Counted(abandoned.clone()));
        self.hands.try_send(Hand { call, abandoned, steps }).expect("the test takes its calls");
        Reply::live(Played { steps: played, revision: self.revision }).owned_by(&"up".into()).attach(counted)
    }
}

impl Source for Played {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        match self.steps.poll_recv(cx) {
            Poll::Ready(Some((step, withdrawn))) => {
                drop(withdrawn);
                Poll::Ready(step)
            }
            // The test let go of the call: it never ends.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    fn revision(&self) -> Revision {
        self.revision
    }
}

impl Hands {
    /// The next call that the handler was given.
    pub(super) async fn next(&mut self) -> Hand {
        soon(self.0.recv()).await.expect("the handler lives")
    }

    /// Whether no call waits to be taken.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Hand {
    pub(super) fn tell(&self, event: Event) {
        self.steps.try_send((Step::Event(event), None)).expect("the call is alive and has room");
    }

    pub(super) fn progress(&self, done: u32) {
        self.tell(Event::Progress(object(&format!(r#"{{"progressToken":99,"progress":{done}}}"#))));
    }

    /// Puts a live question; where its answer arrives.
    pub(super) fn ask(&self, method: Method, params: &str) -> oneshot::Receiver<Answered> {
        let (ask, answer) = question(method, params);
        self.tell(Event::Ask(ask));
        answer
    }

    pub(super) fn end(self, outcome: Outcome) {
        self.steps.try_send((Step::Done(outcome), None)).expect("the call is alive and has room");
    }

    /// Ends it, and withdraws a question in the same breath.
    pub(super) fn complete_withdrawing(self, result: &str, question: oneshot::Receiver<Answered>) {
        let step = Step::Done(Outcome::Complete(object(result)));
        self.steps.try_send((step, Some(question))).expect("the call is alive and has room");
    }

    pub(super) fn complete(self, result: &str) {
        self.end(Outcome::Complete(object(result)));
    }

    pub(super) fn refuse(self, refusal: Refusal) {
        self.end(refusal.into());
    }

    pub(super) fn fail(self, code: i64) {
        self.end(Outcome::Error(Failure::Upstream(RpcError::new(code, "no", None))));
    }

    /// Resolves when the call was cancelled.
    pub(super) async fn cancelled(&self) {
        soon(self.steps.closed()).await;
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.steps.is_closed()
    }
}
