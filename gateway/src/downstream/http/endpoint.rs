//! What every request to the endpoint shares.

use crate::call::{Grants, Handler, Principal};
use crate::downstream::config::Config;
use crate::downstream::edge::Edge;
use crate::downstream::peer::Who;
use crate::downstream::sessions::Sessions;
use crate::lifecycle::Tasks;
use http::Extensions;
use std::sync::Arc;

/// The endpoint behind its service.
pub(super) struct Endpoint {
    pub(super) edge: Arc<Edge>,
    pub(super) config: Config,
    pub(super) sessions: Sessions,
    anonymous: Who,
}

impl Endpoint {
    pub(super) fn new(handler: Handler, config: Config, tasks: Tasks) -> Self {
        let edge = Arc::new(Edge::new(handler, &config, tasks));
        let sessions = Sessions::new(config.session.clone(), edge.label);
        Self { edge, config, sessions, anonymous: Who::anonymous() }
    }

    /// Whose request it is, as the layers before found out; without them there is nobody to tell apart.
    pub(super) fn who(&self, found: &Extensions) -> Who {
        match found.get::<Principal>() {
            Some(principal) => {
                let grants = found.get::<Grants>().cloned().unwrap_or_else(Grants::all);
                Who { principal: principal.clone(), grants }
            }
            None => self.anonymous.clone(),
        }
    }
}
