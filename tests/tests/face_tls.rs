//! Clients over TLS: both versions, certificates of clients, files that are renewed while the gateway runs, and files that are wrong.

#![allow(clippy::disallowed_methods)] // a test's tasks end with its runtime

use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use trunkline_tests::certificates::Authority;
use trunkline_tests::gateway::{Config, Gateway, free_port};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{until, within};

const GREETING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// The files of a gateway.
pub(crate) struct Files {
    scratch: Scratch,
    pub(crate) authority: Authority,
}

impl Files {
    pub(crate) fn new() -> Files {
        let files = Files { scratch: Scratch::new(), authority: Authority::new() };
        files.renew("127.0.0.1", 2999);
        files
    }

    /// Puts another certificate there, and its key.
    pub(crate) fn renew(&self, name: &str, until: i32) {
        let (cert, key) = self.authority.certify(name, until).pem();
        self.put("key.pem", &key);
        self.put("cert.pem", &cert);
    }

    fn put(&self, name: &str, text: &str) -> PathBuf {
        self.scratch.file(name, text)
    }

    /// As a key of a listener.
    fn key(&self) -> String {
        let path = |name: &str| self.scratch.path().join(name).display().to_string();
        format!("tls = {{ cert = \"{}\", key = \"{}\" }}\n", path("cert.pem"), path("key.pem"))
    }

    /// As the section of the only listener.
    pub(crate) fn section(&self, more: &str) -> String {
        let path = |name: &str| self.scratch.path().join(name).display().to_string();
        format!("[server.tls]\ncert = \"{}\"\nkey = \"{}\"\n{more}", path("cert.pem"), path("key.pem"))
    }
}

/// What a client brings.
struct Visitor<'a> {
    files: &'a Files,
    version: &'static SupportedProtocolVersion,
    /// Certificate and key of its own.
    own: Option<(String, String)>,
    authorization: &'a str,
}

impl<'a> Visitor<'a> {
    fn of(files: &'a Files) -> Visitor<'a> {
        Visitor { files, version: &rustls::version::TLS13, own: None, authorization: "" }
    }

    /// The status of a greeting, and the certificate that was shown; nothing where there was no answer.
    async fn greets(&self, gateway: &Gateway) -> Option<(u16, Vec<u8>)> {
        self.greets_at(gateway.url.trim_start_matches("https://").trim_end_matches("/mcp")).await
    }

    async fn greets_at(&self, address: &str) -> Option<(u16, Vec<u8>)> {
        let (answer, shown) = self.asks(address).await?;
        Some((answer.split(' ').nth(1)?.parse().ok()?, shown))
    }

    /// The whole answer to a greeting, and that certificate.
    async fn asks(&self, address: &str) -> Option<(String, Vec<u8>)> {
        let mut roots = RootCertStore::empty();
        let known = CertificateDer::from_pem_slice(self.files.authority.pem.as_bytes()).expect("it is PEM");
        roots.add(known).expect("it is an authority");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[self.version])
            .expect("ring has it")
            .with_root_certificates(roots);
        let config = match &self.own {
            None => builder.with_no_client_auth(),
            Some((cert, key)) => {
                let cert = CertificateDer::from_pem_slice(cert.as_bytes()).expect("it is PEM");
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("it is PEM");
                builder.with_client_auth_cert(vec![cert], key).expect("they fit")
            }
        };
        let stream = TcpStream::connect(address).await.expect("somebody listens");
        let name = ServerName::try_from("127.0.0.1").expect("a name");
        let mut stream =
            within("the handshake", TlsConnector::from(Arc::new(config)).connect(name, stream)).await.ok()?;
        let shown = stream.get_ref().1.peer_certificates().and_then(|all| all.first()).map(|one| one.to_vec());
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\nconnection: close\r\n\
             accept: application/json, text/event-stream\r\n{}content-length: {}\r\n\r\n{GREETING}",
            self.authorization,
            GREETING.len()
        );
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        // A peer that closes without a word of TLS has said what it had to say.
        let _ = within("the answer", stream.read_to_end(&mut answer)).await;
        Some((String::from_utf8_lossy(&answer).into_owned(), shown?))
    }
}

async fn gateway(config: Config) -> (Upstream, Gateway) {
    let upstream = Upstream::http(Script::new("up", Revision::R2025_11_25)).await;
    let gateway = Gateway::serve(&config.over_tls().upstream(&upstream)).await;
    (upstream, gateway)
}

#[tokio::test]
async fn both_versions_of_tls_are_served_and_an_unknown_authority_is_none_of_ours() {
    let files = Files::new();
    let (_upstream, gateway) = gateway(Config::new().section(&files.section(""))).await;
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let visitor = Visitor { version, ..Visitor::of(&files) };
        assert_eq!(visitor.greets(&gateway).await.map(|(status, _)| status), Some(200), "{version:?}");
    }
    assert_eq!(Visitor::of(&Files::new()).greets(&gateway).await, None);
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_and_a_wrong_pair_changes_nothing() {
    let files = Files::new();
    let (_upstream, gateway) = gateway(Config::new().section(&files.section(""))).await;
    let shown = async || Visitor::of(&files).greets(&gateway).await.expect("it is served").1;
    let first = shown().await;
    files.put("cert.pem", "-----BEGIN CERTIFICATE-----\nMIIB");
    gateway.says(&["certificate not renewed", "no whole certificate in PEM form"]).await;
    assert_eq!(shown().await, first, "half a file");
    let (other, _) = files.authority.certify("127.0.0.1", 2999).pem();
    files.put("cert.pem", &other);
    gateway.says(&["certificate not renewed", "is not that of the certificate"]).await;
    assert_eq!(shown().await, first, "a key of another certificate");
    files.renew("127.0.0.1", 2020);
    gateway.says(&["certificate not renewed", "expired"]).await;
    assert_eq!(shown().await, first, "an old one");
    files.renew("127.0.0.1", 2998);
    until("the new certificate is shown", || async { (shown().await != first).then_some(()) }).await;
}

#[tokio::test]
async fn a_certificate_that_cannot_be_used_holds_up_no_reload_and_is_shown_until_it_can() {
    let files = Files::new();
    let upstream = Upstream::http(Script::new("up", Revision::R2025_11_25)).await;
    let of = |more: &str| Config::new().over_tls().section(&files.section("")).section(more);
    let gateway = Gateway::serve(&of("").upstream(&upstream)).await;
    let first = Visitor::of(&files).greets(&gateway).await.expect("it is served").1;
    let expiry = async || {
        let page = String::from_utf8_lossy(&gateway.look("/metrics").await.body).into_owned();
        let name = "trunkline_certificate_expiry_timestamp_seconds{listener=\"server.tls\"} ";
        page.lines().find_map(|line| line.strip_prefix(name)?.parse::<f64>().ok()).unwrap_or_else(|| panic!("{page}"))
    };
    let until = expiry().await;
    files.put("key.pem", "no key");
    let page = "/readyz?verbose";
    gateway.look_until(page, "the cause is shown", |page| page.contains("has no private key in PEM form")).await;
    gateway.configure(&of("[log]\nlevel = \"debug\"\n").upstream(&upstream));
    gateway.look_until(page, "the rest is in force", |page| page.contains("1 reload ")).await;
    gateway.look_until(page, "the cause is shown still", |page| page.contains("certificate    not renewed")).await;
    let bad = |metrics: &str| metrics.contains("trunkline_certificate_last_read_successful 0");
    gateway.look_until("/metrics", "a metric says so", bad).await;
    assert_eq!(Visitor::of(&files).greets(&gateway).await.expect("it is served").1, first);
    files.renew("127.0.0.1", 2998);
    gateway.look_until(page, "it is renewed", |page| !page.contains("certificate ")).await;
    let good = |metrics: &str| metrics.contains("trunkline_certificate_last_read_successful 1");
    gateway.look_until("/metrics", "a metric says so", good).await;
    // The new one ends a year before the old one.
    assert_eq!(until - expiry().await, 365.0 * 86_400.0);
}

#[tokio::test]
async fn other_files_of_a_certificate_take_effect_at_a_reload_and_unusable_ones_change_nothing() {
    let files = Files::new();
    let upstream = Upstream::http(Script::new("up", Revision::R2025_11_25)).await;
    let path = |name: &str| files.scratch.path().join(name).display().to_string();
    let of = |cert: &str, key: &str| {
        let section = format!("[server.tls]\ncert = \"{}\"\nkey = \"{}\"\n", path(cert), path(key));
        Config::new().over_tls().section(&section).upstream(&upstream)
    };
    let gateway = Gateway::serve(&of("cert.pem", "key.pem")).await;
    let shown = async || Visitor::of(&files).greets(&gateway).await.expect("it is served").1;
    let (first, page) = (shown().await, "/readyz?verbose");
    gateway.configure(&of("new.pem", "new.key"));
    gateway.look_until(page, "they are missed", |page| page.contains("certificate    not renewed")).await;
    assert_eq!(shown().await, first);
    // What was named last is watched.
    let (cert, key) = files.authority.certify("127.0.0.1", 2998).pem();
    files.put("new.key", &key);
    files.put("new.pem", &cert);
    until("the new one is shown", || async { (shown().await != first).then_some(()) }).await;
    gateway.look_until(page, "nothing is wrong", |page| !page.contains("certificate ")).await;
    // Also where nothing is wrong.
    let second = shown().await;
    let (cert, key) = files.authority.certify("127.0.0.1", 2997).pem();
    files.put("new.key", &key);
    files.put("new.pem", &cert);
    until("a third is shown", || async { (shown().await != second).then_some(()) }).await;
    gateway.configure(&of("cert.pem", "key.pem"));
    until("the first one is back", || async { (shown().await == first).then_some(()) }).await;
    assert!(!gateway.stderr.all().iter().any(|line| line.contains("take effect at the next start only")));
}

#[tokio::test]
async fn each_listener_has_its_own_certificate_and_one_that_cannot_be_renewed_is_named() {
    let (one, other) = (Files::new(), Files::new());
    let upstream = Upstream::http(Script::new("up", Revision::R2025_11_25)).await;
    let (second, plain) = (format!("127.0.0.1:{}", free_port()), format!("127.0.0.1:{}", free_port()));
    let entry = |address: &str, keys: &str| format!("[[server.listeners]]\naddress = \"{address}\"\n{keys}\n");
    let config = Config::new().over_tls().listed(&one.key()).section(&entry(&second, &other.key()));
    let gateway = Gateway::serve(&config.section(&entry(&plain, "")).upstream(&upstream)).await;
    gateway.says(&["serving", &format!("http://{plain}/mcp")]).await;
    gateway.says(&["serving", &format!("https://{second}/mcp")]).await;
    let shown = async || {
        let first = Visitor::of(&one).greets(&gateway).await.expect("it is served").1;
        (first, Visitor::of(&other).greets_at(&second).await.expect("it is served").1)
    };
    let before = shown().await;
    assert_eq!(Visitor::of(&other).greets(&gateway).await, None, "each has an authority of its own");
    other.put("key.pem", "no key");
    gateway.says(&["certificate not renewed", "server.listeners.1.tls.key: "]).await;
    one.renew("127.0.0.1", 2998);
    until("the new one is shown", || async { (shown().await.0 != before.0).then_some(()) }).await;
    assert_eq!(shown().await.1, before.1);
    let page = "/readyz?verbose";
    let is_named = |page: &str| page.contains("certificate    not renewed") && page.contains("server.listeners.1.tls");
    gateway.look_until(page, "the other is still wrong", is_named).await;
    let bad = |metrics: &str| metrics.contains("trunkline_certificate_last_read_successful 0");
    gateway.look_until("/metrics", "a metric says so", bad).await;
    other.renew("127.0.0.1", 2998);
    gateway.look_until(page, "it is renewed too", |page| !page.contains("certificate ")).await;
    let good = |metrics: &str| metrics.contains("trunkline_certificate_last_read_successful 1");
    gateway.look_until("/metrics", "a metric says so", good).await;
}

#[tokio::test]
async fn a_certificate_of_a_client_says_who_it_is_and_without_tokens_every_client_needs_one() {
    let files = Files::new();
    let own = Some(files.authority.certify_client("build-7").pem());
    let stranger = Some(Authority::new().certify_client("build-7").pem());
    files.put("clients.pem", &files.authority.pem);
    let asks = format!("client_ca = \"{}\"", files.scratch.path().join("clients.pem").display());
    let (_upstream, gateway) = self::gateway(Config::new().section(&files.section(&asks))).await;
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let greets = async |own: &Option<(String, String)>| {
            let visitor = Visitor { version, own: own.clone(), ..Visitor::of(&files) };
            visitor.greets(&gateway).await.map(|(status, _)| status)
        };
        assert_eq!((greets(&own).await, greets(&stranger).await, greets(&None).await), (Some(200), None, None));
    }
    let page = gateway.look("/metrics").await;
    assert!(String::from_utf8_lossy(&page.body).contains("principal=\"cert:build-7\""));

    let token = "[[auth.tokens]]\nname = \"ann\"\ntoken = \"ann-has-a-long-token\"\n";
    let (_upstream, gateway) = self::gateway(Config::new().section(&files.section(&asks)).section(token)).await;
    let bearer = "authorization: Bearer ann-has-a-long-token\r\n";
    for (own, authorization, status) in [(own, "", 200), (None, bearer, 200), (None, "", 401)] {
        let visitor = Visitor { own, authorization, ..Visitor::of(&files) };
        assert_eq!(visitor.greets(&gateway).await.map(|(status, _)| status), Some(status), "{authorization}");
    }
}

#[tokio::test]
async fn a_certificate_has_the_roles_of_its_entry_and_one_that_no_entry_names_sees_nothing() {
    let files = Files::new();
    files.put("clients.pem", &files.authority.pem);
    let asks = format!("client_ca = \"{}\"", files.scratch.path().join("clients.pem").display());
    let script = |name: &str| {
        Script::new(name, Revision::R2025_11_25).with(|script| script.instructions = format!("about {name}"))
    };
    let (one, two) = (Upstream::http(script("one")).await, Upstream::http(script("two")).await);
    let of = |more: &str| {
        let roles = "[auth.roles.one]\nupstreams = [\"one\"]\n[auth.roles.two]\nupstreams = [\"two\"]\n";
        let entry = "[[auth.certificates]]\nname = \"build-7\"\nroles = [\"one\"]\n";
        let config = Config::new().over_tls().section(&files.section(&asks)).section(&format!("{roles}{entry}{more}"));
        config.upstream(&one).upstream(&two)
    };
    let gateway = Gateway::serve(&of("")).await;
    let address = gateway.url.trim_start_matches("https://").trim_end_matches("/mcp");
    // The greeting has the instructions of the upstreams that may be seen.
    let told = async |subject: &str| {
        let own = Some(files.authority.certify_client(subject).pem());
        let (answer, _) = Visitor { own, ..Visitor::of(&files) }.asks(address).await.expect("it is served");
        ["about one", "about two"].map(|text| answer.contains(text))
    };
    until("the upstream is there", || async { (told("build-7").await == [true, false]).then_some(()) }).await;
    assert_eq!(told("build-8").await, [false, false]);
    gateway.configure(&of("[[auth.certificates]]\nname = \"*\"\nroles = [\"two\"]\n"));
    until("all others have a role", || async { (told("build-8").await == [false, true]).then_some(()) }).await;
    assert_eq!(told("build-7").await, [true, false]);
}

#[tokio::test]
async fn a_token_that_comes_with_a_reload_lifts_the_demand_for_a_certificate_and_one_that_goes_restores_it() {
    let files = Files::new();
    files.put("clients.pem", &files.authority.pem);
    let asks = format!("client_ca = \"{}\"", files.scratch.path().join("clients.pem").display());
    let token = "[[auth.tokens]]\nname = \"ann\"\ntoken = \"ann-has-a-long-token\"\n";
    let upstream = Upstream::http(Script::new("up", Revision::R2025_11_25)).await;
    let of = |more: &str| Config::new().over_tls().section(&files.section(&asks)).section(more).upstream(&upstream);
    let gateway = Gateway::serve(&of("")).await;
    let bearer = Visitor { authorization: "authorization: Bearer ann-has-a-long-token\r\n", ..Visitor::of(&files) };
    let status = async || bearer.greets(&gateway).await.map(|(status, _)| status);
    assert_eq!(status().await, None);
    gateway.configure(&of(token));
    until("the token is enough", || async { (status().await == Some(200)).then_some(()) }).await;
    gateway.configure(&of(""));
    until("a certificate is needed again", || async { status().await.is_none().then_some(()) }).await;
}

#[tokio::test]
async fn a_handshake_that_fails_is_counted_and_said_now_and_then() {
    let files = Files::new();
    files.put("clients.pem", &files.authority.pem);
    let asks = format!("client_ca = \"{}\"", files.scratch.path().join("clients.pem").display());
    let (_upstream, gateway) = self::gateway(Config::new().section(&files.section(&asks))).await;
    let address = gateway.url.trim_start_matches("https://").trim_end_matches("/mcp").to_owned();
    // Without a certificate, of an authority that the client does not know, and no TLS at all.
    for _ in 0..3 {
        assert_eq!(Visitor::of(&files).greets(&gateway).await, None);
    }
    assert_eq!(Visitor::of(&Files::new()).greets(&gateway).await, None);
    let mut plain = TcpStream::connect(&address).await.expect("somebody listens");
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("it is taken");
    drop(TcpStream::connect(&address).await.expect("somebody listens"));
    for (reason, count) in [("certificate", 3), ("refused", 1), ("protocol", 1), ("gone", 1), ("timeout", 0)] {
        let line = format!("trunkline_tls_handshakes_failed_total{{reason=\"{reason}\"}} {count}\n");
        gateway.look_until("/metrics", &line, |page| page.contains(&line)).await;
    }
    for kind in ["certificate", "refused", "protocol"] {
        gateway.says(&["TLS handshake failed", kind, "127.0.0.1:"]).await;
    }
    gateway.stop().await;
    let lines = gateway.stderr.all();
    assert_eq!(lines.iter().filter(|line| line.contains("TLS handshake failed")).count(), 3, "{lines:?}");
}

#[tokio::test]
async fn check_says_what_is_wrong_with_the_files() {
    let files = Files::new();
    let check = || {
        let file = files.put("trunkline.toml", &files.section(""));
        let program = trunkline_tests::process::beside(trunkline_tests::process::GATEWAY);
        let output = std::process::Command::new(program).args(["check", "--config"]).arg(file).output();
        let output = output.expect("it runs");
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let said = check();
    assert!(!said.contains("server.tls"), "{said}");
    let (cert, key) = files.authority.certify("127.0.0.1", 2999).pem();
    let (old, _) = files.authority.certify("127.0.0.1", 2020).pem();
    for (name, text, says) in [
        ("cert.pem", cert.as_str(), "is not that of the certificate"),
        ("key.pem", key.as_str(), ""),
        ("key.pem", "no key", "has no private key in PEM form"),
        ("cert.pem", "no certificate", "no whole certificate in PEM form"),
        ("cert.pem", old.as_str(), "expired"),
    ] {
        files.put(name, text);
        let said = check();
        assert!(says.is_empty() != said.contains("server.tls") && said.contains(says), "{says}: {said}");
    }
    std::fs::remove_file(files.scratch.path().join("cert.pem")).expect("it is there");
    let said = check();
    assert!(said.contains("cannot read") && said.contains("name a file in PEM form"), "{said}");
}
