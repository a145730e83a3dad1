//! `trunkline stdio` has one client: its session, as soon as it has one, is the session of every upstream.

use super::upstreams::Upstreams;
use crate::call::reply::Reply;
use crate::call::{Call, Handle, Handler};
use std::sync::{Arc, Mutex, PoisonError};

/// Looks at the calls of the one client.
pub(super) struct OneClient {
    inner: Handler,
    upstreams: Arc<Upstreams>,
    /// The session that upstreams were told of.
    session: Mutex<Option<Arc<str>>>,
}

impl OneClient {
    /// Around everything that answers it.
    pub(super) fn around(inner: Handler, upstreams: &Arc<Upstreams>) -> Handler {
        Arc::new(Self { inner, upstreams: upstreams.clone(), session: Mutex::default() })
    }
}

impl Handle for OneClient {
    fn handle(&self, call: Call) -> Reply {
        if let Some(tenant) = &call.caller.tenant {
            let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
            if session.as_ref() != Some(tenant.id()) {
                *session = Some(tenant.id().clone());
                self.upstreams.belong_to(tenant);
            }
        }
        // It is the operator's own: it is told what others are not.
        self.inner.handle(call).in_full()
    }
}
