//! The face over a pair of pipes, against a handler that the test plays.

mod batches;
mod ending;

use super::serve;
use crate::call::ListenFilter;
use crate::call::reply::{Change, Event};
use crate::config::Config;
use crate::memory::Refusals;
use crate::memory::budget::Budget;
use crate::protocol::frame::Method;
use crate::protocol::revision::Revision;
use crate::runtime::Tasks;
use crate::scripted::{Hands, question, scripted, soon};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::sync::oneshot;

/// A host: what it writes, what it reads, and the calls that come of it.
struct Host {
    stdin: DuplexStream,
    stdout: Lines<BufReader<DuplexStream>>,
    hands: Hands,
    tasks: Tasks,
    ended: oneshot::Receiver<()>,
}

impl Host {
    fn start() -> Self {
        Self::with(Config { max_body: 4096, ..Config::default() }, 1 << 20)
    }

    fn with(config: Config, pipe: usize) -> Self {
        let (stdin, theirs) = tokio::io::duplex(1 << 20);
        let (ours, stdout) = tokio::io::duplex(pipe);
        let (handler, hands) = scripted(Revision::V2025_11_25);
        let (tasks, root) = (Tasks::new(), Tasks::new());
        let (end, ended) = oneshot::channel();
        let served = tasks.clone();
        root.spawn(async move {
            serve(
                handler,
                &config,
                (theirs, ours, std::future::pending()),
                served,
                (&Budget::default(), &Refusals::default()),
            )
            .await
            .unwrap();
            let _nobody_waits = end.send(());
        });
        Self { stdin, stdout: BufReader::new(stdout).lines(), hands, tasks, ended }
    }

    async fn write(&mut self, text: &str) {
        self.stdin.write_all(format!("{text}\n").as_bytes()).await.unwrap();
    }

    async fn line(&mut self) -> String {
        soon(self.stdout.next_line()).await.unwrap().expect("stdout is open")
    }

    async fn handshake(&mut self) {
        self.write(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{"roots":{}}}}"#).await;
        assert!(self.line().await.contains(r#""protocolVersion":"2025-03-26""#));
        self.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    }
}

fn call(id: &str, name: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}"}}}}"#)
}

fn modern(id: &str, method: &str, params: &str) -> String {
    let meta =
        r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"_meta":{meta}{params}}}}}"#)
}

#[tokio::test(start_paused = true)]
async fn both_eras_are_served_on_one_pipe() {
    let mut host = Host::start();
    host.write(&modern("1", "server/discover", "")).await;
    assert!(host.line().await.contains("supportedVersions"));
    host.handshake().await;
    host.write(&call("\"x\"", "echo")).await;
    let words = r#"{"jsonrpc":"2.0","id":"x","result":{"content":[{"type":"text","text":"{}"}]}}"#;
    assert_eq!(host.line().await, words);
    host.write(&modern("1", "tools/call", r#","name":"echo""#)).await;
    assert!(host.line().await.contains("serverInfo"));
    host.write(&modern("1", "ping", "")).await;
    assert!(host.line().await.contains("-32601"));
    host.write(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    assert_eq!(host.line().await, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    host.write(&format!("[{},{}]", call("1", "echo"), call("2", "echo"))).await;
    assert!(host.line().await.starts_with(r#"[{"jsonrpc":"2.0","id":1,"result""#));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_frame_is_answered_and_the_loop_goes_on() {
    let mut host = Host::start();
    let long = format!("\"{}\"", "x".repeat(5000));
    for (text, code) in [
        ("{", -32700),
        ("7", -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, -32600),
        (&long, -32600),
        ("[]", -32600),
    ] {
        host.write(text).await;
        let line = host.line().await;
        assert!(line.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":{code},"#)), "{line}");
    }
    host.write(&call("1", "echo")).await;
    assert!(host.line().await.starts_with(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"#));
    // Neither a request nor an answer: whoever mistyped it is not left waiting.
    for text in [r#"{"jsonrpc":"2.0","id":1,"Method":"ping"}"#, r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#] {
        host.write(text).await;
        assert!(host.line().await.starts_with(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"#));
    }
    host.write("\n  \n").await;
    host.write(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#).await;
    assert_eq!(host.line().await, r#"{"jsonrpc":"2.0","id":5,"result":{}}"#);
}

#[tokio::test(start_paused = true)]
async fn calls_run_side_by_side_and_a_cancelled_one_says_nothing_more() {
    let mut host = Host::start();
    host.handshake().await;
    let _listen = host.hands.next().await;
    for id in ["1", "2", "3"] {
        host.write(&call(id, "x")).await;
    }
    let (first, second, third) = (host.hands.next().await, host.hands.next().await, host.hands.next().await);
    host.write(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#).await;
    second.cancelled().await;
    third.complete("{\n\"content\":[],\"n\":3}");
    first.complete(r#"{"content":[],"n":1}"#);
    assert_eq!(host.line().await, r#"{"jsonrpc":"2.0","id":3,"result":{ "content":[],"n":3}}"#);
    assert_eq!(host.line().await, r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"n":1}}"#);
}

#[tokio::test(start_paused = true)]
async fn notices_begin_after_the_handshake() {
    let mut host = Host::start();
    host.write(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#).await;
    let listen = host.hands.next().await;
    listen.tell(Event::Change(Change::Acknowledged(ListenFilter::lists())));
    listen.tell(Event::Change(Change::Prompts));
    assert!(host.line().await.contains("\"id\":0"));
    host.write(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    let mut lines = [host.line().await, host.line().await];
    lines.sort();
    assert!(lines[0].contains("\"id\":1") && lines[1].contains("notifications/prompts/list_changed"), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn listens_are_tagged_cancelled_by_id_and_end_with_the_pipe() {
    let mut host = Host::start();
    for id in ["1", "\"1\""] {
        host.write(&modern(id, "subscriptions/listen", r#","notifications":{"toolsListChanged":true}"#)).await;
    }
    let (first, second) = (host.hands.next().await, host.hands.next().await);
    second.tell(Event::Change(Change::Tools));
    let line = host.line().await;
    assert!(line.contains(r#""io.modelcontextprotocol/subscriptionId":"1"}"#), "{line}");
    host.write(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).await;
    first.cancelled().await;
    drop(host.stdin);
    // On a pipe that others share the end is announced by name.
    let farewell = soon(host.stdout.next_line()).await.unwrap().unwrap();
    assert!(farewell.contains(r#""method":"notifications/cancelled","params":{"requestId":"1","#), "{farewell}");
    let last = soon(host.stdout.next_line()).await.unwrap().unwrap();
    assert!(last.starts_with(r#"{"jsonrpc":"2.0","id":"1","result":{"resultType":"complete","#), "{last}");
    assert_eq!(soon(host.stdout.next_line()).await.unwrap(), None);
    soon(host.ended).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_read_blocks_nobody_and_is_left_in_the_end() {
    let mut host = Host::with(Config { shutdown_grace: Duration::from_secs(5), ..Config::default() }, 64);
    host.handshake().await;
    let _listen = host.hands.next().await;
    for _ in 0..1000 {
        host.write(&call("1", "echo")).await;
    }
    host.write(&call("2", "x")).await;
    let hand = host.hands.next().await;
    (0..40).for_each(|done| hand.progress(done));
    hand.complete("{}");
    host.tasks.end();
    soon(host.ended).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_host_that_goes_away_ends_everything() {
    let mut host = Host::start();
    host.handshake().await;
    let _listen = host.hands.next().await;
    host.write(&call("1", "x")).await;
    let hand = host.hands.next().await;
    drop(host.stdout);
    hand.complete("{}");
    soon(host.ended).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn questions_are_lines_and_so_are_their_answers() {
    let mut host = Host::start();
    host.handshake().await;
    let _listen = host.hands.next().await;
    host.write(&call("7", "x")).await;
    let hand = host.hands.next().await;
    let (one, two, three) =
        (hand.ask(Method::RootsList, "{}"), hand.ask(Method::RootsList, "{}"), hand.ask(Method::Sampling, "{\n}"));
    assert_eq!(
        host.line().await,
        r#"{"jsonrpc":"2.0","id":1,"method":"roots/list","params":{"_meta":{"trunkline/upstream":"up"}}}"#
    );
    assert!(host.line().await.contains("\"id\":2"));
    assert!(host.line().await.contains("\"id\":3,\"method\":\"sampling/createMessage\",\"params\":{\"_meta\":"));
    drop(three);
    assert!(host.line().await.contains("\"requestId\":3"));
    host.write(r#"[{"jsonrpc":"2.0","id":2,"result":{"roots":[]}},{"jsonrpc":"2.0","id":9,"result":{}}]"#).await;
    assert!(soon(two).await.unwrap().body.is_ok());
    host.write(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#).await;
    assert!(soon(one).await.is_err());
    assert!(host.line().await.contains("-32600"));
    hand.complete("{}");
    assert!(host.line().await.starts_with(r#"{"jsonrpc":"2.0","id":7,"result""#));
}

#[tokio::test(start_paused = true)]
async fn a_question_of_no_call_is_a_line_once_the_handshake_is_over() {
    let mut host = Host::start();
    host.write(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}}"#).await;
    let tenant = host.hands.next().await.call.caller.tenant.clone().unwrap();
    let (ask, answer) = question(Method::RootsList, "{}");
    tenant.ask(ask).unwrap();
    assert!(host.line().await.contains("\"id\":0"));
    host.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    assert!(host.line().await.contains("\"method\":\"roots/list\""));
    host.write(r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#).await;
    assert!(soon(answer).await.is_ok());
    let params = crate::scripted::object(r#"{"elicitationId":"e"}"#);
    tenant.tell(&Method::ElicitationComplete, &params);
    let told = r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e"}}"#;
    assert_eq!(host.line().await, told);
    drop(host.stdin);
    soon(host.ended).await.unwrap();
    soon(tenant.ended()).await;
}

#[tokio::test(start_paused = true)]
async fn a_parked_call_is_taken_up_again_and_goes_with_the_pipe() {
    let mut host = Host::start();
    let able = |id: &str, more: &str| {
        let frame = modern(id, "tools/call", &format!(r#","name":"x"{more}"#));
        frame.replace(r#"clientCapabilities":{}"#, r#"clientCapabilities":{"roots":{}}"#)
    };
    for (id, ends) in [("1", false), ("2", true)] {
        host.write(&able(id, "")).await;
        let hand = host.hands.next().await;
        let roots = hand.ask(Method::RootsList, "{}");
        let got: serde_json::Value = serde_json::from_str(&host.line().await).unwrap();
        let result = &got["result"];
        assert_eq!((got["id"].to_string(), &result["resultType"]), (id.to_owned(), &"input_required".into()));
        // A cancellation between rounds finds nothing to cancel.
        host.write(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).await;
        if ends {
            let began = tokio::time::Instant::now();
            drop(host.stdin);
            assert!(soon(roots).await.is_err());
            hand.cancelled().await;
            assert_eq!(began.elapsed(), Duration::ZERO);
            return soon(host.ended).await.unwrap();
        }
        let key = result["inputRequests"].as_object().unwrap().keys().next().unwrap();
        let more = format!(r#","requestState":{},"inputResponses":{{"{key}":{{"roots":[]}}}}"#, result["requestState"]);
        host.write(&able("\"again\"", &more)).await;
        assert!(soon(roots).await.is_ok());
        hand.complete(r#"{"content":[]}"#);
        assert!(host.line().await.starts_with(r#"{"jsonrpc":"2.0","id":"again","result":{"resultType":"complete""#));
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_drops_the_serving_leaves_nothing_running() {
    let (mut stdin, theirs) = tokio::io::duplex(1 << 20);
    let (ours, _stdout) = tokio::io::duplex(1 << 20);
    let (handler, mut hands) = scripted(Revision::V2025_11_25);
    stdin.write_all(format!("{}\n", modern("1", "tools/call", r#","name":"x""#)).as_bytes()).await.unwrap();
    let (config, budget, refusals) = (Config::default(), Budget::default(), Refusals::default());
    let hand = tokio::select! {
        _ = serve(handler, &config, (theirs, ours, std::future::pending()), Tasks::new(), (&budget, &refusals)) => panic!("it serves on"),
        hand = hands.next() => hand,
    };
    hand.cancelled().await;
}
