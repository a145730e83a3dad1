//! Writes a file whole: beside it first, then in its place, with what it was kept in a copy.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// Replaces the file at `path`, which held `before`, by `text`; a copy of what it was is kept at `backup`. A link stays a link.
pub(crate) fn whole(path: &Path, before: &str, text: &str, backup: Option<&Path>) -> Result<(), anyhow::Error> {
    let shown = path.display();
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let is_new = !real.exists();
    // Another program may have written it since it was read.
    if !is_new && fs::read(&real).with_context(|| format!("cannot read {shown}"))? != before.as_bytes() {
        bail!("{shown} has changed meanwhile; run the command again");
    }
    let mode = fs::metadata(&real).map_or(0o600, |seen| seen.permissions().mode() & 0o777);
    if let Some(folder) = real.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    if let Some(backup) = backup.filter(|_| !is_new) {
        put(backup, before.as_bytes(), mode).with_context(|| format!("cannot write {}", backup.display()))?;
    }
    let mut beside = real.clone().into_os_string();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = put(&beside, text.as_bytes(), mode).and_then(|()| fs::rename(&beside, &real));
    if written.is_err() {
        // It may not have come to be.
        let _ = fs::remove_file(&beside);
    }
    written.with_context(|| format!("cannot write {shown}"))
}

fn put(path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path)?;
    file.set_permissions(PermissionsExt::from_mode(mode))?;
    file.write_all(bytes)?;
    file.sync_all()
}
