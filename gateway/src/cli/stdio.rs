//! `trunkline stdio`: the one client that is on stdin and stdout.

use crate::config::Config;

use super::args::Common;
use super::failure::Failure;
use super::{runtime, settings};

/// Serves until stdin ends. Nothing but frames is written to stdout.
pub(super) fn run(common: &Common) -> Result<(), Failure> {
    let settings = settings::read(common, Vec::new())?;
    for warning in &settings.loaded.warnings {
        eprintln!("{warning}");
    }
    runtime::block_on(gateway(settings.loaded.config))
}

// seam: the gateway takes the configuration here.
async fn gateway(_config: Config) -> Result<(), anyhow::Error> {
    anyhow::bail!("the gateway is not wired in")
}
