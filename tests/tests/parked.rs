//! Handshake upstreams ask stateless clients: the call is parked, its retry takes it up again, and nothing runs twice.

use serde_json::{Value, json};
use trunkline_tests::client::converse::{Conversation, again, asks};
use trunkline_tests::client::{Answer, Client, Desk, Request, tool};
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::journal::{Event, What};
use trunkline_tests::process;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::{Upstream, Way};

/// The tool that asks, in a plan of these words.
fn ask(plan: &str, nonce: &str) -> Request {
    tool("up__ask", &format!("{{\"plan\":\"{plan}\",\"who\":\"ada\",\"nonce\":\"{nonce}\"}}"))
}

/// An upstream that asks.
async fn upstream(way: Way) -> Upstream {
    Upstream::start(way, Script::new("up", Revision::R2025_11_25).asking()).await
}

/// What a child is told that it may ask; over HTTP that is what each caller declares.
fn offer(way: Way) -> &'static str {
    if way == Way::Stdio { "offer = [\"elicitation\", \"sampling\", \"roots\"]" } else { "" }
}

async fn gateway(upstream: &Upstream, keys: &str, sections: &str) -> Gateway {
    Gateway::serve(&Config::new().upstream_with(upstream, keys).section(sections)).await
}

/// A stateless client that answers whatever it is asked.
async fn client(gateway: &Gateway) -> Client {
    let client = Client::connect_with(&gateway.reach(), Revision::MODERN, Desk::willing("ada")).await;
    ready(&client).await;
    client
}

async fn ready(client: &Client) {
    client.tools_until("the tool is there", |tools| tools.contains(&"up__ask".to_owned())).await;
}

/// The first round of a call: what it asks, and the retry that answers it.
async fn first_round(client: &Client, request: &Request) -> (Answer, Request) {
    let answer = client.request(request.clone()).await;
    assert!(asks(&answer), "{answer:?}");
    let responses = client.desk.respond(&answer).await.expect("the desk answers");
    let retry = again(request, &answer, &responses);
    (answer, retry)
}

fn told(conversation: &Conversation) -> Value {
    serde_json::from_str(&conversation.answer.text()).expect("a report is JSON")
}

/// That a retry is refused, with this in its words.
async fn refused(client: &Client, retry: &Request, why: &str) {
    let answer = client.request(retry.clone()).await;
    assert_eq!(answer.code(), -32602, "{answer:?}");
    assert!(answer.message().contains(why), "{why}: {}", answer.message());
}

async fn content(upstream: &Upstream, client: &Client) {
    assert_eq!(upstream.complaints().await, Vec::<String>::new());
    assert_eq!(client.complaints.all(), Vec::<String>::new());
}

#[tokio::test]
async fn calls_are_answered_round_by_round() {
    for way in [Way::Stdio, Way::Http] {
        let upstream = upstream(way).await;
        let gateway = gateway(&upstream, offer(way), "").await;
        let client = client(&gateway).await;
        let talk = client.converse(ask("form+roots,sampling", "a")).await;
        // Questions that come together go out together; on a machine that is held up they may not come so.
        assert!((2..=3).contains(&talk.rounds), "{talk:?}");
        let told = told(&talk);
        assert_eq!(told["rounds"][0][0]["answer"]["content"]["from"], "ada", "{told}");
        assert_eq!(told["rounds"][0][1]["answer"]["roots"][0]["name"], "ada", "{told}");
        assert_eq!(told["rounds"][1][0]["answer"]["model"], "ada", "{told}");
        let message = client.desk.asked(0).await.params["message"].clone();
        assert!(message.as_str().is_some_and(|message| message.starts_with("[up] ")), "{message}");
        upstream.ran("a").await;
        assert_eq!(upstream.executed().await, ["a"]);
        content(&upstream, &client).await;
    }
}

#[tokio::test]
async fn a_client_on_stdio_is_asked_too() {
    let upstream = upstream(Way::Stdio).await;
    let gateway = StdioGateway::prepare(&Config::new().upstream(&upstream));
    let client = Client::connect_with(&gateway.reach(), Revision::MODERN, Desk::willing("ada")).await;
    ready(&client).await;
    let talk = client.converse(ask("form,form", "a")).await;
    assert_eq!((talk.rounds, told(&talk)["rounds"].as_array().map(Vec::len)), (2, Some(2)));
    assert_eq!(upstream.executed().await, ["a"]);
    content(&upstream, &client).await;
}

#[tokio::test]
async fn pages_are_visited_and_the_call_is_made_again() {
    for way in [Way::Stdio, Way::Http] {
        let upstream = upstream(way).await;
        let gateway = gateway(&upstream, offer(way), "").await;
        let client = client(&gateway).await;
        let talk = client.converse(ask("required", "a")).await;
        assert_eq!((talk.rounds, told(&talk)["rounds"].clone()), (1, json!([[]])), "{talk:?}");
        content(&upstream, &client).await;
    }
}

#[tokio::test]
async fn what_is_altered_foreign_or_used_is_refused_and_harms_nothing() {
    let token = |name: &str| format!("{name}-has-a-long-token");
    let sections: String = ["ada", "bob"]
        .map(|name| format!("[[auth.tokens]]\nname = \"{name}\"\ntoken = \"{}\"\n", token(name)))
        .concat();
    let upstream = upstream(Way::Http).await;
    let gateway = gateway(&upstream, "", &sections).await;
    let open = async |name: &str| {
        let client = Client::open_with(&gateway.reach(), Revision::MODERN, Desk::willing("ada")).await;
        client.http().always("authorization", &format!("Bearer {}", token(name)));
        ready(&client).await;
        client
    };
    let (ada, bob) = (open("ada").await, open("bob").await);
    let (answer, retry) = first_round(&ada, &ask("form", "a")).await;
    let state = answer.value()["requestState"].as_str().expect("a state").to_owned();
    refused(&bob, &retry, "unknown").await;
    let with = |text: &str, other: &str| Request { params: retry.params.replace(text, other), ..retry.clone() };
    let last = if state.ends_with('A') { "B" } else { "A" };
    refused(&ada, &with(&state, &format!("{}{last}", &state[..state.len() - 1])), "unknown").await;
    refused(&ada, &with(&state, "made-up"), "unknown").await;
    refused(&ada, &with("\"a\"", "\"b\""), "another call").await;
    assert_eq!(ada.request(retry.clone()).await.value()["isError"], Value::Null);
    refused(&ada, &retry, "already used").await;
    upstream.ran("a").await;
    assert_eq!(upstream.executed().await, ["a"]);
    content(&upstream, &ada).await;
}

#[tokio::test]
async fn an_abandoned_call_ends_at_the_upstream() {
    for way in [Way::Stdio, Way::Http] {
        let upstream = upstream(way).await;
        let gateway = gateway(&upstream, "question_timeout = \"3s\"", "").await;
        let client = client(&gateway).await;
        let (_, retry) = first_round(&client, &ask("form", "a")).await;
        hears_of_no_answer(&upstream).await;
        let given_up = "trunkline_parked_calls_ended_total{reason=\"expired\"} 1";
        gateway.look_until("/metrics", "the call is given up", |page| page.contains(given_up)).await;
        refused(&client, &retry, "expired").await;
        assert_eq!(upstream.executed().await, ["a"]);
    }
}

#[tokio::test]
async fn a_call_whose_upstream_dies_is_lost_and_not_made_again() {
    let upstream = upstream(Way::Stdio).await;
    let gateway = gateway(&upstream, "", "").await;
    let client = client(&gateway).await;
    let (_, retry) = first_round(&client, &ask("form", "a")).await;
    process::signal(upstream.started(0).await.0, "KILL");
    upstream.started(1).await;
    refused(&client, &retry, "is no longer valid").await;
    assert_eq!(upstream.executed().await, ["a"]);
    // The next call is none the worse for it.
    assert_eq!(client.converse(ask("form", "b")).await.rounds, 1);
}

#[tokio::test]
async fn when_the_gateway_ends_parked_calls_do_not_hold_it_up() {
    for way in [Way::Stdio, Way::Http] {
        let upstream = upstream(way).await;
        let gateway = gateway(&upstream, "", "[server.shutdown]\ngrace = \"10m\"").await;
        let client = client(&gateway).await;
        first_round(&client, &ask("form", "a")).await;
        assert!(gateway.stop().await.success());
        hears_of_no_answer(&upstream).await;
        assert_eq!(upstream.executed().await, ["a"]);
    }
}

#[tokio::test]
async fn a_restart_loses_what_was_parked_and_runs_nothing() {
    let upstream = upstream(Way::Http).await;
    let sections = "[server.session]\nsigning_key = \"0123456789abcdef0123456789abcdef\"";
    let before = gateway(&upstream, "", sections).await;
    let (_, retry) = first_round(&client(&before).await, &ask("form", "a")).await;
    before.stop().await;
    let after = gateway(&upstream, "", sections).await;
    refused(&client(&after).await, &retry, "another process of the gateway").await;
    assert_eq!(upstream.executed().await, ["a"]);
}

#[tokio::test]
async fn a_retry_that_nothing_waits_for_never_reaches_a_handshake_upstream() {
    for way in [Way::Stdio, Way::Http] {
        let upstream = upstream(way).await;
        let gateway = gateway(&upstream, "", "").await;
        let client = client(&gateway).await;
        let request = ask("form", "a");
        for more in [r#""requestState":"made up""#, r#""inputResponses":{}"#] {
            let params = request.params.replacen('{', &format!("{{{more},"), 1);
            refused(&client, &Request { params, ..request.clone() }, "nothing waits for this retry").await;
        }
        assert_eq!(upstream.executed().await, [""; 0]);
        content(&upstream, &client).await;
    }
}

/// Waits until the upstream was told that its question has no answer.
async fn hears_of_no_answer(upstream: &Upstream) {
    let pick = |event: &Event| match &event.what {
        What::Frame { raw, .. } => raw.contains(r#""action":"cancel""#).then_some(()),
        _ => None,
    };
    upstream.events.wait("the upstream is told that there is no answer", pick).await;
}
