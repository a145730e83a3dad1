//! Results that were looked at and kept: what is printed now is compared with them.

use std::path::{Path, PathBuf};

use crate::process::{GATEWAY, beside};

/// With this variable the results are kept as they are now.
const WRITE: &str = "TRUNKLINE_GOLDEN";

/// Where the files of hosts are, with a folder of results.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("hosts")
}

/// Compares a result with the one that is kept; the folder of the test is written as `~`. Gives what is to be said of a difference.
///
/// # Panics
/// When a result cannot be kept.
#[must_use]
pub fn compare(name: &str, home: &Path, said: &str) -> Option<String> {
    let said =
        said.replace(&home.display().to_string(), "~").replace(&beside(GATEWAY).display().to_string(), "TRUNKLINE");
    let path = folder().join("golden").join(name);
    if std::env::var_os(WRITE).is_some() {
        std::fs::create_dir_all(folder().join("golden")).expect("the folder can be written");
        std::fs::write(&path, &said).expect("the folder can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    (kept != said).then(|| format!("{name} has changed (set {WRITE}=1 to keep it):\n{said}\n--- kept ---\n{kept}"))
}
