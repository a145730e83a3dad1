//! The secret of this gateway's own that seals what it keeps or hands out: made once, and kept where only its owner can read it.

use crate::secrets::private;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file that holds it, in the folder of our state.
pub const FILE: &str = "signing-key";
/// How much of it is random.
pub const SECRET_BYTES: usize = 32;
/// A larger file holds no key.
const FILE_BYTES_MAX: u64 = 4096;

/// Random bytes of the system.
pub fn random<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

/// The secret in a folder. A missing one is made, and a file that cannot be a key is set aside first; of processes that start at once all
/// have the same key.
pub fn kept(folder: &Path) -> io::Result<Vec<u8>> {
    set_aside_unusable(folder)?;
    let made = || STANDARD_NO_PAD.encode(random::<SECRET_BYTES>());
    let (text, _) = private::made_once(&folder.join(FILE), FILE_BYTES_MAX, made)?;
    let secret = text.trim_ascii();
    if secret.len() < SECRET_BYTES {
        return Err(io::Error::other("too short for a key; delete it to have a new one made"));
    }
    Ok(secret.to_vec())
}

/// The reason that the gateway will have no lasting key in a folder. Nothing is made or moved.
pub fn find_fault(folder: &Path) -> Option<String> {
    if is_unusable(folder) {
        return Some("it cannot be a key; the gateway sets it aside at its next start and makes a new one".to_owned());
    }
    match private::read(&folder.join(FILE), FILE_BYTES_MAX) {
        Ok(_) => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let existing = folder.ancestors().find(|one| one.exists())?;
            let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
            let error = rustix::fs::access(existing, access).err()?;
            Some(format!("it cannot be made in {}: {}", existing.display(), io::Error::from(error)))
        }
        Err(error) => Some(error.to_string()),
    }
}

/// Checks if the file is of this user and its content cannot be a key.
fn is_unusable(folder: &Path) -> bool {
    let path = folder.join(FILE);
    // In such a folder nobody else replaces the file by a pipe between the two looks.
    let Ok(seen) = private::is_private_folder(folder).and_then(|()| fs::symlink_metadata(&path)) else { return false };
    if !seen.is_file() || seen.uid() != rustix::process::geteuid().as_raw() {
        return false;
    }
    seen.len() > FILE_BYTES_MAX || fs::read(&path).is_ok_and(|text| text.trim_ascii().len() < SECRET_BYTES)
}

fn set_aside_unusable(folder: &Path) -> io::Result<()> {
    if !is_unusable(folder) {
        return Ok(());
    }
    // Another process that starts now may have replaced the file meanwhile.
    let lock = File::open(folder)?;
    lock.lock()?;
    if !is_unusable(folder) {
        return Ok(());
    }
    let file = folder.join(FILE);
    let aside: PathBuf = (1_u32..)
        .map(|number| folder.join(format!("{FILE}.unusable-{number}")))
        .find(|path| fs::symlink_metadata(path).is_err())
        .ok_or(io::ErrorKind::AlreadyExists)?;
    fs::rename(&file, &aside)?;
    tracing::warn!(
        file = %file.display(),
        aside = %aside.display(),
        "signing key unusable: the file cannot be a key, was set aside, and is replaced by a new key"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Scratch;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn all_that_start_at_once_have_the_same() {
        let folder = Scratch::new();
        let found: Vec<_> = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..8).map(|_| scope.spawn(|| kept(&folder.0).unwrap())).collect();
            starts.into_iter().map(|start| start.join().unwrap()).collect()
        });
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn key_that_others_can_read_is_not_used_and_not_replaced() {
        let folder = Scratch::new();
        let path = folder.0.join(FILE);
        std::fs::write(&path, "k".repeat(43)).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(kept(&folder.0).is_err());
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(kept(&folder.0).unwrap(), "k".repeat(43).into_bytes());
    }

    #[test]
    fn file_that_cannot_be_a_key_is_set_aside_and_replaced() {
        let folder = Scratch::new();
        let path = folder.0.join(FILE);
        let unusable = [b"\xff\x00\x81".to_vec(), Vec::new(), vec![b'k'; FILE_BYTES_MAX as usize + 1]];
        for (number, content) in unusable.iter().enumerate() {
            std::fs::write(&path, content).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
            assert!(find_fault(&folder.0).is_some_and(|fault| fault.contains("sets it aside")));
            let found: Vec<_> = std::thread::scope(|scope| {
                let starts: Vec<_> = (0..8).map(|_| scope.spawn(|| kept(&folder.0).unwrap())).collect();
                starts.into_iter().map(|start| start.join().unwrap()).collect()
            });
            assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "all that start at once have the same key");
            assert_eq!(kept(&folder.0).unwrap(), found[0]);
            assert_eq!(find_fault(&folder.0), None);
            for (at, earlier) in unusable[..=number].iter().enumerate() {
                let aside = folder.0.join(format!("{FILE}.unusable-{}", at + 1));
                assert_eq!(&std::fs::read(aside).unwrap(), earlier);
            }
        }
    }

    #[test]
    fn faults_of_a_key_are_found_without_a_change() {
        let folder = Scratch::new();
        let state = folder.0.join("a/state");
        assert_eq!(find_fault(&state), None, "it can be made");
        assert!(!state.exists());
        std::fs::write(folder.0.join("file"), "").unwrap();
        assert!(find_fault(&folder.0.join("file/state")).is_some());
        std::fs::write(folder.0.join(FILE), "k".repeat(43)).unwrap();
        std::fs::set_permissions(folder.0.join(FILE), PermissionsExt::from_mode(0o644)).unwrap();
        assert!(find_fault(&folder.0).is_some_and(|fault| fault.contains("chmod")));
    }

    #[test]
    fn a_key_behind_a_link_in_an_open_folder_or_in_a_pipe_is_not_used_and_nobody_waits_for_it() {
        let folder = Scratch::new();
        let (path, aside) = (folder.0.join(FILE), folder.0.join("aside"));
        std::fs::write(&aside, "k".repeat(43)).unwrap();
        std::fs::set_permissions(&aside, PermissionsExt::from_mode(0o600)).unwrap();
        symlink(&aside, &path).unwrap();
        assert!(kept(&folder.0).unwrap_err().to_string().contains("link"));
        std::fs::remove_file(&path).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(kept(&folder.0).unwrap_err().to_string().contains("no file"));
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(&aside, &path).unwrap();
        assert!(kept(&folder.0).is_ok());
        for mode in [0o755, 0o770, 0o777] {
            std::fs::set_permissions(&folder.0, PermissionsExt::from_mode(mode)).unwrap();
            assert!(kept(&folder.0).unwrap_err().to_string().contains("the folder"), "{mode:o}");
        }
    }
}
