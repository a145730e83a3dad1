//! What reads the bytes of upstreams here, as plain functions: see [`crate::fuzzing`].

use super::instance::chunks::Chunks;
use crate::call::ListenFilter;
use crate::call::share::Share;
use crate::memory::budget::Budget;
use crate::protocol::payload::chunk;
use crate::protocol::value::Object;
use crate::upstream::instance::inventory::Item;
use crate::upstream::instance::subscriptions::{NextStream, Requests, StreamPlan, WantedSubscriptions};
use bytes::Bytes;
pub use trunkline_client::fuzzing::{answered_id, bare, joined, pause};

/// A foreign text without what a terminal or a log would act on.
pub fn printable(text: &str) -> String {
    crate::secrets::printable(text)
}

/// The name of an item, and how many headers its calls have; an error where its annotations are wrong.
pub fn item(raw: Bytes, key: &str) -> Option<(String, Result<(), String>)> {
    let mut item = Item::parse(raw, key)?;
    let compiled = item.compile_headers();
    Some((item.key.to_string(), compiled))
}

/// Takes chunks of results, one after the other.
pub fn chunks(all: &[Object]) -> usize {
    let (chunks, budget) = (Chunks::default(), Budget::default());
    all.iter().filter(|params| chunk::part_of(params).is_some() && chunks.arrived(params, &budget)).count()
}

/// Resources that somebody wants to hear of, and what is told of them.
pub fn told(wanted: &[&str], changed: &[&str]) {
    let wants = WantedSubscriptions::default();
    let key = wants.listen(wanted.iter().map(|uri| (*uri).into()).collect(), &Share::Unknown);
    wanted.iter().for_each(|uri| wants.settled(uri, true));
    changed.iter().for_each(|uri| wants.updated(uri, None));
    wants.all_missed();
    wants.leave(key);
}

/// So many subscriptions, one after the other, each kept by a handshake upstream before the next comes; and given up again.
pub fn subscriptions(count: usize) {
    let (wants, mut requests) = (WantedSubscriptions::default(), Requests::new());
    let news = wants.follow();
    come_and_go(&wants, count, || {
        news.take().iter().for_each(|uri| requests.look(&wants, uri));
        while let Some(request) = requests.next(&wants) {
            requests.answered(&wants, &request.uri, request.begins, true);
        }
    });
}

/// The same with a stateless upstream.
pub fn streams(count: usize) {
    let (wants, mut plan, mut id) = (WantedSubscriptions::default(), StreamPlan::default(), 0);
    let news = wants.follow();
    come_and_go(&wants, count, || {
        news.take().iter().for_each(|uri| plan.look(&wants, uri));
        while let Some(NextStream { filter, replaces }) = plan.next(&ListenFilter::lists()) {
            id += 1;
            plan.opened(&wants, id, &filter, &filter.uris);
            replaces.into_iter().for_each(|id| plan.ended(id));
        }
    });
}

fn come_and_go(wants: &WantedSubscriptions, count: usize, mut keep: impl FnMut()) {
    let mut keys = Vec::new();
    for at in 0..count {
        keys.push(wants.listen(vec![format!("file:///{at}").into()], &Share::Unknown));
        keep();
    }
    for key in keys {
        wants.leave(key);
        keep();
    }
}
