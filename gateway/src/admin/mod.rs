//! What an operator sees and orders: probes, metrics, status, orders; by the admin address and the control socket.

// The admin pages.
pub mod pages;
// Orders to upstreams: from whoever has access, and from no page in a browser.
mod orders;
// The health board in words: for a person, and as JSON.
mod report;
// The control socket.
pub mod control;

pub use control::{Mode, Running};
pub use pages::{Access, Shown};
