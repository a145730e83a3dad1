//! Over HTTP, where the stream says whose a question is.

use super::*;
use crate::call::reply::{Failure, Outcome};
use crate::health::StatusBoard;
use crate::health::row::State;
use crate::runtime::Tasks;
use crate::upstream::Upstream;
use crate::upstream::config::Config;
use crate::upstream::tests::host::{Host, Seen, empty, events, json};

const SHAKEN: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}"#;

/// What a legacy upstream answers to all but calls.
fn plain(seen: &Seen) -> Option<String> {
    Some(match (seen.verb.as_str(), seen.method().as_str()) {
        ("POST", "server/discover") => empty(400),
        ("POST", "initialize") => {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{SHAKEN}}}"#, seen.id());
            json(200, "Mcp-Session-Id: s\r\n", &text)
        }
        ("POST", "tools/list") => seen.result(r#"{"tools":[{"name":"t"}]}"#),
        ("POST", "tools/call") => return None,
        ("POST", "completion/complete") => seen.result("{}"),
        ("POST", _) => empty(202),
        ("GET", _) => empty(405),
        _ => empty(200),
    })
}

async fn ready(config: Config) -> (Upstream, Tasks) {
    let (board, tasks) = (StatusBoard::default(), Tasks::new());
    let handle = board.add(&config.name, "http");
    let upstream = Upstream::new(config, handle, Arc::new(|_| ()));
    upstream.keep_alive(&tasks);
    let mut changes = board.changes();
    within(async {
        while board.snapshot()[0].state != State::Ready {
            changes.changed().await.unwrap();
        }
    })
    .await;
    (upstream, tasks)
}

fn asks(id: &str) -> String {
    format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"elicitation/create\",\"params\":{FORM}}}\n\n")
}

/// The answers that the upstream was given to its questions, raw.
fn said(host: &Host) -> Vec<Seen> {
    host.all().into_iter().filter(|seen| seen.verb == "POST" && seen.method().is_empty()).collect()
}

/// An upstream whose calls ask on their own stream under the id of the call, and end once that was answered.
async fn asker() -> Host {
    let (answers, seen) = tokio::sync::watch::channel(Vec::<String>::new());
    Host::start(move |request| {
        let (answers, mut seen) = (answers.clone(), seen.clone());
        Box::pin(async move {
            if request.verb == "POST" && request.method().is_empty() {
                answers.send_modify(|all| all.push(request.id()));
            }
            if let Some(answer) = plain(&request) {
                return answer;
            }
            let question = format!("\"q{}\"", request.id());
            request.write(events(&asks(&question)));
            seen.wait_for(|all| all.contains(&question)).await.unwrap();
            request.event("{}")
        })
    })
    .await
}

#[tokio::test]
async fn it_is_whose_stream_it_came_on_and_the_answer_is_posted() {
    let host = asker().await;
    let (upstream, tasks) = ready(host.config()).await;
    let (mut one, mut two) = (upstream.call(modern()), upstream.call(tool(LEGACY, ALL, Some(&session("1")))));
    let (first, second) = tokio::join!(question(&mut one), question(&mut two));
    assert_eq!(first.request.raw(), FORM);
    give(second.answer, LEGACY, r#"{"action":"decline"}"#);
    assert!(matches!(within(two.outcome()).await.1, Outcome::Complete(_)));
    give(first.answer, LEGACY, r#"{"action":"accept","content":{}}"#);
    assert!(matches!(within(one.outcome()).await.1, Outcome::Complete(_)));
    let said = said(&host);
    assert!(said[0].body.contains(r#""result":{"action":"decline"}"#), "{}", said[0].body);
    assert!(said[1].body.contains(r#""result":{"action":"accept","content":{}}"#), "{}", said[1].body);
    assert!(said.iter().all(|seen| seen.header("mcp-session-id") == "s"));
    tasks.end();
    within(upstream.stopped()).await;
}

#[tokio::test]
async fn many_calls_that_wait_for_people_block_nobody_else() {
    let host = asker().await;
    let (upstream, tasks) = ready(host.config()).await;
    let mut replies: Vec<_> = (0..400).map(|_| upstream.call(modern())).collect();
    let mut asked = Vec::new();
    for reply in &mut replies {
        asked.push(question(reply).await);
    }
    // More than there may be connections are open now, and both a plain request and the answers find a way.
    let list = upstream.call(call(LEGACY, Method::Complete, "{}"));
    assert!(matches!(within(list.outcome()).await.1, Outcome::Complete(_)));
    for ask in asked {
        give(ask.answer, LEGACY, "{}");
    }
    for reply in replies {
        assert!(matches!(within(reply.outcome()).await.1, Outcome::Complete(_)));
    }
    assert_eq!(said(&host).len(), 400);
    tasks.end();
    within(upstream.stopped()).await;
}

#[tokio::test]
async fn a_withdrawn_calls_questions_are_answered_before_it_is_withdrawn() {
    let host = asker().await;
    let (upstream, tasks) = ready(host.config()).await;
    let mut reply = upstream.call(modern());
    let mut ask = question(&mut reply).await;
    drop(reply);
    host.saw("POST notifications/cancelled").await;
    within(ask.answer.closed()).await;
    let story = host.story();
    assert_eq!(story[story.len() - 2..], ["POST", "POST notifications/cancelled"]);
    assert!(said(&host)[0].body.contains(r#""result":{"action":"cancel"}"#));
    tasks.end();
    within(upstream.stopped()).await;
}

#[tokio::test]
async fn what_comes_on_the_stream_of_a_parked_call_is_read_all_the_same() {
    let host = Host::start(|seen| {
        Box::pin(async move {
            if let Some(answer) = plain(&seen) {
                return answer;
            }
            seen.write(events(&asks("1")));
            seen.write(asks("2"));
            let withdrawn = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
            seen.write(format!("data: {withdrawn}\n\n"));
            seen.event("{}")
        })
    })
    .await;
    let (upstream, tasks) = ready(host.config()).await;
    let mut reply = upstream.call(modern());
    let mut first = question(&mut reply).await;
    within(first.answer.closed()).await;
    assert_eq!(question(&mut reply).await.request.raw(), FORM);
    assert!(matches!(within(reply.outcome()).await.1, Outcome::Complete(_)));
    tasks.end();
    within(upstream.stopped()).await;
}

#[tokio::test]
async fn on_the_background_stream_it_is_whose_calls_alone_are_open() {
    let (ask, asked) = tokio::sync::watch::channel(0);
    let (answered, answers) = tokio::sync::watch::channel(0);
    let host = Host::start(move |seen| {
        let (mut asked, answered, mut answers) = (asked.clone(), answered.clone(), answers.clone());
        Box::pin(async move {
            match seen.verb.as_str() {
                "GET" => {
                    seen.write(events(""));
                    for id in 1.. {
                        asked.wait_for(|asked| *asked >= id).await.unwrap();
                        seen.write(asks(&id.to_string()));
                    }
                }
                "POST" if seen.method().is_empty() => answered.send_modify(|count| *count += 1),
                _ => {}
            }
            match plain(&seen) {
                Some(answer) => answer,
                None => {
                    seen.write(events(": open\n\n"));
                    answers.wait_for(|count| *count >= 2).await.unwrap();
                    seen.event("{}")
                }
            }
        })
    })
    .await;
    let (upstream, tasks) = ready(host.config()).await;
    ask.send_replace(1);
    let refused = host.saw("POST").await;
    assert!(refused.body.contains(r#""id":1,"error":{"code":-32602,"#), "{}", refused.body);
    let mut reply = upstream.call(tool(LEGACY, ALL, Some(&session("1"))));
    let put = async {
        host.saw("POST tools/call").await;
        ask.send_replace(2);
    };
    let (ask, ()) = tokio::join!(question(&mut reply), put);
    give(ask.answer, LEGACY, "{}");
    assert!(matches!(within(reply.outcome()).await.1, Outcome::Complete(_)));
    assert!(said(&host)[1].body.contains(r#""id":2,"result":{}"#));
    tasks.end();
    within(upstream.stopped()).await;
}

#[tokio::test]
async fn a_call_whose_upstream_does_not_take_the_answer_ends_with_that_at_once() {
    let host = Host::start(|seen| {
        Box::pin(async move {
            if seen.verb == "POST" && seen.method().is_empty() {
                return json(500, "", "no room for answers");
            }
            if let Some(answer) = plain(&seen) {
                return answer;
            }
            seen.write(events(&asks("1")));
            std::future::pending().await
        })
    })
    .await;
    let (upstream, tasks) = ready(host.config()).await;
    let mut reply = upstream.call(modern());
    give(question(&mut reply).await.answer, LEGACY, r#"{"action":"decline"}"#);
    let Outcome::Error(Failure::Refused(refusal)) = within(reply.outcome()).await.1 else { panic!("it is refused") };
    let parts = ["upstream `a`", "the answer to its question was not accepted", "HTTP 500"];
    assert!(parts.iter().all(|part| refusal.message.contains(part)), "{refusal}");
    assert!(
        !refusal.message.contains("no room for answers") && refusal.in_full().message.contains("no room for answers")
    );
    // It is told that nobody waits any more.
    host.saw("POST notifications/cancelled").await;
    tasks.end();
    within(upstream.stopped()).await;
}
