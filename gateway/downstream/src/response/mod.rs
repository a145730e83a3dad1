//! What is written to a client: results, questions and errors in its own words.

// What is remembered of a client's request, and how what comes back on it is written in the client's words.
mod encode;
// Which HTTP status says what: the one place where refusals and error codes become one.
pub(crate) mod status;
// Says in a question which upstream asks it: the person sees many programs through one gateway.
mod label;
// The dialect of 2024-10-07, spoken as 2024-11-05 with a tool's text beside its content.
pub(crate) mod dialect_2024_10_07;
// What work for a client comes to, frame by frame.
pub(crate) mod steps;

pub(crate) use encode::{EncodedResponse, ResponseEncoder, plain_change, plain_log};
pub(crate) use label::Label;
