//! JSON and states that are lawful, or nearly, and larger, deeper or stranger than anyone expects: whole, or refused, and nothing else.

use trunkline_tests::client::converse::{again, asks};
use trunkline_tests::client::{Answer, Client, tool};
use trunkline_tests::frame::Frame;
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::shell;
use trunkline_tests::upstream::{Upstream, Way};

const LEGACY: Revision = Revision::R2025_11_25;
const MODERN: Revision = Revision::MODERN;

/// A frame so deep that whoever walks it by calling itself is lost.
fn deep(id: &str) -> String {
    let depth = 1_000_000;
    let arguments = format!("{{\"a\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
    tool("up__echo", &arguments).text(LEGACY, id)
}

/// A number of 4,300 digits, and the same with a fraction and an exponent.
fn long_numbers() -> [String; 2] {
    let digits = "9".repeat(4300);
    [format!("{{\"n\":{digits}}}"), format!("{{\"n\":-{digits}.{digits}e{digits}}}")]
}

fn code(frame: &Frame) -> i64 {
    let error: serde_json::Value = serde_json::from_str(frame.error.as_ref().expect("an error").get()).expect("JSON");
    error["code"].as_i64().expect("a code")
}

/// What a client may not send on any way, and the code that says so.
fn refused() -> [(String, i64); 5] {
    let call = "{\"name\":\"up__echo\",\"arguments\":{}}";
    [
        (deep("\"x\""), -32600),
        (format!("{{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"ping\",\"method\":\"tools/call\",\"params\":{call}}}"), -32600),
        (format!("{{\"jsonrpc\":\"2.0\",\"id\":\"y\",\"id\":\"x\",\"method\":\"tools/call\",\"params\":{call}}}"), -32600),
        (format!("{{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"tools/call\",\"params\":{call},\"params\":{{}}}}"), -32600),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"tools/call\",\"params\":{\"name\":\"up__echo\",\"n\\u0061me\":\"up__fail\"}}"
                .to_owned(),
            -32602,
        ),
    ]
}

#[tokio::test]
async fn what_is_too_deep_or_named_twice_is_refused_on_stdio() {
    let upstream = Upstream::stdio(Script::new("up", LEGACY)).await;
    let gateway = StdioGateway::prepare(&Config::new().upstream(&upstream));
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    client.stdio().keep_lines();
    for (line, wanted) in refused() {
        let mark = client.stdio().lines.mark();
        client.stdio().write(line.as_bytes()).await;
        let answer = |line: &String| Frame::parse(line.as_bytes()).ok().filter(|frame| frame.error.is_some());
        let told = client.stdio().lines.wait_from(mark, "it is refused", answer).await;
        assert_eq!(code(&told), wanted, "{}", &line[..line.len().min(200)]);
    }
    // More elements than a message has room for; the line is skipped whole.
    let wide = tool("up__echo", &format!("{{\"a\":[{}1]}}", "1,".repeat(10_000_000))).text(LEGACY, "\"w\"");
    client.stdio().write(wide.as_bytes()).await;
    passes(&client).await;
    assert_eq!(upstream.executed().await.len(), long_numbers().len(), "nothing else was run");
}

#[tokio::test]
async fn what_is_too_deep_or_named_twice_is_refused_over_http() {
    let upstream = Upstream::stdio(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    let post =
        |body: String| async { client.http().post(Vec::new(), body, &trunkline_tests::tape::Tape::default()).await };
    for (body, wanted) in refused() {
        let answer: Answer = post(body).await;
        assert_eq!((answer.status, answer.code()), (400, wanted), "{answer:?}");
    }
    let wide = tool("up__echo", &format!("{{\"a\":[{}1]}}", "1,".repeat(10_000_000))).text(LEGACY, "\"w\"");
    // It is refused by its length, maybe before it was sent whole.
    let status = post(wide).await.status;
    assert!([413, 0].contains(&status), "{status}");
    passes(&client).await;
    assert_eq!(upstream.executed().await.len(), long_numbers().len(), "nothing else was run");
}

/// Numbers that no machine's number holds go there and back as they are.
async fn passes(client: &Client) {
    for numbers in long_numbers() {
        assert!(client.call("up__echo", &numbers).await.text() == numbers, "{} bytes", numbers.len());
    }
}

#[tokio::test]
async fn an_answer_that_is_too_deep_is_refused_and_a_wide_one_passes() {
    let result = |inner: &str| {
        let content = "\"content\":[{\"type\":\"text\",\"text\":\"whole\"}]";
        format!("printf '{{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{{{content},\"x\":' \"$id\"; {inner}; echo '}}}}'")
    };
    let many = |text: &str, count: u32| format!("yes '{text}' | head -n {count} | tr -d '\\n'");
    let deep = result(&format!("{}; printf 1; {}", many("[", 1_000_000), many("]", 1_000_000)));
    let wide = result(&format!("printf '['; {}; printf '1]'", many("1,", 2_000_000)));
    let cut = result(&many("[", 1_000_000));
    let program = shell::upstream(&[("deep", &deep), ("wide", &wide), ("cut", &cut), ("well", "said well")]);
    let gateway = Gateway::serve(&Config::new().program("up", &program, "")).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__well".into())).await;
    for (name, says) in [("up__deep", "nested deeper"), ("up__cut", "nested deeper")] {
        let answer = client.call(name, "{}").await;
        assert_eq!(answer.code(), -32603, "{}", answer.error());
        assert!(answer.message().contains("`up`") && answer.message().contains(says), "{}", answer.error());
        assert_eq!(client.call("up__well", "{}").await.text(), "well");
    }
    let answer = client.call("up__wide", "{}").await;
    assert_eq!(answer.text(), "whole");
    assert!(answer.result().len() > 4_000_000, "{} bytes", answer.result().len());
    assert_eq!(client.call("up__well", "{}").await.text(), "well");
}

/// A state of a megabyte with whatever a text may have in it, raw.
fn state() -> String {
    format!("\"\\u00e9\\/\\ud83d\\ude00 é😀 {}\"", "s".repeat(1 << 20))
}

#[tokio::test]
async fn a_state_of_a_megabyte_comes_back_byte_for_byte() {
    let asking = format!("{{\"resultType\":\"input_required\",\"requestState\":{}}}", state());
    for way in [Way::Stdio, Way::Http] {
        for revision in [MODERN, LEGACY] {
            let rule = Rule::on_tool("tool_error", vec![Act::Result(asking.clone())]).once();
            let upstream = Upstream::start(way, Script::new("up", MODERN).rule(rule)).await;
            let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
            let client = Client::connect(&gateway.reach(), revision).await;
            client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
            let request = tool("up__tool_error", "{}");
            let mut answer = client.request(request.clone()).await;
            if revision.is_modern() {
                assert!(asks(&answer), "{answer:?}");
                assert!(answer.result().contains(&state()), "the state is told as it is");
                answer = client.request(again(&request, &answer, "{}")).await;
            }
            assert_eq!(answer.text(), "the tool says no", "{way:?} {revision}");
            let told = format!("\"requestState\":{}", state());
            let (raw, _) = upstream.received("requestState").await;
            assert!(raw.contains(&told), "{way:?} {revision}: it comes back as it was");
        }
    }
}

#[tokio::test]
async fn a_question_of_an_unknown_kind_ends_its_call_with_who_asked_it() {
    let asking = "{\"resultType\":\"input_required\",\"requestState\":\"s\",\"inputRequests\":{\"q\":{\"method\":\"x/unknown\",\"params\":{}}}}";
    let rule = Rule::on_tool("tool_error", vec![Act::Result(asking.into())]);
    let upstream = Upstream::stdio(Script::new("up", MODERN).rule(rule)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    for revision in [MODERN, LEGACY] {
        let client = Client::connect(&gateway.reach(), revision).await;
        client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
        let answer = client.call("up__tool_error", "{}").await;
        let said = if revision.is_modern() { answer.message() } else { answer.text() };
        assert!(said.contains("up") && (said.contains("no kind") || said.contains("x/unknown")), "{revision}: {said}");
        assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    }
}
