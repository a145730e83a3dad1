//! Starts a child's program from within its own process: dies with the gateway, inherits nothing, then becomes the program.

use super::linux;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// The hidden command that does it.
pub(super) const START: &str = "start-upstream";
/// Nothing was started, as shells say it.
const CANNOT_RUN: u8 = 126;

/// Becomes the program; returns only where that is not possible. The first argument is the gateway's process.
pub fn become_program(gateway: i32, program: &OsString, args: &[OsString]) -> ExitCode {
    if linux::end_with(gateway).is_err() {
        return ExitCode::from(CANNOT_RUN);
    }
    linux::close_inherited();
    let error = Command::new(program).args(args).exec();
    eprintln!("the command `{}` could not be started: {error}", program.display());
    ExitCode::from(CANNOT_RUN)
}
