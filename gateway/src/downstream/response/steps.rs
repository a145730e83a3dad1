//! What work for a client comes to, frame by frame.

use crate::downstream::response::EncodedResponse;
use std::task::{Context, Poll};

/// What is read step by step into frames for the client: a call, or a batch of them.
pub(crate) trait StepQueue: Send + 'static {
    /// The next frame; not to be called again after the end.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn>;

    /// The next frame.
    fn turn(&mut self) -> impl Future<Output = Turn> + Send + '_ {
        std::future::poll_fn(|cx| self.poll_turn(cx))
    }
}

/// Work that can be answered before it is done.
pub(crate) trait Cut: StepQueue {
    /// The response where the gateway has no more time for it; nothing where the client waits for none.
    fn cut(&mut self) -> Option<EncodedResponse>;
}

/// Work that can be given up for its memory.
pub(crate) trait Lose: StepQueue {
    /// What still runs is dropped, and so cancelled. The response; nothing where the client waits for none.
    fn lose(&mut self) -> Option<EncodedResponse>;
}

/// What a call under way comes to.
#[derive(Debug)]
pub(crate) enum Turn {
    /// A notification or a question for the client; the call goes on.
    Event(Vec<u8>),
    /// The response; nothing follows.
    End(EncodedResponse),
    /// The client has withdrawn the call: nothing more is sent for it.
    Cancelled,
}
