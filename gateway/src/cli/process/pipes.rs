//! Stdin and stdout, as a host has made them: pipes and sockets are read and written by the runtime itself, which costs a message a
//! third of what a thread beside it does. What cannot be waited for, a file or a terminal, has that thread.

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Stdin, Stdout};
use tokio::net::{UnixStream, unix::pipe};

/// What frames are read from.
pub(crate) struct Input {
    way: In,
    _before: Option<Blocking>,
}

enum In {
    Pipe(pipe::Receiver),
    Socket(UnixStream),
    Other(Stdin),
}

/// What frames are written to.
pub(crate) struct Output {
    way: Out,
    _before: Option<Blocking>,
}

enum Out {
    Pipe(pipe::Sender),
    Socket(UnixStream),
    Other(Stdout),
}

impl Input {
    /// Stdin.
    pub(crate) fn stdin() -> Self {
        Self::of(io::stdin().as_fd()).unwrap_or_else(|| Self { way: In::Other(tokio::io::stdin()), _before: None })
    }

    /// What tells when its other end is closed.
    pub(crate) fn other_end(&self) -> OtherEnd {
        match &self.way {
            In::Pipe(pipe) => pipe.as_fd().try_clone_to_owned().map_or(OtherEnd::Unknown, OtherEnd::Pipe),
            In::Socket(socket) => socket.as_fd().try_clone_to_owned().map_or(OtherEnd::Unknown, OtherEnd::Socket),
            // A file has none, and a terminal tells of its own only when it is read.
            In::Other(_) => OtherEnd::Unknown,
        }
    }

    /// A file that the runtime can wait for.
    pub(crate) fn of(file: BorrowedFd<'_>) -> Option<Self> {
        let (kind, before) = look(file)?;
        let own = file.try_clone_to_owned().ok()?;
        let way = match kind {
            FileType::Fifo => In::Pipe(pipe::Receiver::from_owned_fd(own).ok()?),
            _ => In::Socket(socket(own)?),
        };
        Some(Self { way, _before: Some(before) })
    }
}

/// The other end of what is read from.
pub(crate) enum OtherEnd {
    Pipe(OwnedFd),
    Socket(OwnedFd),
    Unknown,
}

impl OtherEnd {
    /// Resolves once it is closed, whatever lies unread before that; never, where the system does not say so.
    pub(crate) async fn closed(&self) {
        // Urgent data is what nobody sends here: what is waited for is the end alone, and no message wakes who waits.
        let ready = match self {
            Self::Pipe(own) => match own.try_clone().and_then(pipe::Receiver::from_owned_fd) {
                Ok(pipe) => pipe.ready(Interest::PRIORITY).await,
                Err(error) => Err(error),
            },
            Self::Socket(own) => match own.try_clone().ok().and_then(socket) {
                Some(socket) => socket.ready(Interest::PRIORITY).await,
                None => Err(io::ErrorKind::Unsupported.into()),
            },
            Self::Unknown => Err(io::ErrorKind::Unsupported.into()),
        };
        if !ready.is_ok_and(|ready| ready.is_read_closed()) {
            std::future::pending().await
        }
    }
}

impl Output {
    /// Stdout.
    pub(crate) fn stdout() -> Self {
        // Whoever writes to stderr does not know that there may be no room just now.
        let is_shared = is_same(io::stdout().as_fd(), io::stderr().as_fd());
        let own = if is_shared { None } else { Self::of(io::stdout().as_fd()) };
        own.unwrap_or_else(|| Self { way: Out::Other(tokio::io::stdout()), _before: None })
    }

    /// Resolves when nobody reads it any more, without a write; never, where the system does not say so.
    pub(crate) fn gone(&self) -> impl Future<Output = ()> + use<> {
        let own = match &self.way {
            Out::Pipe(pipe) => {
                pipe.as_fd().try_clone_to_owned().ok().and_then(|own| pipe::Sender::from_owned_fd(own).ok())
            }
            // The end of a socket is the end of what is read from it, too.
            Out::Socket(_) | Out::Other(_) => None,
        };
        async move {
            match own {
                Some(pipe) if pipe.ready(Interest::ERROR).await.is_ok() => {}
                _ => std::future::pending().await,
            }
        }
    }

    fn of(file: BorrowedFd<'_>) -> Option<Self> {
        let (kind, before) = look(file)?;
        let own = file.try_clone_to_owned().ok()?;
        let way = match kind {
            FileType::Fifo => Out::Pipe(pipe::Sender::from_owned_fd(own).ok()?),
            _ => Out::Socket(socket(own)?),
        };
        Some(Self { way, _before: Some(before) })
    }
}

/// What kind of file it is, where the runtime can wait for it, and how it is left as it was.
fn look(file: BorrowedFd<'_>) -> Option<(FileType, Blocking)> {
    let kind = FileType::from_raw_mode(fstat(file).ok()?.st_mode);
    let flags = fcntl_getfl(file).ok()?;
    let before = Blocking { file: file.try_clone_to_owned().ok()?, flags };
    matches!(kind, FileType::Fifo | FileType::Socket).then_some((kind, before))
}

fn socket(own: OwnedFd) -> Option<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(own);
    socket.set_nonblocking(true).ok()?;
    UnixStream::from_std(socket).ok()
}

fn is_same(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    let place = |file| fstat(file).map(|stat| (stat.st_dev, stat.st_ino));
    matches!((place(one), place(other)), (Ok(one), Ok(other)) if one == other)
}

/// Gives a file its flags back: it may be that of others, too, who do not expect that it does not wait.
pub(crate) struct Blocking {
    file: OwnedFd,
    flags: OFlags,
}

impl Drop for Blocking {
    fn drop(&mut self) {
        // Who cannot be given them back is gone.
        let _ = fcntl_setfl(&self.file, self.flags);
    }
}

impl AsyncRead for Input {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.way {
            In::Pipe(pipe) => Pin::new(pipe).poll_read(cx, into),
            In::Socket(socket) => Pin::new(socket).poll_read(cx, into),
            In::Other(stdin) => Pin::new(stdin).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Output {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.way {
            Out::Pipe(pipe) => Pin::new(pipe).poll_write(cx, bytes),
            Out::Socket(socket) => Pin::new(socket).poll_write(cx, bytes),
            Out::Other(stdout) => Pin::new(stdout).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.way {
            Out::Other(stdout) => Pin::new(stdout).poll_flush(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.way {
            Out::Pipe(pipe) => Pin::new(pipe).poll_shutdown(cx),
            Out::Socket(socket) => Pin::new(socket).poll_shutdown(cx),
            Out::Other(stdout) => Pin::new(stdout).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn pipes_and_sockets_are_the_runtimes_and_are_left_as_they_were() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut input = Input::of(reader.as_fd()).unwrap();
        assert!(matches!(input.way, In::Pipe(_)) && fcntl_getfl(&reader).unwrap().contains(OFlags::NONBLOCK));
        writer.write_all(b"abc").unwrap();
        let mut read = [0; 3];
        input.read_exact(&mut read).await.unwrap();
        drop(input);
        assert!(&read == b"abc" && !fcntl_getfl(&reader).unwrap().contains(OFlags::NONBLOCK));
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        let (mut output, mut input) = (Output::of(one.as_fd()).unwrap(), Input::of(other.as_fd()).unwrap());
        assert!(matches!((&output.way, &input.way), (Out::Socket(_), In::Socket(_))));
        output.write_all(b"xyz").await.unwrap();
        input.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"xyz");
    }

    #[tokio::test]
    async fn a_pipe_that_nobody_reads_any_more_is_known_without_a_write() {
        let (reader, writer) = io::pipe().unwrap();
        let mut output = Output::of(writer.as_fd()).unwrap();
        let mut gone = std::pin::pin!(output.gone());
        output.write_all(b"abc").await.unwrap();
        let early = std::future::poll_fn(|cx| Poll::Ready(gone.as_mut().poll(cx).is_ready())).await;
        assert!(!early, "it is there");
        drop(reader);
        tokio::time::timeout(std::time::Duration::from_secs(60), gone).await.expect("it is gone");
    }

    #[tokio::test]
    async fn an_other_end_that_is_closed_is_known_before_what_it_wrote_is_read() {
        for kind in ["pipe", "socket", "half a socket"] {
            let (reader, writer): (OwnedFd, OwnedFd) = match kind {
                "pipe" => io::pipe().map(|(reader, writer)| (reader.into(), writer.into())).unwrap(),
                _ => std::os::unix::net::UnixStream::pair().map(|(one, other)| (one.into(), other.into())).unwrap(),
            };
            let mut input = Input::of(reader.as_fd()).unwrap();
            let mut writer = std::fs::File::from(writer);
            writer.write_all(b"abc").unwrap();
            let end = input.other_end();
            let mut closed = std::pin::pin!(end.closed());
            let early = tokio::time::timeout(std::time::Duration::from_millis(20), closed.as_mut()).await;
            assert!(early.is_err(), "it is open: {kind}");
            let kept = (kind == "half a socket").then(|| writer.try_clone().unwrap());
            if let Some(socket) = &kept {
                rustix::net::shutdown(socket, rustix::net::Shutdown::Write).unwrap();
            }
            drop(writer);
            tokio::time::timeout(std::time::Duration::from_secs(60), closed).await.expect(kind);
            let mut read = [0; 3];
            input.read_exact(&mut read).await.unwrap();
            assert_eq!(&read, b"abc");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_waited_for_has_a_thread() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(Input::of(file.as_fd()).is_none() && Output::of(file.as_fd()).is_none());
        let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
        assert!(Input::of(file.as_fd()).is_none());
        // The wrong end of a pipe is none.
        let (reader, writer) = io::pipe().unwrap();
        assert!(Output::of(reader.as_fd()).is_none() && Input::of(writer.as_fd()).is_none());
        assert!(is_same(reader.as_fd(), reader.as_fd()) && !is_same(file.as_fd(), reader.as_fd()));
    }
}
