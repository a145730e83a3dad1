//! What reads the bytes of HTTP upstreams here, as plain functions: see [`crate::fuzzing`].

use super::{fragments, retry_after};
use crate::memory::Gather;
use crate::memory::account::Kind;
use crate::memory::budget::Budget;
use crate::protocol::frame::message::Body;
use crate::protocol::framing::sse::SseEvent;
use bytes::Bytes;
use fragments::Unjoined;
use http::HeaderMap;
use std::time::Duration;

/// For how long the headers of a refusal ask to be left alone.
pub(crate) fn pause(headers: &HeaderMap) -> Option<Duration> {
    retry_after::pause(headers)
}

/// What events, each a name and its data, come to as the answer to the request 7, with so many bytes of parts: of which kind it is, and
/// what it says. None where no event ends it.
pub(crate) fn joined(events: Vec<(Bytes, Bytes)>, max: usize) -> Option<(&'static str, Bytes)> {
    let (mut parts, budget) = (None, Budget::default());
    let room = || Gather::new(&budget, Kind::Line, max);
    let answer = events.into_iter().find_map(|(name, data)| {
        let event = SseEvent { name, data, ..SseEvent::default() };
        fragments::take(&mut parts, &event, 7, (max, room))
    })?;
    Some(match answer {
        Ok(Body::Result(result)) => ("result", result.raw().clone()),
        Ok(Body::Error(raw)) => ("error", raw),
        Ok(Body::Odd(raw)) => ("odd", raw),
        Ok(Body::Neither) => ("neither", Bytes::new()),
        Err(Unjoined::TooLong(why) | Unjoined::Unreadable(why)) => ("unjoined", why.into()),
        Err(Unjoined::NoRoom(why)) => ("unjoined", why.to_string().into()),
    })
}
