//! Whole process trees: whatever an upstream starts, however it hides it and however the gateway ends, nothing is left.

use std::path::PathBuf;
use std::time::Duration;

use trunkline_tests::client::Client;
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::peers::survivors::{none_left, survivors};
use trunkline_tests::process::{self, Program};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::until;

const REVISION: Revision = Revision::R2025_11_25;

/// What upstreams do behind the back of whoever starts them; REAL stands for the program itself.
const HABITS: [(&str, &str); 10] = [
    ("waiting-shell", "REAL; exit $?"),
    ("forking-shell", "exec 3<&0; REAL <&3 & exec 3<&-; wait"),
    ("new-session", "setsid sleep 1000 & exec REAL"),
    ("double-fork", "(sleep 1000 & ) ; exec REAL"),
    ("hidden-double-fork", "(setsid sh -c '(sleep 1000 & ); exit' & ) ; exec REAL"),
    ("deaf-straggler", "setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1000; done' & exec REAL"),
    ("holds-the-pipes", "sleep 1000 & exec REAL"),
    ("session-leader", "exec setsid -w REAL"),
    ("leaves-when-asked", "(trap 'setsid sleep 1000 & exit' TERM; while :; do sleep 1; done) & exec REAL"),
    ("leaves-late", "(trap '(sleep 0.4; exec setsid sleep 1000) & exit' TERM; while :; do sleep 1; done) & exec REAL"),
];

/// A name that no other process bears.
fn unique(what: &str) -> String {
    format!("{what}-{}-{:p}", std::process::id(), std::ptr::from_ref(what))
}

/// Upstreams of every habit, all of whose processes carry a mark of this test.
struct Family {
    mark: String,
    upstreams: Vec<Upstream>,
    config: Config,
}

async fn family(what: &str) -> Family {
    let mut family = Family { mark: unique(what), upstreams: Vec::new(), config: Config::new() };
    for (name, habit) in HABITS {
        let upstream = Upstream::stdio(Script::new(name, REVISION)).await;
        family.add(name, habit, upstream);
    }
    let deaf = Script::new("deaf", REVISION).with(|script| {
        script.deaf_to_eof = true;
        script.deaf_to_term = true;
    });
    family.add("deaf", "exec REAL", Upstream::stdio(deaf).await);
    family
}

impl Family {
    fn add(&mut self, name: &str, habit: &str, upstream: Upstream) {
        let config = std::mem::replace(&mut self.config, Config::new());
        let keys =
            format!("restart = {{ stop_timeout = \"1s\" }}\nenv = {{ TRUNKLINE_TEST_MARK = \"{}\" }}", self.mark);
        self.config = config.program(name, &under(&upstream, habit), &keys);
        self.upstreams.push(upstream);
    }

    /// Waits until every upstream is up, and so everything is there that must go again.
    async fn up(&self, client: &Client) {
        let all = |tools: &[String]| {
            self.upstreams.iter().all(|upstream| tools.contains(&format!("{}__echo", upstream.name)))
        };
        client.tools_until("all children's tools are listed", all).await;
        assert!(survivors(&self.mark).len() > self.upstreams.len(), "there are processes beside the programs");
    }
}

/// The program of an upstream under a shell.
fn under(upstream: &Upstream, habit: &str) -> Program {
    let inner = upstream.program();
    let command = format!("'{}' '{}'", inner.path.display(), inner.args[0]);
    let args = vec!["-c".to_owned(), habit.replace("REAL", &command)];
    Program { path: PathBuf::from("/bin/sh"), args, env: Vec::new() }
}

/// One upstream of a habit.
async fn one(what: &str, habit: &str) -> Family {
    let mut family = Family { mark: unique(what), upstreams: Vec::new(), config: Config::new() };
    family.add("up", habit, Upstream::stdio(Script::new("up", REVISION)).await);
    family
}

/// How often whole families are started and stopped; by hand `TRUNKLINE_CYCLES=112` makes a thousand children.
fn cycles() -> usize {
    std::env::var("TRUNKLINE_CYCLES").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

#[tokio::test]
async fn sigterm_leaves_nobody_whatever_they_hide() {
    for _ in 0..cycles() {
        let family = family("term").await;
        let gateway = Gateway::serve(&family.config).await;
        let client = Client::connect(&gateway.reach(), REVISION).await;
        family.up(&client).await;
        drop(client);
        assert!(gateway.stop().await.success(), "it ends as asked");
        assert_eq!(survivors(&family.mark), Vec::<String>::new(), "at its end nobody is left");
    }
}

#[tokio::test]
async fn the_end_of_stdin_leaves_nobody_whatever_they_hide() {
    for _ in 0..cycles() {
        let family = family("eof").await;
        let gateway = StdioGateway::prepare(&family.config);
        let client = Client::connect(&gateway.reach(), REVISION).await;
        family.up(&client).await;
        client.stdio().close().await;
        assert!(client.stdio().ended().await.success(), "it ends as asked");
        assert_eq!(survivors(&family.mark), Vec::<String>::new(), "at its end nobody is left");
    }
}

#[tokio::test]
async fn kill_leaves_nobody_whatever_they_hide() {
    for _ in 0..cycles() {
        let family = family("kill").await;
        let gateway = Gateway::serve(&family.config).await;
        let client = Client::connect(&gateway.reach(), REVISION).await;
        family.up(&client).await;
        process::signal(gateway.pid, "KILL");
        gateway.ended().await;
        until("the guard has ended them all", || async { survivors(&family.mark).is_empty().then_some(()) }).await;
    }
}

/// Has an upstream's child start something that holds a pipe open, kills the gateway, and waits until nobody holds it.
async fn ended_after_a_kill(what: &str, habit: &str, scratch: &Scratch) {
    let pipe = scratch.path().join("held");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("there is mkfifo").success());
    let mut reader = tokio::process::Command::new("cat").arg(&pipe).kill_on_drop(true).spawn().expect("there is cat");
    let habit = format!("exec 9>'{}'; {habit} & exec 9>&-; exec REAL", pipe.display());
    let family = one(what, &habit).await;
    let gateway = Gateway::serve(&family.config).await;
    let client = Client::connect(&gateway.reach(), REVISION).await;
    client.tools_until("it is up", |tools| tools.contains(&"up__echo".into())).await;
    assert!(reader.try_wait().expect("it can be asked").is_none(), "somebody holds the pipe");
    process::signal(gateway.pid, "KILL");
    gateway.ended().await;
    let ended = tokio::time::timeout(Duration::from_secs(15), reader.wait()).await;
    assert!(ended.is_ok(), "somebody is left who holds the pipe");
}

#[tokio::test]
async fn kill_leaves_nobody_in_the_group_of_a_child_whatever_its_environment() {
    ended_after_a_kill("cleared", "env -i sleep 1000", &Scratch::new()).await;
}

#[tokio::test]
async fn kill_leaves_nobody_who_forks_and_exits_and_leaves_its_session_all_the_time() {
    let scratch = Scratch::new();
    // It ends by itself some time, should nobody end it.
    let text = "trap '' TERM HUP\n[ $1 -gt 20000 ] || [ ! -e $2 ] && exit\nsetsid sh $0 $(($1 + 1)) $2 &\n";
    let hops = scratch.file("hops", text);
    let habit = format!("setsid sh '{}' 0 '{}'", hops.display(), hops.display());
    ended_after_a_kill("hopper", &habit, &scratch).await;
}

#[tokio::test]
async fn a_direct_child_goes_with_the_gateway_also_without_the_guard() {
    let family = one("death", "exec sleep 1000").await;
    let gateway = Gateway::serve(&family.config).await;
    until("the child is there", || async { (!survivors(&family.mark).is_empty()).then_some(()) }).await;
    // Stopped, and not killed: it would be replaced.
    let guard = guard_of(gateway.pid).await;
    process::signal(guard, "STOP");
    process::signal(gateway.pid, "KILL");
    gateway.ended().await;
    until("it was told by the system", || async { survivors(&family.mark).is_empty().then_some(()) }).await;
    process::signal(guard, "KILL");
}

#[tokio::test]
async fn a_guard_that_is_killed_is_replaced_and_the_next_one_ends_them_all() {
    let family = one("guard", "(trap '' TERM; setsid sleep 1000) & exec REAL").await;
    let gateway = Gateway::serve(&family.config).await;
    let client = Client::connect(&gateway.reach(), REVISION).await;
    client.tools_until("it is up", |tools| tools.contains(&"up__echo".into())).await;
    straggler(&family.mark).await;
    let guard = guard_of(gateway.pid).await;
    // Who ends by name all that is called like the gateway does not end it too.
    let name = || async { std::fs::read_to_string(format!("/proc/{guard}/comm")).ok() };
    until("it has a name of its own", || async { name().await.filter(|name| name == "upstream-guard\n") }).await;
    process::signal(guard, "KILL");
    until("there is another", || async { (guard_of(gateway.pid).await != guard).then_some(()) }).await;
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    process::signal(gateway.pid, "KILL");
    gateway.ended().await;
    until("the next guard has ended them all", || async { survivors(&family.mark).is_empty().then_some(()) }).await;
}

#[tokio::test]
async fn what_a_dead_upstream_left_is_gone_before_the_next_one_starts() {
    let family = one("again", "setsid sleep 1000 & exec REAL").await;
    let gateway = Gateway::serve(&family.config).await;
    let client = Client::connect(&gateway.reach(), REVISION).await;
    client.tools_until("it is up", |tools| tools.contains(&"up__echo".into())).await;
    let straggler = straggler(&family.mark).await;
    process::signal(family.upstreams[0].started(0).await.0, "KILL");
    family.upstreams[0].started(1).await;
    assert!(!process::is_alive(straggler), "the first one's straggler is gone");
    let answer = client.call("up__echo", "{\"a\":1}").await;
    assert_eq!(answer.text(), "{\"a\":1}");
}

#[tokio::test]
async fn strangers_that_are_left_to_the_gateway_are_reaped() {
    let family = one("orphans", "(sleep 1000 & ) ; exec REAL").await;
    let gateway = Gateway::serve(&family.config).await;
    let client = Client::connect(&gateway.reach(), REVISION).await;
    client.tools_until("it is up", |tools| tools.contains(&"up__echo".into())).await;
    let orphan = straggler(&family.mark).await;
    assert!(process::children(gateway.pid).contains(&orphan), "it was left to the gateway");
    process::signal(orphan, "KILL");
    until("it is reaped", || async { (!process::children(gateway.pid).contains(&orphan)).then_some(()) }).await;
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
}

#[tokio::test]
async fn no_open_file_is_handed_down() {
    let scratch = Scratch::new();
    let listing = scratch.path().join("open");
    let family = one("files", &format!("ls -l /proc/self/fd > '{}'; exec REAL", listing.display())).await;
    // The gateway itself was handed one by whoever started it, who was careless.
    let gateway = StdioGateway::prepare(&family.config);
    let inner = &gateway.program;
    let args: String = inner.args.iter().map(|arg| format!(" '{arg}'")).collect();
    let script = format!("exec 7</dev/null 9>/dev/null; exec '{}'{args}", inner.path.display());
    let careless = Program { path: "/bin/sh".into(), args: vec!["-c".into(), script], env: inner.env.clone() };
    let client = Client::connect(&trunkline_tests::client::Reach::Child(careless), REVISION).await;
    client.tools_until("it is up", |tools| tools.contains(&"up__echo".into())).await;
    let text = std::fs::read_to_string(&listing).expect("the child has written it");
    assert!(text.contains(" 2 -> "), "{text}");
    assert!(!text.contains(" 7 -> ") && !text.contains(" 9 -> "), "{text}");
    client.stdio().close().await;
    client.stdio().ended().await;
    none_left(&family.mark).await;
}

/// The process that is not a program of the tests.
async fn straggler(mark: &str) -> u32 {
    let line = until("the straggler is there", || async {
        survivors(mark).into_iter().find(|line| line.contains("sleep 1000") && !line.contains("sh -c"))
    })
    .await;
    line.split(' ').next().and_then(|pid| pid.parse().ok()).expect("a line begins with the process")
}

/// The guard of a gateway.
async fn guard_of(gateway: u32) -> u32 {
    let is_guard = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains("guard-upstreams"))
    };
    until("there is a guard", || async {
        process::children(gateway).into_iter().filter(|pid| process::is_alive(*pid)).find(is_guard)
    })
    .await
}
