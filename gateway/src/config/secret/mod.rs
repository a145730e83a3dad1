//! What of a configuration is a secret, and how that is known.

// The secret values of a configuration: references, credentials, values of keys that look secret.
mod values;
// Arguments, commands and other values as they may be shown.
pub(crate) mod shown;
// Addresses and paths as they may be shown.
mod address;
// Words and parts of paths: which are plain.
mod word;
// Texts of a URL with `%2F` and the like read.
mod percent;
// Whether a key or a value looks like a secret.
pub(crate) mod looks;

// Secrets in places where programs take them.
#[cfg(test)]
mod tests;

pub(crate) use percent::decoded;
pub(crate) use values::of;
