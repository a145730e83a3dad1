//! Asks an upstream anew whether it leads back to this gateway, once it is known that others stand above.

use super::fault::Trouble;
use super::peer::Peer;
use super::standing::Standing;
use crate::lifecycle::chain;
use crate::protocol::{Method, Object};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// However often others turn up, it is not asked more often.
const PAUSE: Duration = Duration::from_secs(1);

/// Watches a peer that was met when the chain was at this version, for as long as it lives. Two gateways that meet at once
/// know nothing of each other yet; who was let in before that would stay, and refuse every call.
pub(crate) async fn watch(standing: Arc<Standing>, peer: Arc<Peer>, mut version: u64) {
    let method = if peer.revision().is_modern() { Method::Discover } else { Method::Ping };
    loop {
        chain::changed(version).await;
        version = chain::version();
        if let Err(Trouble::Lost(lost)) = peer.ask(&method, &Object::empty(), standing.ask_limit()).await
            && lost.leads_back()
        {
            return standing.noticed(&peer, &lost);
        }
        sleep(PAUSE).await;
    }
}
