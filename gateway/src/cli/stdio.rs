//! `trunkline stdio`: the one client that is on stdin and stdout.

use crate::config::Config;
use crate::gateway::{Gateway, Mode, Told};
use crate::telemetry::logging::say;

use super::args::Shared;
use super::failure::Failure;
use super::{runtime, serve, settings};

/// Serves until stdin ends. Nothing but frames is written to stdout.
pub(super) fn run(shared: &Shared) -> Result<(), Failure> {
    let settings = settings::read(shared, Vec::new())?;
    settings.begin()?;
    for warning in &settings.loaded.warnings {
        say(&warning.to_string());
    }
    runtime::block_on(gateway(settings.loaded.config))
}

async fn gateway(config: Config) -> Result<(), anyhow::Error> {
    let mut told = Told::new()?;
    let gateway = Gateway::start(config, Mode::Stdio);
    gateway.own_processes();
    let mut serving = std::pin::pin!(gateway.stdio(tokio::io::stdin(), tokio::io::stdout()));
    let served = tokio::select! {
        served = &mut serving => Some(served),
        () = told.to_end() => None,
    };
    // What still runs is finished, and its answers are written, while the gateway drains.
    let rest = async {
        match served {
            Some(served) => served,
            None => serving.await,
        }
    };
    let ((), served) = serve::end(async { tokio::join!(gateway.drain(), rest) }, &mut told).await?;
    // A host that went away while it was written to is no fault of ours.
    served.or_else(|error| if error.kind() == std::io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error.into()) })
}
