//! What of a configuration is a secret, and how that is known.

// The secret values of a configuration: references, credentials, values of keys that look secret.
mod values;
// Whether a key or a value looks like a secret.
pub(crate) mod looks;

pub(crate) use values::of;
