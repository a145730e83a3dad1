//! Starts a child's program from within its own process: dies with the gateway, inherits nothing, gives up rights, then becomes the
//! program.

use super::linux;
use crate::runtime::system::handles;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// The hidden command that does it.
const START: &str = "start-upstream";
/// Its flag for a child that may gain no rights.
const NO_NEW_PRIVS: &str = "--no-new-privs";
/// Nothing was started, as shells say it.
const CANNOT_RUN: u8 = 126;

/// What a child may not do, whatever it becomes. None of them leaves its memory in a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChildLimits {
    /// It gains no rights by what it runs.
    pub no_new_privs: bool,
}

impl ChildLimits {
    /// The beginning of the command line that starts a program under these.
    pub(crate) fn words(self, gateway: u32) -> Vec<String> {
        let mut words = vec![START.to_owned()];
        words.extend(self.no_new_privs.then(|| NO_NEW_PRIVS.to_owned()));
        words.extend([gateway.to_string(), handles::original().to_string()]);
        words
    }

    /// This process is under them from now on, and all that it becomes or starts.
    fn begin(self) -> std::io::Result<()> {
        linux::leave_no_core()?;
        if self.no_new_privs {
            linux::gain_no_rights()?;
        }
        Ok(())
    }
}

/// Becomes the program; returns only where that is not possible. The first argument is the gateway's process, and how many files the
/// program may have open.
pub fn become_program(
    (gateway, files): (i32, u64),
    limits: ChildLimits,
    program: &OsString,
    args: &[OsString],
) -> ExitCode {
    if linux::end_with(gateway).is_err() {
        return ExitCode::from(CANNOT_RUN);
    }
    if let Err(error) = limits.begin() {
        eprintln!("the limits of a child could not be set: {error}");
        return ExitCode::from(CANNOT_RUN);
    }
    linux::close_inherited();
    handles::restore(files);
    let error = Command::new(program).args(args).exec();
    eprintln!("the command `{}` could not be started: {error}", program.display());
    ExitCode::from(CANNOT_RUN)
}
