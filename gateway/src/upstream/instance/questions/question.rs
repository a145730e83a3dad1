//! One question from the moment it was read to its answer: refused at once, or put to its owner and waited for.

use super::kind::Kind;
use super::owner;
use super::owner::Owner;
use super::pages::Pages;
use crate::call::caller::ClientSession;
use crate::call::reply::ask::{Answer, Answered, Ask};
use crate::metrics;
use crate::protocol::frame::Method;
use crate::protocol::payload::task;
use crate::protocol::revision::Revision;
use crate::protocol::value::Key;
use crate::protocol::value::spelling::RELATED_TASK;
use crate::protocol::{json, translate};
use crate::runtime::timer::late::within;
use crate::transport::events::IncomingRequest;
use crate::transport::exchange::mailbox::{Kept, Mailbox};
use crate::transport::questions::{Answer as Said, AnswerTo, Asker, Question, Whose};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// What an upstream's questions are put with.
pub(crate) struct Terms<'a> {
    pub(crate) upstream: &'a Arc<str>,
    pub(crate) metrics: &'a metrics::Upstream,
    /// How long an answer is waited for.
    pub(crate) limit: Duration,
    /// The session that has the link for itself.
    pub(crate) exclusive: Option<&'a Arc<ClientSession>>,
    /// What `sharing` would give a child of its own to those who share this one.
    pub(crate) way_out: Option<&'static str>,
    /// Where it is remembered who was to open a page.
    pub(crate) pages: &'a Pages,
}

/// Why a question is not put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is nobody's.
    NotOwned,
    /// Its owner cannot be asked this.
    Unable,
    /// Too many are open.
    Full,
    /// Whose it was has gone.
    Gone,
}

/// Puts a question to its owner, or refuses it at once.
pub(crate) fn put(terms: &Terms<'_>, asked: IncomingRequest, kind: Kind, by: Arc<dyn Asker>) -> Result<(), Refused> {
    let refuse = |why: &str, refused: Refused| {
        asked.answer(&by, &kind.refusal(why));
        terms.metrics.questions(kind.label(), "refused").increment(1);
        Err(refused)
    };
    let Some(revision) = by.revision() else {
        return refuse("no question can be answered before the handshake", Refused::Unable);
    };
    let Some(owner) = owner::find(asked.on.as_ref(), terms.exclusive, &by.calls()) else {
        return refuse(&nobodys(terms), Refused::NotOwned);
    };
    let (can, of) = owner.able(revision);
    if let Some(lacking) = kind.lacks(&asked.params, can, of) {
        return refuse(&unable(lacking, of), Refused::Unable);
    }
    let key = next_key();
    let over = CancellationToken::new();
    let question = Question {
        key,
        id: asked.id.detached(),
        whose: owner.whose.clone(),
        on: owner.on.clone(),
        silence: kind.silence().frame(asked.id.raw()),
        over: over.clone(),
    };
    if by.desk().open(question).is_err() {
        return refuse("too many questions are open", Refused::Full);
    }
    let (answer, answered) = Answer::new();
    let ask = Box::new(Ask {
        key,
        upstream: terms.upstream.clone(),
        method: asked.method.clone(),
        request: asked.params.clone(),
        revision,
        answer,
    });
    if !hand_over(&owner, ask, &by) {
        by.desk().settle(key);
        return refuse("the client has disconnected", Refused::Gone);
    }
    if let (Kind::Elicitation, Some(tenant)) = (kind, owner.whose.tenant()) {
        terms.pages.asked(&asked.params, tenant);
    }
    let named = asked.params.get(Key::Meta).and_then(|meta| json::get(meta, RELATED_TASK));
    let task = named.map(|task| asked.params.raw().slice_ref(task));
    let waiting = Waiting { key, kind, method: asked.method, revision, task, metrics: terms.metrics.clone() };
    let limit = terms.limit;
    by.tasks().spawn_until_end({
        let by = by.clone();
        async move { waiting.wait(by, answered, over, limit).await }
    });
    Ok(())
}

/// A key that no other question has.
pub(crate) fn next_key() -> u64 {
    static KEYS: AtomicU64 = AtomicU64::new(1);
    KEYS.fetch_add(1, Ordering::Relaxed)
}

/// Why a question is nobody's, and what helps.
fn nobodys(terms: &Terms<'_>) -> String {
    let why = "this question belongs to no single call, so no client was asked";
    match terms.way_out {
        Some(sharing) => format!(
            "{why}: several clients or none have calls open; `sharing = \"{sharing}\"` under [upstreams.{}] of the gateway gives \
             each client its own instance",
            terms.upstream
        ),
        None => why.to_owned(),
    }
}

fn unable(lacking: &str, revision: Revision) -> String {
    match revision.is_modern() {
        true => format!("the client did not declare {lacking} for this call"),
        false => format!("the client did not declare {lacking}, or takes no event stream on which it could be asked"),
    }
}

/// Brings a question to its owner; false where the owner has gone meanwhile.
fn hand_over(owner: &Owner, ask: Box<Ask>, by: &Arc<dyn Asker>) -> bool {
    let is_open = |slot: &Arc<Mailbox>| by.calls().iter().any(|open| Arc::ptr_eq(open, slot));
    match (owner.on.last(), &owner.whose) {
        // A call that ends now either finds the question on the desk, or is found to have gone here.
        (Some(slot), _) => slot.ask(ask) == Kept::Yes && is_open(slot),
        (None, Whose::Exclusive(tenant)) => tenant.ask(ask).is_ok(),
        (None, _) => false,
    }
}

/// The wait for one answer.
struct Waiting {
    key: u64,
    kind: Kind,
    method: Method,
    /// What the upstream reads.
    revision: Revision,
    /// The task that the upstream has named, in its own words.
    task: Option<Bytes>,
    metrics: metrics::Upstream,
}

impl Waiting {
    async fn wait(
        self,
        by: Arc<dyn Asker>,
        answered: oneshot::Receiver<Answered>,
        over: CancellationToken,
        limit: Duration,
    ) {
        let (said, outcome) = tokio::select! {
            biased;
            () = over.cancelled() => return self.count("withdrawn"),
            answered = within(limit, answered) => match answered {
                Ok(Ok(answered)) => self.said(answered),
                Ok(Err(_)) => (self.kind.silence(), "no_answer"),
                Err(_) => (self.kind.silence(), "timeout"),
            },
        };
        match by.desk().settle(self.key) {
            Some(question) => {
                by.answer(&question.id, &said, AnswerTo::Question(question.call()));
                self.count(outcome);
            }
            None => self.count("withdrawn"),
        }
    }

    /// A client's answer in the words of the upstream.
    fn said(&self, answered: Answered) -> (Said, &'static str) {
        match answered.body {
            Ok(result) => match translate::answer(&self.method, &result, answered.revision, self.revision) {
                Some(result) => {
                    let result = task::tied(result, self.task.as_deref());
                    (Said::Result(result.raw().clone()), "answered")
                }
                None => {
                    let revision = self.revision.as_str();
                    let why = format!("the client answered, but its answer cannot be said in revision {revision}");
                    (self.kind.without(&why), "untranslatable")
                }
            },
            Err(error) if error.code().is_none() => {
                (self.kind.without("the client answered with an error that cannot be read"), "untranslatable")
            }
            Err(error) => (Said::Error(error.raw().clone()), "error"),
        }
    }

    fn count(&self, outcome: &'static str) {
        self.metrics.questions(self.kind.label(), outcome).increment(1);
        tracing::debug!(kind = self.kind.label(), outcome, "question of an upstream ended");
    }
}
