//! Spans of calls: whether a call has one, what it says, and the bounded queue by which it leaves. No call waits for it: a span that finds no
//! room is counted and dropped.

// Sends spans to a collector.
mod export;
// Spans in the words of OTLP.
mod otlp;
// What a collector says of a batch that it has taken in part.
mod partial;

use crate::call::Call;
use crate::call::caller::ClientSession;
use crate::call::caller::trace::{Side, Span, Spans, Trace};
use crate::call::reply::Outcome;
use crate::config::{Sampler, Traces as Config};
use crate::protocol::meta::trace::Context;
use crate::protocol::revision::Revision;
use crate::runtime::Tasks;
pub use export::Post;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;
use tokio::sync::mpsc::{Sender, channel};
use trunkline_foundation::metrics::edges;

/// So many spans wait to be sent; then the newest are counted and dropped.
const WAITING_MAX: usize = 8192;

/// Makes spans of calls. Cheap to clone.
#[derive(Clone)]
pub struct Traces(Arc<Maker>);

struct Maker {
    sampler: Sampler,
    ids: Ids,
    queue: Sender<Span>,
}

impl Traces {
    /// Those of a configuration, sent by `post` until the level ends.
    pub fn start(config: &Config, post: Post, tasks: &Tasks) -> Self {
        let (queue, spans) = channel(WAITING_MAX);
        let ids = Ids::default();
        let resource = otlp::resource(config, &ids.trace());
        tasks.spawn(export::run(spans, post, resource, tasks.clone()));
        Self(Arc::new(Maker { sampler: config.sampler, ids, queue }))
    }

    /// Begins the span of a call, which is a part of it from now on.
    #[cold]
    pub(super) fn begin(&self, call: &mut Call) -> Option<Box<Going>> {
        let asked = call.trace.take();
        let Trace { context: parent, link, baggage, .. } = asked.as_deref().cloned().unwrap_or_default();
        let ids = &self.0.ids;
        let context = match &parent {
            Some(parent) => {
                let is_sampled = self.0.sampler.samples(&parent.trace, Some(parent.is_sampled()));
                parent.next(ids.span(), is_sampled)
            }
            None => {
                let trace = ids.trace();
                Context::root(trace, ids.span(), self.0.sampler.samples(&trace, None))
            }
        };
        let spans: Arc<dyn Spans> = self.0.clone();
        let span = context.is_sampled().then(|| {
            let now = SystemTime::now();
            let mut span = Span {
                context: context.clone(),
                parent: parent.map(|parent| (parent.span, true)),
                link: link.clone(),
                side: Side::Server,
                name: String::new(),
                time: (now, now),
                attributes: Vec::with_capacity(10),
                error: None,
            };
            span.about(call, call.revision());
            // Only a client whose connection has an address comes over TCP; what the others come by is the transport's to know.
            if call.caller.address.is_some() {
                span.put("network.transport", "tcp");
            }
            let session = call.caller.tenant.clone();
            Box::new(Going { span, session, revision: call.revision(), traces: self.clone() })
        });
        call.trace = Some(Arc::new(Trace { context: Some(context), link: None, baggage, spans: Some(spans) }));
        span
    }
}

impl Spans for Maker {
    fn id(&self) -> [u8; 8] {
        self.ids.span()
    }

    fn take(&self, span: Span) {
        if self.queue.try_send(span).is_err() {
            edges::spans("dropped").increment(1);
        }
    }
}

/// A span of a call that goes on.
pub(super) struct Going {
    span: Span,
    session: Option<Arc<ClientSession>>,
    revision: Revision,
    traces: Traces,
}

impl Going {
    /// Itself.
    pub(super) fn context(&self) -> &Context {
        &self.span.context
    }

    /// The call has ended so; without an outcome it was given up.
    #[cold]
    pub(super) fn end(self: Box<Self>, upstream: Option<&Arc<str>>, outcome: Option<&Outcome>) {
        let Self { mut span, session, revision, traces } = *self;
        match upstream {
            Some(upstream) => span.put("trunkline.upstream", upstream.to_string()),
            // A client can invent as many names as it likes.
            None => span.unname(),
        }
        if let Some(session) = session {
            span.put("trunkline.session", session.mark());
        }
        match outcome {
            Some(outcome) => span.ended(outcome, revision),
            None => span.failed(Some("cancelled".into())),
        }
        traces.0.take(span);
    }
}

/// New ids: a keyed hash of a counter, so that nobody foresees the next one and none costs a call of the system.
#[derive(Default)]
struct Ids {
    keys: [RandomState; 2],
    next: AtomicU64,
}

impl Ids {
    fn trace(&self) -> [u8; 16] {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let [high, low] = [0, 1].map(|at| self.keys[at].hash_one((b't', number)));
        ((u128::from(high) << 64) | u128::from(low.max(1))).to_be_bytes()
    }

    fn span(&self) -> [u8; 8] {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.keys[0].hash_one((b's', number)).max(1).to_be_bytes()
    }
}

#[cfg(test)]
mod tests;
