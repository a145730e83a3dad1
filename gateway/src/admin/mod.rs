//! What an operator sees and orders: probes, metrics, status, orders; by the admin address and the control socket.

// The admin pages.
pub mod pages;
// What is to be seen beside the board: told by whoever knows it.
pub mod looks;
// The same for programs: everything as JSON, under `/api/v1`, as its description says.
mod api;
// Who is told details and may give orders; the visits of the page.
mod access;
// In which format metrics are asked for.
mod accept;
// An answer, masked.
mod answer;
// The page at `/ui`: its files, and the way in.
mod page;
// What the gateway did in the last minutes, in memory.
mod history;
// Orders to upstreams: from whoever has access, and from no page in a browser.
mod orders;
// The health board in words: for a person, and as JSON.
mod report;
// What became of the configuration since the start, in words.
mod configuration;
// The control socket.
pub mod control;

pub use access::Access;
pub use control::{Mode, Running};
pub use page::Page;
pub use pages::{Reload, Shown};

/// Every page, for who may see it.
pub fn router(shown: Shown) -> axum::Router {
    pages::router(shown.clone()).merge(page::router(shown.clone())).merge(api::router(shown))
}
