//! Where a server may send the gateway while a person logs in: to nothing of this machine or of a network of one's own, however that is
//! written. Decoys listen at every address of this machine, and count who comes to them.

#![allow(clippy::disallowed_methods)] // a test's tasks end with its runtime

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::net::{TcpListener, TcpSocket};
use tokio::process::Command;
use trunkline_tests::confine::or_skip;
use trunkline_tests::network::Names;
use trunkline_tests::process::{GATEWAY, Program, beside};
use trunkline_tests::scratch::Scratch;
use trunkline_tests::upstream::Way;
use trunkline_tests::within::within;

use crate::logins::{Guarded, MODERN, RESOURCE, followed, said};

/// A host that is this machine, in its network or where the credentials of a machine are given out: names, and numbers in every form.
const LOOPBACK: [&str; 34] = [
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "127.255.0.9",
    "2130706433",
    "0x7f000001",
    "0X7F000001",
    "0x7f.1",
    "0x7f.0x0.0x0.0x1",
    "017700000001",
    "0177.1",
    "0177.0.0.01",
    "0",
    "0.0.0.0",
    "0x0",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "a.localhost",
    "rebound.internal",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:db8::5efe:127.0.0.1]",
    "[2001:0:1:2:3:4:80ff:fffe]",
];
const CREDENTIALS: [&str; 14] = [
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "169.254.43518",
    "169.254.170.2",
    "100.100.100.200",
    "168.63.129.16",
    "[fe80::1]",
    "[fd00:ec2::254]",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::]",
];
const INSIDE: [&str; 9] = [
    "10.0.0.1",
    "10.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "198.18.0.1",
    "[fd12::1]",
    "[fec0::1]",
    "[::ffff:10.0.0.1]",
];

/// A port of this machine at which nobody is to come, over either kind of address.
struct Decoy {
    port: u16,
    came: Arc<AtomicUsize>,
}

impl Decoy {
    async fn open() -> Decoy {
        let came = Arc::new(AtomicUsize::new(0));
        let four = TcpListener::bind("0.0.0.0:0").await.expect("a port");
        let port = four.local_addr().expect("it is bound").port();
        // Where this machine has no such addresses nobody can come by one.
        let six = TcpSocket::new_v6().and_then(|socket| {
            socket.bind(([0; 16], port).into())?;
            socket.listen(64)
        });
        for listener in [Ok(four), six].into_iter().flatten() {
            let came = came.clone();
            tokio::spawn(async move {
                while listener.accept().await.is_ok() {
                    came.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        Decoy { port, came }
    }

    fn came(&self) -> usize {
        self.came.load(Ordering::SeqCst)
    }
}

/// URLs of no kind that is asked, or that read otherwise than they lead.
fn odd(port: u16, own: &str) -> Vec<String> {
    vec![
        format!("http://me@127.0.0.1:{port}/"),
        format!("http://{own}@127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{port}#{own}/"),
        format!("http://127.0.0.1:{port}\\@{own}/"),
        format!("//127.0.0.1:{port}/"),
        format!("ftp://127.0.0.1:{port}/"),
        format!("gopher://127.0.0.1:{port}/"),
        format!("ws://127.0.0.1:{port}/"),
        "file:///etc/passwd".to_owned(),
        "javascript:alert(1)".to_owned(),
        "data:application/json,{}".to_owned(),
        "unix:///run/docker.sock".to_owned(),
    ]
}

/// A login at an upstream at this URL, by a command that runs in this way.
async fn log_in(url: &str, names: Option<&Names>) -> (bool, String) {
    let scratch = Scratch::new();
    let file = scratch.file("a.toml", &format!("[upstreams.up]\nurl = \"{url}\"\nauth = {{ type = \"oauth\" }}\n"));
    let args = ["login", "up", "--no-browser", "--config", &file.display().to_string()].map(str::to_owned);
    let program = Program { path: beside(GATEWAY), args: args.into(), env: Vec::new() };
    let program = names.map_or(program.clone(), |names| names.inside(&program));
    let mut command = Command::new(program.path);
    command.args(program.args).env("HOME", scratch.path()).env_remove("XDG_STATE_HOME").kill_on_drop(true);
    said(&followed(command).await)
}

#[tokio::test]
async fn what_an_upstream_is_as_a_resource_is_asked_of_no_other_place_in_any_of_sixty_ways_to_write_one() {
    let (guarded, decoy) = (Guarded::start(Way::Http, MODERN).await, Decoy::open().await);
    for path in ["/mcp", ""] {
        guarded.upstream.shows(&format!("{RESOURCE}{path}"), 404, "");
    }
    let hosts = LOOPBACK.iter().chain(&CREDENTIALS).chain(&INSIDE);
    let urls = hosts.map(|host| format!("http://{host}:{}/x", decoy.port));
    let urls: Vec<_> = urls.chain(odd(decoy.port, &guarded.upstream.address().to_string())).collect();
    assert!(urls.len() >= 60, "{}", urls.len());
    for url in urls {
        guarded.upstream.challenges(&format!("Bearer resource_metadata=\"{}\"", url.replace('\\', "\\\\")));
        let (is_done, text) = log_in(&guarded.at("/mcp"), None).await;
        assert!(!is_done && text.contains("says at another origin what it is as a resource"), "{url}: {text}");
    }
    assert_eq!((decoy.came(), guarded.identity.asked.mark()), (0, 0));
}

#[tokio::test]
async fn no_authorization_server_is_asked_that_is_on_this_machine_where_the_upstream_is_not_in_any_way_to_write_one() {
    let Some(names) = or_skip(Names::make("tickets.internal rebound.internal")) else { return };
    let (guarded, decoy) = (Guarded::start(Way::Http, MODERN).await, Decoy::open().await);
    let own = format!("tickets.internal:{}", guarded.upstream.address().port());
    let url = format!("http://{own}/mcp");
    let both = LOOPBACK.iter().chain(&CREDENTIALS);
    let both = both.flat_map(|host| ["http", "https"].map(|scheme| format!("{scheme}://{host}:{}/x", decoy.port)));
    let urls: Vec<_> = both.chain(odd(decoy.port, &own)).collect();
    assert!(urls.len() >= 60, "{}", urls.len());
    // So many are tried in one login.
    for urls in urls.chunks(8) {
        let document = json!({ "resource": url, "authorization_servers": urls });
        guarded.upstream.shows(&format!("{RESOURCE}/mcp"), 200, &document.to_string());
        let (is_done, text) = log_in(&url, Some(&names)).await;
        let refused = ["is not asked: ", "a server named this host, which stands for an address of this machine"];
        let count: usize = refused.iter().map(|words| text.matches(words).count()).sum();
        assert!(!is_done && count == urls.len(), "{urls:?}: {text}");
    }
    assert_eq!(decoy.came(), 0);
    // It is by where they lead that they are refused: an authorization server beside the upstream is asked.
    let port = guarded.identity.url.rsplit(':').next().expect("a port");
    let document = json!({ "resource": url, "authorization_servers": [format!("http://{own}")] });
    guarded.upstream.shows(&format!("{RESOURCE}/mcp"), 200, &document.to_string());
    let (is_done, text) = within("it ends", log_in(&url, Some(&names))).await;
    assert!(!is_done && text.contains("says nothing of itself") && !text.contains("is not asked"), "{port}: {text}");
}
