//! Asks an upstream anew whether it leads back to this gateway, once something says that one does.

use crate::health::chain;
use crate::peer::Peer;
use crate::peer::fault::Trouble;
use crate::protocol::frame::Method;
use crate::protocol::value::Object;
use crate::upstream::instance::Instance;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// However often that is said, it is not asked more often.
const PAUSE: Duration = Duration::from_secs(1);

/// Watches a peer that was met when the chain was at this version, for as long as it lives. Two gateways that meet at once
/// know nothing of each other yet; whichever is met before that would stay, and refuse every call.
pub(crate) async fn watch(instance: Arc<Instance>, peer: Arc<Peer>, mut version: u64) {
    let method = if peer.revision().is_modern() { Method::Discover } else { Method::Ping };
    loop {
        chain::changed(version).await;
        version = chain::version();
        if let Err(Trouble::Lost(lost)) = peer.ask(&method, &Object::empty(), instance.config.ask_limit()).await
            && lost.leads_back()
        {
            return instance.admission.retire_if_gone(&peer, &lost);
        }
        sleep(PAUSE).await;
    }
}
