//! Which files are read, and how: regular ones, of a bounded size.

use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::secrets::{decoded, private, visible};

use super::environment::Environment;

/// Larger than any configuration that a person keeps.
const MOST_BYTES: u64 = 1 << 20;
/// Larger than the file of any host: Claude Code keeps its whole state in the file of its servers.
const HOST_BYTES_MAX: u64 = 32 << 20;
/// Larger than any secret.
const SECRET_BYTES_MAX: u64 = 64 << 10;

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
    places.into_iter().flatten().find(|path| is_there(path)).into_iter().collect()
}

/// Whether something stands there, or may: in a folder that is there and lets nobody look. Of what lies deeper below such a folder nothing
/// is known, and a home that is another user's has none of the files that are looked for in a home.
pub(crate) fn is_there(path: &Path) -> bool {
    let is_seen = |path: &Path| path.symlink_metadata().map(drop);
    match is_seen(path) {
        Ok(()) => true,
        Err(error) => {
            error.kind() == ErrorKind::PermissionDenied && path.parent().is_some_and(|folder| is_seen(folder).is_ok())
        }
    }
}

/// What a file that a reference names holds.
pub(crate) struct Secret {
    pub(crate) text: String,
    /// What should be mended about the file.
    pub(crate) doubt: Option<Doubt>,
}

/// Who else has to do with a file, and what ends that.
pub(crate) struct Doubt {
    pub(crate) why: String,
    pub(crate) fix: String,
}

/// What a file that a reference names holds. It may be a link, and root's own: so are secrets mounted. Never a pipe or a device.
pub(crate) fn secret(path: &Path) -> Result<Secret, String> {
    let text = private::off_the_workers(|| read_bounded(path, SECRET_BYTES_MAX)).map_err(|why| why.to_string())?;
    Ok(Secret { text, doubt: doubt(path) })
}

/// Who else may change the file, or put another in its place, or read it where that is not the mount's own doing.
fn doubt(path: &Path) -> Option<Doubt> {
    let real = path.canonicalize().ok()?;
    changed_by_others(path, &real).or_else(|| {
        let is_open = real.metadata().ok()?.mode() & 0o004 != 0 && !is_read_only(&real);
        is_open
            .then(|| doubtful("every user can read it".to_owned(), "o-r", &real))
            .map(|doubt| Doubt { fix: format!("{}, or mount it read-only", doubt.fix), ..doubt })
    })
}

/// Who else may change a file, or put another in its place, that everybody may read.
pub(crate) fn writers(path: &Path) -> Option<Doubt> {
    let real = path.canonicalize().ok()?;
    changed_by_others(path, &real).filter(|_| !is_read_only(&real))
}

/// That others may change a file that is really there, or put another in its place.
fn changed_by_others(path: &Path, real: &Path) -> Option<Doubt> {
    if real.metadata().ok()?.mode() & 0o022 != 0 {
        return Some(doubtful("other users can write it".to_owned(), "go-w", real));
    }
    // The folder of the link and that of the file: who can write either decides what is read.
    let open = [path.parent(), real.parent()].into_iter().flatten().find(|folder| {
        let mode = folder.metadata().map(|seen| seen.mode()).unwrap_or_default();
        // In a folder such as /tmp nobody but its owner can take a file away.
        mode & 0o022 != 0 && mode & 0o1000 == 0
    });
    open.map(|folder| doubtful(format!("other users can write its folder {}", folder.display()), "go-w", folder))
}

fn doubtful(why: String, mode: &str, path: &Path) -> Doubt {
    Doubt { why, fix: format!("run `chmod {mode} {}`", quoted(&shown(path))) }
}

fn is_read_only(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|mount| mount.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

/// A path for a person: bytes that are no UTF-8 are written out, as is what a terminal would obey.
pub(crate) fn shown(path: &Path) -> String {
    visible(&decoded(path.as_os_str().as_bytes())).into_owned()
}

/// A word, such as a path, as it is typed in a shell.
pub(crate) fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "_./-+=@:,%".contains(char);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", word.replace('\'', "'\\''"))),
    }
}

/// A path as a text that is written into a file; an error says which part of it cannot be one.
pub(crate) fn written(path: &Path) -> Result<&str, String> {
    path.to_str().ok_or_else(|| {
        let odd = path.components().find(|part| part.as_os_str().to_str().is_none());
        let odd = odd.map(|part| shown(Path::new(part.as_os_str()))).unwrap_or_default();
        format!(
            "the path {} cannot be written into a file: `{odd}` in it is not UTF-8. Rename that, or move what is in it elsewhere",
            shown(path)
        )
    })
}

/// A byte order mark is what some editors put before a text, and no part of it.
pub(crate) const MARK: char = '\u{feff}';

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("no such file")]
    Missing,
    #[error("it is a link to a file that is not there")]
    Dangling,
    #[error("permission denied")]
    Denied,
    #[error("it is a folder")]
    Folder,
    #[error("a part of its path is a file and no folder")]
    InFile,
    #[error("it is a link that leads back to itself")]
    Loop,
    /// A pipe, a socket, a device.
    #[error("not a regular file")]
    Special,
    #[error("{}", too_large(*.0))]
    TooLarge(u64),
    #[error("not UTF-8 text")]
    NotText,
    #[error("{0}")]
    Failed(std::io::Error),
}

impl Unreadable {
    /// What to do about a configuration that is not read.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        Some(match self {
            Self::Denied => "see with `ls -l` who may read it, and let this user",
            Self::Folder => "name a file in it",
            Self::Dangling | Self::Loop => "remove the link, or let it lead to a file",
            // Such as /dev/null.
            Self::Special => {
                "to run without a file, name an empty one, and set variables such as TRUNKLINE_UPSTREAMS__FILES__COMMAND"
            }
            Self::TooLarge(_) => "no configuration is so large: see whether another file is meant",
            Self::NotText => "save it as UTF-8",
            Self::InFile => "move that file away, or write another path",
            Self::Missing | Self::Failed(_) => return None,
        })
    }

    /// What to do about the file of a host that is not read: no command of ours makes it.
    pub(crate) fn advice_for_host(&self) -> Option<&'static str> {
        match self {
            Self::Folder | Self::Special => Some("the host reads no such thing: move it away, or name another file"),
            Self::TooLarge(_) => Some("no host's file is so large: see whether another file is meant"),
            _ => self.advice(),
        }
    }
}

impl From<std::io::Error> for Unreadable {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound => Self::Missing,
            ErrorKind::PermissionDenied => Self::Denied,
            ErrorKind::NotADirectory => Self::InFile,
            _ if Errno::from_io_error(&error) == Some(Errno::LOOP) => Self::Loop,
            _ => Self::Failed(error),
        }
    }
}

/// The text of a file; an error says why there is none.
pub(crate) fn read(path: &Path) -> Result<String, Unreadable> {
    read_bounded(path, bytes_max(path))
}

/// The text of a file with its byte order mark, for what writes it back. It may be as large as one of the name `like`.
pub(crate) fn read_with_mark(path: &Path, like: &Path) -> Result<String, Unreadable> {
    read_whole(path, bytes_max(like))
}

/// So large a file of this name may be.
pub(crate) fn bytes_max(path: &Path) -> u64 {
    let is_json = path.extension().is_some_and(|ending| ending == "json" || ending == "jsonc" || ending == "jsonl");
    if is_json { HOST_BYTES_MAX } else { MOST_BYTES }
}

fn read_bounded(path: &Path, most: u64) -> Result<String, Unreadable> {
    let text = read_whole(path, most)?;
    Ok(text.strip_prefix(MARK).map(str::to_owned).unwrap_or(text))
}

fn read_whole(path: &Path, most: u64) -> Result<String, Unreadable> {
    // Looked at before it is opened, which some devices would act on; and again, since another may bear the name by then. A pipe
    // is not waited for.
    let seen = path.metadata().map_err(|error| match Unreadable::from(error) {
        Unreadable::Missing if path.is_symlink() => Unreadable::Dangling,
        why => why,
    })?;
    if !seen.is_file() {
        return Err(if seen.is_dir() { Unreadable::Folder } else { Unreadable::Special });
    }
    let flags = (OFlags::NONBLOCK | OFlags::CLOEXEC).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(Unreadable::Special);
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(Unreadable::TooLarge(most));
    }
    String::from_utf8(bytes).map_err(|_| Unreadable::NotText)
}

/// What is said of a file that has more bytes.
pub(crate) fn too_large(most: u64) -> String {
    match most >> 20 {
        0 => format!("larger than {} KiB", most >> 10),
        mebibytes => format!("larger than {mebibytes} MiB"),
    }
}
