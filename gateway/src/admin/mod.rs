//! What an operator sees and orders: probes, metrics, status, orders; by the admin address and the control socket.

// The admin pages.
pub mod pages;
// What is to be seen beside the board: told by whoever knows it.
pub mod looks;
// The same for programs: everything as JSON, under `/api/v1`, as its description says.
mod api;
// Orders to upstreams: from whoever has access, and from no page in a browser.
mod orders;
// The health board in words: for a person, and as JSON.
mod report;
// What became of the configuration since the start, in words.
mod configuration;
// The control socket.
pub mod control;

pub use control::{Mode, Running};
pub use pages::{Access, Reload, Shown};

/// Every page, for who may see it.
pub fn router(shown: Shown) -> axum::Router {
    pages::router(shown.clone()).merge(api::router(shown))
}
