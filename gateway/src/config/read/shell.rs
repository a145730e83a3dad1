//! Shells that read commands from their arguments.

use std::ffi::OsStr;
use std::path::Path;

const SHELLS: [&str; 7] = ["ash", "bash", "dash", "fish", "ksh", "sh", "zsh"];

/// Whether a word of a command line names a shell.
pub(crate) fn is_shell(word: &str) -> bool {
    Path::new(word).file_name().and_then(OsStr::to_str).is_some_and(|name| SHELLS.contains(&name))
}

/// Whether the argument behind this one is read as commands: `-c`, alone or with other letters.
pub(crate) fn takes_commands(argument: &str) -> bool {
    argument.starts_with('-') && !argument.starts_with("--") && argument.ends_with('c')
}
