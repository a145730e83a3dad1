//! What an upstream is told in its handshake that may be asked here.

use crate::protocol::capabilities::beyond::Declared;
use crate::upstream::config::Config;
use crate::upstream::owner::Ownership;

/// What a handshake says that may be asked here: by the owner of the instance, and of the configuration.
pub(crate) async fn declares(owner: &Ownership, config: &Config) -> Declared {
    with_own(config, owner.declares().await)
}

/// As [`declares`], where it does not depend on what a client says.
pub(crate) fn declares_always(owner: &Ownership, config: &Config) -> Option<Declared> {
    owner.declares_always().map(|declared| with_own(config, declared))
}

fn with_own(config: &Config, declared: Declared) -> Declared {
    Declared { can: declared.can.with(config.answers()), ..declared }
}
