//! The secret of this gateway's own that seals what it keeps or hands out: made once, and kept where only its owner can read it.

use crate::secrets::private;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::io;
use std::path::Path;

/// The file that holds it, in the folder of our state.
pub(crate) const FILE: &str = "signing-key";
/// How much of it is random.
pub(crate) const SECRET_BYTES: usize = 32;
/// A larger file holds no key.
const FILE_BYTES_MAX: u64 = 4096;

/// Random bytes of the system.
pub(crate) fn random<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

/// The secret in a folder; made first where it is not there yet. Whoever makes it first wins.
pub(crate) fn kept(folder: &Path) -> io::Result<Vec<u8>> {
    let made = || STANDARD_NO_PAD.encode(random::<SECRET_BYTES>());
    let (text, _) = private::made_once(&folder.join(FILE), FILE_BYTES_MAX, made)?;
    let secret = text.trim_ascii();
    if secret.len() < SECRET_BYTES {
        return Err(io::Error::other("too short for a key; delete it to have a new one made"));
    }
    Ok(secret.to_vec())
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
    fn one_that_others_can_read_or_that_is_short_is_not_used_and_not_replaced() {
        let folder = Scratch::new();
        let path = folder.0.join(FILE);
        std::fs::write(&path, "k".repeat(43)).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(kept(&folder.0).is_err());
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(kept(&folder.0).unwrap(), "k".repeat(43).into_bytes());
        std::fs::write(&path, "short").unwrap();
        assert!(kept(&folder.0).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"short");
        std::fs::write(&path, "k".repeat(FILE_BYTES_MAX as usize + 1)).unwrap();
        assert!(kept(&folder.0).is_err(), "too long for a key");
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
