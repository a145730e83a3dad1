//! What work for a client comes to, frame by frame.

use super::asked::Answer;
use std::task::{Context, Poll};

/// What is read step by step into frames for the client: a call, or a batch of them.
pub(super) trait Turns: Send + 'static {
    /// The next frame; not to be called again after the end.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn>;

    /// The next frame.
    fn turn(&mut self) -> impl Future<Output = Turn> + Send + '_ {
        std::future::poll_fn(|cx| self.poll_turn(cx))
    }
}

/// Work that can be answered before it is done.
pub(super) trait Cut: Turns {
    /// The response where the gateway has no more time for it; nothing where the client waits for none.
    fn cut(&mut self) -> Option<Answer>;
}

/// What a call under way comes to.
#[derive(Debug)]
pub(super) enum Turn {
    /// A notification or a question for the client; the call goes on.
    Event(Vec<u8>),
    /// The response; nothing follows.
    End(Answer),
    /// The client has withdrawn the call: nothing more is sent for it.
    Cancelled,
}
