//! The state that stateless clients carry for us between two requests: given out sealed, and read again.

use super::seal::{Bond, Seal, State, Unopened, Way};
use super::{key, seal};
use crate::call::Call;
use crate::call::caller::Caller;
use crate::config::{Config, SigningKey};
use crate::protocol::frame::Method;
use crate::protocol::value::canonical;
use crate::runtime::aside;
use bytes::Bytes;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Gives states out and reads them.
pub(crate) struct SealedStates {
    configured: Vec<SigningKey>,
    folder: Option<PathBuf>,
    /// Its key is looked for when it is first needed: most gateways never need one.
    seal: OnceLock<Seal>,
    /// One moment on both clocks: times in states must mean something after a restart, and times in tests stand still.
    began: (Instant, Duration),
}

impl SealedStates {
    pub(crate) fn new(config: &Config) -> Self {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            configured: config.session.signing_keys.clone(),
            folder: config.state_folder.clone(),
            seal: OnceLock::new(),
            began: (Instant::now(), since_1970),
        }
    }

    /// The state that leads back, for a request and the upstream that asks; it holds until `until`.
    pub(crate) fn give_out(&self, origin: &Origin, upstream: &Arc<str>, way: Way, until: Instant) -> String {
        let expires = self.since_1970(until);
        self.seal().close(&State { bond: origin.bond(), upstream: upstream.clone(), expires, way }, key::random())
    }

    /// What a text says, if it was given out here, and whether it still holds.
    pub(crate) fn read(&self, text: &str) -> Result<(State, bool), Unopened> {
        // What is an upstream's own needs no key.
        if !text.starts_with(seal::PREFIX) {
            return Err(Unopened::Foreign);
        }
        let state = self.seal().open(text)?;
        let holds = !state.has_expired(self.since_1970(Instant::now()));
        Ok((state, holds))
    }

    fn since_1970(&self, at: Instant) -> Duration {
        let (began, since_1970) = self.began;
        since_1970 + at.saturating_duration_since(began)
    }

    fn seal(&self) -> &Seal {
        self.seal.get_or_init(|| Seal::new(&key::find(&self.configured, self.folder.as_deref())))
    }
}

/// A request that a state may be given out for: who makes it, and with what.
pub(crate) struct Origin {
    pub(crate) caller: Arc<Caller>,
    method: Method,
    params: Bytes,
}

impl Origin {
    pub(crate) fn of(call: &Call) -> Self {
        Self { caller: call.caller.clone(), method: call.method.clone(), params: call.params.raw().clone() }
    }

    /// What a state is bound to.
    pub(crate) fn bond(&self) -> Bond {
        let digest = aside(self.params.len(), || canonical::digest(&self.params));
        Bond { principal: self.caller.principal.clone(), method: self.method.clone(), digest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_made_for_the_states_of_others() {
        let states = SealedStates::new(&Config::default());
        assert_eq!(states.read("an upstream's").err(), Some(Unopened::Foreign));
        assert!(states.seal.get().is_none());
        assert_eq!(states.read("trunkline-2.x").err(), Some(Unopened::Broken));
        assert!(states.seal.get().is_some());
    }
}
