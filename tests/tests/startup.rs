//! The door opens before any upstream does; the healthy are listed as they come, the sick are named.

use std::path::PathBuf;

use tokio::time::Instant;
use trunkline_tests::client::{Client, Request};
use trunkline_tests::frame::Frame;
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::journal::{Event, Order};
use trunkline_tests::process::{GATEWAY, Program, beside};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within;

const REVISION: Revision = Revision::R2025_11_25;
const HEALTHY: usize = 12;
const HANGING: usize = 5;

/// What it says last is not lost with the process, however busy the machine is.
#[tokio::test]
async fn where_somebody_else_listens_it_says_so_before_it_ends() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = taken.local_addr().expect("a bound socket has an address").to_string();
    for _ in 0..20 {
        let mut command = tokio::process::Command::new(beside(GATEWAY));
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin", &address]).env("HOME", "/nonexistent");
        let output = within("it ends", command.kill_on_drop(true).output()).await.expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains(&format!("cannot listen on {address}")), "{output:?}");
    }
}

/// Twenty upstreams: twelve that wait for the test in their handshake, five that never answer it, two that exit at
/// once, one whose program is missing.
struct Twenty {
    healthy: Vec<Upstream>,
    _hanging: Vec<Upstream>,
    config: Config,
}

async fn twenty() -> Twenty {
    let (mut healthy, mut hanging, mut config) = (Vec::new(), Vec::new(), Config::new());
    for number in 0..HANGING {
        let hang = Rule::on("initialize", vec![Act::Hang]);
        let upstream = Upstream::stdio(Script::new(&format!("hangs{number}"), REVISION).rule(hang)).await;
        config = config.upstream_with(&upstream, "startup_timeout = \"2s\"");
        hanging.push(upstream);
    }
    for number in 0..2 {
        let args = ["-c".to_owned(), format!("echo 'no licence {number}' >&2; exit 7")];
        let program = Program { path: PathBuf::from("/bin/sh"), args: args.to_vec(), env: Vec::new() };
        config = config.program(&format!("exits{number}"), &program, "");
    }
    let missing = Program { path: PathBuf::from("/no/such/program"), args: Vec::new(), env: Vec::new() };
    config = config.program("missing", &missing, "");
    for number in 0..HEALTHY {
        let gate = Rule::on("initialize", vec![Act::Gate("door".into())]);
        let script = Script::new(&format!("healthy{number}"), REVISION).rule(gate);
        let upstream = Upstream::stdio(script).await;
        config = config.upstream(&upstream);
        healthy.push(upstream);
    }
    Twenty { healthy, _hanging: hanging, config }
}

/// The order of events: greeted while every handshake hangs, then listed one by one.
async fn check_order(client: &Client, healthy: &[Upstream]) {
    for upstream in healthy {
        upstream.waiting_at("door").await;
    }
    let (first, rest) = healthy.split_first().expect("there are some");
    first.order(Order::Open("door".into())).await;
    let listed = client.tools_until("the first one's tools are listed", |tools| has(tools, first)).await;
    assert!(!rest.iter().any(|upstream| has(&listed, upstream)), "nobody else is up yet: {listed:?}");
    let answer = client.call(&format!("{}__echo", first.name), "{\"a\":1}").await;
    assert_eq!(answer.text(), "{\"a\":1}", "it is used while the others still start");
    for upstream in rest {
        upstream.order(Order::Open("door".into())).await;
    }
    let all = |tools: &[String]| healthy.iter().all(|upstream| has(tools, upstream));
    client.tools_until("the tools of all healthy ones are listed", all).await;
}

fn has(tools: &[String], upstream: &Upstream) -> bool {
    let wanted = format!("{}__echo", upstream.name);
    tools.contains(&wanted)
}

#[tokio::test]
async fn over_http_the_door_opens_first_and_the_sick_are_named() {
    let twenty = twenty().await;
    let gateway = Gateway::serve(&twenty.config).await;
    // Every handshake hangs or is held by the test: whatever is answered now waits for none of them.
    let client = Client::connect(&gateway.reach(), REVISION).await;
    let modern = Client::open(&gateway.reach(), Revision::MODERN).await;
    let discovered = modern.request(Request::new("server/discover", "{}")).await.value();
    assert_eq!(discovered["capabilities"]["tools"]["listChanged"], true, "{discovered}");
    check_order(&client, &twenty.healthy).await;

    for number in 0..2 {
        gateway.says(&[&format!("exits{number}"), &format!("no licence {number}")]).await;
    }
    gateway.says(&["missing", "does not exist"]).await;
    for number in 0..HANGING {
        let name = format!("hangs{number}");
        let says = |line: &String| {
            line.contains(&name) && ["initialize", "startup", "timed out"].iter().any(|w| line.contains(w))
        };
        gateway.stderr.wait(&format!("the log says why {name} is not up"), |line| says(line).then_some(())).await;
    }
    let page =
        gateway.look_until("/readyz?verbose", "the sick are named", |page| page.contains("does not exist")).await;
    for name in ["exits0", "exits1", "missing", "hangs0", "hangs4", "healthy0", "healthy11"] {
        assert!(page.contains(name), "{name} in\n{page}");
    }
    let line = |name: &str| page.lines().find(|line| line.contains(name)).unwrap_or_default().to_owned();
    assert!(line("missing").contains("does not exist"), "{page}");
    assert!(line("exits1").contains('7') && line("exits1").contains("no licence 1"), "status and last words: {page}");
    assert!(line("healthy3").contains("ready"), "{page}");
}

#[tokio::test]
async fn over_stdio_the_door_opens_first() {
    let twenty = twenty().await;
    let gateway = StdioGateway::prepare(&twenty.config);
    let client = Client::connect(&gateway.reach(), REVISION).await;
    check_order(&client, &twenty.healthy).await;
    let log = &client.stdio().stderr;
    let names = |line: &String| (line.contains("missing") && line.contains("does not exist")).then_some(());
    log.wait("the log names the missing program", names).await;
    assert_eq!(client.complaints.all(), Vec::<String>::new(), "stdout carries frames only");
}

#[tokio::test]
async fn a_host_that_only_probes_starts_nothing() {
    let upstream = Upstream::stdio(Script::new("up", REVISION)).await;
    let gateway = StdioGateway::prepare(&Config::new().upstream(&upstream));
    // From a file, so that the end of stdin comes right behind the question, however busy the machine is.
    let scratch = Scratch::new();
    let question = Request::new("server/discover", "{}").capabilities("{}").text(Revision::MODERN, "1");
    let stdin = std::fs::File::open(scratch.file("question", &format!("{question}\n"))).expect("it was written");
    let Program { path, args, env } = &gateway.program;
    let mut command = tokio::process::Command::new(path);
    command.args(args).envs(env.iter().cloned()).stdin(stdin).kill_on_drop(true);
    let output = within("it ends", command.output()).await.expect("it runs");
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"resultType\":\"complete\""), "{output:?}");
    let seen = upstream.seen().await;
    assert!(seen.is_empty(), "nothing was started: {seen:?}");
}

#[tokio::test]
async fn a_list_waits_once_for_those_that_were_never_seen() {
    let gate = Rule::on("tools/list", vec![Act::Gate("door".into())]);
    let slow = Upstream::stdio(Script::new("slow", REVISION).rule(gate)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&slow).section("[catalog]\nfirst_list_wait = \"15s\"")).await;
    let client = Client::connect(&gateway.reach(), REVISION).await;
    let list = client.start(Request::new("tools/list", "{}")).await;
    slow.waiting_at("door").await;
    slow.order(Order::Open("door".into())).await;
    assert!(list.answer().await.result().contains("slow__echo"), "the first list has what came meanwhile");
}

#[tokio::test]
async fn an_upstream_that_fails_one_list_keeps_the_rest() {
    let failing = Rule::on("prompts/list", vec![Act::error(-32601, "Method not found")]);
    let upstream = Upstream::stdio(Script::new("up", REVISION).rule(failing)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = Client::connect(&gateway.reach(), REVISION).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    assert_eq!(client.list("prompts/list", "prompts", "name").await, Vec::<String>::new());
    assert_eq!(client.list("resources/list", "resources", "uri").await, ["script://up/text", "script://up/changing"]);
}

#[tokio::test]
async fn all_pages_are_read_and_kept_in_order() {
    let script = Script::new("up", REVISION).only_tools(&["echo"]).with(|script| {
        script.more_tools = 25;
        script.page = 4;
    });
    let upstream = Upstream::stdio(script).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = Client::connect(&gateway.reach(), REVISION).await;
    let tools = client.tools_until("all tools are listed", |tools| tools.len() == 26).await;
    let wanted = std::iter::once("up__echo".to_owned()).chain((0..25).map(|number| format!("up__tool_{number}")));
    assert_eq!(tools, wanted.collect::<Vec<_>>());
    let capabilities = client.greeting.as_ref().expect("greeted").value()["capabilities"].clone();
    assert_eq!(capabilities["tools"]["listChanged"], true);
}

#[tokio::test]
async fn a_restarted_upstream_keeps_its_place_in_the_list() {
    let upstream = Upstream::stdio(Script::new("up", REVISION)).await;
    let keys = "restart = { backoff_min = \"15s\", backoff_max = \"15s\" }";
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, keys)).await;
    let client = Client::connect(&gateway.reach(), REVISION).await;
    let before = client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    upstream.order(Order::Exit(3)).await;
    upstream.gone(0).await;
    gateway.says(&["up", "3"]).await;
    assert_eq!(client.tools().await, before, "stale entries are kept while it is away");
    assert!(!upstream.events.all().iter().any(|event| event.instance == 1), "it has not been started again yet");
}

#[tokio::test]
async fn a_slow_first_answer_is_waited_for_and_its_tools_are_told_of() {
    let gate = Rule::on("initialize", vec![Act::Gate("door".into())]);
    let slow = Upstream::stdio(Script::new("slow", REVISION).rule(gate)).await;
    let config = Config::new().upstream(&slow).section("[catalog]\nfirst_list_wait = 0");
    let gateway = Gateway::serve(&config).await;
    slow.waiting_at("door").await;
    let client = Client::connect(&gateway.reach(), REVISION).await;
    let ear = client.listen(&[]).await;
    assert_eq!(client.tools().await, Vec::<String>::new());
    let page = gateway.look("/readyz?verbose").await;
    assert!(String::from_utf8_lossy(&page.body).contains("starting"), "it says why");
    slow.order(Order::Open("door".into())).await;
    ear.hears(0, "notifications/tools/list_changed").await;
    assert!(client.tools().await.contains(&"slow__echo".into()));
    let is_second = |event: &Event| (event.instance > 0).then_some(());
    assert!(slow.events.find(0, is_second).is_none(), "it was not started anew");
}

/// The changes that a client hears of, from now on; where it lists only when it hears of one.
async fn follows(client: &Client, wanted: &[String]) {
    const CHANGED: &str = "notifications/tools/list_changed";
    let (ear, began) = (client.listen(&[]).await, Instant::now());
    let (mut mark, mut seen) = (ear.heard.mark(), client.tools().await);
    while !wanted.iter().all(|tool| seen.contains(tool)) {
        let pick = |frame: &Frame| frame.is_notice(CHANGED).then_some(());
        ear.heard.wait_from(mark, "it hears of what it has not listed", pick).await;
        mark = ear.heard.mark();
        seen = client.tools().await;
    }
    let told = ear.heard.all().iter().filter(|frame| frame.is_notice(CHANGED)).count();
    // One may have been kept for it until it listened.
    let most = 2 + (began.elapsed().as_millis() / 250) as usize;
    assert!(told <= most, "{told} notices in {:?}", began.elapsed());
}

/// Upstreams come up one after the other, much sooner than a client is to be told again.
async fn check_first_notices(upstreams: &[Upstream], early: &Client, late: impl Future<Output = Client>) {
    for upstream in upstreams {
        upstream.waiting_at("door").await;
    }
    let wanted: Vec<_> = upstreams.iter().map(|upstream| format!("{}__echo", upstream.name)).collect();
    let (half, rest) = upstreams.split_at(upstreams.len() / 2);
    let open = async |upstreams: &[Upstream]| {
        for upstream in upstreams {
            upstream.order(Order::Open("door".into())).await;
        }
    };
    let come = async {
        open(half).await;
        let late = late.await;
        let first =
            late.tools_until("the first ones are listed", |tools| tools.contains(&wanted[half.len() - 1])).await;
        assert!(!first.contains(wanted.last().expect("there are some")), "{first:?}");
        tokio::join!(follows(&late, &wanted), open(rest));
    };
    tokio::join!(follows(early, &wanted), come);
}

#[tokio::test]
async fn clients_that_are_there_before_the_upstreams_hear_of_their_lists_joined_and_miss_none() {
    let upstreams = async || {
        let gate = || Rule::on("initialize", vec![Act::Gate("door".into())]);
        let mut upstreams = Vec::new();
        for number in 0..10 {
            upstreams.push(Upstream::stdio(Script::new(&format!("up{number}"), REVISION).rule(gate())).await);
        }
        let config = Config::new().section("[catalog]\nfirst_list_wait = 0");
        let config = upstreams.iter().fold(config, |config, upstream| config.upstream(upstream));
        (upstreams, config)
    };
    let (all, config) = upstreams().await;
    let gateway = Gateway::serve(&config).await;
    let early = Client::connect(&gateway.reach(), REVISION).await;
    check_first_notices(&all, &early, Client::connect(&gateway.reach(), REVISION)).await;
    // Over stdio there is one client.
    let (all, config) = upstreams().await;
    let gateway = StdioGateway::prepare(&config);
    let client = Client::connect(&gateway.reach(), REVISION).await;
    for upstream in &all {
        upstream.waiting_at("door").await;
    }
    let wanted: Vec<_> = all.iter().map(|upstream| format!("{}__echo", upstream.name)).collect();
    let open = async {
        for upstream in &all {
            upstream.order(Order::Open("door".into())).await;
        }
    };
    tokio::join!(follows(&client, &wanted), open);
}
