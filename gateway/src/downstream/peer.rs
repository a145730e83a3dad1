//! Legacy or modern: which kind of client speaks, seen from each frame anew.

use crate::call::{Grants, Principal, Reason, Refusal};
use crate::protocol::meta::Meta;
use crate::protocol::object::Key;
use crate::protocol::{Era, Method, Object, Revision, json};

/// Whose request it is, as the layers before found out.
#[derive(Debug, Clone)]
pub(super) struct Who {
    pub(super) principal: Principal,
    pub(super) grants: Grants,
}

impl Who {
    /// The one without a credential.
    pub(super) fn anonymous() -> Self {
        Self { principal: Principal::anonymous(), grants: Grants::all() }
    }
}

/// The era of a request or a notification, and its `_meta`; the body decides, the version header alone never does.
///
/// `header` is the value of `MCP-Protocol-Version`, where there is one.
pub(super) fn see(method: &Method, params: &Object, header: Option<&str>) -> Result<(Era, Meta), Refusal> {
    let meta = match params.share(Key::Meta) {
        Some(raw) => Meta::parse(&raw).map_err(|_| invalid("`_meta` must be an object"))?,
        None => Meta::default(),
    };
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

/// Whether a date names a stateless revision, known or to come.
pub(super) fn is_modern(date: &str) -> bool {
    let looks_like_date = date.len() == 10
        && date
            .bytes()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() });
    looks_like_date && date >= Revision::V2026_07_28.as_str()
}

/// A frame that asks nothing and answers nothing: a slip, whose sender may be waiting.
pub(super) fn meaningless() -> Refusal {
    let why = "a frame has a `method`, or either a `result` or an `error`";
    Refusal::new(Reason::InvalidRequest, why)
}

/// A refusal of parameters.
pub(super) fn invalid(why: impl Into<String>) -> Refusal {
    Refusal::new(Reason::InvalidParams, why)
}
