//! What each revision has a server say to clients that show no token, one that is good for nothing, or one that allows too little; at every
//! place where a client comes in.

use serde_json::{Value, json};
use trunkline_tests::client::{Answer, Client, Request, http as wire};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::issuer::{Issuer, coded, now};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::Upstream;

use crate::access_tokens::{KNOWN, RESOURCE, config, forged, up};

const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");
const JSON: (&str, &str) = ("content-type", "application/json");

/// One way in: how a client asks there, and of which resource it is then told.
struct Place {
    name: String,
    method: &'static str,
    path: &'static str,
    headers: Vec<(&'static str, &'static str)>,
    body: String,
}

impl Place {
    async fn asked(&self, gateway: &Gateway, shown: &[&str]) -> Answer {
        let url = gateway.url.replace("/mcp", self.path);
        let shown = shown.iter().map(|value| ("authorization", *value));
        let headers: Vec<_> = self.headers.iter().copied().chain(shown).collect();
        wire::exchange(&url, self.method, &headers, &self.body).await
    }

    /// The same with one bearer token.
    async fn shown(&self, gateway: &Gateway, token: &str) -> Answer {
        self.asked(gateway, &[&format!("Bearer {token}")]).await
    }

    /// What is said of the resource that a client at this place was given the URL of.
    fn metadata(&self) -> String {
        let face = match self.path {
            "/mcp" => "/mcp",
            "/ws" => "/ws",
            _ => "/sse",
        };
        format!("resource_metadata=\"https://mcp.example.com{KNOWN}{face}\"")
    }
}

fn place(name: &str, method: &'static str, path: &'static str, headers: &[(&'static str, &'static str)]) -> Place {
    let body = match method {
        "POST" => "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
        _ => "",
    };
    Place { name: name.to_owned(), method, path, headers: headers.to_vec(), body: body.to_owned() }
}

/// The first request of a client of each revision, and every other way in.
fn places() -> Vec<Place> {
    let first = |revision: Revision| {
        let mut place = place(revision.text(), "POST", "/mcp", &[ACCEPT, JSON]);
        place.body = if revision.is_modern() {
            place.headers.extend([("mcp-protocol-version", revision.text()), ("mcp-method", "tools/list")]);
            Request::new("tools/list", "{}").text(revision, "1")
        } else {
            let client = "\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}";
            let params = format!("{{\"protocolVersion\":\"{}\",{client}}}", revision.text());
            Request::new("initialize", &params).text(revision, "1")
        };
        place
    };
    let events = ("accept", "text/event-stream");
    let session = ("mcp-session-id", "of-somebody");
    let upgrade = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    Revision::ALL
        .map(first)
        .into_iter()
        .chain([
            place("a request of a session", "POST", "/mcp", &[ACCEPT, JSON, session]),
            place("the stream of a session", "GET", "/mcp", &[events, session]),
            place("the end of a session", "DELETE", "/mcp", &[session]),
            place("the stream of the oldest transport", "GET", "/sse", &[events]),
            place("a message of the oldest transport", "POST", "/message?sessionId=of-somebody", &[JSON]),
            place("a WebSocket", "GET", "/ws", &upgrade),
        ])
        .collect()
}

fn challenge(answer: &Answer) -> &str {
    answer.header("www-authenticate").unwrap_or_default()
}

/// A gateway whose tokens need two scopes.
async fn wanting_two() -> (Upstream, std::sync::Arc<Issuer>, Gateway) {
    let (up, issuer) = (up(Revision::MODERN).await, Issuer::start().await);
    let gateway = Gateway::serve(&config(&up, &issuer.entry("scopes = [\"mcp\", \"more\"]"))).await;
    (up, issuer, gateway)
}

#[tokio::test]
async fn at_every_place_and_revision_a_client_is_told_the_same_where_it_shows_no_token_a_bad_one_or_one_that_allows_too_little()
 {
    let (up, issuer, gateway) = wanting_two().await;
    let little = issuer.token(RESOURCE, "ann", "mcp other");
    let scopes = "scope=\"mcp more\"";
    let asked = up.visits();
    for place in places() {
        let name = &place.name;
        let answer = place.asked(&gateway, &[]).await;
        let expected = format!("Bearer {}, {scopes}", place.metadata());
        assert_eq!((answer.status, challenge(&answer)), (401, &*expected), "{name}: nothing is shown");
        let answer = place.shown(&gateway, "nonsense").await;
        let said = challenge(&answer);
        assert_eq!(answer.status, 401, "{name}: nonsense");
        for part in ["Bearer ", &place.metadata(), "error=\"invalid_token\"", scopes] {
            assert!(said.contains(part), "{name}: {part}: {said}");
        }
        let answer = place.shown(&gateway, &little).await;
        let said = challenge(&answer);
        assert_eq!(answer.status, 403, "{name}: {said}");
        for part in ["Bearer ", &place.metadata(), "error=\"insufficient_scope\"", scopes] {
            assert!(said.contains(part), "{name}: {part}: {said}");
        }
        assert!(!said.contains("other"), "{name}: what is not needed is not asked for: {said}");
        assert_eq!(answer.header("content-type"), Some("application/json"), "{name}: no stream has begun");
        let good = format!("Bearer {}", issuer.token(RESOURCE, "ann", "mcp more"));
        for two in [[&*good, &*good], [&*good, "Bearer nonsense"]] {
            let answer = place.asked(&gateway, &two).await;
            let said = challenge(&answer);
            assert!(answer.status == 400 && said.contains("error=\"invalid_request\""), "{name}: {said}");
        }
        if place.method == "POST" {
            let answer = place.asked(&gateway, &[&good]).await;
            let expected = if Revision::parse(name).is_some() { 200 } else { 404 };
            assert_eq!(
                answer.status, expected,
                "{name}: with a good one it is let in, and no session of somebody is there"
            );
        }
    }
    up.caught_up().await;
    assert_eq!(up.visits() - asked, 0, "nobody has come to the upstream for that");
}

#[tokio::test]
async fn a_token_with_a_scope_that_includes_the_others_is_asked_for_no_more() {
    let (up, issuer) = (up(Revision::MODERN).await, Issuer::start().await);
    let roles = "[auth.roles.reader]\nupstreams = [\"*\"]\ntools = [\"up__echo\"]\n[auth.roles.none]\nupstreams = []\n";
    let entry = issuer.entry(
        "scopes = [\"mcp\", \"more\"]\nincludes = { admin = \"write mcp\", write = \"more\" }\nroles = [\"none\"]\n\
         rules = [{ scope = \"write\", roles = [\"reader\"] }]",
    );
    let gateway = Gateway::serve(&config(&up, &format!("{roles}{entry}"))).await;
    for (scope, expected) in
        [("admin", 200), ("write mcp", 200), ("mcp more", 200), ("write", 403), ("mcp", 403), ("administrator", 403)]
    {
        for place in places().into_iter().filter(|place| Revision::parse(&place.name).is_some()) {
            let answer = place.shown(&gateway, &issuer.token(RESOURCE, "ann", scope)).await;
            assert_eq!(answer.status, expected, "{} {scope}: {}", place.name, challenge(&answer));
        }
    }
    // Roles, too, are those of what it includes.
    let ann = Client::bearing(&gateway.reach(), Revision::MODERN, &issuer.token(RESOURCE, "ann", "admin")).await;
    ann.tools_until("it has the role", |tools| tools == ["up__echo"]).await;
    let bob = Client::bearing(&gateway.reach(), Revision::MODERN, &issuer.token(RESOURCE, "bob", "mcp more")).await;
    assert!(bob.tools().await.is_empty());
}

#[tokio::test]
async fn the_gateway_gives_out_no_tokens_and_takes_none_from_an_address() {
    let (_up, issuer, gateway) = wanting_two().await;
    let good = issuer.token(RESOURCE, "ann", "mcp more");
    // As a server of 2025-03-26 that is its own authorization server.
    for (method, path) in [
        ("GET", "/.well-known/oauth-authorization-server"),
        ("GET", "/.well-known/openid-configuration"),
        ("GET", "/authorize?response_type=code"),
        ("POST", "/token"),
        ("POST", "/register"),
    ] {
        for (headers, expected) in [(&[JSON][..], 401), (&[JSON, ("authorization", &*format!("Bearer {good}"))], 404)] {
            let url = gateway.url.replace("/mcp", path);
            assert_eq!(wire::exchange(&url, method, headers, "{}").await.status, expected, "{method} {path}");
        }
    }
    for place in places() {
        let glue = if place.path.contains('?') { '&' } else { '?' };
        let url = format!("{}{glue}access_token={good}", gateway.url.replace("/mcp", place.path));
        let answer = wire::exchange(&url, place.method, &place.headers, &place.body).await;
        assert_eq!(answer.status, 401, "{}", place.name);
    }
}

/// Claims that are not those of a token for us, now: each is signed as it should be.
fn claimed() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("no audience", "aud", Value::Null),
        ("an audience that is empty", "aud", json!("")),
        ("audiences that are none", "aud", json!([])),
        ("audiences that are others", "aud", json!(["https://a.example", "https://b.example"])),
        ("an audience in two lists", "aud", json!([[RESOURCE]])),
        ("an audience that is a number", "aud", json!(7)),
        ("an audience that is an object", "aud", json!({RESOURCE: RESOURCE})),
        ("an audience that is another path", "aud", json!("https://mcp.example.com/other")),
        ("an audience that goes on", "aud", json!("https://mcp.example.com/mcp/x")),
        ("an audience that breaks off", "aud", json!("https://mcp.example.com")),
        ("an audience that asks", "aud", json!("https://mcp.example.com/mcp?x=1")),
        ("an audience of another scheme", "aud", json!("http://mcp.example.com/mcp")),
        ("an audience that only begins so", "aud", json!("https://mcp.example.com.evil.example/mcp")),
        ("an audience with a user", "aud", json!("https://mcp.example.com@evil.example/mcp")),
        ("no issuer", "iss", Value::Null),
        ("an issuer that is a list", "iss", json!(["https://as.example"])),
        ("an issuer that is unknown", "iss", json!("https://as.example")),
        ("an end that has passed", "exp", json!(now() - 62)),
        ("an end long ago", "exp", json!(1)),
        ("an end at the beginning", "exp", json!(0)),
        ("an end before time", "exp", json!(-1)),
        ("an end far before time", "exp", json!(-1e300)),
        ("an end beyond all time", "exp", json!(1e300)),
        ("an end that is a text", "exp", json!("tomorrow")),
        ("an end that is a number in a text", "exp", json!((now() + 3600).to_string())),
        ("an end that is a list", "exp", json!([now() + 3600])),
        ("no end", "exp", Value::Null),
        ("a begin that has not come", "nbf", json!(now() + 90)),
        ("a begin beyond all time", "nbf", json!(1e300)),
        ("a begin that is a text", "nbf", json!("yesterday")),
    ]
}

/// Tokens whose text is not what was signed: each is that of the good one but for its last part.
fn signatures(token: &str) -> Vec<(&'static str, String)> {
    let (message, signature) = token.rsplit_once('.').expect("three parts");
    let with = |last: &str| format!("{message}.{last}");
    let last = signature.chars().last().expect("a signature");
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    // 64 bytes end with four bits that say nothing.
    let at = alphabet.find(last).expect("of that alphabet");
    let bits = alphabet.chars().nth(at ^ 1).expect("another one");
    vec![
        ("no signature", with("")),
        ("nought", with(&coded(&[0; 64]))),
        ("a signature that is cut", with(&signature[..80])),
        ("a signature that goes on", with(&format!("{signature}AA"))),
        ("a signature that is filled up", with(&format!("{signature}=="))),
        ("a signature with other bits at its end", with(&format!("{}{bits}", &signature[..signature.len() - 1]))),
        ("a signature in the other alphabet", with(&format!("{}+/", &signature[..signature.len() - 2]))),
        ("a signature with a blank", with(&format!("{} {}", &signature[..40], &signature[40..]))),
        ("a part more", format!("{token}.{signature}")),
    ]
}

#[tokio::test]
async fn no_token_that_is_forged_or_of_something_else_is_taken_at_any_place_or_revision_and_nothing_comes_of_one() {
    let (up, issuer, other, decoy) =
        (up(Revision::MODERN).await, Issuer::start().await, Issuer::start().await, Issuer::start().await);
    let gateway = Gateway::serve(&config(&up, &issuer.entry("clock_skew = \"60s\""))).await;
    let good = issuer.claims(RESOURCE, "ann", 3600);
    let mut tokens = forged(&issuer, &other);
    tokens.retain(|(name, _)| *name != "an end that has passed" && *name != "a begin that has not come");
    tokens.extend(signatures(&issuer.signed(&good)));
    let claimed = claimed();
    assert!(claimed.len() >= 30);
    tokens.extend(claimed.into_iter().map(|(name, claim, value)| {
        let mut claims = good.clone();
        match value {
            Value::Null => _ = claims.as_object_mut().expect("an object").remove(claim),
            value => claims[claim] = value,
        }
        (name, issuer.signed(&claims))
    }));
    // Where its key lies is said by the token itself: beside a key that is known, and one that is not.
    let point = decoy.point();
    let key = json!({"kty": "EC", "crv": "P-256", "x": coded(&point[1..33]), "y": coded(&point[33..])});
    let at = format!("{}/keys", decoy.url);
    for kid in [issuer.head()["kid"].clone(), json!("key-9"), json!(at), json!("' OR 1=1 --"), json!("../keys")] {
        let head = json!({"alg": "ES256", "kid": kid, "jwk": key, "jku": at, "x5u": at, "x5c": [coded(&point)]});
        tokens.push(("a key that it brings along", decoy.signed_as(&head, &good.to_string())));
    }
    assert_eq!(places()[4].shown(&gateway, &issuer.signed(&good)).await.status, 200, "the good one is good");
    let asked = up.visits();
    for place in places() {
        for (name, token) in &tokens {
            let answer = place.shown(&gateway, token).await;
            let said = challenge(&answer);
            let is_refused = answer.status == 401 && said.contains(&place.metadata());
            assert!(is_refused, "{} {name}: {} {said}", place.name, answer.status);
        }
    }
    assert_eq!((decoy.asked.mark(), other.asked.mark()), (0, 0), "nothing is asked that a token names");
    up.caught_up().await;
    assert_eq!((up.visits() - asked, up.executed().await.len()), (0, 0), "nobody has come to the upstream");
    assert!(!gateway.stderr.all().join("\n").contains("eyJ"), "no token is logged");
}

#[tokio::test]
async fn what_the_gateway_says_of_itself_is_the_same_at_the_path_and_at_the_root_and_nothing_of_refresh_tokens() {
    let (_up, issuer, gateway) = wanting_two().await;
    for path in [KNOWN.to_owned(), format!("{KNOWN}/mcp")] {
        let answer = wire::exchange(&gateway.url.replace("/mcp", &path), "GET", &[], "").await;
        let said: Value = serde_json::from_slice(&answer.body).expect("JSON");
        assert_eq!((answer.status, &said["resource"]), (200, &json!(RESOURCE)), "{path}");
        assert_eq!(said["authorization_servers"], json!([issuer.url]), "{path}");
        assert_eq!(said["scopes_supported"], json!(["mcp", "more"]), "{path}");
    }
    let refused = |text: String| {
        let scratch = trunkline_tests::scratch::Scratch::new();
        let file = scratch.file("a.toml", &text);
        let program = trunkline_tests::process::beside(trunkline_tests::process::GATEWAY);
        let mut command = std::process::Command::new(program);
        command.env("HOME", scratch.path()).env_remove("TRUNKLINE_CONFIG").args(["check", "--config"]).arg(file);
        let output = command.output().expect("it runs");
        (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let text = |scope: &str| {
        let entry = issuer.entry(&format!("scopes = [\"mcp\", \"{scope}\"]"));
        Config::new().server("public_url = \"https://mcp.example.com\"").section(&entry).text(1, 2)
    };
    let (is_good, said) = refused(text("offline_access"));
    assert!(!is_good && said.contains("`offline_access` is for clients to ask for"), "{said}");
    let (is_good, said) = refused(text("more"));
    assert!(is_good, "{said}");
}

#[tokio::test]
async fn what_somebody_reads_is_for_no_cache_that_others_share_whatever_its_upstream_says() {
    let result = |scope: &str| {
        let contents = "[{\"uri\":\"script://up/text\",\"text\":\"1e400\"}]";
        format!("{{\"resultType\":\"complete\",\"ttlMs\":7000,\"cacheScope\":\"{scope}\",\"contents\":{contents}}}")
    };
    let read = Request::new("resources/read", "{\"uri\":\"script://up/text\"}");
    for scope in ["public", "private"] {
        let rule = Rule::on("resources/read", vec![Act::Result(result(scope))]);
        let (up, issuer) =
            (Upstream::http(Script::new("up", Revision::MODERN).rule(rule)).await, Issuer::start().await);
        let open = Gateway::serve(&Config::new().upstream(&up)).await;
        let guarded = Gateway::serve(&config(&up, &issuer.entry(""))).await;
        let ann = issuer.token(RESOURCE, "ann", "");
        for (gateway, token, expected) in [(&open, "none", scope), (&guarded, &*ann, "private")] {
            let client = Client::bearing(&gateway.reach(), Revision::MODERN, token).await;
            client.tools_until("it is there", |tools| tools.contains(&"up__echo".into())).await;
            let told = client.request(read.clone()).await.value();
            assert_eq!((&told["cacheScope"], &told["ttlMs"]), (&json!(expected), &json!(7000)), "{scope}: {told}");
            assert_eq!(told["contents"][0]["text"], "1e400", "{scope}: {told}");
            for method in
                ["tools/list", "resources/list", "resources/templates/list", "prompts/list", "server/discover"]
            {
                let told = client.request(Request::new(method, "{}")).await.value();
                assert_eq!(told["cacheScope"], "private", "{method}: {told}");
            }
        }
    }
}

#[tokio::test]
async fn an_id_that_a_client_brings_to_its_handshake_is_none() {
    let (_up, issuer, gateway) = wanting_two().await;
    let [ann, bob] = ["ann", "bob"].map(|name| format!("Bearer {}", issuer.token(RESOURCE, name, "mcp more")));
    let ask = async |place: &Place, who: &str, session: &str| {
        let mut headers = place.headers.clone();
        headers.extend([("authorization", who), ("mcp-session-id", session)]);
        wire::exchange(&gateway.url, "POST", &headers, &place.body).await
    };
    let ping = place("a ping", "POST", "/mcp", &[ACCEPT, JSON]);
    for place in places().into_iter().filter(|place| Revision::LEGACY.iter().any(|known| known.text() == place.name)) {
        let first = ask(&place, &ann, "chosen").await;
        let own = first.header("mcp-session-id").expect("a session").to_owned();
        assert!(first.status == 200 && own != "chosen" && own.len() >= 22, "{}: {own}", place.name);
        let taken = ask(&place, &bob, &own).await;
        let other = taken.header("mcp-session-id").expect("a session").to_owned();
        assert!(taken.status == 200 && other != own, "{}", place.name);
        for (who, session, status) in
            [(&ann, "chosen", 404), (&bob, "chosen", 404), (&bob, &own, 404), (&ann, &own, 200), (&bob, &other, 200)]
        {
            assert_eq!(ask(&ping, who, session).await.status, status, "{}: {session}", place.name);
        }
    }
}
