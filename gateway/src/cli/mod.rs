//! What a person types, sees and gets back: one file per command.

// The command line as it is typed, and the configuration that it leads to.
mod args;
// The process: its runtime, and how a command can fail.
mod process;
// `trunkline serve`: many clients over Streamable HTTP.
mod serve;
// `trunkline stdio`: the one client that is on stdin and stdout.
mod stdio;
// What `serve` shows a person.
mod report;
// `trunkline demo-upstream`: a small real MCP upstream on stdin and stdout that speaks both eras.
mod demo;
// `trunkline check`: what is wrong or doubtful in a configuration; nothing is started.
mod check;
// Looks at a running gateway.
mod look;
// `trunkline ls`: every upstream of a running gateway, a line each.
mod ls;
// `trunkline status NAME`: all that a running gateway knows of one upstream.
mod status;
// What a person orders a running gateway to do: `trunkline start NAME`, `stop NAME`, `restart NAME` and `reload`.
mod order;
// `trunkline version`.
mod version;

use std::process::ExitCode;

use clap::Parser;

use crate::gateway;
use crate::health::Order;
use args::{Args, Command, Restart};

/// The whole program: reads the command line, does what it says, and says how that went.
pub fn main() -> ExitCode {
    // A usage fault ends here, with exit code 2.
    let args = Args::parse();
    let done = match args.command {
        Command::Serve(serve) => serve::run(args.shared, serve),
        Command::Stdio(shared) => stdio::run(&args.shared.join(shared)),
        Command::Check(shared) => check::run(&args.shared.join(shared)),
        Command::Ls(look) => ls::run(&look.after(args.shared)),
        Command::Status(status) => status::run(&status.after(args.shared)),
        Command::Start(upstream) => order::upstream::run(Order::Start, &upstream.after(args.shared)),
        Command::Stop(upstream) => order::upstream::run(Order::Stop, &upstream.after(args.shared)),
        Command::Restart(Restart { upstream, now }) => {
            let order = if now { Order::RestartNow } else { Order::Restart };
            order::upstream::run(order, &upstream.after(args.shared))
        }
        Command::Reload(look) => order::reload::run(&look.after(args.shared)),
        Command::Version => version::run(),
        Command::DemoUpstream => demo::run(),
        Command::StartUpstream(start) => {
            let limits = gateway::ChildLimits { no_new_privs: start.no_new_privs };
            return gateway::become_program((start.gateway, start.files), limits, &start.program, &start.args);
        }
        Command::GuardUpstreams { run } => return gateway::guard(&run),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.end(),
    }
}
