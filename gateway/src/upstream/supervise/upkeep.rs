//! What is kept up for a live peer: its lists are read, and it tells of what is wanted. A peer that proves to be gone is given up.

use crate::metrics;
use crate::peer::Peer;
use crate::upstream::calls::sessions::open_gate;
use crate::upstream::instance::Instance;
use crate::upstream::instance::inventory::refresh;
use crate::upstream::instance::subscriptions;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Has the lists read for as long as the peer lives. The first read makes the upstream ready.
pub(crate) async fn keep_inventory(instance: Arc<Instance>, peer: Arc<Peer>, begun: Instant) {
    let (parts, config) = ((&instance.offering, &instance.status), &instance.config);
    if let Some(lost) = refresh::keep(parts, config, &peer, || ready(&instance, &peer, begun)).await {
        instance.admission.retire_if_gone(&peer, &lost);
    }
}

/// Has a peer keep what is wanted, for as long as it lives: see [`subscriptions::keep`].
pub(crate) async fn keep_wanted(
    instance: Arc<Instance>,
    peer: Arc<Peer>,
    was_away: bool,
    settled: oneshot::Sender<()>,
) {
    let (wanted, reads) = (&instance.wanted, &instance.offering.reads);
    if let Some(lost) = subscriptions::keep((wanted, reads), &instance.config, &peer, was_away, settled).await {
        instance.admission.retire_if_gone(&peer, &lost);
    }
}

/// The first lists were read.
fn ready(instance: &Arc<Instance>, peer: &Arc<Peer>, begun: Instant) {
    let status = &instance.status;
    open_gate(instance, peer);
    status.metrics.start.record(begun.elapsed().as_secs_f64());
    status.handle.update(|health| health.started_in = Some(begun.elapsed()));
    if !status.handle.health().state.is_up() {
        status.came_up();
    }
    let items = status.handle.health().items;
    let [tools, resources, templates, prompts] = [0, 1, 2, 3].map(|kind| items.map(|counts| counts[kind]));
    tracing::info!(
        target: metrics::UPSTREAM_STATE,
        upstream = &*instance.name,
        instance = status.number,
        state = "ready",
        revision = peer.named_revision(),
        tools,
        resources,
        templates,
        prompts,
        seconds = begun.elapsed().as_millis() as f64 / 1000.0,
        "upstream ready"
    );
}
