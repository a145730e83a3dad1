//! The one translator: a payload of one revision in the words of another. Equal revisions are never looked into.

mod blocks;
mod capabilities;
mod definition;
mod edit;
mod elicitation;
mod failure;
mod hop;
mod params;
mod result;
mod roots;
mod sampling;
mod structured;

pub use capabilities::capabilities;
pub use definition::definition;
pub use failure::{Told, cannot, failure};
pub use params::params;
pub use result::write_result;

use super::method::Method;
use super::object::Object;
use super::revision::{Gap, Part, Revision};

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
