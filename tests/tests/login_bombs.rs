//! Documents of servers that never end: too large, too slow, too deep, packed. Each is given up before much of it is read.

#![allow(clippy::disallowed_methods)] // a test's tasks end with its runtime

use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::issuer::Issuer;
use trunkline_tests::process::{GATEWAY, beside, peak_kib};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::within::{all, until, within};

use crate::access_tokens::{RESOURCE, config, status, up};
use crate::logins::{followed, said};

const RESOURCE_PATH: &str = "/.well-known/oauth-protected-resource/mcp";
const OAUTH: &str = "/.well-known/oauth-authorization-server";
/// So large is what is large.
const LARGE: usize = 100 * 1024 * 1024;
/// So much of it may be under way between two programs of one machine, beside what is read of it.
const TAKEN_MAX: usize = 24 * 1024 * 1024;
/// So often somebody may ask again who asks ever more seldom, while a crowded machine runs the test.
const AGAIN_MAX: usize = 32;
/// How slow is what is slow: a byte in so long.
const PACE: Duration = Duration::from_millis(100);
/// How deep is what is deep: it is small enough for every end point.
const DEEP: usize = 60 * 1024;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bomb {
    /// With a length.
    Large,
    /// In pieces, without one.
    Endless,
    /// A byte now and then.
    Slow,
    /// Lists in lists.
    Deep,
    /// Packed to less than a mebibyte.
    Packed,
}

const BOMBS: [Bomb; 5] = [Bomb::Large, Bomb::Endless, Bomb::Slow, Bomb::Deep, Bomb::Packed];

/// A document of one long text, packed (RFC 1951, 1952) a hundred and sixty times smaller.
fn packed() -> Vec<u8> {
    let (mut bits, mut bytes) = (Vec::new(), vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
    let mut code = |code: u16, length: u32| bits.extend((0..length).rev().map(|at| code >> at & 1 == 1));
    // The last block, with the codes that are known to all.
    code(0b110, 3);
    b"{\"x\":\"0".iter().for_each(|letter| code(0x30 + u16::from(*letter), 8));
    // So many of the letter before, again and again.
    (0..LARGE / 258).for_each(|_| code(0b1_1000_1010_0000, 13));
    b"\"}".iter().for_each(|letter| code(0x30 + u16::from(*letter), 8));
    code(0, 7);
    bytes.extend(bits.chunks(8).map(|byte| byte.iter().rev().fold(0_u8, |byte, bit| byte << 1 | u8::from(*bit))));
    // Nobody comes as far as to its sum.
    bytes.extend([0; 8]);
    bytes
}

/// An upstream, and the authorization server that it believes, one of whose answers is a bomb.
struct Server {
    url: String,
    /// The path whose answer it is.
    path: &'static str,
    bomb: Bomb,
    /// So many bytes of one were taken at most.
    taken: AtomicUsize,
    /// So often it was asked for.
    asked: AtomicUsize,
}

impl Server {
    async fn start(path: &'static str, bomb: Bomb) -> Arc<Server> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let server = Arc::new(Server { url, path, bomb, taken: AtomicUsize::new(0), asked: AtomicUsize::new(0) });
        let by = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let by = by.clone();
                // Whoever has enough of it hangs up.
                tokio::spawn(async move { by.serve(stream).await });
            }
        });
        server
    }

    async fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut asked = Vec::new();
        let ends = |asked: &[u8]| {
            let text = String::from_utf8_lossy(asked).to_ascii_lowercase();
            let (head, body) = text.split_once("\r\n\r\n").map(|(head, body)| (head.to_owned(), body.len()))?;
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            (body >= length.unwrap_or(0)).then_some(())
        };
        while ends(&asked).is_none() {
            if stream.read_buf(&mut asked).await? == 0 {
                return Ok(());
            }
        }
        let text = String::from_utf8_lossy(&asked).into_owned();
        let target = text.split(' ').nth(1).unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if path == self.path {
            self.asked.fetch_add(1, Ordering::SeqCst);
            return self.explode(&mut stream).await;
        }
        let (head, body) = self.answer(path, query);
        let length = body.len();
        let answer = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
        stream.write_all(answer.as_bytes()).await
    }

    /// What else it answers.
    fn answer(&self, path: &str, query: &str) -> (String, String) {
        let at = |path: &str| format!("{}{path}", self.url);
        let ok = |body: serde_json::Value| ("200 OK\r\ncontent-type: application/json".to_owned(), body.to_string());
        match path {
            "/mcp" => ("401 Unauthorized\r\nwww-authenticate: Bearer".to_owned(), String::new()),
            RESOURCE_PATH => ok(json!({ "resource": at("/mcp"), "authorization_servers": [self.url] })),
            // What says nothing of itself as a resource may be its own authorization server.
            OAUTH if self.path == RESOURCE_PATH => ("404 Not Found".to_owned(), String::new()),
            OAUTH => ok(json!({
                "issuer": self.url, "authorization_endpoint": at("/authorize"), "token_endpoint": at("/token"),
                "registration_endpoint": at("/register"), "code_challenge_methods_supported": ["S256"],
                "jwks_uri": at("/keys"), "introspection_endpoint": at("/introspect"),
            })),
            "/register" => ok(json!({ "client_id": "registered-1" })),
            "/authorize" => {
                let field = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
                let redirect = field("redirect_uri").unwrap_or_default().replace("%3A", ":").replace("%2F", "/");
                let back = format!("{redirect}?code=canary-code&state={}", field("state").unwrap_or_default());
                (format!("302 Found\r\nlocation: {back}"), String::new())
            }
            "/token" => ok(json!({ "access_token": "canary-access", "token_type": "Bearer" })),
            "/keys" => ok(json!({ "keys": [] })),
            _ => ("404 Not Found".to_owned(), String::new()),
        }
    }

    async fn explode(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        let whole = match self.bomb {
            Bomb::Deep => "[".repeat(DEEP).into_bytes(),
            Bomb::Packed => packed(),
            _ => Vec::new(),
        };
        let head = match self.bomb {
            Bomb::Endless => "transfer-encoding: chunked".to_owned(),
            Bomb::Large | Bomb::Slow => format!("content-length: {LARGE}"),
            Bomb::Deep => format!("content-length: {DEEP}"),
            Bomb::Packed => format!("content-encoding: gzip\r\ncontent-length: {}", whole.len()),
        };
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{head}\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        if !whole.is_empty() {
            return stream.write_all(&whole).await;
        }
        let blank = vec![b' '; 64 * 1024];
        let piece = match self.bomb {
            Bomb::Endless => [format!("{:x}\r\n", blank.len()).as_bytes(), &blank, b"\r\n"].concat(),
            Bomb::Slow => vec![b' '],
            _ => blank,
        };
        let mut taken = 0;
        while taken < LARGE {
            if self.bomb == Bomb::Slow {
                tokio::time::sleep(PACE).await;
            }
            stream.write_all(&piece).await?;
            taken += piece.len();
            self.taken.fetch_max(taken, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Little of it was taken each time, and nobody asks again and again.
    fn is_left(&self, asked_max: usize) {
        let (asked, taken) = (self.asked.load(Ordering::SeqCst), self.taken.load(Ordering::SeqCst));
        assert!((1..=asked_max).contains(&asked), "{} {:?}: asked for {asked} times", self.path, self.bomb);
        assert!(taken < TAKEN_MAX, "{} {:?}: {taken} bytes were taken", self.path, self.bomb);
    }

    /// A person logs in there.
    async fn log_in(&self) -> Output {
        let scratch = Scratch::new();
        let text = format!("[upstreams.up]\nurl = \"{}/mcp\"\nauth = {{ type = \"oauth\" }}\n", self.url);
        let file = scratch.file("a.toml", &text);
        let mut command = Command::new(beside(GATEWAY));
        command.args(["login", "up", "--no-browser", "--config"]).arg(file).env("HOME", scratch.path());
        command.env_remove("XDG_STATE_HOME").env_remove("TRUNKLINE_CONFIG").kill_on_drop(true);
        followed(command).await
    }
}

#[tokio::test]
async fn a_document_of_a_login_that_is_too_large_too_slow_too_deep_or_packed_is_given_up() {
    let each = [
        (RESOURCE_PATH, "has more than 1 MiB", "is no JSON document of its kind"),
        (OAUTH, "has more than 1 MiB", "is no JSON document of its kind"),
        ("/register", "its answer has more than 1 MiB", "does not register the gateway"),
        ("/token", "has more than 64 KiB", "neither a token nor an error of OAuth"),
    ];
    let each = each.into_iter().flat_map(|(path, large, odd)| BOMBS.map(|bomb| (path, bomb, large, odd)));
    all(each.map(|(path, bomb, large, odd)| async move {
        let server = Server::start(path, bomb).await;
        let (is_done, text) = said(&server.log_in().await);
        let says = match bomb {
            Bomb::Large | Bomb::Endless => large,
            Bomb::Packed if path == "/token" => large,
            Bomb::Deep | Bomb::Packed => odd,
            Bomb::Slow if path == "/token" => "gave none within 10 s",
            Bomb::Slow => "no answer within 10 s",
        };
        assert!(!is_done && text.contains(says) && !text.contains("canary"), "{path} {bomb:?}: {text}");
        server.is_left(1);
    }))
    .await;
}

#[tokio::test]
async fn keys_and_answers_about_tokens_that_never_end_let_nobody_in_and_cost_nobody_else_anything() {
    let each = [OAUTH, "/keys", "/introspect"];
    let each = each.into_iter().flat_map(|path| BOMBS.map(|bomb| (path, bomb)));
    all(each.map(|(path, bomb)| async move {
        let (up, good, server) = (up(Revision::MODERN).await, Issuer::start().await, Server::start(path, bomb).await);
        let asked = "introspection = { client_id = \"gate\", client_secret = \"canary-introspection\" }";
        let entry = format!("[[auth.issuers]]\nissuer = \"{}\"\n{asked}\n", server.url);
        let gateway = Gateway::serve(&config(&up, &format!("{entry}{}", good.entry("")))).await;
        until("the others are let in", || async {
            (status(&gateway, &good.token(RESOURCE, "ann", "")).await == 200).then_some(())
        })
        .await;
        let mut claims = good.claims(RESOURCE, "ann", 3600);
        claims["iss"] = server.url.clone().into();
        let token = if path == "/introspect" { "opaque".to_owned() } else { good.signed(&claims) };
        let refused = within("it is answered", status(&gateway, &token)).await;
        assert_eq!(refused, 503, "{path} {bomb:?}");
        assert_eq!(status(&gateway, &good.token(RESOURCE, "bob", "")).await, 200, "{path} {bomb:?}");
        let peak = peak_kib(gateway.pid).expect("it runs");
        assert!(peak < 512 * 1024, "{path} {bomb:?}: {peak} KiB");
        // Beyond the first time it is asked again by itself, ever more seldom.
        server.is_left(AGAIN_MAX);
    }))
    .await;
}

#[tokio::test]
async fn what_gives_out_tokens_for_the_gateway_itself_is_given_up_as_well() {
    all(BOMBS.map(|bomb| async move {
        let (up, server) = (up(Revision::MODERN).await, Server::start("/token", bomb).await);
        let auth = format!(
            "auth = {{ type = \"client_credentials\", token_url = \"{}/token\", client_id = \"gate\", client_secret = \"canary-secret\" }}",
            server.url
        );
        let gateway = Gateway::serve(&Config::new().upstream_with(&up, &auth)).await;
        let says = match bomb {
            Bomb::Slow => "gave none within 10 s",
            Bomb::Deep => "neither a token nor an error of OAuth",
            _ => "has more than 64 KiB",
        };
        let page = gateway.look_until("/readyz?verbose", "why is shown", |page| page.contains(says)).await;
        assert!(!page.contains("canary"), "{bomb:?}: {page}");
        server.is_left(AGAIN_MAX);
        assert_eq!(up.frames_with(""), 0, "{bomb:?}: nothing is sent without a token");
    }))
    .await;
}
