//! The files of runs: each run of the gateway writes one, which is locked for as long as it lives; the file of a run that has ended is
//! taken over by the next one that has an upstream of it. They are ours alone, sealed line by line, and bounded.

use super::record::{Change, Kept, Place};
use crate::runtime::complaints::{Complaints, left_unsaid};
use crate::secrets::private;
use crate::secrets::sealer::Sealer;
use rustix::fs::{FlockOperation, flock};
use std::collections::{HashMap, HashSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// So many sessions are kept, those that were opened last; with twice as many lines a file is written anew.
const SESSIONS_MAX: usize = 8192;
/// A larger file is none of ours: more than all lines of a file and of one write have, whose ids are as long as they may be.
const FILE_BYTES_MAX: u64 = 192 << 20;
/// So many files are looked into; the oldest beyond them are deleted.
const FILES_MAX: usize = 64;
/// What was opened so long ago is nobody's any more: no client session outlives that.
const HOLDS: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// What the names of files end in.
const ENDING: &str = ".sessions";
/// How often it is said that a file is refused.
const SAID_EVERY: Duration = Duration::from_secs(60 * 60);

/// The files in one folder, and the one of this run.
pub(super) struct Files {
    folder: PathBuf,
    own: Option<Own>,
    /// It was said that nothing can be kept.
    complained: bool,
    refusals: Complaints,
}

/// The file of this run.
struct Own {
    path: PathBuf,
    /// Holds the lock.
    file: File,
    lines: usize,
}

impl Files {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, own: None, complained: false, refusals: Complaints::every(SAID_EVERY) }
    }

    /// What runs that have ended kept of these upstreams; from now on it is in the file of this run. What they kept of an upstream of the same
    /// name that was configured otherwise cannot be gone on with: it is lost, and known to be.
    pub(super) fn take_over(&mut self, sealer: &Sealer, upstreams: &HashSet<Arc<str>>) -> HashMap<Place, Kept> {
        let (mut all, mut lost, mut refused) = (HashMap::new(), Vec::new(), Vec::new());
        for path in self.others() {
            // The lock of a run that lives is not had; it goes when that ends, however it does.
            let mut file = match private::open(&path) {
                Ok((file, _)) => file,
                Err(error) => {
                    refused.push((path, error));
                    continue;
                }
            };
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                continue;
            }
            let mut ours = sessions(&mut file, sealer);
            ours.retain(|(place, kept)| {
                let is_ours = upstreams.contains(&place.upstream);
                let now = upstreams.iter().find(|now| !is_ours && name_of(now) == name_of(&place.upstream));
                if let Some(upstream) = now {
                    let place = Place { upstream: upstream.clone(), client: place.client.clone() };
                    lost.push((place, Kept { id: String::new(), ..kept.clone() }));
                }
                is_ours
            });
            let changes: Vec<_> = ours.iter().map(|(place, kept)| Change::Open(place.clone(), kept.clone())).collect();
            // Else it is that of another gateway of this user.
            if !changes.is_empty() && self.write(sealer, &changes) {
                let _gone_already = fs::remove_file(&path);
                all.extend(ours);
            }
        }
        self.complain(&refused);
        for (place, kept) in lost {
            all.entry(place).or_insert(kept);
        }
        all
    }

    /// Says of which file nothing is taken over, where it is there and not ours alone.
    fn complain(&self, refused: &[(PathBuf, io::Error)]) {
        // Another run may have taken it over meanwhile.
        let mut refused = refused.iter().filter(|(_, error)| error.kind() != io::ErrorKind::NotFound);
        let Some((path, error)) = refused.next() else { return };
        if self.refusals.take("refused").is_some() {
            let (file, more) = (path.display(), left_unsaid(refused.count() as u64));
            tracing::warn!(
                %file,
                %error,
                more,
                "file of sessions at upstreams refused: they are not found again; make it a file that its user alone may use (chmod 600), or delete it"
            );
        }
    }

    /// Writes what has changed; whether it could.
    pub(super) fn write(&mut self, sealer: &Sealer, changes: &[Change]) -> bool {
        let written = self.try_write(sealer, changes);
        if let Err(error) = &written
            && !std::mem::replace(&mut self.complained, true)
        {
            let folder = self.folder.display();
            tracing::warn!(%folder, %error, "sessions at upstreams cannot be kept: a restart loses what upstreams hold for clients");
        }
        written.is_ok()
    }

    fn try_write(&mut self, sealer: &Sealer, changes: &[Change]) -> io::Result<()> {
        let mut own = match self.own.take() {
            Some(own) => own,
            // What never was there needs no word that it is over.
            None if changes.iter().all(|change| matches!(change, Change::Over(..))) => return Ok(()),
            None => Own::make(&self.folder)?,
        };
        let (text, lines) = text(sealer, changes)?;
        let written = own.file.write_all(text.as_bytes());
        own.lines += lines;
        if own.lines > 2 * SESSIONS_MAX {
            own = own.anew(&self.folder, sealer)?;
        }
        self.own = Some(own);
        written
    }

    /// Nothing more is written: a file that leaves nothing open goes.
    pub(super) fn close(&mut self, sealer: &Sealer) {
        let Some(own) = self.own.take() else { return };
        if private::open(&own.path).is_ok_and(|(mut file, _)| sessions(&mut file, sealer).is_empty()) {
            let _gone_already = fs::remove_file(&own.path);
        }
    }

    /// The files of other runs, those that were written last.
    fn others(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let own = self.own.as_ref().map(|own| own.path.clone());
        let mut files: Vec<_> = entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let is_one = path.to_str().is_some_and(|path| path.ends_with(ENDING)) && own.as_ref() != Some(&path);
                // What it is, is judged when it is opened.
                let seen = fs::symlink_metadata(&path).ok().filter(|_| is_one)?;
                Some((seen.modified().ok()?, path))
            })
            .collect();
        files.sort_by_key(|(used, _)| std::cmp::Reverse(*used));
        for (at, (used, path)) in files.iter().enumerate() {
            if (at >= FILES_MAX || used.elapsed().is_ok_and(|age| age > HOLDS)) && is_left(path) {
                let _gone_already = fs::remove_file(path);
            }
        }
        files.into_iter().take(FILES_MAX).map(|(_, path)| path).collect()
    }
}

impl Own {
    /// A file of a name that no other run has. Before it is locked it is empty, and nobody takes it over.
    fn make(folder: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        private::is_private_folder(folder)?;
        let mut number = [0; 8];
        getrandom::fill(&mut number).map_err(|_| io::Error::other("no random bytes"))?;
        let path = folder.join(format!("{:016x}{ENDING}", u64::from_be_bytes(number)));
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path, file, lines: 0 })
    }

    /// The file with what still holds, in place of this one.
    fn anew(self, folder: &Path, sealer: &Sealer) -> io::Result<Self> {
        let (mut before, _) = private::open(&self.path)?;
        let sessions = sessions(&mut before, sealer);
        let changes: Vec<_> = sessions.into_iter().map(|(place, kept)| Change::Open(place, kept)).collect();
        let (text, lines) = text(sealer, &changes)?;
        let mut next = Self::make(folder)?;
        next.file.write_all(text.as_bytes())?;
        next.lines = lines;
        fs::remove_file(&self.path)?;
        Ok(next)
    }
}

/// The name in what an upstream is known by, before the digest of its configuration.
fn name_of(upstream: &str) -> &str {
    upstream.split(' ').next().unwrap_or_default()
}

/// Whether no run that lives has this file.
fn is_left(path: &Path) -> bool {
    private::open(path).is_ok_and(|(file, _)| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
}

/// Changes as lines, and how many.
fn text(sealer: &Sealer, changes: &[Change]) -> io::Result<(String, usize)> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let (mut text, mut lines) = (String::new(), 0);
    for bytes in changes.iter().filter_map(|change| change.write(now)) {
        let mut once = [0; 12];
        getrandom::fill(&mut once).map_err(|_| io::Error::other("no random bytes"))?;
        text.push_str(&sealer.close(bytes, once));
        text.push('\n');
        lines += 1;
    }
    Ok((text, lines))
}

/// The sessions that a file leaves open, in the order in which they were opened. A line that cannot be read counts for nothing.
fn sessions(file: &mut File, sealer: &Sealer) -> Vec<(Place, Kept)> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut open = HashMap::<Place, (usize, Kept)>::new();
    let lines = BufReader::new(file.take(FILE_BYTES_MAX)).split(b'\n').map_while(Result::ok);
    for (number, line) in lines.enumerate() {
        let line = std::str::from_utf8(&line).unwrap_or_default();
        let read = sealer.open(line).and_then(|bytes| Change::read(&bytes));
        match read {
            Some((Change::Open(place, kept), at)) if now.saturating_sub(Duration::from_millis(at)) < HOLDS => {
                open.insert(place, (number, kept));
            }
            Some((Change::Open(place, _), _)) => _ = open.remove(&place),
            Some((Change::Over(place, id), _)) if open.get(&place).is_some_and(|(_, kept)| kept.id == id) => {
                open.remove(&place);
            }
            Some((Change::Over(..), _)) => {}
            None => {}
        }
    }
    let mut open: Vec<_> = open.into_iter().map(|(place, (number, kept))| (number, place, kept)).collect();
    open.sort_by_key(|(number, ..)| *number);
    let surplus = open.len().saturating_sub(SESSIONS_MAX);
    open.into_iter().skip(surplus).map(|(_, place, kept)| (place, kept)).collect()
}
