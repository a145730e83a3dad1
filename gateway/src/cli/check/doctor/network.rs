//! Whether servers take connections: all are tried at once.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::problem::Problem;
use crate::config::Config;
use crate::upstream::config::{self, Proxy, Remote};

/// So long a server may take to accept a connection. Where it has several addresses, they share that.
const CONNECT: Duration = Duration::from_secs(5);
/// So many addresses of one server are tried.
const ADDRESSES_MAX: usize = 4;
/// So many servers are tried at once.
const AT_ONCE: usize = 32;

/// What was found of the ways to servers.
pub(super) struct Ways {
    /// Servers that take no connection, in the order of the configuration; in place of one behind a proxy the proxy is tried.
    pub(super) unreached: Vec<Problem>,
    /// What could not be looked at for proxies.
    pub(super) told: Option<String>,
}

/// Tries all of them.
pub(super) fn ways(config: &Config) -> Ways {
    let upstreams: Vec<&config::Config> = config.upstreams.iter().chain(&config.lacking).collect();
    let unreached = each(&upstreams, AT_ONCE, |upstream| tried(upstream)).into_iter().flatten().collect();
    Ways { unreached, told: told(&upstreams) }
}

/// Which servers stand behind a proxy, and whose word that is: of them only the proxy was tried.
fn told(upstreams: &[&config::Config]) -> Option<String> {
    let proxy = |upstream: &&config::Config| upstream.transport.remote()?.proxy.clone();
    let behind = |is_of_environment: bool| {
        let is_it = |upstream: &&&config::Config| {
            proxy(upstream).is_some_and(|proxy| proxy.is_of_environment == is_of_environment)
        };
        let names: Vec<&str> = upstreams.iter().filter(is_it).map(|upstream| &*upstream.name).collect();
        let whose = if is_of_environment { "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY" } else { "its `proxy`" };
        (!names.is_empty()).then(|| format!("{} by {whose}", names.join(", ")))
    };
    let all: Vec<String> = [behind(true), behind(false)].into_iter().flatten().collect();
    (!all.is_empty()).then(|| {
        format!(
            "network: behind a proxy stand {}; there only the proxy was tried; what NO_PROXY names was tried itself",
            all.join("; ")
        )
    })
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
    let Some(Remote { url, socket: None, proxy, .. }) = upstream.transport.remote() else { return None };
    let name = &upstream.name;
    if let Some(Proxy { host, port, is_of_environment, .. }) = proxy {
        let why = refused(host, *port)?;
        let fix = match is_of_environment {
            true => "correct HTTPS_PROXY (HTTP_PROXY, ALL_PROXY), or name the server in NO_PROXY".to_owned(),
            false => format!("correct `proxy` under [upstreams.{name}], or write `proxy = \"off\"` there"),
        };
        return Some(Problem::of_upstream(name, format!("upstream `{name}`: its proxy: {why}"), fix));
    }
    let host = url.host().unwrap_or_default();
    let is_plain = matches!(url.scheme_str(), Some("http" | "ws"));
    let port = url.port_u16().unwrap_or(if is_plain { 80 } else { 443 });
    let why = refused(host, port)?;
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
    match (bare, port).to_socket_addrs() {
        Err(error) => Some(format!("DNS lookup of {host} failed: {error}")),
        Ok(addresses) => refused_at(host, addresses),
    }
}

/// The same of the first of these addresses of a host.
fn refused_at(host: &str, addresses: impl Iterator<Item = SocketAddr>) -> Option<String> {
    let addresses: Vec<_> = addresses.take(ADDRESSES_MAX).collect();
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
    use crate::config::source::Environment;
    use crate::config::{Inputs, load};
    use crate::runtime::Scratch;

    /// Long enough for threads to start, however busy the machine is.
    const LONG: Duration = Duration::from_secs(60);

    fn config(text: &str, variables: &[(&str, &str)]) -> Config {
        let scratch = Scratch::new();
        let files = vec![scratch.write("trunkline.toml", text)];
        let inputs = Inputs { files, environment: Environment::of(variables), ..Inputs::default() };
        load(inputs).unwrap_or_else(|faults| panic!("{faults}")).config
    }

    #[test]
    fn behind_a_proxy_the_proxy_is_tried_and_what_is_exempt_itself() {
        let open = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (open, server) = (open.local_addr().unwrap(), "[upstreams.a]\nurl = 'https://nowhere.invalid/mcp'\n");
        let of = |more: &str, variables: &[(&str, &str)]| {
            let Ways { unreached, told } = ways(&config(&format!("{server}{more}"), variables));
            (unreached.into_iter().map(|one| format!("{}; {}", one.text, one.fix)).collect::<Vec<_>>(), told)
        };
        let (well, told) = of("", &[("HTTPS_PROXY", &format!("http://{open}"))]);
        assert!(well.is_empty() && told.unwrap().contains("behind a proxy stand a by HTTPS_PROXY"), "{well:?}");
        let (ill, _) = of("", &[("HTTPS_PROXY", &format!("http://{closed}"))]);
        assert!(ill[0].contains("its proxy: cannot connect to") && ill[0].contains("correct HTTPS_PROXY"), "{ill:?}");
        let (own, told) = of(&format!("proxy = 'http://{closed}'\n"), &[]);
        assert!(own[0].contains("correct `proxy` under [upstreams.a]") && told.unwrap().contains("a by its `proxy`"));
        let exempt = [("HTTPS_PROXY", &*format!("http://{open}")), ("NO_PROXY", ".invalid")];
        let (itself, told) = of("", &exempt);
        assert!(itself[0].contains("DNS lookup of nowhere.invalid failed") && told.is_none(), "{itself:?}");
        assert!(itself[0].contains("`curl -v https://nowhere.invalid:443/`"), "{itself:?}");
        let plain = "[upstreams.b]\nurl = 'http://nowhere.invalid/mcp'\nproxy = 'off'\n";
        let (_, both) =
            of(&format!("[upstreams.c]\nurl = 'https://h.invalid/'\nproxy = 'http://{open}'\n{plain}"), &exempt[..1]);
        let both = both.unwrap();
        assert!(both.contains("a by HTTPS_PROXY, HTTP_PROXY or ALL_PROXY; c by its `proxy`; there only"), "{both}");
        let (ill, _) = of(plain, &exempt[..1]);
        assert!(ill[0].contains("`curl -v http://nowhere.invalid:80/`"), "{ill:?}");
        // Also what is left out for want of a variable.
        let lacking =
            format!("proxy = 'http://{closed}'\nheaders = {{ A = '${{NO_SUCH_VARIABLE}}' }}\noptional = true\n");
        let (ill, _) = of(&lacking, &[]);
        assert!(ill.iter().any(|one| one.contains("its proxy: cannot connect to")), "{ill:?}");
    }

    #[test]
    fn an_address_in_brackets_is_connected_to_and_looked_up_nowhere() {
        let taken = TcpStream::connect("[::1]:1").is_ok();
        let why = refused("[::1]", 1);
        assert!(taken || why.as_ref().is_some_and(|why| why.contains("cannot connect to [::1]:1")), "{why:?}");
    }

    #[test]
    fn a_host_of_several_addresses_is_reached_where_one_of_the_first_takes_a_connection() {
        let open = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        // A port that was bound and is free again: nobody listens there.
        let closed = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (well, first, last) = (open.local_addr().unwrap(), closed(), closed());
        let of = |addresses: &[SocketAddr]| refused_at("h", addresses.iter().copied());
        assert_eq!(of(&[first, last, well]), None);
        let why = of(&[first, last]).unwrap();
        assert!(why.starts_with(&format!("cannot connect to {last}: ")), "{why}");
        let many = [vec![first; ADDRESSES_MAX], vec![well]].concat();
        assert!(of(&many).is_some(), "no more are tried than there is time for");
        assert_eq!(of(&[]).unwrap(), "h has no address");
    }

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
