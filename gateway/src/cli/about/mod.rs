//! What this program is and what it reads: `trunkline version`, `config`, `completions`, `man`.

// The version, the configuration, the words of the command line.
mod facts;
// The manual page, made from the command line itself.
mod man;

pub(super) use facts::{completions, config, version};
pub(super) use man::run as man;
