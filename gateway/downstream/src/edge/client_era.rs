//! Legacy or modern: which kind of client speaks, seen from each frame anew.

use super::last_caller::LastCaller;
use crate::call::caller::credential::Revocation;
use crate::call::caller::{Grants, Principal, SessionRights};
use crate::call::refusal::{Reason, Refusal};
use crate::call::share::Share;
use crate::protocol::frame::Method;
use crate::protocol::frame::message::FrameFault;
use crate::protocol::json;
use crate::protocol::meta::Meta;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::value::Object;
use crate::protocol::value::spelling::{Spots, Twofold};
use std::net::IpAddr;
use std::sync::Arc;

/// Whose request it is, as the layers before found out.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    pub(crate) principal: Principal,
    /// The client's address, where it is known.
    pub(crate) address: Option<IpAddr>,
    pub(crate) grants: Grants,
    /// Whether what it was let in with still counts.
    pub(crate) revocation: Revocation,
    /// Who made the last call on its connection.
    pub(crate) last: Arc<LastCaller>,
}

impl Who {
    /// The one without a credential.
    pub(crate) fn anonymous() -> Self {
        Self::of(Principal::anonymous())
    }

    /// A principal that may everything, for good.
    pub(crate) fn of(principal: Principal) -> Self {
        Self { principal, address: None, grants: Grants::all(), revocation: Revocation::never(), last: Arc::default() }
    }

    /// The rights of its token.
    pub(crate) fn rights(&self) -> SessionRights {
        SessionRights { principal: self.principal.clone(), grants: self.grants.clone() }
    }

    /// Whose share of what all have in common its requests take.
    pub(crate) fn share(&self) -> Share {
        Share::of(&self.principal, self.address)
    }
}

/// The era of a request or a notification, and its `_meta`; the body decides, the version header alone never does.
///
/// `header` is the value of `MCP-Protocol-Version`, where there is one; `noted` is what was noted when the parameters were read.
pub(crate) fn see(
    method: &Method,
    (params, noted): (&Object, &Spots),
    header: Option<&str>,
) -> Result<(Era, Meta), Refusal> {
    // What the gateway acts on is what the upstream will act on, whatever program that is.
    let minds = |odd: &Twofold| odd.is_of_meta() || !matches!(method, Method::Other(_));
    if let Some(odd) = params.misspelled().filter(minds) {
        return Err(invalid(odd.of("params")));
    }
    let meta = Meta::of(params, noted).map_err(|_| invalid("`_meta` must be an object"))?;
    let header_is_modern = header.is_some_and(is_modern);
    let era = match &meta.revision {
        // Clients that try a handshake first may decorate it; only a claim that could be served counts.
        Some(claim) if *method == Method::Initialize && !json::unquote(claim).is_some_and(|text| is_modern(&text)) => {
            Era::Legacy
        }
        Some(_) => Era::Modern,
        None if method.is_notification() && header_is_modern => Era::Modern,
        None => Era::Legacy,
    };
    match era {
        Era::Legacy if header_is_modern && *method == Method::Initialize => Err(Refusal::new(
            Reason::HeaderMismatch,
            "`initialize` belongs to revisions before 2026-07-28; the header `mcp-protocol-version` names a later one",
        )),
        Era::Legacy if header_is_modern => {
            Err(invalid("`_meta` must hold `io.modelcontextprotocol/protocolVersion` and `…/clientCapabilities`"))
        }
        era => Ok((era, meta)),
    }
}

/// What a client declares of itself may be so long.
const DECLARED_BYTES_MAX: usize = 8 * 1024;
/// So much of a claimed revision is echoed; none is longer than a date.
const CLAIM_CHARS_MAX: usize = 64;

/// Refuses what a client declares of itself where it is too long to be kept as long as the client is there.
pub(crate) fn refuse_long(name: &str, raw: Option<&[u8]>) -> Result<(), Refusal> {
    match raw {
        Some(raw) if raw.len() > DECLARED_BYTES_MAX => {
            Err(invalid(format!("`{name}` is longer than {DECLARED_BYTES_MAX} bytes; declare less")))
        }
        _ => Ok(()),
    }
}

/// A revision that a client claims, as it may be echoed.
pub(crate) fn shown(claim: &str) -> &str {
    claim.char_indices().nth(CLAIM_CHARS_MAX).map_or(claim, |(at, _)| &claim[..at])
}

/// Whether a date names a stateless revision, known or to come.
pub(crate) fn is_modern(date: &str) -> bool {
    let looks_like_date = date.len() == 10
        && date
            .bytes()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() });
    looks_like_date && date >= Revision::V2026_07_28.as_str()
}

/// A frame that cannot be taken.
pub(crate) fn unread(fault: FrameFault) -> Refusal {
    let reason = match fault {
        FrameFault { is_of_params: true, .. } => Reason::InvalidParams,
        FrameFault { is_json: true, .. } => Reason::InvalidRequest,
        _ => Reason::Parse,
    };
    Refusal::new(reason, fault.why)
}

/// A frame that asks nothing and answers nothing: a slip, whose sender may be waiting.
pub(crate) fn meaningless() -> Refusal {
    let why = "a frame has a `method`, or either a `result` or an `error`";
    Refusal::new(Reason::InvalidRequest, why)
}

/// A refusal of parameters.
pub(crate) fn invalid(why: impl Into<String>) -> Refusal {
    Refusal::new(Reason::InvalidParams, why)
}
