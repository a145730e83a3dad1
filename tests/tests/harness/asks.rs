//! A scripted upstream asks, a scripted client answers: every kind of question, with nothing between them.

use serde_json::{Value, json};
use trunkline_tests::client::converse::Conversation;
use trunkline_tests::client::{Client, Desk, Reach, Reply, Request, tool};
use trunkline_tests::journal::{Event, Order, What};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::script::plan::Kind;
use trunkline_tests::upstream::{Upstream, Way};

const KINDS: [Kind; 5] = [Kind::Form, Kind::Url, Kind::Sampling, Kind::SamplingTools, Kind::Roots];

async fn pair(way: Way, revision: Revision, desk: Desk) -> (Upstream, Client) {
    let upstream = Upstream::start(way, Script::new("up", revision).asking()).await;
    let reach = match way {
        Way::Stdio => Reach::Child(upstream.program()),
        _ => Reach::Url(upstream.url()),
    };
    let client = Client::connect_with(&reach, revision, desk).await;
    (upstream, client)
}

fn ask(plan: &str) -> Request {
    tool("ask", &format!("{{\"plan\":\"{plan}\",\"who\":\"ada\"}}"))
}

fn report(conversation: &Conversation) -> Value {
    serde_json::from_str(&conversation.answer.text()).expect("a report is JSON")
}

async fn content(upstream: &Upstream, client: &Client) {
    assert_eq!(upstream.complaints().await, Vec::<String>::new());
    assert_eq!(client.complaints.all(), Vec::<String>::new());
}

async fn every_cell<F: Future<Output = ()>>(check: impl Fn(Way, Revision) -> F) {
    for way in [Way::Stdio, Way::Http] {
        for revision in Revision::ALL {
            check(way, revision).await;
        }
    }
}

#[tokio::test]
async fn every_kind_is_asked_and_answered() {
    every_cell(|way, revision| async move {
        let (upstream, client) = pair(way, revision, Desk::willing("ada")).await;
        for kind in KINDS {
            let told = report(&client.converse(ask(kind.word())).await);
            let outcome = &told["rounds"][0][0];
            assert_eq!(outcome["kind"], kind.word(), "{told}");
            if kind.is_in(revision) {
                let answer = &outcome["answer"];
                let names = answer.to_string().contains("ada") || *answer == json!({"action": "accept"});
                assert!(names, "{revision} {told}");
            } else {
                assert_eq!(outcome["unknown"], true, "{revision} {told}");
            }
        }
        content(&upstream, &client).await;
    })
    .await;
}

#[tokio::test]
async fn prompts_and_resources_ask_too() {
    every_cell(|way, revision| async move {
        let (upstream, client) = pair(way, revision, Desk::willing("ada")).await;
        let prompt = Request::new("prompts/get", r#"{"name":"ask","arguments":{"plan":"roots","who":"ada"}}"#);
        let told = client.converse(prompt).await.answer.value();
        let text = told["messages"][0]["content"]["text"].as_str().expect("a text");
        assert!(text.contains("file:///home/ada"), "{told}");
        let resource = Request::new("resources/read", r#"{"uri":"script://up/ask/roots+sampling/ada"}"#);
        let told = client.converse(resource).await.answer.value();
        let text = told["contents"][0]["text"].as_str().expect("a text");
        assert!(text.contains("file:///home/ada") && text.contains("ada says"), "{told}");
        content(&upstream, &client).await;
    })
    .await;
}

#[tokio::test]
async fn two_at_once_and_two_rounds() {
    every_cell(|way, revision| async move {
        let (upstream, client) = pair(way, revision, Desk::willing("ada")).await;
        let talk = client.converse(ask("roots+sampling,state,sampling")).await;
        let told = report(&talk);
        let kinds: Vec<String> = told["rounds"]
            .as_array()
            .expect("rounds")
            .iter()
            .map(|round| {
                round
                    .as_array()
                    .expect("a round")
                    .iter()
                    .map(|one| one["kind"].as_str().expect("a kind"))
                    .collect::<Vec<_>>()
                    .join("+")
            })
            .collect();
        assert_eq!(kinds, ["roots+sampling", "", "sampling"], "{told}");
        assert_eq!(talk.rounds, if revision.is_modern() { 3 } else { 0 });
        content(&upstream, &client).await;
    })
    .await;
}

#[tokio::test]
async fn what_is_declined_refused_or_undeclared_is_told() {
    every_cell(|way, revision| async move {
        let desk = Desk::willing("ada").reply(Kind::Form, Reply::Decline).reply(Kind::Sampling, Reply::Refuse(-1));
        let (upstream, client) = pair(way, revision, desk).await;
        if Kind::Form.is_in(revision) {
            let told = report(&client.converse(ask("form")).await);
            assert_eq!(told["rounds"][0][0]["answer"], json!({"action": "decline"}), "{told}");
        }
        let refused = client.converse(ask("sampling")).await;
        if revision.is_modern() {
            assert!(refused.is_open(), "there is no way to say no: {refused:?}");
        } else {
            assert_eq!(report(&refused)["rounds"][0][0]["error"]["code"], -1);
        }
        content(&upstream, &client).await;
        let (upstream, client) = pair(way, revision, Desk::closed()).await;
        let refused = client.converse(ask("roots")).await;
        if revision.is_modern() {
            assert_eq!(refused.answer.code(), -32021);
            assert_eq!(refused.answer.status, if way == Way::Http { 400 } else { 200 });
        } else {
            assert_eq!(report(&refused)["rounds"][0][0]["undeclared"], true);
        }
        content(&upstream, &client).await;
        // A peer that asks all the same is complained of.
        client.converse(ask("!roots")).await;
        assert!(client.complaints.all()[0].contains("undeclared, yet asked"), "{:?}", client.complaints.all());
    })
    .await;
}

#[tokio::test]
async fn a_question_is_withdrawn() {
    for way in [Way::Stdio, Way::Http] {
        let desk = Desk::willing("ada").reply(Kind::Roots, Reply::Gate("late".into(), Box::new(Reply::Accept)));
        let (upstream, client) = pair(way, Revision::R2025_11_25, desk).await;
        let (told, ()) = tokio::join!(client.converse(ask("roots~")), async {
            let asked = client.desk.asked(0).await;
            upstream.order(Order::Release("withdraw".into())).await;
            client.desk.withdrawn.wait("it is withdrawn", |id| (*id == asked.id).then_some(())).await;
            client.desk.release("late");
        });
        assert_eq!(report(&told)["rounds"][0][0]["withdrawn"], true);
        // Whatever is behind the gate has had its turn once another call is through.
        client.call("echo", "{}").await;
        assert_eq!(client.desk.answered.all(), Vec::<String>::new());
        content(&upstream, &client).await;
    }
}

#[tokio::test]
async fn a_call_is_cancelled_while_it_asks_and_progress_comes_meanwhile() {
    every_cell(|way, revision| async move {
        let desk = Desk::willing("ada").reply(Kind::Roots, Reply::Silence);
        let (upstream, client) = pair(way, revision, desk).await;
        let request = tool("ask", r#"{"plan":"roots","who":"ada","progress":"yes"}"#).token("7");
        let open = client.start(request).await;
        open.progress(1).await;
        if revision.is_modern() {
            assert!(open.answer().await.result().contains("input_required"));
        } else {
            client.desk.asked(0).await;
            let mark = upstream.events.mark();
            open.cancel().await;
            assert_eq!(upstream.cancelled(mark).await.0, open.id);
        }
        content(&upstream, &client).await;
    })
    .await;
}

#[tokio::test]
async fn an_error_asks_for_consent_once() {
    for way in [Way::Stdio, Way::Http] {
        let (upstream, client) = pair(way, Revision::R2025_11_25, Desk::willing("ada")).await;
        let arguments = r#"{"plan":"required","who":"ada","nonce":"one"}"#;
        let error = client.call("ask", arguments).await.error_value();
        assert_eq!(error["code"], -32042);
        assert_eq!(error["data"]["elicitations"][0]["mode"], "url", "{error}");
        assert_eq!(client.call("ask", arguments).await.text(), r#"{"who":"ada","rounds":[[]]}"#);
        content(&upstream, &client).await;
    }
}

#[tokio::test]
async fn questions_come_without_a_call() {
    for way in [Way::Stdio, Way::Http] {
        let (upstream, client) = pair(way, Revision::R2025_11_25, Desk::willing("ada")).await;
        let _stream = client.listen(&[]).await;
        if way == Way::Http {
            let listens = |event: &Event| matches!(event.what, What::Listening(_)).then_some(());
            upstream.events.wait("the stream is open", listens).await;
        }
        upstream.order(Order::Ask("form+roots".into(), "ada".into())).await;
        let answers = |event: &Event| match &event.what {
            What::Answered { body, .. } if body.contains("file:///home/ada") => Some(()),
            _ => None,
        };
        upstream.events.wait("the roots come", answers).await;
        client.desk.asked(1).await;
        content(&upstream, &client).await;
    }
}

#[tokio::test]
async fn a_strict_upstream_holds_states_against_their_calls() {
    let (upstream, client) = pair(Way::Http, Revision::MODERN, Desk::willing("ada")).await;
    let first = client.request(ask("state")).await;
    let other = tool("ask", r#"{"plan":"state","who":"eve"}"#);
    client.request(trunkline_tests::client::converse::again(&other, &first, "{}")).await;
    assert_eq!(upstream.complaints().await.len(), 1, "{:?}", upstream.complaints().await);
    let state = first.value()["requestState"].as_str().expect("a state").to_owned();
    let altered = json!({"name": "ask", "arguments": {"plan": "state"}, "requestState": format!("{state} ")});
    assert_eq!(client.request(Request::new("tools/call", &altered.to_string())).await.code(), -32602);
}
