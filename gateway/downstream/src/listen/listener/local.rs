//! Connections over a socket of this machine: of its user and of root.

use super::accept::Accept;
use super::socket_file::SocketFile;
use crate::call::caller::Peer;
use crate::listen::connections::Connections;
use crate::runtime::complaints::{Complaints, left_unsaid};
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::net::{UnixListener, UnixStream};

/// A socket of this machine. Connections of other users are closed.
#[derive(Debug)]
pub struct LocalListener {
    listener: UnixListener,
    file: Option<SocketFile>,
    /// Where others are let in too, as long as a credential is asked for on these.
    others: Option<Arc<Connections>>,
    complaints: Complaints,
}

impl LocalListener {
    /// Listens at a path, which is in a folder of this user alone.
    pub fn bind(path: &Path) -> io::Result<Self> {
        let (listener, file) = SocketFile::bind(path)?;
        Ok(Self { listener, file: Some(file), others: None, complaints: Complaints::default() })
    }

    /// Listens at a socket that others have bound. Whom its file lets in may come with a token.
    pub fn of(socket: std::os::unix::net::UnixListener) -> io::Result<Self> {
        let listener = UnixListener::from_std(socket)?;
        Ok(Self { listener, file: None, others: None, complaints: Complaints::default() })
    }

    /// Lets users in who are not this one, as long as a credential is asked for; at a file of its own nobody else comes.
    pub fn with_others(self, room: &Arc<Connections>) -> Self {
        let others = self.file.is_none().then(|| room.clone());
        Self { others, ..self }
    }

    /// Which user is at its other end, where that one may come in.
    fn admit(&self, stream: &UnixStream) -> Option<Peer> {
        let user = stream.peer_cred().ok()?.uid();
        let is_ours = user == rustix::process::geteuid().as_raw() || user == 0;
        if is_ours || self.others.as_ref().is_some_and(|room| room.is_credential_asked()) {
            return Some(Peer::User(user));
        }
        if let Some(more) = self.complaints.take("user") {
            let more = left_unsaid(more);
            tracing::warn!(user, more, "connection of another user to the socket of clients closed");
        }
        None
    }
}

impl Accept for LocalListener {
    type Stream = UnixStream;
    type End = Peer;

    async fn next(&self) -> io::Result<(UnixStream, Peer)> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            if let Some(peer) = self.admit(&stream) {
                return Ok((stream, peer));
            }
        }
    }

    fn latecomers(mut self) -> impl Iterator<Item = (UnixStream, Peer)> {
        // From now on the next gateway can have the path.
        drop(self.file.take());
        std::iter::from_fn(move || {
            loop {
                let socket = rustix::net::accept_with(&self.listener, FLAGS).ok()?;
                let stream = UnixStream::from_std(socket.into()).ok()?;
                if let Some(peer) = self.admit(&stream) {
                    return Some((stream, peer));
                }
            }
        })
    }

    fn unhurried(_: &UnixStream) {}

    fn tell(stream: &UnixStream, text: &[u8]) {
        drop(stream.try_write(text));
    }
}

/// How a connection is taken that is there already.
const FLAGS: rustix::net::SocketFlags = rustix::net::SocketFlags::NONBLOCK.union(rustix::net::SocketFlags::CLOEXEC);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Scratch;

    #[tokio::test]
    async fn another_user_does_not_come_in_though_the_folder_lets_everybody_in() {
        let scratch = Scratch::new();
        let socket = scratch.0.join("clients.sock");
        let listener = LocalListener::bind(&socket).unwrap();
        scratch.open_to_all();
        let connect = || std::os::unix::net::UnixStream::connect(&socket).unwrap();
        let others = Scratch::as_another_user(connect);
        let own = connect();
        let (_stream, Peer::User(user)) = listener.next().await.unwrap() else { panic!("it is a user's") };
        assert_eq!(user, rustix::process::geteuid().as_raw());
        drop((others, own));
    }
}
