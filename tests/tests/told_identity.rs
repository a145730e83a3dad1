//! Upstreams that are told whose call it is: of each call by itself, never of the gateway's own requests, and by no client.

use trunkline_tests::client::{Client, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::What;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::{Upstream, Way};

const LEGACY: Revision = Revision::R2025_11_25;
const MODERN: Revision = Revision::MODERN;
const KEY: &str = "com.example/principal";
const HEADER: &str = "x-principal";
const BOTH: &str = "identity = { header = \"X-Principal\", meta = \"com.example/principal\" }";
const META: &str = "identity = { meta = \"com.example/principal\" }";
const TOKENS: &str = concat!(
    "[[auth.tokens]]\nname = \"ann\"\ntoken = \"ann-has-a-long-token\"\n",
    "[[auth.tokens]]\nname = \"bob\"\ntoken = \"bob-has-a-long-token\"\n",
);

/// A client that says in every request that it is somebody else.
async fn forging(gateway: &Gateway, name: Option<&str>, revision: Revision) -> Client {
    let mut client = Client::open(&gateway.reach(), revision).await;
    if let Some(name) = name {
        client.http().always("authorization", &format!("Bearer {name}-has-a-long-token"));
    }
    client.http().always(HEADER, "token:root");
    if !revision.is_modern() {
        client.greet().await;
    }
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    client
}

/// A call with a member of `_meta` that names somebody else, and one that it has a right to.
async fn calls(client: &Client, nonce: &str) {
    let call = tool("up__echo", &format!("{{\"nonce\":\"{nonce}\"}}"));
    client.request(call.meta(KEY, "\"token:root\"").meta("com.example/note", "\"kept\"")).await.text();
}

/// What an upstream was told of each of its requests: of the call with this nonce, and of all others together.
async fn told(up: &Upstream, nonce: &str) -> ((Vec<String>, Vec<String>), Vec<String>) {
    up.ran(nonce).await;
    let (mut of_call, mut of_others) = (None, Vec::new());
    for event in up.seen().await {
        let (raw, headers) = match event.what {
            What::Frame { raw, headers } => (raw, headers),
            What::Visit { headers, .. } => (String::new(), headers),
            _ => continue,
        };
        let of_headers: Vec<String> =
            headers.into_iter().filter(|(name, _)| name == HEADER).map(|(_, value)| value).collect();
        if raw.contains("\"tools/call\"") {
            if raw.contains(&format!("\"{nonce}\"")) {
                assert!(raw.contains("\"com.example/note\":\"kept\""), "{raw}");
                // Doubled members would leave one of them in a parsed object.
                let found = raw.matches(KEY).count();
                let frame: serde_json::Value = serde_json::from_str(&raw).expect("JSON");
                let meta = frame["params"]["_meta"][KEY].as_str().map(str::to_owned);
                assert_eq!(found, usize::from(meta.is_some()), "{raw}");
                assert!(of_call.replace((of_headers, meta.into_iter().collect())).is_none(), "it came once");
            }
        } else {
            of_others.extend(of_headers);
            of_others.extend(raw.contains(KEY).then_some(raw));
        }
    }
    (of_call.expect("the call came"), of_others)
}

async fn over(way: Way, revision: Revision, client_revision: Revision) {
    let keys = if matches!(way, Way::Http | Way::Sse) { BOTH } else { META };
    let up = Upstream::start(way, Script::new("up", revision)).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&up, keys).section(TOKENS)).await;
    let what = format!("{client_revision} to {revision} over {way:?}");
    for name in ["ann", "bob"] {
        let client = forging(&gateway, Some(name), client_revision).await;
        calls(&client, name).await;
        let ((headers, meta), others) = told(&up, name).await;
        let principal = vec![format!("token:{name}")];
        let in_headers = if keys == BOTH { principal.clone() } else { Vec::new() };
        assert_eq!((headers, meta), (in_headers, principal), "{what}");
        assert_eq!(others, Vec::<String>::new(), "{what}: the gateway's own requests are of nobody");
    }
}

#[tokio::test]
async fn each_call_names_its_own_principal_over_http_whatever_clients_say() {
    over(Way::Http, LEGACY, LEGACY).await;
    over(Way::Http, MODERN, MODERN).await;
    over(Way::Http, MODERN, LEGACY).await;
}

#[tokio::test]
async fn each_call_names_its_own_principal_on_a_connection_that_all_have_in_common() {
    over(Way::Stdio, LEGACY, LEGACY).await;
    over(Way::Stdio, MODERN, MODERN).await;
    over(Way::Sse, LEGACY, LEGACY).await;
    over(Way::WebSocket, LEGACY, MODERN).await;
}

#[tokio::test]
async fn without_credentials_nobody_is_named_and_what_a_client_says_is_taken_out() {
    let up = Upstream::http(Script::new("up", MODERN)).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&up, BOTH)).await;
    calls(&forging(&gateway, None, MODERN).await, "one").await;
    assert_eq!(told(&up, "one").await, ((Vec::new(), Vec::new()), Vec::new()));
}

#[tokio::test]
async fn an_upstream_that_is_not_to_be_told_is_not() {
    let up = Upstream::http(Script::new("up", MODERN)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&up).section(TOKENS)).await;
    let client = forging(&gateway, Some("ann"), MODERN).await;
    client.request(tool("up__echo", "{\"nonce\":\"one\"}").meta("com.example/note", "\"kept\"")).await.text();
    assert_eq!(told(&up, "one").await, ((Vec::new(), Vec::new()), Vec::new()));
}
