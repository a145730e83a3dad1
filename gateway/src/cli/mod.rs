//! What a person types, sees and gets back: one file per command.

mod announce;
mod args;
mod check;
mod demo;
mod failure;
mod look;
mod ls;
mod order;
pub mod report;
mod runtime;
mod serve;
mod settings;
mod status;
mod stdio;
mod version;

use std::process::ExitCode;

use clap::Parser;

use crate::gateway;
use crate::lifecycle::Order;
use args::{Args, Command};

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
        Command::Start(upstream) => order::run(Order::Start, &upstream.after(args.shared)),
        Command::Stop(upstream) => order::run(Order::Stop, &upstream.after(args.shared)),
        Command::Restart(upstream) => order::run(Order::Restart, &upstream.after(args.shared)),
        Command::Version => version::run(),
        Command::DemoUpstream => demo::run(),
        Command::StartUpstream(start) => return gateway::become_program(start.gateway, &start.program, &start.args),
        Command::GuardUpstreams { run } => return gateway::guard(&run),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.end(),
    }
}
