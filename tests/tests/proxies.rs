//! Upstreams by way of an HTTP proxy: as the configuration says, as the environment says, and never for this machine.

#![allow(clippy::disallowed_methods)] // a test's tasks end with its runtime

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use trunkline_tests::certificates::{self, Authority, Visit};
use trunkline_tests::client::Client;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::tape::Tape;
use trunkline_tests::upstream::{Upstream, Way};

const LEGACY: Revision = Revision::R2025_11_25;
/// A host that no name service knows.
const FAR: &str = "upstream.invalid";

/// A proxy that leads everybody to one address, whatever is asked for; what is asked for stands on the tape.
async fn proxy(leads_to: Option<SocketAddr>) -> (SocketAddr, Arc<Tape<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let (address, asked) = (listener.local_addr().expect("an address"), Arc::new(Tape::default()));
    let tape = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut outside, _)) = listener.accept().await {
            let tape = tape.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = outside.read_u8().await else { return };
                    head.push(byte);
                }
                tape.push(String::from_utf8_lossy(&head).into_owned());
                let Some(leads_to) = leads_to else {
                    return drop(outside.write_all(b"HTTP/1.1 403 Not there\r\n\r\n").await);
                };
                let mut inside = TcpStream::connect(leads_to).await.expect("the upstream listens");
                if outside.write_all(b"HTTP/1.1 200 Established\r\n\r\n").await.is_ok() {
                    // A connection that breaks is the peer's affair.
                    let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
                }
            });
        }
    });
    (address, asked)
}

fn far(keys: &str) -> String {
    format!("[upstreams.up]\nurl = \"http://{FAR}:8931/mcp\"\nstart_wait = \"50s\"\n{keys}")
}

async fn is_served(gateway: &Gateway) {
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
}

#[tokio::test]
async fn the_proxy_that_is_configured_leads_to_the_upstream_and_its_password_is_shown_nowhere() {
    let upstream = Upstream::http(Script::new("up", LEGACY)).await;
    let (proxy, asked) = proxy(Some(upstream.address())).await;
    let gateway =
        Gateway::serve(&Config::new().section(&far(&format!("proxy = \"http://ann:canary-word@{proxy}\"")))).await;
    is_served(&gateway).await;
    let head = asked.all().remove(0);
    assert!(head.starts_with(&format!("CONNECT {FAR}:8931 HTTP/1.1\r\n")), "{head}");
    assert!(head.contains("Proxy-Authorization: Basic YW5uOmNhbmFyeS13b3Jk\r\n"), "{head}");
    let shown = gateway.command(&["config", "show"]).output().await.expect("it runs");
    let said = format!("{}{:?}", String::from_utf8_lossy(&shown.stdout), gateway.stderr.all());
    assert!(!said.contains("canary-word") && !said.contains("YW5uOmNhbmFyeS13b3Jk"), "{said}");
}

#[tokio::test]
async fn the_environment_names_the_proxy_but_for_this_machine_and_what_is_exempt() {
    let upstream = Upstream::http(Script::new("up", LEGACY)).await;
    let (proxy, asked) = proxy(Some(upstream.address())).await;
    let near = Upstream::http(Script::new("near", LEGACY)).await;
    let exempt = "[upstreams.exempt]\nurl = \"http://exempt.invalid:1/mcp\"";
    let config = Config::new().section(&far("")).upstream(&near).section(exempt);
    let config = config.env("HTTP_PROXY", &format!("http://{proxy}")).env("NO_PROXY", ".example,exempt.invalid");
    let gateway = Gateway::serve(&config).await;
    is_served(&gateway).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("the near one's tools are listed", |tools| tools.contains(&"near__echo".into())).await;
    let is_shown = |page: &str| page.contains("DNS lookup of exempt.invalid failed");
    gateway.look_until("/readyz?verbose", "the exempt one is looked up", is_shown).await;
    let others: Vec<_> = asked.all().into_iter().filter(|head| !head.contains(FAR)).collect();
    assert_eq!(others, [""; 0]);
}

#[tokio::test]
async fn a_proxy_that_refuses_or_is_away_says_what_to_do_and_off_goes_straight() {
    let (refusing, _asked) = proxy(None).await;
    let away = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    for (keys, says) in [
        (format!("proxy = \"http://{refusing}\""), "have the proxy allow this host and port"),
        (format!("proxy = \"http://{away}\""), "(the proxy)"),
        ("proxy = \"off\"".to_owned(), "DNS lookup of upstream.invalid failed"),
    ] {
        let config = Config::new().section(&far(&keys)).env("HTTP_PROXY", &format!("http://{refusing}"));
        let gateway = Gateway::serve(&config).await;
        gateway.look_until("/readyz?verbose", "the cause is shown", |page| page.contains(says)).await;
    }
}

/// The connections that are kept for all messages, within TLS: straight, and by way of a proxy, which sees nothing of what is in them.
#[tokio::test]
async fn a_websocket_and_a_stream_of_events_are_reached_within_tls_and_by_way_of_a_proxy() {
    for way in [Way::WebSocket, Way::Sse] {
        for is_far in [false, true] {
            for is_known in [true, false] {
                within_tls(way, is_far, is_known).await;
            }
        }
    }
}

async fn within_tls(way: Way, is_far: bool, is_known: bool) {
    let (scratch, authority) = (Scratch::new(), Authority::new());
    let upstream = Upstream::start(way, Script::new("up", LEGACY)).await;
    let host = if is_far { FAR } else { "127.0.0.1" };
    let (door, visits) = certificates::door(authority.certify(host, 2999), upstream.address()).await;
    let (proxy, asked) = proxy(Some(door)).await;
    let (at, by) = match is_far {
        true => (format!("{FAR}:8931"), format!("proxy = \"http://{proxy}\"\n")),
        false => (door.to_string(), String::new()),
    };
    let ca = scratch.file("ca.pem", &authority.pem).display().to_string();
    let tls = if is_known { format!("tls = {{ ca = \"{ca}\" }}\n") } else { String::new() };
    let reached = match way {
        Way::Sse => format!("url = \"https://{at}/sse\"\ntransport = \"sse\"\n"),
        _ => format!("url = \"wss://{at}/ws\"\n"),
    };
    let section = format!("[upstreams.up]\nstart_wait = \"50s\"\n{reached}{by}{tls}");
    let gateway = Gateway::serve(&Config::new().section(&section)).await;
    if is_known {
        is_served(&gateway).await;
    } else {
        let is_told = |page: &str| page.contains("certificate") && page.contains("signed by nobody known here");
        gateway.look_until("/readyz?verbose", "the certificate is refused", is_told).await;
    }
    let spoke = visits.find(0, |visit| matches!(visit, Visit::Spoke(_)).then_some(()));
    assert_eq!(spoke.is_some(), is_known, "{reached}: nothing is sent to one that is not known");
    let asked = asked.all();
    assert_eq!(!asked.is_empty(), is_far, "{reached}");
    assert!(asked.iter().all(|head| head.starts_with(&format!("CONNECT {FAR}:8931 HTTP/1.1\r\n"))), "{asked:?}");
}
