//! Who is at the other end of a link, once that is known: its era, its revision, what it offers.

use super::fault::Trouble;
use super::loss::OwedWord;
use super::principal;
use crate::call::caller::trace::Attempt;
use crate::call::{Call, LogLevel};
use crate::config::ToldIdentity;
use crate::health::{Cause, CauseCode};
use crate::protocol::capabilities::Capabilities;
use crate::protocol::capabilities::Supports;
use crate::protocol::capabilities::beyond::Declared;
use crate::protocol::frame::Method;
use crate::protocol::frame::message::Body;
use crate::protocol::frame::rpc_error::RpcError;
use crate::protocol::meta::Envelope;
use crate::protocol::revision::Revision;
use crate::protocol::value::{Key, Object};
use crate::protocol::{json, translate};
use crate::runtime::timer::late::within;
use crate::transport::exchange::{Lost, Permit, Request};
use crate::transport::identity;
use crate::transport::identity::NO_CAPABILITIES;
use crate::transport::link::{Exchange, Link};
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What an upstream is told once nobody says any more what is wanted.
pub const ORDINARY: LogLevel = LogLevel::ORDINARY;

/// What an upstream said of itself when it was met.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The revision that is spoken.
    pub(crate) revision: Revision,
    /// Whether it has named that: whatever knows calls of tools alone names none.
    pub(crate) names_revision: bool,
    /// The capabilities that it declared.
    pub capabilities: Object,
    /// Its instructions, a raw JSON string.
    pub instructions: Option<Bytes>,
    /// What it can be asked.
    pub supports: Supports,
    /// Whether it speaks the dialect of 2024-10-07.
    pub is_dialect: bool,
}

/// What a client's call says beside itself.
#[derive(Debug, Default)]
pub struct BesideCall<'a> {
    /// The `Mcp-Param-*` headers.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// How the upstream is told whose call it is, if at all.
    pub identity: Option<&'a ToldIdentity>,
}

/// An upstream that was met on a live link.
pub struct Peer {
    /// The link.
    pub link: Link,
    /// What it said of itself.
    pub offer: Offer,
    /// The level of log messages that it was told, where it is a legacy one.
    level: Mutex<Option<LogLevel>>,
    /// What its client lost with the session that it had before this one.
    pub owed: OwedWord,
    /// What requests of our own declare, where it is a stateless one.
    declares: Cow<'static, [u8]>,
    /// What it is not asked for, as the configuration says that: its tools.
    tools: Option<Object>,
}

impl Peer {
    /// Creates a peer, and sets the revision of its link.
    pub fn new(link: Link, offer: Offer) -> Self {
        link.speak(offer.revision);
        let declares = Cow::Borrowed(NO_CAPABILITIES);
        Self { link, offer, level: Mutex::new(None), owed: OwedWord::default(), declares, tools: None }
    }

    /// The same peer, whose tools are these.
    pub(crate) fn with_tools(self, tools: Option<Object>) -> Self {
        Self { tools, ..self }
    }

    /// The same peer, to which requests of our own declare this.
    pub fn declaring(&self, set: &Declared) -> Self {
        let declares = Cow::Owned(set.to_json(self.revision()).into_bytes());
        Self { declares, ..Self::new(self.link.clone(), self.offer.clone()) }
    }

    /// The revision that is spoken.
    pub fn revision(&self) -> Revision {
        self.offer.revision
    }

    /// The revision that it has named.
    pub fn named_revision(&self) -> Option<&'static str> {
        self.offer.names_revision.then(|| self.revision().as_str())
    }

    /// Whether its tools are not asked for.
    pub fn has_defined_tools(&self) -> bool {
        self.tools.is_some()
    }

    /// Sends a client's call on, which has its place until its end; nothing waits here.
    pub fn send(
        &self,
        call: &Call,
        beside: BesideCall<'_>,
        place: Option<Permit>,
    ) -> Result<(Exchange, Option<Attempt>), Lost> {
        if self.is_stray(call) {
            let why = "`requestState` is unknown, or is missing beside `inputResponses`: nothing waits for this retry";
            return Err(Lost::Stray(Cause::new(CauseCode::StateUnknown, why)));
        }
        if let Some(level) = call.log_level {
            self.raise_level(level);
        }
        let (params, capabilities) = (self.translated(call), self.capabilities_of(call));
        let attempt = self.attempt(call);
        let BesideCall { headers, identity } = beside;
        let meta = meta_of(call, identity, attempt.as_ref());
        let identity = identity.and_then(|told| principal::header(told, &call.caller.principal)).map(Box::new);
        let request = self.request(call, (&params, &meta), &capabilities, attempt.as_ref());
        let exchange = match self.link.exchange(&Request { headers, identity, ..request }) {
            Ok(exchange) => exchange,
            Err(lost) => {
                attempt.into_iter().for_each(Attempt::forget);
                return Err(lost);
            }
        };
        if let Some(place) = place {
            exchange.hold(place);
        }
        Ok((exchange, attempt))
    }

    /// Sends a client's notification on.
    pub fn tell(&self, call: &Call, identity: Option<&ToldIdentity>) -> Result<(), Lost> {
        let (params, capabilities) = (self.translated(call), self.capabilities_of(call));
        let attempt = self.attempt(call);
        let meta = meta_of(call, identity, attempt.as_ref());
        let told = self.link.notify(&self.request(call, (&params, &meta), &capabilities, attempt.as_ref()));
        // Nothing answers it.
        attempt.into_iter().for_each(if told.is_ok() { Attempt::left } else { Attempt::forget });
        told
    }

    /// Where a call is a part of a trace: what goes on of that.
    fn attempt(&self, call: &Call) -> Option<Attempt> {
        call.trace.as_ref().map(|trace| Attempt::begin(trace, call, self.revision()))
    }

    /// Whether a stateless client goes on with a call of which a handshake upstream knows nothing: what waits for answers to
    /// its questions is found by the client edge. It must not run as a call of its own, for the second time.
    fn is_stray(&self, call: &Call) -> bool {
        let is_retry = || {
            let params = &call.params;
            params.get(Key::RequestState).is_some() || params.get(Key::InputResponses).is_some()
        };
        call.revision().is_modern() && !self.revision().is_modern() && call.method.is_long() && is_retry()
    }

    fn translated<'a>(&self, call: &'a Call) -> Cow<'a, Object> {
        if call.revision() == self.revision() {
            return Cow::Borrowed(&call.params);
        }
        let written = translate::params(&call.method, &call.params, call.revision(), self.revision());
        written.map_or(Cow::Borrowed(&call.params), Cow::Owned)
    }

    /// What a stateless upstream is told that this call's client can be asked. A stateless one says so itself; for a session
    /// it is what its own revision has, in the words of this one.
    fn capabilities_of<'a>(&self, call: &'a Call) -> Cow<'a, [u8]> {
        let raw = &call.caller.capabilities;
        if !self.revision().is_modern() || !raw.starts_with(b"{") {
            return Cow::Borrowed(NO_CAPABILITIES);
        }
        match call.revision().is_modern() {
            true => Cow::Borrowed(raw),
            false if call.caller.can() == Capabilities::NONE => Cow::Borrowed(NO_CAPABILITIES),
            false => Cow::Owned(call.caller.can().to_json(self.revision()).into_bytes()),
        }
    }

    fn request<'a>(
        &'a self,
        call: &'a Call,
        (params, meta): (&'a Object, &'a [u8]),
        capabilities: &'a [u8],
        attempt: Option<&'a Attempt>,
    ) -> Request<'a> {
        Request {
            method: &call.method,
            params,
            name: call.target_name.as_ref(),
            meta,
            envelope: self.envelope(capabilities, call.log_level),
            progress: call.progress,
            logs: call.log_level.or_else(|| self.ordinary(call)),
            caller: call.method.is_long().then_some(&call.caller),
            share: Some(call.caller.share()),
            headers: Vec::new(),
            identity: None,
            attempt,
        }
    }

    /// What a handshake client hears of its own calls before it has said what it wants: what handshake upstreams tell.
    fn ordinary(&self, call: &Call) -> Option<LogLevel> {
        (call.caller.tenant.is_some() && !self.revision().is_modern()).then_some(ORDINARY)
    }

    fn envelope<'a>(&self, capabilities: &'a [u8], level: Option<LogLevel>) -> Option<Envelope<'a>> {
        self.revision().is_modern().then(|| identity::envelope(self.revision(), capabilities, level))
    }

    /// A request of our own that wants nothing but the answer.
    pub fn start(&self, method: &Method, params: &Object) -> Result<Exchange, Lost> {
        self.link.exchange(&Request::new(method, params, self.envelope(&self.declares, None)))
    }

    /// A request of our own, to its result.
    pub async fn ask(&self, method: &Method, params: &Object, limit: Duration) -> Result<Object, Trouble> {
        if let (Method::ToolsList, Some(tools)) = (method, &self.tools) {
            return Ok(tools.clone());
        }
        let mut exchange = self.start(method, params).map_err(Trouble::Lost)?;
        let body = within(limit, exchange.answer()).await.map_err(|_| Trouble::Late(limit))?;
        result_of(body.map_err(Trouble::Lost)?, self.revision())
    }

    /// Whether a failed request means that nothing more can be asked of it.
    pub fn is_gone(&self, trouble: &Trouble) -> bool {
        match trouble {
            Trouble::Lost(Lost::Unsent(_) | Lost::Session(_)) => true,
            Trouble::Lost(lost) if lost.leads_back() => true,
            Trouble::Lost(_) => self.link.is_closed(),
            _ => false,
        }
    }

    /// Tells a legacy upstream the level of log messages that is wanted, where that changes anything.
    pub fn set_level(&self, level: LogLevel) {
        if self.revision().is_modern() || !self.offer.supports.logging {
            return;
        }
        let mut told = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        if *told == Some(level) {
            return;
        }
        let params = Object::parse(format!("{{\"level\":\"{}\"}}", level.as_str()).into()).unwrap_or_default();
        // Its answer does not matter: a call must not wait for it, and on a pipe it is in force before the call is read.
        if let Ok(exchange) = self.start(&Method::SetLevel, &params) {
            exchange.detach();
            *told = Some(level);
        }
    }

    /// The level that it was told.
    pub fn level(&self) -> Option<LogLevel> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Self::set_level`], but never less verbose than before.
    fn raise_level(&self, level: LogLevel) {
        let told = self.level();
        if told.is_none_or(|told| level < told) {
            self.set_level(level);
        }
    }
}

/// The members of `_meta` that go on with a call.
fn meta_of<'a>(call: &'a Call, identity: Option<&ToldIdentity>, attempt: Option<&Attempt>) -> Cow<'a, [u8]> {
    let own = Cow::Borrowed(&*call.meta);
    let own = match identity {
        Some(told) => principal::member(told, &call.caller.principal, own),
        None => own,
    };
    match attempt {
        Some(attempt) => Cow::Owned(attempt.meta(&own)),
        None => own,
    }
}

/// A result of ours, checked as far as we rely on it.
pub fn result_of(body: Body, revision: Revision) -> Result<Object, Trouble> {
    match body {
        Body::Result(result) if result.doubled().is_some() => Err(Trouble::Odd("a key of its result stands twice")),
        Body::Result(result) => {
            let kind = result.get(Key::ResultType).filter(|_| revision.is_modern());
            match kind.map(json::unquote) {
                None => Ok(result),
                Some(Some(kind)) if kind == "complete" => Ok(result),
                Some(_) => Err(Trouble::Odd("its result is of a type that the request cannot have")),
            }
        }
        // No client sees its message: it may have none.
        Body::Error(raw) => match RpcError::from_raw(raw) {
            error if error.code().is_some() => Err(Trouble::Refused(error)),
            _ => Err(Trouble::Odd("the `code` of its error is not an integer of 64 bits")),
        },
        Body::Odd(_) => Err(Trouble::Odd("its result is not an object")),
        Body::Neither => {
            Err(Trouble::Odd("its answer must have either a result, or an error that is an object, and not both"))
        }
    }
}
