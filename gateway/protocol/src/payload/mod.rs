//! What stands in parameters and results beside the payload of a call: questions, tasks, chunks.

// `input_required` results and their retries: questions embedded in a result, answers embedded in a request.
pub mod input;
// What stands in the messages about tasks: of the handshake's form and of the extension's.
pub mod task;
// Results that come in chunks after their answer, as some upstreams send them: which frames those are.
pub mod chunk;
// Results of servers that do not keep to the form of one.
pub mod loose;
