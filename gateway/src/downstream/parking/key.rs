//! The secrets behind our seals: configured, or one that is made once and kept where only its owner can read it.

use crate::downstream::config::SigningKey;
use crate::secrets::private;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// The file that holds it, in the folder of our state.
const FILE: &str = "signing-key";
/// How much of it is random.
const SECRET_BYTES: usize = 32;
/// A larger file holds no key.
const FILE_BYTES_MAX: u64 = 4096;

/// The secrets: those that are configured, else that of `folder`, else one that ends with this process. The first seals, all open.
pub(crate) fn find(configured: &[SigningKey], folder: Option<&Path>) -> Vec<Vec<u8>> {
    if !configured.is_empty() {
        return configured.iter().map(|key| key.as_bytes().to_vec()).collect();
    }
    let kept = match folder {
        Some(folder) => private::off_the_workers(|| kept(folder))
            .map_err(|cause| format!("{}: {cause}", folder.join(FILE).display())),
        None => Err("neither XDG_STATE_HOME nor HOME is set".to_owned()),
    };
    let secret = kept.unwrap_or_else(|cause| {
        tracing::warn!(
            %cause,
            "the signing key cannot be kept: what clients carry for us between two requests will mean nothing after a \
             restart, nor to another instance; set server.session.signing_key"
        );
        random::<SECRET_BYTES>().to_vec()
    });
    vec![secret]
}

/// The secrets as [`find`] does, where they outlive this process.
pub(crate) fn lasting(configured: &[SigningKey], folder: Option<&Path>) -> Option<Vec<Vec<u8>>> {
    if !configured.is_empty() {
        return Some(configured.iter().map(|key| key.as_bytes().to_vec()).collect());
    }
    private::off_the_workers(|| kept(folder?).ok()).map(|secret| vec![secret])
}

/// Random bytes of the system.
pub(crate) fn random<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

/// The secret in a folder; made first where it is not there yet. Whoever makes it first wins.
fn kept(folder: &Path) -> io::Result<Vec<u8>> {
    let path = folder.join(FILE);
    match read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => return found,
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let begun = folder.join(format!("{FILE}.{:016x}", u64::from_be_bytes(random())));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&begun)?;
    let secret = STANDARD_NO_PAD.encode(random::<SECRET_BYTES>());
    // It appears under its name whole, or not at all.
    let written = writeln!(file, "{secret}").and_then(|()| file.sync_all()).and_then(|()| {
        match std::fs::hard_link(&begun, &path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => std::fs::rename(&begun, &path),
            _ => Ok(()),
        }
    });
    let _gone_already = std::fs::remove_file(&begun);
    written?;
    read(&path)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let text = private::read(path, FILE_BYTES_MAX)?;
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

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn it_is_made_once_kept_and_readable_for_its_owner_alone() {
        let folder = Scratch::new();
        let state = folder.0.join("a/trunkline");
        let first = find(&[], Some(&state));
        assert!(first.len() == 1 && first[0].len() >= SECRET_BYTES && find(&[], Some(&state)) == first);
        assert_eq!((mode(&state), mode(&state.join(FILE))), (0o700, 0o600));
        assert_eq!(std::fs::read_dir(&state).unwrap().count(), 1);
        let configured = ["c", "d"].map(|text| SigningKey::new(text.repeat(32)).unwrap());
        assert_eq!(find(&configured, Some(&state)), ["c", "d"].map(|text| text.repeat(32).into_bytes()));
    }

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
    fn where_it_cannot_be_kept_each_process_has_its_own() {
        let folder = Scratch::new();
        let file = folder.0.join("file");
        std::fs::write(&file, "").unwrap();
        assert_ne!(find(&[], Some(&file)), find(&[], Some(&file)));
        assert_ne!(find(&[], None), find(&[], None));
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
