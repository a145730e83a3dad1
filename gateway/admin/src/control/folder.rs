//! Where control sockets are: in a folder of this user alone, one for each gateway, named by its configuration, its mode and its
//! process.

use crate::secrets::private;
use sha2::{Digest, Sha256};
use socket2::{Domain, SockAddr, Socket, Type};
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use tokio::net::UnixListener;

/// What the names of sockets end in.
const SUFFIX: &str = ".sock";
/// So many sockets of a folder are looked at, among so many entries: each configuration leaves a lock and a log there.
const ENTRIES_MAX: usize = 1024;
const READ_MAX: usize = 65_536;
/// A log that is longer is emptied before a gateway writes to it: what an earlier one said last can be read.
const LOG_BYTES_KEPT: u64 = 256 * 1024;
/// So many gateways may have the same process number: each in its own container, with this folder in common.
const SAME_MAX: u32 = 16;

/// How a gateway serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Many clients, over HTTP.
    Serve,
    /// The one client on stdin and stdout.
    Stdio,
    /// Those that `trunkline stdio --shared` brings.
    Shared,
}

impl Mode {
    /// The word for it, which is that of the command.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Serve => "serve",
            Self::Stdio => "stdio",
            Self::Shared => "shared",
        }
    }

    /// What a person types to start such a gateway.
    pub fn command(self) -> &'static str {
        match self {
            Self::Serve => "trunkline serve",
            Self::Stdio => "trunkline stdio",
            Self::Shared => "trunkline stdio --shared",
        }
    }

    /// Whether further clients can join it.
    pub fn is_of_many(self) -> bool {
        self != Self::Stdio
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Serve, Self::Stdio, Self::Shared].into_iter().find(|mode| mode.as_str() == word)
    }
}

/// A gateway that runs.
#[derive(Debug)]
pub struct Running {
    /// A connection to it.
    pub stream: UnixStream,
    /// How it serves.
    pub mode: Mode,
    /// Its process, by the number that it sees itself.
    pub pid: u32,
    configuration: String,
}

impl Running {
    /// Whether it was started with these files, in this order.
    pub fn is_of(&self, files: &[PathBuf]) -> bool {
        self.configuration == digest(files)
    }
}

/// A socket that is listened on; dropping it removes it.
#[derive(Debug)]
pub struct Bound {
    pub(super) listener: UnixListener,
    folder: Folder,
    name: String,
}

impl Drop for Bound {
    fn drop(&mut self) {
        // It may be gone with its folder.
        let _ = fs::remove_file(self.folder.entry(&self.name));
    }
}

/// Listens at a socket in the first of these folders that can have one. What earlier gateways have left there is removed.
pub fn bind(folders: &[PathBuf], files: &[PathBuf], mode: Mode) -> io::Result<Bound> {
    let mut failed = no_folder();
    for path in folders {
        match Folder::make(path).and_then(|folder| folder.listen(files, mode)) {
            Ok(bound) => return Ok(bound),
            Err(error) => failed = io::Error::other(format!("{}: {error}", path.display())),
        }
    }
    Err(failed)
}

/// What one process of this user holds at a time for a configuration: whoever has it may start the gateway that others join.
#[derive(Debug)]
pub struct StartLock(#[expect(dead_code, reason = "closing it gives it up")] File);

impl StartLock {
    /// Takes it in the first of these folders that can have one; `None` while another process has it.
    pub fn try_take(folders: &[PathBuf], files: &[PathBuf]) -> io::Result<Option<Self>> {
        let (_, file) = beside(folders, &format!("{}.lock", digest(files)), false)?;
        match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// The file into which a gateway that is started for this configuration writes its log, emptied where it is long; and where it is.
pub fn start_log(folders: &[PathBuf], files: &[PathBuf]) -> io::Result<(PathBuf, File)> {
    beside(folders, &format!("{}.log", digest(files)), true)
}

/// A file of this user alone in the first of these folders that can have one, for appending to it. What was there before may be somebody
/// else's: others could once write to the folder.
fn beside(folders: &[PathBuf], name: &str, is_emptied: bool) -> io::Result<(PathBuf, File)> {
    let mut failed = no_folder();
    for path in folders {
        let opened = Folder::make(path).map_err(|error| (path.clone(), error)).and_then(|folder| {
            let file = private::append(&folder.entry(name)).and_then(|file| {
                let seen = file.metadata()?;
                if seen.nlink() > 1 {
                    return Err(io::Error::other("it has a second name (a hard link); delete it"));
                }
                if is_emptied && seen.len() > LOG_BYTES_KEPT {
                    file.set_len(0)?;
                }
                Ok(file)
            });
            file.map_err(|error| (path.join(name), error))
        });
        match opened {
            Ok(file) => return Ok((path.join(name), file)),
            Err((path, error)) => failed = io::Error::other(format!("{}: {error}", path.display())),
        }
    }
    Err(failed)
}

fn no_folder() -> io::Error {
    io::Error::other("none of XDG_RUNTIME_DIR, XDG_STATE_HOME and HOME is set")
}

/// The gateways of this user that run, those with a socket in the first folder first.
pub fn running(folders: &[PathBuf]) -> Vec<Running> {
    let mut found = Vec::new();
    for folder in folders.iter().filter_map(|path| Folder::open(path).ok()) {
        for name in folder.sockets() {
            let Some((configuration, mode, pid)) = parts(&name) else { continue };
            if let Ok(stream) = folder.connect(&name) {
                found.push(Running { stream, mode, pid, configuration });
            }
        }
    }
    found
}

/// A folder that is ours alone, held open: whatever its path leads to later, this one is meant.
#[derive(Debug)]
struct Folder(File);

impl Folder {
    /// Opens it; made first where it is not there.
    fn make(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        Self::open(path)
    }

    fn open(path: &Path) -> io::Result<Self> {
        let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NOFOLLOW;
        let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
        let folder = opened.map_err(|error| match error.raw_os_error() {
            Some(code)
                if code == rustix::io::Errno::LOOP.raw_os_error()
                    || code == rustix::io::Errno::NOTDIR.raw_os_error() =>
            {
                io::Error::other("not a folder; delete it")
            }
            _ => error,
        })?;
        let seen = folder.metadata()?;
        if seen.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other("it belongs to another user"));
        }
        if seen.mode() & 0o077 != 0 {
            folder.set_permissions(PermissionsExt::from_mode(0o700))?;
        }
        Ok(Self(folder))
    }

    /// An entry of it, by a path that is short whatever its own is: that of a socket has 107 bytes at most.
    fn entry(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.0.as_raw_fd()))
    }

    /// The names of our sockets in it.
    fn sockets(&self) -> Vec<String> {
        let entries = fs::read_dir(self.entry(".")).into_iter().flatten().flatten().take(READ_MAX);
        let ours = rustix::process::geteuid().as_raw();
        let named = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok().filter(|name| parts(name).is_some())?;
            let seen = fs::symlink_metadata(self.entry(&name)).ok()?;
            (seen.file_type().is_socket() && seen.uid() == ours).then_some(name)
        });
        let mut names: Vec<_> = named.take(ENTRIES_MAX).collect();
        names.sort();
        names
    }

    /// A connection to who listens at a socket. A gateway that hangs, and takes no more of them, holds up nobody.
    fn connect(&self, name: &str) -> io::Result<UnixStream> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.connect(&SockAddr::unix(self.entry(name))?)?;
        socket.set_nonblocking(false)?;
        let peer = rustix::net::sockopt::socket_peercred(&socket)?.uid.as_raw();
        match peer == rustix::process::geteuid().as_raw() || peer == 0 {
            true => Ok(socket.into()),
            false => Err(io::Error::other("another user listens there")),
        }
    }

    /// Whether nobody listens at a socket any more.
    fn is_left(&self, name: &str) -> bool {
        self.connect(name).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    }

    fn listen(self, files: &[PathBuf], mode: Mode) -> io::Result<Bound> {
        for left in self.sockets().iter().filter(|name| self.is_left(name)) {
            // Another gateway may have been quicker.
            let _ = fs::remove_file(self.entry(left));
        }
        let begun = self.entry(&format!(".{:016x}", getrandom::u64().map_err(io::Error::other)?));
        // It appears under its name once it is listened on: until then it would be taken for one that was left.
        let listener = UnixListener::bind(&begun)?;
        let named =
            fs::set_permissions(&begun, PermissionsExt::from_mode(0o600)).and_then(|()| self.free_name(files, mode));
        let renamed = named.and_then(|name| fs::rename(&begun, self.entry(&name)).map(|()| name));
        match renamed {
            Ok(name) => Ok(Bound { listener, folder: self, name }),
            Err(error) => {
                let _ = fs::remove_file(&begun);
                Err(error)
            }
        }
    }

    fn free_name(&self, files: &[PathBuf], mode: Mode) -> io::Result<String> {
        let (configuration, mode, pid) = (digest(files), mode.as_str(), std::process::id());
        let mut names = (0..SAME_MAX).map(|same| match same {
            0 => format!("{configuration}.{mode}.{pid}{SUFFIX}"),
            same => format!("{configuration}.{mode}.{pid}.{same}{SUFFIX}"),
        });
        let is_free = |name: &String| fs::symlink_metadata(self.entry(name)).is_err();
        names.find(is_free).ok_or_else(|| io::Error::other("too many gateways have a socket there"))
    }
}

/// What the name of a socket says: the configuration, the mode, the process.
fn parts(name: &str) -> Option<(String, Mode, u32)> {
    let mut parts = name.strip_suffix(SUFFIX)?.split('.');
    let (configuration, mode, pid) = (parts.next()?, Mode::parse(parts.next()?)?, parts.next()?.parse().ok()?);
    let is_digest = configuration.len() == DIGITS && configuration.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| (configuration.to_owned(), mode, pid))
}

/// So many digits of the digest stand in a name.
const DIGITS: usize = 16;

/// Stands for these files, in this order, whatever they hold: a file may be half saved, or gone for a moment.
fn digest(files: &[PathBuf]) -> String {
    let mut hash = Sha256::new();
    for file in files {
        hash.update(settled(file).as_os_str().as_bytes());
        hash.update([0]);
    }
    hash.finalize().iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect()
}

/// The file's name in its folder, however that was written.
fn settled(file: &Path) -> PathBuf {
    let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let folder = whole.parent().and_then(|folder| fs::canonicalize(folder).ok());
    match (folder, whole.file_name()) {
        (Some(folder), Some(name)) => folder.join(OsStr::new(name)),
        _ => whole,
    }
}

#[cfg(test)]
mod tests;
