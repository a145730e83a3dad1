//! What every request to the endpoint shares.

use super::duplex::Clients;
use crate::call::Handler;
use crate::call::caller::credential::{Credential, Revocation};
use crate::call::share::{Part, Share, Shares};
use crate::config::Config;
use crate::edge::client_era::Who;
use crate::edge::{Edge, LastCaller};
use crate::listen::Arrival;
use crate::memory::Refusals;
use crate::memory::budget::Budget;
use crate::runtime::Tasks;
use crate::runtime::complaints::Complaints;
use crate::session::table::Sessions;
use http::{HeaderMap, HeaderValue};
use std::sync::{Arc, OnceLock};

/// The endpoint behind its service.
pub(super) struct Endpoint {
    pub(super) edge: Arc<Edge>,
    pub(super) config: Config,
    pub(super) sessions: Sessions,
    /// Those with two endpoints.
    pub(super) clients: Arc<Clients>,
    /// The bodies of requests that are waited for.
    pub(super) bodies: Arc<Shares>,
    /// When it was last said that sessions were revived.
    pub(super) said: Complaints,
    /// Makes the challenge for a token that is refused after its request was let in.
    pub(super) challenge: OnceLock<Challenge>,
    anonymous: Who,
}

/// Makes a challenge; `None` where the token was of no authorization server.
pub(super) type Challenge = Box<dyn Fn() -> Option<HeaderValue> + Send + Sync>;

/// The challenge where nobody makes another one.
const INVALID_TOKEN: HeaderValue = HeaderValue::from_static("Bearer error=\"invalid_token\"");

/// So many bodies of requests are waited for at once; one client alone gets half of them.
const BODIES_MAX: usize = 2048;

impl Endpoint {
    pub(super) fn new(handler: Handler, config: Config, levels: (Tasks, Tasks), room: (&Budget, &Refusals)) -> Self {
        let edge = Arc::new(Edge::new(handler, &config, levels, room));
        let sessions = Sessions::new(&config, edge.label, edge.budget.clone());
        let (clients, bodies) = (Arc::default(), Shares::new(BODIES_MAX, Part::OfFree));
        let (said, challenge) = (Complaints::default(), OnceLock::new());
        Self { edge, config, sessions, clients, bodies, said, challenge, anonymous: Who::anonymous() }
    }

    /// The challenge for a token that is refused after its request was let in.
    pub(super) fn challenge(&self) -> HeaderValue {
        self.challenge.get().and_then(|make| make()).unwrap_or(INVALID_TOKEN)
    }

    /// Whose request it is, as the layers before found out; without them there is nobody to tell apart, and `open` says whether that is
    /// good enough. Where the connection is one too many of its share: that share.
    pub(super) fn who(
        &self,
        (arrival, last): (Option<&Arrival>, &Arc<LastCaller>),
        found: Option<Credential>,
        (headers, open): (&HeaderMap, Revocation),
    ) -> Result<Who, Share> {
        let (address, last) = (arrival.and_then(|arrival| arrival.client(headers)), last.clone());
        let who = match found {
            Some(Credential { principal, grants, revocation, .. }) => {
                Who { principal, address, grants, revocation, last }
            }
            None => Who { address, revocation: open, last, ..self.anonymous.clone() },
        };
        match arrival.filter(|arrival| !arrival.is_admitted()) {
            Some(arrival) if !arrival.admit(&who.share()) => Err(who.share()),
            _ => Ok(who),
        }
    }
}
