//! However the gateway ends, no child is left.

use std::path::PathBuf;

use tokio::net::TcpStream;
use trunkline_tests::client::converse::asks;
use trunkline_tests::client::{Client, Desk, Reply, Request, tool};
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::journal::{Event, Order, What};
use trunkline_tests::process::{self, Program};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::script::plan::Kind;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::until;

const REVISION: Revision = Revision::R2025_11_25;

/// Children of every temper: plain, under shells that wait or do not, deaf to the end of stdin, deaf to SIGTERM too.
struct Family {
    upstreams: Vec<Upstream>,
    config: Config,
}

/// The program of an upstream under a shell, which stays its parent.
fn wrapped(upstream: &Upstream, wrapper: &str) -> Program {
    let inner = upstream.program();
    let command = format!("'{}' '{}'", inner.path.display(), inner.args[0]);
    let args = vec!["-c".to_owned(), wrapper.replace("REAL", &command)];
    Program { path: PathBuf::from("/bin/sh"), args, env: Vec::new() }
}

async fn obedient() -> Family {
    let mut family = Family { upstreams: Vec::new(), config: Config::new() };
    let plain = Upstream::stdio(Script::new("plain", REVISION)).await;
    family.config = family.config.upstream(&plain);
    family.upstreams.push(plain);
    for (name, wrapper) in [
        ("waiting-shell", "REAL; exit $?"),
        ("forking-shell", "exec 3<&0; REAL <&3 & exec 3<&-; wait"),
        ("shell-in-shell", "sh -c \"REAL; true\"; true"),
    ] {
        let upstream = Upstream::stdio(Script::new(name, REVISION)).await;
        family.config = family.config.program(name, &wrapped(&upstream, wrapper), "");
        family.upstreams.push(upstream);
    }
    family
}

async fn with_deaf_ones() -> Family {
    let mut family = obedient().await;
    for (name, deaf_to_term) in [("deaf-to-eof", false), ("deaf-to-all", true)] {
        let script = Script::new(name, REVISION).with(|script| {
            script.deaf_to_eof = true;
            script.deaf_to_term = deaf_to_term;
        });
        let upstream = Upstream::stdio(script).await;
        family.config = family.config.upstream_with(&upstream, "restart = { stop_timeout = \"1s\" }");
        family.upstreams.push(upstream);
    }
    family
}

impl Family {
    /// Waits until every child is up, and gives the process groups that they are in.
    async fn up(&self, client: &Client) -> Vec<u32> {
        let all = |tools: &[String]| {
            self.upstreams.iter().all(|upstream| tools.contains(&format!("{}__echo", upstream.name)))
        };
        client.tools_until("all children's tools are listed", all).await;
        let mut groups = Vec::new();
        for upstream in &self.upstreams {
            let (pid, _) = upstream.started(0).await;
            groups.push(process::group_of(pid).expect("it runs"));
        }
        groups
    }
}

fn assert_empty(groups: &[u32], own: u32) {
    for group in groups {
        assert_ne!(*group, own, "a child has a group of its own");
        assert_eq!(process::group(*group), Vec::<u32>::new(), "nobody is left in group {group}");
    }
}

#[tokio::test]
async fn sigterm_leaves_nobody() {
    let family = with_deaf_ones().await;
    let gateway = Gateway::serve(&family.config).await;
    let client = Client::connect(&gateway.reach(), REVISION).await;
    let groups = family.up(&client).await;
    drop(client);
    assert!(gateway.stop().await.success(), "it ends as asked");
    assert_empty(&groups, gateway.pid);
    let polite = |event: &Event| matches!(event.what, What::Eof).then_some(());
    family.upstreams[0].events.wait("a plain child is asked by the end of its stdin first", polite).await;
    let told = |event: &Event| matches!(event.what, What::Term).then_some(());
    family.upstreams[4].events.wait("one deaf to that is told by SIGTERM", told).await;
}

#[tokio::test]
async fn the_end_of_stdin_leaves_nobody() {
    let family = with_deaf_ones().await;
    let gateway = StdioGateway::prepare(&family.config);
    let client = Client::connect(&gateway.reach(), REVISION).await;
    let groups = family.up(&client).await;
    client.stdio().close().await;
    assert!(client.stdio().ended().await.success(), "it ends as asked");
    assert_empty(&groups, client.stdio().pid);
}

#[tokio::test]
async fn sigterm_ends_the_stdio_gateway_too() {
    let family = obedient().await;
    let gateway = StdioGateway::prepare(&family.config);
    let client = Client::connect(&gateway.reach(), REVISION).await;
    let groups = family.up(&client).await;
    process::signal(client.stdio().pid, "TERM");
    client.stdio().ended().await;
    assert_empty(&groups, client.stdio().pid);
}

#[tokio::test]
async fn kill_leaves_nobody_that_ends_with_its_stdin() {
    let family = obedient().await;
    let gateway = Gateway::serve(&family.config).await;
    let client = Client::connect(&gateway.reach(), REVISION).await;
    let groups = family.up(&client).await;
    process::signal(gateway.pid, "KILL");
    gateway.ended().await;
    for upstream in &family.upstreams {
        upstream.gone(0).await;
    }
    until("their shells are gone too", || async {
        groups.iter().all(|group| process::group(*group).is_empty()).then_some(())
    })
    .await;
}

/// A child whose tools are listed by way of a gateway.
async fn ready() -> (Upstream, Gateway, Client) {
    let upstream = Upstream::stdio(Script::new("up", REVISION)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = Client::connect(&gateway.reach(), REVISION).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__wait".into())).await;
    (upstream, gateway, client)
}

#[tokio::test]
async fn a_call_in_flight_may_finish() {
    let (upstream, gateway, client) = ready().await;
    let open = client.start(tool("up__wait", "{\"gate\":\"last\"}")).await;
    upstream.waiting_at("last").await;
    process::signal(gateway.pid, "TERM");
    gateway.look_until("/readyz", "readiness is taken back", |page| !page.is_empty()).await;
    upstream.order(Order::Open("last".into())).await;
    assert_eq!(open.answer().await.text(), "released");
    assert!(gateway.ended().await.success());
}

#[tokio::test]
async fn at_sigint_too_what_runs_may_finish_and_nobody_comes_in_any_more() {
    let (upstream, gateway, client) = ready().await;
    let open = client.start(tool("up__wait", "{\"gate\":\"last\"}")).await;
    upstream.waiting_at("last").await;
    process::signal(gateway.pid, "INT");
    let address = gateway.url.trim_start_matches("http://").trim_end_matches("/mcp");
    until("nobody is let in", || async { TcpStream::connect(address).await.is_err().then_some(()) }).await;
    upstream.order(Order::Open("last".into())).await;
    assert_eq!(open.answer().await.text(), "released");
    assert!(gateway.ended().await.success());
}

#[tokio::test]
async fn a_hundred_calls_in_flight_all_have_their_answers() {
    let upstream = Upstream::stdio(Script::new("up", REVISION)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let sessions = Client::connect(&gateway.reach(), REVISION).await;
    let stateless = Client::connect(&gateway.reach(), Revision::MODERN).await;
    sessions.tools_until("its tools are listed", |tools| tools.contains(&"up__wait".into())).await;
    let mut open = Vec::new();
    for number in 0..50 {
        for client in [&sessions, &stateless] {
            open.push(client.start(tool("up__wait", &format!("{{\"gate\":\"last\",\"nonce\":\"{number}\"}}"))).await);
        }
    }
    upstream.waiting(100).await;
    process::signal(gateway.pid, "TERM");
    gateway.look_until("/readyz", "readiness is taken back", |page| !page.is_empty()).await;
    upstream.order(Order::Open("last".into())).await;
    for call in open {
        assert_eq!(call.answer().await.text(), "released");
    }
    assert!(gateway.ended().await.success());
}

#[tokio::test]
async fn before_the_stop_readiness_is_gone_and_requests_are_taken() {
    let upstream = Upstream::stdio(Script::new("up", REVISION)).await;
    let config = Config::new().upstream(&upstream).section("[server.shutdown]\npre_stop_delay = \"1h\"");
    let gateway = Gateway::serve(&config).await;
    let early = Client::connect(&gateway.reach(), REVISION).await;
    early.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    process::signal(gateway.pid, "TERM");
    gateway.look_until("/readyz", "readiness is taken back", |page| page == "draining\n").await;
    gateway.says(&["no longer ready"]).await;
    for revision in [REVISION, Revision::MODERN] {
        let late = Client::connect(&gateway.reach(), revision).await;
        for client in [&early, &late] {
            let answer = client.call("up__echo", "{\"a\":1}").await;
            assert_eq!((answer.text().as_str(), answer.header("connection")), ("{\"a\":1}", Some("close")));
        }
    }
    // One that comes at once is the same word.
    until("a second signal waits for nothing", || async {
        process::signal(gateway.pid, "TERM");
        (!process::is_alive(gateway.pid)).then_some(())
    })
    .await;
    assert!(!gateway.ended().await.success());
}

#[tokio::test]
async fn a_call_that_never_ends_does_not_hold_up_the_end() {
    let upstream = Upstream::stdio(Script::new("up", REVISION)).await;
    let config = Config::new().upstream(&upstream).section("[server.shutdown]\ngrace = \"300ms\"");
    let gateway = Gateway::serve(&config).await;
    let client = Client::connect(&gateway.reach(), REVISION).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__wait".into())).await;
    let _open = client.start(tool("up__wait", "{}")).await;
    upstream.waiting_at("wait").await;
    assert!(gateway.stop().await.success());
    upstream.gone(0).await;
}

#[tokio::test]
async fn what_was_asked_before_the_end_of_stdin_is_answered() {
    let upstream = Upstream::stdio(Script::new("up", REVISION)).await;
    let gateway = StdioGateway::prepare(&Config::new().upstream(&upstream));
    let client = Client::open(&gateway.reach(), REVISION).await;
    let greeting =
        "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"p\",\"version\":\"1\"}}";
    let greeted = client.start(Request::new("initialize", greeting)).await;
    client.notify("notifications/initialized", "{}").await;
    let listed = client.start(Request::new("tools/list", "{}")).await;
    let called = client.start(tool("up__wait", "{\"gate\":\"last\"}")).await;
    // There is little time after the end, and starting a child may take all of it.
    upstream.waiting_at("last").await;
    client.stdio().close().await;
    upstream.order(Order::Open("last".into())).await;
    assert!(greeted.answer().await.result().contains("2025-11-25"));
    assert!(listed.answer().await.result().contains("up__echo"));
    assert_eq!(called.answer().await.text(), "released");
    assert!(client.stdio().ended().await.success());
    assert_eq!(client.complaints.all(), Vec::<String>::new());
}

/// Behind `trunkline stdio`: a grace time so long that only what is given up at once can end in time.
async fn patient(asking: Revision, client: Revision, desk: Desk) -> (Upstream, StdioGateway, Client) {
    let upstream = Upstream::stdio(Script::new("up", asking).asking()).await;
    let config = Config::new().upstream(&upstream).section("[server.shutdown]\ngrace = \"10m\"");
    let gateway = StdioGateway::prepare(&config);
    let client = Client::connect_with(&gateway.reach(), client, desk).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__ask".into())).await;
    (upstream, gateway, client)
}

fn form() -> Request {
    tool("up__ask", "{\"plan\":\"form\",\"who\":\"ada\"}")
}

#[tokio::test]
async fn sigterm_withdraws_the_questions_of_a_stdio_client_and_answers_its_calls() {
    for asking in [REVISION, Revision::MODERN] {
        let desk = Desk::willing("ada").reply(Kind::Form, Reply::Silence);
        let (upstream, _gateway, client) = patient(asking, REVISION, desk).await;
        let group = process::group_of(upstream.started(0).await.0).expect("it runs");
        let asked = client.start(form()).await;
        let question = client.desk.asked(0).await;
        let running = client.start(tool("up__wait", "{\"gate\":\"last\"}")).await;
        upstream.waiting_at("last").await;
        process::signal(client.stdio().pid, "TERM");
        let answer = asked.answer().await;
        if asking.is_modern() {
            assert_eq!(answer.value()["isError"], true, "{answer:?}");
            assert!(
                answer.text().contains("`up`") && answer.text().contains("the gateway is shutting down"),
                "{answer:?}"
            );
        } else {
            assert!(answer.text().contains("{\"action\":\"cancel\"}"), "its upstream answers for itself: {answer:?}");
        }
        assert_eq!(client.desk.withdrawn.all(), [question.id]);
        upstream.order(Order::Open("last".into())).await;
        assert_eq!(running.answer().await.text(), "released");
        assert!(client.stdio().ended().await.success(), "it ends as asked");
        assert_empty(&[group], client.stdio().pid);
        assert_eq!(client.complaints.all(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn sigterm_drops_what_a_stdio_client_has_left_parked() {
    let (upstream, _gateway, client) = patient(REVISION, Revision::MODERN, Desk::willing("ada")).await;
    let answer = client.request(form()).await;
    assert!(asks(&answer), "{answer:?}");
    process::signal(client.stdio().pid, "TERM");
    assert!(client.stdio().ended().await.success(), "it ends as asked");
    let told = |event: &Event| match &event.what {
        What::Frame { raw, .. } => raw.contains("\"action\":\"cancel\"").then_some(()),
        _ => None,
    };
    upstream.events.wait("the upstream is told that there is no answer", told).await;
    upstream.gone(0).await;
}

#[tokio::test]
async fn at_the_end_of_a_drain_every_call_has_its_last_word() {
    let upstream = Upstream::stdio(Script::new("up", REVISION)).await;
    let config = Config::new().upstream(&upstream).server("sse_keepalive = \"500ms\"");
    let config = config.section("[server.shutdown]\ngrace = \"3s\"");
    let gateway = Gateway::serve(&config).await;
    let sessions = Client::connect(&gateway.reach(), REVISION).await;
    let stateless = Client::connect(&gateway.reach(), Revision::MODERN).await;
    sessions.tools_until("its tools are listed", |tools| tools.contains(&"up__wait".into())).await;
    let mut open = Vec::new();
    for number in 0..5 {
        for client in [&sessions, &stateless] {
            open.push(client.start(tool("up__wait", &format!("{{\"nonce\":\"{number}\"}}"))).await);
        }
    }
    upstream.waiting(10).await;
    // All have become streams by the end of the drain.
    process::signal(gateway.pid, "TERM");
    for call in open {
        let answer = call.answer().await;
        let said = answer.message();
        assert!(said.contains("the gateway shut down") && said.contains("may or may not have run"), "{answer:?}");
        assert_eq!(answer.error_value()["data"]["retriable"], false, "{answer:?}");
        assert_eq!(answer.error_value()["data"]["upstream"], "up", "{answer:?}");
        assert!(answer.is_stream());
    }
    assert!(gateway.ended().await.success());
}

#[tokio::test]
async fn a_call_that_is_answered_in_one_piece_has_its_last_word_too() {
    let upstream = Upstream::stdio(Script::new("up", REVISION)).await;
    let config = Config::new().upstream(&upstream).section("[server.shutdown]\ngrace = \"100ms\"");
    let gateway = Gateway::serve(&config).await;
    let client = Client::connect(&gateway.reach(), REVISION).await;
    let modern = Client::connect(&gateway.reach(), Revision::MODERN).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__wait".into())).await;
    let open = [client.start(tool("up__wait", "{}")).await, modern.start(tool("up__wait", "{}")).await];
    upstream.waiting(2).await;
    process::signal(gateway.pid, "TERM");
    for call in open {
        let answer = call.answer().await;
        assert!(answer.message().contains("the gateway shut down"), "{answer:?}");
        assert_eq!(answer.error_value()["data"]["retriable"], false, "{answer:?}");
    }
    assert!(gateway.ended().await.success());
}
