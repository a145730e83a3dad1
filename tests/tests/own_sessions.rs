//! Sessions with HTTP upstreams that clients have to themselves: what belongs to whom, when they are opened and ended, and at what number
//! they end.

mod anew;
mod kept;
mod limits;
mod told;
mod wishes;

use trunkline_tests::client::http::exchange;
use trunkline_tests::client::{Answer, Client, Desk, Request, tool};
use trunkline_tests::frame::Frame;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::{Event, Order, What};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::until;

const LEGACY: Revision = Revision::R2025_11_25;
const MODERN: Revision = Revision::MODERN;
const URI: &str = "script://up/changing";
const UPDATED: &str = "notifications/resources/updated";
const CHANGED: &str = "notifications/tools/list_changed";
const TOKENS: &str = concat!(
    "[[auth.tokens]]\nname = \"ann\"\ntoken = \"ann-has-a-long-token\"\n",
    "[[auth.tokens]]\nname = \"bob\"\ntoken = \"bob-has-a-long-token\"\n"
);

/// An upstream of which each session stands apart, and a gateway before it with these keys.
async fn stage(change: impl FnOnce(&mut Script), keys: &str, rest: &str) -> (Upstream, Gateway) {
    let script = Script::new("up", LEGACY).with(|script| {
        script.http.apart = true;
        script.tools.push("roots".into());
        change(script);
    });
    let upstream = Upstream::http(script).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, keys).section(rest)).await;
    (upstream, gateway)
}

async fn ready(client: &Client) {
    client.tools_until("the upstream is there", |tools| tools.contains(&"up__echo".into())).await;
}

async fn connected(gateway: &Gateway, revision: Revision) -> Client {
    let client = Client::connect(&gateway.reach(), revision).await;
    ready(&client).await;
    client
}

async fn bearing(gateway: &Gateway, token: &str, revision: Revision) -> Client {
    let client = Client::bearing(&gateway.reach(), revision, &format!("{token}-has-a-long-token")).await;
    ready(&client).await;
    client
}

fn header(headers: &[(String, String)], name: &str) -> Option<String> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
}

/// Echoes, and gives the session at the upstream in which that ran.
async fn session_of(upstream: &Upstream, client: &Client, nonce: &str) -> String {
    let answer = client.call("up__echo", &format!("{{\"nonce\":\"{nonce}\"}}")).await;
    assert!(answer.text().contains(nonce), "{answer:?}");
    arrived(upstream, nonce).await
}

/// The last session in which a call with this nonce arrived.
async fn arrived(upstream: &Upstream, nonce: &str) -> String {
    let nonce = format!("\\\"{nonce}\\\"").replace('\\', "");
    let pick = |event: &Event| match &event.what {
        What::Frame { raw, headers } if raw.contains(&nonce) => header(headers, "mcp-session-id"),
        _ => None,
    };
    upstream.events.wait("the call arrives in a session", pick).await;
    upstream.events.all().iter().rev().find_map(pick).expect("it was found before")
}

/// Whether a request without a body came in a session.
fn visited(upstream: &Upstream, with: &str, session: &str) -> bool {
    let is_one = |event: &Event| match &event.what {
        What::Visit { method, headers } => {
            method == with && header(headers, "mcp-session-id").as_deref() == Some(session)
        }
        _ => false,
    };
    upstream.events.all().iter().any(is_one)
}

/// In which sessions this level was set at the upstream.
fn leveled(upstream: &Upstream, level: &str) -> Vec<String> {
    let pick = |event: &Event| match &event.what {
        What::Frame { raw, headers } if raw.contains("logging/setLevel") && raw.contains(level) => {
            header(headers, "mcp-session-id")
        }
        _ => None,
    };
    upstream.events.all().iter().filter_map(pick).collect()
}

async fn sessions_until(upstream: &Upstream, what: &str, expected: usize) -> Vec<String> {
    let sessions = async || Some(upstream.sessions()).filter(|sessions| sessions.len() == expected);
    until(what, sessions).await
}

async fn leave(gateway: &Gateway, client: &Client) {
    let headers = client.http().session();
    let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert!(exchange(&gateway.url, "DELETE", &headers, "").await.status < 300);
}

async fn roots(client: &Client) -> String {
    client.converse(tool("up__roots", "{}")).await.answer.text()
}

#[tokio::test]
async fn a_client_whose_session_cannot_be_opened_is_refused_with_the_cause_then_bridged_and_then_served_in_its_own_era()
{
    let (upstream, gateway) = stage(|script| script.revisions.push(MODERN), "", "").await;
    let first = connected(&gateway, LEGACY).await;
    session_of(&upstream, &first, "first").await;
    upstream.order(Order::Rules(vec![Rule::on("initialize", vec![Act::error(-32603, "no")])])).await;
    let client = connected(&gateway, LEGACY).await;
    let mut refusals = 0;
    let bridged = loop {
        let answer = client.request(tool("up__echo", "{\"nonce\":\"bridged\"}")).await;
        if answer.frame().result.is_some() {
            break answer;
        }
        let refused = answer.error_value();
        assert_eq!(refused["data"]["retriable"], true, "{refused}");
        assert!(answer.message().contains("no session of its own"), "{refused}");
        refusals += 1;
    };
    assert!((1..=3).contains(&refusals) && bridged.text().contains("bridged"), "{refusals} refusals");
    session_of(&upstream, &first, "is served on").await;
    upstream.order(Order::Rules(Vec::new())).await;
    let in_a_session = |event: &Event| match &event.what {
        What::Frame { raw, headers } if raw.contains("later") => header(headers, "mcp-session-id"),
        _ => None,
    };
    until("it has a session of its own", || async {
        client.call("up__echo", "{\"nonce\":\"later\"}").await.text();
        upstream.events.all().iter().find_map(in_a_session)
    })
    .await;
}

#[tokio::test]
async fn a_second_token_restarts_no_http_upstream_whose_sharing_is_unset() {
    let (one, two) = TOKENS.split_at(TOKENS.rfind("[[").expect("two tokens"));
    let (upstream, gateway) = stage(|_| {}, "", one).await;
    let ann = bearing(&gateway, "ann", LEGACY).await;
    let session = session_of(&upstream, &ann, "before").await;
    gateway.configure(&Config::new().upstream(&upstream).section(&format!("{one}{two}")));
    gateway.says(&["configuration reloaded", "\"unchanged\":1"]).await;
    assert_eq!(session_of(&upstream, &ann, "after").await, session);
    let bob = bearing(&gateway, "bob", LEGACY).await;
    assert_ne!(session_of(&upstream, &bob, "of bob").await, session);
}

#[tokio::test]
async fn clients_with_different_roots_are_each_answered_with_their_own() {
    let (upstream, gateway) = stage(|_| {}, "", "").await;
    let reach = gateway.reach();
    let [ann, bob] = ["ann", "bob"].map(|name| Client::connect_with(&reach, LEGACY, Desk::willing(name)));
    let (ann, bob) = tokio::join!(ann, bob);
    ready(&ann).await;
    for _ in 0..2 {
        let (of_ann, of_bob) = tokio::join!(roots(&ann), roots(&bob));
        assert!(of_ann.contains("ann") && !of_ann.contains("bob"), "{of_ann}");
        assert!(of_bob.contains("bob") && !of_bob.contains("ann"), "{of_bob}");
    }
    ann.notify("notifications/roots/list_changed", "{}").await;
    let pick = |event: &Event| match &event.what {
        What::Frame { raw, headers } if raw.contains("roots/list_changed") => header(headers, "mcp-session-id"),
        _ => None,
    };
    let told = upstream.events.wait("the upstream is told that roots have changed", pick).await;
    assert_eq!(session_of(&upstream, &ann, "again").await, told, "in the session of its client");
    let shown = gateway.look("/readyz?verbose").await;
    let shown = String::from_utf8_lossy(&shown.body).into_owned();
    assert!(shown.contains("2 client sessions"), "{shown}");
    let count = "trunkline_upstream_sessions{upstream=\"up\"} 2";
    gateway.look_until("/metrics", "both sessions are counted", |page| page.contains(count)).await;
    let sheet = gateway.command(&["status", "up"]).output().await.expect("it runs");
    let sheet = String::from_utf8_lossy(&sheet.stdout).into_owned();
    assert!(sheet.contains("2 of clients"), "{sheet}");
}

#[tokio::test]
async fn shared_sessions_are_shared_where_that_is_configured() {
    let (upstream, gateway) = stage(|_| {}, "sharing = \"shared\"", "").await;
    let (one, two) = (connected(&gateway, LEGACY).await, connected(&gateway, LEGACY).await);
    assert_eq!(session_of(&upstream, &one, "a").await, session_of(&upstream, &two, "b").await);
}

#[tokio::test]
async fn a_change_is_told_in_the_session_that_it_is_told_in_alone() {
    let (upstream, gateway) = stage(|_| {}, "", "").await;
    let (one, two) = (connected(&gateway, LEGACY).await, connected(&gateway, LEGACY).await);
    let (hears, others) = (one.listen(&[URI]).await, two.listen(&[URI]).await);
    let (first, second) = (session_of(&upstream, &one, "a").await, session_of(&upstream, &two, "b").await);
    assert_ne!(first, second);
    let params = format!("{{\"uri\":\"{URI}\"}}");
    upstream.order(Order::NotifyIn(first, UPDATED.into(), params.clone())).await;
    hears.hears(0, UPDATED).await;
    // What is told in its own is heard after it would have heard the other one's.
    upstream.order(Order::NotifyIn(second, UPDATED.into(), params)).await;
    others.hears(0, UPDATED).await;
    let told = |heard: &[Frame]| heard.iter().filter(|frame| frame.is_notice(UPDATED)).count();
    assert_eq!((told(&hears.heard.all()), told(&others.heard.all())), (1, 1));
}

#[tokio::test]
async fn tools_that_a_session_adds_are_seen_by_its_client_alone_until_it_is_lost() {
    let (upstream, gateway) = stage(|_| {}, "", "").await;
    let (one, two) = (connected(&gateway, LEGACY).await, connected(&gateway, LEGACY).await);
    let modern = connected(&gateway, MODERN).await;
    let all = modern.tools().await;
    let (hears, deaf) = (one.listen(&[]).await, two.listen(&[]).await);
    assert_eq!(two.call("up__echo", "{}").await.text(), "{}");
    assert_eq!(one.call("up__touch", "{}").await.text(), "touched_0");
    hears.hears(0, CHANGED).await;
    let added = "up__touched_0".to_owned();
    let now = one.tools_until("its own tool is listed", |tools| tools.contains(&added)).await;
    assert_eq!(now.len(), all.len() + 1, "{now:?}");
    assert!(one.call(&added, "{\"nonce\":\"n\"}").await.text().contains('n'));
    assert_eq!((two.tools().await, modern.tools().await), (all.clone(), all.clone()));
    assert!(two.call(&added, "{}").await.message().contains("Unknown tool"));
    assert!(!deaf.heard.all().iter().any(|frame| frame.is_notice(CHANGED)), "nothing has changed for it");
    // Another session of its client knows nothing of the tool. What was heard first may have been that the upstream came up.
    let mark = hears.heard.mark();
    one.call("up__touch", "{}").await;
    hears.hears(mark, CHANGED).await;
    let mark = hears.heard.mark();
    upstream.order(Order::ForgetSessions).await;
    one.call("up__echo", "{}").await;
    hears.hears(mark, CHANGED).await;
    one.tools_until("its own tool is gone", |tools| !tools.contains(&added)).await;
}

#[tokio::test]
async fn a_clients_first_lists_of_its_own_are_never_older_than_those_it_saw_before() {
    let (upstream, gateway) = stage(|script| script.http.apart = false, "", "").await;
    let client = connected(&gateway, LEGACY).await;
    let _hears = client.listen(&[]).await;
    let session = session_of(&upstream, &client, "a").await;
    // Its own session reads the lists, and is slow about it; meanwhile they change for all, and its client sees that.
    let before = "{\"tools\":[{\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}]}".to_owned();
    let mut second = Rule::on("tools/list", vec![Act::Gate("second".into())]);
    second.from = 2;
    let mut first = Rule::on("tools/list", vec![Act::Gate("first".into()), Act::Result(before)]);
    first.times = 1;
    upstream.order(Order::Rules(vec![first, second])).await;
    upstream.order(Order::NotifyIn(session, CHANGED.into(), "{}".into())).await;
    upstream.waiting_at("first").await;
    upstream.order(Order::AddTool("fresh".into())).await;
    let fresh = "up__fresh".to_owned();
    client.tools_until("the new tool is listed", |tools| tools.contains(&fresh)).await;
    upstream.order(Order::Release("first".into())).await;
    upstream.waiting_at("second").await;
    assert!(client.tools().await.contains(&fresh));
    assert!(client.call(&fresh, "{\"nonce\":\"n\"}").await.text().contains('n'));
    upstream.order(Order::Open("second".into())).await;
    client.tools_until("its own lists are read", |tools| tools.contains(&fresh)).await;
}

#[tokio::test]
async fn lists_and_levels_open_no_session_and_the_first_call_does() {
    let (upstream, gateway) = stage(|_| {}, "", "").await;
    let client = connected(&gateway, LEGACY).await;
    client.list("resources/list", "resources", "uri").await;
    client.list("prompts/list", "prompts", "name").await;
    client.request(Request::new("logging/setLevel", "{\"level\":\"debug\"}")).await.result();
    let _hears = client.listen(&[]).await;
    let own = upstream.sessions();
    assert_eq!(own.len(), 1, "the one in which the lists are read: {own:?}");
    let session = session_of(&upstream, &client, "a").await;
    assert!(!own.contains(&session) && upstream.sessions().len() == 2);
    assert_eq!(session_of(&upstream, &client, "b").await, session, "it is kept");
    let pick = |event: &Event| match &event.what {
        What::Frame { raw, headers } if raw.contains("logging/setLevel") => {
            (header(headers, "mcp-session-id").as_deref() == Some(&*session) && raw.contains("debug")).then_some(())
        }
        _ => None,
    };
    upstream.events.wait("the level is set in it", pick).await;
}

#[tokio::test]
async fn its_stream_is_opened_once_something_is_told_on_it() {
    let quiet = "{\"tools\":{},\"resources\":{\"subscribe\":true}}";
    let (upstream, gateway) = stage(|script| script.capabilities = quiet.into(), "", "").await;
    let client = connected(&gateway, LEGACY).await;
    let session = session_of(&upstream, &client, "a").await;
    session_of(&upstream, &client, "b").await;
    assert!(!visited(&upstream, "GET", &session), "nothing is told there");
    let hears = client.listen(&[URI]).await;
    until("the stream is open", async || visited(&upstream, "GET", &session).then_some(())).await;
    upstream.order(Order::NotifyIn(session, UPDATED.into(), format!("{{\"uri\":\"{URI}\"}}"))).await;
    hears.hears(0, UPDATED).await;
}

#[tokio::test]
async fn it_ends_with_its_client_and_with_the_gateway() {
    let idle = "[server.session]\nidle_timeout = \"1s\"";
    let (upstream, gateway) = stage(|_| {}, "", idle).await;
    let (one, two) = (connected(&gateway, LEGACY).await, connected(&gateway, LEGACY).await);
    let first = session_of(&upstream, &one, "a").await;
    leave(&gateway, &one).await;
    until("it is ended with its client", async || visited(&upstream, "DELETE", &first).then_some(())).await;
    // A client that is gone without a word is idle at last.
    let second = session_of(&upstream, &two, "b").await;
    until("it is ended with its client", async || visited(&upstream, "DELETE", &second).then_some(())).await;
    sessions_until(&upstream, "the one for the lists is left", 1).await;
    let three = connected(&gateway, LEGACY).await;
    let third = session_of(&upstream, &three, "c").await;
    let modern = connected(&gateway, MODERN).await;
    let fourth = session_of(&upstream, &modern, "d").await;
    assert_ne!(third, fourth);
    gateway.stop().await;
    assert_eq!(upstream.sessions(), [third], "what its client can come back to waits for it, and nothing else");
}

#[tokio::test]
async fn principals_never_share_a_session_and_stateless_clients_of_one_do() {
    let (upstream, gateway) = stage(|_| {}, "", TOKENS).await;
    let mut seen = Vec::new();
    for (at, (token, revision)) in
        [("ann", MODERN), ("bob", MODERN), ("ann", MODERN), ("ann", LEGACY), ("bob", LEGACY)].into_iter().enumerate()
    {
        let client = bearing(&gateway, token, revision).await;
        seen.push(session_of(&upstream, &client, &format!("n{at}")).await);
    }
    assert_eq!(seen.remove(2), seen[0], "stateless clients of one principal share one");
    let mut others = seen.clone();
    others.sort();
    others.dedup();
    assert_eq!(others.len(), 4, "{seen:?}");
    let desk = Desk::closed().declaring("{\"roots\":{}}");
    let able = Client::open_with(&gateway.reach(), MODERN, desk).await;
    able.http().always("authorization", "Bearer ann-has-a-long-token");
    assert!(!seen.contains(&session_of(&upstream, &able, "able").await), "another set of capabilities has its own");
}

#[tokio::test]
async fn a_session_that_the_upstream_forgets_is_opened_anew_with_what_is_wanted_of_it() {
    let (upstream, gateway) = stage(|_| {}, "", "").await;
    let client = connected(&gateway, LEGACY).await;
    let hears = client.listen(&[URI]).await;
    let first = session_of(&upstream, &client, "a").await;
    assert_eq!(client.request(Request::new("logging/setLevel", "{\"level\":\"error\"}")).await.result(), "{}");
    let is_set = async |session: &str| leveled(&upstream, "error").iter().any(|one| one == session).then_some(());
    until("its level is set", async || is_set(&first).await).await;
    let mark = hears.heard.mark();
    upstream.order(Order::ForgetSessions).await;
    let second = session_of(&upstream, &client, "b").await;
    assert_ne!(first, second);
    until("its level is set again", async || is_set(&second).await).await;
    gateway.says(&["session lost by the upstream", "roots, log level, tools"]).await;
    hears.hears(mark, UPDATED).await;
    let mark = hears.heard.mark();
    upstream.order(Order::NotifyIn(second, UPDATED.into(), format!("{{\"uri\":\"{URI}\"}}"))).await;
    hears.hears(mark, UPDATED).await;
}

#[tokio::test]
async fn a_client_session_that_outlives_a_restart_has_its_own_and_no_other() {
    let (upstream, mut gateway) = stage(|_| {}, "", "").await;
    let config = Config::new().upstream(&upstream);
    let (one, two) = (connected(&gateway, LEGACY).await, connected(&gateway, LEGACY).await);
    let first = session_of(&upstream, &one, "a").await;
    gateway.restart(&config).await;
    one.http().rest();
    two.http().rest();
    ready(&one).await;
    let (again, other) = (session_of(&upstream, &one, "b").await, session_of(&upstream, &two, "c").await);
    assert!(again == first && again != other, "{first} {again} {other}");
}
