//! Six clients of both eras and all revisions at once over one child and one HTTP upstream: each asks, answers, subscribes,
//! logs and cancels, and nothing of one reaches another.

#![allow(clippy::disallowed_methods)] // a test's tasks end with its runtime

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;
use trunkline_tests::client::{Changes, Client, Desk, Request, tool};
use trunkline_tests::frame::Frame;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::{Event, Order, What};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within_limit;

const CLIENTS: [(&str, Revision); 6] = [
    ("ada", Revision::R2026_07_28),
    ("bob", Revision::R2026_07_28),
    ("cyd", Revision::R2024_11_05),
    ("dan", Revision::R2025_03_26),
    ("eve", Revision::R2025_06_18),
    ("fay", Revision::R2025_11_25),
];
const ROUNDS: usize = 3;
/// For all of it, on a crowded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Whose questions an upstream's questions are when many calls are open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// Always the call's.
    Known,
    /// A pipe that all share: where several are open nobody is asked, and the question is refused.
    Doubtful,
}

struct Stage {
    upstreams: Vec<(Arc<Upstream>, Owner)>,
}

/// A gateway with a token for each client, `pipe` and `web` behind it.
async fn stage(pipe: Revision, web: Revision, keys: &str, owner: Owner) {
    let many = |script: &mut Script| script.more_resources = CLIENTS.len();
    let child = Upstream::stdio(Script::new("pipe", pipe).asking().with(many)).await;
    let host = Upstream::http(Script::new("web", web).asking().with(many)).await;
    let keys = format!("offer = [\"elicitation\", \"sampling\", \"roots\"]\n{keys}");
    let mut config = Config::new().upstream_with(&child, &keys).upstream(&host);
    for (name, _) in CLIENTS {
        config = config.section(&format!("[[auth.tokens]]\nname = \"{name}\"\ntoken = \"{}\"", token(name)));
    }
    let gateway = Gateway::serve(&config).await;
    let upstreams = vec![(Arc::new(child), owner), (Arc::new(host), Owner::Known)];
    let stage = Arc::new(Stage { upstreams });
    let mut running = JoinSet::new();
    for (number, (name, revision)) in CLIENTS.into_iter().enumerate() {
        let (stage, reach) = (stage.clone(), gateway.reach());
        running.spawn(async move {
            let client = Client::bearing_with(&reach, revision, &token(name), Desk::willing(name)).await;
            let all =
                |tools: &[String]| ["pipe__ask", "web__ask"].iter().all(|name| tools.contains(&(*name).to_owned()));
            client.tools_until("both are listed", all).await;
            for (upstream, owner) in &stage.upstreams {
                errand(&client, name, number, upstream, *owner).await;
            }
            assert_eq!(client.complaints.all(), Vec::<String>::new(), "{name}");
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.expect("a client's errand");
    }
    for (upstream, _) in &stage.upstreams {
        assert_eq!(upstream.complaints().await, Vec::<String>::new());
        answers_are_of_whom_was_asked(upstream).await;
    }
}

fn token(name: &str) -> String {
    format!("{name}-has-this-token-of-length")
}

async fn errand(client: &Client, name: &str, number: usize, upstream: &Upstream, owner: Owner) {
    let own = |tool: &str| format!("{}__{tool}", upstream.name);
    let uri = format!("script://{}/more/{number}", upstream.name);
    let ear = client.listen(&[&uri]).await;
    subscribed(upstream, &uri).await;
    for round in 0..ROUNDS {
        cancel(client, name, round, upstream).await;
        let arguments = format!("{{\"plan\":\"sampling,roots\",\"who\":\"{name}\",\"nonce\":\"{name}-{round}\"}}");
        let talk = client.converse(tool(&own("ask"), &arguments)).await;
        assert!(!talk.is_open(), "{name}: {:?}", talk.answer);
        let told: Value = serde_json::from_str(&talk.answer.text()).expect("a report");
        assert_eq!(told["who"], name, "{told}");
        for outcome in
            told["rounds"].as_array().expect("rounds").iter().flat_map(|round| round.as_array().expect("a round"))
        {
            settled(name, outcome, owner);
        }
        log(client, name, &own("chatter")).await;
        updated(&ear, upstream, &uri).await;
    }
    for frame in ear.heard.all().iter().filter(|frame| frame.is_notice("notifications/resources/updated")) {
        let about = frame.param_text("uri").unwrap_or_default();
        assert!(about.ends_with(&format!("/more/{number}")), "{name} hears of {about}");
    }
    let heard = ear.heard.all();
    of_nobody_else(name, heard.iter().chain(&client.notices.all()));
}

/// Waits until the upstream knows of the subscription.
async fn subscribed(upstream: &Upstream, uri: &str) {
    let knows = |event: &Event| match &event.what {
        What::Listening(filter) => filter.contains(uri).then_some(()),
        What::Frame { raw, .. } => (raw.contains("resources/subscribe") && raw.contains(uri)).then_some(()),
        _ => None,
    };
    upstream.events.wait(&format!("{} is asked for updates of {uri}", upstream.name), knows).await;
}

/// The resource changes, and the client hears of it, whoever subscribes to what meanwhile.
async fn updated(ear: &Changes<'_>, upstream: &Upstream, uri: &str) {
    const UPDATED: &str = "notifications/resources/updated";
    let mark = ear.heard.mark();
    upstream.order(Order::Notify(UPDATED.into(), format!("{{\"uri\":\"{uri}\"}}"))).await;
    ear.hears(mark, UPDATED).await;
}

/// Of two calls one is cancelled, and the other one goes on.
async fn cancel(client: &Client, name: &str, round: usize, upstream: &Upstream) {
    let wait = |what: &str| format!("{what}-{name}-{round}");
    let call = |gate: &str| tool(&format!("{}__wait", upstream.name), &format!("{{\"gate\":\"{gate}\"}}"));
    let stays = client.start(call(&wait("stays"))).await;
    let goes = client.start(call(&wait("goes"))).await;
    upstream.waiting_at(&wait("stays")).await;
    // Each child counts its requests by itself: an id alone would be that of another client's call, too.
    let at = wait("goes");
    let waits = |event: &Event| match &event.what {
        What::Waiting { gate, id } if *gate == at => Some((event.instance, id.clone())),
        _ => None,
    };
    let meant = upstream.events.wait(&format!("{} has {at} at its gate", upstream.name), waits).await;
    goes.cancel().await;
    let hears = |event: &Event| match &event.what {
        What::Cancelled { id, .. } => (event.instance == meant.0 && *id == meant.1).then_some(()),
        _ => None,
    };
    upstream.events.wait(&format!("{} hears that {meant:?} is cancelled", upstream.name), hears).await;
    upstream.order(Order::Open(wait("stays"))).await;
    assert_eq!(stays.answer().await.text(), "released", "{name}");
}

fn settled(name: &str, outcome: &Value, owner: Owner) {
    if owner == Owner::Doubtful && outcome["error"]["code"] == -32601 {
        return;
    }
    let answer = &outcome["answer"];
    match outcome["kind"].as_str() {
        Some("roots") => assert_eq!(answer["roots"][0]["name"], name, "{outcome}"),
        _ => assert_eq!(answer["model"], name, "{outcome}"),
    }
}

async fn log(client: &Client, name: &str, chatter: &str) {
    let mut call = tool(chatter, &format!("{{\"who\":\"{name}\"}}"));
    if client.revision.is_modern() {
        call = call.meta("io.modelcontextprotocol/logLevel", "\"error\"");
    } else {
        client.request(Request::new("logging/setLevel", "{\"level\":\"error\"}")).await.result();
    }
    let open = client.start(call).await;
    let notices = open.notices.clone();
    assert_eq!(open.answer().await.text(), "said");
    of_nobody_else(name, notices.all().iter());
}

/// Whatever names somebody names this one.
fn of_nobody_else<'a>(name: &str, frames: impl Iterator<Item = &'a Frame>) {
    for frame in frames {
        let params = frame.params.as_ref().map_or("", |raw| raw.get());
        let other = CLIENTS.iter().find(|(other, _)| *other != name && params.contains(&format!(" for {other}")));
        assert!(other.is_none(), "{name} hears what is of another: {params}");
    }
}

/// Every live question was answered by the one for whom it was.
async fn answers_are_of_whom_was_asked(upstream: &Upstream) {
    let mut asked = HashMap::new();
    for event in upstream.seen().await {
        match event.what {
            What::Asked { id, who, .. } => {
                asked.insert((event.instance, id), who);
            }
            What::Answered { id, body } => {
                let who = &asked[&(event.instance, id)];
                let other = CLIENTS.iter().find(|(other, _)| other != who && body.contains(&format!("\"{other}\"")));
                assert!(other.is_none(), "{who} was asked, and {body} came");
            }
            _ => {}
        }
    }
}

async fn at_once(pipe: Revision, web: Revision, keys: &str, owner: Owner) {
    within_limit(PATIENCE, "all six are through", Box::pin(stage(pipe, web, keys, owner))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_two_with_handshakes() {
    at_once(Revision::R2025_11_25, Revision::R2025_11_25, "", Owner::Doubtful).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_two_stateless_ones() {
    at_once(Revision::MODERN, Revision::MODERN, "", Owner::Known).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_stateless_child_and_a_host_with_sessions() {
    at_once(Revision::MODERN, Revision::R2025_11_25, "", Owner::Known).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_child_with_a_handshake_and_a_stateless_host() {
    at_once(Revision::R2025_06_18, Revision::MODERN, "", Owner::Doubtful).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_child_for_each_session() {
    at_once(Revision::R2025_11_25, Revision::R2025_11_25, "sharing = \"per-session\"", Owner::Known).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_child_for_each_principal() {
    at_once(Revision::R2025_11_25, Revision::MODERN, "sharing = \"per-principal\"", Owner::Known).await;
}
