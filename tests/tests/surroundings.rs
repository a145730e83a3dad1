//! What happens around the gateway: the machine of an upstream vanishes, and nobody answers for its name.

#![allow(clippy::disallowed_methods)] // a test's tasks end with its runtime

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use trunkline_tests::client::{Client, Reach, tool};
use trunkline_tests::confine::or_skip;
use trunkline_tests::gateway::{Config, StdioGateway};
use trunkline_tests::journal::Order;
use trunkline_tests::network::{Names, Network};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::shell;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{until, until_within, within};

const REVISION: Revision = Revision::R2025_11_25;
/// By hand: waits for what the system takes most of a minute to notice.
const PATIENT: &str = "TRUNKLINE_VANISHED";

/// Hands every connection to this address on to that one; where it can be reached.
async fn handed_on(from: std::net::Ipv4Addr, to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind((from, 0)).await.expect("an address of ours has a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut far = TcpStream::connect(to).await.expect("the upstream listens");
                let _ended = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    address
}

async fn both_up(client: &Client, wanted: [&str; 2]) {
    client.tools_until("both are up", |tools| wanted.iter().all(|name| tools.contains(&(*name).into()))).await;
}

#[tokio::test]
async fn a_machine_that_vanishes_costs_its_own_calls_their_time_and_is_noticed() {
    let Some(network) = or_skip(Network::make()) else { return };
    let away = Upstream::http(Script::new("away", REVISION)).await;
    // It reaches nobody, and need not.
    let well = shell::upstream(&[("say", "said here")]);
    let address = handed_on(network.near, away.address()).await;
    let section = format!("[upstreams.away]\nurl = \"http://{address}/mcp\"\ncall_timeout = \"2s\"");
    let prepared = StdioGateway::prepare(&Config::new().section(&section).program("well", &well, ""));
    let client = Client::connect(&Reach::Child(network.inside(&prepared.program)), REVISION).await;
    both_up(&client, ["away__echo", "well__say"]).await;
    assert_eq!(client.call("away__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    // The system looks after each connection that nothing is said on.
    until("every connection is watched", || async {
        let open = network.connections();
        (!open.is_empty() && open.iter().all(|line| line.contains("timer:(keepalive,"))).then_some(())
    })
    .await;
    network.cut();
    let called = client.start(tool("away__echo", "{}")).await;
    assert_eq!(client.call("well__say", "{}").await.text(), "here");
    let answer = called.answer().await;
    assert!(answer.message().contains("`away`"), "{}", answer.error());
    if std::env::var_os(PATIENT).is_none() {
        return;
    }
    let begun = std::time::Instant::now();
    until_within(Duration::from_secs(70), "no connection is taken for open any more", || async {
        network.connections().is_empty().then_some(())
    })
    .await;
    eprintln!("noticed {:?} after the first call had ended", begun.elapsed());
    let says = |line: &String| (line.contains("away") && line.contains("is not available")).then(|| line.clone());
    eprintln!("{}", client.stdio().stderr.wait("it is said", says).await);
    assert_eq!(client.call("well__say", "{}").await.text(), "here");
}

#[tokio::test]
async fn a_name_that_nobody_answers_for_holds_up_its_own_upstream_alone() {
    let Some(names) = or_skip(Names::make("slow.test")) else { return };
    let (slow, well) = (Upstream::http(Script::new("slow", REVISION)).await, Script::new("well", REVISION));
    let well = Upstream::stdio(well).await;
    let port = slow.address().port();
    let section = format!("[upstreams.slow]\nurl = \"http://slow.test:{port}/mcp\"");
    let prepared = StdioGateway::prepare(&Config::new().section(&section).upstream(&well));
    let client = Client::connect(&Reach::Child(names.inside(&prepared.program)), REVISION).await;
    both_up(&client, ["slow__echo", "well__echo"]).await;
    assert_eq!(client.call("slow__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    names.forget();
    // All but one or two of them need a connection of their own, and for that the name.
    let mut held = Vec::new();
    for _ in 0..64 {
        held.push(client.start(tool("slow__wait", "{\"gate\":\"last\"}")).await);
    }
    // As long as a look-up lasts, which is longer than anybody here waits, others are read and answered as ever.
    for number in 0..3 {
        let arguments = format!("{{\"a\":{number}}}");
        assert_eq!(client.call("well__echo", &arguments).await.text(), arguments);
    }
    slow.order(Order::Open("last".into())).await;
    let mut unfound = 0;
    for call in held {
        let answer = within("each call ends", call.answer()).await;
        if answer.frame().result.is_none() {
            let message = answer.message();
            let is_said =
                message.contains("`slow`") && message.contains("DNS lookup of slow.test failed: no answer within");
            assert!(is_said, "{}", answer.error());
            unfound += 1;
        }
    }
    assert!(unfound > 0, "the cause is told");
    assert_eq!(client.call("well__echo", "{\"a\":9}").await.text(), "{\"a\":9}");
}
