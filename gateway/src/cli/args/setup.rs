//! The command line of what sets hosts and the configuration up, and of what a person looks at and calls.

// The command line of what tokens take.
pub(crate) mod tokens;

use std::path::PathBuf;

use clap::Args as Group;

use super::shared::{Look, Shared};

// What `check` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) shared: Shared,
    /// `-`: check the configuration on stdin
    #[arg(value_name = "-", value_parser = ["-"])]
    pub(crate) stdin: Option<String>,
    /// Fail where there are warnings, too
    #[arg(long)]
    pub(crate) strict: bool,
    /// Show what the bearer of this token sees, or of a certificate: cert:SUBJECT; by the lists that upstreams gave last
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Check {
    /// Whether the configuration comes on stdin.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.stdin.is_some()
    }
}

// What `import` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct Import {
    #[command(flatten)]
    pub(crate) shared: Shared,
    /// Files of hosts, or hosts, such as cursor or claude-code; without one all hosts of this user and this folder
    #[arg(value_name = "FILE|HOST")]
    pub(crate) from: Vec<String>,
    /// Configuration to write; else that of --config, else the one in force, else ./trunkline.toml
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Keep secrets in files below this folder, readable by you alone, instead of leaving them out
    #[arg(long, value_name = "FOLDER")]
    pub(crate) secret_files: Option<PathBuf>,
    /// Show what would be written
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which file of a host is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scope {
    /// That of the user
    #[default]
    User,
    /// That of the project in this folder
    Project,
}

// What `install` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct Install {
    #[command(flatten)]
    pub(crate) shared: Shared,
    /// Hosts, such as cursor, claude-code or codex
    #[arg(value_name = "HOST", required = true)]
    pub(crate) hosts: Vec<String>,
    /// Whose file is written
    #[arg(long, value_enum, default_value_t)]
    pub(crate) scope: Scope,
    /// Let the entry share one gateway, and its servers, with all hosts that have the same configuration
    #[arg(long = "shared")]
    pub(crate) is_shared: bool,
    /// Show what would be changed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

// What `uninstall` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct Uninstall {
    /// Hosts, such as cursor, claude-code or codex
    #[arg(value_name = "HOST", required = true)]
    pub(crate) hosts: Vec<String>,
    /// Whose file is changed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) scope: Scope,
    /// Show what would be changed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

// What `add` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct Add {
    #[command(flatten)]
    pub(crate) shared: Shared,
    /// Name of the upstream
    pub(crate) name: String,
    /// URL of a server
    pub(crate) url: Option<String>,
    /// Program of a server and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// Variable of the program, NAME=value; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// Header for the URL, "Name: value"; repeatable
    #[arg(long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

// What `remove` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct Remove {
    #[command(flatten)]
    pub(crate) shared: Shared,
    /// Names of upstreams; of several those that are there are removed, and exit code 1 says that another is not
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

// What `doctor` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) shared: Shared,
    /// Look at this host alone, whether it has an entry of Trunkline or not
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

// What `logs` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct Logs {
    /// Name of an upstream; else all of them
    pub(crate) name: Option<String>,
    /// Wait for what comes
    #[arg(short, long)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}

impl Logs {
    /// With what stood before the command.
    pub(crate) fn after(self, before: Shared) -> Self {
        Self { look: self.look.after(before), ..self }
    }
}

// What `calls` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct Calls {
    /// Wait for what comes
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Show every request, such as those for lists, and not only what uses a tool, a resource or a prompt
    #[arg(short, long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}

impl Calls {
    /// With what stood before the command.
    pub(crate) fn after(self, before: Shared) -> Self {
        Self { look: self.look.after(before), ..self }
    }
}

// What `stdio` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct Stdio {
    #[command(flatten)]
    pub(crate) shared: Shared,
    /// Share one gateway, and its servers, with all clients that have the same configuration; it is started where none runs
    #[arg(long = "shared")]
    pub(crate) is_shared: bool,
}

// What `login` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct Login {
    #[command(flatten)]
    pub(crate) shared: Shared,
    /// Name of the upstream
    pub(crate) name: String,
    /// Whose login it becomes, where each principal has its own: the name of a token, or a principal as `status` shows it
    #[arg(long = "as", value_name = "PRINCIPAL")]
    pub(crate) by: Option<String>,
    /// Only print the link; where it is followed on another machine, the address that the browser comes to is pasted
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

// What `logout` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct Logout {
    #[command(flatten)]
    pub(crate) shared: Shared,
    /// Names of upstreams; of several each is logged out by itself, and exit code 1 says that one is not
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    pub(crate) names: Vec<String>,
    /// All upstreams that somebody has logged in to
    #[arg(long)]
    pub(crate) all: bool,
    /// End the logins of this principal alone: the name of a token, or a principal as `status` shows it
    #[arg(long = "as", value_name = "PRINCIPAL")]
    pub(crate) by: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

// Which upstreams an order is for.
#[derive(Debug, Default, Group)]
pub(crate) struct Orders {
    /// Names of upstreams; of several each is ordered by itself, and exit code 1 says that one is not as ordered
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    pub(crate) names: Vec<String>,
    /// All upstreams of the gateway
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}

impl Orders {
    /// With what stood before the command.
    pub(crate) fn after(self, before: Shared) -> Self {
        Self { look: self.look.after(before), ..self }
    }
}

// What `ui` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct Ui {
    #[command(flatten)]
    pub(crate) look: Look,
    /// Only print the link
    #[arg(long)]
    pub(crate) print: bool,
}

impl Ui {
    /// With what stood before the command.
    pub(crate) fn after(self, before: Shared) -> Self {
        Self { look: self.look.after(before), ..self }
    }
}

// What `tools`, `resources` and `prompts` take besides.
#[derive(Debug, Default, Group)]
pub(crate) struct List {
    /// Name of an upstream, or a part of a name
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) shared: Shared,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

// What `call` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct Call {
    #[command(flatten)]
    pub(crate) shared: Shared,
    /// Name of the tool, as `trunkline tools` lists it
    pub(crate) tool: String,
    /// Arguments: key=value, or one JSON object
    #[arg(value_name = "KEY=VALUE|JSON")]
    pub(crate) arguments: Vec<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

// What `approve` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct Approve {
    #[command(flatten)]
    pub(crate) shared: Shared,
    /// Names of upstreams, or of tools; without one the tools that nobody has approved as they are, are shown
    #[arg(value_name = "NAME", conflicts_with = "all")]
    pub(crate) names: Vec<String>,
    /// All that are shown
    #[arg(long)]
    pub(crate) all: bool,
    /// Ask no questions
    #[arg(long)]
    pub(crate) yes: bool,
    /// Keep digests in place of definitions: a smaller file, and no difference can be shown later
    #[arg(long)]
    pub(crate) digests: bool,
    /// File to write, such as one that becomes a ConfigMap; else that of the gateway
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is to be seen of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ConfigWhat {
    /// Which files are read
    #[default]
    Path,
    /// Each key that is set, with its source; secrets are not shown
    Show,
    /// The JSON Schema of the configuration, for editors
    Schema,
}

// What `config` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct Settings {
    #[command(flatten)]
    pub(crate) shared: Shared,
    /// What to print
    #[arg(value_enum, default_value_t)]
    pub(crate) what: ConfigWhat,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

// What `completions` takes.
#[derive(Debug, Group)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Joins what stood before a command to what stands after it.
macro_rules! after {
    ($($command:ident),+) => {
        $(impl $command {
            /// With what stood before the command.
            pub(crate) fn after(self, before: Shared) -> Self {
                Self { shared: before.join(self.shared), ..self }
            }
        })+
    };
}

after!(Check, Import, Install, Add, Remove, Login, Logout, Doctor, List, Call, Approve, Settings);
