//! The command line of what tokens take.

use clap::{Args as Group, Subcommand};

use crate::cli::args::shared::Shared;

// What is to be done with tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Make a token, print it once, and write its digest into the configuration
    New(New),
    /// List the tokens of the configuration; their secrets are not shown
    Ls(Listed),
    /// Take tokens out of the configuration; what is open with them ends
    Revoke(Revoke),
}

// What `token new` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct New {
    #[command(flatten)]
    pub(crate) shared: Shared,
    /// Name of the client: the principal
    pub(crate) name: String,
    /// A role of its bearer; repeatable. Without one it sees everything
    #[arg(long = "role", value_name = "ROLE")]
    pub(crate) roles: Vec<String>,
    /// When it expires: 30d, 12h, 8w, or 2027-01-01
    #[arg(long, value_name = "WHEN")]
    pub(crate) expires: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

// What `token ls` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct Listed {
    #[command(flatten)]
    pub(crate) shared: Shared,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

// What `token revoke` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct Revoke {
    #[command(flatten)]
    pub(crate) shared: Shared,
    /// Names of tokens; of several those that are there are revoked, and exit code 1 says that another is not
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Token {
    /// With what stood before the command.
    pub(crate) fn after(self, before: Shared) -> Self {
        match self {
            Self::New(new) => Self::New(New { shared: before.join(new.shared), ..new }),
            Self::Ls(listed) => Self::Ls(Listed { shared: before.join(listed.shared), ..listed }),
            Self::Revoke(revoke) => Self::Revoke(Revoke { shared: before.join(revoke.shared), ..revoke }),
        }
    }
}
