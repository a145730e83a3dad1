//! Over HTTP, where the stream says whose a question is.

use super::super::super::tests::host::{Host, Seen, empty, events, json};
use super::super::super::{Upstream, config::Config};
use super::*;
use crate::call::Outcome;
use crate::lifecycle::{Board, State, Tasks};

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
        ("POST", _) => empty(202),
        ("GET", _) => empty(405),
        _ => empty(200),
    })
}

async fn ready(config: Config) -> (Upstream, Tasks) {
    let (board, tasks) = (Board::default(), Tasks::new());
    let seat = board.seat(&config.name, "http");
    let upstream = Upstream::new(config, seat, Arc::new(|_| ()));
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

const FORM: &str = r#"{"message":"?","requestedSchema":{"type":"object"}}"#;

fn asks(id: &str) -> String {
    format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"elicitation/create\",\"params\":{FORM}}}\n\n")
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
    let said: Vec<_> = host.all().into_iter().filter(|seen| seen.verb == "POST" && seen.method().is_empty()).collect();
    assert!(said[0].body.contains(r#""result":{"action":"decline"}"#), "{}", said[0].body);
    assert!(said[1].body.contains(r#""result":{"action":"accept","content":{}}"#), "{}", said[1].body);
    assert!(said.iter().all(|seen| seen.header("mcp-session-id") == "s"));
    tasks.end();
    within(upstream.stopped()).await;
}
