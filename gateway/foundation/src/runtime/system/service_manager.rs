//! Tells systemd what the process does, where a unit of `Type=notify` or `Type=notify-reload` asks for it.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::runtime::Tasks;

/// The socket of the service manager, as it is named in the environment.
const SOCKET: &str = "NOTIFY_SOCKET";
/// How long the manager waits for a sign of life, in microseconds.
const WATCHDOG: &str = "WATCHDOG_USEC";
/// The process that has to give it.
const WATCHDOG_PID: &str = "WATCHDOG_PID";
/// A manager that waits for less hears no more than one sign of life in this time.
const SIGN_EVERY_MIN: Duration = Duration::from_millis(10);

/// The service manager that started the process, or nobody. A message that cannot be delivered is lost: it stops nothing.
#[derive(Debug, Clone, Default)]
pub struct ServiceManager {
    socket: Option<Arc<UnixDatagram>>,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// The one that the environment names.
    ///
    /// # Errors
    /// Where a socket is named that cannot be used.
    pub fn of_environment() -> io::Result<Self> {
        let Some(name) = std::env::var_os(SOCKET).filter(|name| !name.is_empty()) else { return Ok(Self::default()) };
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
        let is_ours = number(WATCHDOG_PID).is_none_or(|pid: u64| pid == u64::from(std::process::id()));
        let watchdog = number(WATCHDOG).filter(|within| is_ours && *within > 0).map(Duration::from_micros);
        Self::at(&name, watchdog)
    }

    /// The one behind a socket: a path, or an abstract name after `@`.
    fn at(name: &OsStr, watchdog: Option<Duration>) -> io::Result<Self> {
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(name)?,
            _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "neither a path nor an abstract socket")),
        };
        let socket = UnixDatagram::unbound()?;
        socket.connect_addr(&address)?;
        // A manager that does not read holds nothing up.
        socket.set_nonblocking(true)?;
        Ok(Self { socket: Some(Arc::new(socket)), watchdog })
    }

    fn tell(&self, message: &str) {
        if let Some(socket) = &self.socket {
            let _lost = socket.send(message.as_bytes());
        }
    }

    /// The process serves; also the end of what [`Self::reloading`] began.
    pub fn ready(&self) {
        self.tell("READY=1");
    }

    /// The configuration is read anew; [`Self::ready`] follows, whatever comes of it.
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        // The manager compares it with when it asked.
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={}", now.tv_sec * 1_000_000 + now.tv_nsec / 1000));
    }

    /// The process ends, within this time.
    pub fn stopping(&self, within: Duration) {
        self.tell(&format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={}", within.as_micros()));
    }

    /// A line for `systemctl status`.
    pub fn status(&self, line: &str) {
        self.tell(&format!("STATUS={}", line.replace('\n', " ")));
    }

    /// Gives a sign of life as often as the manager needs it, for as long as the workers get to it.
    pub fn keep_alive(&self, tasks: &Tasks) {
        let Some(within) = self.watchdog else { return };
        let this = self.clone();
        tasks.spawn_until_end(async move {
            let mut due = tokio::time::interval((within / 2).max(SIGN_EVERY_MIN));
            // Signs that were missed are not made up for.
            due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                due.tick().await;
                this.tell("WATCHDOG=1");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A manager behind an abstract socket, and what it hears.
    fn manager(name: &str, watchdog: Option<Duration>) -> (ServiceManager, UnixDatagram) {
        let name = format!("trunkline-test-{name}-{}", std::process::id());
        let ears = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        ears.set_nonblocking(true).unwrap();
        (ServiceManager::at(OsStr::new(&format!("@{name}")), watchdog).unwrap(), ears)
    }

    fn heard(ears: &UnixDatagram) -> Option<String> {
        let mut buffer = [0; 256];
        ears.recv(&mut buffer).ok().map(|length| String::from_utf8(buffer[..length].to_vec()).unwrap())
    }

    #[test]
    fn the_manager_hears_what_the_process_does() {
        let (manager, ears) = manager("words", None);
        manager.ready();
        manager.status("2 of 3\nservers ready");
        manager.stopping(Duration::from_secs(30));
        assert_eq!(heard(&ears).as_deref(), Some("READY=1"));
        assert_eq!(heard(&ears).as_deref(), Some("STATUS=2 of 3 servers ready"));
        assert_eq!(heard(&ears).as_deref(), Some("STOPPING=1\nEXTEND_TIMEOUT_USEC=30000000"));
        let before = clock_gettime(ClockId::Monotonic).tv_sec;
        manager.reloading();
        let said = heard(&ears).unwrap();
        let at: i64 = said.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap().parse().unwrap();
        assert!(at / 1_000_000 >= before, "{said}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_sign_of_life_comes_twice_in_the_time_that_the_manager_waits() {
        let tasks = Tasks::new();
        let (manager, ears) = manager("watchdog", Some(Duration::from_secs(30)));
        manager.keep_alive(&tasks);
        tokio::time::sleep(Duration::from_secs(61)).await;
        let signs: Vec<_> = std::iter::from_fn(|| heard(&ears)).collect();
        assert_eq!(signs, vec!["WATCHDOG=1"; 5]);
        tasks.end();
        tasks.ended().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_manager_that_waits_for_less_than_can_be_hears_one_sign_in_ten_milliseconds() {
        let tasks = Tasks::new();
        let (manager, ears) = manager("hurry", Some(Duration::from_micros(1)));
        manager.keep_alive(&tasks);
        let mut signs = 0;
        // Read as they come: the queue of a socket is short.
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            signs += std::iter::from_fn(|| heard(&ears)).count();
        }
        assert!((9..=11).contains(&signs), "{signs}");
        tasks.end();
        tasks.ended().await;
    }

    #[test]
    fn a_manager_that_does_not_read_or_is_gone_holds_nothing_up() {
        let (manager, ears) = manager("deaf", None);
        // More than the queue of a socket takes.
        (0..10_000).for_each(|_| manager.ready());
        drop(ears);
        manager.stopping(Duration::ZERO);
        ServiceManager::default().ready();
    }

    #[test]
    fn a_name_that_is_no_socket_is_refused() {
        for name in ["vsock:2:1234", "notify", "/nowhere/at/all"] {
            assert!(ServiceManager::at(OsStr::new(name), None).is_err(), "{name}");
        }
    }
}
