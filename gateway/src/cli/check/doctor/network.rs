//! Whether servers take connections: all are tried at once.

use std::net::{TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::problem::Problem;
use crate::config::Config;
use crate::config::source::Environment;
use crate::upstream::config::{self, Remote};

/// So long a server may take to accept a connection. Where it has several addresses, they share that.
const CONNECT: Duration = Duration::from_secs(5);
/// So many addresses of one server are tried.
const ADDRESSES_MAX: usize = 4;
/// So many servers are tried at once.
const AT_ONCE: usize = 32;

/// Servers that take no connection, in the order of the configuration.
pub(super) fn unreached(config: &Config, environment: &Environment) -> Vec<Problem> {
    let proxies = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    if proxies.iter().any(|name| environment.get(name).is_some_and(|value| !value.is_empty())) {
        return Vec::new();
    }
    let upstreams: Vec<&config::Config> = config.upstreams.iter().chain(&config.lacking).collect();
    each(&upstreams, AT_ONCE, |upstream| tried(upstream)).into_iter().flatten().collect()
}

/// What `one` gives for each item, in their order; so many at a time are under way at most.
fn each<T: Sync, R: Send>(items: &[T], at_once: usize, one: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return done };
            done.push((index, one(item)));
        }
    };
    let mut all: Vec<(usize, R)> = thread::scope(|scope| {
        let workers: Vec<_> = (1..workers(items.len(), at_once)).map(|_| scope.spawn(work)).collect();
        // This thread works as well, so that all is done where no other can be had.
        let own = work();
        own.into_iter().chain(workers.into_iter().filter_map(|worker| worker.join().ok()).flatten()).collect()
    });
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, result)| result).collect()
}

/// How many work at so many items.
fn workers(items: usize, at_once: usize) -> usize {
    at_once.min(items)
}

/// Why a server takes no connection, if it has an address and takes none.
fn tried(upstream: &config::Config) -> Option<Problem> {
    let Some(Remote { url, socket: None, .. }) = upstream.transport.remote() else { return None };
    let host = url.host().unwrap_or_default();
    let is_plain = matches!(url.scheme_str(), Some("http" | "ws"));
    let port = url.port_u16().unwrap_or(if is_plain { 80 } else { 443 });
    let why = refused(host, port)?;
    let name = &upstream.name;
    let scheme = if is_plain { "http" } else { "https" };
    let fix = format!(
        "start the server, or correct `url` under [upstreams.{name}]; `curl -v {scheme}://{host}:{port}/` shows where the \
         way ends; behind a proxy, export HTTPS_PROXY=…"
    );
    Some(Problem::of_upstream(name, format!("upstream `{name}`: {why}"), fix))
}

/// Why no address of a host takes a connection.
fn refused(host: &str, port: u16) -> Option<String> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let addresses: Vec<_> = match (bare, port).to_socket_addrs() {
        Err(error) => return Some(format!("DNS lookup of {host} failed: {error}")),
        Ok(addresses) => addresses.take(ADDRESSES_MAX).collect(),
    };
    let mut failed = format!("{host} has no address");
    for address in &addresses {
        match TcpStream::connect_timeout(address, CONNECT / u32::try_from(addresses.len()).unwrap_or(1)) {
            Ok(_) => return None,
            Err(error) => failed = format!("cannot connect to {address}: {error}"),
        }
    }
    Some(failed)
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};

    use super::*;

    /// Long enough for threads to start, however busy the machine is.
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn servers_are_tried_at_once_up_to_a_bound_and_told_in_their_order() {
        const BOUND: usize = 4;
        // How many are under way, and the most that were.
        let (seen, changed) = (Mutex::new((0, 0)), Condvar::new());
        let one = |number: &usize| {
            let mut under_way = seen.lock().unwrap();
            under_way.0 += 1;
            under_way.1 = under_way.1.max(under_way.0);
            changed.notify_all();
            // Nobody goes on before as many are under way as may be.
            let (mut under_way, _) = changed.wait_timeout_while(under_way, LONG, |seen| seen.1 < BOUND).unwrap();
            under_way.0 -= 1;
            number * 2
        };
        let numbers: Vec<usize> = (0..10).collect();
        assert_eq!(each(&numbers, BOUND, one), numbers.iter().map(|number| number * 2).collect::<Vec<_>>());
        assert_eq!(seen.lock().unwrap().1, BOUND);
        assert_eq!([workers(3, BOUND), workers(40, BOUND)], [3, BOUND], "the system is not asked for more threads");
        assert!(each(&numbers[..0], BOUND, |number| *number).is_empty());
    }
}
