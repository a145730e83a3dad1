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
        Way::Http => "",
        _ => "offer = [\"elicitation\", \"sampling\", \"roots\"]",
    };
    let bystander = Upstream::http(Script::new("by", Revision::R2025_11_25)).await;
    let config = Config::new().upstream_with(&upstream, offer).upstream(&bystander);
    if client_way == Way::Stdio {
        let gateway = StdioGateway::prepare(&config);
        run(&gateway.reach(), client, upstream, upstream_revision, bystander).await;
        return;
    }
    let config = if client_way == Way::Unix { config.with_socket() } else { config };
    let gateway = Gateway::serve(&config).await;
    run(&gateway.reach_by(client_way), client, upstream, upstream_revision, bystander).await;
}

/// Every scenario between a client that comes by `reach` and an upstream of a gateway.
pub(crate) async fn run(
    reach: &Reach,
    revision: Revision,
    upstream: Upstream,
    upstream_revision: Revision,
    bystander: Upstream,
) {
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

/// A cell with an upstream that speaks both eras: nothing is bridged, and no question is parked.
async fn check_dual(client: Revision, client_way: Way, upstream_way: Way) {
    let handshake = if client.is_modern() { Revision::R2025_11_25 } else { client };
    let both = |script: &mut Script| script.revisions = vec![handshake, Revision::MODERN];
    let upstream = Upstream::start(upstream_way, Script::new("up", handshake).asking().tasked().with(both)).await;
    let bystander = Upstream::http(Script::new("by", Revision::R2025_11_25).with(both)).await;
    let keys = match upstream_way {
        Way::Http => "",
        _ => "eras = \"both\"\noffer = [\"elicitation\", \"sampling\", \"roots\"]",
    };
    let config = Config::new().upstream_with(&upstream, keys).upstream(&bystander);
    if client_way == Way::Stdio {
        let gateway = StdioGateway::prepare(&config);
        run(&gateway.reach(), client, upstream, client, bystander).await;
        return;
    }
    let gateway = Gateway::serve(&config).await;
    run(&gateway.reach_by(client_way), client, upstream, client, bystander).await;
    let page = String::from_utf8_lossy(&gateway.look("/metrics").await.body).into_owned();
    let counts = |series: &str| -> Vec<String> {
        page.lines().filter(|line| line.starts_with(series)).map(ToString::to_string).collect()
    };
    let bridged = counts("trunkline_bridged_calls_total{");
    assert!(bridged.len() == 2 && bridged.iter().all(|line| line.ends_with(" 0")), "{bridged:?}");
    let parked = counts("trunkline_parked_calls_ended_total{");
    assert!(parked.iter().all(|line| line.ends_with(" 0")), "{parked:?}");
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
        async fn stdio_to_websocket() {
            check(Revision::$client, Way::Stdio, Revision::$upstream, Way::WebSocket).await;
        }

        #[tokio::test]
        async fn http_to_websocket() {
            check(Revision::$client, Way::Http, Revision::$upstream, Way::WebSocket).await;
        }

        #[tokio::test]
        async fn stdio_to_sse() {
            check(Revision::$client, Way::Stdio, Revision::$upstream, Way::Sse).await;
        }

        #[tokio::test]
        async fn http_to_sse() {
            check(Revision::$client, Way::Http, Revision::$upstream, Way::Sse).await;
        }

        #[tokio::test]
        async fn http_to_unix() {
            check(Revision::$client, Way::Http, Revision::$upstream, Way::Unix).await;
        }

        #[tokio::test]
        async fn unix_to_stdio() {
            check(Revision::$client, Way::Unix, Revision::$upstream, Way::Stdio).await;
        }

        #[tokio::test]
        async fn unix_to_http() {
            check(Revision::$client, Way::Unix, Revision::$upstream, Way::Http).await;
        }

        #[tokio::test]
        async fn http_to_stdio() {
            check(Revision::$client, Way::Http, Revision::$upstream, Way::Stdio).await;
        }

        #[tokio::test]
        async fn http_to_http() {
            check(Revision::$client, Way::Http, Revision::$upstream, Way::Http).await;
        }

        #[tokio::test]
        async fn websocket_to_stdio() {
            check(Revision::$client, Way::WebSocket, Revision::$upstream, Way::Stdio).await;
        }

        #[tokio::test]
        async fn websocket_to_http() {
            check(Revision::$client, Way::WebSocket, Revision::$upstream, Way::Http).await;
        }

        #[tokio::test]
        async fn websocket_to_websocket() {
            check(Revision::$client, Way::WebSocket, Revision::$upstream, Way::WebSocket).await;
        }

        #[tokio::test]
        async fn websocket_to_sse() {
            check(Revision::$client, Way::WebSocket, Revision::$upstream, Way::Sse).await;
        }

        #[tokio::test]
        async fn sse_to_stdio() {
            check(Revision::$client, Way::Sse, Revision::$upstream, Way::Stdio).await;
        }

        #[tokio::test]
        async fn sse_to_http() {
            check(Revision::$client, Way::Sse, Revision::$upstream, Way::Http).await;
        }

        #[tokio::test]
        async fn sse_to_websocket() {
            check(Revision::$client, Way::Sse, Revision::$upstream, Way::WebSocket).await;
        }

        #[tokio::test]
        async fn sse_to_sse() {
            check(Revision::$client, Way::Sse, Revision::$upstream, Way::Sse).await;
        }

        #[tokio::test]
        async fn stdio_to_unix() {
            check(Revision::$client, Way::Stdio, Revision::$upstream, Way::Unix).await;
        }

        #[tokio::test]
        async fn websocket_to_unix() {
            check(Revision::$client, Way::WebSocket, Revision::$upstream, Way::Unix).await;
        }

        #[tokio::test]
        async fn sse_to_unix() {
            check(Revision::$client, Way::Sse, Revision::$upstream, Way::Unix).await;
        }

        #[tokio::test]
        async fn unix_to_websocket() {
            check(Revision::$client, Way::Unix, Revision::$upstream, Way::WebSocket).await;
        }

        #[tokio::test]
        async fn unix_to_sse() {
            check(Revision::$client, Way::Unix, Revision::$upstream, Way::Sse).await;
        }

        #[tokio::test]
        async fn unix_to_unix() {
            check(Revision::$client, Way::Unix, Revision::$upstream, Way::Unix).await;
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

            mod to_both_eras {
                use super::*;

                #[tokio::test]
                async fn stdio_to_stdio() {
                    check_dual(Revision::$client, Way::Stdio, Way::Stdio).await;
                }

                #[tokio::test]
                async fn stdio_to_http() {
                    check_dual(Revision::$client, Way::Stdio, Way::Http).await;
                }

                #[tokio::test]
                async fn http_to_websocket() {
                    check_dual(Revision::$client, Way::Http, Way::WebSocket).await;
                }

                #[tokio::test]
                async fn http_to_sse() {
                    check_dual(Revision::$client, Way::Http, Way::Sse).await;
                }

                #[tokio::test]
                async fn http_to_stdio() {
                    check_dual(Revision::$client, Way::Http, Way::Stdio).await;
                }

                #[tokio::test]
                async fn http_to_http() {
                    check_dual(Revision::$client, Way::Http, Way::Http).await;
                }

                #[tokio::test]
                async fn websocket_to_http() {
                    check_dual(Revision::$client, Way::WebSocket, Way::Http).await;
                }

                #[tokio::test]
                async fn websocket_to_websocket() {
                    check_dual(Revision::$client, Way::WebSocket, Way::WebSocket).await;
                }

                #[tokio::test]
                async fn sse_to_sse() {
                    check_dual(Revision::$client, Way::Sse, Way::Sse).await;
                }
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
