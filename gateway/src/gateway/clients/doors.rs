//! All doors: bound, served, and told of what a reload changes.

use super::door::{Door, Error, Serving, asks_credential};
use super::logins::{PersonalLogins, Way};
use super::place::Place;
use crate::config::Config;
use crate::config::fault::Fault;
use crate::downstream::config::{Address, Listener};
use crate::downstream::listen::Certificates;
use crate::downstream::{Connections, GuardLayer, McpService};
use crate::policy::Changed;
use crate::policy::authenticate::AuthenticateLayer;
use crate::policy::config::Auth;
use crate::policy::connect::Connect;
use crate::policy::oauth::Issuers;
use crate::runtime::system::handed::HandedSocket;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// The doors of a gateway, as bound.
pub(crate) struct Doors(Vec<Door>);

/// What a reload reaches of the doors.
pub(crate) struct Kept {
    face: McpService,
    connect: Connect,
    issuers: Issuers,
    doors: Vec<KeptDoor>,
}

struct KeptDoor {
    listener: Listener,
    /// The address, as bound.
    at: Address,
    /// The names of the tokens that count.
    tokens: Mutex<Option<Vec<Arc<str>>>>,
    authenticate: AuthenticateLayer,
    certificates: Option<Arc<Certificates>>,
    room: Arc<Connections>,
    guard: GuardLayer,
}

impl Doors {
    /// Binds all listeners, and takes over what was handed over for them; or none.
    pub(crate) async fn open(config: &Config, mut handed: Vec<HandedSocket>) -> Result<Self, Error> {
        let names: Vec<Arc<str>> = handed.iter().map(|socket| socket.name.clone()).collect();
        let mut doors = Vec::new();
        let mut listeners: Vec<(usize, &Listener)> = config.server.listeners.iter().enumerate().collect();
        // What is left goes to the one that names none.
        listeners.sort_by_key(|(index, listener)| (listener.address == Address::Handed(None), *index));
        for (index, listener) in listeners {
            let key = match config.server.lists_listeners {
                true => format!("server.listeners.{index}.tls"),
                false => "server.tls".to_owned(),
            };
            let Address::Handed(name) = &listener.address else {
                doors.push((index, Door::open(listener, None, key, &config.auth).await?));
                continue;
            };
            let is_meant = |socket: &mut HandedSocket| name.as_ref().is_none_or(|name| *name == socket.name);
            let taken: Vec<HandedSocket> = handed.extract_if(.., is_meant).collect();
            if taken.is_empty() {
                return Err(Error::Listen { address: listener.address.clone(), cause: not_handed(&names) });
            }
            for socket in taken {
                doors.push((index, Door::open(listener, Some(socket.listener), key.clone(), &config.auth).await?));
            }
        }
        for socket in handed {
            let hint = "no listener takes it: [[server.listeners]] has address = \"systemd\"";
            tracing::warn!(name = &*socket.name, "socket of the service manager not used; {hint}");
        }
        doors.sort_by_key(|(index, _)| *index);
        Ok(Self(doors.into_iter().map(|(_, door)| door).collect()))
    }

    /// Where clients are served.
    pub(crate) fn places(&self) -> Vec<Place> {
        self.0.iter().map(|door| door.place.clone()).collect()
    }

    /// The certificates, whose files are followed.
    pub(crate) fn certificates(&self) -> impl Iterator<Item = &Arc<Certificates>> {
        self.0.iter().filter_map(|door| door.certificates.as_ref())
    }

    /// Serves all of them.
    pub(crate) fn serve(self, serving: &Serving<'_>) -> Kept {
        let ways = self.0.iter().map(|door| way(&door.listener, &door.place.address, door.listener.tokens.clone()));
        PersonalLogins::called(&serving.connect, serving.config, ways);
        let (issuers, path) = (serving.issuers.clone(), serving.config.server.path.clone());
        serving.face.challenge_with(move || issuers.challenge_again(&path));
        let mut doors = Vec::new();
        for door in self.0 {
            let asks = door.asks(serving);
            doors.push(KeptDoor {
                listener: door.listener.clone(),
                at: door.place.address.clone(),
                tokens: Mutex::new(door.listener.tokens.clone()),
                authenticate: asks.authenticate.clone(),
                certificates: door.certificates.clone(),
                room: asks.room.clone(),
                guard: asks.guard.clone(),
            });
            door.serve(asks, serving);
        }
        Kept { face: serving.face.clone(), connect: serving.connect.clone(), issuers: serving.issuers.clone(), doors }
    }
}

impl Kept {
    /// What speaks against this configuration: tokens go at once, and an address stays to the next start. The one must not leave the
    /// other open.
    pub(crate) fn opened(&self, now: &Config) -> Option<Fault> {
        self.doors.iter().find_map(|door| door.opened(now))
    }

    /// The upstreams of this configuration are there: pages that lead to no login of theirs end.
    pub(crate) fn settled(&self) {
        self.connect.end_revoked(&[]);
    }

    /// Asks for what this configuration says; who may see something else by it. What came through a door by what counts no more there has
    /// no session and no stream any longer.
    pub(crate) fn set(&self, now: &Config) -> Vec<Changed> {
        PersonalLogins::called(
            &self.connect,
            now,
            self.doors.iter().map(|door| way(&door.listener, &door.at, door.tokens_of(now))),
        );
        let (mut gone, mut changed) = (Vec::new(), self.issuers.set(&now.auth));
        for door in &self.doors {
            door.told(now);
            let tokens = door.tokens_of(now);
            let auth = now.auth.only(tokens.as_deref());
            *door.lock() = tokens;
            door.room.ask_credential(asks_credential(&door.listener, &auth));
            door.certificates.iter().for_each(|one| one.demand(auth.is_open()));
            let (left, others) = door.authenticate.set(&auth);
            changed.extend(others);
            for principal in left {
                if !gone.contains(&principal) {
                    gone.push(principal);
                }
            }
        }
        self.face.end_revoked();
        self.connect.end_revoked(&gone);
        let (unnamed, gone): (Vec<_>, Vec<_>) = gone.iter().partition(|principal| principal.is_anonymous());
        let tokens = gone.iter().map(|principal| principal.name()).collect::<Vec<_>>().join(", ");
        if !tokens.is_empty() {
            tracing::info!(tokens, "tokens revoked; their sessions and streams have ended");
        } else if !unnamed.is_empty() {
            tracing::info!("tokens are required from now on; sessions and streams without one have ended");
        }
        changed
    }
}

/// How callers come in where a listener is bound.
fn way<'a>(listener: &Listener, at: &'a Address, tokens: Option<Vec<Arc<str>>>) -> Way<'a> {
    Way { at, tokens, asks_certificate: listener.asks_certificate() }
}

impl KeptDoor {
    /// What counts here by this configuration; where that has no such listener, what counts now does so to the next start.
    fn tokens_of(&self, now: &Config) -> Option<Vec<Arc<str>>> {
        self.listener_of(now).map_or_else(|| self.lock().clone(), |listener| listener.tokens.clone())
    }

    fn listener_of<'a>(&self, now: &'a Config) -> Option<&'a Listener> {
        now.server.listeners.iter().find(|listener| listener.address == self.listener.address)
    }

    /// Who may be asked for, whose pages may ask, and which files its certificate is in. Whether it has one at all stays to the next start.
    fn told(&self, now: &Config) {
        let Some(listener) = self.listener_of(now) else { return };
        self.guard.admit(&listener.allowed_hosts, &listener.allowed_origins);
        if let (Some(certificates), Some(tls)) = (&self.certificates, &listener.tls) {
            certificates.rename(tls);
        }
    }

    fn opened(&self, now: &Config) -> Option<Fault> {
        let tokens = self.tokens_of(now);
        let auth = now.auth.only(tokens.as_deref());
        let names_some = tokens.is_some_and(|names| !names.is_empty());
        opened(&self.at, &auth, names_some, self.listener.asks_certificate())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Vec<Arc<str>>>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why there is nothing for a listener among what was handed over under these names.
fn not_handed(names: &[Arc<str>]) -> io::Error {
    io::Error::other(match names {
        [] => "the service manager has handed over no socket; start the gateway by its .socket unit".to_owned(),
        names => format!("no socket of this name was handed over, only {}", names.join(", ")),
    })
}

/// Why these tokens, of which the listener may name some, cannot be all that counts at an address that stays.
fn opened(at: &Address, auth: &Auth, names_some: bool, asks_certificate: bool) -> Option<Fault> {
    let fault = |text: String| {
        Fault::error("open-door", text)
            .hint("restart the gateway, or keep the tokens until the changed addresses are in force")
    };
    if names_some && auth.tokens.is_empty() {
        return Some(fault(format!("none of the tokens that count at {at} until the next start would be left")));
    }
    let is_open = auth.is_open() && !asks_certificate && !at.is_local();
    is_open.then(|| {
        fault(format!("{at} can be reached from other machines until the next start, and no tokens are configured"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::config::Token;

    fn says(at: &str, auth: &Auth, names_some: bool, asks_certificate: bool) -> Option<String> {
        let fault = opened(&Address::Tcp(at.parse().unwrap()), auth, names_some, asks_certificate)?;
        assert_eq!(fault.kind, "open-door");
        Some(fault.text)
    }

    #[test]
    fn tokens_stay_while_the_address_of_the_start_can_be_reached_by_others() {
        let (everywhere, here) = ("0.0.0.0:8808", "127.0.0.1:8808");
        let text = says(everywhere, &Auth::default(), false, false).expect("it is refused");
        assert!(text.contains(everywhere) && text.contains("until the next start"), "{text}");
        let allowed = Auth { allow_unauthenticated: true, ..Auth::default() };
        assert_eq!(says(everywhere, &allowed, false, false), None);
        assert_eq!(says(here, &Auth::default(), false, false), None);
        assert_eq!(says(everywhere, &Auth::default(), false, true), None, "certificates are asked for");
    }

    #[test]
    fn a_listener_that_names_tokens_is_never_left_without_one() {
        let (here, allowed) = ("127.0.0.1:1", Auth { allow_unauthenticated: true, ..Auth::default() });
        for auth in [&Auth::default(), &allowed] {
            let text = says(here, auth, true, false).expect("it is refused");
            assert!(text.contains("none of the tokens that count at 127.0.0.1:1"), "{text}");
        }
        let token = Token { name: "ann".into(), digest: [0; 32], roles: None, expires: None };
        assert_eq!(says(here, &Auth { tokens: vec![token], ..Auth::default() }, true, false), None);
    }
}
