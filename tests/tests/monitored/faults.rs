//! Real faults fire the alerts that are meant for them. The alerts are those of the chart, but for the time that they have to hold: what
//! takes ten minutes there takes seconds here.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use trunkline_tests::client::{Client, Desk, Open, Reply, Request, http, tool};
use trunkline_tests::gateway::{ADMIN_TOKEN, Config, Gateway, free_port};
use trunkline_tests::journal::Order;
use trunkline_tests::peers::Prometheus;
use trunkline_tests::process::{self, Program};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::plan::Kind;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{LIMIT, all, until};

use super::LEGACY;

/// More principals than have series of their own.
const PRINCIPALS: usize = 102;
/// So many sessions there may be.
const SESSIONS: usize = 40;
/// So many calls of a client there may be at once.
const CALLS: usize = 4;
/// A call that takes so long is a slow one.
const SLOW: Duration = Duration::from_secs(11);
const DAY: Duration = Duration::from_secs(24 * 3600);
const UPSTREAMS: [&str; 10] = ["child", "noisy", "full", "hung", "frail", "sick", "slow", "lent", "gone", "bare"];

/// What fires while a gateway runs that everything goes wrong for.
const OF_FAULTS: [&str; 24] = [
    "TrunklineAuditLinesLost",
    "TrunklineBreakerOpen",
    "TrunklineCatalogEmpty",
    "TrunklineCertificateExpires",
    "TrunklineCertificateRefused",
    "TrunklineClientsRefused",
    "TrunklineConfigRefused",
    "TrunklineErrorRatioCritical",
    "TrunklineErrorRatioHigh",
    "TrunklineLatencyHigh",
    "TrunklineProtocolViolations",
    "TrunklineQuestionsUnanswered",
    "TrunklineQueueFull",
    "TrunklineQueueLong",
    "TrunklineRequestStatesRefused",
    "TrunklineSeriesLimited",
    "TrunklineSessionsEvicted",
    "TrunklineSpansLost",
    "TrunklineTokenExpires",
    "TrunklineToolErrorsHigh",
    "TrunklineUpstreamDegraded",
    "TrunklineUpstreamDown",
    "TrunklineUpstreamFlapping",
    "TrunklineUpstreamHangs",
];
/// What fires when less and less is left, in this order.
const OF_ENDS: [&str; 4] = ["TrunklineNoUpstreamUsable", "TrunklineFilesHigh", "TrunklineDown", "TrunklineAbsent"];
/// What takes a machine that is worn out, or that no test can make stand still at the right time; promtool fires these from series.
const OF_SERIES: [&str; 6] = [
    // Two replicas would have to share a signing key.
    "TrunklineAnswersMisrouted",
    // Its stderr would have to be full, and the harness reads that.
    "TrunklineLogLinesLost",
    // Peers would have to hold nine tenths of the memory, and no more, while it is looked.
    "TrunklineMemoryHigh",
    "TrunklineMessagesDropped",
    // A processor would have to be taken away for as long as calls are under way, or a worker within one task.
    "TrunklineOverheadHigh",
    "TrunklineWorkerStalled",
];

/// The rules of the chart, each of which fires as soon as it holds, and looks back no further than the fault reaches.
fn rules(files: &Scratch) -> String {
    let text = std::fs::read_to_string(super::file("alerts.yaml")).expect("there are alerts");
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("for: "));
    let soon = |line: &str| match line.contains("avg_over_time(") || line.contains("min_over_time(") {
        true => line.replace("[5m]", "[5s]").replace("[10m]", "[5s]"),
        false => line.to_owned(),
    };
    files.file("alerts.yaml", &lines.map(soon).collect::<Vec<_>>().join("\n")).display().to_string()
}

fn token(number: usize) -> String {
    format!("the-long-token-of-{number:04}")
}

/// A certificate that ends tomorrow, and its key: the keys of a listener.
fn certificate(files: &Scratch) -> String {
    let mut params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a name");
    params.not_after = (SystemTime::now() + DAY).into();
    let key = rcgen::KeyPair::generate().expect("a key");
    let own = params.self_signed(&key).expect("a certificate is made");
    let path = |name: &str, text: &str| files.file(name, text).display().to_string();
    let (cert, key) = (path("cert.pem", &own.pem()), path("key.pem", &key.serialize_pem()));
    format!("tls = {{ cert = \"{cert}\", key = \"{key}\" }}")
}

/// A gateway whose upstreams, clients and files are all unwell.
struct Troubled {
    gateway: Gateway,
    full: Upstream,
    hung: Upstream,
    frail: Upstream,
    slow: Upstream,
    files: Scratch,
    _others: Vec<Upstream>,
}

impl Troubled {
    async fn start() -> Troubled {
        let files = Scratch::new();
        let child = Upstream::stdio(Script::new("child", LEGACY).asking()).await;
        let noisy = Rule::on_tool("echo", vec![Act::Write("this is no message\n".into()), Act::Late(0)]);
        let noisy = Upstream::stdio(Script::new("noisy", LEGACY).rule(noisy)).await;
        let [full, hung, frail] = ["full", "hung", "frail"].map(|name| Upstream::stdio(Script::new(name, LEGACY)));
        let (full, hung, frail) = (full.await, hung.await, frail.await);
        let failing = Act::status(500, "text/plain", "no");
        let sick = Upstream::http(Script::new("sick", LEGACY).rule(Rule::on_tool("echo", vec![failing]))).await;
        let slow = Upstream::http(Script::new("slow", LEGACY)).await;
        let lent = Upstream::http(Script::new("lent", Revision::MODERN)).await;
        let gone = Program { path: "/no/such/program".into(), args: Vec::new(), env: Vec::new() };
        // It offers nothing.
        let bare = Program::ours("bench-upstream", &["stdio", "0"]);
        let config = general(&files, &sick)
            .upstream_with(&child, "question_timeout = \"200ms\"\noffer = [\"elicitation\"]")
            .upstream(&noisy)
            .upstream_with(&full, "max_concurrency = 1\nqueue = 1")
            .upstream_with(&hung, "hang_restart = true\nhealth = { interval = \"200ms\", timeout = \"1s\" }")
            .upstream_with(&frail, "restart = { backoff_min = \"20ms\", backoff_max = \"20ms\", max_restarts = 100 }")
            .upstream_with(&sick, "breaker = { failures = 2, open_for = \"1h\" }")
            .upstream(&slow)
            .upstream_with(&lent, &short_token(&files))
            .program("gone", &gone, "")
            .program("bare", &bare, "");
        let gateway = Gateway::serve(&config).await;
        Troubled { gateway, full, hung, frail, slow, files, _others: vec![child, noisy, sick, lent] }
    }

    async fn client(&self, number: usize) -> Client {
        Client::bearing(&self.gateway.reach(), Revision::MODERN, &token(number)).await
    }

    /// Spoils the files that it reads and writes.
    fn spoil(&self) {
        let _replaced = self.files.file("cert.pem", "this is no certificate");
        std::fs::remove_dir_all(self.files.path().join("audit")).expect("the folder is ours");
        let _other = self.files.file("audit", "no folder any more");
        std::fs::write(&self.gateway.file, "[nonsense]\n").expect("the file is ours");
    }

    /// A child stands still, and another one ends whenever it has begun.
    async fn ail(&self) {
        let (pid, _) = self.hung.started(0).await;
        // Where the machine was slow it was killed already.
        if process::is_alive(pid) {
            process::signal(pid, "STOP");
        }
        for life in 0..8 {
            let (pid, _) = self.frail.started(life).await;
            process::signal(pid, "KILL");
        }
    }

    /// Each of more principals than there are series makes a call, one of them opens all sessions, and one more is opened.
    async fn crowd(&self, desk: Desk) -> (Vec<Client>, Client) {
        let calls = (4..PRINCIPALS).map(async |number| self.client(number).await.call_once("nobody__echo", "{}").await);
        all(calls).await;
        let mut guests = Vec::new();
        for _ in 0..SESSIONS {
            guests.push(Client::bearing(&self.gateway.reach(), LEGACY, &token(4)).await);
        }
        (guests, Client::bearing_with(&self.gateway.reach(), LEGACY, &token(1), desk).await)
    }

    async fn order(&self, name: &str, order: &str) {
        let bearer = format!("Bearer {ADMIN_TOKEN}");
        let headers = [("authorization", &*bearer), ("content-type", "application/json")];
        let url = format!("{}/api/v1/upstreams/{name}/{order}", self.gateway.admin);
        let answer = http::exchange(&url, "POST", &headers, "").await;
        assert!(answer.status < 300, "{name}: {answer:?}");
    }
}

/// All of the configuration but its upstreams.
fn general(files: &Scratch, no_collector: &Upstream) -> Config {
    let of = |at| format!("[[auth.tokens]]\nname = \"p{at}\"\ntoken = \"{}\"\n", token(at));
    std::fs::create_dir(files.path().join("audit")).expect("the folder is ours");
    let listener = format!("[[server.listeners]]\naddress = \"127.0.0.1:{}\"\n{}", free_port(), certificate(files));
    Config::new()
        .section(&(0..PRINCIPALS).map(of).collect::<String>())
        .section(&format!("[server.session]\nmax = {SESSIONS}"))
        .section(&format!("[limits]\nmax_concurrency = {CALLS}"))
        .section(&format!("[audit]\nfile = \"{}\"", files.path().join("audit/log").display()))
        .section(&format!("[traces]\nendpoint = \"http://{}\"", no_collector.address()))
        .listed("")
        .section(&listener)
}

/// The keys of an upstream whose token ends soon, and for which there is no second one.
fn short_token(files: &Scratch) -> String {
    let given = files.path().join("given");
    let script = "test -e \"$1\" && exit 1; : > \"$1\"; echo '{\"token\":\"a-token-of-a-command\",\"expires_in\":10}'";
    let args = format!("[\"-c\", '''{script}''', \"sh\", \"{}\"]", given.display());
    format!("auth = {{ type = \"exec\", command = \"sh\", args = {args} }}")
}

/// What goes on failing until all alerts have fired.
struct Work<'a> {
    client: &'a Client,
    /// It answers no question.
    asked: &'a Client,
    /// It has as many calls open as it may.
    greedy: &'a Client,
}

impl Work<'_> {
    /// Calls of all kinds that fail, once.
    async fn once(&self) {
        for name in ["noisy__echo", "child__tool_error", "sick__echo", "full__echo", "lent__echo"] {
            for _ in 0..5 {
                self.client.call_once(name, "{}").await;
            }
        }
        let made_up = r#"{"name":"child__echo","arguments":{},"requestState":"made up","inputResponses":{}}"#;
        self.client.request(Request::new("tools/call", made_up)).await;
        self.greedy.call_once("child__echo", "{}").await;
        self.asked.request(tool("child__ask", "{\"plan\":\"form\",\"who\":\"ada\",\"nonce\":\"n\"}")).await;
    }
}

/// Works until all of these have fired, whenever that was.
async fn fire(prometheus: &Prometheus, names: &[&str], mut work: impl AsyncFnMut()) {
    let mut left: BTreeSet<&str> = names.iter().copied().collect();
    let firing = async {
        while !left.is_empty() {
            work().await;
            let fired = prometheus.firing().await;
            left.retain(|name| !fired.contains(*name));
        }
    };
    let _in_time = tokio::time::timeout(LIMIT, firing).await;
    assert!(left.is_empty(), "these alerts did not fire: {left:?}");
}

/// Calls that are never answered.
async fn never<'a>(client: &'a Client, name: &str, count: usize) -> Vec<Open<'a>> {
    let mut open = Vec::new();
    for _ in 0..count {
        open.push(client.start(tool(name, "{\"gate\":\"never\"}")).await);
    }
    open
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_alert_is_fired_by_a_fault() {
    let troubled = Troubled::start().await;
    let (gateway, client) = (&troubled.gateway, troubled.client(0).await);
    let listed = ["child__echo", "noisy__echo", "sick__echo", "full__echo", "slow__echo"];
    client.tools_until("all are listed", |tools| listed.iter().all(|one| tools.contains(&(*one).into()))).await;
    client.call("slow__echo", "{}").await.text();
    // One call is made, one waits for its place, and one takes its time, from before Prometheus looks on.
    let waiting = troubled.client(2).await;
    let _first = never(&waiting, "full__wait", 1).await;
    troubled.full.waiting_at("never").await;
    let _second = never(&waiting, "full__wait", 1).await;
    let queued = |page: &str| page.contains("trunkline_upstream_queued_calls{upstream=\"full\"} 1");
    gateway.look_until("/metrics", "a call waits", queued).await;
    let (began, _slow) = (Instant::now(), waiting.start(tool("slow__wait", "{\"gate\":\"later\"}")).await);
    let Some(prometheus) = Prometheus::scraping(gateway, &rules(&troubled.files)).await else { return };
    let known: BTreeSet<_> = prometheus.alerts().await.into_iter().map(|(name, ..)| name).collect();
    let meant: BTreeSet<_> = [&OF_FAULTS[..], &OF_ENDS, &OF_SERIES].concat().into_iter().collect();
    assert_eq!(known.iter().map(String::as_str).collect::<BTreeSet<_>>(), meant);
    // An increase is one since the first look.
    let has_looked = async || prometheus.query("trunkline_build_info").await.is_ok_and(|series| !series.is_empty());
    until("Prometheus has looked", || async { has_looked().await.then_some(()) }).await;
    troubled.spoil();
    troubled.ail().await;
    let (_guests, asked) = troubled.crowd(Desk::willing("ada").reply(Kind::Form, Reply::Silence)).await;
    let greedy = troubled.client(3).await;
    // Not at the child: of a question that it asks while others call nobody knows whose it is.
    let _open = never(&greedy, "slow__wait", CALLS).await;
    let work = Work { client: &client, asked: &asked, greedy: &greedy };
    fire(&prometheus, &OF_FAULTS, async || {
        work.once().await;
        if began.elapsed() > SLOW {
            troubled.slow.order(Order::Open("later".into())).await;
        }
    })
    .await;
    for name in UPSTREAMS {
        troubled.order(name, "stop").await;
    }
    fire(&prometheus, &OF_ENDS[..1], async || ()).await;
    leave_few_files(gateway.pid);
    fire(&prometheus, &OF_ENDS[1..2], async || ()).await;
    gateway.kill().await;
    fire(&prometheus, &OF_ENDS[2..], async || ()).await;
}

/// Lowers how many files a process may have open to little more than it has.
fn leave_few_files(pid: u32) {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs").count();
    let most = open + open / 10 + 10;
    let mut command = std::process::Command::new("prlimit");
    let status = command.arg(format!("--pid={pid}")).arg(format!("--nofile={most}:{most}")).status();
    assert!(status.is_ok_and(|status| status.success()), "prlimit, of util-linux");
}

#[test]
fn what_no_fault_of_a_test_fires_is_fired_by_series() {
    let tests = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("chart/alerts.test.yaml"));
    let tests = tests.expect("there are tests of the rules");
    for name in OF_SERIES {
        assert!(tests.contains(&format!("alertname: {name}\n")), "{name}");
    }
}
