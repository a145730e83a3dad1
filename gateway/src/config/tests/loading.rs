//! What the tests of whole configurations share: load from texts in a folder of their own.

use crate::config::fault::Faults;
use crate::config::source::Environment;
use crate::config::{Inputs, Loaded, load};
use crate::runtime::Scratch;

/// Loads `files` (name, text) with the variables `env`.
pub(super) fn load_texts(files: &[(&str, &str)], env: &[(&str, &str)]) -> Result<Loaded, Faults> {
    let folder = Scratch::new();
    let files = files.iter().map(|(name, text)| folder.write(name, text)).collect();
    load(Inputs { files, environment: Environment::of(env), ..Inputs::default() })
}

/// Loads one TOML text that must be right.
pub(super) fn good(text: &str) -> Loaded {
    load_texts(&[("a.toml", text)], &[]).unwrap_or_else(|faults| panic!("{faults}"))
}

/// The faults of one TOML text, as they are shown, without the folder's name.
pub(super) fn shown(text: &str) -> String {
    let folder = Scratch::new();
    let files = vec![folder.write("a.toml", text)];
    let faults = load(Inputs { files, ..Inputs::default() }).map(|loaded| loaded.config).unwrap_err();
    faults.to_string().replace(&format!("{}/", folder.0.display()), "")
}
