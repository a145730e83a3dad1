//! A gateway that would be its own upstream: refused, however long the way round is.

#![allow(clippy::disallowed_methods)] // a test's tasks end with its runtime

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use trunkline_tests::client::Client;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::process::beside;
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
    gateway.says(&["me", "508", "upstream of its own"]).await;
    let tools = tools(&gateway).await;
    assert!(tools.iter().all(|tool| !tool.starts_with("me__")), "{tools:?}");
}

#[tokio::test]
async fn a_child_with_its_own_configuration_is_no_upstream() {
    let up = up().await;
    let program = beside("trunkline-under-test").display().to_string();
    let me = format!("[upstreams.me]\ncommand = \"{program}\"\nargs = [\"stdio\", \"--config\", \"$FILE\"]");
    let gateway = Gateway::serve(&Config::new().upstream(&up).section(&me)).await;
    gateway.says(&["me", "has started this one as its upstream"]).await;
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
        _ = below.says(&["back", "508", "upstream of its own"]) => {}
        _ = above.says(&["below", "508", "upstream of its own"]) => {}
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
    below.says(&["back", "508", "upstream of its own"]).await;
    above.says(&["below", "508", "upstream of its own"]).await;
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}", "what leads nowhere back goes on");
    let what_to_do = |text: &str| text.contains("restart that gateway");
    below.look_until("/readyz?verbose", "it says what to do", what_to_do).await;
    above.stop().await;
    let mended = Gateway::serve(&door.end(&up)).await;
    door.open(&mended);
    let client = Client::connect(&below.reach(), REVISION).await;
    client.tools_until("the other one is seen", |tools| tools.contains(&"back__up__echo".into())).await;
}
