//! Client revision × upstream revision × transports: every scenario holds through the gateway.
//!
//! 2024-11-05 has no Streamable HTTP by the book; clients and upstreams that agree on it there are served all the same.

mod bridging;

use std::sync::Arc;

use trunkline_tests::client::{Client, Desk, Reach};
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::scenario::{self, Case};
use trunkline_tests::script::Script;
use trunkline_tests::upstream::{Upstream, Way};

/// One cell: a gateway of its own between one client and one upstream, with a bystander that must not be disturbed.
async fn check(client: Revision, client_way: Way, upstream_revision: Revision, upstream_way: Way) {
    let upstream = Upstream::start(upstream_way, Script::new("up", upstream_revision).asking().tasked()).await;
    let offer = match upstream_way {
        Way::Stdio => "offer = [\"elicitation\", \"sampling\", \"roots\"]",
        Way::Http => "",
    };
    let bystander = Upstream::http(Script::new("by", Revision::R2025_11_25)).await;
    let config = Config::new().upstream_with(&upstream, offer).upstream(&bystander);
    match client_way {
        Way::Http => {
            let gateway = Gateway::serve(&config).await;
            run(&gateway.reach(), client, upstream, upstream_revision, bystander).await;
        }
        Way::Stdio => {
            let gateway = StdioGateway::prepare(&config);
            run(&gateway.reach(), client, upstream, upstream_revision, bystander).await;
        }
    }
}

async fn run(reach: &Reach, revision: Revision, upstream: Upstream, upstream_revision: Revision, bystander: Upstream) {
    let client = Client::connect_with(reach, revision, Desk::willing("ada")).await;
    let both = |tools: &[String]| ["up__echo", "by__echo"].iter().all(|name| tools.iter().any(|tool| tool == name));
    client.tools_until("the tools of both upstreams are listed", both).await;
    scenario::run_all(Case {
        client,
        upstream: Arc::new(upstream),
        upstream_revision,
        is_alone: matches!(reach, Reach::Child(_)),
        prefix: "up__".into(),
        bystander: Some(Arc::new(bystander)),
    })
    .await;
}

macro_rules! cell {
    ($client:ident, $upstream:ident) => {
        use super::*;

        #[tokio::test]
        async fn stdio_to_stdio() {
            check(Revision::$client, Way::Stdio, Revision::$upstream, Way::Stdio).await;
        }

        #[tokio::test]
        async fn stdio_to_http() {
            check(Revision::$client, Way::Stdio, Revision::$upstream, Way::Http).await;
        }

        #[tokio::test]
        async fn http_to_stdio() {
            check(Revision::$client, Way::Http, Revision::$upstream, Way::Stdio).await;
        }

        #[tokio::test]
        async fn http_to_http() {
            check(Revision::$client, Way::Http, Revision::$upstream, Way::Http).await;
        }
    };
}

macro_rules! matrix {
    ($($name:ident: $client:ident),*) => {$(
        mod $name {
            use super::*;

            mod to_2024_11_05 {
                cell! { $client, R2024_11_05 }
            }
            mod to_2025_03_26 {
                cell! { $client, R2025_03_26 }
            }
            mod to_2025_06_18 {
                cell! { $client, R2025_06_18 }
            }
            mod to_2025_11_25 {
                cell! { $client, R2025_11_25 }
            }
            mod to_2026_07_28 {
                cell! { $client, R2026_07_28 }
            }
        }
    )*};
}

matrix! {
    from_2024_11_05: R2024_11_05,
    from_2025_03_26: R2025_03_26,
    from_2025_06_18: R2025_06_18,
    from_2025_11_25: R2025_11_25,
    from_2026_07_28: R2026_07_28
}
