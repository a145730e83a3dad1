//! Rates: who calls too often is told when to come again, in the words of its transport, and nobody else waits.

use trunkline_tests::client::{Answer, Client, Request, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::{Upstream, Way};
use trunkline_tests::within::until;

const LEGACY: Revision = Revision::R2025_11_25;
const MODERN: Revision = Revision::MODERN;
const TOKENS: &str = concat!(
    "[[auth.tokens]]\nname = \"ann\"\ntoken = \"ann-has-a-long-token\"\n",
    "[[auth.tokens]]\nname = \"bob\"\ntoken = \"bob-has-a-long-token\"\n"
);

async fn client(gateway: &Gateway, name: &str, revision: Revision) -> Client {
    let mut client = Client::open(&gateway.reach(), revision).await;
    client.http().always("authorization", &format!("Bearer {name}-has-a-long-token"));
    if !revision.is_modern() {
        client.greet().await;
    }
    client.tools_until("the upstream is there", |tools| tools.contains(&"up__echo".into())).await;
    client
}

/// Calls until one is refused; how many were not, and that refusal.
async fn flood(client: &Client, name: &str) -> (usize, Answer) {
    for count in 0..100 {
        let answer = client.call_once(name, "{\"nonce\":\"n\"}").await;
        if answer.status == 429 || answer.frame().error.is_some() {
            return (count, answer);
        }
    }
    panic!("nothing is refused");
}

fn is_limited(answer: &Answer) {
    let error = answer.error_value();
    let data = &error["data"];
    assert_eq!((&data["origin"], &data["retriable"]), (&"gateway".into(), &true.into()), "{error}");
    let wait = data["retryAfterMs"].as_u64().unwrap_or_else(|| panic!("{error}"));
    assert!((1..=3_600_000).contains(&wait), "{error}");
    assert!(answer.message().contains("try again in"), "{error}");
}

#[tokio::test]
async fn a_client_that_calls_too_often_is_answered_429_with_the_time_and_others_are_served() {
    for revision in [LEGACY, MODERN] {
        let up = Upstream::http(Script::new("up", revision)).await;
        let limits = "[limits]\ncalls = \"5/h\"\n";
        let gateway = Gateway::serve(&Config::new().upstream(&up).section(limits).section(TOKENS)).await;
        let (ann, bob) = (client(&gateway, "ann", revision).await, client(&gateway, "bob", revision).await);
        let (count, refused) = flood(&ann, "up__echo").await;
        assert_eq!((count, refused.status), (5, 429), "{refused:?}");
        let seconds: u64 = refused.header("retry-after").expect("a time").parse().expect("seconds");
        assert!((700..=720).contains(&seconds), "{seconds}");
        is_limited(&refused);
        assert_eq!(bob.call("up__echo", "{\"nonce\":\"n\"}").await.status, 200);
        assert!(!ann.tools().await.is_empty(), "lists are no calls");
        // A read is a call like any other.
        let read = ann.request(Request::new("resources/read", "{\"uri\":\"script://up/text\"}")).await;
        assert_eq!(read.status, 429);
        let page = gateway.look("/metrics").await;
        assert!(String::from_utf8_lossy(&page.body).contains("trunkline_refused_total{full=\"rate\"} 2"));
        assert_eq!(up.executed().await.len(), 6, "what was refused was not sent");
    }
}

#[tokio::test]
async fn calls_at_once_and_bytes_are_limited_too_and_no_limit_outlasts_its_cause() {
    let up = Upstream::start(Way::Http, Script::new("up", MODERN)).await;
    let limits = "[limits]\nmax_concurrency = 2\nbytes = \"1MiB/h\"\n";
    let gateway = Gateway::serve(&Config::new().upstream(&up).section(limits).section(TOKENS)).await;
    let (ann, bob) = (client(&gateway, "ann", MODERN).await, client(&gateway, "bob", MODERN).await);
    let held = [ann.start(tool("up__wait", "{}")).await, ann.start(tool("up__wait", "{}")).await];
    up.waiting(2).await;
    let refused = ann.call_once("up__echo", "{\"nonce\":\"n\"}").await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    is_limited(&refused);
    assert_eq!(bob.call("up__echo", "{\"nonce\":\"n\"}").await.status, 200);
    held.iter().for_each(|call| call.abandon());
    trunkline_tests::within::until("there is room again", || async {
        (ann.call_once("up__echo", "{\"nonce\":\"n\"}").await.status == 200).then_some(())
    })
    .await;
    let large = format!("{{\"nonce\":\"{}\"}}", "x".repeat(1 << 20));
    assert_eq!(ann.call_once("up__echo", &large).await.status, 200, "it is owed");
    let refused = ann.call_once("up__echo", "{\"nonce\":\"n\"}").await;
    assert_eq!(refused.status, 429);
    assert!(refused.message().contains("1048576 bytes an hour"), "{}", refused.message());
    assert_eq!(bob.call("up__echo", "{\"nonce\":\"n\"}").await.status, 200);
}

#[tokio::test]
async fn calls_of_a_handshake_client_that_is_gone_give_their_places_to_those_of_one_that_is_there() {
    let up = Upstream::start(Way::Http, Script::new("up", LEGACY)).await;
    let limits = "[limits]\nmax_concurrency = 2\n";
    let gateway = Gateway::serve(&Config::new().upstream(&up).section(limits).section(TOKENS)).await;
    let (crashed, ann) = (client(&gateway, "ann", LEGACY).await, client(&gateway, "ann", LEGACY).await);
    let held = [crashed.start(tool("up__wait", "{}")).await, crashed.start(tool("up__wait", "{}")).await];
    up.waiting(2).await;
    let refused = ann.call_once("up__echo", "{\"nonce\":\"n\"}").await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")), "somebody waits for both");
    held.iter().for_each(|call| call.abandon());
    // The upstream goes on with them until their places are needed.
    trunkline_tests::within::until("there is room again", || async {
        (ann.call_once("up__echo", "{\"nonce\":\"n\"}").await.status == 200).then_some(())
    })
    .await;
    up.cancelled(0).await;
    let again = ann.start(tool("up__wait", "{}")).await;
    up.waiting(1).await;
    assert_eq!(ann.call("up__echo", "{\"nonce\":\"n\"}").await.status, 200, "the other gives way, too");
    drop(again);
}

#[tokio::test]
async fn limits_change_while_the_gateway_runs_and_open_connections_keep_to_them() {
    let up = Upstream::http(Script::new("up", MODERN)).await;
    let of = |limits: &str| Config::new().upstream(&up).section(limits).section(TOKENS);
    let gateway = Gateway::serve(&of("[limits]\ncalls = \"3/h\"\n")).await;
    let ann = client(&gateway, "ann", MODERN).await;
    assert_eq!(flood(&ann, "up__echo").await.0, 3);
    let set = async |limits: &str| {
        let mark = gateway.stderr.mark();
        gateway.configure(&of(limits));
        let is_it = |line: &String| line.contains("configuration reloaded").then_some(());
        gateway.stderr.wait_from(mark, "it is in force", is_it).await;
    };
    set("").await;
    for _ in 0..10 {
        assert_eq!(ann.call_once("up__echo", "{\"nonce\":\"n\"}").await.status, 200, "there is no limit");
    }
    set("[limits]\ncalls = \"2/h\"\n").await;
    let (count, refused) = flood(&ann, "up__echo").await;
    assert_eq!(count, 2, "{refused:?}");
    assert!(refused.message().contains("2 calls an hour"), "{}", refused.message());
    assert!(!gateway.stderr.all().iter().any(|line| line.contains("take effect at the next start only")));
}

#[tokio::test]
async fn a_tool_and_an_upstream_have_rates_that_all_clients_share() {
    for (way, revision) in [(Way::Http, MODERN), (Way::Stdio, LEGACY)] {
        let up = Upstream::start(way, Script::new("up", revision)).await;
        let keys = "call_rate = \"6/h\"\ntools = { override = { touch = { call_rate = \"2/h\" } } }";
        let gateway = Gateway::serve(&Config::new().upstream_with(&up, keys).section(TOKENS)).await;
        let (ann, bob) = (client(&gateway, "ann", revision).await, client(&gateway, "bob", revision).await);
        for who in [&ann, &bob] {
            assert_eq!(who.call_once("up__touch", "{\"nonce\":\"n\"}").await.status, 200);
        }
        let refused = ann.call_once("up__touch", "{\"nonce\":\"n\"}").await;
        assert_eq!(refused.status, 429, "{refused:?}");
        let seconds: u64 = refused.header("retry-after").expect("a time").parse().expect("seconds");
        assert!((1700..=1800).contains(&seconds), "{seconds}");
        is_limited(&refused);
        assert!(refused.message().contains("the tool `up__touch` may have 2 calls an hour"), "{}", refused.message());
        // What a tool was refused its upstream has left: six less the two that ran. Of these nobody has more than others find.
        let (count, refused) = flood(&bob, "up__echo").await;
        assert_eq!((count, refused.status), (2, 429), "{refused:?}");
        is_limited(&refused);
        let said = refused.message();
        assert!(said.contains("the upstream `up` may have 6 calls an hour"), "{said}");
        assert!(said.contains("what is left of them is for other clients"), "{said}");
        let (count, refused) = flood(&ann, "up__echo").await;
        assert_eq!((count, refused.status), (1, 429), "it is a rate of all clients: {refused:?}");
        assert!(!ann.tools().await.is_empty(), "lists are no calls");
        let page = String::from_utf8_lossy(&gateway.look("/metrics").await.body).into_owned();
        for counted in ["{full=\"tool_rate\"} 1", "{full=\"upstream_rate\"} 2"] {
            assert!(page.contains(&format!("trunkline_refused_total{counted}")), "{counted}");
        }
        assert_eq!(up.executed().await.len(), 5, "what was refused was not sent");
    }
}

#[tokio::test]
async fn one_client_alone_has_a_whole_rate_and_a_new_one_is_the_next() {
    let up = Upstream::start(Way::Http, Script::new("up", MODERN)).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&up, "call_rate = \"30/m\"").section(TOKENS)).await;
    let (ann, bob) = (client(&gateway, "ann", MODERN).await, client(&gateway, "bob", MODERN).await);
    let (count, refused) = flood(&ann, "up__echo").await;
    assert!((30..33).contains(&count), "{count}: {refused:?}");
    assert!(!refused.message().contains("for other clients"), "{}", refused.message());
    // There is none now. What comes next is for who has had none, however often the other one asks.
    assert_eq!(bob.call_once("up__echo", "{\"nonce\":\"n\"}").await.status, 429);
    until("the next one is bob's", || async {
        let refused = ann.call_once("up__echo", "{\"nonce\":\"n\"}").await;
        assert_eq!(refused.status, 429, "{refused:?}");
        (bob.call_once("up__echo", "{\"nonce\":\"n\"}").await.status == 200).then_some(())
    })
    .await;
}
