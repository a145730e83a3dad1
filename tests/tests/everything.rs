//! A reference server that keeps something for each of its sessions, directly and through the gateway, in the same run.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::peers::{self, Answers, Connect, Door, Mode, Plan, Report, Sdk, Web};

const PATIENCE: Duration = Duration::from_secs(90);
const TOKENS: &str = concat!(
    "[[auth.tokens]]\nname = \"ann\"\ntoken = \"ann-has-a-long-token\"\n",
    "[[auth.tokens]]\nname = \"bob\"\ntoken = \"bob-has-a-long-token\"\n"
);

/// Each client, and whose it is. Stateless clients of one principal share what the server keeps: no two here are one's.
const CLIENTS: [(Sdk, &str); 5] = [
    (Sdk::TypeScript1, "ann-has-a-long-token"),
    (Sdk::TypeScript2(Mode::Legacy), "bob-has-a-long-token"),
    (Sdk::TypeScript2(Mode::Auto), "ann-has-a-long-token"),
    (Sdk::Python2(Mode::Legacy), "ann-has-a-long-token"),
    (Sdk::Python2(Mode::Auto), "bob-has-a-long-token"),
];

const UPDATED: &str = "notifications/resources/updated";
const LISTS: &str = "notifications/resources/list_changed";
const LOGS: &str = "notifications/message";
const STATIC: &str = "demo://resource/static/document/features.md";
const DYNAMIC: &str = "demo://resource/dynamic/text/1";

type Holds = Box<dyn Fn(&[Value]) -> bool + Send + Sync>;

/// One thing that a client does, and whether it saw what it must.
struct Check {
    name: &'static str,
    /// Why a stateless client cannot have it from a server of sessions, if so.
    handshake_only: Option<&'static str>,
    steps: Vec<Value>,
    holds: Holds,
}

fn check(name: &'static str, steps: Vec<Value>, holds: impl Fn(&[Value]) -> bool + Send + Sync + 'static) -> Check {
    Check { name, handshake_only: None, steps, holds: Box::new(holds) }
}

impl Check {
    fn of_sessions(self, why: &'static str) -> Check {
        Check { handshake_only: Some(why), ..self }
    }
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({ "do": "call", "name": tool, "arguments": arguments })
}

fn hears(method: &str, key: &str, value: &str) -> Value {
    json!({ "do": "hears", "method": method, key: value })
}

fn text(seen: &Value) -> String {
    seen["result"]["content"].to_string()
}

/// All of them, for a client that has a name of its own.
fn checks(name: &str, door: &str) -> Vec<Check> {
    [roots(name, door), notices(), files(name)].into_iter().flatten().collect()
}

fn roots(name: &str, door: &str) -> Vec<Check> {
    let wait = json!({ "do": "wait", "url": door });
    let first = [format!("file:///{name}")];
    let later = ["later", "too"].map(|folder| format!("file:///{name}/{folder}"));
    let only = |roots: &Value, all: &[String]| {
        let text = text(roots);
        let has = |root: &String| text.contains(&format!("URI: {root}\\n"));
        all.iter().all(has) && text.contains(&format!("({} total)", all.len()))
    };
    vec![
        // Nobody goes on before all have their sessions, and before all have asked once.
        check("everybody is there", vec![wait.clone()], |seen| seen[0]["result"] == "all"),
        check("roots", vec![call("get-roots-list", json!({})), wait, call("get-roots-list", json!({}))], move |seen| {
            only(&seen[0], &first) && only(&seen[2], &first)
        }),
        check(
            "roots that change",
            vec![
                hears(LOGS, "text", "Roots updated: 1 root"),
                json!({ "do": "roots", "roots": later }),
                // Of the one at first it may tell twice.
                hears(LOGS, "text", "Roots updated: 2 root"),
                call("get-roots-list", json!({})),
            ],
            move |seen| seen[2]["result"].is_object() && only(&seen[3], &later),
        )
        .of_sessions("its era has no notice of changed roots"),
    ]
}

/// What the server says and asks by itself.
fn notices() -> Vec<Check> {
    vec![
        check(
            "subscriptions, switched on by a tool",
            vec![
                json!({ "do": "subscribe", "uri": STATIC }),
                json!({ "do": "subscribe", "uri": DYNAMIC }),
                call("toggle-subscriber-updates", json!({})),
                hears(UPDATED, "uri", STATIC),
                hears(UPDATED, "uri", DYNAMIC),
                call("toggle-subscriber-updates", json!({})),
            ],
            |seen| {
                text(&seen[2]).contains("Started")
                    && seen[3]["result"]["uri"] == STATIC
                    && seen[4]["result"]["uri"] == DYNAMIC
                    && text(&seen[5]).contains("Stopped")
            },
        ),
        check(
            "log messages, switched on by a tool",
            vec![
                json!({ "do": "level", "level": "debug" }),
                call("toggle-simulated-logging", json!({})),
                hears(LOGS, "text", "message - SessionId"),
                call("toggle-simulated-logging", json!({})),
            ],
            |seen| text(&seen[1]).contains("Started") && seen[2]["result"]["data"].is_string(),
        )
        .of_sessions("its era has no log message outside of a call"),
        check(
            "sampling and elicitation",
            vec![
                call("trigger-sampling-request", json!({ "prompt": "well?", "maxTokens": 16 })),
                call("trigger-elicitation-request", json!({})),
            ],
            |seen| text(&seen[0]).contains("Ada says so") && text(&seen[1]).contains("Name: Ada"),
        ),
    ]
}

fn files(name: &str) -> Vec<Check> {
    let file = format!("{name}.gz");
    let session_file = format!("demo://resource/session/{file}");
    let (kept, read) = (session_file.clone(), json!({ "do": "read", "uri": session_file }));
    let packed = json!({ "name": file, "data": "data:text/plain,hello", "outputType": "resourceLink" });
    vec![
        check("a file of the session alone", vec![call("gzip-file-as-resource", packed), read], move |seen| {
            text(&seen[0]).contains(&kept) && seen[1]["result"]["contents"][0]["blob"].is_string()
        }),
        check(
            "a list that changes in the session alone",
            vec![json!({ "do": "hears", "method": LISTS }), json!({ "do": "resources" })],
            move |seen| {
                let listed: Vec<&str> = seen[1]["result"]["resources"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|resource| resource["uri"].as_str())
                    .filter(|uri| uri.contains("/session/"))
                    .collect();
                seen[0]["result"].is_object() && listed == [session_file.as_str()]
            },
        )
        .of_sessions("lists of its own are those of sessions: it sees what all see"),
    ]
}

/// Where a client is connected to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Place {
    Directly,
    Through,
}

/// What one client is to do.
fn checks_of(sdk: Sdk, place: Place, door: &str) -> (String, Vec<Check>) {
    let name = format!("{sdk:?}-{place:?}").to_lowercase().replace(['(', ')'], "-");
    let mut checks = checks(&name, door);
    if place == Place::Through && sdk.revision().starts_with("2026") {
        checks.retain(|check| check.handshake_only.is_none());
    }
    (format!("file:///{name}"), checks)
}

/// What came of a client's checks.
struct Verdict {
    sdk: Sdk,
    place: Place,
    /// How many hold.
    held: usize,
    /// A line for each other one.
    faults: Vec<String>,
}

fn judged((sdk, place): (Sdk, Place), report: &Report, checks: &[Check]) -> Verdict {
    let (mut held, mut faults, mut from) = (0, Vec::new(), 0);
    if let Some(fatal) = &report.fatal {
        faults.push(format!("{sdk:?} {place:?} broke off: {fatal}"));
    }
    for check in checks {
        let seen = report.steps.get(from..from + check.steps.len()).unwrap_or_default();
        from += check.steps.len();
        if seen.len() == check.steps.len() && (check.holds)(seen) {
            held += 1;
        } else {
            faults.push(format!("{sdk:?} {place:?}, {}: saw {}", check.name, Value::from(seen.to_vec())));
        }
    }
    Verdict { sdk, place, held, faults }
}

/// All clients at once on one server, each twice: one is connected to it and one to the gateway before it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_check_that_passes_directly_passes_through_the_gateway_for_all_clients_at_once() {
    let Some(peers) = peers::ready() else { return };
    let (web, door) = (Web::start(peers).await, Door::new().await);
    let upstream = format!("[upstreams.web]\nurl = \"{}\"\n{TOKENS}", web.url);
    let gateway = Gateway::serve(&Config::new().section("[naming]\nstrategy = \"flat\"").section(&upstream)).await;
    let mut clients = JoinSet::new();
    for ((sdk, token), place) in
        CLIENTS.into_iter().flat_map(|client| [(client, Place::Directly), (client, Place::Through)])
    {
        let (root, checks) = checks_of(sdk, place, &door.url);
        let url = if place == Place::Directly { web.url.clone() } else { gateway.url.clone() };
        let plan = Plan {
            connect: Connect::Url { url },
            until: vec!["get-roots-list".to_owned()],
            patience: PATIENCE,
            answers: Some(Answers::Accept),
            roots: Some(vec![root]),
            token: Some(token.to_owned()),
            steps: checks.iter().flat_map(|check| check.steps.clone()).collect(),
        };
        clients.spawn(async move { judged((sdk, place), &sdk.run(peers, &plan).await, &checks) });
    }
    let everybody = 2 * CLIENTS.len();
    let opened = async {
        for _ in 0..2 {
            door.comers(everybody).await.go_on("all").await;
        }
        std::future::pending().await
    };
    let verdicts = tokio::select! {
        verdicts = clients.join_all() => verdicts,
        () = opened => unreachable!("it waits for the clients"),
    };
    print(&verdicts);
    let faults: Vec<String> = verdicts.into_iter().flat_map(|verdict| verdict.faults).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// What came of it, past the test runner, which would swallow it.
fn print(verdicts: &[Verdict]) {
    let mut counts = BTreeMap::<String, BTreeMap<Place, usize>>::new();
    for verdict in verdicts {
        counts.entry(format!("{:?}", verdict.sdk)).or_default().insert(verdict.place, verdict.held);
    }
    let mut text = String::from("\nserver-everything: checks that hold, of which some are of sessions alone\n");
    for (sdk, held) in counts {
        let of = |place| held.get(&place).copied().unwrap_or_default();
        text.push_str(&format!("{sdk:24}{:>3} directly{:>3} through\n", of(Place::Directly), of(Place::Through)));
    }
    for check in checks("", "") {
        if let Some(why) = check.handshake_only {
            text.push_str(&format!("not for stateless clients: {}: {why}\n", check.name));
        }
    }
    let _ = std::io::stderr().write_all(text.as_bytes());
}
