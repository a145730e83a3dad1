//! What requests and notifications say, without what their receiver's revision does not have.

use super::edit::{self, Fate};
use crate::protocol::method::Method;
use crate::protocol::object::{Edit, Key, Object};
use crate::protocol::revision::{Features, Gap, Part, Revision};

/// The parameters of a call, or of a notice on a call's stream, on their way to a peer of revision `to`.
pub fn params(method: &Method, params: &Object, from: Revision, to: Revision) -> Object {
    let gap = Gap::between(Part::Params, method, from, to);
    if gap.lost.is_empty() && !gap.differs(Features::TASKS) {
        return params.clone();
    }
    let written = match method {
        Method::Progress => without(params, "message"),
        Method::Complete => without(params, "context"),
        // A task is not asked for where nobody knows what it is; and who does not know it has not asked for one.
        Method::ToolsCall if gap.differs(Features::TASKS) && edit::may_hold(params.raw(), &["\"task\""]) => {
            without(params, "task")
        }
        _ => None,
    };
    let written = written.and_then(|written| Object::parse(written.into()).ok()).unwrap_or_else(|| params.clone());
    match gap.lost.has(Features::STATELESS) && is_retry(&written) {
        // What only stateless callers can say means nothing to an upstream that asks live.
        true => {
            let live = written.with(&[(Key::InputResponses, Edit::Drop), (Key::RequestState, Edit::Drop)]);
            Object::parse(live).unwrap_or(written)
        }
        false => written,
    }
}

fn without(params: &Object, name: &str) -> Option<Vec<u8>> {
    edit::members(params.raw(), |key, _| Fate::gone_if(key == name))
}

fn is_retry(params: &Object) -> bool {
    params.get(Key::InputResponses).is_some() || params.get(Key::RequestState).is_some()
}
