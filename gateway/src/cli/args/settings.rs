//! From the command line to the configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::fault::{Fault, Faults};
use crate::config::source::{Environment, file};
use crate::config::{Config, Inputs, Loaded, Part};

use crate::gateway::Read;
use crate::health::chain;
use crate::telemetry::audit;
use crate::telemetry::config::{Admin, AdminToken, Control};
use crate::telemetry::logging::{self, Writer, say};

use super::shared::Shared;
use crate::cli::process::Failure;
use crate::cli::process::failure::in_its_room;
use crate::cli::process::table::Room;

/// One flag: its name, the key that it sets, its value.
pub(crate) type Flag = (&'static str, &'static [&'static str], String);

/// A configuration and where it came from.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) loaded: Loaded,
    /// Empty means that it is the built-in demo (or the environment alone).
    pub(crate) files: Vec<PathBuf>,
}

impl Settings {
    /// Starts the log, and tells what is doubtful. A gateway that was started as an upstream of one with the very same files is refused:
    /// it would start itself for ever.
    pub(crate) fn begin(&self, writer: Writer) -> Result<(), Failure> {
        self.begin_bridge(writer)?;
        self.audit()
    }

    /// The same for what a command starts for itself, which tells what matters to it.
    pub(crate) fn begin_for_command(&self, writer: Writer) -> Result<(), Failure> {
        self.start(writer)?;
        self.audit()
    }

    /// The same for what only leads to a gateway.
    pub(crate) fn begin_bridge(&self, writer: Writer) -> Result<(), Failure> {
        self.start(writer)?;
        self.warn();
        Ok(())
    }

    fn audit(&self) -> Result<(), Failure> {
        let audit = &self.loaded.config.audit;
        if let Err(error) = audit::start(audit) {
            let file = audit.file.as_deref().unwrap_or(Path::new("")).display();
            return Err(Failure::Failed(anyhow::anyhow!("cannot write the audit to {file} (`[audit] file`): {error}")));
        }
        Ok(())
    }

    fn start(&self, writer: Writer) -> Result<(), Failure> {
        logging::start(&self.loaded.config.log, writer);
        if chain::begins(&self.files) {
            return Ok(());
        }
        let files: Vec<_> = self.files.iter().map(|file| file.display().to_string()).collect();
        let files = files.join(", ");
        Err(Failure::Failed(anyhow::anyhow!(
            "this gateway was started as an upstream of a gateway with the same configuration ({files}); remove the upstream that \
             starts Trunkline"
        )))
    }

    /// What a person must know before anything else, in one line: that nothing is configured.
    pub(crate) fn brief(&self) -> Option<String> {
        if self.is_demo() {
            return Some(DEMO.to_owned());
        }
        let Fault { text, hint, .. } = self.nothing()?;
        Some([text].into_iter().chain(hint).collect::<Vec<_>>().join("; "))
    }

    fn is_demo(&self) -> bool {
        self.files.is_empty() && is_demo(&self.loaded.config)
    }

    /// That nothing is served, where it is so.
    fn nothing(&self) -> Option<Fault> {
        // Of each that is left out it is told why.
        let nothing = self.loaded.config.upstreams.is_empty() && self.loaded.config.left_out.is_empty();
        nothing.then(|| Fault::no_upstreams(self.files.last().map(PathBuf::as_path)))
    }

    fn warn(&self) {
        if self.is_demo() {
            match logging::is_json() {
                true => tracing::info!("{DEMO}"),
                false => say(&in_its_room(DEMO)),
            }
        }
        let warnings: Vec<_> = self.loaded.warnings.iter().cloned().chain(self.nothing()).collect();
        if !logging::is_json() {
            return say(&Room::of_stderr().layout().list(&warnings));
        }
        for Fault { kind, text, place, label, hint, .. } in warnings {
            let place = place.as_ref().map(ToString::to_string);
            tracing::warn!(kind, place, label, hint, "{text}");
        }
    }
}

/// What is said at the start where nothing is configured.
const DEMO: &str = "no configuration file: serving the built-in demo; to begin, run `trunkline import`, or list your servers in ./trunkline.toml";

/// Whether the built-in demo is all that is served, if no file was given.
pub(crate) fn is_demo(config: &Config) -> bool {
    matches!(&config.upstreams[..], [demo] if &*demo.name == "demo")
}

/// `[admin]` of the gateway that the command line points to. What is wrong with the rest of the configuration, or has no value in this
/// shell, does not matter for it.
pub(crate) fn admin(shared: &Shared, given: Option<Flag>) -> Result<Admin, Faults> {
    let environment = Environment::of_process();
    // Who names the address needs no file for it.
    let files = if given.is_some() { Vec::new() } else { file::find(&shared.config, &environment) };
    Inputs { files, environment, flags: given.into_iter().collect(), ..Inputs::default() }.admin()
}

/// The token for it, where one is set; without the files, where they cannot be read.
pub(crate) fn admin_token(shared: &Shared) -> Option<AdminToken> {
    let admin =
        admin(shared, None).or_else(|_| Inputs { environment: Environment::of_process(), ..Inputs::default() }.admin());
    admin.ok()?.token
}

/// Where its control socket may be, and what it is found by; and whether the configuration was named in so many words.
pub(crate) fn control(shared: &Shared) -> (Control, bool) {
    let environment = Environment::of_process();
    let files = file::find(&shared.config, &environment);
    let is_named =
        !shared.config.is_empty() || environment.get("TRUNKLINE_CONFIG").is_some_and(|path| !path.is_empty());
    (Control { folders: environment.control_folders(), files }, is_named)
}

/// Reads what the command line points to, each time anew.
pub(crate) fn reader(shared: &Shared, flags: &[Flag]) -> Read {
    let (shared, flags) = (shared.clone(), flags.to_vec());
    Arc::new(move || Ok(look(&shared, flags.clone(), true)?.loaded))
}

/// Reads what the command line points to.
pub(crate) fn read(shared: &Shared, flags: Vec<Flag>) -> Result<Settings, Faults> {
    let settings = look(shared, flags, false)?;
    // From here on nothing that this process says quotes them.
    settings.loaded.config.secrets.keep();
    Ok(settings)
}

/// As `read`, for whoever judges what is there, too, where something is wrong.
pub(crate) fn read_or_part(shared: &Shared) -> Result<Settings, Box<Part>> {
    let settings = look_or_part(shared, Vec::new(), false);
    let config = match &settings {
        Ok(settings) => &settings.loaded.config,
        Err(part) => &part.config,
    };
    config.secrets.keep();
    settings
}

fn look(shared: &Shared, flags: Vec<Flag>, is_running: bool) -> Result<Settings, Faults> {
    look_or_part(shared, flags, is_running).map_err(|part| part.faults)
}

fn look_or_part(shared: &Shared, flags: Vec<Flag>, is_running: bool) -> Result<Settings, Box<Part>> {
    let environment = Environment::of_process();
    let files = file::find(&shared.config, &environment);
    let level = shared.log_level.clone().map(|level| ("--log-level", &["log", "level"][..], level));
    let control = Control { folders: environment.control_folders(), files: files.clone() };
    let mut loaded = Inputs {
        files: files.clone(),
        environment,
        flags: level.into_iter().chain(flags).collect(),
        is_running,
        demo: std::env::current_exe().ok(),
        drafts: Vec::new(),
    }
    .load_or_part()?;
    loaded.config.admin.control = Some(control);
    Ok(Settings { loaded, files })
}
