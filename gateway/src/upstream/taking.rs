//! How an instance takes a call: judged, then sent, or waiting for its turn, or refused.

use super::gate::Sending;
use super::listening::ListenSource;
use super::peer::Peer;
use super::source::CallSource;
use super::standing::Standing;
use super::tasks::Driven;
use crate::call::{Call, ListenFilter, Reason, Refusal, Reply};
use crate::protocol::Method;
use crate::protocol::object::Key;
use std::sync::Arc;

impl Standing {
    /// Takes a call that wants an answer. Nothing waits here.
    pub(crate) fn take(self: &Arc<Self>, call: Call) -> Reply {
        let revision = call.revision();
        match self.judge(&call) {
            Some(refusal) => Reply::refuse(revision, refusal),
            None if call.method == Method::Listen => self.listen(&call),
            None if self.must_drive(&call) => Reply::live(Driven::start(self, &call)),
            None => match self.admit(&call) {
                Ok(Sending::Sent(sent)) => Reply::live(CallSource::sent(self, call, sent)),
                Ok(Sending::Waiting(turn)) => Reply::live(CallSource::waiting(self, call, turn)),
                Err(refusal) => Reply::refuse(revision, refusal),
            },
        }
    }

    /// What may not be called answers as what is not there.
    fn judge(&self, call: &Call) -> Option<Refusal> {
        if call.method != Method::ToolsCall {
            return None;
        }
        let name = call.params.text(Key::Name)?;
        (!self.config.tools.admits(&name)).then(|| Refusal::new(Reason::InvalidParams, format!("Unknown tool: {name}")))
    }

    fn listen(self: &Arc<Self>, call: &Call) -> Reply {
        match ListenFilter::parse(&call.params) {
            Some(filter) => Reply::live(ListenSource::new(self, filter, call.revision())),
            None => Reply::refuse(
                call.revision(),
                Refusal::new(Reason::InvalidParams, "`notifications` must say what to listen for"),
            ),
        }
    }

    /// Tells a notification to who is there now.
    pub(crate) fn tell(&self, call: &Call) {
        // A stateless upstream asks for roots each time anew.
        let is_foreign = |peer: &Arc<Peer>| peer.revision().is_modern() && call.method == Method::RootsChanged;
        let Some(peer) = self.gate.peer().filter(|peer| !is_foreign(peer)) else { return };
        let Err(lost) = peer.tell(call) else { return };
        let (method, cause) = (call.method.label(), &**lost.text());
        tracing::debug!(upstream = &*self.name, method, cause, "a notification was not sent");
    }
}
