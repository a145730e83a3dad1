//! From the command line to the configuration.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::config::environment::Environment;
use crate::config::fault::Faults;
use crate::config::{Inputs, Loaded, admin_of, file, load};

use crate::lifecycle::chain;

use super::args::Shared;
use super::failure::Failure;

/// One flag: its name, the key that it sets, its value.
pub(super) type Flag = (&'static str, &'static [&'static str], String);

/// A configuration and where it came from.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) loaded: Loaded,
    /// Empty means that it is the built-in demo (or the environment alone).
    pub(super) files: Vec<PathBuf>,
}

impl Settings {
    /// The gateway starts with these. One that was started with the very same, as an upstream, would start itself for ever.
    pub(super) fn begin(&self) -> Result<(), Failure> {
        if chain::begins(&self.files) {
            return Ok(());
        }
        let files: Vec<_> = self.files.iter().map(|file| file.display().to_string()).collect();
        let files = files.join(", ");
        Err(Failure::Failed(anyhow::anyhow!(
            "a gateway with this very configuration ({files}) has started this one as its upstream, so it would start itself \
             for ever; remove the upstream that leads back to it"
        )))
    }
}

/// The admin address of the gateway that the command line points to; nothing where it is off. What is wrong with the rest of the
/// configuration, or has no value in this shell, does not matter for it.
pub(super) fn admin(shared: &Shared, given: Option<Flag>) -> Result<Option<SocketAddr>, Faults> {
    let environment = Environment::of_process();
    // Who names the address needs no file for it.
    let files = if given.is_some() { Vec::new() } else { file::find(&shared.config, &environment) };
    Ok(admin_of(Inputs { files, environment, flags: given.into_iter().collect(), demo: None })?.listen)
}

/// Reads what the command line points to.
pub(super) fn read(shared: &Shared, flags: Vec<Flag>) -> Result<Settings, Faults> {
    let environment = Environment::of_process();
    let files = file::find(&shared.config, &environment);
    let level = shared.log_level.clone().map(|level| ("--log-level", &["log", "level"][..], level));
    let loaded = load(Inputs {
        files: files.clone(),
        environment,
        flags: level.into_iter().chain(flags).collect(),
        demo: std::env::current_exe().ok(),
    })?;
    Ok(Settings { loaded, files })
}
