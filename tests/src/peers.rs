//! Other people's programs: reference servers as upstreams, official SDKs as clients.
//!
//! They are pinned by lock files under `tests/peers/` and installed on demand, once, into ignored folders. A machine
//! that cannot have them skips these tests and says why; with `TRUNKLINE_REQUIRE_PEERS=1` that is a failure.

mod bridges;
mod door;
mod drive;
mod identity;
pub(crate) mod install;
mod nginx;
mod prometheus;
mod served;
pub mod survivors;
pub mod systemd;
mod web;
mod workplace;

pub use bridges::{Bridges, Listening, bridges, on_mcp_go};
pub use door::{Door, Waiting};
pub use drive::{Answers, Connect, Mode, Plan, Report, Sdk};
pub use identity::Identity;
pub use nginx::Nginx;
pub use prometheus::Prometheus;
pub use served::{Served, trunkline};
pub use survivors::{none_left, survivors};
pub use web::Web;
pub use workplace::Workplace;

use std::io::Write;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Where the installed programs are.
#[derive(Debug)]
pub struct Peers {
    /// The node binary's name or path.
    pub node: PathBuf,
    /// `tests/peers/node`: the drivers, and the packages in `node_modules`.
    pub node_dir: PathBuf,
    /// `tests/peers/python`: the driver.
    pub python_dir: PathBuf,
    /// The virtual environment's `bin`.
    pub python_bin: PathBuf,
}

/// The installed peers, or nothing where this machine cannot have them; then the reason stands on stderr.
///
/// # Panics
/// With `TRUNKLINE_REQUIRE_PEERS=1`, when they cannot be had.
pub fn ready() -> Option<&'static Peers> {
    static PEERS: OnceLock<Result<Peers, String>> = OnceLock::new();
    or_skip(PEERS.get_or_init(install::install))
}

/// A browser and the folder of its driver, or nothing where this machine cannot have them; then the reason stands on stderr.
///
/// # Panics
/// With `TRUNKLINE_REQUIRE_PEERS=1`, when they cannot be had.
#[must_use]
pub fn page() -> Option<(PathBuf, PathBuf)> {
    or_skip(&install::browser()).cloned()
}

/// A curl that speaks HTTP/2, or nothing where there is none; then the reason stands on stderr.
///
/// # Panics
/// With `TRUNKLINE_REQUIRE_PEERS=1`, when there is none.
#[must_use]
pub fn curl() -> Option<PathBuf> {
    or_skip(&install::curl()).cloned()
}

/// What was installed, or nothing; then the reason stands on stderr.
///
/// # Panics
/// With `TRUNKLINE_REQUIRE_PEERS=1`, when it is not there.
pub(crate) fn or_skip<T>(installed: &Result<T, String>) -> Option<&T> {
    match installed {
        Ok(installed) => Some(installed),
        Err(reason) if required() => {
            panic!("TRUNKLINE_REQUIRE_PEERS=1, but other people's programs are missing: {reason}")
        }
        Err(reason) => {
            // Not `eprintln!`: the test runner would swallow it, and a silent skip is a lie.
            let _ = writeln!(std::io::stderr(), "skipped, other people's programs are missing: {reason}");
            None
        }
    }
}

pub(crate) fn required() -> bool {
    std::env::var_os("TRUNKLINE_REQUIRE_PEERS").is_some_and(|value| value == "1")
}
