//! Who shares an upstream with whom: instances of sessions and principals, sessions for what callers can be asked, and what a
//! child is told.

use trunkline_tests::client::http::exchange;
use trunkline_tests::client::{Client, Desk, tool};
use trunkline_tests::frame::Frame;
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::journal::{Event, Order, What};
use trunkline_tests::process;
use trunkline_tests::process::Program;
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::{Upstream, Way};
use trunkline_tests::within::until;

const LEGACY: Revision = Revision::R2025_11_25;
const TOKENS: &str = concat!(
    "[[auth.tokens]]\nname = \"ann\"\ntoken = \"ann-has-a-long-token\"\n",
    "[[auth.tokens]]\nname = \"bob\"\ntoken = \"bob-has-a-long-token\"\n"
);

/// A gateway with tokens before one child that is kept as `keys` say.
async fn stage(keys: &str) -> (Upstream, Gateway) {
    let upstream = Upstream::stdio(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, keys).section(TOKENS)).await;
    upstream.started(0).await;
    (upstream, gateway)
}

/// A client that bears this token.
async fn client(gateway: &Gateway, token: &str, revision: Revision) -> Client {
    let mut client = Client::open(&gateway.reach(), revision).await;
    client.http().always("authorization", &format!("Bearer {token}-has-a-long-token"));
    if !revision.is_modern() {
        client.greet().await;
    }
    client
}

/// The number of the process that runs a client's call.
async fn process_of(upstream: &Upstream, client: &Client, nonce: &str) -> usize {
    let answer = client.call("up__echo", &format!("{{\"nonce\":\"{nonce}\"}}")).await;
    assert!(answer.text().contains(nonce), "{answer:?}");
    let pick =
        |event: &Event| matches!(&event.what, What::Executed { nonce: ran } if ran == nonce).then_some(event.instance);
    upstream.events.wait(&format!("{nonce} runs"), pick).await
}

async fn leave(gateway: &Gateway, client: &Client) {
    let headers = client.http().session();
    let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert!(exchange(&gateway.url, "DELETE", &headers, "").await.status < 300);
}

#[tokio::test]
async fn each_session_has_a_child_of_its_own_until_it_ends() {
    let (upstream, gateway) = stage("sharing = \"per-session\"").await;
    let (one, two) = (client(&gateway, "ann", LEGACY).await, client(&gateway, "ann", LEGACY).await);
    assert_eq!(process_of(&upstream, &one, "a").await, 1, "beside the primary one");
    assert_eq!(process_of(&upstream, &two, "b").await, 2);
    assert_eq!(process_of(&upstream, &one, "c").await, 1);
    let shown = gateway.look("/readyz?verbose").await;
    let shown = String::from_utf8_lossy(&shown.body).into_owned();
    assert!(shown.contains("2 instances") && shown.contains("1 session 1") && shown.contains("2 session 2"), "{shown}");
    let count = "trunkline_upstream_instances{upstream=\"up\"} 2";
    gateway.look_until("/metrics", "two instances are counted", |page| page.contains(count)).await;
    let (first, _) = upstream.started(1).await;
    leave(&gateway, &one).await;
    upstream.gone(1).await;
    gateway.look_until("/readyz?verbose", "one instance is left", |page| page.contains("1 instance\n")).await;
    assert!(!process::is_alive(first));
    assert_eq!(process_of(&upstream, &two, "d").await, 2, "the other one lives on");
    let (second, _) = upstream.started(2).await;
    gateway.stop().await;
    assert!(!process::is_alive(second), "the end of the gateway is the end of all");
}

#[tokio::test]
async fn each_principal_has_a_child_that_its_clients_of_both_eras_share() {
    let (upstream, gateway) = stage("sharing = \"per-principal\"").await;
    let ann = [LEGACY, Revision::MODERN, Revision::MODERN];
    for (at, revision) in ann.into_iter().enumerate() {
        let client = client(&gateway, "ann", revision).await;
        assert_eq!(process_of(&upstream, &client, &format!("a{at}")).await, 1);
    }
    let bob = client(&gateway, "bob", Revision::MODERN).await;
    assert_eq!(process_of(&upstream, &bob, "b").await, 2);
    let shown = gateway.look("/readyz?verbose").await;
    let shown = String::from_utf8_lossy(&shown.body).into_owned();
    assert!(shown.contains("1 token:ann") && shown.contains("2 token:bob"), "{shown}");
}

#[tokio::test]
async fn stateless_clients_of_one_principal_share_what_sessions_do_not() {
    let (upstream, gateway) = stage("sharing = \"per-session\"").await;
    let session = client(&gateway, "ann", LEGACY).await;
    assert_eq!(process_of(&upstream, &session, "a").await, 1);
    for nonce in ["b", "c"] {
        let client = client(&gateway, "ann", Revision::MODERN).await;
        assert_eq!(process_of(&upstream, &client, nonce).await, 2);
    }
}

#[tokio::test]
async fn each_session_sees_what_its_own_child_offers() {
    let (upstream, gateway) = stage("sharing = \"per-session\"").await;
    let (one, two) = (client(&gateway, "ann", LEGACY).await, client(&gateway, "ann", LEGACY).await);
    let modern = client(&gateway, "ann", Revision::MODERN).await;
    let all = modern.tools_until("the tools are listed", |tools| tools.contains(&"up__touch".into())).await;
    let (hears, deaf) = (one.listen(&[]).await, modern.listen(&[]).await);
    let added = ["up__touched_0", "up__touched_1"].map(str::to_owned);
    assert_eq!(one.call("up__touch", "{}").await.text(), "touched_0");
    hears.hears(0, "notifications/tools/list_changed").await;
    let now = one.tools_until("its own tool is listed", |tools| tools.contains(&added[0])).await;
    assert!(all.iter().all(|tool| now.contains(tool)) && now.len() == all.len() + 1, "{now:?}");
    for _ in 0..2 {
        two.call("up__touch", "{}").await;
    }
    two.tools_until("both tools are listed", |tools| added.iter().all(|tool| tools.contains(tool))).await;
    assert_eq!(one.tools().await, now, "what another session's child offers is not its business");
    assert_eq!(modern.tools().await, all, "who has no session sees what the primary one offers");
    // Calls lead where the lists say.
    assert!(two.call(&added[1], "{\"nonce\":\"n\"}").await.text().contains('n'));
    assert!(one.call(&added[1], "{}").await.message().contains("Unknown tool"));
    assert!(modern.call(&added[0], "{}").await.message().contains("Unknown tool"));
    let told =
        |heard: &[Frame]| heard.iter().filter(|frame| frame.is_notice("notifications/tools/list_changed")).count();
    assert_eq!(told(&deaf.heard.all()), 0, "nothing has changed for it");
    leave(&gateway, &two).await;
    upstream.gone(2).await;
    assert_eq!(one.tools().await, now);
}

#[tokio::test]
async fn at_the_cap_a_call_is_refused_with_what_to_do() {
    let (upstream, gateway) = stage("sharing = \"per-session\"\nmax_instances = 1").await;
    let (one, two) = (client(&gateway, "ann", LEGACY).await, client(&gateway, "bob", LEGACY).await);
    assert_eq!(process_of(&upstream, &one, "a").await, 1);
    let refused = two.call("up__echo", "{}").await;
    let said = refused.message();
    assert!(said.contains("its one instance is taken") && said.contains("max_instances"), "{said}");
    assert_eq!(refused.error_value()["data"]["retriable"], true);
    leave(&gateway, &one).await;
    upstream.gone(1).await;
    assert_eq!(process_of(&upstream, &two, "b").await, 2);
}

#[tokio::test]
async fn a_principals_child_ends_when_it_was_not_called_for_long() {
    let (upstream, gateway) = stage("sharing = \"per-principal\"\ninstance_idle = \"200ms\"").await;
    let (ann, bob) = (client(&gateway, "ann", LEGACY).await, client(&gateway, "bob", LEGACY).await);
    // While a call is open it is not idle, however long that takes: another one that is idle comes and goes meanwhile.
    let open = ann.start(tool("up__wait", "{}")).await;
    upstream.waiting_at("wait").await;
    assert_eq!(process_of(&upstream, &bob, "a").await, 2);
    upstream.gone(2).await;
    upstream.order(Order::Open("wait".into())).await;
    assert_eq!(open.answer().await.text(), "released");
    upstream.gone(1).await;
    assert_eq!(process_of(&upstream, &ann, "b").await, 3, "it is started again when it is needed");
}

/// What handshakes have declared up to now, by process or session, in their order.
async fn declared(upstream: &Upstream) -> Vec<serde_json::Value> {
    let pick = |event: Event| match event.what {
        What::Frame { raw, .. } => {
            Frame::parse(raw.as_bytes()).ok().filter(|frame| frame.method.as_deref() == Some("initialize")).map(|_| raw)
        }
        _ => None,
    };
    let mut events = upstream.seen().await;
    // Each process tells on its own, and may be heard after the next one.
    events.sort_by_key(|event| event.instance);
    let opened = events.into_iter().filter_map(pick);
    let read =
        |raw: String| serde_json::from_str::<serde_json::Value>(&raw).expect("JSON")["params"]["capabilities"].clone();
    opened.map(read).collect()
}

#[tokio::test]
async fn a_child_is_told_what_may_be_asked_of_whom_it_serves() {
    let (upstream, gateway) = stage("sharing = \"per-session\"\noffer = [\"roots\"]").await;
    let desk = Desk::closed().declaring("{\"elicitation\":{\"url\":{}}}");
    let mut one = Client::open_with(&gateway.reach(), LEGACY, desk).await;
    one.http().always("authorization", "Bearer ann-has-a-long-token");
    one.greet().await;
    assert_eq!(process_of(&upstream, &one, "a").await, 1);
    let modern = client(&gateway, "ann", Revision::MODERN).await;
    assert_eq!(process_of(&upstream, &modern, "b").await, 2);
    let offered = serde_json::json!({"roots": {"listChanged": true}});
    assert_eq!(declared(&upstream).await, [offered.clone(), serde_json::json!({"elicitation": {"url": {}}}), offered]);
}

#[tokio::test]
async fn a_child_of_several_tokens_is_promised_no_question_and_that_is_said_before_one_is_asked() {
    let (upstream, gateway) = stage("").await;
    let ann = client(&gateway, "ann", LEGACY).await;
    process_of(&upstream, &ann, "a").await;
    assert_eq!(declared(&upstream).await, [serde_json::json!({})]);
    let shown = gateway.look("/readyz?verbose").await;
    let shown = String::from_utf8_lossy(&shown.body).into_owned();
    assert!(shown.contains("2 principals share one child") && shown.contains("sharing = \"per-principal\""), "{shown}");
    // What is configured is told, and what becomes of it is said.
    let (upstream, gateway) = stage("offer = [\"elicitation\"]").await;
    let ann = client(&gateway, "ann", LEGACY).await;
    process_of(&upstream, &ann, "a").await;
    assert_eq!(declared(&upstream).await, [serde_json::json!({"elicitation": {"form": {}, "url": {}}})]);
    let shown = gateway.look("/readyz?verbose").await;
    let shown = String::from_utf8_lossy(&shown.body).into_owned();
    assert!(shown.contains("refused while calls of two of them are open"), "{shown}");
}

#[tokio::test]
async fn a_question_that_is_nobodys_is_refused_with_the_way_out() {
    let upstream = Upstream::stdio(Script::new("up", LEGACY).asking()).await;
    let keys = "offer = [\"sampling\"]";
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, keys).section(TOKENS)).await;
    let mut ann = Client::open_with(&gateway.reach(), LEGACY, Desk::willing("ann")).await;
    ann.http().always("authorization", "Bearer ann-has-a-long-token");
    ann.greet().await;
    let bob = client(&gateway, "bob", LEGACY).await;
    let slow = bob.start(tool("up__wait", "{}")).await;
    upstream.waiting(1).await;
    let talk = ann.converse(tool("up__ask", "{\"plan\":\"sampling\",\"who\":\"ann\"}")).await;
    let said = talk.answer.text();
    assert!(said.contains("this question belongs to no single call"), "{said}");
    assert!(said.contains("per-principal") && said.contains("[upstreams.up]"), "{said}");
    slow.abandon();
}

#[tokio::test]
async fn a_child_of_the_one_client_is_told_what_that_can_be_asked() {
    for revision in [LEGACY, Revision::MODERN] {
        let upstream = Upstream::stdio(Script::new("up", LEGACY)).await;
        let gateway = StdioGateway::prepare(&Config::new().upstream_with(&upstream, "sharing = \"per-session\""));
        let desk = Desk::closed().declaring("{\"roots\":{},\"sampling\":{}}");
        let client = Client::connect_with(&gateway.reach(), revision, desk).await;
        assert_eq!(process_of(&upstream, &client, "a").await, 0, "{revision}: there is one client, and one child");
        let expected = serde_json::json!({"sampling": {}, "roots": {"listChanged": true}});
        assert_eq!(declared(&upstream).await, [expected], "{revision}");
    }
}

#[tokio::test]
async fn over_http_each_set_of_capabilities_is_declared_in_a_session_of_its_own() {
    let upstream = Upstream::start(Way::Http, Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, "sharing = \"shared\"")).await;
    let mut sessions = Vec::new();
    for (at, set) in ["{\"roots\":{}}", "{\"elicitation\":{\"form\":{}}}", "{\"roots\":{}}"].into_iter().enumerate() {
        let revision = if at == 2 { Revision::MODERN } else { LEGACY };
        let client = Client::connect_with(&gateway.reach(), revision, Desk::closed().declaring(set)).await;
        client.tools_until("the tool is listed", |tools| tools.contains(&"up__echo".into())).await;
        let nonce = format!("n{at}");
        assert!(client.call("up__echo", &format!("{{\"nonce\":\"{nonce}\"}}")).await.text().contains(&nonce));
        let pick = |event: &Event| match &event.what {
            What::Frame { raw, headers } if raw.contains(&nonce) => {
                headers.iter().find(|(name, _)| name == "mcp-session-id").map(|(_, value)| value.clone())
            }
            _ => None,
        };
        sessions.push(upstream.events.wait("the call arrives in a session", pick).await);
    }
    assert!(sessions[0] == sessions[2] && sessions[0] != sessions[1], "{sessions:?}");
    let declared = declared(&upstream).await;
    assert_eq!(declared.len(), 3, "the primary one, and one for each set: {declared:?}");
    assert_eq!(
        declared[1..],
        [serde_json::json!({"roots": {"listChanged": true}}), serde_json::json!({"elicitation": {"form": {}}})]
    );
}

/// A server of which one process runs at a time: whatever comes second does this.
fn alone(scratch: &Scratch, second: &str) -> Program {
    let script = r#"
say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
mkdir "$1" 2>/dev/null || { SECOND; }
while IFS= read -r line; do
    id=${line##*'"id":'}; id=${id%%[,\}]*}
    case $line in
    *'"initialize"'*) say '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"o","version":"1"}}' ;;
    *'"tools/list"'*) say '{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}' ;;
    *'"ping"'*) say '{}' ;;
    esac
done
"#;
    let file = scratch.file("alone.sh", &script.replace("SECOND", second));
    let args = vec![file.display().to_string(), scratch.path().join("lock").display().to_string()];
    Program { path: "/bin/sh".into(), args, env: Vec::new() }
}

/// What is left to see of an instance that did not come up, when its session is gone.
async fn remains(gateway: &Gateway, cause: &str) {
    let what = "the upstream shows it when the instance is gone";
    let is_there =
        |page: &str| !page.contains("session 1:") && page.contains("1 instance start\n") && page.contains(cause);
    let sheet = until(what, || async {
        let output = gateway.command(&["status", "up"]).output().await.expect("it runs");
        let sheet = String::from_utf8_lossy(&output.stdout).into_owned();
        is_there(&sheet).then_some(sheet)
    })
    .await;
    assert!(sheet.contains("instance 1 (session 1)") && sheet.contains("last error"), "{sheet}");
    let output = gateway.command(&["ls"]).output().await.expect("it runs");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("ready") && table.contains("1 failed instance start"), "{table}");
}

#[tokio::test]
async fn an_instance_that_cannot_start_shows_in_the_log_and_with_its_upstream_after_its_end() {
    let scratch = Scratch::new();
    let keys = "sharing = \"per-session\"\nera = \"legacy\"\nrestart = { policy = \"never\" }";
    let program = alone(&scratch, "echo 'the database is locked' >&2; exit 3");
    let gateway = Gateway::serve(&Config::new().program("up", &program, keys).section(TOKENS)).await;
    let client = client(&gateway, "ann", LEGACY).await;
    client.tools_until("the primary instance is up", |tools| tools.contains(&"up__echo".into())).await;
    let refused = client.call("up__echo", "{}").await;
    assert!(refused.message().contains("exited with status 3"), "{refused:?}");
    assert!(!refused.error().contains("locked"), "its words are for the operator: {refused:?}");
    gateway.says(&["up", "\"instance\":1", "exited with status 3", "the database is locked"]).await;
    leave(&gateway, &client).await;
    remains(&gateway, "exited with status 3; last line on stderr: the database is locked").await;
}

#[tokio::test]
async fn an_instance_that_never_answers_shows_in_the_log_and_with_its_upstream_after_its_end() {
    let scratch = Scratch::new();
    let keys = "sharing = \"per-session\"\nera = \"legacy\"\nstart_wait = \"5s\"";
    let program = alone(&scratch, "exec sleep 600");
    let gateway = Gateway::serve(&Config::new().program("up", &program, keys).section(TOKENS)).await;
    let client = client(&gateway, "ann", LEGACY).await;
    client.tools_until("the primary instance is up", |tools| tools.contains(&"up__echo".into())).await;
    let refused = client.call_once("up__echo", "{}").await;
    assert!(refused.message().contains("still starting"), "{refused:?}");
    gateway.says(&["up", "\"instance\":1", "does not start", "still starting"]).await;
    leave(&gateway, &client).await;
    remains(&gateway, "still starting").await;
}
