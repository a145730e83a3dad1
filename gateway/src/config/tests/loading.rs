//! What the tests of whole configurations share: load from texts in a folder of their own.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::config::fault::Faults;
use crate::config::source::Environment;
use crate::config::{Inputs, Loaded, load};

/// A folder that goes when it is dropped.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("trunkline-config-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Loads `files` (name, text) with the variables `env`.
pub(super) fn load_texts(files: &[(&str, &str)], env: &[(&str, &str)]) -> Result<Loaded, Faults> {
    let folder = Folder::new();
    let files = files.iter().map(|(name, text)| folder.write(name, text)).collect();
    load(Inputs { files, environment: Environment::of(env), ..Inputs::default() })
}

/// Loads one TOML text that must be right.
pub(super) fn good(text: &str) -> Loaded {
    load_texts(&[("a.toml", text)], &[]).unwrap_or_else(|faults| panic!("{faults}"))
}

/// The faults of one TOML text, as they are shown, without the folder's name.
pub(super) fn shown(text: &str) -> String {
    let folder = Folder::new();
    let files = vec![folder.write("a.toml", text)];
    let faults = load(Inputs { files, ..Inputs::default() }).map(|loaded| loaded.config).unwrap_err();
    faults.to_string().replace(&format!("{}/", folder.0.display()), "")
}
