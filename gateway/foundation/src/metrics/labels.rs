//! Values of labels that several metrics have.

/// The label of whatever finds no room among the names that have a series of their own.
pub(super) const OTHER: &str = "_other";

/// How a request can end, as the `outcome` label says it. `denied`: its caller may not have that; `rejected`: by `[limits]`;
/// `upstream_unavailable` and `busy`: nothing was sent; `outcome_unknown`: it was sent and has no answer; `bad_answer`: the answer breaks
/// the protocol; `cancelled`: its client withdrew it; `client_gone`: its client waits no longer.
pub const OUTCOMES: [&str; 12] = [
    "ok",
    "tool_error",
    "rpc_error",
    "timeout",
    "cancelled",
    "upstream_unavailable",
    "busy",
    "bad_answer",
    "outcome_unknown",
    "denied",
    "rejected",
    "client_gone",
];
