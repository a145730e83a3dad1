//! What every request to the endpoint shares.

use super::duplex::Clients;
use crate::call::Handler;
use crate::call::caller::{Grants, Principal};
use crate::call::share::{Part, Share, Shares};
use crate::downstream::config::Config;
use crate::downstream::edge::Edge;
use crate::downstream::edge::client_era::Who;
use crate::downstream::listen::Arrival;
use crate::downstream::session::table::Sessions;
use crate::memory::Refusals;
use crate::memory::budget::Budget;
use crate::runtime::Tasks;
use crate::runtime::complaints::Complaints;
use http::{Extensions, HeaderMap};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// The endpoint behind its service.
pub(super) struct Endpoint {
    pub(super) edge: Arc<Edge>,
    pub(super) config: Config,
    pub(super) sessions: Sessions,
    /// Those with two endpoints.
    pub(super) clients: Arc<Clients>,
    /// The bodies of requests that are waited for.
    pub(super) bodies: Arc<Shares>,
    /// Ends the streams of whoever may call no more.
    pub(super) revoked: Revoked,
    /// When it was last said that sessions were revived.
    pub(super) said: Complaints,
    anonymous: Who,
}

/// What ends the streams of each principal; there are no more of them than tokens were ever configured.
#[derive(Default)]
pub(super) struct Revoked(Mutex<HashMap<Principal, CancellationToken>>);

impl Revoked {
    /// Told once what this principal calls with is known no more.
    pub(super) fn of(&self, principal: &Principal) -> CancellationToken {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(principal.clone()).or_default().clone()
    }

    /// Ends them. Where the principal has no other token, a call that it has under way finds no stream either.
    fn end(&self, principal: &Principal, has_other: bool) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(principal.clone()).or_default().cancel();
        if has_other {
            all.remove(principal);
        }
    }

    /// Its streams may go on from now on.
    fn admit(&self, principal: &Principal) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(principal).is_some_and(CancellationToken::is_cancelled) {
            all.remove(principal);
        }
    }
}

/// So many bodies of requests are waited for at once; one client alone gets half of them.
const BODIES_MAX: usize = 2048;

impl Endpoint {
    pub(super) fn new(handler: Handler, config: Config, levels: (Tasks, Tasks), room: (&Budget, &Refusals)) -> Self {
        let edge = Arc::new(Edge::new(handler, &config, levels, room));
        let sessions = Sessions::new(&config, edge.label, edge.budget.clone());
        let (clients, bodies) = (Arc::default(), Shares::new(BODIES_MAX, Part::OfFree));
        let revoked = Revoked::default();
        Self {
            edge,
            config,
            sessions,
            clients,
            bodies,
            revoked,
            said: Complaints::default(),
            anonymous: Who::anonymous(),
        }
    }

    /// Some may call no more by what they called with so far: their sessions and streams end. These may call now.
    pub(super) fn revoke(&self, gone: &[Principal], known: &[Principal]) {
        for principal in gone {
            self.revoked.end(principal, known.contains(principal));
            self.sessions.revoke(principal);
        }
        known.iter().for_each(|principal| self.revoked.admit(principal));
    }

    /// Whose request it is, as the layers before found out; without them there is nobody to tell apart.
    /// Where the connection is one too many of its share: that share.
    pub(super) fn who(&self, arrival: Option<&Arrival>, found: &Extensions, headers: &HeaderMap) -> Result<Who, Share> {
        let address = arrival.and_then(|arrival| arrival.client(headers));
        let who = match found.get::<Principal>() {
            Some(principal) => {
                let grants = found.get::<Grants>().cloned().unwrap_or_else(Grants::all);
                Who { principal: principal.clone(), address, grants }
            }
            None => Who { address, ..self.anonymous.clone() },
        };
        match arrival.filter(|arrival| !arrival.is_admitted()) {
            Some(arrival) if !arrival.admit(&who.share()) => Err(who.share()),
            _ => Ok(who),
        }
    }
}
