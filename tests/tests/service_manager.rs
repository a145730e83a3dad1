//! What systemd is told of the gateway, by a manager of the test's own behind `NOTIFY_SOCKET`.

use std::path::Path;

use tokio::net::UnixDatagram;
use trunkline_tests::client::Client;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::peers::systemd;
use trunkline_tests::process::beside;
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within;

/// The manager, and what it has heard so far.
struct Manager {
    socket: UnixDatagram,
    heard: Vec<String>,
}

impl Manager {
    fn at(path: &Path) -> Manager {
        Manager { socket: UnixDatagram::bind(path).expect("the folder is new"), heard: Vec::new() }
    }

    /// Waits for a message that begins so, and that none of the earlier ones was; where it stands among all.
    async fn hears(&mut self, start: &str) -> usize {
        let mut buffer = [0; 4096];
        within(start, async {
            loop {
                let length = self.socket.recv(&mut buffer).await.expect("the socket is open");
                self.heard.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
                if self.heard.last().is_some_and(|text| text.starts_with(start)) {
                    return self.heard.len() - 1;
                }
            }
        })
        .await
    }
}

#[tokio::test]
async fn the_service_manager_is_told_of_start_reload_and_end_and_given_signs_of_life() {
    let scratch = Scratch::new();
    let path = scratch.path().join("notify");
    let mut manager = Manager::at(&path);
    let one = Upstream::http(Script::new("one", Revision::R2025_11_25)).await;
    let base = Config::new().upstream(&one);
    let config = base.clone().env("NOTIFY_SOCKET", &path.display().to_string()).env("WATCHDOG_USEC", "200000");
    let gateway = Gateway::serve(&config).await;
    manager.hears("READY=1").await;
    // Its endpoint is open by then.
    let client = Client::connect(&gateway.reach(), Revision::R2025_11_25).await;
    client.tools_until("it is up", |tools| !tools.is_empty()).await;
    let tools = manager.hears("STATUS=1 of 1 server ready").await;
    assert!(manager.heard[tools].contains("tools"), "{:?}", manager.heard);
    for _ in 0..3 {
        manager.hears("WATCHDOG=1").await;
    }

    gateway.configure(&config.clone().server("[log]\nlevel = \"debug\""));
    let reloading = manager.hears("RELOADING=1\nMONOTONIC_USEC=").await;
    let at: u64 = manager.heard[reloading].rsplit('=').next().and_then(|text| text.parse().ok()).expect("a number");
    assert!(at > 0, "{:?}", manager.heard[reloading]);
    let ready = manager.hears("READY=1").await;
    assert!(reloading < ready);
    // One that is refused ends the reload as well.
    std::fs::write(&gateway.file, "[nonsense]\n").expect("the file is ours");
    manager.hears("RELOADING=1").await;
    manager.hears("READY=1").await;
    gateway.says(&["configuration not reloaded"]).await;

    assert!(gateway.stop().await.success());
    let stopping = manager.hears("STOPPING=1\nEXTEND_TIMEOUT_USEC=").await;
    let within: u64 = manager.heard[stopping].rsplit('=').next().and_then(|text| text.parse().ok()).expect("a number");
    assert!(within > 25_000_000, "more than the calls in progress are given: {within}");
}

#[tokio::test]
async fn a_service_manager_that_cannot_be_reached_is_named_and_the_gateway_serves() {
    let gateway = Gateway::serve(&Config::new().env("NOTIFY_SOCKET", "/nowhere/notify")).await;
    gateway.says(&["cannot reach the service manager", "NOTIFY_SOCKET"]).await;
    Client::connect(&gateway.reach(), Revision::R2025_11_25).await;
}

/// The unit of this name in the docs.
fn unit(name: &str) -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/operations.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let begin = format!("```ini\n# /etc/systemd/system/{name}\n");
    let text = page.split(&begin).nth(1).and_then(|rest| rest.split("```").next());
    text.unwrap_or_else(|| panic!("the page has no {name}")).to_owned()
}

#[test]
fn systemd_takes_the_units_of_the_docs() {
    let installed = "/usr/local/bin/trunkline";
    let service = unit("trunkline.service");
    assert!(service.contains(&format!("ExecStart={installed} serve --config ")), "{service}");
    let ours = beside("trunkline-under-test").display().to_string();
    let (service, socket) = (service.replace(installed, &ours), unit("trunkline.socket"));
    let Some(said) = systemd::complaints(&[("trunkline.service", &service), ("trunkline.socket", &socket)]) else {
        return;
    };
    assert_eq!(said, "");
    // It would say so.
    let misspelt = service.replace("WatchdogSec", "WatchdogSecs");
    let said = systemd::complaints(&[("trunkline.service", &misspelt)]).expect("it is installed");
    assert!(said.contains("WatchdogSecs"), "{said}");
}
