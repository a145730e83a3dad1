//! Sockets that the service manager has bound before it started the process.

use listenfd::ListenFd;
use rustix::net::sockopt::socket_acceptconn;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;

/// How many sockets were handed over.
const COUNT: &str = "LISTEN_FDS";
/// The process that they are for.
const PID: &str = "LISTEN_PID";
/// What they are called, with colons between.
const NAMES: &str = "LISTEN_FDNAMES";
/// More are never handed over.
const COUNT_MAX: usize = 256;

/// A socket that is listened on already.
#[derive(Debug)]
pub struct HandedSocket {
    /// What the unit calls it.
    pub name: Arc<str>,
    /// The socket.
    pub listener: HandedListener,
}

/// Which kind of socket it is.
#[derive(Debug)]
pub enum HandedListener {
    /// A port.
    Tcp(TcpListener),
    /// A socket of this machine.
    Unix(UnixListener),
}

impl HandedListener {
    fn prepare(&self) -> io::Result<()> {
        let (is_listened_on, prepared) = match self {
            Self::Tcp(listener) => (socket_acceptconn(listener), listener.set_nonblocking(true)),
            Self::Unix(listener) => (socket_acceptconn(listener), listener.set_nonblocking(true)),
        };
        match is_listened_on? {
            true => prepared,
            false => Err(io::Error::other("it is a connection, as with Accept=yes")),
        }
    }
}

/// Whether a variable is only for the process that the service manager has started.
pub fn is_of_sockets(variable: &str) -> bool {
    [COUNT, PID, NAMES].contains(&variable)
}

/// Takes the sockets that were handed over to this process; no child of it has them. To be called once, while there is one thread: the
/// variables that name the sockets go.
///
/// # Errors
/// Where one of them is no socket on which connections are waited for.
pub fn sockets() -> io::Result<Vec<HandedSocket>> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<usize>().ok());
    let is_ours = number(PID) == usize::try_from(std::process::id()).ok();
    let Some(count) = number(COUNT).filter(|count| is_ours && *count > 0) else { return Ok(Vec::new()) };
    if count > COUNT_MAX {
        return Err(io::Error::other(format!("{COUNT} is {count}, more than {COUNT_MAX}")));
    }
    let names = named(&std::env::var(NAMES).unwrap_or_default(), count);
    let mut handed = ListenFd::from_env();
    let mut sockets = Vec::new();
    for (index, name) in names.into_iter().enumerate() {
        let odd = |error: io::Error| {
            let text = format!(
                "the socket `{name}` that the service manager hands over cannot be used ({error}); a .socket unit has ListenStream="
            );
            io::Error::new(error.kind(), text)
        };
        let listener = match handed.take_unix_listener(index) {
            Ok(listener) => listener.map(HandedListener::Unix),
            Err(_) => handed.take_tcp_listener(index).map_err(odd)?.map(HandedListener::Tcp),
        };
        let listener = listener.ok_or_else(|| odd(io::ErrorKind::NotFound.into()))?;
        listener.prepare().map_err(odd)?;
        sockets.push(HandedSocket { name, listener });
    }
    Ok(sockets)
}

/// So many names; what has none is `unknown`, as systemd calls it.
fn named(text: &str, count: usize) -> Vec<Arc<str>> {
    let given = text.split(':').map(|name| if name.is_empty() { "unknown" } else { name });
    given.chain(std::iter::repeat("unknown")).take(count).map(Arc::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_socket_has_a_name() {
        let names = |text, count| named(text, count).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names("mcp:local", 2), ["mcp", "local"]);
        assert_eq!(names("mcp", 2), ["mcp", "unknown"]);
        assert_eq!(names("", 1), ["unknown"]);
        assert_eq!(names("a:b:c", 2), ["a", "b"]);
    }

    #[test]
    fn variables_of_another_process_hand_nothing_over() {
        // This process was started by no manager that hands over sockets to it.
        assert!(sockets().is_ok_and(|sockets| sockets.is_empty()));
        assert!(is_of_sockets("LISTEN_FDS") && !is_of_sockets("NOTIFY_SOCKET"));
    }
}
