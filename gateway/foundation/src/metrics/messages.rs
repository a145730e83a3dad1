//! Messages of JSON-RPC, counted where they are read and written, and shown when the metrics are read.

use ::metrics::{counter, describe_counter};
use std::sync::atomic::{AtomicU64, Ordering};

const MESSAGES: &str = "trunkline_messages_total";

/// The messages between the gateway and its clients.
pub static CLIENT: Messages = Messages::new();
/// The messages between the gateway and its upstreams.
pub static UPSTREAM: Messages = Messages::new();

/// Counts the messages of one side of the gateway; those of an array one by one. A call passes both ways on both sides and looks
/// nothing up for it.
#[derive(Debug)]
pub struct Messages {
    received: AtomicU64,
    sent: AtomicU64,
}

impl Messages {
    const fn new() -> Self {
        Self { received: AtomicU64::new(0), sent: AtomicU64::new(0) }
    }

    /// A message was read, and is one.
    pub fn received(&self) {
        self.received.fetch_add(1, Ordering::Relaxed);
    }

    /// A message is on its way.
    pub fn sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    /// The others of an array are on their way with the first, which is counted as it is written.
    pub fn sent_with_it(&self, others: usize) {
        self.sent.fetch_add(others as u64, Ordering::Relaxed);
    }
}

/// Says what the metric means.
pub(super) fn describe() {
    describe_counter!(MESSAGES, "Messages of JSON-RPC from (`in`) and to (`out`) clients and upstreams, by leg");
}

/// Shows what was counted until now.
pub fn show() {
    for (leg, of) in [("client", &CLIENT), ("upstream", &UPSTREAM)] {
        for (direction, count) in [("in", &of.received), ("out", &of.sent)] {
            counter!(MESSAGES, "leg" => leg, "direction" => direction).absolute(count.load(Ordering::Relaxed));
        }
    }
}
