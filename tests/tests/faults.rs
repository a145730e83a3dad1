//! Child processes that die or talk nonsense: clear errors, no call twice, and the next call works.

use trunkline_tests::client::{Answer, Client, Desk, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::{Event, Order, What, now};
use trunkline_tests::judge::{self, Judge};
use trunkline_tests::process;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::Upstream;

const LEGACY: Revision = Revision::R2025_11_25;

/// A gateway before one child named `frail`, and a client that sees its tools.
struct Stage {
    upstream: Upstream,
    gateway: Gateway,
    client: Client,
}

async fn stage(script: Script, keys: &str, client: Revision) -> Stage {
    let upstream = Upstream::stdio(script).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, keys)).await;
    let client = Client::connect(&gateway.reach(), client).await;
    client.tools_until("the upstream's tools are listed", |tools| tools.contains(&"frail__echo".into())).await;
    Stage { upstream, gateway, client }
}

impl Stage {
    async fn echo(&self) -> Answer {
        let nonce = judge::nonce();
        let answer = self.client.call("frail__echo", &judge::arguments(&nonce)).await;
        if answer.frame().result.is_some() {
            assert_eq!(judge::echoed(&answer), Some(nonce), "never another call's answer");
        }
        answer
    }

    /// The next call works, and nothing ran twice.
    async fn recovered(&self) {
        let answer = self.echo().await;
        assert!(answer.frame().result.is_some(), "the next call works, not {}", answer.error());
        let mut ran = self.upstream.executed().await;
        ran.sort();
        let calls = ran.len();
        ran.dedup();
        assert_eq!(ran.len(), calls, "no call ran twice");
    }
}

async fn killed_in_flight(revision: Revision) {
    let keys = "restart = { backoff_min = \"2s\", backoff_max = \"2s\" }";
    let stage = stage(Script::new("frail", LEGACY), keys, revision).await;
    let mut open = Vec::new();
    for _ in 0..32 {
        let nonce = judge::nonce();
        let arguments = format!("{{\"nonce\":\"{nonce}\",\"gate\":\"{nonce}\"}}");
        let call = stage.client.start(tool("frail__wait", &arguments)).await;
        stage.upstream.waiting_at(&nonce).await;
        open.push(call);
    }
    let (pid, _) = stage.upstream.started(0).await;
    process::signal(pid, "KILL");
    for call in open {
        let answer = call.answer().await;
        assert!(answer.message().contains("frail"), "the upstream is named: {}", answer.error());
        let says = ["signal", "SIGKILL", "killed"].iter().any(|word| answer.message().contains(word));
        assert!(says, "and how it ended: {}", answer.error());
        assert_ne!(answer.error_value()["data"]["retriable"], true, "it may have run: {}", answer.error());
    }
    let told = now();
    stage.recovered().await;
    let (_, restarted) = stage.upstream.started(1).await;
    assert!(told < restarted, "all errors came before the new process: {told} < {restarted}");
    assert_eq!(stage.upstream.executed().await.len(), 33, "32 calls and the next one");
    assert!(!process::is_alive(pid) && !stage.gateway.children().contains(&pid), "the dead child is reaped");
    stage.gateway.says(&["frail"]).await;
}

#[tokio::test]
async fn a_killed_child_fails_its_calls_at_once_for_sessions() {
    killed_in_flight(LEGACY).await;
}

#[tokio::test]
async fn a_killed_child_fails_its_calls_at_once_for_stateless_clients() {
    killed_in_flight(Revision::MODERN).await;
}

#[tokio::test]
async fn an_exit_in_a_call_names_status_and_last_words() {
    let exit = Rule::on_tool("echo", vec![Act::Exit(42)]).once();
    let stage = stage(Script::new("frail", LEGACY).rule(exit), "", LEGACY).await;
    let error = stage.echo().await.message();
    assert!(error.contains("frail__echo") && error.contains("42"), "by the name that was called: {error}");
    // The rule counts anew in the new process; what is asked there is another tool.
    let answer = stage.client.call("frail__tool_error", "{}").await;
    assert_eq!(answer.text(), "the tool says no");
}

/// Noise around a good answer does not hurt it.
async fn noise(acts: Vec<Act>) {
    let stage = stage(Script::new("frail", LEGACY).rule(Rule::on_tool("echo", acts).once()), "", LEGACY).await;
    let answer = stage.echo().await;
    assert!(answer.frame().result.is_some(), "the answer is found: {}", answer.error());
    stage.recovered().await;
    assert!(stage.upstream.events.find(0, |event| (event.instance > 0).then_some(())).is_none(), "no restart");
}

macro_rules! noises {
    ($($name:ident: $($act:expr),+;)*) => {$(
        #[tokio::test]
        async fn $name() {
            noise(vec![$($act),+]).await;
        }
    )*};
}

noises! {
    log_lines: Act::Write("Loading model…\n[INFO] {not json}\n\n   \n".into());
    many_log_lines: Act::Write("a line of the log\n".repeat(1000));
    carriage_returns: Act::Write("\r\nready\r\n".into());
    an_unknown_id: Act::Write("{\"jsonrpc\":\"2.0\",\"id\":987654321,\"result\":{\"crossed\":true}}\n".into());
    an_unknown_text_id: Act::Write("{\"jsonrpc\":\"2.0\",\"id\":\"no such\",\"error\":{\"code\":1,\"message\":\"\"}}\n".into());
    the_id_as_a_text: Act::Write("{\"jsonrpc\":\"2.0\",\"id\":\"$ID\",\"result\":{\"crossed\":true}}\n".into());
    the_id_as_a_fraction: Act::Write("{\"jsonrpc\":\"2.0\",\"id\":$ID.0,\"result\":{\"crossed\":true}}\n".into());
    a_null_id: Act::Write("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"?\"}}\n".into());
    invalid_utf8: Act::WriteHex("7b226a736f6e727063223a22322e30ff227d0a".into());
    nul_bytes: Act::WriteHex("00000a".into());
    progress_for_nobody: Act::Write(
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"x\",\"progress\":1}}\n".into());
    a_question_nobody_can_answer: Act::Write("{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"roots/list\"}\n".into());
    an_oversize_line: Act::WriteLong(65 << 20);
}

#[tokio::test]
async fn a_second_answer_is_dropped() {
    let twice = "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"once\"}]}}";
    let rule = Rule::on_tool("tool_error", vec![Act::Frame(format!("{twice}\n{twice}"))]);
    let stage = stage(Script::new("frail", LEGACY).rule(rule), "", LEGACY).await;
    assert_eq!(stage.client.call("frail__tool_error", "{}").await.text(), "once");
    let mut judge = Judge::default();
    for _ in 0..50 {
        let nonce = judge::nonce();
        let answer = stage.client.request(tool("frail__echo", &judge::arguments(&nonce)).id("1")).await;
        judge.hear("1", &nonce, Some(&answer));
    }
    judge.assert_clean(50);
}

/// A call that gets no good answer ends with an error of its own, and only that one.
async fn spoiled(acts: Vec<Act>) -> Answer {
    let rule = Rule::on_tool("tool_error", acts).once();
    let keys = "tools = { override = { tool_error = { call_timeout = \"1s\" } } }";
    let stage = stage(Script::new("frail", LEGACY).rule(rule), keys, LEGACY).await;
    let answer = stage.client.call("frail__tool_error", "{}").await;
    assert!(answer.message().contains("frail"), "the upstream is named: {}", answer.error());
    stage.recovered().await;
    answer
}

#[tokio::test]
async fn text_glued_before_an_answer_spoils_that_answer_only() {
    let whole = "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[]}}";
    spoiled(vec![Act::Frame(format!("Loading...{whole}"))]).await;
}

#[tokio::test]
async fn an_answer_with_result_and_error_is_an_error() {
    let frame = "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{},\"error\":{\"code\":1,\"message\":\"both\"}}";
    assert_eq!(spoiled(vec![Act::Frame(frame.into())]).await.code(), -32603);
}

#[tokio::test]
async fn half_an_answer_and_then_the_end_is_an_error() {
    spoiled(vec![Act::Write("{\"jsonrpc\":\"2.0\",\"id\":".into()), Act::Exit(0)]).await;
}

#[tokio::test]
async fn silence_ends_with_the_configured_time_out() {
    let answer = spoiled(vec![Act::Hang]).await;
    assert!(answer.message().contains("1s") || answer.message().contains("1 s"), "{}", answer.error());
}

#[tokio::test]
async fn a_timed_out_call_is_cancelled_upstream() {
    let rule = Rule::on_tool("tool_error", vec![Act::Hang]);
    let keys = "call_timeout = \"500ms\"";
    let stage = stage(Script::new("frail", LEGACY).rule(rule), keys, Revision::MODERN).await;
    let mark = stage.upstream.events.mark();
    let answer = stage.client.call("frail__tool_error", "{}").await;
    assert!(answer.frame().error.is_some());
    let (id, how) = stage.upstream.cancelled(mark).await;
    let sent = |event: &Event| matches!(&event.what, What::Frame { raw, .. } if raw.contains("tools/call") && raw.contains(&format!("\"id\":{id}")));
    assert!(stage.upstream.events.all().iter().any(sent), "the call that was meant");
    assert_eq!(how, "notification");
}

#[tokio::test]
async fn a_ping_of_the_upstream_is_answered() {
    let ping = Act::Write("{\"jsonrpc\":\"2.0\",\"id\":\"ping-1\",\"method\":\"ping\"}\n".into());
    let stage = stage(Script::new("frail", LEGACY).rule(Rule::on_tool("echo", vec![ping])), "", LEGACY).await;
    stage.echo().await;
    let (raw, _) = stage.upstream.received("ping-1").await;
    assert!(raw.contains("\"result\":{}"), "{raw}");
}

#[tokio::test]
async fn a_question_that_nobody_can_answer_is_refused_at_once() {
    for (method, code) in
        [("roots/list", "-32601"), ("sampling/createMessage", "-32601"), ("elicitation/create", "-32602")]
    {
        let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"q-1\",\"method\":\"{method}\",\"params\":{{}}}}\n");
        let rule = Rule::on_tool("echo", vec![Act::Write(text)]);
        let stage = stage(Script::new("frail", LEGACY).rule(rule), "", Revision::R2024_11_05).await;
        stage.echo().await;
        let (raw, _) = stage.upstream.received("q-1").await;
        assert!(raw.contains(code), "{method} is refused with {code}: {raw}");
    }
}

#[tokio::test]
async fn a_question_while_a_list_is_read_is_refused_at_once() {
    let acts = |method: &str| {
        let question = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"q-1\",\"method\":\"{method}\",\"params\":{{}}}}\n");
        vec![Act::Write(question), Act::Gate("list".into())]
    };
    for method in ["roots/list", "sampling/createMessage", "elicitation/create"] {
        let upstream = Upstream::stdio(Script::new("frail", LEGACY).rule(Rule::on("tools/list", acts(method)))).await;
        let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
        // Whoever is there could answer, and is not asked: it is not its list that is read.
        let client = Client::connect_with(&gateway.reach(), LEGACY, Desk::willing("ada")).await;
        upstream.waiting_at("list").await;
        let (raw, _) = upstream.received("q-1").await;
        assert!(raw.contains("\"error\""), "{method}: {raw}");
        upstream.order(Order::Open("list".into())).await;
        client.tools_until("the list is there", |tools| tools.contains(&"frail__echo".into())).await;
        assert!(client.desk.asked.all().is_empty(), "{method}");
    }
}
