//! Public names and URIs: how one is made, and how it leads back to its owner. Pure.

// One value for each upstream, found by the upstream's id: members come and go, and a place in a list would be another one's then.
mod by_member;
// Public names: what a tool or prompt of an upstream is called in the catalog. Pure.
pub(crate) mod namespace;
// Public URIs: a resource keeps its own unless an earlier upstream has the same; then a reversible form. Pure.
pub(crate) mod uri;
// URI templates (RFC 6570), as far as telling whether a URI may come from one. Pure.
mod template;
// Which templates of different upstreams speak of the same URIs.
pub(crate) mod overlap;
// What a caller may have meant by an unknown name. Pure.
pub(crate) mod suggest;

pub(crate) use by_member::{ByMember, MemberId};
pub(crate) use namespace::{Party, assign};
pub(crate) use template::{Looks, Template};
