//! Stateless clients: each request carries its own revision and capabilities, and is judged alone.

use crate::call::caller::Caller;
use crate::call::caller::trace::Trace;
use crate::call::refusal::{Reason, Refusal};
use crate::call::{Call, LogLevel};
use crate::edge::client_era::{Who, invalid, refuse_long, shown};
use crate::edge::open_calls::OpenCall;
use crate::edge::{Edge, Heads};
use crate::protocol::frame::Method;
use crate::protocol::frame::message::Id;
use crate::protocol::http::headers;
use crate::protocol::json;
use crate::protocol::meta::Meta;
use crate::protocol::revision::Revision;
use crate::protocol::value::{Key, Object};
use crate::response::ResponseEncoder;
use crate::running::{RunningCall, retry};
use bytes::Bytes;
use std::borrow::Cow;
use std::sync::Arc;

/// Makes the call of a request. `heads` are those of an HTTP request, which must agree with the body.
pub(crate) fn request(
    edge: &Arc<Edge>,
    who: &Who,
    (id, method, params, meta): (Id, Method, Object, Meta),
    heads: Option<&Heads<'_>>,
    open: Option<OpenCall>,
) -> Result<RunningCall, Refusal> {
    let claim = claim(&meta)?;
    if let Some(heads) = heads {
        headers::check(&heads.mcp, &method, &params, &claim)
            .map_err(|why| Refusal::new(Reason::HeaderMismatch, why))?;
    }
    let revision = spoken(&claim)?;
    if is_foreign(&method) {
        let why = format!("`{}` is not a method of revision {revision}", method.as_str());
        return Err(Refusal::new(Reason::UnknownMethod, why));
    }
    if !meta.token_is_sound() {
        return Err(invalid("`progressToken` must be an integer or a string of at most 1024 bytes"));
    }
    drop(claim);
    let (id, mut meta) = if method == Method::Listen { detached(id, meta) } else { (id, meta) };
    let log_level = level(&meta)?;
    let progress = meta.progress_token.is_some();
    let token = meta.progress_token.clone();
    let call = Call {
        method,
        params,
        caller: caller(who, revision, &meta),
        trace: Trace::of(&mut meta),
        meta: meta.rest,
        progress,
        log_level,
        is_notification: false,
        param_headers: heads.map(Heads::params),
        target_name: None,
        public: None,
        bound_to: None,
    };
    let asked = ResponseEncoder::of(id, &call, token);
    Ok(match call.method.is_long() && call.params.get(Key::RequestState).is_some() {
        true => retry::begin(edge, asked, call, open),
        false => RunningCall::stateless(edge, asked, call, open),
    })
}

/// Hands a notification over.
pub(crate) fn notification(
    edge: &Edge,
    who: &Who,
    method: Method,
    params: Object,
    mut meta: Meta,
) -> Result<(), Refusal> {
    let revision = match &meta.revision {
        Some(_) => spoken(&claim(&meta)?)?,
        None => Revision::NEWEST_MODERN,
    };
    let call = Call {
        method,
        params,
        caller: caller(who, revision, &meta),
        trace: Trace::of(&mut meta),
        meta: meta.rest,
        progress: false,
        log_level: None,
        is_notification: true,
        param_headers: None,
        target_name: None,
        public: None,
        bound_to: None,
    };
    drop(edge.call(call));
    Ok(())
}

/// The revision that a request names, after its required members were found sound.
fn claim(meta: &Meta) -> Result<Cow<'_, str>, Refusal> {
    let claim = meta.revision.as_deref().and_then(json::unquote);
    let claim =
        claim.ok_or_else(|| invalid("`_meta` member `io.modelcontextprotocol/protocolVersion` must be a string"))?;
    if !meta.capabilities.as_ref().is_some_and(|raw| raw.starts_with(b"{")) {
        return Err(invalid("`_meta` member `io.modelcontextprotocol/clientCapabilities` must be an object"));
    }
    refuse_long("io.modelcontextprotocol/clientCapabilities", meta.capabilities.as_deref())?;
    refuse_long("io.modelcontextprotocol/clientInfo", meta.client.as_deref())?;
    Ok(claim)
}

/// Copies of what a call keeps for as long as it lasts: a part of a request would keep all of it.
fn detached(id: Id, mut meta: Meta) -> (Id, Meta) {
    meta.progress_token = meta.progress_token.map(|token| Bytes::copy_from_slice(&token));
    (id.detached(), meta)
}

fn spoken(claim: &str) -> Result<Revision, Refusal> {
    Revision::parse(claim).filter(|revision| revision.is_modern()).ok_or_else(|| {
        let why = "this revision is not supported without a session; `data.supported` lists the stateless revisions";
        Refusal::new(Reason::UnsupportedRevision(shown(claim).into()), why)
    })
}

/// Methods that only other revisions have, or only the other side may ask.
fn is_foreign(method: &Method) -> bool {
    method.is_notification()
        || matches!(
            method,
            Method::Initialize
                | Method::Ping
                | Method::ResourcesSubscribe
                | Method::ResourcesUnsubscribe
                | Method::SetLevel
                | Method::Sampling
                | Method::RootsList
                | Method::Elicitation
        )
}

fn level(meta: &Meta) -> Result<Option<LogLevel>, Refusal> {
    match &meta.log_level {
        None => Ok(None),
        Some(raw) => {
            let why = "`io.modelcontextprotocol/logLevel` must be a level from `debug` to `emergency`";
            LogLevel::parse(raw).map(Some).ok_or_else(|| invalid(why))
        }
    }
}

fn caller(who: &Who, revision: Revision, meta: &Meta) -> Arc<Caller> {
    let capabilities = meta.capabilities.as_deref().unwrap_or(b"{}");
    who.last.again((&who.principal, who.address, &who.grants), revision, capabilities)
}
