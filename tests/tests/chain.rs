//! A gateway that would be its own upstream: refused, however long the way round is.

#![allow(clippy::disallowed_methods)] // a test's tasks end with its runtime

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use trunkline_tests::client::{Client, http};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::process::{GATEWAY, beside};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within;

const REVISION: Revision = Revision::R2025_11_25;

async fn up() -> Upstream {
    Upstream::stdio(Script::new("up", REVISION)).await
}

/// The tools that a client of both eras sees, once those of `up` are there.
async fn tools(gateway: &Gateway) -> Vec<String> {
    let mut all = Vec::new();
    for revision in [REVISION, Revision::MODERN] {
        let client = Client::connect(&gateway.reach(), revision).await;
        all.extend(client.tools_until("the other upstream is there", |tools| tools.contains(&"up__echo".into())).await);
    }
    all
}

#[tokio::test]
async fn its_own_endpoint_is_no_upstream() {
    let up = up().await;
    let config = Config::new().upstream(&up).section("[upstreams.me]\nurl = \"http://127.0.0.1:$PORT/mcp\"");
    let gateway = Gateway::serve(&config).await;
    gateway.says(&["me", "508", "is its own upstream"]).await;
    let tools = tools(&gateway).await;
    assert!(tools.iter().all(|tool| !tool.starts_with("me__")), "{tools:?}");
}

#[tokio::test]
async fn a_child_with_its_own_configuration_is_no_upstream() {
    let up = up().await;
    let program = beside(GATEWAY).display().to_string();
    let me = format!("[upstreams.me]\ncommand = \"{program}\"\nargs = [\"stdio\", \"--config\", \"$FILE\"]");
    let gateway = Gateway::serve(&Config::new().upstream(&up).section(&me)).await;
    gateway.says(&["me", "was started as an upstream of a gateway"]).await;
    let tools = tools(&gateway).await;
    assert!(tools.iter().all(|tool| !tool.starts_with("me__")), "{tools:?}");
    let begun = up.started(0).await;
    let second = up.events.find(0, |event| (event.instance > 0).then_some(()));
    assert!(second.is_none(), "the upstreams beside it run once: {begun:?}");
}

/// Until it is known where connections lead, they end here, or are held with what was sent on them.
struct Door {
    port: u16,
    leads: watch::Sender<Option<u16>>,
    /// Whether a request was held.
    holds: watch::Receiver<bool>,
}

async fn door(is_patient: bool) -> Door {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("a port").port();
    let (leads, opened) = watch::channel(None);
    let (held, holds) = watch::channel(false);
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            if !is_patient && opened.borrow().is_none() {
                continue;
            }
            let (mut opened, held) = (opened.clone(), held.clone());
            tokio::spawn(async move {
                let mut request = vec![0; 16 * 1024];
                let length = near.read(&mut request).await.unwrap_or_default();
                held.send_replace(true);
                let Ok(port) = opened.wait_for(Option::is_some).await.map(|port| port.expect("it was waited for"))
                else {
                    return;
                };
                if let Ok(mut far) = TcpStream::connect(("127.0.0.1", port)).await
                    && far.write_all(&request[..length]).await.is_ok()
                {
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                }
            });
        }
    });
    Door { port, leads, holds }
}

impl Door {
    /// It leads there from now on.
    fn open(&self, gateway: &Gateway) {
        let port = gateway.url.split(':').nth(2).and_then(|rest| rest.split('/').next()?.parse().ok());
        self.leads.send_replace(Some(port.expect("a port")));
    }

    /// The configuration of the gateway below, which has the one above as its upstream, by way of the door.
    fn back(&self, beside: &Upstream) -> Config {
        let port = self.port;
        let restart = "restart = { backoff_min = \"100ms\", backoff_max = \"500ms\", window = \"1s\" }";
        Config::new()
            .upstream(beside)
            .section(&format!("[upstreams.back]\nurl = \"http://127.0.0.1:{port}/mcp\"\n{restart}"))
    }

    /// The configuration of the gateway above, as it should be.
    fn end(&self, beside: &Upstream) -> Config {
        let hosts = format!("allowed_hosts = [\"127.0.0.1:{}\", \"127.0.0.1:$PORT\"]", self.port);
        Config::new().upstream(beside).server(&hosts)
    }

    /// The same, with the one below as its upstream.
    fn on(&self, beside: &Upstream, below: &Gateway) -> Config {
        self.end(beside).section(&format!("[upstreams.below]\nurl = \"{}\"", below.url))
    }
}

#[tokio::test]
async fn two_gateways_are_not_each_others_upstream() {
    let (up, other) = (up().await, up().await);
    let door = door(false).await;
    let below = Gateway::serve(&door.back(&other)).await;
    let above = Gateway::serve(&door.on(&up, &below)).await;
    let client = Client::connect(&above.reach(), REVISION).await;
    client.tools_until("what is below is seen", |tools| tools.contains(&"below__up__echo".into())).await;
    door.open(&above);
    // Both may find it out, whoever's request comes first.
    tokio::select! {
        _ = below.says(&["back", "508", "is its own upstream"]) => {}
        _ = above.says(&["below", "508", "is its own upstream"]) => {}
    }
    let tools = client.tools().await;
    assert!(tools.iter().all(|tool| !tool.contains("back__")), "{tools:?}");
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}", "what leads nowhere back goes on");
}

#[tokio::test]
async fn two_that_meet_at_once_both_find_it_out_and_once_one_is_mended_the_other_recovers() {
    let (up, other) = (up().await, up().await);
    let mut door = door(true).await;
    let below = Gateway::serve(&door.back(&other)).await;
    // It has asked the one above, and knows nothing of it yet.
    within("a request is on its way", door.holds.wait_for(|holds| *holds)).await.expect("the door stands");
    let above = Gateway::serve(&door.on(&up, &below)).await;
    let client = Client::connect(&above.reach(), REVISION).await;
    client.tools_until("what is below is seen", |tools| tools.contains(&"below__up__echo".into())).await;
    door.open(&above);
    below.says(&["back", "508", "is its own upstream"]).await;
    above.says(&["below", "508", "is its own upstream"]).await;
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}", "what leads nowhere back goes on");
    let what_to_do = |text: &str| text.contains("restart that gateway");
    below.look_until("/readyz?verbose", "it says what to do", what_to_do).await;
    above.stop().await;
    let mended = Gateway::serve(&door.end(&up)).await;
    door.open(&mended);
    let client = Client::connect(&below.reach(), REVISION).await;
    client.tools_until("the other one is seen", |tools| tools.contains(&"back__up__echo".into())).await;
}

/// What a request with this header is answered.
async fn via(gateway: &Gateway, name: &str) -> trunkline_tests::client::Answer {
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("trunkline-via", name),
    ];
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    http::exchange(&gateway.url, "POST", &headers, body).await
}

#[tokio::test]
async fn what_one_client_says_of_its_way_changes_nothing_for_another() {
    let up = Upstream::http(Script::new("up", REVISION)).await;
    let below = Gateway::serve(&Config::new().upstream(&up)).await;
    // What is below it is told its name, and may tell anybody.
    let (_, headers) = up.received("initialize").await;
    let name = headers.iter().find(|(name, _)| name == "trunkline-via").expect("it says whose request it is").1.clone();
    let above = Gateway::serve(&Config::new().section(&format!("[upstreams.below]\nurl = \"{}\"", below.url))).await;
    let client = Client::connect(&above.reach(), REVISION).await;
    client.tools_until("what is below is seen", |tools| tools.contains(&"below__up__echo".into())).await;
    let nobody = "0".repeat(32);
    let told = via(&above, &nobody).await;
    let names_of_above = told.header("trunkline-leads-to").expect("it says what it leads to");
    let of_above = names_of_above.split(',').next().expect("its own first").to_owned();
    // What the one below keeps of a client's word would have it refuse the one above, which says the same name with each request.
    let said = [(&above, &name, 508), (&above, &nobody, 200), (&below, &of_above, 200), (&below, &nobody, 200)];
    for (number, (gateway, name, status)) in said.into_iter().enumerate() {
        let answer = via(gateway, name).await;
        let arguments = format!("{{\"a\":{number}}}");
        assert_eq!(client.call("below__up__echo", &arguments).await.text(), arguments);
        assert_eq!(answer.status, status, "one that comes from below would go in a circle");
        assert!(!via(gateway, &nobody).await.header("trunkline-leads-to").is_some_and(|all| all.contains(&nobody)));
    }
    // It is met anew, in a session whose headers are made now: what the one above keeps of a client's word would be in them.
    let restarted = within("it is restarted", above.command(&["restart", "below"]).output()).await.expect("it runs");
    let said = String::from_utf8_lossy(&restarted.stdout).into_owned() + &String::from_utf8_lossy(&restarted.stderr);
    assert!(restarted.status.success() && said.contains("below is ready"), "{said}");
    // The one below was asked anew whether it leads back, and does not.
    for number in 0..20 {
        let arguments = format!("{{\"b\":{number}}}");
        assert_eq!(client.call("below__up__echo", &arguments).await.text(), arguments);
        let other = Client::connect(&above.reach(), Revision::MODERN).await;
        assert!(other.tools().await.contains(&"below__up__echo".into()));
    }
    let page = String::from_utf8_lossy(&above.look("/readyz?verbose").await.body).into_owned();
    assert!(page.contains("  ready  ") && !page.contains("508"), "{page}");
}
