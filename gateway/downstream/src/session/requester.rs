//! The caller of a session's requests, with the rights of one token.

use crate::call::caller::{Caller, Can, SessionRights};
use crate::protocol::capabilities::need;
use std::sync::{Arc, OnceLock};

/// The caller of a session's requests, with the rights of one token.
pub(crate) struct SessionCaller {
    caller: Arc<Caller>,
    /// The same for requests on whose stream it cannot be asked, once there was one.
    mute: OnceLock<Arc<Caller>>,
}

impl SessionCaller {
    pub(super) fn new(caller: Caller) -> Self {
        Self { caller: Arc::new(caller), mute: OnceLock::new() }
    }

    /// The same with these rights; `None` where it has them already.
    pub(super) fn with_rights(&self, rights: &SessionRights) -> Option<Self> {
        (!self.caller.rights().is(rights)).then(|| Self::new(self.caller.with_rights(rights)))
    }

    /// The caller of a request on whose stream it can be asked.
    pub(crate) fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// The caller of a request on whose stream it cannot be asked.
    pub(crate) fn mute(&self) -> &Arc<Caller> {
        self.mute.get_or_init(|| {
            let capabilities = need::mute(&self.caller.capabilities).into();
            Arc::new(Caller { capabilities, can: Can::default(), ..Caller::clone(&self.caller) })
        })
    }
}
