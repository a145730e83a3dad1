//! Keeps the inventory of a live peer: read when it was met, and again when it may have changed.

use super::again::Again;
use super::contents::Inventory;
use super::fetch;
use super::offering::Offering;
use super::schedule::{ListKinds, ReadPace, ReadSchedule};
use crate::health::row::State;
use crate::health::{Cause, CauseCode};
use crate::metrics;
use crate::metrics::catalog;
use crate::peer::Peer;
use crate::peer::fault::Trouble;
use crate::runtime::timer::late::within;
use crate::transport::exchange::Lost;
use crate::upstream::config::Config;
use crate::upstream::status::{Condition, Status};
use std::time::Duration;
use tokio::time::Instant;

/// What is remarked of an upstream whose lists are all empty.
const EMPTY: &str = "it offers no tools, resources or prompts";

/// Reads for as long as the peer lives; `ready` is called after the first read. Returns what showed that the peer is gone.
pub(crate) async fn keep(
    (offering, status): (&Offering, &Status),
    config: &Config,
    peer: &Peer,
    ready: impl Fn() + Send,
) -> Option<Lost> {
    let reads = &offering.reads;
    let mut pace = ReadPace::new(Instant::now());
    let mut again = Again::default();
    reads.mark(ListKinds::ALL);
    let mut is_first = true;
    loop {
        if !is_first {
            tokio::select! {
                () = reads.due(&pace) => {}
                kinds = again.due() => reads.mark(kinds),
            }
        }
        let kinds = reads.begin();
        let announced = reads.take_announced();
        let before = offering.inventory.borrow().clone();
        let reading = fetch::read((config, status, reads), peer, kinds, before.as_deref());
        let read = if is_first { first((status, reads), config.start_wait, reading).await } else { reading.await };
        reads.end();
        let inventory = match read {
            Ok(inventory) => Inventory { announced: inventory.announced.and(announced), ..inventory },
            Err(Trouble::Lost(lost)) => return Some(lost),
            Err(_) => return None,
        };
        let has_changed = before.as_deref().is_none_or(|before| !before.is_same(&inventory));
        if has_changed || !announced.are_none() {
            publish((offering, status), config.is_http(), inventory);
        }
        let is_whole = reads.failing().is_none();
        catalog::refreshed(&status.name, if is_whole { "ok" } else { "failed" }).increment(1);
        if is_whole && status.number.is_none() {
            catalog::read_now(&status.name);
        }
        again.read(reads.failing().map(|failing| (failing.kinds, failing.is_full)), kinds);
        tell_missing(status, reads, again.pause);
        if std::mem::take(&mut is_first) {
            // A first notice is read at once, however soon it comes.
            ready();
            pace = ReadPace::new(Instant::now());
        } else {
            pace.read(Instant::now(), has_changed);
        }
    }
}

/// The first read. Until it ends the upstream is starting: after as long as calls wait that is shown with what it waits for, and
/// neither lists nor calls wait for it any longer.
async fn first<T>((status, reads): (&Status, &ReadSchedule), limit: Duration, reading: impl Future<Output = T>) -> T {
    let mut reading = std::pin::pin!(reading);
    if let Ok(read) = within(limit, reading.as_mut()).await {
        return read;
    }
    let cause = Cause::new(CauseCode::ListPending, format!("connected, but no answer to {} yet", reads.awaited()));
    let mut is_shown = false;
    status.handle.update(|health| {
        is_shown = health.state == State::Starting;
        if is_shown {
            (health.cause, health.has_failed) = (Some(cause.clone()), true);
        }
    });
    if is_shown {
        let (upstream, instance, cause_code) = (&*status.name, status.number, cause.code().as_str());
        let cause = &*cause.full();
        tracing::warn!(target: metrics::UPSTREAM_STATE, upstream, instance, state = "starting", cause, cause_code, "upstream slow to start");
    }
    reading.await
}

/// Shows what could not be read, and when it is asked for again.
fn tell_missing(status: &Status, reads: &ReadSchedule, again: Duration) {
    let cause = reads.failing().map(|failing| match failing.is_full {
        true => failing.why.own(&format!("; the last known list stays, read again in {} s", again.as_secs())),
        false => failing.why.own("; the last known list stays, retrying"),
    });
    status.set_condition(Condition::Unlisted, cause.as_ref());
}

/// What counted as the inventory is none of those who ask; nothing is known until it is read.
pub(crate) fn withdraw(offering: &Offering, status: &Status) {
    status.handle.update(|health| health.items = None);
    offering.withdraw();
}

/// From now on this is what the upstream offers.
pub(crate) fn publish((offering, status): (&Offering, &Status), is_http: bool, inventory: Inventory) {
    let counts = inventory.counts();
    if status.number.is_none() {
        for (kind, count) in ["tools", "resources", "templates", "prompts"].into_iter().zip(counts) {
            status.metrics.items(kind, count);
        }
        catalog::bytes(&status.name, inventory.bytes());
    }
    status.handle.update(|health| {
        health.items = Some(counts);
        match counts.iter().all(|count| *count == 0) {
            true => _ = health.remarks.insert("empty", EMPTY.to_owned()),
            false => _ = health.remarks.remove("empty"),
        }
    });
    offering.publish(inventory, is_http);
}
