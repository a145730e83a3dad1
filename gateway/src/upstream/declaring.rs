//! What an upstream is told in its handshake that may be asked here.

use crate::protocol::capabilities::beyond::Declared;
use crate::upstream::config::Config;
use crate::upstream::owner::Ownership;

/// What a handshake says that may be asked here: by the owner of the instance, and of the configuration.
pub(crate) async fn declares(owner: &Ownership, config: &Config) -> Declared {
    with_own(config, owner.declares().await)
}

/// As [`declares`], where it does not depend on what a client has yet to say.
pub(crate) fn declares_now(owner: &Ownership, config: &Config) -> Option<Declared> {
    owner.declares_now().map(|declared| with_own(config, declared))
}

/// As [`declares`], where the one client of the gateway has said this.
pub(crate) fn declares_of(config: &Config, said: &Declared) -> Declared {
    with_own(config, Ownership::told_by(said.clone()))
}

fn with_own(config: &Config, declared: Declared) -> Declared {
    Declared { can: declared.can.with(config.answers()), ..declared }
}
