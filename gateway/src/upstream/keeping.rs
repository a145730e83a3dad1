//! Keeps the inventory of a live peer: read when it was met, and again when it may have changed.

use super::ails::Ail;
use super::inventory::{Inventory, Item};
use super::lists;
use super::peer::Peer;
use super::reads::{Kinds, Pace};
use super::standing::Standing;
use crate::protocol::Revision;
use crate::signals;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// So soon what could not be read is asked for again: sooner the first time, ever later then.
const AGAIN_MIN: Duration = Duration::from_secs(1);
const AGAIN_MAX: Duration = Duration::from_secs(4);

/// Reads for as long as the peer lives. The first read makes the upstream ready.
pub(crate) async fn keep(standing: Arc<Standing>, peer: Arc<Peer>, begun: Instant) {
    let mut pace = Pace::new(Instant::now());
    let (mut failing, mut again) = (None, AGAIN_MIN);
    standing.reads.mark(Kinds::ALL);
    for round in 0u64.. {
        if round > 0 {
            let missed = async {
                let Some(kinds) = failing else { return std::future::pending().await };
                sleep(again).await;
                standing.reads.mark(kinds);
            };
            tokio::select! {
                () = standing.reads.due(&pace) => {}
                () = missed => {}
            }
        }
        let kinds = standing.reads.begin();
        let before = standing.inventory.borrow().clone();
        let read = lists::read(&standing, &peer, kinds, before.as_deref()).await;
        standing.reads.end();
        let inventory = match read {
            Ok(inventory) => inventory,
            Err(super::fault::Trouble::Lost(lost)) => return standing.noticed(&peer, &lost),
            Err(_) => return,
        };
        let has_changed = before.as_deref().is_none_or(|before| !before.is_same(&inventory));
        if has_changed {
            publish(&standing, inventory);
        }
        again = if failing.is_some() { (again * 2).min(AGAIN_MAX) } else { AGAIN_MIN };
        failing = tell_missing(&standing);
        if round == 0 {
            // A first notice is read at once, however soon it comes.
            ready(&standing, &peer, begun);
            pace = Pace::new(Instant::now());
        } else {
            pace.read(Instant::now(), has_changed);
        }
    }
}

/// Shows what could not be read, and says what that was.
fn tell_missing(standing: &Standing) -> Option<Kinds> {
    let failing = standing.reads.failing();
    let cause =
        failing.as_ref().map(|(_, why)| format!("{why}; what was known of it stays, and it is asked for again"));
    standing.ails(Ail::Unlisted, cause.as_deref());
    failing.map(|(kinds, _)| kinds)
}

/// From now on this is what the upstream offers.
pub(crate) fn publish(standing: &Standing, inventory: Inventory) {
    // Also where it comes from the disk: what the upstream says with the next read holds for it, too.
    let inventory = Inventory { fresh: standing.reads.fresh.clone(), ..inventory };
    let counts = inventory.counts();
    if standing.beside.is_none() {
        for (kind, count) in ["tools", "resources", "templates", "prompts"].into_iter().zip(counts) {
            standing.metrics.items(kind, count);
        }
    }
    standing.seat.update(|health| health.items = Some(counts));
    let in_headers = |tool: &Item| Some((tool.key.clone(), tool.headers.clone()?));
    let headers = if standing.is_http() && inventory.revision.is_modern() {
        inventory.tools.iter().filter_map(in_headers).collect()
    } else {
        Default::default()
    };
    standing.headers.store(Arc::new(headers));
    let as_tasks = if inventory.revision == Revision::V2025_11_25 && inventory.supports.tasks {
        inventory.tools.iter().filter(|tool| tool.runs_as_a_task()).map(|tool| tool.key.clone()).collect()
    } else {
        Default::default()
    };
    standing.as_tasks.store(Arc::new(as_tasks));
    standing.inventory.send_replace(Some(Arc::new(inventory)));
}

fn ready(standing: &Arc<Standing>, peer: &Arc<Peer>, begun: Instant) {
    standing.open_gate(peer);
    standing.metrics.start.record(begun.elapsed().as_secs_f64());
    standing.seat.update(|health| health.started_in = Some(begun.elapsed()));
    if !standing.seat.health().state.is_up() {
        standing.came_up();
    }
    let items = standing.seat.health().items;
    let [tools, resources, templates, prompts] = [0, 1, 2, 3].map(|kind| items.map(|counts| counts[kind]));
    tracing::info!(
        target: signals::UPSTREAM_STATE,
        upstream = &*standing.name,
        instance = standing.number(),
        revision = peer.revision().as_str(),
        tools,
        resources,
        templates,
        prompts,
        seconds = begun.elapsed().as_millis() as f64 / 1000.0,
        "the upstream is ready"
    );
}
