//! A directory for one test, gone when the test is over.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A fresh directory.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes one below the system's directory for such things.
    #[must_use]
    pub fn new() -> Scratch {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("trunkline-tests-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the temporary directory can be written");
        Scratch(path)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file into it.
    #[must_use]
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("the directory can be written");
        path
    }
}

/// All files below a folder, each with its path.
#[must_use]
pub fn texts(folder: &Path) -> Vec<(String, String)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let of = |path: PathBuf| match path.is_dir() {
        true => texts(&path),
        false => {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()).into_owned();
            vec![(path.display().to_string(), text)]
        }
    };
    entries.flatten().flat_map(|entry| of(entry.path())).collect()
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch::new()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is left to the system.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
