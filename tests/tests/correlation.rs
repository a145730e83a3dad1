//! Sixty-four calls at a time over one shared upstream, all with the same id where each has a connection of its own: none crossed, lost or
//! doubled.
//!
//! The four tests make 16,000 calls together, and 10^5 in `.ci/full`. Every call carries a nonce that the upstream echoes and counts.

#![allow(clippy::disallowed_methods)] // a test's tasks end with its runtime

use std::sync::Arc;

use trunkline_tests::client::{Client, Desk, Reach, tool};
use trunkline_tests::extent::sized;
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::judge::{self, Judge};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::{Upstream, Way};

const AT_ONCE: usize = 64;

/// Each call has a connection of its own, and so may all have one id.
fn same(_worker: usize) -> String {
    "1".to_owned()
}

async fn upstream(way: Way) -> Upstream {
    let script = Script::new("up", Revision::R2025_11_25).with(|script| script.journal_frames = false);
    Upstream::start(way, script).await
}

async fn connect(reach: &Reach, revision: Revision) -> Arc<Client> {
    let client = Client::connect_with(reach, revision, Desk::closed().unjudging()).await;
    client.tools_until("the upstream's tools are listed", |tools| tools.contains(&"up__echo".to_owned())).await;
    Arc::new(client)
}

/// Spreads the calls over the clients, always so many at once, and judges them.
async fn judge(clients: &[Arc<Client>], upstream: &Upstream, id_of: fn(usize) -> String) {
    let count = sized(4_000, 25_000);
    let mut workers = Vec::new();
    for worker in 0..AT_ONCE {
        let client = clients[worker % clients.len()].clone();
        let calls = count / AT_ONCE + usize::from(worker < count % AT_ONCE);
        workers.push(tokio::spawn(work(client, calls, id_of(worker))));
    }
    let mut judge = Judge::default();
    for worker in workers {
        judge.join(worker.await.expect("a worker ends"));
    }
    judge.assert_clean(count as u64);
    assert_eq!(upstream.report().await, (count as u64, 0), "each call ran once");
    for client in clients {
        assert_eq!(client.complaints.all(), Vec::<String>::new());
    }
}

async fn work(client: Arc<Client>, calls: usize, id: String) -> Judge {
    let mut judge = Judge::default();
    for _ in 0..calls {
        let nonce = judge::nonce();
        let request = tool("up__echo", &judge::arguments(&nonce)).id(&id);
        let answer = client.start(request).await.outcome().await;
        judge.hear(&id, &nonce, answer.as_ref());
    }
    judge
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stateless_clients_over_a_child() {
    let upstream = upstream(Way::Stdio).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = connect(&gateway.reach(), Revision::MODERN).await;
    judge(&[client], &upstream, same).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_session_over_a_child() {
    let upstream = upstream(Way::Stdio).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = connect(&gateway.reach(), Revision::R2025_11_25).await;
    judge(&[client], &upstream, same).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_sessions_over_http() {
    let upstream = upstream(Way::Http).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let mut clients = Vec::new();
    for session in 0..8 {
        clients.push(connect(&gateway.reach(), Revision::LEGACY[session % 4]).await);
    }
    judge(&clients, &upstream, same).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_pipe_over_a_child() {
    // An id is used again as soon as its answer is there.
    let upstream = upstream(Way::Stdio).await;
    let gateway = StdioGateway::prepare(&Config::new().upstream(&upstream));
    let client = connect(&gateway.reach(), Revision::R2025_06_18).await;
    judge(&[client], &upstream, |worker| worker.to_string()).await;
}
