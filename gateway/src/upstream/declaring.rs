//! What an upstream is told in its handshake that may be asked here.

use super::standing::Standing;
use crate::protocol::beyond::Declared;
use crate::protocol::capability::Capabilities;

impl Standing {
    /// What a handshake says that may be asked here: by whoever holds it, and of the configuration.
    pub(crate) async fn declares(&self) -> Declared {
        self.with_roots(self.holding.declares().await)
    }

    /// The same, where it does not depend on what a client says.
    pub(crate) fn declares_always(&self) -> Option<Declared> {
        self.holding.declares_always().map(|declares| self.with_roots(declares))
    }

    fn with_roots(&self, declares: Declared) -> Declared {
        let roots = if self.config.roots.is_some() { Capabilities::ROOTS } else { Capabilities::NONE };
        Declared { can: declares.can.with(roots), ..declares }
    }
}
