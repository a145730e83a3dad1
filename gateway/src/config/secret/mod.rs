//! What of a configuration is a secret, and how that is known.

// The secret values of a configuration: references, credentials, values of keys that look secret.
mod values;
// Arguments and addresses as they may be shown.
pub(crate) mod shown;
// Texts of a URL with `%2F` and the like read.
mod percent;
// Whether a key or a value looks like a secret.
pub(crate) mod looks;

pub(crate) use percent::decoded;
pub(crate) use values::of;
