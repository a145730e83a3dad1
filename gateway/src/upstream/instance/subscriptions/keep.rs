//! Has the live peer keep what is wanted: subscriptions, and for handshake upstreams the log level.

use super::wanted::Wanted;
use super::{handshake, log_level, stateless};
use crate::peer::Peer;
use crate::peer::fault::Trouble;
use crate::transport::exchange::Lost;
use crate::upstream::config::Config;
use crate::upstream::instance::inventory::schedule::ReadSchedule;
use tokio::sync::oneshot;

/// Has a peer keep what is wanted, for as long as it lives; `was_away` says that changes may have been missed. `settled` hears when
/// it tells of changes, or is known not to; who does not wait for that may miss what changes before, which is then made good.
///
/// Returns what showed that the peer is gone.
pub(crate) async fn keep(
    (wanted, reads): (&Wanted, &ReadSchedule),
    config: &Config,
    peer: &Peer,
    was_away: bool,
    settled: oneshot::Sender<()>,
) -> Option<Lost> {
    if !peer.revision().is_modern() {
        tokio::select! {
            _gone = handshake::keep(&wanted.subscriptions, peer, config.ask_limit(), was_away) => {}
            () = log_level::keep(&wanted.levels, peer) => {}
        }
        return None;
    }
    match stateless::keep((&wanted.subscriptions, reads), config, peer, was_away, settled).await {
        Trouble::Lost(lost) => Some(lost),
        _ => None,
    }
}
