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
// `trunkline check` and `doctor`: what is wrong or doubtful in a configuration; nothing is started.
mod check;
// Looks at a running gateway: `trunkline ls`, `status NAME`, `top`, `logs`, `calls`.
mod look;
// From nothing to a host that uses Trunkline: `trunkline import`, `install`, `uninstall`, `add`, `remove`, `login`, `logout`, `token`.
mod setup;
// What a person orders a running gateway to do: `trunkline start NAME…`, `stop`, `restart`, `enable`, `disable` and `reload`.
mod order;
// What a client would see and do: `trunkline tools`, `resources`, `prompts`, `call`, `approve`.
mod ask;
// What this program is and what it reads: `trunkline version`, `config`, `completions`, `man`.
mod about;

use std::process::ExitCode;

use crate::gateway;
use crate::health::Order;
use args::{Args, Command, Restart};

/// The whole program: reads the command line, does what it says, and says how that went.
pub fn main() -> ExitCode {
    let (args, is_json) = Args::typed();
    if is_json {
        process::failure::speak_json();
    }
    let done = match args.command {
        Command::Serve(serve) => serve::run(args.shared, serve),
        Command::Stdio(stdio) => stdio::run(args.shared, stdio),
        Command::ServeShared(shared) => stdio::run_started(&args.shared.join(shared)),
        Command::ServeOnce(shared) => stdio::run_for_command(&args.shared.join(shared)),
        Command::Check(check) => check::run(&check.after(args.shared)),
        Command::Install(install) => setup::install::install(&install.after(args.shared)),
        Command::Uninstall(uninstall) => setup::install::uninstall(&uninstall),
        Command::Add(add) => setup::add::add(&add.after(args.shared)),
        Command::Remove(remove) => setup::add::remove(&remove.after(args.shared)),
        Command::Login(login) => setup::login::run(&login.after(args.shared)),
        Command::Logout(logout) => setup::logout::run(&logout.after(args.shared)),
        Command::Token(token) => setup::token::run(&token.after(args.shared)),
        Command::Import(import) => setup::import::run(&import.after(args.shared)),
        Command::Ls(look) => look::ls::run(&look.after(args.shared)),
        Command::Top(look) => look::follow::top(&look.after(args.shared)),
        Command::Status(status) => look::status::run(&status.after(args.shared)),
        Command::Ui(ui) => order::ui::run(&ui.after(args.shared)),
        Command::Start(orders) => order::upstream::run(Order::Start, &orders.after(args.shared)),
        Command::Stop(orders) => order::upstream::run(Order::Stop, &orders.after(args.shared)),
        Command::Restart(Restart { orders, now }) => {
            let order = if now { Order::RestartNow } else { Order::Restart };
            order::upstream::run(order, &orders.after(args.shared))
        }
        Command::Enable(orders) => order::upstream::run(Order::Start, &orders.after(args.shared)),
        Command::Disable(orders) => order::upstream::run(Order::Stop, &orders.after(args.shared)),
        Command::Reload(look) => order::reload::run(&look.after(args.shared)),
        Command::Doctor(doctor) => check::doctor::run(&doctor.after(args.shared)),
        Command::Logs(logs) => look::follow::logs(&logs.after(args.shared)),
        Command::Calls(calls) => look::follow::calls(&calls.after(args.shared)),
        Command::Tools(list) => ask::list(&list.after(args.shared), "tools", "name"),
        Command::Resources(list) => ask::list(&list.after(args.shared), "resources", "uri"),
        Command::Prompts(list) => ask::list(&list.after(args.shared), "prompts", "name"),
        Command::Call(call) => ask::call(&call.after(args.shared)),
        Command::Approve(approve) => ask::approve(&approve.after(args.shared)),
        Command::Config(config) => about::config(&config.after(args.shared)),
        Command::Completions(completions) => about::completions(&completions),
        Command::Man => about::man(),
        Command::Version => about::version(),
        Command::DemoUpstream => demo::run(),
        Command::StartUpstream(start) => {
            let limits = gateway::ChildLimits { no_new_privs: start.no_new_privs };
            return gateway::become_program((start.gateway, start.files), limits, &start.program, &start.args);
        }
        Command::GuardUpstreams(guard) => return gateway::guard(&guard.run),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.end(),
    }
}
