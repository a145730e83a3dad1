//! Which files are read, and how: regular ones, of a bounded size.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::environment::Environment;

/// Larger than any configuration that a person keeps.
const MOST_BYTES: u64 = 1 << 20;

/// The files that are read: those named; else `$TRUNKLINE_CONFIG`; else the first that is there.
pub fn find(named: &[PathBuf], environment: &Environment) -> Vec<PathBuf> {
    if !named.is_empty() {
        return named.to_vec();
    }
    if let Some(path) = environment.get("TRUNKLINE_CONFIG").filter(|path| !path.is_empty()) {
        return vec![PathBuf::from(path)];
    }
    let of = |name: &str| environment.get(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let user = of("XDG_CONFIG_HOME").or_else(|| of("HOME").map(|home| home.join(".config")));
    let places = [Some(PathBuf::from("trunkline.toml")), user.map(|user| user.join("trunkline/config.toml"))];
    // What is there but cannot be used must be said, so only what is absent is passed over.
    places.into_iter().flatten().find(|path| path.symlink_metadata().is_ok()).into_iter().collect()
}

/// The text of a file; an error says why there is none.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let metadata = path.metadata().map_err(|error| said(&error))?;
    // Looked at before it is opened: opening a FIFO would wait for a writer.
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| said(&error))?;
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| said(&error))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err("it is larger than 1 MiB".to_owned());
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())?;
    // A byte order mark is what some editors put there, and no part of the text.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn said(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "it may not be read".to_owned(),
        _ => error.to_string(),
    }
}
