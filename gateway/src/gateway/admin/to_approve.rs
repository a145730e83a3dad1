//! The tools that somebody is to approve, as whoever looks at the gateway is told them.

use crate::admin::looks::{Approvals, Candidate, Definition, ToApprove};
use crate::router::Router;
use bytes::Bytes;
use serde_json::value::RawValue;
use std::sync::Arc;

/// Tells which these are.
pub(super) fn look(router: &Arc<Router>) -> Approvals {
    let router = router.clone();
    Arc::new(move |most| {
        let pins = router.pins();
        let tools = router.to_approve(most).into_iter().map(|((upstream, own), candidate)| Candidate {
            upstream: upstream.to_string(),
            own_name: own.to_string(),
            name: candidate.public.map(|name| name.to_string()),
            state: candidate.why,
            definitions: candidate.definitions.into_iter().filter_map(defined).collect(),
            approved: candidate.approved.iter().filter_map(|text| raw(text)).collect(),
            renamed_from: candidate.renamed_from.map(String::from),
        });
        let file = pins.file.map(|file| file.display().to_string());
        ToApprove { pin: pins.pin.as_str(), file, tools: tools.collect() }
    })
}

fn defined((digest, definition): (String, Bytes)) -> Option<Definition> {
    Some(Definition { digest, definition: raw(&String::from_utf8_lossy(&definition))? })
}

fn raw(text: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(text.to_owned()).ok()
}
