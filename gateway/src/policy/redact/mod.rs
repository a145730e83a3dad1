//! Takes secrets out of the texts that are called with and come back, where that is configured; it is off by default, since bytes
//! pass as they are.

// Where texts stand.
mod texts;

use super::config::Redaction;
use super::config::redaction::Patterns;
use crate::call::reply::{Ending, Event, Guard, Outcome, Reply, Step};
use crate::call::{Call, Handle};
use crate::metrics::{GATEWAY, edges};
use crate::protocol::value::Object;
use crate::runtime::aside;
use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use texts::Scope;

/// A layer that redacts; where nothing is configured, calls pass it by. Clones are the same.
#[derive(Clone)]
pub struct Redact(Arc<Terms>);

struct Terms {
    /// Whether anything is configured.
    is_any: AtomicBool,
    written: ArcSwap<Redaction>,
    patterns: ArcSwap<Patterns>,
}

impl Redact {
    /// As a configuration has it.
    pub fn new(terms: &Redaction) -> Self {
        Self(Arc::new(Terms {
            is_any: (*terms != Redaction::default()).into(),
            written: ArcSwap::from_pointee(terms.clone()),
            patterns: ArcSwap::from_pointee(Patterns::new(terms)),
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
        Redacted { inner, redact: self.clone() }
    }
}

/// A handler whose calls and replies have no secrets.
pub struct Redacted<H> {
    inner: H,
    redact: Redact,
}

impl<H: Handle> Handle for Redacted<H> {
    fn handle(&self, mut call: Call) -> Reply {
        let Redact(terms) = &self.redact;
        if !terms.is_any.load(Ordering::Relaxed) {
            return self.inner.handle(call);
        }
        let patterns = terms.patterns.load_full();
        let count = redact(&mut call.params, Scope::Params, &patterns);
        if count > 0 {
            // They repeat arguments, with which they are compared.
            call.param_headers = None;
        }
        let reply = self.inner.handle(call);
        counted(reply.owner(), "call", count);
        reply.attach(Box::new(Inspector { patterns }))
    }
}

/// Redacts what comes back.
struct Inspector {
    patterns: Arc<Patterns>,
}

impl Guard for Inspector {
    fn edit(&mut self, step: &mut Step, owner: Option<&Arc<str>>) {
        let count = match step {
            Step::Done(Outcome::Complete(result)) => redact(result, Scope::Result, &self.patterns),
            Step::Event(Event::Progress(params) | Event::Log(_, params)) => {
                redact(params, Scope::Notice, &self.patterns)
            }
            Step::Done(_) | Step::Event(_) => 0,
        };
        counted(owner, "result", count);
    }

    fn done(&mut self, _ending: &Ending<'_>) {}
}

/// Writes an object anew without secrets; how many it had.
fn redact(object: &mut Object, scope: Scope, patterns: &Patterns) -> usize {
    let raw = object.raw().clone();
    let Some((text, count)) = aside(raw.len(), || texts::redacted(&raw, scope, patterns)) else { return 0 };
    if let Ok(redacted) = Object::parse(text.into()) {
        *object = redacted;
    }
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

    #[test]
    fn what_is_told_before_a_result_has_no_secrets_either() {
        let terms = Redaction { keys: true, patterns: Vec::new() };
        let mut inspector = Inspector { patterns: Arc::new(Patterns::new(&terms)) };
        let parsed = |text: &str| Object::parse(text.to_owned().into()).unwrap();
        let progress = Event::Progress(parsed(r#"{"progress":1,"message":"AKIAIOSFODNN7EXAMPLE found"}"#));
        let log = Event::Log(LogLevel::Info, parsed(r#"{"level":"info","data":{"key":"AKIAIOSFODNN7EXAMPLE"}}"#));
        for (event, expected) in [
            (progress, r#"{"progress":1,"message":"[redacted] found"}"#),
            (log, r#"{"level":"info","data":{"key":"[redacted]"}}"#),
        ] {
            let mut step = Step::Event(event);
            inspector.edit(&mut step, None);
            let Step::Event(Event::Progress(params) | Event::Log(_, params)) = &step else { panic!("{step:?}") };
            assert_eq!(params.raw(), expected.as_bytes());
        }
    }
}
