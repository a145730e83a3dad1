//! The control socket: who runs a gateway looks at it and orders it about, by no token and with no whole configuration.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use trunkline_tests::client::{Client, http, tool};
use trunkline_tests::gateway::{ADMIN_TOKEN, Config, Gateway, StdioGateway};
use trunkline_tests::journal::Order;
use trunkline_tests::process;
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{until, within};

const LEGACY: Revision = Revision::R2025_11_25;

async fn run(mut command: Command) -> (bool, String) {
    let Output { status, stdout, stderr } = within("it answers", command.output()).await.expect("it runs");
    (status.success(), format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)))
}

/// The trunkline of somebody with this folder for what runs, and no configuration at all.
fn bare(runtime: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(process::beside(process::GATEWAY));
    command.args(arguments).env("XDG_RUNTIME_DIR", runtime).env("HOME", "/nonexistent").env_remove("TRUNKLINE_CONFIG");
    command.current_dir("/").kill_on_drop(true);
    command
}

fn sockets(runtime: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(runtime.join("trunkline")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

async fn up(name: &str) -> (Upstream, Config) {
    let upstream = Upstream::stdio(Script::new(name, LEGACY)).await;
    let config = Config::new().upstream(&upstream);
    (upstream, config)
}

#[tokio::test]
async fn ls_status_and_orders_work_with_a_half_saved_configuration_file() {
    let (_up, config) = up("up").await;
    // Not even an address is needed.
    let gateway = Gateway::serve(&config).await;
    gateway.look_until("/readyz?verbose", "it is up", |page| page.contains("  ready  ")).await;
    let whole = std::fs::read_to_string(&gateway.file).expect("it is there");
    for left in [Some("[upstreams.up]\ncommand = \"/bin"), Some("{"), None] {
        match left {
            Some(text) => std::fs::write(&gateway.file, text).expect("it can be written"),
            None => std::fs::remove_file(&gateway.file).expect("it can be removed"),
        }
        for (arguments, says) in [
            (&["ls"][..], "up    ready"),
            (&["status", "up"], "2025-11-25"),
            (&["restart", "up"], "up is ready (6 tools)"),
        ] {
            let (is_done, said) = run(gateway.command(arguments)).await;
            assert!(is_done && said.contains(says), "{left:?} {arguments:?}: {said}");
        }
    }
    std::fs::write(&gateway.file, whole).expect("it can be written");
    assert!(gateway.stop().await.success());
    assert_eq!(sockets(&gateway.runtime()), [""; 0], "it takes its socket with it");
}

#[tokio::test]
async fn each_of_several_gateways_is_found_by_its_configuration_or_its_process() {
    let shared = Scratch::new();
    let ((_one, one), (_other, other)) = (up("one").await, up("other").await);
    let runtime = shared.path().display().to_string();
    let first = Gateway::serve(&one.env("XDG_RUNTIME_DIR", &runtime)).await;
    let ls = async |gateway: &Gateway| {
        let mut command = gateway.command(&["ls"]);
        command.env("XDG_RUNTIME_DIR", shared.path());
        run(command).await
    };
    // The only one is meant where nothing is named.
    let (is_done, said) = run(bare(shared.path(), &["ls"])).await;
    assert!(is_done && said.contains("one "), "{said}");
    let second = Gateway::serve(&other.env("XDG_RUNTIME_DIR", &runtime)).await;
    for (gateway, own, not_own) in [(&first, "one ", "other "), (&second, "other ", "one ")] {
        let (is_done, said) = ls(gateway).await;
        assert!(is_done && said.contains(own) && !said.contains(not_own), "{said}");
        let (is_done, said) = run(bare(shared.path(), &["ls", "--pid", &gateway.pid.to_string()])).await;
        assert!(is_done && said.contains(own) && !said.contains(not_own), "{said}");
    }
    let (is_done, said) = run(bare(shared.path(), &["stop", "one"])).await;
    assert!(!is_done && said.contains("choose one with --pid or --config"), "{said}");
    let (is_done, said) = run(bare(shared.path(), &["ls", "--config", "/no/such/file.toml"])).await;
    assert!(!is_done && said.contains("is `trunkline serve --config /no/such/file.toml` running?"), "{said}");
    let modes = std::fs::metadata(shared.path().join("trunkline")).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((sockets(shared.path()).len(), modes), (2, 0o700));
}

#[tokio::test]
async fn the_socket_of_a_killed_gateway_is_in_nobodys_way_and_goes_with_the_next() {
    let shared = Scratch::new();
    let ((_up, config), (_next, next)) = (up("up").await, up("next").await);
    let runtime = shared.path().display().to_string();
    let killed = Gateway::serve(&config.env("XDG_RUNTIME_DIR", &runtime)).await;
    let left = sockets(shared.path());
    process::signal(killed.pid, "KILL");
    killed.ended().await;
    assert_eq!(sockets(shared.path()), left, "nobody has removed it");
    let (is_done, said) = run(bare(shared.path(), &["ls"])).await;
    assert!(!is_done && said.contains("is `trunkline serve` running?"), "{said}");
    let _next = Gateway::serve(&next.env("XDG_RUNTIME_DIR", &runtime)).await;
    let now = sockets(shared.path());
    assert!(now.len() == 1 && now != left, "{left:?} {now:?}");
    let (is_done, said) = run(bare(shared.path(), &["ls"])).await;
    assert!(is_done && said.contains("next "), "{said}");
}

#[tokio::test]
async fn a_gateway_on_stdio_has_a_socket_too() {
    let manual = Upstream::stdio(Script::new("up", LEGACY)).await;
    let gateway = StdioGateway::prepare(&Config::new().upstream_with(&manual, "start = \"manual\""));
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools().await;
    let runtime = gateway.program.env.iter().find(|(name, _)| name == "XDG_RUNTIME_DIR").expect("it is set").1.clone();
    until("it listens there", || async { (sockets(Path::new(&runtime)).len() == 1).then_some(()) }).await;
    let (is_done, said) = run(bare(Path::new(&runtime), &["start", "up"])).await;
    assert!(is_done && said.contains("up is ready (6 tools)"), "{said}");
    client.tools_until("its tools are there", |tools| tools.contains(&"up__echo".into())).await;
}

#[tokio::test]
async fn loopback_is_no_credential() {
    let (_up, config) = up("up").await;
    let gateway = Gateway::serve(&config).await;
    let json = ("content-type", "application/json");
    for (method, path) in [("GET", "/readyz?verbose"), ("GET", "/readyz?format=json"), ("POST", "/upstreams/up/stop")] {
        let url = format!("{}{path}", gateway.admin);
        for headers in [vec![json], vec![json, ("authorization", "Bearer wrong")]] {
            let answer = http::exchange(&url, method, &headers, "{}").await;
            assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Bearer")), "{path}");
            assert!(!String::from_utf8_lossy(&answer.body).contains("up"), "{path}: nothing is told");
        }
    }
    // Elsewhere the token is what is asked for.
    let address = gateway.admin.trim_start_matches("http://").to_owned();
    let elsewhere = Scratch::new();
    let with = |token: &str| {
        let mut command = bare(elsewhere.path(), &["status", "up", "--admin", &address]);
        command.env("TRUNKLINE_ADMIN__TOKEN", token);
        command
    };
    let (is_done, said) = run(with(ADMIN_TOKEN)).await;
    assert!(is_done && said.contains("name        up"), "{said}");
    let (is_done, said) = run(with("0123456789abcdef")).await;
    assert!(!is_done && said.contains("this page requires `Authorization: Bearer <token>`"), "{said}");
}

#[tokio::test]
async fn what_a_terminal_hides_is_written_out_wherever_it_is_shown() {
    let config = Config::new().section("[upstreams.ill]\ncommand = \"/no/such/\u{202e}dnammoc\u{200b}\u{9b}2J\"");
    let gateway = Gateway::serve(&config).await;
    let page = gateway.look_until("/readyz?verbose", "it has failed", |page| page.contains("failed")).await;
    let json = gateway.look("/readyz?verbose&format=json").await;
    let log = gateway.says(&["upstream failed"]).await;
    let shown = [
        ("the page", page),
        ("JSON", String::from_utf8_lossy(&json.body).into_owned()),
        ("the log", log),
        ("ls", run(gateway.command(&["ls"])).await.1),
        ("status", run(gateway.command(&["status", "ill"])).await.1),
        ("status as JSON", run(gateway.command(&["status", "ill", "--json"])).await.1),
        ("check", run(gateway.command(&["check"])).await.1),
    ];
    for (what, text) in shown {
        assert!(text.contains("dnammoc"), "{what}: {text}");
        let hidden = |c: char| c != '\n' && (c.is_control() || matches!(c, '\u{202e}' | '\u{200b}'));
        assert!(!text.contains(hidden), "{what}: {}", text.escape_unicode());
        assert!(text.contains("202e"), "{what}: {text}");
    }
}

/// A server that is none of ours, and answers whatever is asked with this, each of its hidden characters as it is.
#[allow(clippy::disallowed_methods, reason = "a test's tasks end with its runtime")]
async fn foreign(answer: String) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let address = listener.local_addr().expect("an address").to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = stream.read_u8().await else { break };
                head.push(byte);
            }
            let head = String::from_utf8_lossy(&head).to_lowercase();
            let length =
                head.split_once("content-length: ").and_then(|(_, rest)| rest.split("\r\n").next()?.parse().ok());
            let mut body = vec![0; length.unwrap_or(0)];
            stream.read_exact(&mut body).await.expect("the body comes");
            // Who does not read it is no affair of this server.
            let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\n\r\n{answer}").as_bytes()).await;
        }
    });
    address
}

#[tokio::test]
async fn no_command_prints_as_json_what_a_terminal_would_obey_or_hide() {
    const HIDDEN: &str = "evil\u{202e}\u{200b}\u{9b}2J";
    let row = format!(
        "{{\"name\":\"up\",\"transport\":\"{HIDDEN}\",\"state\":\"ready\",\"since_seconds\":1,\"restarts\":0,\"stderr\":[\"{HIDDEN}\"]}}"
    );
    let call = format!(
        "{{\"principal\":\"{HIDDEN}\",\"method\":\"tools/call\",\"duration_seconds\":1,\"ended_ago_seconds\":1}}"
    );
    let answer = format!(
        "{{\"ready\":true,\"upstreams\":[{row}],\"cursor\":\"x\",\"open\":[],\"ended\":[{call}],\"outcome\":\"{HIDDEN}\",\r\t\"url\":\"{HIDDEN}\",\"expires_in_seconds\":60}}"
    );
    let (address, folder) = (foreign(answer).await, Scratch::new());
    let file = folder.file(
        "evil\u{202e}\u{200b}\u{9b}2J.toml",
        "[upstreams.up]\nurl = \"https://h.example/\"\nheaders = { A = \"evil\u{202e}\u{200b}\" }\nx = 1\n",
    );
    let good =
        folder.file("good\u{202e}\u{200b}evil.toml", "[upstreams.up]\nurl = \"https://h.example/?evil=\u{202e}\"\n");
    let (file, good) = (file.display().to_string(), good.display().to_string());
    for (arguments, is_remote) in [
        (&["ls", "--json"][..], true),
        (&["status", "up", "--json"], true),
        (&["logs", "--json"], true),
        (&["calls", "--json"], true),
        (&["ui", "--json"], true),
        (&["reload", "--json"], true),
        (&["check", "--json", "--config", &file], false),
        (&["config", "path", "--json", "--config", &good], false),
        (&["add", "more", "--json", "--config", &good, "--", "true"], false),
        (&["remove", "more", "--json", "--config", &good], false),
    ] {
        let mut command = bare(folder.path(), arguments);
        if is_remote {
            command.args(["--admin", &address]).env("TRUNKLINE_ADMIN__TOKEN", ADMIN_TOKEN);
        }
        let output = within("it answers", command.output()).await.expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let hidden = |c: char| c != '\n' && (c.is_control() || matches!(c, '\u{202e}' | '\u{200b}'));
        assert!(said.contains("evil") && said.contains("202e"), "{arguments:?}: {output:?}");
        assert!(!said.contains(hidden), "{arguments:?}: {}", said.escape_unicode());
        let lines = serde_json::Deserializer::from_str(&said).into_iter::<serde_json::Value>();
        assert!(
            lines.count() > 0
                && serde_json::Deserializer::from_str(&said).into_iter::<serde_json::Value>().all(|one| one.is_ok()),
            "{said}"
        );
    }
}

#[tokio::test]
async fn a_restart_says_what_it_waits_for_and_cuts_it_when_told_to() {
    let (up, config) = up("up").await;
    let gateway = Gateway::serve(&config).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("its tools are there", |tools| tools.contains(&"up__wait".into())).await;
    for is_cut in [false, true] {
        let gate = if is_cut { "second" } else { "first" };
        let call = client.start(tool("up__wait", &format!("{{\"gate\":\"{gate}\"}}"))).await;
        up.waiting_at(gate).await;
        let arguments: &[&str] = if is_cut { &["restart", "up", "--now"] } else { &["restart", "up"] };
        let restarting = run(gateway.command(arguments));
        let ending = async {
            if !is_cut {
                gateway
                    .look_until("/readyz?verbose", "it waits", |page| page.contains("1 running calls have 5 s"))
                    .await;
                up.order(Order::Open(gate.into())).await;
            }
            call.answer().await
        };
        let ((is_done, said), answer) = tokio::join!(restarting, ending);
        assert!(is_done && said.contains("up is ready (6 tools)"), "{said}");
        assert_eq!(
            said.contains("up has 1 call in flight: waiting for up to 5 s (--now cuts them)"),
            !is_cut,
            "{said}"
        );
        match is_cut {
            false => assert_eq!(answer.text(), "released"),
            true => assert!(answer.message().contains("restarted on request"), "{answer:?}"),
        }
    }
}

#[tokio::test]
async fn several_upstreams_are_ordered_at_once_and_each_outcome_is_told() {
    let ((_one, config), (two, _)) = (up("one").await, up("two").await);
    let config = config.upstream(&two);
    let gateway = Gateway::serve(&config).await;
    let both = |page: &str| page.matches("  ready  ").count() == 2;
    gateway.look_until("/readyz?verbose", "both are up", both).await;
    let (is_done, said) = run(gateway.command(&["stop", "one", "nope", "two", "one"])).await;
    assert!(!is_done && said.contains("no upstream `nope`. Known: one, two"), "{said}");
    assert_eq!(said.matches("one is stopped").count(), 1, "{said}");
    assert!(said.contains("two is stopped"), "one that is unknown keeps no other from it: {said}");
    let (is_done, said) = run(gateway.command(&["start", "--all"])).await;
    assert!(is_done && said.contains("one is ready (6 tools)") && said.contains("two is ready (6 tools)"), "{said}");
    let (is_done, said) = run(gateway.command(&["disable", "one", "two", "--json"])).await;
    let rows: serde_json::Value = serde_json::from_str(&said).expect("it is JSON");
    assert!(is_done && rows[0]["name"] == "one" && rows[1]["state"] == "stopped", "{said}");
    for (arguments, names) in [(&["enable", "one", "--json"][..], 1), (&["start", "--all", "--json"], 2)] {
        let (is_done, said) = run(gateway.command(arguments)).await;
        let rows: serde_json::Value = serde_json::from_str(&said).expect("it is JSON");
        let rows = rows.as_array().expect("an array, however many there are");
        assert!(is_done && rows.len() == names && rows.iter().all(|row| row["state"] == "ready"), "{said}");
    }
    let unknown = within("it ends", gateway.command(&["stop", "nope", "--json"]).output()).await.expect("it runs");
    let rows: serde_json::Value = serde_json::from_slice(&unknown.stdout).expect("it is JSON");
    assert!(rows[0]["name"] == "nope" && rows[0]["error"].as_str().is_some_and(|why| why.contains("no upstream")));
    assert_eq!(unknown.status.code(), Some(1));
    for arguments in [&["start"][..], &["start", "one", "--all"]] {
        assert!(!run(gateway.command(arguments)).await.0, "{arguments:?}");
    }
}
