//! The way in at the page: one-time links, the token, both halves of a visit; and what is refused without them.

use serde_json::Value;
use trunkline_tests::client::{Answer, Client, http};
use trunkline_tests::gateway::{ADMIN_TOKEN, Config, Gateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;

const LEGACY: Revision = Revision::R2025_11_25;
const JSON: (&str, &str) = ("content-type", "application/json");

/// What a browser keeps of a visit.
struct Visit {
    cookie: String,
    proof: String,
}

async fn ask(gateway: &Gateway, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    http::exchange(&format!("{}{path}", gateway.admin), method, headers, body).await
}

fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer.headers.get(name).map(|value| value.to_str().expect("it is text"))
}

async fn enter(gateway: &Gateway, origin: &str, body: &str) -> (u16, Option<Visit>) {
    let answer = ask(gateway, "POST", "/ui/enter", &[JSON, ("origin", origin)], body).await;
    let set = header(&answer, "set-cookie");
    let visit = set.map(|value| {
        assert!(value.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{value}");
        let said: Value = serde_json::from_slice(&answer.body).expect("it is JSON");
        let proof = said["proof"].as_str().expect("the other half").to_owned();
        Visit { cookie: value.split(';').next().expect("the pair").to_owned(), proof }
    });
    (answer.status, visit)
}

async fn code(gateway: &Gateway) -> String {
    let said = gateway.command(&["ui", "--json"]).output().await.expect("it runs");
    let link: Value = serde_json::from_slice(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    let url = link["url"].as_str().expect("a link").to_owned();
    url.split_once("/ui#enter=").expect("it leads to the page").1.to_owned()
}

#[tokio::test]
async fn a_link_from_the_control_socket_opens_one_visit_and_no_half_of_it_opens_anything() {
    let up = Upstream::stdio(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&up)).await;
    gateway.look_until("/readyz?verbose", "it is up", |page| page.contains("  ready  ")).await;
    let body = format!("{{\"link\":\"{}\"}}", code(&gateway).await);
    let own = gateway.admin.clone();
    assert_eq!(enter(&gateway, "http://127.0.0.1:1", &body).await.0, 403, "another origin");
    let (status, visit) = enter(&gateway, &own, &body).await;
    let visit = visit.expect("a visit");
    assert_eq!((status, enter(&gateway, &own, &body).await.0), (200, 401), "it is good once");
    let (cookie, proof) = (("cookie", visit.cookie.as_str()), ("x-trunkline-page", visit.proof.as_str()));
    let get = async |headers: &[(&str, &str)]| ask(&gateway, "GET", "/api/v1/status", headers, "").await.status;
    assert_eq!((get(&[cookie, proof]).await, get(&[cookie]).await, get(&[proof]).await), (200, 401, 401));
    let restart = async |origin: &str, headers: &[(&str, &str)]| {
        let all: Vec<_> = headers.iter().copied().chain([JSON, ("origin", origin)]).collect();
        ask(&gateway, "POST", "/api/v1/upstreams/up/restart", &all, "{}").await.status
    };
    assert_eq!(restart("http://127.0.0.1:1", &[cookie, proof]).await, 403, "a page of another origin");
    assert_eq!(restart("null", &[cookie, proof]).await, 403);
    assert_eq!(restart(&own, &[cookie]).await, 401, "a form on another port has the cookie, too");
    assert_eq!(restart(&own, &[cookie, proof]).await, 200);
    let bearer = format!("Bearer {ADMIN_TOKEN}");
    assert_eq!(restart(&own, &[("authorization", &bearer)]).await, 403, "a page with the token is not ours");
    let bare = ask(&gateway, "POST", "/api/v1/upstreams/up/restart", &[cookie, proof, JSON], "{}").await;
    assert_eq!(bare.status, 403, "an order of the page comes with its origin");
    let beside = format!("trunkline_page_{}=other; {}", own.rsplit(':').next().expect("a port"), visit.cookie);
    assert_eq!(get(&[("cookie", &beside), proof]).await, 200, "another server of the host set a cookie of this name");
    let link = async |headers: &[(&str, &str)]| ask(&gateway, "POST", "/api/v1/link", headers, "{}").await;
    let further = link(&[cookie, proof, JSON, ("origin", &own)]).await;
    let said = String::from_utf8_lossy(&further.body).into_owned();
    assert!(further.status == 403 && said.contains("a visit makes no further links"), "{said}");
    assert_eq!(link(&[("authorization", &bearer), JSON]).await.status, 200, "the token makes one");
    let of_another = [cookie, proof, JSON, ("origin", "http://127.0.0.1:1")];
    assert_eq!(ask(&gateway, "POST", "/ui/leave", &of_another, "").await.status, 403);
    let left = ask(&gateway, "POST", "/ui/leave", &[cookie, proof, JSON, ("origin", &own)], "").await;
    assert_eq!((left.status, get(&[cookie, proof]).await), (200, 401));
}

#[tokio::test]
async fn the_token_opens_a_visit_and_the_page_shows_nothing_before() {
    let gateway = Gateway::serve(&Config::new()).await;
    let own = gateway.admin.clone();
    let (status, visit) = enter(&gateway, &own, &format!("{{\"token\":\"{ADMIN_TOKEN}\"}}")).await;
    assert!(status == 200 && visit.is_some());
    for body in ["{\"token\":\"the-token-of-somebody-else\"}", "{\"link\":\"\"}"] {
        assert_eq!(enter(&gateway, &own, body).await.0, 401, "{body}");
    }
    for body in ["", "{}", "{\"token\":\"a\",\"link\":\"b\"}"] {
        assert_eq!(enter(&gateway, &own, body).await.0, 400, "{body}");
    }
    for path in ["/ui", "/ui/page.js", "/ui/page.css", "/ui/icon.svg"] {
        let answer = ask(&gateway, "GET", path, &[], "").await;
        let policy = header(&answer, "content-security-policy").unwrap_or_default();
        assert!(answer.status == 200 && policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{path}");
        let other = ask(&gateway, "GET", path, &[("host", "evil.example")], "").await;
        assert_eq!(other.status, 403, "{path} by a name that is not ours");
    }
}

#[tokio::test]
async fn a_tool_is_called_and_calls_are_watched_over_the_api() {
    let up = Upstream::stdio(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&up)).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    let token = format!("Bearer {ADMIN_TOKEN}");
    let headers = [("authorization", token.as_str()), JSON];
    let post = async |path: &str, body: &str| {
        let answer = ask(&gateway, "POST", path, &headers, body).await;
        (answer.status, serde_json::from_slice::<Value>(&answer.body).unwrap_or_default())
    };
    let before: Value = serde_json::from_slice(&gateway.look("/api/v1/calls").await.body).expect("it is JSON");
    let cursor = before["cursor"].as_str().expect("a cursor").to_owned();
    let path = format!("/api/v1/calls?after={cursor}&wait=20");
    let watching = gateway.look(&path);
    let calling = post("/api/v1/tools/up__echo/call", "{\"arguments\":{\"x\":1}}");
    let (news, (status, done)) = tokio::join!(watching, calling);
    assert_eq!((status, &done["outcome"]), (200, &"ok".into()), "{done}");
    assert!(done["result"]["content"][0]["text"].is_string(), "{done}");
    let mut news: Value = serde_json::from_slice(&news.body).expect("it is JSON");
    if news["ended"].as_array().is_some_and(Vec::is_empty) {
        // It was told of the beginning first.
        let path = format!("/api/v1/calls?after={}&wait=20", news["cursor"].as_str().expect("a cursor"));
        news = serde_json::from_slice(&gateway.look(&path).await.body).expect("it is JSON");
    }
    let ended = news["ended"].as_array().expect("a list");
    assert_eq!((ended.len(), &ended[0]["name"], &ended[0]["principal"]), (1, &"up__echo".into(), &"admin".into()));
    for nonsense in ["nonsense", "{\"arguments\":5}", "{\"arguments\":[1]}"] {
        assert_eq!(post("/api/v1/tools/up__echo/call", nonsense).await.0, 400, "{nonsense}");
    }
    assert_eq!(post("/api/v1/tools/nobody__x/call", "{}").await.1["outcome"], "error");
    let defined: Value = serde_json::from_slice(&gateway.look("/api/v1/tools/up__echo").await.body).expect("JSON");
    assert_eq!(defined["definition"]["name"], "up__echo");
    assert_eq!(gateway.look("/api/v1/tools/nobody__x").await.status, 404);
}
