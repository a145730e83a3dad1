//! What handshake clients want lastingly, kept for the next run of the gateway: the level of log messages, and the resources that they
//! are subscribed to. One sealed file for each session, ours alone, written aside; a client is answered once its wish is written.

use crate::call::LogLevel;
use crate::config::{Config, SigningKey};
use crate::parking::key;
use crate::protocol::json;
use crate::runtime::Tasks;
use crate::secrets::private;
use crate::secrets::sealer::Sealer;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::{Notify, watch};

/// How a sealed file begins, and what its key is used for.
const FORMAT: &str = "trunkline-w1.";
const PURPOSE: &[u8] = b"trunkline session wishes 1";
/// The folder, in that of our state.
const FOLDER: &str = "session-wishes";
/// What the names of files end in.
const ENDING: &str = ".wishes";
/// So many bytes of names are kept for one session; what is beyond them is lost with the run.
const BYTES_MAX: usize = 64 * 1024;
/// A larger file is none of ours.
const FILE_BYTES_MAX: u64 = 4 * BYTES_MAX as u64;
/// So many sessions are kept, those that wanted something last.
const SESSIONS_MAX: usize = 4096;
/// So many sessions wait to be written; what more of them want is not kept.
const WAITING_MAX: usize = 8192;
/// No session outlives that.
const HOLDS: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Nobody writes at a file for so long.
const BEGUN: Duration = Duration::from_secs(60);
/// A disk that does not answer holds the end up for so long.
const LAST_WRITE: Duration = Duration::from_secs(2);
/// And a client for whose wish an answer waits.
const WRITE_MAX: Duration = Duration::from_millis(500);

/// What one client wants lastingly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// The level that it has named.
    pub(crate) level: Option<LogLevel>,
    /// The resources that it is subscribed to.
    pub(crate) uris: Vec<Arc<str>>,
}

/// What is known of the wishes that a client had in an earlier run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Earlier {
    /// These; whether they are all.
    Found(Wishes, bool),
    /// It had none.
    Nothing,
    /// It may have had some.
    Unknown,
}

/// Where they are kept.
pub(crate) struct KeptWishes {
    /// `None` where nothing outlives the process.
    folder: Option<PathBuf>,
    secrets: (Vec<SigningKey>, Option<PathBuf>),
    sealer: OnceLock<Option<Sealer>>,
    waiting: Mutex<Waiting>,
    changed: Notify,
    /// So many changes are written, or could not be.
    written: watch::Sender<u64>,
    files: Mutex<Files>,
}

/// What is to be written, by the short ids of the sessions.
#[derive(Default)]
struct Waiting {
    changes: HashMap<Arc<str>, Wishes>,
    /// So many changes there were.
    count: u64,
}

/// A change on its way to the disk.
pub(crate) struct Change {
    of: Arc<KeptWishes>,
    number: u64,
}

/// The files, as far as they were counted.
#[derive(Default)]
struct Files {
    count: usize,
    is_counted: bool,
    complained: bool,
}

impl Wishes {
    fn are_none(&self) -> bool {
        self.level.is_none() && self.uris.is_empty()
    }

    /// As the bytes that are sealed, with the session that they are of.
    fn write(&self, session: &str) -> Vec<u8> {
        let (mut names, mut is_whole) = (Vec::new(), 1);
        for uri in &self.uris {
            match u16::try_from(uri.len()) {
                Ok(length) if names.len() + uri.len() <= BYTES_MAX => {
                    names.extend_from_slice(&length.to_be_bytes());
                    names.extend_from_slice(uri.as_bytes());
                }
                _ => is_whole = 0,
            }
        }
        let level = self.level.map_or("", LogLevel::as_str);
        let mut bytes = vec![is_whole];
        for text in [session, level] {
            bytes.extend_from_slice(&(text.len() as u16).to_be_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes.extend_from_slice(&names);
        bytes
    }

    /// What was written for this session, and whether it is all that it wanted.
    fn read(bytes: &[u8], session: &str) -> Option<(Self, bool)> {
        let (is_whole, mut rest) = bytes.split_first()?;
        let mut text = || {
            let (length, more) = rest.split_at_checked(2)?;
            let (text, more) = more.split_at_checked(u16::from_be_bytes(length.try_into().ok()?).into())?;
            rest = more;
            std::str::from_utf8(text).ok()
        };
        if text()? != session {
            return None;
        }
        let level = text().filter(|level| !level.is_empty());
        let level = level.and_then(|level| LogLevel::parse(json::quote(level).as_bytes()));
        let uris = std::iter::from_fn(|| text().map(Arc::from)).collect();
        Some((Self { level, uris }, *is_whole == 1))
    }
}

impl KeptWishes {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            folder: config.state_folder.as_ref().map(|state| state.join(FOLDER)),
            secrets: (config.session.signing_keys.clone(), config.state_folder.clone()),
            sealer: OnceLock::new(),
            waiting: Mutex::default(),
            changed: Notify::new(),
            written: watch::Sender::default(),
            files: Mutex::default(),
        }
    }

    /// A session, of which this is the short id, wants this from now on; `None` where that is not kept.
    pub(crate) fn put(self: &Arc<Self>, session: &Arc<str>, wishes: Wishes) -> Option<Change> {
        self.folder.as_ref()?;
        let mut waiting = self.waiting();
        if waiting.changes.len() >= WAITING_MAX && !waiting.changes.contains_key(session) {
            return None;
        }
        waiting.changes.insert(session.clone(), wishes);
        waiting.count += 1;
        self.changed.notify_one();
        Some(Change { of: self.clone(), number: waiting.count })
    }

    /// What a session of an earlier run wanted.
    pub(crate) fn earlier(&self, session: &str) -> Earlier {
        let (Some(folder), Some(sealer)) = (&self.folder, self.sealer()) else { return Earlier::Unknown };
        let path = path(folder, session);
        let text = match private::off_the_workers(|| private::read(&path, FILE_BYTES_MAX)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Earlier::Nothing,
            Err(error) => {
                self.complain(&error);
                return Earlier::Unknown;
            }
        };
        let opened = std::str::from_utf8(&text).ok().and_then(|text| sealer.open(text));
        match opened.and_then(|bytes| Wishes::read(&bytes, session)) {
            Some((wishes, is_whole)) => Earlier::Found(wishes, is_whole),
            None => Earlier::Unknown,
        }
    }

    /// Writes what changes, to the end of this level.
    pub(crate) async fn keep(self: Arc<Self>, tasks: Tasks) {
        loop {
            tokio::select! {
                biased;
                () = tasks.ending() => break,
                () = self.changed.notified() => self.write().await,
            }
        }
        let _in_time = tokio::time::timeout(LAST_WRITE, self.write()).await;
    }

    async fn write(self: &Arc<Self>) {
        let (changes, count) = {
            let mut waiting = self.waiting();
            (std::mem::take(&mut waiting.changes), waiting.count)
        };
        if changes.is_empty() {
            return;
        }
        let this = self.clone();
        // What it could not do, it has said.
        let _ = tokio::task::spawn_blocking(move || {
            let (Some(folder), Some(sealer)) = (&this.folder, this.sealer()) else { return };
            let mut files = this.files.lock().unwrap_or_else(PoisonError::into_inner);
            let mut failed = None;
            for (session, wishes) in changes {
                failed = files.write(folder, sealer, &session, &wishes).err().or(failed);
            }
            drop(files);
            failed.iter().for_each(|error| this.complain(error));
        })
        .await;
        self.written.send_replace(count);
    }

    fn complain(&self, error: &io::Error) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut files.complained, true) {
            let folder = self.folder.as_deref().unwrap_or(Path::new("")).display();
            tracing::warn!(
                %folder,
                %error,
                "subscriptions and log levels of sessions cannot be kept: a restart loses them; make the folder one that its user alone may use"
            );
        }
    }

    fn sealer(&self) -> Option<&Sealer> {
        let (configured, state) = &self.secrets;
        let made = || Some(Sealer::new(&key::lasting(configured, state.as_deref())?, FORMAT, PURPOSE));
        self.sealer.get_or_init(made).as_ref()
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Change {
    /// Resolves once it outlives the process, however that ends, or cannot; where the disk does not answer, after a moment.
    pub(crate) async fn written(self) {
        let mut written = self.of.written.subscribe();
        let _in_time = tokio::time::timeout(WRITE_MAX, written.wait_for(|count| *count >= self.number)).await;
    }
}

impl Files {
    /// Writes what a session wants in place of what it wanted.
    fn write(&mut self, folder: &Path, sealer: &Sealer, session: &str, wishes: &Wishes) -> io::Result<()> {
        let path = path(folder, session);
        if wishes.are_none() {
            if fs::remove_file(&path).is_ok() {
                self.count = self.count.saturating_sub(1);
            }
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        private::is_private_folder(folder)?;
        if !std::mem::replace(&mut self.is_counted, true) || self.count >= SESSIONS_MAX {
            self.count = make_room(folder);
        }
        let begun = path.with_extension(std::process::id().to_string());
        // What bears this name was left by a process that has ended.
        let _gone_already = fs::remove_file(&begun);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&begun)?;
        file.write_all(sealer.close(wishes.write(session), key::random()).as_bytes())?;
        self.count += usize::from(!path.exists());
        fs::rename(&begun, &path)
    }
}

/// Deletes the files that are nobody's any more, and those beyond three quarters of what there may be, the oldest first; how many are left.
fn make_room(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let mut files: Vec<_> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let seen = fs::symlink_metadata(&path).ok()?;
            Some((seen.modified().unwrap_or(SystemTime::UNIX_EPOCH), path))
        })
        .collect();
    files.sort_by_key(|(written, _)| std::cmp::Reverse(*written));
    let is_kept = |(at, (written, path)): &(usize, (SystemTime, PathBuf))| {
        let is_whole = path.to_string_lossy().ends_with(ENDING);
        let holds = if is_whole { HOLDS } else { BEGUN };
        *at < SESSIONS_MAX / 4 * 3 && written.elapsed().is_ok_and(|age| age < holds)
    };
    let (kept, gone): (Vec<_>, Vec<_>) = files.into_iter().enumerate().partition(is_kept);
    gone.iter().for_each(|(_, (_, path))| drop(fs::remove_file(path)));
    kept.len()
}

/// The file of a session: its id is secret, and its name says nothing of that.
fn path(folder: &Path, session: &str) -> PathBuf {
    let digest = Sha256::digest(session);
    let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    folder.join(name + ENDING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Scratch;
    use std::os::unix::fs::PermissionsExt;

    fn kept(state: &Path, secret: &str) -> Arc<KeptWishes> {
        let mut config = Config { state_folder: Some(state.to_owned()), ..Config::default() };
        config.session.signing_keys = vec![SigningKey::new(secret.repeat(32)).unwrap()];
        Arc::new(KeptWishes::new(&config))
    }

    fn wishes(level: Option<LogLevel>, uris: &[&str]) -> Wishes {
        Wishes { level, uris: uris.iter().map(|uri| Arc::from(*uri)).collect() }
    }

    #[tokio::test]
    async fn what_a_client_wanted_is_found_by_the_next_run_for_that_session_alone_and_nothing_can_be_read_in_it() {
        let state = Scratch::new();
        let before = kept(&state.0, "k");
        let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
        let wanted = wishes(Some(LogLevel::Warning), &["a:secret", "b:\u{e9}"]);
        before.put(&one, wishes(None, &["old:"]));
        before.put(&one, wanted.clone());
        before.put(&two, wishes(Some(LogLevel::Debug), &[]));
        before.write().await;
        let after = kept(&state.0, "k");
        assert_eq!(after.earlier("one"), Earlier::Found(wanted, true));
        assert_eq!(after.earlier("two"), Earlier::Found(wishes(Some(LogLevel::Debug), &[]), true));
        assert_eq!(after.earlier("three"), Earlier::Nothing);
        assert_eq!(kept(&state.0, "x").earlier("one"), Earlier::Unknown, "another key opens nothing");
        let folder = state.0.join(FOLDER);
        let text = fs::read_to_string(path(&folder, "one")).unwrap();
        assert!(text.starts_with(FORMAT) && !text.contains("secret"), "{text}");
        // One session's file is not another's.
        fs::copy(path(&folder, "one"), path(&folder, "three")).unwrap();
        assert_eq!(after.earlier("three"), Earlier::Unknown);
        // Nor is one that others may have written.
        fs::set_permissions(path(&folder, "one"), fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(after.earlier("one"), Earlier::Unknown);
        after.put(&two, Wishes::default());
        after.write().await;
        assert_eq!(after.earlier("two"), Earlier::Nothing, "it wants nothing any more");
    }

    #[tokio::test]
    async fn a_change_is_waited_for_until_it_is_written_and_no_longer_than_a_disk_may_take() {
        let state = Scratch::new();
        let (kept, tasks) = (kept(&state.0, "k"), Tasks::new());
        tasks.spawn(kept.clone().keep(tasks.clone()));
        let one: Arc<str> = "one".into();
        // Nothing can be written as long as this goes on.
        let ((release, held), other) = (std::sync::mpsc::channel::<()>(), kept.clone());
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let busy = std::thread::spawn(move || {
            let _files = other.files.lock().unwrap();
            (begun.send(()), held.recv())
        });
        has_begun.await.unwrap();
        let (put, start) = (|level| kept.put(&one, wishes(Some(level), &[])).unwrap(), tokio::time::Instant::now());
        put(LogLevel::Debug).written().await;
        assert!(start.elapsed() >= WRITE_MAX && kept.earlier("one") == Earlier::Nothing);
        let mut written = Box::pin(put(LogLevel::Error).written());
        assert!(tokio::time::timeout(Duration::ZERO, &mut written).await.is_err());
        drop(release);
        written.await;
        assert_eq!(kept.earlier("one"), Earlier::Found(wishes(Some(LogLevel::Error), &[]), true));
        busy.join().unwrap().0.unwrap();
        tasks.end();
    }

    #[tokio::test]
    async fn what_is_kept_is_bounded() {
        let state = Scratch::new();
        let before = kept(&state.0, "k");
        let long: Vec<String> = (0..512).map(|number| format!("x:{number}:{}", "y".repeat(1000))).collect();
        let long: Vec<&str> = long.iter().map(String::as_str).collect();
        before.put(&"many".into(), wishes(None, &long));
        before.write().await;
        let Earlier::Found(found, is_whole) = before.earlier("many") else { panic!("it is there") };
        assert!(!is_whole && found.uris.len() == 65, "{}", found.uris.len());
        let folder = state.0.join(FOLDER);
        (0..SESSIONS_MAX).for_each(|number| fs::write(folder.join(format!("{number}{ENDING}")), "x").unwrap());
        let next = kept(&state.0, "k");
        next.put(&"one".into(), wishes(None, &["a:"]));
        next.write().await;
        assert_eq!(fs::read_dir(&folder).unwrap().count(), SESSIONS_MAX / 4 * 3 + 1);
        assert!(matches!(next.earlier("one"), Earlier::Found(..)));
    }
}
