//! Sessions whose client comes with tokens of other rights: each request has those of its own token, and streams those of the last one.

use std::sync::Arc;

use hyper::Method;
use trunkline_tests::client::http::HttpWire;
use trunkline_tests::client::stream::EventStream;
use trunkline_tests::client::{Answer, Client, Request, http as wire, tool};
use trunkline_tests::frame::{Frame, quote};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::issuer::Issuer;
use trunkline_tests::journal::Order;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::all;

use crate::access_tokens::RESOURCE;

const LEGACY: Revision = Revision::R2025_11_25;
const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
const UPDATED: &str = "notifications/resources/updated";
const TEXT: &str = "script://up/text";
/// Requests at once, of each token.
const AT_ONCE: usize = 25;

/// The scope `all` gives everything; without it there is one tool alone.
const ROLES: &str = "[auth.roles.all]\nupstreams = [\"*\"]\n\
     [auth.roles.few]\nupstreams = [\"*\"]\ntools = [\"up__echo\"]\nresources = []\n";
const RULES: &str = "roles = [\"few\"]\nrules = [{ scope = \"all\", roles = [\"all\"] }]";

struct Stage {
    up: Upstream,
    issuer: Arc<Issuer>,
    gateway: Gateway,
}

impl Stage {
    async fn new() -> Stage {
        let (up, issuer) = (Upstream::stdio(Script::new("up", LEGACY)).await, Issuer::start().await);
        let config = Config::new()
            .upstream(&up)
            .server("public_url = \"https://mcp.example.com\"")
            .section(&format!("{ROLES}{}", issuer.entry(RULES)));
        let gateway = Gateway::serve(&config).await;
        Stage { up, issuer, gateway }
    }

    /// A token of Ann with a scope.
    fn token(&self, scope: &str) -> String {
        self.issuer.token(RESOURCE, "ann", scope)
    }

    /// Her client, once it sees the upstream.
    async fn client(&self, token: &str) -> Client {
        let client = Client::bearing(&self.gateway.reach(), LEGACY, token).await;
        client.tools_until("the upstream is there", |tools| tools.contains(&"up__echo".into())).await;
        client
    }

    /// The answer to a request in the session of a client that bears this token.
    async fn ask(&self, client: &Client, token: &str, request: Request) -> Answer {
        let (session, authorization) = (client.http().session_id().expect("a session"), format!("Bearer {token}"));
        let headers = [
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("mcp-protocol-version", "2025-11-25"),
            ("mcp-session-id", &*session),
            ("authorization", &*authorization),
        ];
        wire::exchange(&self.gateway.url, "POST", &headers, &request.text(LEGACY, "7")).await
    }

    /// The tools that are listed in the session of a client for this token.
    async fn tools(&self, client: &Client, token: &str) -> Vec<String> {
        let answer = self.ask(client, token, Request::new("tools/list", "{}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let listed = answer.value()["tools"].as_array().expect("tools").clone();
        listed.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    }
}

fn subscribe(uri: &str) -> Request {
    Request::new("resources/subscribe", &format!("{{\"uri\":{}}}", quote(uri)))
}

#[tokio::test]
async fn session_survives_a_change_of_roles_and_has_the_new_ones_at_once() {
    let stage = Stage::new().await;
    let (wide, narrow) = (stage.token("all"), stage.token(""));
    let ann = stage.client(&wide).await;
    let ear = ann.listen(&[]).await;
    for (round, (token, sees_all)) in [(&narrow, false), (&wide, true), (&narrow, false)].into_iter().enumerate() {
        let mark = ear.heard.mark();
        let called = stage.ask(&ann, token, tool("up__fail", "{}")).await;
        let expected = if sees_all { "failed as asked" } else { "Unknown tool" };
        assert!(called.status == 200 && called.message().contains(expected), "{called:?}");
        ear.hears(mark, TOOLS_CHANGED).await;
        ear.hears(mark, "notifications/resources/list_changed").await;
        assert_eq!(stage.tools(&ann, token).await.contains(&"up__fail".into()), sees_all);
        stage.ask(&ann, token, tool("up__echo", "{}")).await.result();
        // In the first round the start of the upstream may still announce its lists.
        let heard: Vec<_> = ear.heard.all().into_iter().skip(mark).collect();
        let has_prompts = heard.iter().any(|frame| frame.is_notice(PROMPTS_CHANGED));
        assert!(round == 0 || !has_prompts, "the prompts are the same: {heard:?}");
    }
}

#[tokio::test]
async fn tokens_at_the_same_time_are_judged_each_by_its_own_rights() {
    let stage = Stage::new().await;
    let (wide, narrow) = (stage.token("all"), stage.token(""));
    let ann = stage.client(&wide).await;
    let look = async |token: &str| stage.tools(&ann, token).await.len();
    let (many, few) = tokio::join!(all((0..AT_ONCE).map(|_| look(&wide))), all((0..AT_ONCE).map(|_| look(&narrow))));
    assert!(few.iter().all(|count| *count == 1), "{few:?}");
    assert!(many.iter().all(|count| *count > 1 && *count == many[0]), "{many:?}");
}

#[tokio::test]
async fn subscription_is_silent_while_its_session_may_not_read() {
    let stage = Stage::new().await;
    let (wide, narrow) = (stage.token("all"), stage.token(""));
    let ann = stage.client(&wide).await;
    let ear = ann.listen(&[TEXT]).await;
    let touch = || stage.up.order(Order::Notify(UPDATED.into(), format!("{{\"uri\":{}}}", quote(TEXT))));
    let mark = ear.heard.mark();
    touch().await;
    ear.hears(mark, UPDATED).await;
    let refused = stage.ask(&ann, &narrow, subscribe(TEXT)).await;
    assert!(refused.frame().error.is_some(), "{refused:?}");
    ear.hears(mark, TOOLS_CHANGED).await;
    let mark = ear.heard.mark();
    touch().await;
    // A change of the lists ends the wait: nothing came before it.
    stage.up.order(Order::Notify(PROMPTS_CHANGED.into(), "{}".into())).await;
    ear.hears(mark, PROMPTS_CHANGED).await;
    let heard: Vec<_> = ear.heard.all().into_iter().skip(mark).filter_map(|frame| frame.method).collect();
    assert!(!heard.contains(&UPDATED.to_owned()), "{heard:?}");
    stage.tools(&ann, &wide).await;
    ear.hears(mark, TOOLS_CHANGED).await;
    touch().await;
    ear.hears(mark, UPDATED).await;
}

#[tokio::test]
async fn messages_of_the_oldest_transport_have_the_rights_of_their_token() {
    let stage = Stage::new().await;
    let (wide, narrow) = (stage.token("all"), stage.token(""));
    stage.client(&wide).await;
    let url = stage.gateway.url.replace("/mcp", "/sse");
    let headers = |token: &str| {
        [("accept", "text/event-stream"), ("content-type", "application/json")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .chain([("authorization".to_owned(), format!("Bearer {token}"))])
            .collect::<Vec<_>>()
    };
    let wire_of_ann = HttpWire::new(&url, Revision::R2024_11_05);
    let stream = EventStream::open(&wire_of_ann, Method::GET, &headers(&wide), "", Arc::default()).await;
    let endpoint = stream.events.wait("an endpoint", |event| event.as_ref()?.data.clone()).await;
    let target = url.replace("/sse", &endpoint);
    let post = |token: String, text: String| {
        let (target, headers) = (target.clone(), headers(&token));
        async move {
            let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            wire::exchange(&target, "POST", &headers, &text).await.status
        }
    };
    let params =
        "{\"protocolVersion\":\"2024-11-05\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}";
    let old = Revision::R2024_11_05;
    assert_eq!(post(wide.clone(), Request::new("initialize", params).text(old, "1")).await, 202);
    let listed = |id: &str| {
        let (id, stream) = (id.to_owned(), &stream);
        async move {
            let tools = |frame: &Frame| {
                let is_it = frame.id.as_ref().is_some_and(|raw| raw.get() == id);
                is_it.then(|| frame.result.as_ref().map(|raw| raw.get().matches("\"name\":").count())).flatten()
            };
            stream.frame("its tools", tools).await
        }
    };
    for (id, token, sees_all) in [("2", &wide, true), ("3", &narrow, false), ("4", &wide, true)] {
        assert_eq!(post(token.clone(), Request::new("tools/list", "{}").text(old, id)).await, 202);
        assert_eq!(listed(id).await > 1, sees_all, "{id}");
    }
    let notices = stream.events.all();
    let told =
        notices.iter().flatten().filter(|event| event.data.as_deref().is_some_and(|data| data.contains(TOOLS_CHANGED)));
    assert!(told.count() > 0, "its client is told: {notices:?}");
    let bob = stage.issuer.token(RESOURCE, "bob", "all");
    assert_eq!(post(bob, Request::new("ping", "{}").text(old, "5")).await, 404, "it is not his");
}
