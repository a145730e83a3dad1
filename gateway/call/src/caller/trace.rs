//! Of which trace of its caller a call is a part, and the spans that are made of it.

use crate::Call;
use crate::protocol::frame::Method;
use crate::protocol::meta::Meta;
use crate::protocol::meta::trace::{Carried, Context};
use crate::protocol::revision::Revision;
use crate::protocol::value::Key;
use crate::refusal::Reason;
use crate::reply::{Failure, Outcome};
use http::{HeaderName, HeaderValue};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// A longer name of a tool or a prompt is cut in spans.
const NAME_CHARS_MAX: usize = 128;

/// Attributes of the names that an upstream gives.
const TOOL: &str = "gen_ai.tool.name";
const PROMPT: &str = "gen_ai.prompt.name";

/// Of which trace a call is a part. Only a call that bears a trace context has one, or one of which spans are made.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// The span that the next one is a child of: the caller's, and once the gateway has begun one, that.
    pub context: Option<Context>,
    /// The span of the transport, where the message names another one.
    pub link: Option<Context>,
    /// What goes with all that the call causes.
    pub baggage: Option<Box<str>>,
    /// Makes spans of it; without it the context is passed on as it came.
    pub spans: Option<Arc<dyn Spans>>,
}

/// Makes spans and takes them once they have ended.
pub trait Spans: Send + Sync {
    /// The id of a new span.
    fn id(&self) -> [u8; 8];

    /// A recorded span has ended. Nothing waits here.
    fn take(&self, span: Span);
}

impl fmt::Debug for dyn Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spans")
    }
}

/// Which side of a request a span tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The request was received.
    Server,
    /// It was sent.
    Client,
}

/// A span that has ended.
#[derive(Debug, Clone)]
pub struct Span {
    /// Itself.
    pub context: Context,
    /// The span that it is a child of, and whether that is one of another process.
    pub parent: Option<([u8; 8], bool)>,
    /// Another span that led to it.
    pub link: Option<Context>,
    /// Which side it tells of.
    pub side: Side,
    /// The method, and the tool or prompt.
    pub name: String,
    /// From when to when.
    pub time: (SystemTime, SystemTime),
    /// What is known of it, by the names of the semantic conventions. Never what a call was given or gave.
    pub attributes: Vec<(&'static str, Attribute)>,
    /// Why it failed, in a word.
    pub error: Option<Cow<'static, str>>,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attribute {
    /// A text.
    Text(Cow<'static, str>),
    /// A number.
    Number(i64),
}

impl Trace {
    /// Takes it out of the `_meta` of a request; the transport's own context is the parent where that has none, and else a link.
    #[inline]
    pub fn of(meta: &mut Meta) -> Option<Arc<Self>> {
        if !meta.is_traced && meta.ambient.is_none() {
            return None;
        }
        Self::found(meta)
    }

    #[cold]
    fn found(meta: &mut Meta) -> Option<Arc<Self>> {
        let ambient = meta.ambient.take().map(|ambient| *ambient).unwrap_or_default();
        let mut own = Carried::default();
        if std::mem::take(&mut meta.is_traced) {
            (own, meta.rest) = Carried::out_of(&meta.rest);
        }
        let is_other = |ambient: &Context| {
            own.context.as_ref().is_some_and(|own| (own.trace, own.span) != (ambient.trace, ambient.span))
        };
        let link = ambient.context.clone().filter(is_other);
        let baggage = own.baggage.or(ambient.baggage);
        let context = own.context.or(ambient.context);
        let is_any = context.is_some() || baggage.is_some();
        is_any.then(|| Arc::new(Self { context, link, baggage, spans: None }))
    }
}

impl Span {
    /// Adds what is known.
    pub fn put(&mut self, name: &'static str, value: impl Into<Cow<'static, str>>) {
        self.attributes.push((name, Attribute::Text(value.into())));
    }

    /// Adds what is known of a call: what is asked, in which revision, and of which tool or prompt.
    pub fn about(&mut self, call: &Call, revision: Revision) {
        let method = call.method.label();
        self.put("mcp.method.name", method);
        self.put("mcp.protocol.version", revision.as_str());
        method.clone_into(&mut self.name);
        let of = match call.method {
            Method::ToolsCall => {
                self.put("gen_ai.operation.name", "execute_tool");
                TOOL
            }
            Method::PromptsGet => PROMPT,
            _ => return,
        };
        if let Some(name) = call.target_name() {
            let name: String = name.chars().take(NAME_CHARS_MAX).collect();
            self.name = format!("{method} {name}");
            self.put(of, name);
        }
    }

    /// The name of its tool or prompt is one that no upstream has.
    pub fn unname(&mut self) {
        self.attributes.retain(|(name, _)| ![TOOL, PROMPT].contains(name));
        self.name.truncate(self.name.find(' ').unwrap_or(self.name.len()));
    }

    /// It ends so.
    pub fn ended(&mut self, outcome: &Outcome, revision: Revision) {
        let (error, code) = error_of(outcome, revision);
        if let Some(code) = code {
            self.put("rpc.response.status_code", code.to_string());
        }
        self.failed(error);
    }

    /// It ends with this error, or none.
    pub fn failed(&mut self, error: Option<Cow<'static, str>>) {
        if let Some(error) = &error {
            self.put("error.type", error.clone());
        }
        (self.error, self.time.1) = (error, SystemTime::now());
    }
}

/// The word for a failed outcome, and its JSON-RPC code. No message: a peer's may say what the call was given.
fn error_of(outcome: &Outcome, revision: Revision) -> (Option<Cow<'static, str>>, Option<i64>) {
    match outcome {
        Outcome::Complete(result) if result.get(Key::IsError) == Some(b"true") => (Some("tool_error".into()), None),
        Outcome::Complete(_) | Outcome::InputRequired(_) => (None, None),
        Outcome::Error(Failure::Upstream(error)) => {
            let code = error.code();
            (Some(code.map_or("rpc_error".into(), |code| code.to_string().into())), code)
        }
        Outcome::Error(Failure::Refused(refusal)) => {
            let code = refusal.code(revision);
            let word = match refusal.reason {
                _ if refusal.is_denied => "denied".into(),
                Reason::Timeout => "timeout".into(),
                Reason::Cancelled => "cancelled".into(),
                Reason::Unavailable | Reason::Stopped | Reason::Login => "upstream_unavailable".into(),
                Reason::Busy => "busy".into(),
                Reason::Limited(_) => "rejected".into(),
                Reason::BadAnswer => "bad_answer".into(),
                Reason::OutcomeUnknown => "outcome_unknown".into(),
                _ => code.to_string().into(),
            };
            (Some(word), Some(code))
        }
    }
}

/// One request to an upstream on behalf of a call: the context that it bears, and the span that tells of it. Dropped before its end, it was
/// cancelled.
pub struct Attempt(Box<Going>);

struct Going {
    carried: Carried,
    /// Where a span is made of it.
    span: Option<(Span, Arc<dyn Spans>)>,
}

impl Attempt {
    /// Begins one, in the revision of its upstream.
    #[cold]
    pub fn begin(trace: &Trace, call: &Call, revision: Revision) -> Self {
        let baggage = trace.baggage.clone();
        let (Some(spans), Some(of)) = (&trace.spans, &trace.context) else {
            let carried = Carried { context: trace.context.clone(), baggage };
            return Self(Box::new(Going { carried, span: None }));
        };
        let context = of.next(spans.id(), of.is_sampled());
        let span = of.is_sampled().then(|| {
            let now = SystemTime::now();
            let mut span = Span {
                context: context.clone(),
                parent: Some((of.span, false)),
                link: None,
                side: Side::Client,
                name: String::new(),
                time: (now, now),
                attributes: Vec::with_capacity(8),
                error: None,
            };
            span.about(call, revision);
            (span, spans.clone())
        });
        Self(Box::new(Going { carried: Carried { context: Some(context), baggage }, span }))
    }

    /// The members of its `_meta`: those of the call and its own context.
    pub fn meta(&self, rest: &[u8]) -> Vec<u8> {
        let mut members = rest.to_vec();
        self.0.carried.write(&mut members);
        members
    }

    /// Its context as headers.
    pub fn headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        self.0.carried.headers()
    }

    /// To whom it was sent.
    #[cold]
    pub fn towards(&mut self, upstream: &Arc<str>, (transport, host): (&'static str, Option<(&str, u16)>)) {
        let Some((span, _)) = &mut self.0.span else { return };
        span.put("trunkline.upstream", upstream.to_string());
        span.put("network.transport", transport);
        if let Some((host, port)) = host {
            span.put("server.address", host.to_owned());
            span.attributes.push(("server.port", Attribute::Number(port.into())));
        }
    }

    /// It ends so, in this revision.
    #[cold]
    pub fn end(mut self, outcome: &Outcome, revision: Revision) {
        if let Some((mut span, spans)) = self.0.span.take() {
            span.ended(outcome, revision);
            spans.take(span);
        }
    }

    /// It was refused with this JSON-RPC code, and the call is tried once more.
    #[cold]
    pub fn refused(mut self, code: i64) {
        if let Some((mut span, spans)) = self.0.span.take() {
            span.put("rpc.response.status_code", code.to_string());
            span.failed(Some(code.to_string().into()));
            spans.take(span);
        }
    }

    /// It did not run, for this reason in a word, and the call is tried once more.
    #[cold]
    pub fn failed(mut self, why: &'static str) {
        if let Some((mut span, spans)) = self.0.span.take() {
            span.failed(Some(why.into()));
            spans.take(span);
        }
    }

    /// It was sent, and nothing waits for what becomes of it.
    #[cold]
    pub fn left(mut self) {
        if let Some((mut span, spans)) = self.0.span.take() {
            span.failed(None);
            spans.take(span);
        }
    }

    /// It never left.
    #[cold]
    pub fn forget(mut self) {
        self.0.span = None;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let Some((mut span, spans)) = self.0.span.take() {
            span.failed(Some("cancelled".into()));
            spans.take(span);
        }
    }
}
