//! Upstreams for which the access token of a client is exchanged: each client has a token of its own there, and its own goes nowhere.

use std::collections::BTreeSet;
use std::sync::Arc;

use trunkline_tests::authority::Authority;
use trunkline_tests::client::{Answer, Client, http as wire, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::issuer::Issuer;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{all, until};

const LEGACY: Revision = Revision::R2025_11_25;
const MODERN: Revision = Revision::MODERN;
const RESOURCE: &str = "https://mcp.example.com/mcp";
const ROBOT: &str = "[[auth.tokens]]\nname = \"ci\"\ntoken = \"ann-a-long-token-of-a-robot\"\n";
/// Calls at once of one client.
const CALLS: usize = 50;
/// So often several tokens of one client take turns.
const TURNS: usize = 30;
/// Exchanges at once that are not answered.
const HUNG: usize = 16;

struct Stage {
    up: Upstream,
    authority: Arc<Authority>,
    issuer: Arc<Issuer>,
    gateway: Gateway,
    revision: Revision,
}

impl Stage {
    async fn new(revision: Revision) -> Stage {
        Stage::with_skew(revision, "0s").await
    }

    async fn with_skew(revision: Revision, skew: &str) -> Stage {
        let (up, authority) = (Upstream::http(Script::new("up", revision)).await, Authority::start().await);
        up.guarded_by(&authority);
        let issuer = Issuer::start().await;
        let config = Config::new()
            .upstream_with(&up, &authority.exchanging(", scopes = [\"a\"]"))
            .server("public_url = \"https://mcp.example.com\"")
            .section(&format!("{}{ROBOT}", issuer.entry(&format!("clock_skew = \"{skew}\""))));
        let gateway = Gateway::serve(&config).await;
        Stage { up, authority, issuer, gateway, revision }
    }

    async fn client(&self, token: &str) -> Client {
        let client = Client::bearing(&self.gateway.reach(), self.revision, token).await;
        client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
        client
    }

    /// The tokens that were exchanged.
    fn exchanged(&self) -> Vec<String> {
        let field = |body: &str, name: &str| {
            let value = body.split('&').find_map(|field| field.strip_prefix(&format!("{name}=")).map(str::to_owned));
            value.unwrap_or_default()
        };
        let of_exchange = |(_, body): &(String, String)| {
            if field(body, "grant_type") != "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange" {
                assert_eq!(field(body, "grant_type"), "client_credentials", "{body}");
                assert!(!body.contains("subject_token"), "{body}");
                return None;
            }
            let kind = "urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token";
            let kinds = [field(body, "subject_token_type"), field(body, "requested_token_type")];
            assert_eq!(kinds, [kind, kind], "{body}");
            assert!(field(body, "resource").ends_with("%2Fmcp") && field(body, "scope") == "a", "{body}");
            Some(field(body, "subject_token"))
        };
        self.authority.asked.all().iter().filter_map(of_exchange).collect()
    }

    /// The tokens that the upstream was shown with calls.
    fn shown(&self) -> BTreeSet<String> {
        let of_call = |(kind, token, _): (String, String, bool)| (kind == "tools/call").then_some(token);
        self.authority.judged.all().into_iter().filter_map(of_call).collect()
    }

    /// The tokens of these calls, in order.
    async fn borne(&self, by: &[&Client]) -> Vec<String> {
        let mark = self.authority.judged.mark();
        for client in by {
            calls(client, 1).await;
        }
        let borne = self.authority.judged.all().into_iter().skip(mark);
        borne.filter_map(|(kind, token, _)| (kind == "tools/call").then_some(token)).collect()
    }

    /// Nothing is told of the upstream but that it is there.
    async fn has_no_failure(&self) {
        let status = String::from_utf8_lossy(&self.gateway.look("/api/v1/upstreams").await.body).into_owned();
        assert!(!status.contains("\"failed\"") && !status.contains("\"degraded\""), "{status}");
        let failures = self.gateway.stderr.all().into_iter().filter(|line| line.contains("upstream failed"));
        assert_eq!(failures.collect::<Vec<_>>(), Vec::<String>::new());
    }

    /// No token of a client has reached the upstream with any request.
    fn kept_to_itself(&self, tokens: &[&str]) {
        let judged = self.authority.judged.all();
        assert!(judged.iter().all(|(_, token, _)| !tokens.contains(&token.as_str())), "{judged:?}");
        assert!(tokens.iter().all(|token| self.up.frames_with(token) == 0));
    }
}

async fn calls(client: &Client, count: usize) {
    let one = |_| async { client.request(tool("up__echo", "{\"a\":1}")).await.text() };
    assert!(all((0..count).map(one)).await.iter().all(|text| text == "{\"a\":1}"));
}

#[tokio::test]
async fn each_client_has_one_token_there_for_which_its_own_is_exchanged_once() {
    for revision in [LEGACY, MODERN] {
        let stage = Stage::new(revision).await;
        let [ann, bob] = ["ann", "bob"].map(|name| stage.issuer.token(RESOURCE, name, "x"));
        for token in [&ann, &bob] {
            let clients = [stage.client(token).await, stage.client(token).await];
            calls(&clients[0], CALLS).await;
            calls(&clients[1], CALLS).await;
        }
        assert_eq!(stage.exchanged(), [ann.clone(), bob.clone()], "{revision}");
        assert_eq!(stage.shown().len(), 2, "{revision}: {:?}", stage.shown());
        stage.kept_to_itself(&[&ann, &bob]);
    }
}

#[tokio::test]
async fn the_next_token_of_a_client_is_exchanged_for_another_one() {
    let stage = Stage::new(MODERN).await;
    let [first, second] = ["x", "x y"].map(|scope| stage.issuer.token(RESOURCE, "ann", scope));
    calls(&stage.client(&first).await, 1).await;
    calls(&stage.client(&second).await, 1).await;
    assert_eq!(stage.exchanged(), [first.clone(), second.clone()]);
    assert_eq!(stage.shown().len(), 2);
    stage.kept_to_itself(&[&first, &second]);
}

#[tokio::test]
async fn each_call_goes_with_what_its_own_token_was_exchanged_for_whatever_others_of_its_principal_show() {
    for revision in [LEGACY, MODERN] {
        let stage = Stage::new(revision).await;
        let [few, more] = ["x read", "x admin"].map(|scope| stage.issuer.token(RESOURCE, "ann", scope));
        let (reader, admin) = (stage.client(&few).await, stage.client(&more).await);
        let borne = stage.borne(&[&reader, &admin, &reader, &admin, &reader]).await;
        assert_eq!(stage.exchanged(), [few.clone(), more.clone()], "{revision}");
        let [of_reader, of_admin] = [&borne[0], &borne[1]];
        assert!(of_reader != of_admin, "{revision}: {borne:?}");
        assert_eq!(
            borne.iter().collect::<Vec<_>>(),
            [of_reader, of_admin, of_reader, of_admin, of_reader],
            "{revision}"
        );
        stage.kept_to_itself(&[&few, &more]);
    }
}

#[tokio::test]
async fn session_goes_on_with_tokens_that_allow_something_else() {
    let stage = Stage::new(LEGACY).await;
    let [more, few, same] = ["x admin", "x", "admin x"].map(|scope| stage.issuer.token(RESOURCE, "ann", scope));
    let admin = stage.client(&more).await;
    calls(&admin, 1).await;
    let session = admin.http().session_id().expect("a session");
    let other = stage.client(&stage.issuer.token(RESOURCE, "bob", "x")).await.http().session_id().expect("a session");
    for (token, session, status) in [(&few, &session, 200), (&same, &session, 200), (&more, &other, 404)] {
        let authorization = format!("Bearer {token}");
        let headers = [
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("mcp-protocol-version", "2025-11-25"),
            ("mcp-session-id", &**session),
            ("authorization", &*authorization),
        ];
        let text = tool("up__echo", "{}").text(LEGACY, "7");
        assert_eq!(wire::exchange(&stage.gateway.url, "POST", &headers, &text).await.status, status, "{token}");
    }
    // Each call goes with the token for which its own was exchanged.
    assert_eq!(stage.exchanged(), [more, few, same]);
    assert_eq!(stage.shown().len(), 3);
}

/// The challenge of a 401 that answers a call, whose body has an error of JSON-RPC.
fn challenge(answer: &Answer) -> &str {
    assert_eq!(answer.status, 401, "{}", answer.message());
    assert_eq!(answer.code(), -32600, "{}", answer.message());
    answer.header("www-authenticate").expect("a challenge")
}

#[tokio::test]
async fn expired_token_within_the_leeway_is_not_exchanged() {
    for revision in [LEGACY, MODERN] {
        let stage = Stage::with_skew(revision, "30s").await;
        let mut claims = stage.issuer.claims(RESOURCE, "ann", -2);
        claims["scope"] = "x".into();
        let expired = stage.issuer.signed(&claims);
        let (ann, bob) = (stage.client(&expired).await, stage.client(&stage.issuer.token(RESOURCE, "bob", "x")).await);
        calls(&bob, 1).await;
        // More often than the failures after which a breaker opens.
        for _ in 0..10 {
            let refused = ann.call_once("up__echo", "{}").await;
            let said = challenge(&refused);
            assert!(said.contains("error=\"invalid_token\"") && said.contains("resource_metadata="), "{said}");
            assert!(refused.message().contains("has expired"), "{}", refused.message());
        }
        assert!(!stage.exchanged().contains(&expired), "{revision}: nobody else is shown it");
        calls(&bob, 1).await;
        calls(&stage.client(&stage.issuer.token(RESOURCE, "ann", "x")).await, 1).await;
        stage.has_no_failure().await;
    }
}

#[tokio::test]
async fn refused_exchange_is_a_401_and_no_failure_of_the_upstream() {
    for revision in [LEGACY, MODERN] {
        let stage = Stage::new(revision).await;
        let [first, next] = [600, 601].map(|lasts| {
            let mut claims = stage.issuer.claims(RESOURCE, "ann", lasts);
            claims["scope"] = "x".into();
            stage.issuer.signed(&claims)
        });
        let (ann, bob) = (stage.client(&first).await, stage.client(&stage.issuer.token(RESOURCE, "bob", "x")).await);
        let [of_ann, of_bob] = [stage.borne(&[&ann]).await, stage.borne(&[&bob]).await].map(|borne| borne[0].clone());
        for word in ["invalid_grant", "invalid_token", "invalid_request"] {
            stage.authority.dismiss(&of_ann);
            stage.authority.refuses(Some((400, &format!("{{\"error\":\"{word}\"}}"))));
            for _ in 0..10 {
                challenge(&ann.call_once("up__echo", "{}").await);
            }
        }
        assert_eq!(stage.borne(&[&bob]).await, [of_bob], "{revision}: he has his token");
        stage.authority.refuses(None);
        calls(&stage.client(&next).await, 1).await;
        assert_eq!(stage.exchanged().last(), Some(&next), "{revision}");
        stage.has_no_failure().await;
    }
}

#[tokio::test]
async fn the_next_token_that_allows_the_same_goes_on_where_the_first_one_was() {
    for revision in [LEGACY, MODERN] {
        let stage = Stage::new(revision).await;
        let [first, next] = ["x y", "y x"].map(|scope| stage.issuer.token(RESOURCE, "ann", scope));
        let borne = stage.borne(&[&stage.client(&first).await]).await;
        let greetings = || ["initialize", "server/discover"].map(|method| stage.up.frames_with(method));
        let before = greetings();
        let later = stage.borne(&[&stage.client(&next).await]).await;
        assert_eq!((stage.exchanged(), greetings()), (vec![first, next], before), "{revision}");
        assert!(borne != later, "{revision}: {borne:?}");
    }
}

#[tokio::test]
async fn a_client_goes_on_with_its_own_token_where_another_one_of_its_principal_has_ended() {
    let stage = Stage::new(MODERN).await;
    let long = stage.issuer.token(RESOURCE, "ann", "x");
    let client = stage.client(&long).await;
    calls(&client, 1).await;
    let mut claims = stage.issuer.claims(RESOURCE, "ann", 6);
    claims["scope"] = "x".into();
    let short = stage.issuer.signed(&claims);
    let other = Client::bearing(&stage.gateway.reach(), MODERN, &short).await;
    calls(&other, 1).await;
    let is_over = || async { (other.call_once("up__echo", "{\"a\":1}").await.status == 401).then_some(()) };
    until("the other token has ended", is_over).await;
    stage.authority.revoke();
    calls(&client, 1).await;
    assert_eq!(stage.exchanged(), [long.clone(), short, long]);
}

#[tokio::test]
async fn who_has_nothing_to_exchange_or_is_refused_has_no_call_and_is_told_why() {
    let stage = Stage::new(MODERN).await;
    let robot = stage.client("ann-a-long-token-of-a-robot").await;
    let refused = robot.call_once("up__echo", "{}").await;
    assert!(refused.message().contains("this client has shown no access token"), "{}", refused.message());
    let ann = stage.issuer.token(RESOURCE, "ann", "x");
    let client = stage.client(&ann).await;
    stage
        .authority
        .refuses(Some((400, &format!("{{\"error\":\"invalid_grant\",\"error_description\":\"no {ann}\"}}"))));
    let refused = client.call_once("up__echo", "{}").await;
    assert!(refused.message().contains("the token end point refuses it"), "{}", refused.message());
    assert!(!stage.gateway.stderr.all().iter().any(|line| line.contains(&ann)), "it is masked");
    assert_eq!(stage.shown(), BTreeSet::new());
    // Another token of the same client is tried at once.
    stage.authority.refuses(None);
    calls(&stage.client(&stage.issuer.token(RESOURCE, "ann", "y")).await, 1).await;
    stage.kept_to_itself(&[&ann]);
}

#[tokio::test]
async fn a_token_end_point_that_gives_back_the_token_of_a_client_has_it_shown_to_no_upstream() {
    for revision in [LEGACY, MODERN] {
        let stage = Stage::new(revision).await;
        let ann = stage.issuer.token(RESOURCE, "ann", "x");
        let client = stage.client(&ann).await;
        stage.authority.admit(&ann);
        stage.authority.refuses(Some((
            200,
            &format!("{{\"access_token\":\"{ann}\",\"token_type\":\"Bearer\",\"expires_in\":60}}"),
        )));
        let refused = client.call_once("up__echo", "{}").await;
        assert!(refused.message().contains("gives back the client's own token"), "{}", refused.message());
        stage.kept_to_itself(&[&ann]);
        assert!(!stage.gateway.stderr.all().iter().any(|line| line.contains(&ann)), "it is masked");
    }
}

#[tokio::test]
async fn exchanges_that_are_not_answered_hold_up_nobody_else() {
    let stage = Stage::new(MODERN).await;
    let token = |subject: &str| stage.issuer.token(RESOURCE, subject, "x");
    let (known, slow) = (stage.client(&token("known")).await, (0..HUNG).map(|n| token(&format!("slow-{n}"))));
    calls(&known, 1).await;
    let slow: Vec<_> = slow.collect();
    stage.authority.hold_for(&slow);
    let mut clients = Vec::new();
    for token in &slow {
        clients.push(Client::bearing(&stage.gateway.reach(), MODERN, token).await);
    }
    let mark = stage.authority.asked.mark();
    let mut open = Vec::new();
    for client in &clients {
        open.push(client.start(tool("up__echo", "{\"a\":1}")).await);
    }
    for token in &slow {
        let is_its = |(_, body): &(String, String)| body.contains(token).then_some(());
        until("its exchange is under way", || async { stage.authority.asked.find(mark, is_its) }).await;
    }
    calls(&known, 1).await;
    for n in 0..3 {
        calls(&Client::bearing(&stage.gateway.reach(), MODERN, &token(&format!("fresh-{n}"))).await, 1).await;
    }
    let given_up = stage.shown().len();
    assert_eq!(given_up, 4, "no call of those that hang has gone on meanwhile");
    // On a slow machine the first of them are given up by now.
    assert!(stage.authority.held_now() > 0, "those that hang are still waited for");
    stage.authority.hold_for(&[]);
}

#[tokio::test]
async fn tokens_that_a_client_shows_by_turns_do_not_undo_the_pause_of_an_end_point_that_gives_nothing() {
    for (status, body) in [(400, "{\"error\":\"invalid_grant\"}"), (503, "")] {
        let stage = Stage::new(MODERN).await;
        let mut clients = Vec::new();
        for lasts in 601..606 {
            let mut claims = stage.issuer.claims(RESOURCE, "ann", lasts);
            claims["scope"] = "x".into();
            clients.push(stage.client(&stage.issuer.signed(&claims)).await);
        }
        stage.authority.refuses(Some((status, body)));
        for client in &clients {
            client.call_once("up__echo", "{}").await;
        }
        let before = stage.exchanged().len();
        for client in (0..TURNS).flat_map(|_| &clients) {
            client.call_once("up__echo", "{}").await;
        }
        let more = stage.exchanged().len() - before;
        assert!(before > 0 && more < TURNS * clients.len(), "{status}: {before}, then {more}");
        // One that was not refused yet is tried at once.
        stage.authority.refuses(None);
        if status == 400 {
            calls(&stage.client(&stage.issuer.token(RESOURCE, "ann", "x")).await, 1).await;
        }
    }
}
