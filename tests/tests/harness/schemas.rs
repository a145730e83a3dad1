//! The published schemas: what is right passes, what is wrong is a complaint on the side that got it.

use trunkline_tests::client::{Client, Reach, Request};
use trunkline_tests::frame::Frame;
use trunkline_tests::journal::{Event, What};
use trunkline_tests::revision::Revision;
use trunkline_tests::schema::{self, Reader};
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::Upstream;

const LAST: Revision = Revision::R2025_11_25;

fn count(text: &str, method: Option<&str>, reader: Reader, revision: Revision) -> usize {
    schema::faults(&Frame::parse(text.as_bytes()).expect("a frame"), method, reader, revision).len()
}

#[test]
fn wrong_frames_are_told_from_right_ones() {
    if schema::published().is_none() {
        return;
    }
    use Reader::{Client, Upstream};
    let right = [
        (r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#, Some("tools/call"), Client, LAST),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"resultType":"complete"}}"#,
            Some("tools/call"),
            Client,
            Revision::MODERN,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{"requestState":"s","resultType":"input_required"}}"#,
            Some("tools/call"),
            Client,
            Revision::MODERN,
        ),
        (r#"{"jsonrpc":"2.0","id":"a","result":{"action":"decline"}}"#, Some("elicitation/create"), Upstream, LAST),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, None, Client, LAST),
        (r#"{"jsonrpc":"2.0","method":"notifications/somebody/else"}"#, None, Client, LAST),
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#, None, Client, Revision::R2024_11_05),
    ];
    for (text, method, reader, revision) in right {
        assert_eq!(count(text, method, reader, revision), 0, "{text}");
    }
    let wrong = [
        (r#"{"id":1,"result":{"content":[]}}"#, Some("tools/call"), Client, LAST),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Some("tools/call"), Client, LAST),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#, Some("tools/call"), Client, Revision::MODERN),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"audio","data":"","mimeType":"a/b"}]}}"#,
            Some("tools/call"),
            Client,
            Revision::R2024_11_05,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{"requestState":"s","resultType":"input_required"}}"#,
            Some("tools/list"),
            Client,
            Revision::MODERN,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"no"}}"#,
            Some("resources/read"),
            Client,
            Revision::MODERN,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"no"}}"#, Some("tools/call"), Client, LAST),
        (r#"{"jsonrpc":"2.0","id":"a","result":{"action":"yes"}}"#, Some("elicitation/create"), Upstream, LAST),
        (r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#, None, Client, Revision::MODERN),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#, None, Upstream, LAST),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#, None, Upstream, Revision::MODERN),
        (r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}"#, None, Client, LAST),
    ];
    for (text, method, reader, revision) in wrong {
        assert!(count(text, method, reader, revision) > 0, "{revision} {text}");
    }
}

#[tokio::test]
async fn both_sides_complain() {
    if schema::published().is_none() {
        return;
    }
    let wrong = Rule::on_tool("echo", vec![Act::Result("{\"content\":7}".into())]);
    let upstream = Upstream::stdio(Script::new("up", LAST).rule(wrong)).await;
    let client = Client::connect(&Reach::Child(upstream.program()), LAST).await;
    client.call("echo", "{}").await;
    client.request(Request::new("completion/complete", "{}")).await;
    let told = |text: &String| text.contains("schema 2025-11-25").then_some(());
    client.complaints.wait("the client complains", told).await;
    let complains = |event: &Event| match &event.what {
        What::Complaint(text) => told(text),
        _ => None,
    };
    upstream.events.wait("the upstream complains", complains).await;
}
