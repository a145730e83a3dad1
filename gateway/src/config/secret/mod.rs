//! Which values of a configuration are secret.

// Which values of a configuration are secret.
mod values;
// Whether a key or a value looks like a secret.
pub(crate) mod looks;

pub(crate) use values::of;
