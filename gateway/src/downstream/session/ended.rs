//! The sessions whose sealed ids still say that they may be revived, and that have ended: in this run, or by their clients or with their token in an earlier one.

use super::client::Session;
use crate::secrets::private;
use std::collections::{HashSet, VecDeque};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So many are known, those that have ended last.
const ENDED_MAX: usize = 16_384;
/// The file of those that clients have ended, or that ended with their token, in the folder of our state: a line each.
const FILE: &str = "ended-sessions";
/// So many lines of it count, the last ones; with twice as many it is written anew.
const LINES_MAX: usize = 4096;
/// A larger file is none of ours.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Those that are not revived.
pub(crate) struct Ended {
    folder: Option<PathBuf>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    all: HashSet<Arc<str>>,
    /// In the order in which they ended.
    order: VecDeque<Arc<str>>,
    /// The file was read.
    is_read: bool,
    /// So many lines it has.
    lines: usize,
}

impl Ended {
    /// Those that clients end are kept in this folder for the next run.
    pub(crate) fn kept_in(folder: Option<PathBuf>) -> Self {
        Self { folder, known: Mutex::default() }
    }

    /// A session has ended. One that this run has opened needs no place: its id says that, and the table that it is gone.
    pub(crate) fn note(&self, session: &Session) {
        if session.is_revived {
            self.lock().note(&session.short);
        }
    }

    /// The client of a session has ended it, or its token is known no more: the next run does not revive it either.
    pub(crate) fn keep(&self, session: &Session) {
        let Some(folder) = self.folder.as_deref().filter(|_| session.short != session.id) else { return };
        let mut known = self.lock();
        known.read_once(folder);
        if let Err(error) = private::off_the_workers(|| known.write(folder, &session.short)) {
            tracing::debug!(%error, "an ended session is not kept: the next run would revive it for its client");
        }
    }

    /// Whether the session with this short id has ended.
    pub(crate) fn has(&self, short: &str) -> bool {
        let mut known = self.lock();
        if let Some(folder) = &self.folder {
            known.read_once(folder);
        }
        known.all.contains(short)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn note(&mut self, short: &Arc<str>) {
        if self.all.insert(short.clone()) {
            self.order.push_back(short.clone());
        }
        if self.order.len() > ENDED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.all.remove(&oldest);
        }
    }

    /// What earlier runs have written.
    fn read_once(&mut self, folder: &Path) {
        if std::mem::replace(&mut self.is_read, true) {
            return;
        }
        let lines = private::off_the_workers(|| lines(folder));
        self.lines = lines.len();
        lines.iter().rev().take(LINES_MAX).rev().for_each(|line| self.note(line));
    }

    fn write(&mut self, folder: &Path, short: &str) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        private::is_private_folder(folder)?;
        if self.lines >= 2 * LINES_MAX {
            let all = lines(folder);
            let last = &all[all.len().saturating_sub(LINES_MAX)..];
            let (begun, text) = (folder.join(format!("{FILE}.{}", std::process::id())), last.join("\n") + "\n");
            // What bears this name was left by a process that has ended.
            let _ = std::fs::remove_file(&begun);
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&begun)?;
            file.write_all(text.as_bytes()).and_then(|()| std::fs::rename(&begun, folder.join(FILE)))?;
            self.lines = last.len();
        }
        let mut file = private::append(&folder.join(FILE))?;
        // In one piece: other gateways of this user write there, too.
        file.write_all(format!("{short}\n").as_bytes())?;
        self.lines += 1;
        Ok(())
    }
}

/// The lines of the file; none where it cannot be read, or may be somebody else's.
fn lines(folder: &Path) -> Vec<Arc<str>> {
    let text = private::read(&folder.join(FILE), FILE_BYTES_MAX).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().map(Arc::from).collect()
}
