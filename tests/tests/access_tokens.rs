//! Access tokens of authorization servers: who is let in by them, to what, and until when.

use std::sync::Arc;

use hyper::Method;
use serde_json::{Value, json};
use trunkline_tests::client::stream::EventStream;
use trunkline_tests::client::{Answer, Client, Request, http as wire};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::issuer::{Issuer, coded, now};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{all, until, within};

const LEGACY: Revision = Revision::R2025_11_25;
const MODERN: Revision = Revision::MODERN;
/// What the gateway is called as a resource, wherever it listens.
pub(crate) const RESOURCE: &str = "https://mcp.example.com/mcp";
pub(crate) const KNOWN: &str = "/.well-known/oauth-protected-resource";

pub(crate) fn config(up: &Upstream, sections: &str) -> Config {
    Config::new().upstream(up).server("public_url = \"https://mcp.example.com\"").section(sections)
}

pub(crate) async fn up(revision: Revision) -> Upstream {
    Upstream::http(Script::new("up", revision)).await
}

/// The answer to a small request with this `Authorization`.
async fn ask(gateway: &Gateway, authorization: Option<&str>) -> Answer {
    ask_with(gateway, &authorization.map(|value| ("authorization", value)).into_iter().collect::<Vec<_>>()).await
}

/// The answer to a small request with these headers.
pub(crate) async fn ask_with(gateway: &Gateway, more: &[(&str, &str)]) -> Answer {
    let mut headers = vec![
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
    ];
    headers.extend(more);
    let text = Request::new("tools/list", "{}").text(MODERN, "1");
    wire::exchange(&gateway.url, "POST", &headers, &text).await
}

pub(crate) async fn status(gateway: &Gateway, token: &str) -> u16 {
    ask(gateway, Some(&format!("Bearer {token}"))).await.status
}

/// The stream of a session's notices.
async fn notices(client: &Client) -> EventStream {
    let mut headers = client.http().session();
    headers.push(("accept".to_owned(), "text/event-stream".to_owned()));
    EventStream::open(client.http(), Method::GET, &headers, "", Arc::default()).await
}

fn body(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

#[tokio::test]
async fn a_signed_token_is_somebody_who_may_what_its_scopes_and_claims_give() {
    for revision in [LEGACY, MODERN] {
        let (up, issuer) = (up(revision).await, Issuer::start().await);
        let roles = "[auth.roles.reader]\nupstreams = [\"*\"]\ntools = [\"up__echo\"]\n\
             [auth.roles.all]\nupstreams = [\"*\"]\n";
        let rules = "rules = [{ scope = \"read\", roles = [\"reader\"] }, \
             { claim = \"realm.groups\", value = \"ops\", roles = [\"all\"] }]";
        let gateway =
            Gateway::serve(&config(&up, &format!("[auth]\nmode = \"oauth\"\n{roles}{}", issuer.entry(rules)))).await;
        let mut claims = issuer.claims(RESOURCE, "root", 3600);
        claims["realm"] = json!({"groups": ["dev", "ops"]});
        let root = Client::bearing(&gateway.reach(), revision, &issuer.signed(&claims)).await;
        let tools = root.tools_until("the upstream is there", |tools| tools.contains(&"up__echo".into())).await;
        assert!(tools.len() > 1, "{tools:?}");
        let ann = Client::bearing(&gateway.reach(), revision, &issuer.token(RESOURCE, "ann", "x read")).await;
        assert_eq!(ann.tools().await, ["up__echo"]);
        assert_eq!(ann.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        let none = Client::bearing(&gateway.reach(), revision, &issuer.token(RESOURCE, "bob", "reader")).await;
        assert!(none.tools().await.is_empty());
        let metrics =
            gateway.look_until("/metrics", "principals are counted", |text| text.contains("oauth:ann desk")).await;
        assert!(metrics.contains(&format!("oauth:root desk {}", issuer.url)), "{metrics}");
    }
}

#[tokio::test]
async fn without_a_token_it_is_said_where_one_is_given_and_what_the_gateway_is() {
    let (up, issuer) = (up(MODERN).await, Issuer::start().await);
    let entry = issuer.entry("scopes = [\"mcp\"]");
    let token = "[[auth.tokens]]\nname = \"ci\"\ntoken = \"a-long-token-of-a-robot\"\n";
    let gateway = Gateway::serve(&config(&up, &format!("{entry}{token}"))).await;
    let metadata = format!("resource_metadata=\"https://mcp.example.com{KNOWN}/mcp\"");
    let challenge = |answer: &Answer| answer.header("www-authenticate").unwrap_or_default().to_owned();
    let answer = ask(&gateway, None).await;
    assert_eq!((answer.status, challenge(&answer)), (401, format!("Bearer {metadata}, scope=\"mcp\"")));
    for path in [KNOWN.to_owned(), format!("{KNOWN}/mcp")] {
        let answer = wire::exchange(&gateway.url.replace("/mcp", &path), "GET", &[], "").await;
        let expected = json!({"resource": RESOURCE, "authorization_servers": [issuer.url],
            "bearer_methods_supported": ["header"], "scopes_supported": ["mcp"]});
        let said: Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert_eq!((answer.status, said), (200, expected), "{path}");
    }
    let answer = wire::exchange(&gateway.url.replace("/mcp", &format!("{KNOWN}/other")), "GET", &[], "").await;
    assert_eq!(answer.status, 401, "nothing else is for anybody");
    let answer = ask(&gateway, Some(&format!("Bearer {}", issuer.token(RESOURCE, "ann", "other")))).await;
    let said = challenge(&answer);
    assert!(
        answer.status == 403 && said.contains("error=\"insufficient_scope\"") && said.contains(&metadata),
        "{said}"
    );
    assert!(said.contains("scope=\"mcp\""), "{said}");
    let answer = ask(&gateway, Some("Bearer nonsense")).await;
    let said = challenge(&answer);
    assert!(answer.status == 401 && said.contains("error=\"invalid_token\"") && said.contains(&metadata), "{said}");
    assert_eq!(status(&gateway, &issuer.token(RESOURCE, "ann", "mcp")).await, 200);
    assert_eq!(status(&gateway, "a-long-token-of-a-robot").await, 200, "both are taken");
    let query = format!("{}?access_token={}", gateway.url, issuer.token(RESOURCE, "ann", "mcp"));
    assert_eq!(wire::exchange(&query, "POST", &[], "{}").await.status, 401, "a query is no place for a token");
}

/// A token with two algorithms, of which the last is the right one.
pub(crate) fn twice_headed(issuer: &Issuer, claims: &Value) -> String {
    let head = issuer.head().to_string().replacen('{', "{\"alg\":\"RS256\",", 1);
    issuer.signed_under(&head, &claims.to_string())
}

/// Tokens that are none, each by its name.
pub(crate) fn forged(issuer: &Issuer, other: &Issuer) -> Vec<(&'static str, String)> {
    let good = issuer.claims(RESOURCE, "ann", 3600);
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        match value {
            Value::Null => _ = claims.as_object_mut().expect("an object").remove(name),
            value => claims[name] = value,
        }
        issuer.signed(&claims)
    };
    let headed = |name: &str, value: Value| {
        let mut head = issuer.head();
        head[name] = value;
        issuer.signed_as(&head, &good.to_string())
    };
    let parts = |token: &str| token.split('.').map(str::to_owned).collect::<Vec<_>>();
    let signed = parts(&issuer.signed(&good));
    let none = coded(json!({"alg": "none", "typ": "JWT"}).to_string().as_bytes());
    let hmac = {
        let head = json!({"alg": "HS256", "typ": "JWT", "kid": issuer.head()["kid"]});
        let message = format!("{}.{}", coded(head.to_string().as_bytes()), signed[1]);
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &issuer.point());
        format!("{message}.{}", coded(ring::hmac::sign(&key, message.as_bytes()).as_ref()))
    };
    let doubled = good.to_string().replace("\"sub\"", "\"aud\":\"https://other.example\",\"sub\"");
    let changed = coded(good.to_string().replace("\"ann\"", "\"eve\"").as_bytes());
    let of_other = { other.signed_as(&issuer.head(), &good.to_string()) };
    vec![
        ("no signature", format!("{none}.{}.", signed[1])),
        ("no signature under a good head", format!("{}.{}.", signed[0], signed[1])),
        ("HMAC with the public key", hmac),
        ("an algorithm that its key does not have", headed("alg", "RS256".into())),
        ("an unknown key", headed("kid", "key-9".into())),
        ("a key that is a path", headed("kid", "../../etc/passwd".into())),
        ("a key that is no text", headed("kid", json!(["key-1"]))),
        ("something critical", headed("crit", json!(["exp"]))),
        ("another type", headed("typ", "logout+jwt".into())),
        ("a claim twice", issuer.signed_as(&issuer.head(), &doubled)),
        ("a changed claim", format!("{}.{changed}.{}", signed[0], signed[2])),
        ("a signature that is cut", format!("{}.{}.{}", signed[0], signed[1], &signed[2][..80])),
        ("a signature that is coded otherwise", format!("{}.{}.{}=", signed[0], signed[1], signed[2])),
        ("a part more", format!("{}.x", signed.join("."))),
        ("the key of another one", of_other),
        ("another issuer that signs", other.signed(&other.claims(RESOURCE, "ann", 3600))),
        ("another issuer's name", with("iss", other.url.clone().into())),
        ("an issuer with a slash", with("iss", format!("{}/", issuer.url).into())),
        ("no issuer", with("iss", Value::Null)),
        ("another audience", with("aud", "https://mcp.example.com/other".into())),
        ("an audience that begins so", with("aud", "https://mcp.example.com/mcp/".into())),
        ("other audiences", with("aud", json!(["a", "b"]))),
        ("an audience that is no text", with("aud", json!({"https://mcp.example.com/mcp": true}))),
        ("no audience", with("aud", Value::Null)),
        ("an end that has passed", with("exp", (now() - 31).into())),
        ("an end beyond all time", with("exp", json!(1e300))),
        ("no end", with("exp", Value::Null)),
        ("an end that is a text", with("exp", (now() + 3600).to_string().into())),
        ("an end before time", with("exp", (-1).into())),
        ("a begin that has not come", with("nbf", (now() + 90).into())),
        ("a begin that is a text", with("nbf", "soon".into())),
        ("nobody", {
            let mut claims = good.clone();
            claims["sub"] = "".into();
            claims["client_id"] = "".into();
            issuer.signed(&claims)
        }),
    ]
}

#[tokio::test]
async fn no_token_is_taken_that_is_forged_or_made_for_something_else_and_no_url_in_it_is_asked() {
    let (up, issuer, other, decoy) =
        (up(MODERN).await, Issuer::start().await, Issuer::start().await, Issuer::start().await);
    let gateway = Gateway::serve(&config(&up, &issuer.entry(""))).await;
    assert_eq!(status(&gateway, &issuer.token(RESOURCE, "ann", "")).await, 200);
    for (name, token) in forged(&issuer, &other) {
        let answer = ask(&gateway, Some(&format!("Bearer {token}"))).await;
        assert_eq!(answer.status, 401, "{name}: {}", body(&answer));
    }
    let mut head = issuer.head();
    let point = other.point();
    head["jwk"] = json!({"kty": "EC", "crv": "P-256", "x": coded(&point[1..33]), "y": coded(&point[33..])});
    head["jku"] = format!("{}/keys", decoy.url).into();
    head["x5u"] = format!("{}/keys", decoy.url).into();
    let good = issuer.claims(RESOURCE, "ann", 3600).to_string();
    assert_eq!(status(&gateway, &other.signed_as(&head, &good)).await, 401);
    assert_eq!((decoy.asked.mark(), other.asked.mark()), (0, 0), "nothing is asked that a token names");
    for odd in ["Basic x", "Bearer", "Bearer "] {
        assert_eq!(ask(&gateway, Some(odd)).await.status, 401, "{odd}");
    }
    let mut claims = issuer.claims(RESOURCE, "ann", 3600);
    claims["aud"] = json!(["a", RESOURCE]);
    assert_eq!(status(&gateway, &issuer.signed(&claims)).await, 200, "one of several audiences is enough");
    claims["exp"] = (now() - 5).into();
    assert_eq!(status(&gateway, &issuer.signed(&claims)).await, 200, "clocks differ");
    up.caught_up().await;
    let log = gateway.stderr.all().join("\n");
    assert!(!log.contains(&issuer.signed(&claims)[..40]) && !log.contains("eyJ"), "no token is logged");
}

#[tokio::test]
async fn a_key_that_nobody_has_is_asked_for_once_in_a_while_whoever_names_it() {
    let (up, issuer) = (up(LEGACY).await, Issuer::start().await);
    let gateway = Gateway::serve(&config(&up, &issuer.entry(""))).await;
    gateway.says(&["keys of authorization server read"]).await;
    let old = issuer.token(RESOURCE, "ann", "");
    assert_eq!(status(&gateway, &old).await, 200);
    let before = issuer.asked.mark();
    let mut unknown = issuer.head();
    unknown["kid"] = "key-9".into();
    let unknown = issuer.signed_as(&unknown, &issuer.claims(RESOURCE, "ann", 3600).to_string());
    let statuses = all((0..50).map(|_| status(&gateway, &unknown))).await;
    assert!(statuses.iter().all(|status| *status == 401), "{statuses:?}");
    assert!(issuer.asked.mark() - before <= 2, "a key that nobody has is asked for at most once in a while");
}

#[tokio::test]
async fn an_authorization_server_that_is_down_lets_nobody_in_and_harms_nobody_else() {
    let (up, issuer, good) = (up(MODERN).await, Issuer::start().await, Issuer::start().await);
    issuer.breaks(Some((500, "")));
    let gateway = Gateway::serve(&config(&up, &format!("{}{}", issuer.entry(""), good.entry("")))).await;
    gateway.says(&["authorization server of clients cannot be asked for keys", &issuer.url]).await;
    let token = issuer.token(RESOURCE, "ann", "");
    let answer = ask(&gateway, Some(&format!("Bearer {token}"))).await;
    assert!(answer.status == 503 && answer.header("retry-after").is_some(), "{}", body(&answer));
    assert_eq!(status(&gateway, &good.token(RESOURCE, "ann", "")).await, 200);
    for (status, body) in [(200, "{\"issuer\":\"https://else.example\"}"), (302, ""), (200, "[[[[")] {
        issuer.breaks(Some((status, body)));
        assert_eq!(self::status(&gateway, &token).await, 503, "{body}");
    }
    issuer.breaks(None);
    until("it is asked again by itself", || async { (status(&gateway, &token).await == 200).then_some(()) }).await;
    issuer.breaks(Some((500, "")));
    assert_eq!(status(&gateway, &issuer.token(RESOURCE, "bob", "")).await, 200, "its keys are known");
}

#[tokio::test]
async fn streams_end_with_their_token_and_the_session_goes_on_with_the_next_one() {
    let (up, issuer) = (up(LEGACY).await, Issuer::start().await);
    let gateway = Gateway::serve(&config(&up, &issuer.entry("clock_skew = \"0s\""))).await;
    assert_eq!(status(&gateway, &issuer.token(RESOURCE, "bob", "")).await, 200);
    let first = issuer.signed(&issuer.claims(RESOURCE, "ann", 4));
    let ann = Client::bearing(&gateway.reach(), LEGACY, &first).await;
    let session = ann.http().session_id().expect("a session");
    let stream = notices(&ann).await;
    within("the stream ends with the token", stream.ended()).await;
    assert_eq!(status(&gateway, &first).await, 401);
    let next = issuer.token(RESOURCE, "ann", "");
    let listed = |token: String, session: String| {
        let gateway = &gateway;
        async move {
            let authorization = format!("Bearer {token}");
            let headers = [
                ("accept", "application/json, text/event-stream"),
                ("content-type", "application/json"),
                ("mcp-protocol-version", "2025-11-25"),
                ("mcp-session-id", &*session),
                ("authorization", &*authorization),
            ];
            let text = Request::new("tools/list", "{}").text(LEGACY, "7");
            wire::exchange(&gateway.url, "POST", &headers, &text).await.status
        }
    };
    assert_eq!(listed(next, session.clone()).await, 200);
    for (subject, client) in [("bob", "desk"), ("ann", "phone")] {
        let mut claims = issuer.claims(RESOURCE, subject, 3600);
        claims["client_id"] = client.into();
        assert_eq!(listed(issuer.signed(&claims), session.clone()).await, 404, "{subject} at {client}");
    }
}

#[tokio::test]
async fn a_token_that_says_nothing_is_asked_about_once_for_all_who_show_it() {
    let (up, issuer) = (up(MODERN).await, Issuer::start().await);
    let asked = "introspection = { client_id = \"gate\", client_secret = \"canary-introspection\" }";
    let gateway = Gateway::serve(&config(&up, &issuer.entry(asked))).await;
    let good = json!({"active": true, "sub": "ann", "client_id": "desk", "aud": RESOURCE, "exp": now() + 3600});
    issuer.says_of("good", good.clone());
    let questions = || issuer.asked.all().iter().filter(|path| *path == "/introspect").count();
    issuer.hold(true);
    let many = all((0..20).map(|_| status(&gateway, "good")));
    let held = async {
        until("it is asked", || async { (questions() > 0).then_some(()) }).await;
        issuer.hold(false);
    };
    let (statuses, ()) = tokio::join!(many, held);
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    assert_eq!(questions(), 1);
    let documents = || issuer.asked.all().iter().filter(|path| path.starts_with("/.well-known/")).count();
    let read = documents();
    for (name, key, value) in [
        ("another audience", "aud", json!("https://else.example")),
        ("no audience", "aud", Value::Null),
        ("another issuer", "iss", json!("https://else.example")),
        ("ended", "exp", json!(now() - 60)),
        ("inactive", "active", json!(false)),
        ("not yet", "nbf", json!(now() + 90)),
        ("of another type", "token_type", json!("DPoP")),
        ("of a type that is no text", "token_type", json!(["Bearer"])),
        ("bound to a key", "cnf", json!({"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"})),
        ("of a subject that is no text", "sub", json!(7)),
    ] {
        let mut said = good.clone();
        said[key] = value;
        issuer.says_of("odd", said);
        assert_eq!(status(&gateway, "odd").await, 401, "{name}");
    }
    let named = json!({"active": true, "username": "Ann", "client_id": "desk", "aud": RESOURCE});
    issuer.says_of("named", named);
    assert_eq!(status(&gateway, "named").await, 401, "a person's who is named otherwise only");
    let own = json!({"active": true, "sub": null, "client_id": "robot", "aud": RESOURCE, "token_type": "bearer", "nbf": now() + 5});
    issuer.says_of("own", own);
    assert_eq!(status(&gateway, "own").await, 200, "a client's own, of a clock that is ahead");
    let twice = twice_headed(&issuer, &issuer.claims(RESOURCE, "ann", 3600));
    issuer.says_of(&twice, good.clone());
    let before = questions();
    assert_eq!((status(&gateway, &twice).await, questions()), (401, before), "what can be read is not asked about");
    assert_eq!(status(&gateway, "unknown").await, 401);
    assert_eq!(documents(), read, "where it is asked is known by now");
    issuer.breaks(Some((500, "")));
    assert_eq!(status(&gateway, "other").await, 503);
    assert_eq!(status(&gateway, "good").await, 200, "the verdict is kept for a while");
}

#[tokio::test]
async fn an_issuer_that_is_taken_out_takes_its_sessions_and_streams_along() {
    let (up, issuer, other) = (up(LEGACY).await, Issuer::start().await, Issuer::start().await);
    let both = format!("{}{}", issuer.entry(""), other.entry(""));
    let gateway = Gateway::serve(&config(&up, &both)).await;
    let token = issuer.token(RESOURCE, "ann", "");
    let ann = Client::bearing(&gateway.reach(), LEGACY, &token).await;
    let bob = Client::bearing(&gateway.reach(), LEGACY, &other.token(RESOURCE, "ann", "")).await;
    let stream = notices(&ann).await;
    gateway.configure(&config(&up, &other.entry("")));
    within("the stream ends", stream.ended()).await;
    until("it counts no more", || async { (status(&gateway, &token).await == 401).then_some(()) }).await;
    assert!(bob.request(Request::new("ping", "{}")).await.status == 200, "the others notice nothing");
    let _both: (Arc<Issuer>, Arc<Issuer>) = (issuer, other);
}
