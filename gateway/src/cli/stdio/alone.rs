//! Serves the one client on stdin and stdout in process.

use std::io::IsTerminal;

use crate::config::Config;
use crate::gateway::{Gateway, Mode, Read, ShutdownSignals};
use crate::telemetry::logging::{Writer, say};

use crate::cli::args::{Shared, settings};
use crate::cli::process::failure::in_its_room;
use crate::cli::process::{Failure, Input, Output, runtime};
use crate::cli::serve;

/// What a person is told who starts it by hand.
pub(super) const BY_HAND: &str = "`trunkline stdio` waits for MCP requests on stdin, which is a terminal now. Usually an MCP host starts it: \
    `trunkline install HOST` adds it to the configuration of the host. `trunkline check` checks the configuration, `trunkline serve` serves hosts over HTTP. \
    Press Ctrl-D to end it.";

/// Serves until stdin ends. Nothing but frames is written to stdout.
pub(super) fn run(shared: &Shared) -> Result<(), Failure> {
    let settings = settings::read(shared, Vec::new())?;
    settings.begin(Writer::Stdio)?;
    if std::io::stdin().is_terminal() {
        say(&in_its_room(BY_HAND));
    }
    runtime::check_address_space()?;
    runtime::block_on(gateway(settings.loaded.config, settings::reader(shared, &[])))
}

/// The same for a command that has started it, and that tells what is doubtful where it matters.
pub(crate) fn run_for_command(shared: &Shared) -> Result<(), Failure> {
    let settings = settings::read(shared, Vec::new())?;
    settings.begin_for_command(Writer::Stdio)?;
    runtime::check_address_space()?;
    runtime::block_on(gateway(settings.loaded.config, settings::reader(shared, &[])))
}

async fn gateway(config: Config, read: Read) -> Result<(), anyhow::Error> {
    let mut told = ShutdownSignals::new()?;
    let gateway = Gateway::start(config, Mode::Stdio).reloaded_by(read);
    gateway.own_processes();
    let stdout = Output::stdout();
    let gone = stdout.gone();
    let mut serving = std::pin::pin!(gateway.stdio(Input::stdin(), stdout, gone));
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
