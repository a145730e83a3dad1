//! The three kinds of question: what a client must have declared, and what is said where nobody can be asked or answers.

use crate::protocol::capabilities::Capabilities;
use crate::protocol::frame::Method;
use crate::protocol::frame::rpc_error::{INTERNAL, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError};
use crate::protocol::json;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::transport::questions::Answer;
use bytes::Bytes;

/// A person who will not have a question put to the model, as clients say it.
const REJECTED: i64 = -1;

/// A kind of question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Of the person.
    Elicitation,
    /// Of the client's model.
    Sampling,
    /// Of the client's roots.
    Roots,
}

impl Kind {
    /// The kind of a method; `None` where it is no question.
    pub(crate) fn of(method: &Method) -> Option<Self> {
        match method {
            Method::Elicitation => Some(Self::Elicitation),
            Method::Sampling => Some(Self::Sampling),
            Method::RootsList => Some(Self::Roots),
            _ => None,
        }
    }

    /// The word for it in metrics.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }

    /// What a client of `revision` lacks to be asked this; `None` where it can be.
    pub(crate) fn lacks(self, params: &Object, can: Capabilities, revision: Revision) -> Option<&'static str> {
        let has = |key| params.find(key).is_some_and(|raw| raw != b"null");
        let lacking = |part, name| (!can.has(part)).then_some(name);
        match self {
            Self::Elicitation => match params.find("mode").map(json::unquote) {
                None => lacking(Capabilities::FORM, "elicitation by form"),
                Some(Some(mode)) if mode == "form" => lacking(Capabilities::FORM, "elicitation by form"),
                Some(Some(mode)) if mode == "url" => lacking(Capabilities::URL, "elicitation by URL"),
                Some(_) => Some("elicitation of that mode"),
            },
            Self::Sampling if !can.has(Capabilities::SAMPLING) => Some("sampling"),
            Self::Sampling if (has("tools") || has("toolChoice")) && !can.has(Capabilities::SAMPLING_TOOLS) => {
                Some("sampling with tools")
            }
            Self::Sampling if wants_others(params, revision) => {
                lacking(Capabilities::SAMPLING_OTHERS, "sampling with context")
            }
            Self::Sampling => None,
            Self::Roots => lacking(Capabilities::ROOTS, "roots"),
        }
    }

    /// A refusal, as its upstream expects it of this kind.
    pub(crate) fn refusal(self, why: &str) -> Answer {
        let code = if self == Self::Elicitation { INVALID_PARAMS } else { METHOD_NOT_FOUND };
        Answer::Error(RpcError::new(code, why, None).raw().clone())
    }

    /// What is said where nobody answers.
    pub(crate) fn silence(self) -> Answer {
        self.without("the client gave no answer")
    }

    /// What is said where there is no answer that the upstream can be told; a person's question is closed without one.
    pub(crate) fn without(self, why: &str) -> Answer {
        let error = |code| Answer::Error(RpcError::new(code, why, None).raw().clone());
        match self {
            Self::Elicitation => Answer::Result(Bytes::from_static(b"{\"action\":\"cancel\"}")),
            Self::Sampling => error(REJECTED),
            Self::Roots => error(INTERNAL),
        }
    }
}

/// What `roots/list` is answered with where the roots are configured.
pub(crate) fn configured(roots: &[Box<str>]) -> Answer {
    let roots: Vec<_> = roots.iter().map(|uri| format!("{{\"uri\":{}}}", json::quote(uri))).collect();
    Answer::Result(format!("{{\"roots\":[{}]}}", roots.join(",")).into())
}

/// Whether what other upstreams know is wanted too. Before clients could declare that, it was theirs to ignore.
fn wants_others(params: &Object, revision: Revision) -> bool {
    let wanted = params.find("includeContext").and_then(json::unquote);
    revision >= Revision::V2025_11_25 && wanted.is_some_and(|wanted| wanted != "none")
}
