//! `trunkline stdio --shared`: many hosts, one gateway, one set of children; and each host keeps its session when that gateway ends.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::AsyncWriteExt;

use trunkline_tests::client::{Client, Desk, Reach, Reply, tool};
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::process::{self, is_alive};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::plan::Kind;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{all, until, within};

const LEGACY: Revision = Revision::R2025_11_25;

/// A configuration, and the command that shares it.
struct Stage {
    gateway: StdioGateway,
}

impl Stage {
    fn prepare(config: &Config) -> Stage {
        Stage::lingering("1s", config)
    }

    fn lingering(linger: &str, config: &Config) -> Stage {
        let config = config.clone().section(&format!("[server.shutdown]\nlinger = \"{linger}\""));
        let mut gateway = StdioGateway::prepare(&config);
        gateway.program.args.insert(1, "--shared".to_owned());
        Stage { gateway }
    }

    fn reach(&self) -> Reach {
        self.gateway.reach()
    }

    /// The file of its configuration.
    fn file(&self) -> PathBuf {
        PathBuf::from(self.gateway.program.args.last().expect("it is named"))
    }

    /// Starts it, without a client.
    fn start(&self) -> tokio::process::Child {
        let program = &self.gateway.program;
        let mut command = tokio::process::Command::new(&program.path);
        command.args(&program.args).envs(program.env.iter().cloned()).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    }

    /// Runs it to its end, without a client; gives its exit code and what it says.
    async fn fails(&self) -> (Option<i32>, String) {
        let mut child = self.start();
        let _open = child.stdin.take();
        let (code, stdout, said) = ended(child).await;
        assert_eq!(stdout, "", "stdout is for frames");
        (code, said)
    }

    fn folder(&self) -> PathBuf {
        let run = self.gateway.program.env.iter().find(|(name, _)| name == "XDG_RUNTIME_DIR").expect("it is set");
        Path::new(&run.1).join("trunkline")
    }

    /// The processes of the gateways that can be joined, as their sockets have them.
    fn gateways(&self) -> Vec<u32> {
        let entries = std::fs::read_dir(self.folder()).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let pids = names.filter_map(|name| name.split_once(".shared.")?.1.split('.').next()?.parse().ok());
        let mut pids: Vec<u32> = pids.filter(|pid| is_alive(*pid)).collect();
        pids.sort_unstable();
        pids
    }
}

/// The exit code of a process that ends, and what it says on stdout and on stderr.
async fn ended(child: tokio::process::Child) -> (Option<i32>, String, String) {
    let ended = within("it ends", child.wait_with_output()).await.expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (ended.status.code(), text(ended.stdout), text(ended.stderr))
}

const HELLO: &str = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}\n";

/// The one answer on stdout, which is an error to the handshake.
fn refusal(stdout: &str) -> String {
    let answer: serde_json::Value = serde_json::from_str(stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"));
    assert_eq!((&answer["id"], answer["error"]["code"].as_i64()), (&serde_json::json!(7), Some(-32603)), "{stdout}");
    answer["error"]["message"].as_str().expect("it has a message").to_owned()
}

async fn works(client: &Client, word: &str) {
    let arguments = format!("{{\"word\":\"{word}\"}}");
    assert_eq!(client.call("up__echo", &arguments).await.text(), arguments);
}

#[tokio::test]
async fn ten_hosts_share_one_gateway_and_one_child_and_each_works_on_when_it_is_killed() {
    let up = Upstream::stdio(Script::new("up", LEGACY)).await;
    let stage = Stage::prepare(&Config::new().upstream(&up));
    let reach = stage.reach();
    let revisions = [LEGACY, Revision::MODERN, Revision::R2025_03_26];
    let connecting = (0..10).map(|number| Client::connect(&reach, revisions[number % 3]));
    let clients = all(connecting).await;
    for client in &clients {
        works(client, "before").await;
    }
    let first = stage.gateways();
    assert_eq!(first.len(), 1, "one gateway for ten hosts");
    let mode = |path: &Path| std::fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&stage.folder()), 0o700);
    for entry in std::fs::read_dir(stage.folder()).expect("it is there").flatten() {
        assert_eq!(mode(&entry.path()), 0o600, "{:?}", entry.path());
    }
    let started = up.started(0).await.0;
    // A call with effects and one that looks are under way when the gateway is killed.
    let call = clients[0].start(tool("up__wait", "{\"gate\":\"g\"}")).await;
    up.waiting_at("g").await;
    let killed = tokio::time::Instant::now();
    process::signal(first[0], "KILL");
    let cut = call.answer().await;
    assert!(cut.message().contains("may or may not have run"), "{cut:?}");
    for (number, client) in clients.iter().enumerate() {
        works(client, "after").await;
        // What this takes is a matter of the machine: shown with `--nocapture`, and judged by nobody.
        println!("host {} works again {} ms after the gateway was killed", number + 1, killed.elapsed().as_millis());
    }
    let next = stage.gateways();
    assert!(next.len() == 1 && next != first, "{first:?} {next:?}");
    let again = up.started(1).await.0;
    assert!(again != started && up.report().await.0 >= 1);
    until("no child of the first is left", || async { (!is_alive(started)).then_some(()) }).await;
    // None has ended, and each has the session that it had.
    assert!(clients.iter().all(|client| is_alive(client.stdio().pid)));
    clients[0].stdio().close().await;
    assert!(clients[0].stdio().ended().await.success());
    for client in &clients[1..] {
        works(client, "one less").await;
        assert_eq!(client.complaints.all(), Vec::<String>::new());
    }
    assert_eq!(stage.gateways(), next);
    drop(clients);
    until("it ends when its last client has gone", || async { (!is_alive(next[0])).then_some(()) }).await;
    until("and its child", || async { (!is_alive(again)).then_some(()) }).await;
}

#[tokio::test]
async fn questions_progress_and_cancellations_pass_the_bridge_and_a_question_of_a_lost_gateway_is_withdrawn() {
    let notice = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":$ID,\"progress\":7}}\n";
    let script =
        Script::new("up", LEGACY).asking().rule(Rule::on_tool("echo", vec![Act::Write(notice.to_owned())]).once());
    let up = Upstream::stdio(script).await;
    let stage = Stage::prepare(&Config::new().upstream(&up));
    let other = Client::connect_with(&stage.reach(), LEGACY, Desk::willing("Bob")).await;
    let client = Client::connect_with(&stage.reach(), LEGACY, Desk::willing("Ada")).await;
    let call = client.start(tool("up__echo", "{}").token("\"t\"")).await;
    call.progress(7).await;
    assert_eq!(call.answer().await.text(), "{}");
    let ask = |nonce: &str| tool("up__ask", &format!("{{\"plan\":\"form\",\"who\":\"Ada\",\"nonce\":\"{nonce}\"}}"));
    let answered = client.request(ask("a")).await;
    assert!(answered.result().contains("Ada"), "{answered:?}");
    assert_eq!((client.desk.asked.all().len(), other.desk.asked.all().len()), (1, 0), "only whose call it is");
    let waiting = client.start(tool("up__wait", "{\"gate\":\"c\"}")).await;
    up.waiting_at("c").await;
    waiting.cancel().await;
    up.cancelled(0).await;
    // A question is open when the gateway is killed: it is withdrawn, and the next one has a number of its own.
    client.desk.now(Kind::Form, Reply::Gate("late".to_owned(), Box::new(Reply::Accept)));
    let asking = client.start(ask("b")).await;
    let first = client.desk.asked(1).await;
    process::signal(stage.gateways()[0], "KILL");
    assert!(asking.answer().await.message().contains("may or may not have run"));
    client.desk.withdrawn.wait("the question is withdrawn", |_| Some(())).await;
    client.desk.now(Kind::Form, Reply::Accept);
    let again = client.call("up__ask", "{\"plan\":\"form\",\"who\":\"Ada\",\"nonce\":\"c\"}").await;
    assert!(again.result().contains("Ada"), "{again:?}");
    assert_ne!(format!("{:?}", client.desk.asked(2).await), format!("{first:?}"));
    assert_eq!(client.complaints.all(), Vec::<String>::new());
}

#[tokio::test]
async fn the_next_gateway_knows_the_subscriptions_of_the_session_and_the_client_hears_that_lists_may_have_changed() {
    let up = Upstream::stdio(Script::new("up", LEGACY)).await;
    let stage = Stage::prepare(&Config::new().upstream(&up));
    let client = Client::connect(&stage.reach(), LEGACY).await;
    client.tools_until("the upstream is up", |tools| tools.contains(&"up__echo".into())).await;
    let uri = client.list("resources/list", "resources", "uri").await.remove(0);
    let changes = client.listen(&[uri.as_str()]).await;
    let before = client.notices.mark();
    process::signal(stage.gateways()[0], "KILL");
    changes.hears(before, "notifications/tools/list_changed").await;
    let updated = changes.hears(before, "notifications/resources/updated").await;
    assert!(format!("{updated:?}").contains(&uri), "{updated:?}");
    let resubscribed =
        |event: &trunkline_tests::journal::Event| format!("{event:?}").contains("resources/subscribe").then_some(());
    let mark = up.events.mark();
    if up.events.all().iter().filter_map(resubscribed).count() < 2 {
        up.events.wait_from(mark, "it is subscribed again", resubscribed).await;
    }
}

#[tokio::test]
async fn a_host_that_joins_while_the_gateway_ends_gets_the_next_and_no_two_children_run_at_once() {
    let up = Upstream::stdio(Script::new("up", LEGACY)).await;
    let stage = Stage::lingering("0s", &Config::new().upstream(&up));
    let (mut before, mut children) = (None, Vec::new());
    for _ in 0..6 {
        let client = Client::connect(&stage.reach(), LEGACY).await;
        works(&client, "x").await;
        let now = *stage.gateways().last().expect("there is one");
        if before.replace(now) != Some(now) {
            assert!(!children.last().is_some_and(|child| is_alive(*child)), "the last child has ended before");
            children.push(up.started(children.len()).await.0);
        }
        client.stdio().close().await;
        assert!(client.stdio().ended().await.success());
    }
    let last = before.expect("there was one");
    until("it is gone", || async { (!is_alive(last)).then_some(()) }).await;
}

#[tokio::test]
async fn a_running_serve_is_joined_and_one_with_other_values_is_named_and_not() {
    let up = Upstream::stdio(Script::new("up", LEGACY)).await;
    let config = Config::new().upstream(&up).server("instructions = \"${WORDS:-none}\"");
    let gateway = Gateway::serve(&config.section("[server.shutdown]\nlinger = \"1s\"")).await;
    let shared = |words: &str| {
        let file = gateway.file.display().to_string();
        let mut program = process::Program::ours(process::GATEWAY, &["stdio", "--shared", "--config", &file]);
        let home = gateway.runtime().parent().expect("it is in a folder").to_owned();
        for (name, path) in
            [("HOME", home.clone()), ("XDG_RUNTIME_DIR", gateway.runtime()), ("XDG_CACHE_HOME", home.join("cache"))]
        {
            program.env.push((name.to_owned(), path.display().to_string()));
        }
        program.env.push(("WORDS".to_owned(), words.to_owned()));
        Reach::Child(program)
    };
    // What the reference comes to is what counts.
    let joined = Client::connect(&shared("none"), LEGACY).await;
    works(&joined, "by a bridge").await;
    let calls = gateway.look("/api/v1/calls").await;
    assert!(String::from_utf8_lossy(&calls.body).contains("up__echo"), "it is that gateway that was called");
    let other = Client::connect(&shared("other"), LEGACY).await;
    works(&other, "by a gateway of its own").await;
    let note = format!("(process {}), but it has other values, or was started in another folder", gateway.pid);
    other.stdio().stderr.wait("the other one is named", |line| line.contains(&note).then_some(())).await;
    assert!(!joined.stdio().stderr.all().iter().any(|line| line.contains("note:")));
    // Without that gateway the first gets one of its own, and works on.
    assert!(gateway.stop().await.success());
    works(&joined, "without it").await;
}

#[tokio::test]
async fn what_keeps_a_gateway_from_being_shared_is_said() {
    let up = Upstream::stdio(Script::new("up", LEGACY)).await;
    // It is not the bridge that writes the audit: the gateway it starts ends with this.
    let stage = Stage::prepare(&Config::new().upstream(&up).section("[audit]\nfile = \"/proc/no/such/audit\""));
    let (code, said) = stage.fails().await;
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("the shared gateway did not start (exit status: 1)") && said.contains("cannot write the audit"),
        "{said}"
    );
    std::fs::write(stage.file(), "[upstreams.a]\ncomand = 'x'\n").expect("it can be written");
    let (code, said) = stage.fails().await;
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("did you mean `command`?"), "{said}");
}

#[tokio::test]
async fn while_the_configuration_cannot_be_read_requests_are_refused_with_that_and_then_all_works_on() {
    let up = Upstream::stdio(Script::new("up", LEGACY)).await;
    let stage = Stage::prepare(&Config::new().upstream(&up));
    let client = Client::connect(&stage.reach(), LEGACY).await;
    works(&client, "before").await;
    let whole = std::fs::read_to_string(stage.file()).expect("it can be read");
    // The gateway keeps what it has while its file is wrong.
    std::fs::write(stage.file(), "{").expect("it can be written");
    works(&client, "meanwhile").await;
    process::signal(stage.gateways()[0], "KILL");
    let refused = until("a request is refused", || async {
        let answer = client.call_once("up__echo", "{}").await;
        let is_it = answer.frame().error.is_some() && answer.message().contains("there is no shared gateway");
        is_it.then_some(answer)
    })
    .await;
    assert!(refused.message().contains("trunkline.toml"), "{refused:?}");
    std::fs::write(stage.file(), whole).expect("it can be written");
    until("it works on", || async {
        let answer = client.call_once("up__echo", "{}").await;
        (answer.frame().error.is_none()).then_some(())
    })
    .await;
    assert!(is_alive(client.stdio().pid));
}

#[tokio::test]
async fn a_gateway_that_hangs_keeps_no_host_from_the_next_one() {
    let up = Upstream::stdio(Script::new("up", LEGACY)).await;
    let stage = Stage::prepare(&Config::new().upstream(&up));
    let first = Client::connect(&stage.reach(), LEGACY).await;
    works(&first, "before").await;
    let hung = stage.gateways();
    process::signal(hung[0], "STOP");
    let (second, third) =
        (Client::connect(&stage.reach(), LEGACY).await, Client::connect(&stage.reach(), LEGACY).await);
    works(&second, "beside").await;
    works(&third, "beside").await;
    assert_eq!(stage.gateways().len(), 2, "one that hangs, and one for all others");
    process::signal(hung[0], "CONT");
    works(&first, "again").await;
}

#[tokio::test]
async fn a_host_whose_program_was_replaced_on_disk_still_starts_the_next_gateway() {
    let up = Upstream::stdio(Script::new("up", LEGACY)).await;
    let mut stage = Stage::prepare(&Config::new().upstream(&up));
    let scratch = Scratch::new();
    let (copy, newer) = (scratch.path().join("trunkline"), scratch.path().join("newer"));
    std::fs::copy(&stage.gateway.program.path, &copy).expect("it can be read");
    std::fs::copy(&copy, &newer).expect("it can be read");
    stage.gateway.program.path.clone_from(&copy);
    let client = Client::connect(&stage.reach(), LEGACY).await;
    works(&client, "before").await;
    std::fs::rename(&newer, &copy).expect("as an upgrade does");
    let call = client.start(tool("up__wait", "{\"gate\":\"g\"}")).await;
    up.waiting_at("g").await;
    process::signal(stage.gateways()[0], "KILL");
    // Only then is it known that the gateway is gone: what is sent before may or may not have run.
    assert!(call.answer().await.message().contains("may or may not have run"));
    works(&client, "after").await;
}

#[tokio::test]
async fn a_host_whose_gateway_cannot_be_started_is_answered_with_the_cause_and_what_to_do() {
    let up = Upstream::stdio(Script::new("up", LEGACY)).await;
    let stage = Stage::prepare(&Config::new().upstream(&up).section("[audit]\nfile = \"/proc/no/such/audit\""));
    let mut child = stage.start();
    let mut stdin = child.stdin.take().expect("it is a pipe");
    let ping = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n";
    stdin.write_all(format!("{ping}{HELLO}").as_bytes()).await.expect("it reads");
    // The host waits, and keeps stdin open.
    let (code, stdout, stderr) = ended(child).await;
    let said = refusal(&stdout);
    assert!(said.contains("there is no shared gateway") && said.contains("cannot write the audit"), "{said}");
    assert!(said.contains("Run `trunkline check`") && said.contains("without `--shared`"), "{said}");
    assert!(code == Some(1) && stderr.contains("cannot write the audit"), "{stderr}");
}

#[tokio::test]
async fn a_host_that_leaves_while_a_gateway_is_waited_for_is_answered_and_does_not_wait_on() {
    let up = Upstream::stdio(Script::new("up", LEGACY)).await;
    let stage = Stage::lingering("0s", &Config::new().upstream(&up));
    let client = Client::connect(&stage.reach(), LEGACY).await;
    works(&client, "before").await;
    let first = stage.gateways()[0];
    client.stdio().close().await;
    until("the gateway is gone", || async { (!is_alive(first)).then_some(()) }).await;
    // Whoever starts the next one hangs.
    let mut entries = std::fs::read_dir(stage.folder()).expect("it is there").flatten().map(|entry| entry.path());
    let lock = entries.find(|path| path.extension().is_some_and(|ending| ending == "lock")).expect("it is left");
    let lock = std::fs::File::open(lock).expect("it is ours");
    lock.lock().expect("nobody has it");
    let mut silent = stage.start();
    drop(silent.stdin.take());
    assert_eq!(ended(silent).await, (Some(0), String::new(), String::new()), "nobody waits for anything");
    let mut child = stage.start();
    let mut stdin = child.stdin.take().expect("it is a pipe");
    stdin.write_all(HELLO.as_bytes()).await.expect("it reads");
    drop(stdin);
    let (code, stdout, _) = ended(child).await;
    let said = refusal(&stdout);
    assert!(
        said.contains("stdin was closed before a shared gateway was joined: another process is starting it"),
        "{said}"
    );
    assert_eq!(code, Some(1));
    // What is piped in is answered where a gateway can be had.
    drop(lock);
    let mut child = stage.start();
    let mut stdin = child.stdin.take().expect("it is a pipe");
    stdin.write_all(HELLO.as_bytes()).await.expect("it reads");
    drop(stdin);
    let (code, stdout, stderr) = ended(child).await;
    assert!(code == Some(0) && stdout.contains("\"id\":7,\"result\""), "{stdout} {stderr}");
}
