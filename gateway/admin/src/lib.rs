//! Administration of the gateway: probes, status, metrics, commands and the page at `/ui`.
//!
//! The main items are [`router`] (every page of the admin address), [`Shown`] (the state that the pages show), [`Page`] (the page for a
//! browser), [`Access`] (who sees details and may give commands) and [`control`] (the control socket for programs on the same host).
//!
//! Invariants:
//!
//! - Probes are answered without a token and show no details.
//! - Texts of others are masked before they are shown.
//! - A command needs a token or the control socket, and never follows from a request of a foreign page in a browser.

/// State beside the health board, provided by its owners.
pub mod looks;
/// The pages of the admin address.
pub mod pages;
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
/// The control socket.
pub mod control;

pub use access::Access;
pub use control::{Mode, Running};
pub use page::Page;
pub use pages::{Reload, Shown};

/// Every page, for who may see it.
pub fn router(shown: Shown) -> axum::Router {
    pages::router(shown.clone()).merge(page::router(shown.clone())).merge(api::router(shown))
}

pub(crate) use trunkline_foundation::{health, memory, runtime, secrets};
pub(crate) use trunkline_protocol as protocol;
pub(crate) use trunkline_telemetry as telemetry;
