//! The gateway that is started for those that share it: it has no address, and ends once nobody was there for a while.

use std::io::Write;

use crate::cli::args::{Shared, settings};
use crate::cli::process::{Failure, answer, runtime};
use crate::cli::serve;
use crate::config::Config;
use crate::gateway::{Gateway, Mode, Read, ShutdownSignals};
use crate::telemetry::logging::Writer;

/// What it says on stdout once it can be joined.
pub(super) const READY: &str = "ready";
/// Its log is not longer.
const LOG_BYTES_MAX: u64 = 1 << 20;

/// Serves those that join.
pub(crate) fn run(shared: &Shared) -> Result<(), Failure> {
    // Whoever has started it may end, and all that is of its session with it. It fails where there is a session of its own already.
    let _ = rustix::process::setsid();
    let settings = settings::read(shared, Vec::new())?;
    settings.begin(Writer::File(LOG_BYTES_MAX))?;
    runtime::check_address_space()?;
    runtime::block_on(gateway(settings.loaded.config, settings::reader(shared, &[])))
}

async fn gateway(config: Config, read: Read) -> Result<(), anyhow::Error> {
    let mut told = ShutdownSignals::new()?;
    let linger = config.server.linger;
    let gateway = Gateway::start(config, Mode::Shared).reloaded_by(read);
    gateway.own_processes();
    let alone = gateway.share().map_err(|error| anyhow::anyhow!("cannot create the control socket: {error}"))?;
    {
        // Whoever has started it may be gone.
        let mut out = answer();
        let _unread = writeln!(out, "{READY}").and_then(|()| out.flush());
    }
    tokio::select! {
        () = told.to_end() => {}
        () = alone => tracing::info!(?linger, "no client is left; the gateway ends"),
    }
    serve::end(gateway.drain(), &mut told).await
}
