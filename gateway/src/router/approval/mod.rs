//! Tools that somebody has to approve by their definitions.

// Which tools nobody has approved as they are, and why.
pub(crate) mod why;
// What is said of upstreams some of whose tools nobody has approved as they are.
pub(crate) mod remark;
// The same tools, for whoever is to approve them.
pub(crate) mod to_approve;
