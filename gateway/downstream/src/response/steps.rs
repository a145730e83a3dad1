//! What work for a client comes to, frame by frame.

use crate::call::share::Abandoned;
use crate::memory::budget::Spent;
use crate::response::EncodedResponse;
use std::sync::Arc;
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

/// Why work is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// For the memory that it takes.
    Memory,
    /// Nobody waits for it, and another call of its client needs the place.
    Place,
}

impl Lost {
    /// What is said of it.
    pub(crate) fn why(self) -> String {
        match self {
            Self::Memory => Spent::LOST.to_string(),
            Self::Place => "nobody waited for its answer, and another call of this client needed its place (`[limits] max_concurrency`)".to_owned(),
        }
    }
}

/// Work that can be given up before its end.
pub(crate) trait Lose: StepQueue {
    /// What still runs is dropped, and so cancelled. The response; nothing where the client waits for none.
    fn lose(&mut self, why: Lost) -> Option<EncodedResponse>;

    /// Nobody waits for it at the moment.
    fn abandon(&mut self, call: &Arc<Abandoned>);
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
