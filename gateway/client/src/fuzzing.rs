//! Parsers of upstreams' bytes as plain functions, for programs that test them.

use crate::transport;
use crate::transport::remote::websocket::bare;
use bytes::Bytes;
use http::HeaderMap;
use std::time::Duration;

/// For how long the headers of a refusal ask to be left alone.
pub fn pause(headers: &HeaderMap) -> Option<Duration> {
    transport::http::fuzzing::pause(headers)
}

/// What events, each a name and its data, come to as the answer to the request 7, with so many bytes of parts: of which kind it is, and
/// what it says. None where no event ends it.
pub fn joined(events: Vec<(Bytes, Bytes)>, max: usize) -> Option<(&'static str, Bytes)> {
    transport::http::fuzzing::joined(events, max)
}

/// The frame that a message in the dialect `{id, name, arguments}` stands for, and what is wrong with it where nothing says whose it is.
pub fn bare(text: &Bytes) -> (Option<Bytes>, Option<String>) {
    (bare::answer(text), bare::unmatched(text))
}

/// The id of an answer that cannot be read whole.
pub fn answered_id(head: &[u8], tail: &[u8]) -> Option<u64> {
    transport::pipe::answered_id(head, tail)
}
