//! Children that write what is no MCP, more than anyone can read, or nothing any more: what is MCP of it is served, and the rest
//! is counted, bounded and named.

use std::path::Path;
use std::time::Duration;

use trunkline_tests::client::{Client, Request, tool};
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::process::{self, Program};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::shell;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::until;

const REVISION: Revision = Revision::R2025_11_25;
/// By so much the gateway's memory may be larger after a fault than before it, in KiB.
const GROWTH: u64 = 8 * 1024;

async fn client_of(gateway: &Gateway, listed: &str) -> Client {
    let client = Client::connect(&gateway.reach(), REVISION).await;
    client.tools_until("the upstream's tools are listed", |tools| tools.contains(&listed.into())).await;
    client
}

/// A gateway before one program named `up`.
async fn before(program: &Program, keys: &str) -> Gateway {
    Gateway::serve(&Config::new().program("up", program, keys)).await
}

/// Keys under which the calls of these tools alone take no longer than a second.
fn brief(tools: &[&str]) -> String {
    let each: Vec<String> = tools.iter().map(|tool| format!("{tool} = {{ call_timeout = \"1s\" }}")).collect();
    format!("tools = {{ override = {{ {} }} }}", each.join(", "))
}

/// What a counter of the gateway says; 0 where it was never touched.
async fn counted(gateway: &Gateway, metric: &str, label: &str) -> u64 {
    let page = gateway.look("/metrics").await;
    let page = String::from_utf8_lossy(&page.body).into_owned();
    let line = page.lines().find(|line| line.starts_with(metric) && line.contains(label));
    line.and_then(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).map_or(0, |count| count as u64)
}

/// A program under a shell that does something else first.
fn under(upstream: &Upstream, habit: &str) -> Program {
    let inner = upstream.program();
    let real = format!("exec '{}' '{}'", inner.path.display(), inner.args[0]);
    Program { path: "/bin/sh".into(), args: vec!["-c".into(), format!("{habit}\n{real}")], env: Vec::new() }
}

/// Lines of letters, digits and brackets that no two are alike, from a seed.
fn lines(count: u32, mut seed: u32) -> String {
    let mut line = |number: u32| {
        let mut text = format!("{number} ");
        for _ in 0..number % 90 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.push(char::from(b' ' + u8::try_from((seed >> 16) % 94).expect("below 94")));
        }
        text + "\n"
    };
    (0..count).map(&mut line).collect()
}

#[tokio::test]
async fn lines_of_a_log_are_counted_and_told_of_once() {
    let noisy = Rule::on_tool("echo", vec![Act::Write(lines(100, 7))]);
    let upstream = Upstream::stdio(Script::new("up", REVISION).rule(noisy)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = client_of(&gateway, "up__echo").await;
    let begun = tokio::time::Instant::now();
    for number in 0..10 {
        assert_eq!(client.call("up__echo", &format!("{{\"n\":{number}}}")).await.text(), format!("{{\"n\":{number}}}"));
    }
    assert_eq!(counted(&gateway, "trunkline_protocol_violations_total", "\"not_a_frame\"").await, 1000);
    gateway.says(&["not_a_frame"]).await;
    let told = gateway.stderr.all().iter().filter(|line| line.contains("not_a_frame")).count();
    let most = 1 + usize::try_from(begun.elapsed().as_secs() / 10).expect("a test is short");
    assert!((1..=most).contains(&told), "{told} lines of our log");
}

#[tokio::test]
async fn the_memory_of_a_large_answer_is_given_back() {
    let script = Script::new("up", REVISION).with(|script| script.tools.push("big".into()));
    let upstream = Upstream::stdio(script).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = client_of(&gateway, "up__big").await;
    client.call("up__big", "{\"bytes\":65536}").await;
    let before = process::resident_kib(gateway.pid).expect("it runs");
    assert_eq!(client.call("up__big", "{\"bytes\":15728640}").await.text().len(), 15 << 20);
    until("its memory is given back", || async {
        client.call("up__echo", "{}").await;
        (process::resident_kib(gateway.pid).expect("it runs") <= before + GROWTH).then_some(())
    })
    .await;
}

/// What the administration page says of an upstream that is never met.
async fn named(answer: &str, says: &str) {
    let acts = |text: &str| vec![Act::Write(text.into()), Act::Hang];
    let script = Script::new("up", REVISION)
        .rule(Rule::on("server/discover", acts(answer)))
        .rule(Rule::on("initialize", acts(answer)));
    let upstream = Upstream::stdio(script).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    gateway.look_until("/readyz?verbose", "the page says what is wrong", |page| page.contains(says)).await;
    let told = gateway.says(&["does not seem to speak MCP", "up", says]).await;
    assert!(told.contains("cause"), "{told}");
    assert_eq!(gateway.stderr.all().iter().filter(|line| line.contains("does not seem")).count(), 1, "it is said once");
}

#[tokio::test]
async fn messages_framed_by_their_length_are_named() {
    let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}";
    named(&format!("Content-Length: {}\r\n\r\n{body}", body.len()), "Content-Length").await;
}

#[tokio::test]
async fn messages_over_many_lines_are_named() {
    named("{\n  \"jsonrpc\": \"2.0\",\n  \"id\": $ID,\n  \"result\": {\n  }\n}\n", "spans several lines").await;
}

#[tokio::test]
async fn one_message_over_many_lines_spoils_its_own_call_alone() {
    let spread = "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": $ID,\n  \"result\": {\n    \"content\": []\n  }\n}";
    let script = Script::new("up", REVISION).rule(Rule::on_tool("tool_error", vec![Act::Frame(spread.into())]).once());
    let upstream = Upstream::stdio(script).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, &brief(&["tool_error"]))).await;
    let client = client_of(&gateway, "up__echo").await;
    let answer = client.call("up__tool_error", "{}").await;
    assert!(answer.message().contains("`up`"), "{}", answer.error());
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
}

/// A server sends neither of the first messages of a client: what comes back is our own.
#[tokio::test]
async fn what_only_sends_back_what_it_is_sent_has_failed_at_once_with_that() {
    let program = Program { path: "/bin/cat".into(), args: Vec::new(), env: Vec::new() };
    for era in ["auto", "legacy", "modern"] {
        let gateway = Gateway::serve(&Config::new().program("echo", &program, &format!("era = \"{era}\""))).await;
        let has_failed = |page: &str| page.contains("  failed ");
        let page = gateway.look_until("/readyz?verbose", "it has failed", has_failed).await;
        assert!(page.contains("it echoes its input"), "{page}");
    }
}

#[tokio::test]
async fn garbage_without_end_is_given_up_and_said_to_be_no_mcp() {
    let program = Program {
        path: "/bin/sh".into(),
        args: vec!["-c".into(), "head -c 67108864 /dev/urandom; sleep 1000".into()],
        env: Vec::new(),
    };
    let well = Upstream::stdio(Script::new("well", REVISION)).await;
    let gateway = Gateway::serve(&Config::new().program("bad", &program, "").upstream(&well)).await;
    let page = gateway
        .look_until("/readyz?verbose", "it has failed", |page| page.contains("bad") && page.contains("failed"))
        .await;
    assert!(page.contains("1000 lines on stdout, none of them MCP"), "{page}");
    let client = client_of(&gateway, "well__echo").await;
    assert_eq!(client.call("well__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    let count = counted(&gateway, "trunkline_protocol_violations_total", "\"bad\"").await;
    assert_eq!(count, 1000, "nothing is read after that, and nothing started again at once");
    assert!(gateway.stop().await.success());
}

/// The shell reads nothing while it writes, and our calls fill the pipe to it.
#[tokio::test]
async fn two_full_pipes_do_not_wait_for_one_another() {
    let scratch = Scratch::new();
    let go = scratch.path().join("go");
    // A thousand bytes a line; 100 MB in all before it looks whether it may end.
    let line =
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"debug\",\"data\":\"PAD\"}}";
    let line = line.replace("PAD", &"x".repeat(1000 - line.len() + "PAD".len() - 1));
    let flood = format!(
        "yes '{line}' | head -n 100000; while [ ! -e '{}' ]; do yes '{line}' | head -n 100; done; said flooded",
        go.display()
    );
    let program = shell::upstream(&[("flood", &flood), ("small", "said small")]);
    let stdio = StdioGateway::prepare(&Config::new().program("up", &program, ""));
    let client = Client::connect(&stdio.reach(), REVISION).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__flood".into())).await;
    let flooding = client.start(tool("up__flood", "{}")).await;
    let mut waiting = Vec::new();
    for _ in 0..8 {
        waiting.push(client.start(tool("up__small", &format!("{{\"fill\":\"{}\"}}", "y".repeat(60_000)))).await);
    }
    // Frames of a host are taken in their order: with this answer the calls have been.
    client.request(Request::new("ping", "{}")).await;
    std::fs::write(&go, "").expect("the folder can be written");
    assert_eq!(flooding.answer().await.text(), "flooded");
    for call in waiting {
        assert_eq!(call.answer().await.text(), "small");
    }
}

/// A child that first does something to stderr, and works all the same.
async fn over_stderr(habit: &str) -> (Upstream, Gateway, Client) {
    let upstream = Upstream::stdio(Script::new("up", REVISION)).await;
    let gateway = before(&under(&upstream, habit), "").await;
    let client = client_of(&gateway, "up__echo").await;
    (upstream, gateway, client)
}

#[tokio::test]
async fn a_flood_on_stderr_is_drained_and_told_within_measure() {
    let scratch = Scratch::new();
    let done = scratch.path().join("done");
    let habit = format!("(yes 'noise of the child' | head -c 134217728 >&2; : > '{}') &", done.display());
    let begun = tokio::time::Instant::now();
    let (_upstream, gateway, client) = over_stderr(&habit).await;
    let before = process::resident_kib(gateway.pid).expect("it runs");
    until("the flood is drained", || async {
        assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        Path::exists(&done).then_some(())
    })
    .await;
    let after = process::resident_kib(gateway.pid).expect("it runs");
    assert!(after <= before + GROWTH, "{before} KiB before, {after} KiB after");
    let told = gateway.stderr.all().iter().filter(|line| line.contains("noise of the child")).count();
    let most = 20 * (1 + usize::try_from(begun.elapsed().as_secs() / 10).expect("a test is short"));
    assert!((1..=most).contains(&told), "{told} lines of our log");
    until("every line is counted", || async {
        let count = counted(&gateway, "trunkline_child_stderr_lines_total", "\"up\"").await;
        (count >= 134_217_728 / 19).then_some(())
    })
    .await;
}

#[tokio::test]
async fn lines_that_were_too_many_are_told_of_though_no_more_come() {
    let (_upstream, gateway, _client) = over_stderr("seq 1 120 >&2").await;
    gateway.says(&["\"100 more stderr lines not shown\""]).await;
}

#[tokio::test]
async fn children_that_end_again_and_again_share_what_is_logged_of_their_stderr() {
    let script = "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do echo \"why it ends $n\" >&2; done; exit 1";
    let program = Program { path: "/bin/sh".into(), args: vec!["-c".into(), script.into()], env: Vec::new() };
    let begun = tokio::time::Instant::now();
    let gateway = before(&program, "").await;
    until("four children have ended", || async {
        (counted(&gateway, "trunkline_child_stderr_lines_total", "\"up\"").await >= 60).then_some(())
    })
    .await;
    let most = 20 * (1 + usize::try_from(begun.elapsed().as_secs() / 10).expect("a test is short"));
    let told = |words: &str| {
        let about = |line: &&String| line.contains("\"stream\":\"stderr\"") && line.contains(words);
        gateway.stderr.all().iter().filter(about).count()
    };
    assert!((1..=most).contains(&told("why it ends")), "{} lines of our log", told("why it ends"));
    let summaries = told("more stderr lines not shown");
    assert!(summaries <= most / 20, "{summaries} lines tell what was not logged");
    gateway.says(&["more stderr lines not shown"]).await;
}

#[tokio::test]
async fn an_endless_line_on_stderr_is_cut() {
    let habit = "(head -c 10485760 /dev/zero | tr '\\0' z; echo; echo last words) >&2";
    let (_upstream, gateway, client) = over_stderr(habit).await;
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    gateway.says(&["last words"]).await;
    let longest = gateway.stderr.all().iter().map(String::len).max();
    assert!(longest < Some(3000), "the longest line of our log has {longest:?} bytes");
}

#[tokio::test]
async fn a_closed_stderr_is_no_end() {
    let (upstream, gateway, client) = over_stderr("exec 2>&-").await;
    for _ in 0..3 {
        assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    }
    assert!(upstream.events.find(0, |event| (event.instance > 0).then_some(())).is_none(), "no restart");
    assert!(gateway.stop().await.success());
}

#[tokio::test]
async fn call_after_closed_stdin_reaches_the_next_child() {
    let tools = [("deafen", "exec 0<&-; said deaf; sleep 1000"), ("pid", "said $$")];
    let keys = "restart = { stop_timeout = \"200ms\", backoff_min = \"10ms\" }\nstart_wait = \"50s\"";
    let gateway = before(&shell::upstream(&tools), keys).await;
    let client = client_of(&gateway, "up__pid").await;
    let first = client.call("up__pid", "{}").await.text();
    assert_eq!(client.call("up__deafen", "{}").await.text(), "deaf");
    let answer = client.call("up__pid", "{}").await;
    assert!(answer.frame().result.is_some(), "{}", answer.error());
    assert_ne!(first, answer.text(), "another process serves now");
    assert!(!process::is_alive(first.parse().expect("a number")), "the first one is gone");
}

#[tokio::test]
async fn closed_stdin_of_an_idle_child_is_noticed() {
    let tools = [("deafen", "exec 0<&-; said deaf; sleep 1000")];
    let keys = "restart = { stop_timeout = \"200ms\", backoff_min = \"10ms\" }";
    let gateway = before(&shell::upstream(&tools), keys).await;
    let client = client_of(&gateway, "up__deafen").await;
    let first = gateway.children();
    assert_eq!(client.call("up__deafen", "{}").await.text(), "deaf");
    // Nothing is sent to it meanwhile.
    until("another child runs", || async {
        let now = gateway.children();
        now.iter().any(|pid| !first.contains(pid)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_child_that_closes_its_stdout_fails_its_calls_at_once_and_did_not_crash() {
    let tools = [("mute", "exec 1>&-; sleep 1000"), ("pid", "said $$")];
    let keys = "restart = { stop_timeout = \"200ms\", backoff_min = \"10ms\", max_restarts = 100 }";
    let gateway = before(&shell::upstream(&tools), keys).await;
    let client = client_of(&gateway, "up__pid").await;
    let mut soonest = Duration::MAX;
    for _ in 0..5 {
        let before = client.call("up__pid", "{}").await;
        assert!(before.frame().result.is_some(), "{}", before.error());
        let begun = tokio::time::Instant::now();
        let answer = client.call("up__mute", "{}").await;
        soonest = soonest.min(begun.elapsed());
        assert!(answer.message().contains("closed its stdout"), "{}", answer.error());
    }
    // Once it took a fifth of a second, since an exit status was waited for.
    assert!(soonest < Duration::from_millis(150), "{soonest:?}");
    let restarts = "trunkline_upstream_restarts_total";
    until("each was replaced", || async { (counted(&gateway, restarts, "reason=\"lost\"").await >= 5).then_some(()) })
        .await;
    assert_eq!(counted(&gateway, restarts, "reason=\"crash\"").await, 0);
}

#[tokio::test]
async fn a_program_that_takes_the_place_of_the_upstream_answers_no_call() {
    let tools = [
        ("silent", "exec sleep 1000"),
        ("other", "exec sh -c 'echo Updated to 2.0; echo please start me again >&2; exit 9'"),
        ("mirror", "exec cat"),
        ("pid", "said $$"),
    ];
    let restart = "restart = { backoff_min = \"10ms\", stop_timeout = \"200ms\" }";
    let gateway = before(&shell::upstream(&tools), &format!("{restart}\n{}", brief(&["silent", "mirror"]))).await;
    let client = client_of(&gateway, "up__pid").await;
    let first = client.call("up__pid", "{}").await.text();
    let answer = client.call("up__other", "{}").await;
    for says in ["`up`", "status 9", "`trunkline status up`"] {
        assert!(answer.message().contains(says), "{says}: {}", answer.error());
    }
    assert!(!answer.message().contains("please"), "what it said is for those who run the gateway: {}", answer.error());
    gateway.says(&["status 9", "please start me again"]).await;
    let second = client.call("up__pid", "{}").await.text();
    assert_ne!(first, second, "it was started again");
    for taken in ["up__silent", "up__mirror"] {
        let answer = client.call(taken, "{}").await;
        assert!(answer.frame().error.is_some(), "{taken}: {:?}", answer.frame());
        // Whoever finds it hanging ends it; the next one serves.
        let mut children = gateway.children().into_iter();
        let hung = children.find(|pid| name_of(*pid).is_some_and(|name| ["sleep", "cat"].contains(&name.as_str())));
        process::signal(hung.expect("it is there"), "KILL");
        until("another one serves", || async {
            client.call("up__pid", "{}").await.frame().result.is_some().then_some(())
        })
        .await;
    }
}

/// The name of the program that a process runs.
fn name_of(pid: u32) -> Option<String> {
    Some(std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim().to_owned())
}
