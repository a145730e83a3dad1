//! Marks that outlive the run, a line each in a file of the state folder: of sessions that have ended, of runs that gave out ids. Bounded.

use crate::secrets::private;
use std::collections::{HashSet, VecDeque};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So many are known, the last ones.
const KNOWN_MAX: usize = 16_384;
/// So many lines of the file count, the last ones; with twice as many it is written anew.
const LINES_MAX: usize = 4096;
/// A larger file is none of ours.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The marks of one kind.
pub(crate) struct Marks {
    /// The file; none where nothing is kept.
    file: Option<PathBuf>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    all: HashSet<Arc<str>>,
    /// In the order in which they came.
    order: VecDeque<Arc<str>>,
    /// The file was read.
    is_read: bool,
    /// So many lines it has.
    lines: usize,
}

impl Marks {
    /// Those in the file of this name in a folder.
    pub(crate) fn kept_in(folder: Option<&Path>, name: &str) -> Self {
        Self { file: folder.map(|folder| folder.join(name)), known: Mutex::default() }
    }

    /// Whether they outlive the run.
    pub(crate) fn are_kept(&self) -> bool {
        self.file.is_some()
    }

    /// For this run alone.
    pub(crate) fn note(&self, mark: &Arc<str>) {
        self.lock().note(mark);
    }

    /// For the next runs.
    pub(crate) fn keep(&self, mark: &str) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut known = self.lock();
        known.read_once(file);
        private::off_the_workers(|| known.write(file, mark))
    }

    /// Whether there is this one.
    pub(crate) fn has(&self, mark: &str) -> bool {
        let mut known = self.lock();
        if let Some(file) = &self.file {
            known.read_once(file);
        }
        known.all.contains(mark)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn note(&mut self, mark: &Arc<str>) {
        if self.all.insert(mark.clone()) {
            self.order.push_back(mark.clone());
        }
        if self.order.len() > KNOWN_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.all.remove(&oldest);
        }
    }

    /// What earlier runs have written.
    fn read_once(&mut self, file: &Path) {
        if std::mem::replace(&mut self.is_read, true) {
            return;
        }
        let lines = private::off_the_workers(|| lines(file));
        self.lines = lines.len();
        lines.iter().rev().take(LINES_MAX).rev().for_each(|line| self.note(line));
    }

    fn write(&mut self, path: &Path, mark: &str) -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        private::is_private_folder(folder)?;
        if self.lines >= 2 * LINES_MAX {
            let all = lines(path);
            let last = &all[all.len().saturating_sub(LINES_MAX)..];
            let (begun, text) = (path.with_extension(std::process::id().to_string()), last.join("\n") + "\n");
            // What bears this name was left by a process that has ended.
            let _ = std::fs::remove_file(&begun);
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&begun)?;
            file.write_all(text.as_bytes()).and_then(|()| std::fs::rename(&begun, path))?;
            self.lines = last.len();
        }
        let mut file = private::append(path)?;
        // In one piece: other gateways of this user write there, too.
        file.write_all(format!("{mark}\n").as_bytes())?;
        self.lines += 1;
        Ok(())
    }
}

/// The lines of the file; none where it cannot be read, or may be somebody else's.
fn lines(file: &Path) -> Vec<Arc<str>> {
    let text = private::read(file, FILE_BYTES_MAX).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().map(Arc::from).collect()
}
