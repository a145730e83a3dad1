//! How far a stream of events was read, so that it can be resumed there.

use crate::protocol::framing::sse::SseEvent;
use bytes::Bytes;
use std::time::Duration;

/// What an upstream can ask for.
const RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(60));

/// What a stream has said of how it is resumed.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// The last event id.
    pub(crate) last: Option<Bytes>,
    /// How long to wait first.
    pub(crate) retry: Option<Duration>,
}

impl Place {
    /// Notes what an event sets.
    pub(crate) fn note(&mut self, event: &SseEvent) -> bool {
        if let Some(retry) = event.retry {
            self.retry = Some(Duration::from_millis(retry).clamp(RETRY.0, RETRY.1));
        }
        match &event.id {
            Some(id) if Some(id) != self.last.as_ref() => {
                // An empty id takes the last one back.
                // A copy: a part of the event would keep all of it.
                self.last = (!id.is_empty()).then(|| Bytes::copy_from_slice(id));
                true
            }
            _ => false,
        }
    }
}
