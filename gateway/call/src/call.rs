//! One client request, or notification, on its way through the gateway.

use super::caller::Caller;
use super::caller::trace::Trace;
use crate::protocol::frame::Method;
use crate::protocol::json;
use crate::protocol::revision::Revision;
use crate::protocol::value::{Key, Object};
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use std::borrow::Cow;
use std::sync::Arc;

/// One client request inside the gateway.
///
/// The client's id, progress token and stream are not in it: they belong to the client edge, which knows where the
/// [`crate::reply::Reply`] goes. Its payload is written in the revision of its caller.
#[derive(Debug, Clone)]
pub struct Call {
    /// What is asked.
    pub method: Method,
    /// With what, as the client wrote it; its `_meta` is not to be read: see [`Self::meta`]. Nor is its `name`, once the call
    /// is routed: see [`Self::target_name`].
    pub params: Object,
    /// The owner's name of the tool or prompt as a JSON string, where it differs from `name` in the parameters. It replaces
    /// `name` when the request is written: a copy of the parameters would take as much memory as the client's message.
    pub target_name: Option<Bytes>,
    /// The members of `_meta` that go end to end, as `"key":value` joined by commas.
    pub meta: Bytes,
    /// Who asks.
    pub caller: Arc<Caller>,
    /// Whether the client wants progress.
    pub progress: bool,
    /// The level from which on the client wants log messages of this call.
    pub log_level: Option<LogLevel>,
    /// A notification wants no answer: its reply is complete at once.
    pub is_notification: bool,
    /// The `Mcp-Param-*` headers of a modern HTTP request, for the router to compare; `None` on other transports.
    pub param_headers: Option<Box<[(HeaderName, HeaderValue)]>>,
    /// What the client calls what it asks for, where its owner calls it something else.
    pub public: Option<Arc<str>>,
    /// The upstream that gave out the state that the call bears: nobody else may have it.
    pub bound_to: Option<Arc<str>>,
    /// The trace that it is a part of, where it is one; then nothing of that stands in `meta`.
    pub trace: Option<Arc<Trace>>,
}

impl Call {
    /// The revision that the payload is written in.
    pub fn revision(&self) -> Revision {
        self.caller.revision
    }

    /// The name of the tool or prompt, as its owner knows it.
    pub fn target_name(&self) -> Option<Cow<'_, str>> {
        match &self.target_name {
            Some(name) => json::unquote(name),
            None => self.params.text(Key::Name),
        }
    }

    /// A call that the gateway makes itself on behalf of a caller, with nothing beside its parameters.
    pub fn about(method: Method, params: Object, caller: Arc<Caller>) -> Self {
        let (meta, progress, log_level, is_notification) = (Bytes::new(), false, None, false);
        let (target_name, param_headers, public, bound_to, trace) = (None, None, None, None, None);
        Self {
            method,
            params,
            target_name,
            meta,
            caller,
            progress,
            log_level,
            is_notification,
            param_headers,
            public,
            bound_to,
            trace,
        }
    }

    /// The same call without its parameters: those take most of what a copy costs.
    #[must_use]
    pub fn without_params(&self) -> Self {
        Self {
            method: self.method.clone(),
            params: Object::empty(),
            target_name: self.target_name.clone(),
            meta: self.meta.clone(),
            caller: self.caller.clone(),
            progress: self.progress,
            log_level: self.log_level,
            is_notification: self.is_notification,
            param_headers: self.param_headers.clone(),
            public: self.public.clone(),
            bound_to: self.bound_to.clone(),
            trace: self.trace.clone(),
        }
    }
}

/// How much a log message matters, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Details for developers.
    Debug,
    /// What goes on.
    Info,
    /// Normal and significant.
    Notice,
    /// Something may be wrong.
    Warning,
    /// Something failed.
    Error,
    /// Something important failed.
    Critical,
    /// Act now.
    Alert,
    /// Nothing works.
    Emergency,
}

impl LogLevel {
    /// What is heard of who has named no level.
    pub const ORDINARY: Self = Self::Info;

    const NAMES: [(&'static str, Self); 8] = [
        ("debug", Self::Debug),
        ("info", Self::Info),
        ("notice", Self::Notice),
        ("warning", Self::Warning),
        ("error", Self::Error),
        ("critical", Self::Critical),
        ("alert", Self::Alert),
        ("emergency", Self::Emergency),
    ];

    /// The level of a raw JSON string.
    pub fn parse(raw: &[u8]) -> Option<Self> {
        let text = json::unquote(raw)?;
        Self::NAMES.iter().find(|(name, _)| *name == text).map(|(_, level)| *level)
    }

    /// How many there are.
    pub const COUNT: usize = Self::NAMES.len();

    /// All of them, the least first.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::NAMES.iter().map(|(_, level)| *level)
    }

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize].0
    }
}

/// What a listen call wants to hear of; the parameters of `subscriptions/listen`, and what was honoured of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListenFilter {
    /// Changes of the tool list.
    pub tools: bool,
    /// Changes of the prompt list.
    pub prompts: bool,
    /// Changes of the resource and template lists.
    pub resources: bool,
    /// Changes of these resources.
    pub uris: Vec<Arc<str>>,
    /// How these tasks stand: of the extension `io.modelcontextprotocol/tasks`.
    pub tasks: Vec<Arc<str>>,
}

impl ListenFilter {
    /// All three lists and no resource: what a legacy session hears of unasked.
    pub fn lists() -> Self {
        Self { tools: true, prompts: true, resources: true, ..Self::default() }
    }

    /// Reads the parameters of a `subscriptions/listen` request.
    pub fn parse(params: &Object) -> Option<Self> {
        let wanted = params.find("notifications")?;
        let mut filter = Self::default();
        for member in json::Members::of(wanted).ok()? {
            let member = member.ok()?;
            let value = &wanted[member.value..member.end];
            match json::unquote(&wanted[member.start..member.key_end]).as_deref() {
                Some("toolsListChanged") => filter.tools = flag(value)?,
                Some("promptsListChanged") => filter.prompts = flag(value)?,
                Some("resourcesListChanged") => filter.resources = flag(value)?,
                Some("resourceSubscriptions") => filter.uris = texts(value)?,
                Some("taskIds") => filter.tasks = texts(value)?,
                _ => {}
            }
        }
        Some(filter)
    }

    /// The parameters of a `subscriptions/listen` request, or of its acknowledgement: the raw filter object.
    pub fn to_json(&self) -> String {
        let mut parts = Vec::new();
        for (wanted, name) in [
            (self.tools, "toolsListChanged"),
            (self.prompts, "promptsListChanged"),
            (self.resources, "resourcesListChanged"),
        ] {
            if wanted {
                parts.push(format!("\"{name}\":true"));
            }
        }
        for (wanted, name) in [(&self.uris, "resourceSubscriptions"), (&self.tasks, "taskIds")] {
            if !wanted.is_empty() {
                let texts: Vec<_> = wanted.iter().map(|text| json::quote(text)).collect();
                parts.push(format!("\"{name}\":[{}]", texts.join(",")));
            }
        }
        format!("{{{}}}", parts.join(","))
    }

    /// As the params object of a listen call of our own.
    pub fn to_params(&self) -> Object {
        Object::parse(format!("{{\"notifications\":{}}}", self.to_json()).into()).expect("what we write is an object")
    }
}

/// A filter of more resources or tasks is none: what takes it refuses far fewer.
const TEXTS_MAX: usize = 4096;

fn texts(raw: &[u8]) -> Option<Vec<Arc<str>>> {
    json::elements_up_to(TEXTS_MAX, raw)
        .ok()?
        .into_iter()
        .map(|place| Some(json::unquote(&raw[place])?.into()))
        .collect()
}

fn flag(raw: &[u8]) -> Option<bool> {
    match raw {
        b"true" => Some(true),
        b"false" | b"null" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_survives_its_own_writing() {
        let filter = ListenFilter { uris: vec!["a:\"b".into()], tasks: vec!["t".into()], ..ListenFilter::lists() };
        assert_eq!(ListenFilter::parse(&filter.to_params()), Some(filter));
        assert_eq!(ListenFilter::parse(&Object::empty()), None);
    }

    #[test]
    fn levels_are_in_order_and_named() {
        for (at, (name, level)) in LogLevel::NAMES.iter().enumerate() {
            assert_eq!(
                (*level as usize, level.as_str(), LogLevel::parse(crate::protocol::json::quote(name).as_bytes())),
                (at, *name, Some(*level))
            );
        }
    }
}
