//! Finds the addresses of a host. Who answers for names may take long, so that each look-up has a thread of its own, for which
//! nobody waits who asks for another name; and of one host there is one look-up at a time, however many calls need it.

use crate::health::{Cause, CauseCode};
use crate::runtime::timer::late::within;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How long a look-up is waited for; whoever asks then waits for the same one, as long as it lasts.
const LOOK_UP_MAX: Duration = Duration::from_secs(3);

/// What says which addresses a host has; blocks.
type LookUp = dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync;
/// The addresses, or why there are none.
type Found = Result<Vec<SocketAddr>, Cause>;

/// The addresses of one host.
pub(crate) struct Resolver {
    host: Arc<str>,
    port: u16,
    look_up: Arc<LookUp>,
    /// The look-up that was begun last.
    last: Mutex<Option<watch::Receiver<Option<Found>>>>,
}

impl Resolver {
    /// Asks the system.
    pub(crate) fn of(host: &str, port: u16) -> Self {
        Self::asking(host, port, |host, port| Ok((host, port).to_socket_addrs()?.collect()))
    }

    pub(super) fn asking(
        host: &str,
        port: u16,
        look_up: impl Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
    ) -> Self {
        Self { host: host.into(), port, look_up: Arc::new(look_up), last: Mutex::default() }
    }

    /// The addresses as they are now; the text says why there are none.
    pub(crate) async fn find(&self) -> Found {
        // What is an address already is looked up nowhere.
        if let Ok(address) = self.host.parse::<IpAddr>() {
            return Ok(vec![(address, self.port).into()]);
        }
        let mut look_up = self.under_way();
        let found = within(LOOK_UP_MAX, look_up.wait_for(Option::is_some)).await;
        match found {
            Ok(Ok(found)) => found.clone().unwrap_or_else(|| Ok(Vec::new())),
            Ok(Err(_)) => Err(not_found(&self.host, ": the look-up was interrupted")),
            Err(_) => {
                let limit = LOOK_UP_MAX.as_secs();
                let why = not_found(&self.host, &format!(": no answer within {limit} s"));
                Err(why.advise("does the DNS resolver of this machine work?"))
            }
        }
    }

    /// The look-up that is under way, or a new one.
    fn under_way(&self) -> watch::Receiver<Option<Found>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let runs =
            |look_up: &&watch::Receiver<Option<Found>>| look_up.has_changed().is_ok() && look_up.borrow().is_none();
        if let Some(look_up) = last.as_ref().filter(runs) {
            return look_up.clone();
        }
        let (found, look_up) = watch::channel(None);
        let (host, port, system) = (self.host.clone(), self.port, self.look_up.clone());
        let look = move || {
            let why = |error: io::Error| not_found(&host, &format!(": {error}"));
            found.send_replace(Some(system(&host, port).map_err(why)));
        };
        let started = std::thread::Builder::new().name("look-up".into()).spawn(look.clone());
        if started.is_err() {
            // Where the system gives no more threads, it waits for one of those that are there.
            drop(tokio::task::spawn_blocking(look));
        }
        *last = Some(look_up.clone());
        look_up
    }
}

/// Which host it is, is for the operator to know.
fn not_found(host: &str, why: &str) -> Cause {
    Cause::new(CauseCode::DnsFailed, "DNS lookup").foreign(&format!(" of {host}")).own(&format!(" failed{why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    const HERE: [u8; 4] = [127, 0, 0, 1];

    #[tokio::test(start_paused = true)]
    async fn a_look_up_that_takes_long_is_one_thread_for_all_who_wait_and_holds_up_no_other() {
        let (release, released) = mpsc::channel::<()>();
        let (count, released) = (Arc::new(AtomicUsize::new(0)), Mutex::new(released));
        let counted = count.clone();
        let slow = Arc::new(Resolver::asking("slow", 1, move |_, port| {
            counted.fetch_add(1, Ordering::SeqCst);
            let _over = released.lock().unwrap().recv();
            Ok(vec![(HERE, port).into()])
        }));
        // More than the runtime has threads for what blocks.
        let mut asked = tokio::task::JoinSet::new();
        for _ in 0..600 {
            let slow = slow.clone();
            asked.spawn(async move { slow.find().await });
        }
        let answers = asked.join_all().await;
        assert!(
            answers
                .iter()
                .all(|found| found.as_ref().is_err_and(|why| why.full().contains("slow failed: no answer within")))
        );
        tokio::time::resume();
        let others = (0..600).map(|_| Resolver::asking("quick", 2, |_, port| Ok(vec![(HERE, port).into()])));
        for other in others {
            assert_eq!(other.find().await, Ok(vec![(HERE, 2).into()]), "while the slow one is still looked up");
        }
        assert_eq!(tokio::task::spawn_blocking(|| 7).await.unwrap(), 7, "nor is anything else that blocks");
        drop(release);
        assert_eq!(slow.find().await, Ok(vec![(HERE, 1).into()]));
        assert!(count.load(Ordering::SeqCst) <= 2, "one look-up at a time");
    }

    #[tokio::test]
    async fn an_address_is_looked_up_nowhere_and_what_is_not_found_is_looked_up_anew() {
        let never = |_: &str, _| -> io::Result<Vec<SocketAddr>> { panic!("it is asked for") };
        assert_eq!(Resolver::asking("::1", 7, never).find().await, Ok(vec!["[::1]:7".parse().unwrap()]));
        let tries = AtomicUsize::new(0);
        let late = Resolver::asking("late", 1, move |_, port| match tries.fetch_add(1, Ordering::SeqCst) {
            0 => Err(io::Error::other("not yet")),
            1 => panic!("as a system may"),
            _ => Ok(vec![(HERE, port).into()]),
        });
        assert!(late.find().await.is_err_and(|why| why.full() == "DNS lookup of late failed: not yet"));
        assert!(late.find().await.is_err_and(|why| why.full().contains("was interrupted")));
        assert_eq!(late.find().await, Ok(vec![(HERE, 1).into()]));
    }
}
