//! An error of the gateway's own, before an edge puts it into a protocol's words.

use crate::protocol::frame::rpc_error;
use crate::protocol::frame::rpc_error::RpcError;
use crate::protocol::json;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// Who can mend it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The request is wrong.
    Caller,
    /// The upstream failed.
    Upstream,
    /// The gateway, or how it is configured, is at fault.
    Gateway,
}

/// Why a call is refused; each edge turns it into its own code and status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The frame is not JSON.
    Parse,
    /// The frame is not a request that can be taken here.
    InvalidRequest,
    /// The method is not known, or not offered by whoever would have to answer.
    UnknownMethod,
    /// The parameters do not fit: an unknown name, a bad cursor, a missing member.
    InvalidParams,
    /// No such resource; the URI as the caller wrote it.
    ResourceNotFound(Arc<str>),
    /// A header and the body disagree.
    HeaderMismatch,
    /// The revision that was asked for is not spoken here.
    UnsupportedRevision(Arc<str>),
    /// The caller did not declare these capabilities (raw JSON).
    MissingCapability(Arc<str>),
    /// No session, or an unknown one.
    Session,
    /// The upstream is not there, and nothing was sent.
    Unavailable,
    /// The upstream does not run until an operator starts it, and nothing was sent.
    Stopped,
    /// A person is to log in to the upstream, and nothing ran.
    Login,
    /// A person is to log in to the upstream again, for more than the login allows, and nothing ran.
    Scope,
    /// The access token of the caller is refused where it is exchanged, and nothing ran.
    Unauthenticated,
    /// Somebody has to approve the tool first, and nothing was sent.
    Held,
    /// A queue is full, and nothing was sent.
    Busy,
    /// It comes too often; so long it is until it may.
    Limited(Duration),
    /// The time is over.
    Timeout,
    /// The call may or may not have run.
    OutcomeUnknown,
    /// The upstream answered what the protocol does not allow.
    BadAnswer,
    /// The call was cancelled by its caller.
    Cancelled,
    /// The gateway is ending, or has a fault.
    Internal,
}

impl Reason {
    /// Whether the same call may be sent again and succeed: nothing of it ran, and what kept it from running passes by itself. Decided
    /// here alone.
    pub fn is_retriable(&self) -> bool {
        matches!(self, Self::Unavailable | Self::Busy | Self::Limited(_))
    }
}

/// A page of the gateway where the person behind a client can see to what a call lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// What its visit is called.
    pub id: String,
    /// Where it is: whoever knows that can follow it.
    pub url: String,
    /// For the person: why.
    pub message: String,
}

impl Page {
    /// That it is to be visited first, as a member of an error's data, with a comma behind it.
    fn required(&self) -> String {
        let [id, url, message] = [&self.id, &self.url, &self.message].map(|text| json::quote(text));
        format!("\"elicitations\":[{{\"mode\":\"url\",\"elicitationId\":{id},\"url\":{url},\"message\":{message}}}],")
    }
}

/// A refusal: what happened, to which upstream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// For a person: what happened and what to do next, without the words of others.
    pub message: String,
    /// The same for the operator, where there is more to say: what an upstream or a child has said, without secrets.
    pub full: Option<Box<str>>,
    /// The upstream it concerns.
    pub upstream: Option<Arc<str>>,
    /// Whether its caller may not have what it asks for: counted. Where it has no right to it, nobody is told, who hears of a name that
    /// nobody has.
    pub is_denied: bool,
    /// What a person does next, where a login is needed: not every caller of the upstream is told the same.
    pub advice: Option<Box<str>>,
    /// Where the caller can be sent, in place of being told what to run.
    pub page: Option<Box<Page>>,
}

impl Refusal {
    /// A refusal that concerns no upstream.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), full: None, upstream: None, is_denied: false, advice: None, page: None }
    }

    /// A refusal on behalf of an upstream.
    pub fn of_upstream(reason: Reason, upstream: &Arc<str>, message: impl Into<String>) -> Self {
        Self { upstream: Some(upstream.clone()), ..Self::new(reason, message) }
    }

    /// With what the operator is told in its place.
    #[must_use]
    pub fn for_operator(self, full: String) -> Self {
        Self { full: Some(full.into()), ..self }
    }

    /// With what a person does next; in our words.
    #[must_use]
    pub fn advised(self, advice: &str) -> Self {
        Self { advice: (!advice.is_empty()).then(|| advice.into()), ..self }
    }

    /// The same, which its caller gets because it may not have what it asks for, or not.
    #[must_use]
    pub fn denied(self, is_denied: bool) -> Self {
        Self { is_denied, ..self }
    }

    /// As the operator is told it.
    #[must_use]
    pub fn in_full(mut self) -> Self {
        if let Some(full) = self.full.take() {
            self.message = full.into();
        }
        self
    }

    /// Whether the same call may be sent again.
    pub fn is_retriable(&self) -> bool {
        self.reason.is_retriable()
    }

    /// Who can mend it.
    pub fn blame(&self) -> Blame {
        match self.reason {
            Reason::Unavailable
            | Reason::Stopped
            | Reason::Login
            | Reason::Scope
            | Reason::Timeout
            | Reason::OutcomeUnknown
            | Reason::BadAnswer => Blame::Upstream,
            Reason::Busy | Reason::Held | Reason::Internal => Blame::Gateway,
            _ => Blame::Caller,
        }
    }

    /// The JSON-RPC code in a revision.
    pub fn code(&self, revision: Revision) -> i64 {
        match self.reason {
            _ if self.page.is_some() && !revision.is_modern() => rpc_error::URL_ELICITATION_REQUIRED,
            Reason::Parse => rpc_error::PARSE,
            Reason::InvalidRequest | Reason::Unauthenticated => rpc_error::INVALID_REQUEST,
            Reason::UnknownMethod => rpc_error::METHOD_NOT_FOUND,
            Reason::InvalidParams => rpc_error::INVALID_PARAMS,
            Reason::ResourceNotFound(_) if revision.is_modern() => rpc_error::INVALID_PARAMS,
            Reason::ResourceNotFound(_) => rpc_error::RESOURCE_NOT_FOUND,
            Reason::HeaderMismatch => rpc_error::HEADER_MISMATCH,
            Reason::UnsupportedRevision(_) if revision.is_modern() => rpc_error::UNSUPPORTED_REVISION,
            Reason::UnsupportedRevision(_) => rpc_error::INVALID_PARAMS,
            Reason::MissingCapability(_) if revision.is_modern() => rpc_error::MISSING_CAPABILITY,
            Reason::Session => rpc_error::SESSION,
            _ => rpc_error::INTERNAL,
        }
    }

    /// The JSON-RPC error in a revision's words. Errors of an upstream's failing are marked as the gateway's own.
    pub fn to_rpc(&self, revision: Revision) -> RpcError {
        RpcError::new(self.code(revision), &self.message, self.data(revision).as_deref())
    }

    /// A tool's result that says the same to the model: the error of a program would not reach who can do something about it. It is in the
    /// words of the handshake.
    pub fn to_tool_result(&self) -> Object {
        let text = json::quote(&self.message);
        let data = self.data(Revision::V2025_11_25).unwrap_or_else(|| "{}".to_owned());
        let result = format!(
            "{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}],\"isError\":true,\"_meta\":{{\"trunkline/refusal\":{data}}}}}"
        );
        Object::parse(result.into()).expect("what we write is an object")
    }

    /// What was advised, or else this, as JSON.
    fn advice_or(&self, usual: impl FnOnce() -> String) -> String {
        json::quote(&self.advice.as_deref().map_or_else(|| Cow::Owned(usual()), Cow::Borrowed))
    }

    fn data(&self, revision: Revision) -> Option<String> {
        match &self.reason {
            Reason::ResourceNotFound(uri) => Some(format!("{{\"uri\":{}}}", json::quote(uri))),
            Reason::UnsupportedRevision(asked) => {
                // A stateless client is told what discovery tells it: the others need a handshake.
                let spoken = Revision::list(revision.is_modern().then(|| revision.era()));
                Some(format!("{{\"supported\":{spoken},\"requested\":{}}}", json::quote(asked)))
            }
            Reason::MissingCapability(raw) => Some(format!("{{\"requiredCapabilities\":{raw}}}")),
            _ => {
                let upstream =
                    self.upstream.as_ref().map(|upstream| format!("\"upstream\":{},", json::quote(upstream)));
                let upstream = upstream.or_else(|| self.is_retriable().then(String::new))?;
                let after = match (&self.reason, &self.upstream) {
                    (Reason::Limited(after), _) => format!(",\"retryAfterMs\":{}", after.as_millis().max(1)),
                    (Reason::Login, Some(name)) => {
                        let advice = self.advice_or(|| format!("run `trunkline login {name}`"));
                        format!(",\"code\":\"login_required\",\"advice\":{advice}")
                    }
                    (Reason::Scope, Some(name)) => {
                        let advice = self.advice_or(|| format!("run `trunkline login {name}`, which asks for more"));
                        format!(",\"code\":\"scope_required\",\"advice\":{advice}")
                    }
                    (Reason::Held, Some(name)) => {
                        let advice = json::quote(&format!("run `trunkline approve {name}`"));
                        format!(",\"code\":\"not_approved\",\"advice\":{advice}")
                    }
                    _ => String::new(),
                };
                let pages = self.page.as_ref().filter(|_| !revision.is_modern()).map(|page| page.required());
                let pages = pages.unwrap_or_default();
                Some(format!(
                    "{{{pages}\"origin\":\"gateway\",{upstream}\"retriable\":{}{after}}}",
                    self.is_retriable()
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_a_call_may_be_sent_again_follows_from_the_reason_and_is_told_with_or_without_an_upstream() {
        let data = |refusal: Refusal| refusal.data(Revision::V2025_11_25);
        for (reason, is_retriable) in [
            (Reason::Unavailable, true),
            (Reason::Busy, true),
            (Reason::Stopped, false),
            (Reason::Cancelled, false),
            (Reason::OutcomeUnknown, false),
            (Reason::Timeout, false),
            (Reason::BadAnswer, false),
            (Reason::InvalidParams, false),
        ] {
            let of_upstream = data(Refusal::of_upstream(reason.clone(), &"a".into(), "no"));
            let expected = format!(r#"{{"origin":"gateway","upstream":"a","retriable":{is_retriable}}}"#);
            assert_eq!(of_upstream, Some(expected), "{reason:?}");
            let of_none = is_retriable.then(|| r#"{"origin":"gateway","retriable":true}"#.to_owned());
            assert_eq!(data(Refusal::new(reason, "no")), of_none);
        }
        let login = Refusal::of_upstream(Reason::Login, &"a".into(), "no");
        let told = r#"{"origin":"gateway","upstream":"a","retriable":false,"code":"login_required","advice":"run `trunkline login a`"}"#;
        assert_eq!(data(login.clone()).as_deref(), Some(told));
        let result = format!(
            r#"{{"content":[{{"type":"text","text":"no"}}],"isError":true,"_meta":{{"trunkline/refusal":{told}}}}}"#
        );
        assert_eq!(login.to_tool_result().raw(), result.as_bytes());
        for reason in [Reason::Login, Reason::Scope] {
            let own =
                Refusal::of_upstream(reason, &"a".into(), "no").advised("run `trunkline login a --as token:\"b\"`");
            let told = data(own).unwrap();
            assert!(told.ends_with(r#","advice":"run `trunkline login a --as token:\"b\"`"}"#), "{told}");
        }
    }
}
