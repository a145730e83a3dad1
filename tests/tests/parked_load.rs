//! A thousand parked calls at once over one upstream with a handshake, for seventeen principals: half are taken up again, a
//! quarter comes back altered, a quarter never comes back. Nothing runs twice, every question is told, nothing is left.

#![allow(clippy::disallowed_methods)] // a test's tasks end with its runtime

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use trunkline_tests::client::converse::{again, asks};
use trunkline_tests::client::{Answer, Client, Desk, Request, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::{Event, What};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within_limit;

const PRINCIPALS: usize = 17;
const EACH: usize = 60;
const CALLS: usize = PRINCIPALS * EACH;
/// How many seconds a question waits for its answer: long enough to park and retry all of them. A machine on which the first is
/// too short has the next.
const ANSWER_WITHIN: [u64; 4] = [4, 20, 60, 180];
/// So much more may be resident after a load than after the one before it: two KiB a call.
const MORE_MAX: u64 = 2 << 20;
const PATIENCE: Duration = Duration::from_secs(240);
/// Requests that are under way at once, parked ones aside.
const AT_ONCE: usize = 48;

/// How many calls the upstream has at once, those aside during which somebody is asked.
const PLACES: usize = 16;

/// What becomes of a parked call.
#[derive(Clone, Copy)]
enum Fate {
    Retried,
    Altered,
    Abandoned,
}

fn fate(number: usize) -> Fate {
    match number % 4 {
        0 | 1 => Fate::Retried,
        2 => Fate::Altered,
        _ => Fate::Abandoned,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long; .ci/full runs it"]
async fn a_thousand_parked_calls_leave_nothing_behind() {
    let _alone = super::whole().await;
    for seconds in ANSWER_WITHIN {
        if loads(Duration::from_secs(seconds)).await.is_ok() {
            return;
        }
    }
    panic!("within {ANSWER_WITHIN:?} s not all of them could be parked and retried");
}

/// Some of what was parked may have expired before it could be retried: nothing can be said of such a load.
struct TooSlow;

/// One load after another, until what they leave behind is known; questions wait so long for their answers.
async fn loads(answer_within: Duration) -> Result<(), TooSlow> {
    let quiet = |script: &mut Script| script.journal_frames = false;
    let upstream = Upstream::http(Script::new("up", Revision::R2025_11_25).asking().with(quiet)).await;
    // Whoever waits for an answer has no place, or the first few would keep all others out.
    let keys = format!("max_concurrency = {PLACES}\nquestion_timeout = \"{}s\"", answer_within.as_secs());
    let mut config = Config::new().upstream_with(&upstream, &keys);
    // An allocator with a heap for each thread, which gives free memory back when it likes, makes megabytes come and go by
    // themselves. With one thread and nothing held back, what is resident is what is in use.
    config = config.env("TOKIO_WORKER_THREADS", "1").env("MIMALLOC_PURGE_DELAY", "0");
    for number in 0..PRINCIPALS {
        config = config.section(&format!("[[auth.tokens]]\nname = \"p{number}\"\ntoken = \"{}\"", token(number)));
    }
    let gateway = Gateway::serve(&config).await;
    let mut clients = Vec::new();
    for number in 0..PRINCIPALS {
        let client =
            Client::open_with(&gateway.reach(), Revision::MODERN, Desk::willing(&who(number)).unjudging()).await;
        client.http().always("authorization", &format!("Bearer {}", token(number)));
        clients.push(Arc::new(client));
    }
    clients[0].tools_until("the upstream is listed", |tools| tools.contains(&"up__ask".into())).await;
    let mut ends = Vec::new();
    // What is left behind is left behind by every load; what tables and buffers have grown to is used again by the next one.
    while !ends.windows(2).any(|two: &[u64]| two[1].saturating_sub(two[0]) < MORE_MAX) {
        assert!(ends.len() < 4, "every load left more behind than the one before it: {ends:?}");
        let load = one_load(&gateway, &upstream, &clients, ends.len() + 1, answer_within);
        within_limit(PATIENCE + answer_within, "a load", load).await?;
        ends.push(resident(gateway.pid));
    }
    for client in clients {
        assert_eq!(client.complaints.all(), Vec::<String>::new());
    }
    assert_eq!(upstream.complaints().await, Vec::<String>::new());
    Ok(())
}

fn who(number: usize) -> String {
    format!("p{number}")
}

fn token(number: usize) -> String {
    format!("principal-{number:04}-has-this-token")
}

async fn one_load(
    gateway: &Gateway,
    upstream: &Upstream,
    clients: &[Arc<Client>],
    load: usize,
    answer_within: Duration,
) -> Result<(), TooSlow> {
    let (mark, begun) = (upstream.events.mark(), Instant::now());
    // The first of them was asked after this began, so that nothing has expired before.
    let in_time = || if begun.elapsed() < answer_within { Ok(()) } else { Err(TooSlow) };
    let parked =
        every(clients, |client, number| async move { client.request(call(&client, load, number)).await }).await;
    let at_once = gauge(gateway, "trunkline_parked_calls").await;
    in_time()?;
    for (number, answer) in parked.iter().enumerate() {
        assert!(asks(answer), "call {number} is parked: {answer:?}");
    }
    assert_eq!(at_once, CALLS as f64, "all are parked at once");
    let parked = Arc::new(parked);
    let settled = every(clients, |client, number| {
        let parked = parked.clone();
        async move { settle(&client, load, number, &parked[number]).await }
    })
    .await;
    in_time()?;
    for (number, answers) in settled.iter().enumerate() {
        judge(number, answers);
    }
    // The others end when their time is up.
    gateway
        .look_until_within(PATIENCE, "/metrics", "nothing is parked, nothing runs", |page| {
            value(page, "trunkline_parked_calls") == Some(0.0)
                && value(page, "trunkline_inflight_requests") == Some(0.0)
        })
        .await;
    let (calls, doubled) = upstream.report().await;
    assert_eq!((calls, doubled), ((CALLS * load) as u64, 0), "every call ran, and none of them twice");
    let answers = answers(upstream, mark).await;
    let told = answers.iter().filter(|body| body.contains("file:///home/p")).count();
    assert_eq!((answers.len(), told), (CALLS, CALLS / 2), "every question is told what became of it");
    Ok(())
}

fn call(client: &Client, load: usize, number: usize) -> Request {
    let name = &client.desk.name;
    tool("up__ask", &format!("{{\"plan\":\"roots\",\"who\":\"{name}\",\"nonce\":\"{name}-{load}-{number}\"}}"))
}

/// Does with a parked call what becomes of it; gives what was answered.
async fn settle(client: &Client, load: usize, number: usize, parked: &Answer) -> Vec<Answer> {
    let retry = again(&call(client, load, number), parked, &client.desk.respond(parked).await.expect("an answer"));
    match fate(number) {
        Fate::Abandoned => Vec::new(),
        Fate::Altered => {
            let at = retry.params.find("\"requestState\":\"").expect("a state") + "\"requestState\":\"".len() + 40;
            let mut bytes = retry.params.into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let params = String::from_utf8(bytes).expect("a seal is ASCII");
            vec![client.request(Request::new("tools/call", &params)).await]
        }
        Fate::Retried => {
            vec![client.request(retry.clone()).await, client.request(retry).await]
        }
    }
}

fn judge(number: usize, answers: &[Answer]) {
    match (fate(number), answers) {
        (Fate::Abandoned, []) => {}
        (Fate::Altered, [refused]) => assert_eq!(refused.code(), -32602, "an altered state"),
        (Fate::Retried, [done, again]) => {
            assert!(done.text().contains(&format!("file:///home/{}", who(number % PRINCIPALS))), "{done:?}");
            assert_eq!(again.code(), -32602, "a state is good once");
        }
        (_, other) => panic!("{other:?}"),
    }
}

/// Does something for every call, so many at once, and gives what came of each in order.
async fn every<T: Send + 'static, F>(clients: &[Arc<Client>], act: impl Fn(Arc<Client>, usize) -> F) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = JoinSet::new();
    for number in 0..CALLS {
        let (deed, places) = (act(clients[number % PRINCIPALS].clone(), number), places.clone());
        running.spawn(async move {
            let _place = places.acquire().await.expect("it is never closed");
            (number, deed.await)
        });
    }
    let mut all: Vec<(usize, T)> = Vec::with_capacity(CALLS);
    while let Some(ended) = running.join_next().await {
        all.push(ended.expect("a call's deed"));
    }
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, made)| made).collect()
}

/// What the upstream was told since then, once it has been told of every question.
async fn answers(upstream: &Upstream, mark: usize) -> Vec<String> {
    let mut count = 0;
    let last = |event: &Event| {
        count += usize::from(matches!(event.what, What::Answered { .. }));
        (count == CALLS).then_some(())
    };
    upstream.events.wait_from(mark, "every question is told", last).await;
    let told = upstream.events.all().into_iter().skip(mark).filter_map(|event| match event.what {
        What::Answered { body, .. } => Some(body),
        _ => None,
    });
    told.collect()
}

fn value(page: &str, name: &str) -> Option<f64> {
    let lines = page.lines().filter(|line| line.split(['{', ' ']).next() == Some(name));
    lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).reduce(|sum, one| sum + one)
}

async fn gauge(gateway: &Gateway, name: &str) -> f64 {
    let page = String::from_utf8_lossy(&gateway.look("/metrics").await.body).into_owned();
    value(&page, name).unwrap_or_else(|| panic!("no {name} in {page}"))
}

/// The resident memory of a process, in bytes.
fn resident(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).expect("the gateway runs");
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("pages are counted") * 4096
}
