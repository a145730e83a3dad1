//! The one translator: a payload of one revision in the words of another. Equal revisions are never looked into.

// Content blocks, and where results hold them: sound, links, icons and `_meta` for receivers that have none.
mod blocks;
// What the gateway says it can do, in the words of one revision.
mod capabilities;
// Tools, resources, templates and prompts: members that a receiver's revision does not have.
mod definition;
// Raw objects and arrays written anew, member by member: what does not change stays byte for byte.
mod edit;
// Questions for the person, by a form or by a page, and what the person answers.
mod elicitation;
// Errors of upstreams, in codes that their receiver knows; what no code says, a tool says to the model.
pub mod failure;
// What a question's and an answer's `_meta` says of one hop alone.
mod hop;
// What requests and notifications say, without what their receiver's revision does not have.
mod params;
// Final results: their contents in the receiver's words, and what stateless revisions say around them.
mod result;
// The question for the client's roots, and the answer.
mod roots;
// Questions for the client's model, and what it answers.
mod sampling;
// Structured results for receivers that have none, or objects only.
mod structured;

pub use capabilities::capabilities;
pub use definition::definition;
pub use params::params;
pub use result::{RESULT_ADDS, composed_max, result, write_result};

use super::frame::Method;
use super::revision::{Gap, Part, Revision};
use super::value::Object;

/// A question on its way to a peer of revision `to`, live or embedded; `None` where that peer cannot be asked this.
pub fn question(method: &Method, params: &Object, from: Revision, to: Revision) -> Option<Object> {
    let gap = Gap::between(Part::Question, method, from, to);
    if gap.is_none() {
        return Some(params.clone());
    }
    let told = match method {
        Method::Elicitation => elicitation::question(params, gap, to)?,
        Method::Sampling => sampling::question(params, gap, from, to)?,
        _ => roots::question(params, gap),
    };
    Object::parse(told.into()).ok()
}

/// The answer to a question on its way back to a peer of revision `to`; `None` where that peer cannot be told this.
pub fn answer(method: &Method, result: &Object, from: Revision, to: Revision) -> Option<Object> {
    let gap = Gap::between(Part::Answer, method, from, to);
    if gap.is_none() {
        return Some(result.clone());
    }
    let told = match method {
        Method::Elicitation => elicitation::answer(result, gap)?,
        Method::Sampling => sampling::answer(result, gap)?,
        _ => roots::answer(result, gap),
    };
    Object::parse(told.into()).ok()
}

#[cfg(test)]
mod tests;
