//! What may stand before every command and after it.

use std::path::PathBuf;

use clap::Args as Group;

use crate::config::source::file::{quoted, shown};

// What may stand before the command and after it. Clap's own global arguments would drop what
// stands before where both are given, so both sides are read and joined.
#[derive(Clone, Debug, Default, Group)]
pub(crate) struct Shared {
    /// Configuration in TOML, or the file of a host as it is (JSON, TOML, YAML); repeatable, later files win
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    /// Log level for stderr (error, warn, info, debug, trace), or directives as in RUST_LOG
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,
}

impl Shared {
    /// The options of a command that leads to the same configuration, with a blank before each.
    pub(crate) fn options(&self) -> String {
        let option = |file: &PathBuf| format!(" --config {}", quoted(&shown(file)));
        self.config.iter().map(option).collect()
    }

    /// A text with the commands of ours in it as they are typed here: each leads to the same configuration.
    pub(crate) fn typed(&self, text: &str) -> String {
        let options = self.options();
        let mut typed: Vec<String> = text.split('`').map(str::to_owned).collect();
        // What stands between two backticks is to be typed or written.
        for command in typed.iter_mut().skip(1).step_by(2).filter(|one| one.starts_with("trunkline ")) {
            let end = command.find(" -- ").unwrap_or(command.len());
            command.insert_str(end, &options);
        }
        typed.join("`")
    }

    /// These, and then `later`.
    pub(crate) fn join(mut self, later: Self) -> Self {
        self.config.extend(later.config);
        Self { log_level: later.log_level.or(self.log_level), ..self }
    }
}

// What `ls` takes besides.
#[derive(Clone, Debug, Default, Group)]
pub(crate) struct Look {
    #[command(flatten)]
    pub(crate) shared: Shared,
    /// Use this admin address and the token of `[admin]` instead of the control socket
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin: Option<String>,
    /// Process id of the gateway, if several are running
    #[arg(long, value_name = "PID", conflicts_with = "admin")]
    pub(crate) pid: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Look {
    /// With what stood before the command.
    pub(crate) fn after(self, before: Shared) -> Self {
        Self { shared: before.join(self.shared), ..self }
    }
}
