//! How a listen call ends on a connection that others share: it is withdrawn by name before its result says that it is over.

use crate::protocol::frame;
use crate::protocol::frame::Method;
use crate::response::EncodedResponse;
use crate::response::steps::{Cut, StepQueue, Turn};
use crate::running::RunningCall;
use std::task::{Context, Poll};

/// A call whose end is announced where it is a listen call that was taken.
pub(super) struct Parting {
    running: RunningCall,
    /// Whether it was acknowledged: what was refused needs no farewell.
    was_taken: bool,
    /// The answer that follows the announcement.
    last: Option<EncodedResponse>,
}

impl Parting {
    pub(super) fn new(running: RunningCall) -> Self {
        Self { running, was_taken: false, last: None }
    }

    fn announcement(&self) -> Vec<u8> {
        let mut params = b"{\"requestId\":".to_vec();
        params.extend_from_slice(self.running.asked().id.raw());
        params.extend_from_slice(b",\"reason\":\"the gateway no longer tells of changes on this call\"}");
        frame::message::one_line(Vec::from(frame::message::notification(&Method::Cancelled, &params)))
    }
}

impl StepQueue for Parting {
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        if let Some(last) = self.last.take() {
            return Poll::Ready(Turn::End(last));
        }
        let turn = std::task::ready!(self.running.poll_turn(cx));
        if self.running.asked().method != Method::Listen {
            return Poll::Ready(turn);
        }
        Poll::Ready(match turn {
            Turn::End(answer) if self.was_taken => {
                self.last = Some(answer);
                Turn::Event(self.announcement())
            }
            Turn::Event(frame) => {
                self.was_taken = true;
                Turn::Event(frame)
            }
            turn => turn,
        })
    }
}

impl Cut for Parting {
    fn cut(&mut self) -> Option<EncodedResponse> {
        self.last.take().or_else(|| self.running.cut())
    }
}
