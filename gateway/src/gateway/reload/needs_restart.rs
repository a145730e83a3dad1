//! Which changed keys only a start takes up.

use crate::config::Config;
use crate::downstream::config::{Address, Config as Server, Faces, Listener, Questions};
use crate::router::config::{Catalog, Pins};

/// The keys and sections that are said otherwise than at the start, and only a start takes up.
pub(super) fn needs_restart(before: &Config, now: &Config) -> Vec<&'static str> {
    let (old, new) = (&before.server, &now.server);
    let (admin, other_admin) = (&before.admin, &now.admin);
    // What follows from the upstreams is no key of this section.
    let questions = |config: &Config| {
        let asked = config.server.questions.clone();
        Questions { timeouts: Vec::new(), names_upstream: true, ..asked }
    };
    let is_listed = old.lists_listeners || new.lists_listeners;
    let all = [
        ("server.listen", !is_listed && old.listeners[0].address != new.listeners[0].address),
        ("[server.tls]", !is_listed && secured(&old.listeners[0]) != secured(&new.listeners[0])),
        ("[[server.listeners]]", is_listed && lasting(old) != lasting(new)),
        ("server.path", old.path != new.path),
        ("server.legacy_sse", old.legacy_sse != new.legacy_sse),
        ("server.websocket", old.websocket != new.websocket),
        ("server.public_url", old.public_url != new.public_url),
        ("server.trusted_proxies", old.trusted_proxies != new.trusted_proxies),
        ("server.max_body", old.max_body != new.max_body),
        ("server.memory_limit", old.memory_limit != new.memory_limit),
        ("server.header_read_timeout", old.header_read_timeout != new.header_read_timeout),
        ("server.sse_keepalive", old.sse_keepalive != new.sse_keepalive),
        ("server.name", old.name != new.name),
        ("server.instructions", old.instructions != new.instructions),
        ("[server.shutdown]", old.shutdown() != new.shutdown()),
        ("[server.session]", old.session != new.session),
        ("[questions]", questions(before) != questions(now)),
        ("question_timeout", old.questions.timeouts != new.questions.timeouts),
        ("admin.listen", admin.listen != other_admin.listen),
        ("admin.allowed_hosts", admin.allowed_hosts != other_admin.allowed_hosts),
        ("admin.token", admin.token != other_admin.token),
        ("log.format", before.log.format != now.log.format),
        ("[audit]", before.audit != now.audit),
        ("[traces]", before.traces != now.traces),
        ("[metrics]", before.metrics != now.metrics),
        ("[naming]", before.naming != now.naming),
        ("[catalog]", lists(before) != lists(now) || before.cache != now.cache),
        ("[extensions]", before.extensions != now.extensions),
    ];
    all.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}

/// How lists are served, beside what is asked of tools: that takes effect at once.
fn lists(config: &Config) -> Catalog {
    Catalog { pins: Pins::default(), ..config.catalog.clone() }
}

/// What of a certificate only a start takes up: whether clients are shown one, and whether they are asked for one.
fn secured(listener: &Listener) -> Option<bool> {
    listener.tls.as_ref().map(|_| listener.asks_certificate())
}

/// What of the listeners only a start takes up. Tokens, hosts, origins and the files of certificates take effect at once.
fn lasting(server: &Server) -> Vec<(&Address, Faces, Option<bool>)> {
    server.listeners.iter().map(|listener| (&listener.address, listener.faces, secured(listener))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::downstream::config::Tls;
    use crate::router::config::Pin;

    fn server(change: impl FnOnce(&mut Listener)) -> Config {
        let mut config = Config::default();
        let tls = Tls { cert: "a.pem".into(), key: "a.key".into(), client_ca: None, http2: true };
        config.server.listeners[0].tls = Some(tls);
        change(&mut config.server.listeners[0]);
        config
    }

    #[test]
    fn files_hosts_and_origins_take_effect_at_once_and_addresses_and_demands_do_not() {
        let tls = |change: fn(&mut Tls)| server(|listener| listener.tls.as_mut().into_iter().for_each(change));
        let before = server(|_| {});
        let said = |now: &Config| needs_restart(&before, now);
        assert_eq!(said(&tls(|tls| tls.cert = "b.pem".into())), Vec::<&str>::new());
        assert_eq!(said(&tls(|tls| tls.http2 = false)), Vec::<&str>::new());
        assert_eq!(said(&server(|one| one.allowed_hosts = vec!["gw".into()])), Vec::<&str>::new());
        assert_eq!(said(&server(|one| one.allowed_origins = vec!["https://gw".into()])), Vec::<&str>::new());
        assert_eq!(said(&tls(|tls| tls.client_ca = Some("c.pem".into()))), ["[server.tls]"]);
        assert_eq!(said(&server(|one| one.tls = None)), ["[server.tls]"]);
        let mut limits = before.clone();
        limits.limits.max_concurrency = Some(1);
        assert_eq!(said(&limits), Vec::<&str>::new());
        let listed = |mut config: Config| {
            config.server.lists_listeners = true;
            config
        };
        assert_eq!(
            needs_restart(&listed(before.clone()), &listed(tls(|tls| tls.key = "b.key".into()))),
            Vec::<&str>::new()
        );
        assert_eq!(
            needs_restart(&listed(before.clone()), &listed(server(|one| one.tls = None))),
            ["[[server.listeners]]"]
        );
    }

    #[test]
    fn what_is_asked_of_tools_takes_effect_at_once_and_how_lists_are_served_at_the_next_start() {
        let before = Config::default();
        let with = |change: &dyn Fn(&mut Catalog)| {
            let mut now = Config::default();
            change(&mut now.catalog);
            needs_restart(&before, &now)
        };
        assert_eq!(with(&|catalog| catalog.pins.pin = Pin::Hold), [""; 0]);
        assert_eq!(with(&|catalog| catalog.page_size += 1), ["[catalog]"]);
    }
}
