//! Tokens of clients: made and taken back by a command, and what their end ends while a gateway runs.

use std::path::Path;
use std::pin::pin;
use std::process::Output;
use std::time::{Duration, SystemTime};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use trunkline_tests::client::http::exchange;
use trunkline_tests::client::{Answer, Client, Request};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::Order;
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{until, within};

const LEGACY: Revision = Revision::R2025_11_25;
const MODERN: Revision = Revision::MODERN;
const ROOT: &str = "root-has-a-long-token";
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;

fn config(upstream: &Upstream, more: &str) -> Config {
    let root = format!("[[auth.tokens]]\nname = \"root\"\ntoken = \"{ROOT}\" # stays\n");
    Config::new().upstream(upstream).section(&format!("[auth.roles.all]\nupstreams = [\"*\"]\n{root}{more}"))
}

async fn greet(gateway: &Gateway, token: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("authorization", bearer.as_str()),
    ];
    exchange(&gateway.url, "POST", &headers, INITIALIZE).await
}

async fn client(gateway: &Gateway, token: &str, revision: Revision) -> Client {
    Client::bearing(&gateway.reach(), revision, token).await
}

/// What a command says on stdout, and on stderr.
async fn run(gateway: &Gateway, args: &[&str]) -> (bool, String, String) {
    let run = within("it answers", gateway.command(args).output()).await.expect("it runs");
    let Output { status, stdout, stderr } = run;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.success(), text(stdout), text(stderr))
}

/// A session, a stream of a session and a listen call of this token; resolves when all of them have ended.
async fn ends(gateway: &Gateway, token: &str, end: impl AsyncFnOnce()) {
    let (session, stateless) = (client(gateway, token, LEGACY).await, client(gateway, token, MODERN).await);
    let stream = session.listen(&[]).await;
    let filter = "{\"notifications\":{\"toolsListChanged\":true}}";
    let (mut ear, _) = stateless.listen_by(Request::new("subscriptions/listen", filter)).await;
    end().await;
    let listen = ear.listen.as_mut().expect("it is a call");
    within("the listen call ends", listen.settles()).await;
    until("the session is there no more", || async {
        let answer = session.request(Request::new("tools/list", "{}")).await;
        (answer.status == 401).then_some(())
    })
    .await;
    drop((stream, ear));
}

#[tokio::test]
async fn a_new_token_is_shown_once_and_taken_by_a_running_gateway_and_a_revoked_one_ends_what_is_open() {
    let up = Upstream::http(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&config(&up, "")).await;
    let root = client(&gateway, ROOT, LEGACY).await;
    root.tools_until("the upstream is there", |tools| tools.contains(&"up__echo".into())).await;
    let (good, token, said) = run(&gateway, &["token", "new", "ci", "--role", "all", "--expires", "30d"]).await;
    let token = token.trim_end();
    assert!(good && token.starts_with("tl_") && token.len() > 40 && !token.contains('\n'), "{token} {said}");
    assert!(said.contains("added `ci`") && said.contains("shown this once") && !said.contains(token), "{said}");
    let text = std::fs::read_to_string(&gateway.file).expect("it is there");
    assert!(!text.contains(token) && text.contains("hash = \"sha256:") && text.contains("# stays"), "{text}");
    until("it is taken", || async { (greet(&gateway, token).await.status == 200).then_some(()) }).await;

    let (good, listed, _) = run(&gateway, &["token", "ls"]).await;
    let row = |name: &str| listed.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(good && row("ci").contains(" all ") && row("ci").ends_with('Z'), "{listed}");
    assert!(row("root").contains("everything") && row("root").ends_with("never"), "{listed}");
    let digest = text.split("sha256:").nth(1).expect("a digest").split('"').next().expect("a digest").to_owned();
    let (_, json, _) = run(&gateway, &["token", "ls", "--json"]).await;
    for secret in [token, ROOT, &digest] {
        assert!(!listed.contains(secret) && !json.contains(secret), "{secret}");
    }
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&value["tokens"][1]["name"], &value["tokens"][1]["expired"]), (&"ci".into(), &false.into()), "{json}");

    ends(&gateway, token, async || {
        let (good, said, _) = run(&gateway, &["token", "revoke", "ci"]).await;
        assert!(good && said.contains("revoked `ci`"), "{said}");
    })
    .await;
    assert!(root.tools().await.contains(&"up__echo".into()), "nobody else notices");
    for (args, says) in [
        (&["token", "revoke", "ci"][..], "no token `ci` in"),
        (&["token", "new", "root"], "is named `root`"),
        (&["token", "new", "x", "--role", "al"], "did you mean \"all\"?"),
        (&["token", "new", "x", "--expires", "soon"], "as 30d, 12h or 8w"),
        (&["token", "new", "x", "--expires", "2020-01-01"], "has passed already"),
        (&["token", "revoke", "root"], "`root` is the last token in"),
    ] {
        let before = std::fs::read_to_string(&gateway.file).expect("it is there");
        let (good, said, told) = run(&gateway, args).await;
        assert!(!good && (said + &told).contains(says), "{args:?}: {told}");
        assert_eq!(std::fs::read_to_string(&gateway.file).expect("it is there"), before);
    }
}

#[tokio::test]
async fn a_file_with_another_fault_is_edited_and_it_is_said_that_no_running_gateway_takes_it() {
    let up = Upstream::http(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&config(&up, "")).await;
    let (good, said, told) = run(&gateway, &["token", "new", "ci"]).await;
    assert!(good && told.contains("a running gateway takes it by itself"), "{said}{told}");
    let text = std::fs::read_to_string(&gateway.file).expect("it is there");
    std::fs::write(&gateway.file, text + "[sever]\nx = 1\n").expect("it can be written");
    let only = "only once 1 fault of the configuration is mended: run `trunkline check`";
    let (good, said, told) = run(&gateway, &["token", "new", "other"]).await;
    assert!(good && told.contains(&format!("a running gateway takes it {only}")), "{said}{told}");
    let (good, said, told) = run(&gateway, &["token", "revoke", "ci"]).await;
    assert!(good && said.contains(&format!("a running gateway ends its sessions {only}")), "{said}{told}");
}

#[tokio::test]
async fn of_several_tokens_those_that_are_there_are_revoked_and_the_others_told() {
    let up = Upstream::http(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&config(&up, "")).await;
    for name in ["ci", "desk"] {
        assert!(run(&gateway, &["token", "new", name]).await.0);
    }
    let (good, said, told) = run(&gateway, &["token", "revoke", "cy", "ci", "ci", "nosuch"]).await;
    assert!(!good && said.contains("revoked `ci` in "), "{said}{told}");
    assert!(told.contains("no token `cy` in ") && told.contains("no token `nosuch` in "), "{told}");
    let (_, left, _) = run(&gateway, &["token", "ls"]).await;
    assert!(!left.contains("\nci ") && left.contains("\ndesk ") && left.contains("\nroot "), "{left}");
}

#[tokio::test]
async fn a_token_that_a_listener_names_is_not_revoked_and_it_is_said_where_it_is_named() {
    let up = Upstream::http(Script::new("up", LEGACY)).await;
    let ci = "[[auth.tokens]]\nname = \"ci\"\ntoken = \"ci-has-a-long-token\"\n";
    let gateway = Gateway::serve(&config(&up, ci).listed("tokens = [\"root\", \"ci\"]")).await;
    let text = std::fs::read_to_string(&gateway.file).expect("it is there");
    let (good, said, told) = run(&gateway, &["token", "revoke", "ci"]).await;
    let told = said + &told;
    for says in ["`ci` is not revoked: a listener names it", "tokens = [", "take the name out of its `tokens` first"] {
        assert!(!good && told.contains(says), "{told}");
    }
    assert!(!told.contains("no token"), "{told}");
    assert_eq!(std::fs::read_to_string(&gateway.file).expect("it is there"), text);
}

/// A moment so soon, as it is written in a configuration.
fn soon(seconds: u64) -> String {
    let at = SystemTime::now() + Duration::from_secs(seconds);
    let at = at.duration_since(SystemTime::UNIX_EPOCH).expect("it is later").as_secs();
    let run = std::process::Command::new("date").args(["-u", "-d", &format!("@{at}"), "+%FT%TZ"]).output();
    String::from_utf8_lossy(&run.expect("it runs").stdout).trim().to_owned()
}

#[tokio::test]
async fn a_token_that_expires_ends_what_is_open_and_no_one_elses() {
    let up = Upstream::http(Script::new("up", LEGACY)).await;
    let token = |expires: &str| {
        format!("[[auth.tokens]]\nname = \"ann\"\ntoken = \"ann-has-a-long-token\"\nexpires = \"{expires}\"\n")
    };
    let gateway = Gateway::serve(&config(&up, &token("2999-01-01"))).await;
    let root = client(&gateway, ROOT, LEGACY).await;
    root.tools_until("the upstream is there", |tools| tools.contains(&"up__echo".into())).await;
    let ear = root.listen(&[]).await;
    ends(&gateway, "ann-has-a-long-token", async || gateway.configure(&config(&up, &token(&soon(3))))).await;
    gateway.says(&["tokens expired", "token:ann"]).await;
    let refused = greet(&gateway, "ann-has-a-long-token").await;
    assert_eq!(refused.status, 401);
    let challenge = refused.header("www-authenticate").expect("a challenge");
    assert!(challenge.contains("invalid_token") && challenge.contains("expired"), "{challenge}");
    assert!(String::from_utf8_lossy(&refused.body).contains("this token has expired"));
    assert!(root.tools().await.contains(&"up__echo".into()) && ear.is_stream());
    let metrics = gateway.look("/metrics").await;
    assert!(String::from_utf8_lossy(&metrics.body).contains("trunkline_auth_total{outcome=\"expired\"}"));
    // A later end is a token that is good again.
    gateway.configure(&config(&up, &token("2999-01-01")));
    until("it is good again", || async { (greet(&gateway, "ann-has-a-long-token").await.status == 200).then_some(()) })
        .await;
}

/// A connection by whatever socket.
trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

async fn connect(is_local: bool, path: &Path, address: &str) -> Box<dyn Socket> {
    match is_local {
        true => Box::new(UnixStream::connect(path).await.expect("somebody listens")) as Box<dyn Socket>,
        false => Box::new(TcpStream::connect(address).await.expect("somebody listens")),
    }
}

/// A request whose head the gateway has read and let in, and of whose body the last bytes were not sent.
struct Half {
    what: String,
    stream: Box<dyn Socket>,
    rest: String,
}

impl Half {
    async fn of(what: String, mut stream: Box<dyn Socket>, path: &str, headers: &[(&str, &str)], body: &str) -> Half {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nexpect: 100-continue\r\n\
             accept: application/json, text/event-stream\r\n{headers}content-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.expect("it is taken");
        // It is said once the body is asked for: the head was judged before.
        let told = read_head(&mut *stream).await;
        assert!(told.starts_with("HTTP/1.1 100"), "{what}: {told}");
        let (first, rest) = body.split_at(body.len() - 5);
        stream.write_all(first.as_bytes()).await.expect("it is taken");
        Half { what, stream, rest: rest.to_owned() }
    }

    /// Sends what was left; the head of the answer.
    async fn end(mut self) -> String {
        self.stream.write_all(self.rest.as_bytes()).await.expect("it is taken");
        format!("{}: {}", self.what, read_head(&mut *self.stream).await)
    }
}

async fn read_head(stream: &mut dyn Socket) -> String {
    read_to(stream, "\r\n\r\n").await
}

async fn read_to(stream: &mut dyn Socket, end: &str) -> String {
    let mut seen = Vec::new();
    within("a head", async {
        while !seen.ends_with(end.as_bytes()) {
            match stream.read_u8().await {
                Ok(byte) => seen.push(byte),
                Err(_) => return,
            }
        }
    })
    .await;
    String::from_utf8(seen).expect("text")
}

/// What a request is, its headers and its body.
type Doing = (&'static str, Vec<(&'static str, String)>, String);

/// Requests of a bearer that do something: stateless calls and a listen stream, a handshake, and a call and an answer in a session.
fn doing(session: &str) -> Vec<Doing> {
    let meta = "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}";
    let body = |method: &str, params: &str| {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"{method}\",\"params\":{{{params}}}}}")
    };
    let call = "\"name\":\"up__echo\",\"arguments\":{\"nonce\":\"half\"}";
    let modern = |method: &str, more: &[(&'static str, &str)]| {
        let own = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
        own.iter().chain(more).map(|(name, value)| (*name, (*value).to_owned())).collect::<Vec<_>>()
    };
    let listen = format!("\"notifications\":{{\"toolsListChanged\":true}},{meta}");
    let of_session = vec![("mcp-session-id", session.to_owned()), ("mcp-protocol-version", "2025-11-25".to_owned())];
    let answer = "{\"jsonrpc\":\"2.0\",\"id\":\"none\",\"result\":{}}".to_owned();
    vec![
        ("call", modern("tools/call", &[("mcp-name", "up__echo")]), body("tools/call", &format!("{call},{meta}"))),
        ("listen", modern("subscriptions/listen", &[]), body("subscriptions/listen", &listen)),
        ("handshake", vec![], INITIALIZE.to_owned()),
        ("call of a session", of_session.clone(), body("tools/call", call)),
        ("answer of a session", of_session, answer),
    ]
}

#[tokio::test]
async fn a_request_that_is_half_sent_when_its_token_is_revoked_does_nothing() {
    let up = Upstream::http(Script::new("up", MODERN)).await;
    let scratch = Scratch::new();
    let path = scratch.path().join("own/mcp.sock");
    let of = |secret: &str| {
        let token = format!("[[auth.tokens]]\nname = \"ann\"\ntoken = \"{secret}\"\n");
        let socket = format!("[[server.listeners]]\naddress = \"unix:{}\"\n", path.display());
        Config::new().listed("").upstream(&up).section(&format!("{socket}{token}"))
    };
    let (old, new) = ("ann-has-a-long-token", "ann-has-another-token");
    let gateway = Gateway::serve(&of(old)).await;
    let client = client(&gateway, old, LEGACY).await;
    client.tools_until("the upstream is there", |tools| tools.contains(&"up__echo".into())).await;
    let session = client.http().session_id().expect("it has one");
    let (bearer, address) = (format!("Bearer {old}"), gateway.url.split('/').nth(2).expect("an address").to_owned());

    let (mut halves, mut streams) = (Vec::new(), Vec::new());
    for is_local in [false, true] {
        let connect = async || connect(is_local, &path, &address).await;
        for (what, headers, body) in doing(&session) {
            let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
            let headers: Vec<_> = headers.chain([("authorization", bearer.as_str())]).collect();
            let what = format!("{what}, {}", if is_local { "Unix socket" } else { "port" });
            halves.push(Half::of(what, connect().await, "/mcp", &headers, &body).await);
        }
        // A message of HTTP+SSE: its stream is open.
        let mut stream = connect().await;
        let head = format!(
            "GET /sse HTTP/1.1\r\nhost: localhost\r\nauthorization: {bearer}\r\naccept: text/event-stream\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.expect("it is taken");
        assert!(read_head(&mut *stream).await.starts_with("HTTP/1.1 200"));
        let first = read_to(&mut *stream, "\n\n").await;
        let to = first.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or_else(|| panic!("{first}"));
        let what = format!("message, {is_local}");
        halves.push(Half::of(what, connect().await, to, &[("authorization", &bearer)], INITIALIZE).await);
        streams.push(stream);
    }
    gateway.configure(&of(new));
    for is_local in [false, true] {
        until("the other secret counts", || async {
            let mut stream = connect(is_local, &path, &address).await;
            let head = format!("GET /sse HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {new}\r\n\r\n");
            stream.write_all(head.as_bytes()).await.ok()?;
            read_head(&mut *stream).await.starts_with("HTTP/1.1 200").then_some(())
        })
        .await;
    }
    for half in halves {
        let head = half.end().await;
        assert!(head.contains("HTTP/1.1 401") && head.contains("www-authenticate: Bearer"), "{head}");
    }
    up.caught_up().await;
    assert_eq!(up.executed().await, Vec::<String>::new(), "nothing was called");
}

#[tokio::test]
async fn a_call_whose_token_is_revoked_meanwhile_is_not_answered() {
    let up = Upstream::http(Script::new("up", MODERN)).await;
    let of = |secret: &str| {
        let token = format!("[[auth.tokens]]\nname = \"ann\"\ntoken = \"{secret}\"\n");
        Config::new().upstream(&up).section(&token)
    };
    let (old, new) = ("ann-has-a-long-token", "ann-has-another-token");
    let gateway = Gateway::serve(&of(old)).await;
    let client = client(&gateway, old, MODERN).await;
    client.tools_until("the upstream is there", |tools| tools.contains(&"up__wait".into())).await;
    // A client that takes no streams: nothing else ends its wait.
    let call = "\"name\":\"up__wait\",\"arguments\":{},\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
                \"io.modelcontextprotocol/clientCapabilities\":{}}";
    let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{{{call}}}}}");
    let bearer = format!("Bearer {old}");
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json"),
        ("authorization", &bearer),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "up__wait"),
    ];
    let mut open = pin!(exchange(&gateway.url, "POST", &headers, &body));
    tokio::select! {
        answer = &mut open => panic!("{answer:?}"),
        () = up.waiting(1) => {}
    }
    gateway.configure(&of(new));
    until("the other secret counts", || async { (greet(&gateway, new).await.status == 200).then_some(()) }).await;
    up.order(Order::Open("wait".into())).await;
    assert_eq!(within("an answer", open).await.status, 401);
}
