//! Sessions that outlive a restart of the gateway: their ids say, sealed, what it needs to go on with them.

use hyper::Method;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use trunkline_tests::client::http::{Headers, HttpWire, exchange};
use trunkline_tests::client::stream::EventStream;

use trunkline_tests::client::{Answer, Client, Desk, Reply, Request, tool};
use trunkline_tests::frame::Frame;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::script::plan::Kind;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::until;

const NEWEST: Revision = Revision::R2025_11_25;
const JSON: (&str, &str) = ("content-type", "application/json");
const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}";
const TOKENS: &str = concat!(
    "[[auth.tokens]]\nname = \"ann\"\ntoken = \"ann-has-a-long-token\"\n",
    "[[auth.tokens]]\nname = \"bob\"\ntoken = \"bob-has-a-long-token\"\n"
);
const ANN: (&str, &str) = ("authorization", "Bearer ann-has-a-long-token");
const BOB: (&str, &str) = ("authorization", "Bearer bob-has-a-long-token");
const REVIVED: &str = "session of an earlier run revived";

fn keyed(key: &str) -> String {
    format!("[server.session]\nsigning_key = \"{}\"", key.repeat(32))
}

async fn initialize(gateway: &Gateway, who: (&str, &str), capabilities: &str) -> String {
    let params = format!(
        "{{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{capabilities},\"clientInfo\":{{\"name\":\"t\",\"version\":\"1\"}}}}"
    );
    let text = Request::new("initialize", &params).text(NEWEST, "0");
    let answer = exchange(&gateway.url, "POST", &[JSON, who], &text).await;
    answer.header("mcp-session-id").expect("a session id").to_owned()
}

async fn asks(gateway: &Gateway, who: (&str, &str), method: &str, id: &str) -> Answer {
    let body = if method == "POST" { PING } else { "" };
    exchange(&gateway.url, method, &[JSON, who, ("mcp-session-id", id)], body).await
}

/// The session's own stream tells that lists may have changed while the gateway was away.
async fn hears_of_changes(wire: &HttpWire, mut headers: Headers) {
    headers.push(("accept".into(), "text/event-stream".into()));
    let stream = EventStream::open(wire, Method::GET, &headers, "", Arc::default()).await;
    let changed = |frame: &Frame| frame.is_notice("notifications/tools/list_changed").then_some(());
    stream.frame("lists may have changed meanwhile", changed).await;
    stream.close();
}

#[tokio::test]
async fn a_session_goes_on_after_a_restart_and_is_told_that_lists_may_have_changed() {
    let upstream = Upstream::stdio(Script::new("up", NEWEST).asking()).await;
    let config = Config::new().upstream(&upstream);
    let mut gateway = Gateway::serve(&config).await;
    let client = Client::connect_with(&gateway.reach(), NEWEST, Desk::willing("Ada")).await;
    client.tools_until("the upstream is up", |tools| tools.contains(&"up__echo".into())).await;
    let id = client.http().session_id().expect("a session");
    assert!(id.starts_with("trunkline-s1.") && id.len() < 300, "{id}");
    for run in 0..2 {
        gateway.restart(&config).await;
        client.http().rest();
        client.tools_until("the upstream is up", |tools| tools.contains(&"up__echo".into())).await;
        assert_eq!(client.request(tool("up__echo", "{\"a\":1}")).await.text(), "{\"a\":1}", "run {run}");
        assert_eq!(client.http().session_id().as_deref(), Some(&*id));
        gateway.says(&[REVIVED, "subscriptions", "log level"]).await;
        hears_of_changes(client.http(), client.http().session()).await;
    }
    let _answered = client.converse(tool("up__ask", "{\"plan\":\"form\",\"who\":\"Ada\",\"nonce\":\"n\"}")).await;
    client.desk.asked(0).await;
    let deleted = asks(&gateway, ("accept", "*/*"), "DELETE", &id).await;
    assert_eq!(deleted.status, 200);
    for run in 0..3 {
        assert_eq!(asks(&gateway, ("accept", "*/*"), "POST", &id).await.status, 404, "its client ended it, run {run}");
        gateway.restart(&config).await;
    }
}

#[tokio::test]
async fn a_session_is_revived_by_the_first_request_of_any_kind_also_of_the_stream() {
    let upstream = Upstream::stdio(Script::new("up", NEWEST)).await;
    let config = Config::new().upstream(&upstream);
    let mut gateway = Gateway::serve(&config).await;
    let id = initialize(&gateway, ("accept", "*/*"), "{}").await;
    gateway.restart(&config).await;
    hears_of_changes(&HttpWire::new(&gateway.url, NEWEST), vec![("mcp-session-id".into(), id.clone())]).await;
    assert_eq!(asks(&gateway, ("accept", "*/*"), "POST", &id).await.status, 200);
}

#[tokio::test]
async fn an_id_that_is_altered_anothers_of_another_key_or_too_long_is_unknown() {
    let upstream = Upstream::stdio(Script::new("up", NEWEST)).await;
    let config = |key: &str| Config::new().upstream(&upstream).section(TOKENS).section(&keyed(key));
    let mut gateway = Gateway::serve(&config("k")).await;
    let id = initialize(&gateway, ANN, "{}").await;
    let declares_much = format!("{{\"experimental\":{{\"x\":{{\"y\":\"{}\"}}}}}}", "z".repeat(2000));
    let unsealed = initialize(&gateway, ANN, &declares_much).await;
    assert!(unsealed.len() < 64 && asks(&gateway, ANN, "POST", &unsealed).await.status == 200);
    let other = Gateway::serve(&config("o")).await;
    assert_eq!(asks(&other, ANN, "POST", &id).await.status, 404, "another key");
    gateway.restart(&config("k")).await;
    let nobodys = asks(&gateway, ANN, "POST", "nobody").await;
    assert_eq!(asks(&gateway, ANN, "POST", &unsealed).await.status, 404, "it said nothing that outlives a run");
    let flip = |at: usize| {
        let swap = |byte: u8| if byte == b'A' { 'B' } else { 'A' };
        format!("{}{}{}", &id[..at], swap(id.as_bytes()[at]), &id[at + 1..])
    };
    let altered = [0, 14, 24, 40, id.len() / 2, id.len() - 1].map(flip);
    let long = format!("{id}{}", "A".repeat(4000));
    for hostile in altered.iter().chain([&long, &id[..id.len() - 4].to_owned(), &format!("{id}AAAA")]) {
        let answer = asks(&gateway, ANN, "POST", hostile).await;
        assert_eq!((answer.status, answer.message()), (404, nobodys.message()), "{hostile}");
    }
    for method in ["POST", "GET", "DELETE"] {
        let answer = asks(&gateway, ("accept", "text/event-stream"), method, &id).await;
        assert_eq!(answer.status, 401, "without a token");
        let headers = [JSON, BOB, ("accept", "text/event-stream"), ("mcp-session-id", &*id)];
        let theirs = exchange(&gateway.url, method, &headers, if method == "POST" { PING } else { "" }).await;
        assert_eq!(theirs.status, 404, "{method} of another principal");
    }
    assert_eq!(asks(&gateway, ANN, "POST", &id).await.status, 200, "none of that has ended it");
}

#[tokio::test]
async fn a_changed_token_ends_the_sessions_that_are_open_for_good_and_what_is_sealed_stays_its_principals() {
    let upstream = Upstream::stdio(Script::new("up", NEWEST)).await;
    let with = |tokens: &str| Config::new().upstream(&upstream).section(tokens).section(&keyed("k"));
    let changed = with(&TOKENS.replace("ann-has-a-long-token", "ann-has-another-token"));
    let ann_now = ("authorization", "Bearer ann-has-another-token");
    let mut gateway = Gateway::serve(&with(TOKENS)).await;
    let of_an_earlier_run = initialize(&gateway, ANN, "{}").await;
    gateway.restart(&with(TOKENS)).await;
    let open = initialize(&gateway, ANN, "{}").await;
    gateway.configure(&changed);
    gateway.says(&["tokens revoked", "token:ann"]).await;
    for run in 0..2 {
        for id in [&open, &of_an_earlier_run] {
            assert_eq!(asks(&gateway, ANN, "POST", id).await.status, 401, "run {run}");
            assert_eq!(asks(&gateway, BOB, "POST", id).await.status, 404, "run {run}");
        }
        assert_eq!(asks(&gateway, ann_now, "POST", &open).await.status, 404, "it has ended, run {run}");
        assert_eq!(asks(&gateway, ann_now, "POST", &of_an_earlier_run).await.status, 200, "it is ann's, run {run}");
        gateway.restart(&changed).await;
    }
}

#[tokio::test]
async fn gateways_with_one_key_take_each_others_sessions_within_their_limits() {
    let upstream = Upstream::stdio(Script::new("up", NEWEST)).await;
    let config = Config::new().upstream(&upstream).section(&format!("{}\nmax = 2", keyed("k")));
    let (first, second) = (Gateway::serve(&config).await, Gateway::serve(&config).await);
    let anybody = ("accept", "*/*");
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(initialize(&first, anybody, "{}").await);
    }
    for id in &ids {
        assert_eq!(asks(&second, anybody, "POST", id).await.status, 200);
        assert_eq!(asks(&first, anybody, "POST", id).await.status, 200, "it is there, too");
    }
    let third = Gateway::serve(&config).await;
    let more = initialize(&third, anybody, "{}").await;
    assert_eq!(asks(&second, anybody, "POST", &more).await.status, 503, "as many as may be, all in use");
    assert_eq!(asks(&second, anybody, "DELETE", &ids[0]).await.status, 200);
    assert_eq!(asks(&second, anybody, "POST", &ids[0]).await.status, 404, "it has ended there");
    assert_eq!(asks(&second, anybody, "POST", &more).await.status, 200, "and left room");
}

#[tokio::test]
async fn answer_at_another_replica_is_refused_with_its_reason() {
    let upstream = Upstream::stdio(Script::new("up", NEWEST).asking()).await;
    let config = Config::new().upstream(&upstream).section(&keyed("k"));
    let (asking, other) = (Gateway::serve(&config).await, Gateway::serve(&config).await);
    let desk = Desk::willing("Ada").reply(Kind::Form, Reply::Silence);
    let client = Client::connect_with(&asking.reach(), NEWEST, desk).await;
    client.tools_until("the upstream is up", |tools| tools.contains(&"up__ask".into())).await;
    let call = client.start(tool("up__ask", "{\"plan\":\"form\",\"who\":\"Ada\",\"nonce\":\"n\"}")).await;
    let question = client.desk.asked(0).await.id;
    let session = client.http().session_id().expect("a session");
    let answer = |id: &str, result: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{result}}}");
    let declined = answer(&question, "\"result\":{\"action\":\"decline\"}");
    let post = async |gateway: &Gateway, text: &str| {
        exchange(&gateway.url, "POST", &[JSON, ("mcp-session-id", &session)], text).await
    };
    let refused = post(&other, &declined).await;
    assert!(refused.status == 400 && refused.message().contains("sticky sessions"), "{refused:?}");
    let counted = "trunkline_unasked_answers_total{reason=\"foreign\"} 1";
    other.look_until("/metrics", "the answer is counted", |page| page.contains(counted)).await;
    assert_eq!(post(&other, PING).await.status, 200, "the session goes on there");
    assert_eq!(post(&other, &answer("null", "\"error\":{\"code\":1,\"message\":\"m\"}")).await.status, 202);
    for _ in 0..2 {
        assert_eq!(
            post(&asking, &declined).await.status,
            202,
            "the question is the replica's own, also when it is over"
        );
    }
    call.answer().await.text();
}

#[tokio::test]
async fn unusable_signing_key_is_replaced_and_sessions_survive() {
    let upstream = Upstream::stdio(Script::new("up", NEWEST)).await;
    let config = Config::new().upstream(&upstream);
    let mut gateway = Gateway::serve(&config).await;
    let (file, aside) = ["signing-key", "signing-key.unusable-1"].map(|name| gateway.state().join(name)).into();
    // The start makes the key, and a sealed session id shows that it is read: afterwards only the next start reads the file.
    initialize(&gateway, ("accept", "*/*"), "{}").await;
    std::fs::write(&file, [0xff, 0, 0x81]).expect("the file is there");
    gateway.restart(&config).await;
    gateway.says(&["signing key unusable", "set aside"]).await;
    assert_eq!(std::fs::read(aside).expect("it is kept"), [0xff, 0, 0x81]);
    let id = initialize(&gateway, ("accept", "*/*"), "{}").await;
    gateway.restart(&config).await;
    assert_eq!(asks(&gateway, ("accept", "*/*"), "POST", &id).await.status, 200);
}

#[tokio::test]
async fn signing_key_that_others_can_read_is_warned_of_at_start() {
    let upstream = Upstream::stdio(Script::new("up", NEWEST)).await;
    let config = Config::new().upstream(&upstream);
    let mut gateway = Gateway::serve(&config).await;
    let file = gateway.state().join("signing-key");
    until("the key is made", || async { file.exists().then_some(()) }).await;
    let mode = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).expect("it is ours");
    mode(0o644);
    gateway.restart(&config).await;
    gateway.says(&["signing key not kept", "others may use it", "chmod"]).await;
    let told = |page: &str| page.contains("signing key    not kept: ") && page.contains("chmod");
    gateway.look_until("/readyz?verbose", "the page names the cause", told).await;
    initialize(&gateway, ("accept", "*/*"), "{}").await;
    assert_eq!(
        gateway.stderr.all().iter().filter(|line| line.contains("signing key not kept")).count(),
        1,
        "it warns once"
    );
    mode(0o600);
    gateway.restart(&config).await;
    gateway.look_until("/readyz?verbose", "the key is used", |page| !page.contains("signing key")).await;
}
