//! What is said of a tool that is kept from clients until somebody approves it.

use crate::call::Call;
use crate::call::refusal::{Reason, Refusal};
use crate::router::approval::why::Why;
use crate::router::catalog::Kind;
use crate::router::catalog::snapshot::Catalog;
use crate::router::names::suggest;

/// What is said of a tool that somebody has to approve first, to those who may call it.
pub(crate) fn refusal(catalog: &Catalog, kind: Kind, name: &str, call: &Call) -> Option<Refusal> {
    let tool = catalog.held(name).filter(|_| kind == Kind::Tools)?;
    if !catalog.may_have(tool.member, kind, name, &call.caller.grants) {
        return None;
    }
    let upstream = catalog.members[tool.member].owner.name();
    let (shown, why) = (
        suggest::shown(name),
        match tool.why {
            Why::New => "nobody has approved it yet",
            Why::Changed => "its definition has changed since it was approved",
        },
    );
    let why = format!("`{shown}` was not called: {why}; whoever runs the gateway can: `trunkline approve {upstream}`");
    Some(Refusal::of_upstream(Reason::Held, upstream, why).denied(true))
}
