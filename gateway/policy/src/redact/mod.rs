//! Takes secrets out of the texts that are called with and come back, where that is configured; it is off by default, since bytes
//! pass as they are.

// Where texts stand.
mod texts;

use super::config::Redaction;
use super::config::redaction::Patterns;
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::{Edit, Event, Outcome, Reply, Step};
use crate::call::{Call, Handle};
use crate::metrics::{GATEWAY, edges};
use crate::protocol::value::Object;
use crate::runtime::{Overloaded, Tasks, offload};
use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use texts::Scope;

/// Texts of so many bytes times patterns are searched at once: in the worst case, with each pattern's budget spent, that takes a worker
/// about a millisecond. Larger ones wait for a thread beside the workers.
const INLINE_MAX: usize = 64 << 10;

/// A layer that redacts; where nothing is configured, calls pass it by. Clones are the same.
#[derive(Clone)]
pub struct Redact(Arc<Terms>);

struct Terms {
    /// Whether anything is configured.
    is_any: AtomicBool,
    written: ArcSwap<Redaction>,
    patterns: ArcSwap<Patterns>,
    /// Where large notifications wait.
    tasks: Tasks,
}

impl Redact {
    /// As a configuration has it.
    pub fn new(terms: &Redaction, tasks: &Tasks) -> Self {
        Self(Arc::new(Terms {
            is_any: (*terms != Redaction::default()).into(),
            written: ArcSwap::from_pointee(terms.clone()),
            patterns: ArcSwap::from_pointee(Patterns::new(terms)),
            tasks: tasks.clone(),
        }))
    }

    /// So it is from the next call on.
    pub fn set(&self, terms: &Redaction) {
        if **self.0.written.load() == *terms {
            return;
        }
        self.0.written.store(Arc::new(terms.clone()));
        self.0.patterns.store(Arc::new(Patterns::new(terms)));
        self.0.is_any.store(*terms != Redaction::default(), Ordering::Relaxed);
    }
}

impl<H: Handle> tower::Layer<H> for Redact {
    type Service = Redacted<H>;

    fn layer(&self, inner: H) -> Redacted<H> {
        Redacted { inner: Arc::new(inner), redact: self.clone() }
    }
}

/// A handler whose calls and replies have no secrets.
pub struct Redacted<H> {
    inner: Arc<H>,
    redact: Redact,
}

impl<H: Handle> Handle for Redacted<H> {
    fn handle(&self, mut call: Call) -> Reply {
        let Redact(terms) = &self.redact;
        if !terms.is_any.load(Ordering::Relaxed) {
            return self.inner.handle(call);
        }
        let patterns = terms.patterns.load_full();
        if is_small(&call.params, &patterns) {
            let count = redact(&mut call.params, Scope::Params, &patterns, &AtomicBool::new(false));
            return pass(&*self.inner, call, count, patterns);
        }
        let (is_notification, revision) = (call.is_notification, call.revision());
        let inner = self.inner.clone();
        // Later calls of the client may overtake it: the page on security says so.
        let reply = Reply::deferred(async move {
            let params = std::mem::take(&mut call.params);
            match redact_offloaded(params, Scope::Params, patterns.clone()).await {
                Ok((params, count)) => {
                    call.params = params;
                    pass(&*inner, call, count, patterns)
                }
                Err(Overloaded) => Reply::refuse(
                    revision,
                    Refusal::new(Reason::Busy, "too many calls wait to be searched for secrets; try again"),
                ),
            }
        });
        if is_notification {
            terms.tasks.spawn_until_end(async move { drop(reply.outcome().await) });
            return Reply::complete(revision, Object::empty());
        }
        reply
    }
}

/// Hands a redacted call on, and has its reply redacted.
fn pass(inner: &impl Handle, mut call: Call, count: usize, patterns: Arc<Patterns>) -> Reply {
    if count > 0 {
        // They repeat arguments, with which they are compared.
        call.param_headers = None;
    }
    let reply = inner.handle(call);
    counted(reply.owner(), "call", count);
    reply.edited(move |step, owner| edit(step, owner, &patterns))
}

/// Redacts what a step says: at once where that is little, else beside the workers.
fn edit(mut step: Step, owner: Option<&Arc<str>>, patterns: &Arc<Patterns>) -> Edit {
    let (said, scope) = match &mut step {
        Step::Done(Outcome::Complete(result)) => (result, Scope::Result),
        Step::Event(Event::Progress(params) | Event::Log(_, params)) => (params, Scope::Notice),
        Step::Done(_) | Step::Event(_) => return Edit::Ready(step),
    };
    if is_small(said, patterns) {
        counted(owner, "result", redact(said, scope, patterns, &AtomicBool::new(false)));
        return Edit::Ready(step);
    }
    let job = redact_offloaded(std::mem::take(said), scope, patterns.clone());
    let owner = owner.cloned();
    Edit::Pending(Box::pin(async move {
        let Ok((redacted, count)) = job.await else {
            let why =
                "the call has run; its result is withheld, since too many results wait to be searched for secrets";
            return matches!(step, Step::Done(_)).then(|| Step::Done(Refusal::new(Reason::Internal, why).into()));
        };
        counted(owner.as_ref(), "result", count);
        if let Step::Done(Outcome::Complete(said)) | Step::Event(Event::Progress(said) | Event::Log(_, said)) =
            &mut step
        {
            *said = redacted;
        }
        Some(step)
    }))
}

fn is_small(object: &Object, patterns: &Patterns) -> bool {
    patterns.work(object.raw().len()) <= INLINE_MAX
}

/// [`redact`] beside the workers. Dropping the future stops it.
async fn redact_offloaded(
    mut object: Object,
    scope: Scope,
    patterns: Arc<Patterns>,
) -> Result<(Object, usize), Overloaded> {
    offload(move |is_cancelled| {
        let count = redact(&mut object, scope, &patterns, is_cancelled);
        (object, count)
    })
    .await
}

/// Writes an object anew without secrets; how many it had.
fn redact(object: &mut Object, scope: Scope, patterns: &Patterns, is_cancelled: &AtomicBool) -> usize {
    let Some((text, count)) = texts::redacted(object.raw(), scope, patterns, is_cancelled) else { return 0 };
    // An object that the changes have broken is replaced by an empty one, since the secrets in the old one must not pass.
    *object = Object::parse(text.into()).unwrap_or_default();
    count
}

fn counted(upstream: Option<&Arc<str>>, of: &'static str, count: usize) {
    if count > 0 {
        let upstream = upstream.cloned().unwrap_or_else(|| GATEWAY.into());
        edges::redactions(upstream, of).increment(count as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::LogLevel;
    use crate::call::reply::Source;
    use crate::protocol::revision::Revision;
    use std::collections::VecDeque;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    /// A reply whose steps are there at once.
    struct Steps(VecDeque<Step>);

    impl Source for Steps {
        fn poll_step(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Step> {
            self.0.pop_front().map_or(Poll::Pending, Poll::Ready)
        }

        fn revision(&self) -> Revision {
            Revision::NEWEST_MODERN
        }
    }

    /// Large steps are redacted beside the workers, and small ones behind them wait.
    #[tokio::test]
    async fn redacted_steps_keep_their_order() {
        let patterns = Arc::new(Patterns::new(&Redaction { keys: true, patterns: Vec::new() }));
        let parsed = |text: String| Object::parse(text.into()).unwrap();
        let progress = |n: usize, length: usize| {
            let text = format!(r#"{{"progress":{n},"message":"{} AKIAIOSFODNN7EXAMPLE"}}"#, "x".repeat(length));
            Step::Event(Event::Progress(parsed(text)))
        };
        let result = format!(r#"{{"content":[],"structuredContent":"{} AKIAIOSFODNN7EXAMPLE"}}"#, "x".repeat(100_000));
        let done = Step::Done(Outcome::Complete(parsed(result)));
        let steps = Steps([progress(1, 100_000), progress(2, 1), progress(3, 50_000), done].into());
        let mut reply = Reply::live(steps).edited(move |step, owner| edit(step, owner, &patterns));
        for n in 1..=4 {
            let step = reply.next().await;
            let (Step::Event(Event::Progress(said)) | Step::Done(Outcome::Complete(said))) = &step else {
                panic!("{step:?}")
            };
            let text = String::from_utf8(said.raw().to_vec()).unwrap();
            assert!(text.ends_with(r#"x [redacted]"}"#), "step {n}");
            assert!(n == 4 || text.starts_with(&format!(r#"{{"progress":{n}"#)), "step {n}");
        }
    }

    #[test]
    fn what_is_told_before_a_result_has_no_secrets_either() {
        let terms = Redaction { keys: true, patterns: Vec::new() };
        let patterns = Arc::new(Patterns::new(&terms));
        let parsed = |text: &str| Object::parse(text.to_owned().into()).unwrap();
        let progress = Event::Progress(parsed(r#"{"progress":1,"message":"AKIAIOSFODNN7EXAMPLE found"}"#));
        let log = Event::Log(LogLevel::Info, parsed(r#"{"level":"info","data":{"key":"AKIAIOSFODNN7EXAMPLE"}}"#));
        for (event, expected) in [
            (progress, r#"{"progress":1,"message":"[redacted] found"}"#),
            (log, r#"{"level":"info","data":{"key":"[redacted]"}}"#),
        ] {
            let Edit::Ready(step) = edit(Step::Event(event), None, &patterns) else { panic!("it is small") };
            let Step::Event(Event::Progress(params) | Event::Log(_, params)) = &step else { panic!("{step:?}") };
            assert_eq!(params.raw(), expected.as_bytes());
        }
    }
}
