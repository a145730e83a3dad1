//! `trunkline serve`: many clients over Streamable HTTP.

use crate::config::Config;

use super::args::{Common, Serve};
use super::failure::Failure;
use super::settings::Flag;
use super::{report, runtime, settings};

/// Serves until told to end.
pub(super) fn run(common: Common, mut serve: Serve) -> Result<(), Failure> {
    let common = common.join(std::mem::take(&mut serve.common));
    let settings = settings::read(&common, flags(serve))?;
    for warning in &settings.loaded.warnings {
        eprintln!("{warning}");
    }
    let config = settings.loaded.config;
    let paste = report::paste_http(config.server.listen, &config.server.path, !config.auth.tokens.is_empty());
    runtime::block_on(gateway(config, paste))
}

/// The flags that were given, as overrides.
fn flags(serve: Serve) -> Vec<Flag> {
    let listen = serve.listen.map(|value| ("--listen", &["server", "listen"][..], value));
    let admin = serve.admin.map(|value| ("--admin", &["admin", "listen"][..], value));
    let open = serve.allow_unauthenticated.then(|| "true".to_owned());
    let open = open.map(|value| ("--allow-unauthenticated", &["auth", "allow_unauthenticated"][..], value));
    [listen, admin, open].into_iter().flatten().collect()
}

// seam: the gateway takes the configuration here, and feeds `report` what happens.
async fn gateway(config: Config, paste: String) -> Result<(), anyhow::Error> {
    eprintln!("{}", report::endpoint(config.server.listen, &config.server.path, config.admin.listen));
    eprintln!("{paste}");
    anyhow::bail!("the gateway is not wired in")
}
