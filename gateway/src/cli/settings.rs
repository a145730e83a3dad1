//! From the command line to the configuration.

use std::path::PathBuf;

use crate::config::environment::Environment;
use crate::config::fault::Faults;
use crate::config::{Inputs, Loaded, file, load};

use super::args::Shared;

/// One flag: its name, the key that it sets, its value.
pub(super) type Flag = (&'static str, &'static [&'static str], String);

/// A configuration and where it came from.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) loaded: Loaded,
    /// Empty means that it is the built-in demo (or the environment alone).
    pub(super) files: Vec<PathBuf>,
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
