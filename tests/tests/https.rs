//! Upstreams behind TLS: known ones work, and a certificate that is not right is refused before a request is sent.

#![allow(clippy::disallowed_methods)] // a test's tasks end with its runtime

use std::net::SocketAddr;
use std::sync::Arc;

use trunkline_tests::certificates::{self, Authority, Credentials, Visit};
use trunkline_tests::client::{Client, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::{Answers, Script};
use trunkline_tests::tape::Tape;
use trunkline_tests::upstream::{Upstream, Way};

const LEGACY: Revision = Revision::R2025_11_25;

/// An upstream behind TLS, and a gateway that knows one authority.
struct Stage {
    upstream: Upstream,
    visits: Arc<Tape<Visit>>,
    gateway: Gateway,
    _scratch: Scratch,
}

fn address_of(upstream: &Upstream) -> SocketAddr {
    let url: http::Uri = upstream.url().parse().expect("a URL");
    url.authority().expect("a host and port").as_str().parse().expect("an address")
}

async fn stage(script: Script, host: &str, known: &Authority, credentials: Credentials) -> Stage {
    let upstream = Upstream::http(script).await;
    let (address, visits) = certificates::door(credentials, address_of(&upstream)).await;
    let scratch = Scratch::new();
    let roots = scratch.file("roots.pem", &known.pem);
    let config = Config::new()
        .section(&format!("[upstreams.up]\nurl = \"https://{host}:{}/mcp\"", address.port()))
        .env("SSL_CERT_FILE", &roots.display().to_string());
    let gateway = Gateway::serve(&config).await;
    Stage { upstream, visits, gateway, _scratch: scratch }
}

async fn works(revision: Revision, host: &str) {
    let authority = Authority::new();
    let credentials = authority.certify(host, 2999);
    let script = Script::new("up", revision).with(|script| script.http.answers = Answers::Sse);
    let stage = stage(script, host, &authority, credentials).await;
    for client in [LEGACY, Revision::MODERN] {
        let client = Client::connect(&stage.gateway.reach(), client).await;
        client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
        assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        let call = client.start(tool("up__progress", "{\"steps\":2}").token("\"t\"")).await;
        call.progress(2).await;
        assert_eq!(call.answer().await.text(), "progressed");
    }
    assert!(stage.visits.find(0, |visit| matches!(visit, Visit::Spoke(_)).then_some(())).is_some(), "by TLS");
    assert_eq!(stage.upstream.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_session_upstream_with_a_known_authority_works() {
    works(LEGACY, "127.0.0.1").await;
}

#[tokio::test]
async fn a_stateless_upstream_with_a_known_authority_works() {
    works(Revision::MODERN, "localhost").await;
}

#[tokio::test]
async fn a_server_without_tls_behind_a_secured_address_says_what_to_write() {
    for (way, plain, secured) in [(Way::Http, "http://", "https://"), (Way::WebSocket, "ws://", "wss://")] {
        let upstream = Upstream::start(way, Script::new("up", LEGACY)).await;
        let url = upstream.url().replacen(plain, secured, 1);
        let gateway = Gateway::serve(&Config::new().section(&format!("[upstreams.up]\nurl = \"{url}\""))).await;
        let says = "the server does not speak TLS; where it is not to, begin `url` with http:// or ws://";
        gateway.says(&["up", says]).await;
        gateway.look_until("/readyz?verbose", "the cause is shown", |page| page.contains(says)).await;
    }
}

/// The reason stands in the log, at `/readyz` and in a caller's error, and not one byte of a request was sent.
async fn refused(known: &Authority, credentials: Credentials, reason: &str) {
    let stage = stage(Script::new("up", LEGACY), "127.0.0.1", known, credentials).await;
    stage.visits.wait("the gateway dials", |visit| Some(visit.clone())).await;
    let line = stage.gateway.says(&["up", "certificate", reason]).await;
    assert!(line.contains("127.0.0.1"), "it names the host: {line}");
    let page = stage.gateway.look("/readyz?verbose").await;
    let page = String::from_utf8_lossy(&page.body).into_owned();
    assert!(page.contains("certificate") && page.contains(reason), "{page}");
    for revision in [LEGACY, Revision::MODERN] {
        let client = Client::connect(&stage.gateway.reach(), revision).await;
        assert_eq!(client.tools().await, Vec::<String>::new(), "nothing of it is listed");
    }
    // Dialled more than once by now, or not: no connection came to a request.
    let spoke = stage.visits.find(0, |visit| (*visit != Visit::Refused).then(|| visit.clone()));
    assert_eq!(spoke, None, "nothing was sent");
    let frames = stage.upstream.seen().await.into_iter().filter(|event| format!("{event:?}").contains("Frame"));
    assert_eq!(frames.count(), 0);
    let stray = stage.gateway.stderr.find(0, |line| line.contains("rustls").then(|| line.clone()));
    assert_eq!(stray, None, "it is told once, with its upstream's name");
}

#[tokio::test]
async fn an_unknown_authority_is_refused() {
    refused(&Authority::new(), Authority::new().certify("127.0.0.1", 2999), "signed by nobody known here").await;
}

#[tokio::test]
async fn a_self_signed_certificate_is_refused() {
    refused(&Authority::new(), Credentials::self_signed("127.0.0.1"), "signed by nobody known here").await;
}

#[tokio::test]
async fn a_certificate_for_another_host_is_refused() {
    let authority = Authority::new();
    let credentials = authority.certify("elsewhere.example", 2999);
    refused(&authority, credentials, "not that of this host").await;
}

#[tokio::test]
async fn an_expired_certificate_is_refused() {
    let authority = Authority::new();
    let credentials = authority.certify("127.0.0.1", 2020);
    refused(&authority, credentials, "expired").await;
}

/// A gateway whose upstream is named by this section, at an address that wants TLS.
async fn told(keys: &str, credentials: Credentials, asks: Option<&Authority>) -> (Upstream, Gateway) {
    let upstream = Upstream::http(Script::new("up", LEGACY)).await;
    let (address, _visits) = certificates::door_asking(credentials, asks, address_of(&upstream)).await;
    let section =
        format!("[upstreams.up]\nurl = \"https://127.0.0.1:{}/mcp\"\nstart_wait = \"50s\"\n{keys}", address.port());
    (upstream, Gateway::serve(&Config::new().section(&section)).await)
}

async fn is_served(gateway: &Gateway) {
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
}

#[tokio::test]
async fn an_authority_and_a_certificate_of_ones_own_are_named_in_the_configuration() {
    let (scratch, authority) = (Scratch::new(), Authority::new());
    let ca = scratch.file("ca.pem", &authority.pem).display().to_string();
    let (cert, key) = authority.certify_client("trunkline").pem();
    let (cert, key) = (scratch.file("cert.pem", &cert), scratch.file("key.pem", &key));
    let tls = format!("tls = {{ ca = \"{ca}\" }}");
    let (_upstream, gateway) = told(&tls, authority.certify("127.0.0.1", 2999), None).await;
    is_served(&gateway).await;
    let both = format!("tls = {{ ca = \"{ca}\", cert = \"{}\", key = \"{}\" }}", cert.display(), key.display());
    let (_upstream, gateway) = told(&both, authority.certify("127.0.0.1", 2999), Some(&authority)).await;
    is_served(&gateway).await;
    let (_upstream, gateway) = told(&tls, authority.certify("127.0.0.1", 2999), Some(&authority)).await;
    let is_shown = |page: &str| page.contains("CertificateRequired") || page.contains("certificate required");
    gateway.look_until("/readyz?verbose", "the cause is shown", is_shown).await;
}

#[tokio::test]
async fn a_pair_that_does_not_fit_for_a_while_is_not_taken_up_and_the_next_that_does_is() {
    let (scratch, authority) = (Scratch::new(), Authority::new());
    let ca = scratch.file("ca.pem", &authority.pem);
    let (cert, key) = authority.certify_client("trunkline").pem();
    let (cert, key) = (scratch.file("cert.pem", &cert), scratch.file("key.pem", &key));
    let tls =
        format!("tls = {{ ca = \"{}\", cert = \"{}\", key = \"{}\" }}", ca.display(), cert.display(), key.display());
    let (_upstream, gateway) = told(&tls, authority.certify("127.0.0.1", 2999), Some(&authority)).await;
    is_served(&gateway).await;
    let restart = async || {
        let done = gateway.command(&["restart", "up"]).output().await.expect("it runs");
        assert!(done.status.success(), "{done:?}");
        is_served(&gateway).await;
    };
    let (next, its_key) = authority.certify_client("renewed").pem();
    let _same = scratch.file("key.pem", &its_key);
    restart().await;
    gateway.says(&["the files of `tls` cannot be used", "is not that of the certificate"]).await;
    let _same = scratch.file("cert.pem", &next);
    restart().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_certificate_says_what_to_do() {
    let (scratch, authority) = (Scratch::new(), Authority::new());
    let ca = scratch.file("ca.pem", &authority.pem).display().to_string();
    let known = format!("tls = {{ ca = \"{ca}\" }}");
    for (keys, credentials, says) in [
        ("", authority.certify("127.0.0.1", 2999), "under `tls.ca`"),
        (&*known, authority.certify("127.0.0.1", 2020), "renew it at the server"),
        (&*known, authority.certify("elsewhere.example", 2999), "write the name of its certificate in `url`"),
    ] {
        let (_upstream, gateway) = told(keys, credentials, None).await;
        gateway.look_until("/readyz?verbose", "it says what to do", |page| page.contains(says)).await;
    }
}

#[tokio::test]
async fn an_authority_that_comes_later_is_picked_up_and_half_a_file_says_so() {
    let (scratch, authority) = (Scratch::new(), Authority::new());
    let other = Authority::new();
    let ca = scratch.file("ca.pem", &other.pem);
    let keys = format!("tls = {{ ca = \"{}\" }}\nrestart = {{ backoff_max = \"1s\" }}", ca.display());
    let (_upstream, gateway) = told(&keys, authority.certify("127.0.0.1", 2999), None).await;
    gateway.look_until("/readyz?verbose", "it is refused", |page| page.contains("signed by nobody known here")).await;
    let _same = scratch.file("ca.pem", &authority.pem[..authority.pem.len() / 2]);
    gateway.look_until("/readyz?verbose", "half a file is told", |page| page.contains("no whole certificate")).await;
    let _same = scratch.file("ca.pem", &authority.pem);
    is_served(&gateway).await;
}
