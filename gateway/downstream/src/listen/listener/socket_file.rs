//! The file of a socket: in a folder of this user alone, and for this user alone.

use rustix::fs::{FlockOperation, OFlags, flock};
use socket2::{Domain, SockAddr, Socket, Type};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::net::UnixListener;

/// The file of a socket that is listened on. Dropping it removes the file, unless another has taken its place.
#[derive(Debug)]
pub(crate) struct SocketFile {
    folder: File,
    name: OsString,
    /// The device and the number of the file.
    identity: (u64, u64),
}

impl SocketFile {
    /// Listens at a path. What a gateway that is gone has left there is replaced; where somebody listens, nothing is.
    pub(crate) fn bind(path: &Path) -> io::Result<(UnixListener, Self)> {
        let odd = || io::Error::new(io::ErrorKind::InvalidInput, "the path names no file in a folder");
        let (folder, name) = path.parent().zip(path.file_name()).ok_or_else(odd)?;
        let opened =
            open(folder).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?;
        // Of two that look at once whether somebody listens, the second sees the first.
        flock(&opened, FlockOperation::LockExclusive)?;
        let bound = take_place(&opened, name);
        flock(&opened, FlockOperation::Unlock)?;
        let (listener, identity) = bound?;
        Ok((listener, Self { folder: opened, name: name.to_owned(), identity }))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let path = entry(&self.folder, &self.name);
        if fs::symlink_metadata(&path).is_ok_and(|seen| identity(&seen) == self.identity) {
            // It may be gone with its folder.
            let _ = fs::remove_file(path);
        }
    }
}

/// Opens a folder that is ours alone; made first where it is not there.
fn open(path: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let folder = opened.map_err(|error| match error.raw_os_error() {
        Some(code)
            if code == rustix::io::Errno::LOOP.raw_os_error() || code == rustix::io::Errno::NOTDIR.raw_os_error() =>
        {
            io::Error::other("is no folder, or a link to one; name the folder itself")
        }
        _ => error,
    })?;
    let seen = folder.metadata()?;
    if seen.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("the folder belongs to another user; name a socket in a folder of its own"));
    }
    if seen.mode() & 0o077 != 0 {
        let mode = seen.mode() & 0o777;
        let text = format!(
            "other users may look into the folder (mode {mode:o}); `chmod 700` it, or name a socket in a folder of its own"
        );
        return Err(io::Error::other(text));
    }
    Ok(folder)
}

/// An entry of a folder that is held open, by a path that is short whatever its own is.
fn entry(folder: &File, name: &OsStr) -> PathBuf {
    Path::new(&format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name)
}

fn identity(seen: &fs::Metadata) -> (u64, u64) {
    (seen.dev(), seen.ino())
}

/// Listens under a name, unless somebody does.
fn take_place(folder: &File, name: &OsStr) -> io::Result<(UnixListener, (u64, u64))> {
    let place = entry(folder, name);
    match fs::symlink_metadata(&place) {
        Ok(seen) if !seen.file_type().is_socket() => {
            return Err(io::Error::other("there is something else at the path; delete it, or use another path"));
        }
        Ok(_) if !is_left(&place)? => {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another process listens there"));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // It appears under its name once it is listened on, and open to nobody else.
    let begun = entry(folder, OsStr::new(&format!(".{:016x}", getrandom::u64().map_err(io::Error::other)?)));
    let listener = UnixListener::bind(&begun)?;
    let named = fs::set_permissions(&begun, PermissionsExt::from_mode(0o600))
        .and_then(|()| fs::symlink_metadata(&begun))
        .and_then(|seen| fs::rename(&begun, &place).map(|()| identity(&seen)));
    named.map(|identity| (listener, identity)).inspect_err(|_| {
        let _ = fs::remove_file(&begun);
    })
}

/// Whether nobody listens at a socket any more. Who hangs, and takes no more connections, listens.
fn is_left(place: &Path) -> io::Result<bool> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    Ok(socket.connect(&SockAddr::unix(place)?).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Scratch;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    fn why(path: &Path) -> String {
        SocketFile::bind(path).expect_err("it is refused").to_string()
    }

    #[tokio::test]
    async fn the_folder_and_the_socket_are_of_this_user_alone_and_the_file_goes_with_its_listener() {
        let scratch = Scratch::new();
        let path = scratch.0.join("new/deep/mcp.sock");
        let (_listener, file) = SocketFile::bind(&path).unwrap();
        assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing else is left there");
        drop(file);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn what_is_left_is_replaced_and_whoever_listens_is_not() {
        let scratch = Scratch::new();
        let path = scratch.0.join("own/mcp.sock");
        let (listener, file) = SocketFile::bind(&path).unwrap();
        assert_eq!(SocketFile::bind(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        // As after a kill: the socket is there, and nobody listens.
        drop(listener);
        let (_second, second) = SocketFile::bind(&path).unwrap();
        drop(file);
        assert!(path.exists(), "it is the second one's by now");
        drop(second);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn folders_of_others_and_other_files_are_refused_and_left_as_they_are() {
        let scratch = Scratch::new();
        let open = scratch.0.join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, PermissionsExt::from_mode(0o750)).unwrap();
        let said = why(&open.join("mcp.sock"));
        assert!(said.contains("mode 750") && said.contains("chmod 700"), "{said}");
        assert_eq!(mode(&open), 0o750);
        fs::set_permissions(&open, PermissionsExt::from_mode(0o700)).unwrap();
        fs::write(open.join("mcp.sock"), "text").unwrap();
        assert!(why(&open.join("mcp.sock")).contains("something else"));
        assert_eq!(fs::read_to_string(open.join("mcp.sock")).unwrap(), "text");
        std::os::unix::fs::symlink(&open, scratch.0.join("link")).unwrap();
        assert!(why(&scratch.0.join("link/mcp.sock")).contains("or a link to one"));
        assert!(why(&open.join("mcp.sock/deeper.sock")).contains("mcp.sock"));
        if rustix::process::geteuid().as_raw() != 0 {
            assert!(why(Path::new("/tmp/mcp.sock")).contains("belongs to another user"));
        }
    }
}
