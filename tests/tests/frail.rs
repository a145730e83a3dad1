//! One scripted upstream, `frail`, a gateway before it and a client, once its tools are listed: where it is tried what an upstream that
//! fails costs.

use trunkline_tests::client::Client;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::{Upstream, Way};

pub(crate) struct Stage {
    pub(crate) upstream: Upstream,
    pub(crate) gateway: Gateway,
    pub(crate) client: Client,
}

/// The stage of an upstream of this name, which is reached so, with these keys.
pub(crate) async fn stage(way: Way, script: Script, keys: &str) -> Stage {
    let upstream = Upstream::start(way, script).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, keys)).await;
    let client = Client::connect(&gateway.reach(), Revision::R2025_11_25).await;
    client.tools_until("the upstream's tools are listed", |tools| tools.contains(&"frail__echo".into())).await;
    Stage { upstream, gateway, client }
}
