//! The file of a login: sealed, written whole, and changed by one process at a time.

use super::record::Record;
use crate::config::Login;
use crate::health::{Cause, CauseCode};
use crate::secrets::private;
use crate::secrets::sealer::{Sealer, state_key};
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The folder of logins, in that of our state.
const FOLDER: &str = "logins";
/// How a sealed login begins, and what its key is used for.
const FORMAT: &str = "trunkline-l1.";
const PURPOSE: &[u8] = b"trunkline kept login 1";
/// A larger file holds no login.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// So much of a digest names a file.
const NAME_BYTES: usize = 16;
/// How long another process may have the file to itself, and how often it is looked whether it still does.
const LOCK_MAX: Duration = Duration::from_secs(15);
const LOCK_EVERY: Duration = Duration::from_millis(20);

/// Where one login is kept.
pub(super) struct Store {
    state: PathBuf,
    path: PathBuf,
    keys: Vec<Vec<u8>>,
}

/// What tells one state of a file from another.
pub(super) type Stamp = Option<(u64, i64, i64, u64)>;

/// While it is there no other process changes the login.
pub(super) struct Lock {
    _file: File,
}

impl Store {
    /// For the login of an upstream: that of all principals, or of one.
    pub(super) fn of(login: &Login) -> Result<Self, Cause> {
        let state = login.state.clone().ok_or_else(|| {
            let said = "a login can be kept nowhere: neither XDG_STATE_HOME nor HOME is set";
            Cause::new(CauseCode::TokenUnavailable, said)
        })?;
        let whose = login.principal.iter().map(|principal| format!("{principal}\0")).collect::<String>();
        let digest = Sha256::digest(format!("{}\0{}\0{whose}", login.upstream, login.resource));
        let name: String = digest[..NAME_BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { path: state.join(FOLDER).join(name), state, keys: login.keys.clone() })
    }

    /// Whether any login is kept for an upstream. Blocks.
    pub(super) fn keeps(login: &Login) -> bool {
        Self::of(login).is_ok_and(|store| private::off_the_workers(|| store.stamp()).is_some())
    }

    /// All logins that are kept in this folder of our state, for whatever upstream, and which files cannot be read, and why. Blocks.
    pub(super) fn all(state: &Path, keys: &[Vec<u8>]) -> io::Result<Vec<(PathBuf, io::Result<Record>)>> {
        let folder = match std::fs::read_dir(state.join(FOLDER)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            folder => folder?,
        };
        let mut found = Vec::new();
        for path in folder {
            let path = path?.path();
            // What was begun, and locks, have an extension.
            if path.extension().is_none() {
                let store = Self { state: state.to_owned(), path, keys: keys.to_vec() };
                let read = store.read().transpose();
                found.extend(read.map(|read| (store.path, read)));
            }
        }
        found.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(found)
    }

    /// Where the login is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What tells whether the login is another one than before.
    pub(super) fn stamp(&self) -> Stamp {
        let seen = std::fs::symlink_metadata(&self.path).ok()?;
        Some((seen.ino(), seen.mtime(), seen.mtime_nsec(), seen.len()))
    }

    /// The login that is kept; `None` where none is. Blocks.
    pub(super) fn read(&self) -> io::Result<Option<Record>> {
        let text = match private::read(&self.path, FILE_BYTES_MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let other = || io::Error::other("it was sealed with another key");
        let text = std::str::from_utf8(&text).map_err(|_| other())?;
        let open = self.sealer()?.open(text.trim_ascii()).ok_or_else(other)?;
        serde_json::from_slice(&open).map(Some).map_err(|_| io::Error::other("another version has written it"))
    }

    /// Keeps a login in place of the one before: whole, or not at all. Blocks.
    pub(super) fn write(&self, record: &Record) -> io::Result<()> {
        let sealer = self.sealer()?;
        self.folder()?;
        let text = sealer.close(serde_json::to_vec(record)?, state_key::random());
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(io::Error::other("it has more than 256 KiB"));
        }
        self.sweep();
        let begun = self.begun();
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&begun)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        let kept = written.and_then(|()| std::fs::rename(&begun, &self.path));
        if kept.is_err() {
            let _gone_already = std::fs::remove_file(&begun);
        }
        kept
    }

    /// Whether a login could be kept: the key that seals it can be read, and its folder takes a file. Blocks.
    pub(super) fn is_writable(&self) -> Result<(), Cause> {
        let tried = self.sealer().map(drop).and_then(|()| {
            self.folder()?;
            if std::fs::symlink_metadata(&self.path).is_ok_and(|seen| seen.is_dir()) {
                return Err(io::Error::other("a folder is in its place"));
            }
            let begun = self.begun();
            drop(OpenOptions::new().write(true).create_new(true).mode(0o600).open(&begun)?);
            match std::fs::remove_file(&begun) {
                // Whoever keeps a login meanwhile has swept it.
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            }
        });
        tried.map_err(|error| self.unusable("a login cannot be kept", &error.to_string()))
    }

    /// Why the file cannot be used, and which it is.
    pub(super) fn unusable(&self, what: &str, why: &str) -> Cause {
        let cause = Cause::new(CauseCode::TokenUnavailable, what);
        cause.foreign(&format!(" in {}", self.path.display())).own(&format!(": {why}"))
    }

    /// Keeps no login any more. Blocks.
    pub(super) fn remove(&self) -> Result<(), Cause> {
        self.sweep();
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.unusable("the login cannot be removed", &error.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Waits until no other process changes the login.
    pub(super) async fn locked(&self) -> Result<Lock, Cause> {
        let failed = |why: &str| self.unusable("the login cannot be locked", why);
        let open = || self.folder().and_then(|()| private::append(&self.path.with_extension("lock")));
        let file = private::off_the_workers(open).map_err(|error| failed(&error.to_string()))?;
        let until = Instant::now() + LOCK_MAX;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(std::fs::TryLockError::WouldBlock) if Instant::now() < until => sleep(LOCK_EVERY).await,
                Err(std::fs::TryLockError::WouldBlock) => {
                    return Err(failed("another process has had it to itself for 15 s"));
                }
                Err(std::fs::TryLockError::Error(error)) => return Err(failed(&error.to_string())),
            }
        }
    }

    /// A file that becomes the login once it is whole.
    fn begun(&self) -> PathBuf {
        self.path.with_extension(format!("{:016x}", u64::from_be_bytes(state_key::random())))
    }

    /// Removes what was begun for this login and never became it: its process was killed. Only one process at a time changes a login.
    fn sweep(&self) {
        let of_folder = self.path.parent().and_then(|folder| std::fs::read_dir(folder).ok());
        for path in of_folder.into_iter().flatten().flatten().map(|file| file.path()) {
            let is_begun = |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            if path.file_stem() == self.path.file_name()
                && path.extension().and_then(OsStr::to_str).is_some_and(is_begun)
            {
                // What cannot be removed now is in nobody's way.
                let _left = std::fs::remove_file(path);
            }
        }
    }

    fn folder(&self) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        private::is_private_folder(folder)
    }

    fn sealer(&self) -> io::Result<Sealer> {
        let secrets = match self.keys.is_empty() {
            true => vec![state_key::kept(&self.state).map_err(|error| {
                let path = self.state.join(state_key::FILE);
                io::Error::other(format!("the key that seals it, {}: {error}", path.display()))
            })?],
            false => self.keys.clone(),
        };
        Ok(Sealer::new(&secrets, FORMAT, PURPOSE))
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;
    use crate::runtime::Scratch;
    use std::os::unix::fs::PermissionsExt;

    fn store(state: &Path, upstream: &str, keys: &[&str]) -> Store {
        let keys = keys.iter().map(|key| key.repeat(32).into_bytes()).collect();
        Store::of(&Login { state: Some(state.to_owned()), keys, ..super::super::way::tests::login(upstream, 1) })
            .unwrap()
    }

    #[test]
    fn a_login_is_kept_sealed_in_a_file_of_its_own_for_this_user_alone() {
        let scratch = Scratch::new();
        let store = store(&scratch.0.join("state"), "a", &[]);
        assert!(store.read().unwrap().is_none() && store.stamp().is_none());
        let kept = record("https://h.example", "canary-access", Some("canary-refresh"));
        store.write(&kept).unwrap();
        assert!(store.read().unwrap() == Some(kept.clone()));
        let text = std::fs::read_to_string(&store.path).unwrap();
        assert!(text.starts_with(FORMAT) && !text.contains("canary"), "{text}");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&store.path), mode(store.path.parent().unwrap())), (0o600, 0o700));
        let before = store.stamp();
        store.write(&kept).unwrap();
        assert_ne!(store.stamp(), before);
        assert_eq!(std::fs::read_dir(store.path.parent().unwrap()).unwrap().count(), 1, "nothing else is left");
        let other = super::tests::store(&scratch.0.join("state"), "b", &[]);
        assert!(other.read().unwrap().is_none(), "another upstream has another login");
    }

    #[test]
    fn a_login_that_was_altered_or_sealed_with_a_key_that_is_gone_is_not_used() {
        let scratch = Scratch::new();
        let keyed = |keys: &[&str]| store(&scratch.0, "a", keys);
        keyed(&["k"]).write(&record("https://h.example", "t", None)).unwrap();
        assert!(keyed(&["n", "k"]).read().unwrap().is_some(), "an earlier key opens it");
        for keys in [&["n"][..], &[]] {
            assert!(keyed(keys).read().is_err_and(|error| error.to_string().contains("another key")));
        }
        let path = keyed(&["k"]).path;
        let text = std::fs::read_to_string(&path).unwrap();
        for at in [FORMAT.len() + 2, text.len() / 2, text.len() - 1] {
            let mut altered = text.clone().into_bytes();
            altered[at] ^= 1;
            std::fs::write(&path, altered).unwrap();
            assert!(keyed(&["k"]).read().is_err(), "{at}");
        }
        std::fs::write(&path, &text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(keyed(&["k"]).read().is_err(), "others can read it");
    }

    #[test]
    fn what_a_killed_process_has_begun_is_swept_with_the_next_write_and_the_end_of_the_login_and_nothing_else() {
        let scratch = Scratch::new();
        let (own, other) = (store(&scratch.0, "a", &[]), store(&scratch.0, "b", &[]));
        let kept = record("https://h.example", "t", None);
        let names = || {
            let files = std::fs::read_dir(own.path.parent().unwrap()).unwrap();
            files.map(|file| file.unwrap().path()).collect::<std::collections::BTreeSet<_>>()
        };
        let ends: [&dyn Fn(); 2] = [&|| own.write(&kept).unwrap(), &|| own.remove().unwrap()];
        for end in ends {
            own.write(&kept).unwrap();
            let lock = own.path.with_extension("lock");
            for path in [own.begun(), own.begun(), other.begun(), lock.clone()] {
                std::fs::write(path, "x").unwrap();
            }
            let before = names();
            end();
            let gone: Vec<_> = before.difference(&names()).cloned().collect();
            assert!(gone.len() >= 2 && gone.iter().all(|path| path.file_stem() == own.path.file_name()), "{gone:?}");
            assert!(lock.exists() && names().iter().any(|path| path.file_stem() == other.path.file_name()));
            assert!(
                !names().iter().any(
                    |path| path.with_extension("") == own.path && path.extension().is_some_and(|end| end != "lock")
                )
            );
        }
    }

    #[test]
    fn a_login_that_could_not_be_read_again_is_not_kept() {
        let scratch = Scratch::new();
        let store = store(&scratch.0, "a", &[]);
        let (small, large) =
            (record("https://h.example", "t", None), record("https://h.example", &"t".repeat(200_000), None));
        store.write(&small).unwrap();
        assert_eq!(store.write(&large).unwrap_err().to_string(), "it has more than 256 KiB");
        assert!(store.read().unwrap() == Some(small), "the one before is still there");
    }

    #[test]
    fn a_folder_in_the_place_of_a_login_is_found_before_anybody_logs_in() {
        let scratch = Scratch::new();
        let store = store(&scratch.0, "a", &[]);
        store.is_writable().unwrap();
        std::fs::create_dir(&store.path).unwrap();
        assert!(store.is_writable().unwrap_err().full().ends_with("a folder is in its place"));
    }

    #[tokio::test(start_paused = true)]
    async fn one_at_a_time_changes_a_login_and_who_waits_too_long_is_told() {
        let scratch = Scratch::new();
        let (one, other) = (store(&scratch.0, "a", &[]), store(&scratch.0, "a", &[]));
        let (lock, begun) = (one.locked().await.unwrap(), Instant::now());
        let why = other.locked().await.err().unwrap();
        assert!(why.full().contains("another process has had it to itself for 15 s"), "{why:?}");
        assert_eq!(begun.elapsed().as_secs(), 15);
        drop(lock);
        // A child that another test starts holds the lock, too, until it has become another program: that takes real time.
        tokio::time::resume();
        other.locked().await.unwrap();
    }
}
