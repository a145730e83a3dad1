//! What requests and notifications say, without what their receiver's revision does not have.

use super::edit;
use super::edit::{Fate, Word};
use crate::frame::Method;
use crate::revision::{Features, Gap, Part, Revision};
use crate::value::{Edit, Key, Object};

static TASK: Word = Word::new("\"task\"");

/// The parameters of a call, or of a notice on a call's stream, on their way to a peer of revision `to`; `None` where they stay as
/// they are.
pub fn params(method: &Method, params: &Object, from: Revision, to: Revision) -> Option<Object> {
    let gap = Gap::between(Part::Params, method, from, to);
    if gap.lost.is_empty() && !gap.differs(Features::TASKS) {
        return None;
    }
    let written = match method {
        Method::Progress => without(params, "message"),
        Method::Complete => without(params, "context"),
        // A task is not asked for where nobody knows what it is; and who does not know it has not asked for one.
        Method::ToolsCall if gap.differs(Features::TASKS) && edit::may_hold(params.raw(), &TASK) => {
            without(params, "task")
        }
        _ => None,
    };
    let written = written.and_then(|written| Object::parse(written.into()).ok());
    let so_far = written.as_ref().unwrap_or(params);
    if gap.lost.has(Features::STATELESS) && is_retry(so_far) {
        // What only stateless callers can say means nothing to an upstream that asks live.
        let live = so_far.with(&[(Key::InputResponses, Edit::Drop), (Key::RequestState, Edit::Drop)]);
        return Object::parse(live).ok().or(written);
    }
    written
}

fn without(params: &Object, name: &str) -> Option<Vec<u8>> {
    edit::members(params.raw(), |key, _| Fate::gone_if(key == name))
}

fn is_retry(params: &Object) -> bool {
    params.get(Key::InputResponses).is_some() || params.get(Key::RequestState).is_some()
}
