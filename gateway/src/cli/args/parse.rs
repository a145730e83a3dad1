//! The command line as it is typed.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};
use clap::{ArgMatches, Args as Group, CommandFactory, FromArgMatches, Parser, Subcommand};

use super::setup::tokens::Token;
use super::setup::{
    Add, Approve, Call, Calls, Check, Completions, Doctor, Import, Install, List, Login, Logout, Logs, Orders, Remove,
    Settings, Stdio, Ui, Uninstall,
};
use super::shared::{Look, Shared};
use crate::cli::process::failure::tell_usage;

/// One MCP endpoint in front of many MCP servers.
#[derive(Debug, Parser)]
#[command(name = "trunkline", version, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) shared: Shared,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Args {
    /// What was typed, and whether it asks for JSON. A usage fault ends the program here, with exit code 2.
    pub(crate) fn typed() -> (Self, bool) {
        let words: Vec<OsString> = std::env::args_os().collect();
        if let Some(args) = Often::typed(&words) {
            return (args, false);
        }
        let matches = Self::command().try_get_matches();
        let typed = matches.and_then(|matches| Ok((Self::from_arg_matches(&matches)?, asks_json(&matches))));
        typed.unwrap_or_else(|error| {
            let error = without_hidden(error.format(&mut Self::command()));
            if error.use_stderr() && std::env::args_os().any(|arg| arg == "--json") {
                tell_usage(&error.render().to_string());
                std::process::exit(error.exit_code());
            }
            error.exit()
        })
    }
}

/// What a host starts for each client, and the gateway for each child: read without making all other commands, which takes longer
/// than reading the configuration does.
#[derive(Debug, Parser)]
#[command(defer = true)]
enum Often {
    Stdio(Stdio),
    StartUpstream(Start),
    GuardUpstreams(GuardUpstreams),
}

impl Often {
    /// The command line, where it is one of these and nothing is wrong with it; what is wrong, and `--help`, is for all of them.
    fn typed(words: &[OsString]) -> Option<Args> {
        let command = match words.get(1)?.to_str()? {
            "stdio" | "start-upstream" | "guard-upstreams" => Self::try_parse_from(words).ok()?,
            _ => return None,
        };
        let command = match command {
            Self::Stdio(stdio) => Command::Stdio(stdio),
            Self::StartUpstream(start) => Command::StartUpstream(start),
            Self::GuardUpstreams(guard) => Command::GuardUpstreams(guard),
        };
        Some(Args { shared: Shared::default(), command })
    }
}

/// Whether the command has `--json`.
fn asks_json(matches: &ArgMatches) -> bool {
    matches.try_get_one::<bool>("json").is_ok_and(|asked| asked == Some(&true))
        || matches.subcommand().is_some_and(|(_, command)| asks_json(command))
}

/// What is meant for nobody to type is suggested to nobody.
fn without_hidden(mut error: clap::Error) -> clap::Error {
    let known = Args::command();
    let is_hidden = |name: &String| known.find_subcommand(name).is_some_and(clap::Command::is_hide_set);
    if let Some(ContextValue::Strings(mut names)) = error.remove(ContextKind::SuggestedSubcommand) {
        names.retain(|name| !is_hidden(name));
        if !names.is_empty() {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
        }
    }
    error
}

// What is to be done. What each command takes is made when it is asked for: a host waits for `stdio` alone.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Serve many clients, over Streamable HTTP, HTTP+SSE and WebSocket
    Serve(Serve),
    /// Serve one client on stdin and stdout
    Stdio(Stdio),
    /// Check the configuration without starting anything
    Check(Check),
    /// Take over the servers of hosts into a configuration
    Import(Import),
    /// Add an upstream to the configuration
    Add(Add),
    /// Remove upstreams from the configuration
    Remove(Remove),
    /// Log in to an upstream that asks for it
    Login(Login),
    /// Revoke and remove the login to upstreams
    Logout(Logout),
    /// Make, list and revoke tokens of clients
    #[command(subcommand)]
    Token(Token),
    /// Add Trunkline to hosts, such as cursor or claude-code
    Install(Install),
    /// Remove Trunkline from hosts
    Uninstall(Uninstall),
    /// List the upstreams of a running gateway
    Ls(Look),
    /// Watch the upstreams and the calls of a running gateway; printed once where stdout is no terminal
    Top(Look),
    /// Show everything about one upstream of a running gateway, or list all
    Status(Status),
    /// Open the page of a running gateway in the browser
    Ui(Ui),
    /// Start upstreams of a running gateway
    Start(Orders),
    /// Stop upstreams of a running gateway until `trunkline start`
    Stop(Orders),
    /// Restart upstreams of a running gateway
    Restart(Restart),
    /// Start upstreams that were disabled
    Enable(Orders),
    /// Stop upstreams until `trunkline enable`, or until the gateway is started again
    Disable(Orders),
    /// Apply a changed configuration to a running gateway
    Reload(Look),
    /// Find out what keeps servers and hosts from working
    Doctor(Doctor),
    /// Print what upstreams of a running gateway wrote to stderr
    Logs(Logs),
    /// List the last calls of a running gateway
    Calls(Calls),
    /// List the tools that clients are offered
    Tools(List),
    /// List the resources that clients are offered
    Resources(List),
    /// List the prompts that clients are offered
    Prompts(List),
    /// Call a tool
    Call(Call),
    /// Show the tools that are new or have changed, and approve them
    Approve(Approve),
    /// Print which files are read, or what they say
    Config(Settings),
    /// Print a script that completes words in a shell
    Completions(Completions),
    /// Print the manual page, for `man -l -`
    Man,
    /// Print the version
    Version,
    /// A small upstream to try the gateway with
    #[command(hide = true)]
    DemoUpstream,
    /// Becomes the program of an upstream
    #[command(hide = true)]
    StartUpstream(Start),
    /// Serves those that share a gateway until the last has gone for a while
    #[command(hide = true)]
    ServeShared(Shared),
    /// Serves the command that starts it, on stdin and stdout
    #[command(hide = true)]
    ServeOnce(Shared),
    /// Ends what is left of a gateway's upstreams once it is gone
    #[command(hide = true)]
    GuardUpstreams(GuardUpstreams),
}

// What `guard-upstreams` takes.
#[derive(Debug, Group)]
pub(crate) struct GuardUpstreams {
    /// What the marks of its upstreams begin with
    pub(crate) run: String,
}

// What `start-upstream` takes.
#[derive(Debug, Group)]
pub(crate) struct Start {
    /// It and what it starts gain no rights
    #[arg(long)]
    pub(crate) no_new_privs: bool,
    /// The gateway's process
    pub(crate) gateway: i32,
    /// How many files it may have open
    pub(crate) files: u64,
    /// What to become
    pub(crate) program: OsString,
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) args: Vec<OsString>,
}

// What `serve` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) shared: Shared,
    /// Address for clients, such as 127.0.0.1:8808
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Address for probes and metrics, or "off"
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin: Option<String>,
    /// Allow listening beyond loopback without tokens
    #[arg(long, visible_alias = "no-auth")]
    pub(crate) allow_unauthenticated: bool,
}

// What `status` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct Status {
    /// Name of the upstream; without it all are listed, as `ls` does
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) look: Look,
}

impl Status {
    /// With what stood before the command.
    pub(crate) fn after(self, before: Shared) -> Self {
        Self { look: self.look.after(before), ..self }
    }
}

// What `restart` takes besides.
#[derive(Debug, Default, Group)]
pub(crate) struct Restart {
    #[command(flatten)]
    pub(crate) orders: Orders,
    /// Cut running calls; else they have five seconds to end
    #[arg(long)]
    pub(crate) now: bool,
}

const AFTER_HELP: &str = "\
Without --config: $TRUNKLINE_CONFIG, else ./trunkline.toml, else ~/.config/trunkline/config.toml,
else a built-in demo. Every key can be set as TRUNKLINE_SECTION__KEY.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 wrong configuration.";

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn files_and_levels_may_stand_on_both_sides_of_the_command() {
        let typed =
            ["trunkline", "-c", "a", "--log-level", "info", "serve", "-c", "b", "--config", "c", "--listen", "x"];
        let args = Args::try_parse_from(typed).unwrap();
        let Command::Serve(serve) = args.command else { panic!() };
        let shared = args.shared.join(serve.shared);
        assert_eq!(shared.config, ["a", "b", "c"].map(PathBuf::from));
        assert_eq!((shared.log_level.as_deref(), serve.listen.as_deref()), (Some("info"), Some("x")));
    }

    #[test]
    fn what_is_started_often_is_read_as_all_is() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for line in [
            "trunkline stdio",
            "trunkline stdio --shared -c a --config b --log-level warn",
            "trunkline start-upstream --no-new-privs 7 1024 -- npx -y server --config x",
            "trunkline guard-upstreams run",
        ] {
            let often = Often::typed(&words(line)).map(|args| format!("{args:?}"));
            assert_eq!(often, Some(format!("{:?}", Args::try_parse_from(words(line)).unwrap())), "{line}");
        }
        // What is wrong, asks for help or is something else is told by the whole.
        for line in
            ["trunkline", "trunkline stdio --help", "trunkline stdio x", "trunkline -c a stdio", "trunkline serve"]
        {
            assert!(Often::typed(&words(line)).is_none(), "{line}");
        }
    }

    #[test]
    fn a_command_that_nobody_types_is_suggested_to_nobody() {
        let said = |word: &str| without_hidden(Args::try_parse_from(["trunkline", word]).unwrap_err()).to_string();
        assert!(said("serv").contains("'serve'") && !said("serv").contains("serve-shared"), "{}", said("serv"));
        for hidden in ["serve-share", "start-upstrea", "demo-upstrea"] {
            assert!(!said(hidden).contains("-upstream'") && !said(hidden).contains("-shared'"), "{}", said(hidden));
        }
        assert!(said("chek").contains("a similar subcommand exists: 'check'"), "{}", said("chek"));
    }

    /// What `--help` says after these words, without its line breaks.
    fn help(words: &[&str]) -> String {
        let typed = ["trunkline"].iter().chain(words).chain(&["--help"]);
        let said = Args::try_parse_from(typed).unwrap_err().to_string();
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn each_opens_with_its_line(of: &clap::Command, words: &[&str], seen: &mut usize) {
        let list = help(words);
        for command in of.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help") {
            let words = [words, &[command.get_name()]].concat();
            let own = help(&words);
            let (about, _) = own.split_once(" Usage: ").unwrap();
            let line = format!(" {} {about} ", command.get_name());
            assert!(list.contains(&line) && !own.contains("besides"), "{words:?}: {about}");
            assert_eq!(command.get_about().unwrap().to_string(), about, "the manual page has it from here");
            *seen += 1;
            each_opens_with_its_line(command, &words, seen);
        }
    }

    #[test]
    fn the_help_of_each_command_opens_with_the_line_that_lists_it() {
        let mut program = Args::command();
        program.build();
        let mut seen = 0;
        each_opens_with_its_line(&program, &[], &mut seen);
        assert!(seen > 30, "{seen}");
    }

    #[test]
    fn a_wrong_flag_is_wrong_usage() {
        let error = Args::try_parse_from(["trunkline", "serve", "--port", "1"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
    }
}
