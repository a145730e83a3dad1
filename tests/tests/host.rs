//! What the machine does to the gateway and its children: no more processes, no more memory, and being its first process.

use std::process::Command;

use trunkline_tests::client::{Client, tool};
use trunkline_tests::confine::{Confine, or_skip};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::peers::survivors::{none_left, survivors};
use trunkline_tests::process::{self, Program};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::shell;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::until;

const REVISION: Revision = Revision::R2025_11_25;

/// Keys under which all processes of an upstream bear a mark of this test, and under which it is soon started again.
fn marked(mark: &str) -> String {
    format!(
        "restart = {{ stop_timeout = \"1s\", backoff_min = \"100ms\", backoff_max = \"300ms\", max_restarts = 1000 }}\n\
         env = {{ TRUNKLINE_TEST_MARK = \"{mark}\" }}"
    )
}

/// The program of an upstream under a shell that does something else first.
fn under(upstream: &Upstream, habit: &str) -> Program {
    let inner = upstream.program();
    let real = format!("exec '{}' '{}'", inner.path.display(), inner.args[0]);
    Program { path: "/bin/sh".into(), args: vec!["-c".into(), format!("{habit}\n{real}")], env: Vec::new() }
}

/// The children of a process that have ended and were not reaped.
fn zombies(pid: u32) -> Vec<u32> {
    process::children(pid).into_iter().filter(|child| !process::is_alive(*child)).collect()
}

/// How a program is made the first process of a system of its own; or why that is refused here.
fn apart() -> Result<Vec<&'static str>, String> {
    let ways = [
        vec!["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"],
        vec!["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"],
    ];
    let mut refused = String::new();
    for way in ways {
        match Command::new(way[0]).args(&way[1..]).arg("true").output() {
            Ok(output) if output.status.success() => return Ok(way),
            Ok(output) => refused = String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => refused = error.to_string(),
        }
    }
    Err(format!("no namespace of processes can be made here: {refused}"))
}

#[tokio::test]
async fn as_the_first_process_it_reaps_strangers_and_ends_when_told() {
    let Some(way) = or_skip(apart()) else { return };
    let scratch = Scratch::new();
    let (mark, done) = (scratch.path().display().to_string(), scratch.path().join("done"));
    let orphans = "i=0; while [ $i -lt 1000 ]; do (: &); i=$((i+1)); done";
    let habit = format!("(setsid sleep 1000 &)\n({orphans}; : > '{}') &", done.display());
    let upstream = Upstream::stdio(Script::new("up", REVISION)).await;
    let config = Config::new().program("up", &under(&upstream, &habit), &marked(&mark));
    let gateway = Gateway::serve_under(&way, &config).await;
    let client = Client::connect(&gateway.reach(), REVISION).await;
    client.tools_until("it is up", |tools| tools.contains(&"up__echo".into())).await;
    let inner = *gateway.children().first().expect("it runs behind the one that made its system");
    let inside = std::fs::read_to_string(format!("/proc/{inner}/status")).expect("it runs");
    let numbers = inside.lines().find(|line| line.starts_with("NSpid:")).expect("it has numbers");
    assert!(numbers.ends_with("\t1"), "it is the first one: {numbers}");
    until("a thousand orphans have ended", || async { done.exists().then_some(()) }).await;
    until("all are reaped", || async { zombies(inner).is_empty().then_some(()) }).await;
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    drop(client);
    process::signal(inner, "TERM");
    assert!(gateway.ended().await.success(), "it ends as asked");
    assert_eq!(survivors(&mark), Vec::<String>::new());
}

#[tokio::test]
async fn a_full_table_of_processes_is_survived() {
    let Some(confine) = or_skip(Confine::processes(300)) else { return };
    let scratch = Scratch::new();
    let (mark, go) = (scratch.path().display().to_string(), scratch.path().join("go"));
    let bomb = "i=0; while [ $i -lt 1000 ]; do sleep 1000 & i=$((i+1)); done";
    let habit = format!("(while [ ! -e '{}' ]; do sleep 0.05; done; {bomb}) 2>/dev/null &", go.display());
    let bomber = Upstream::stdio(Script::new("bomber", REVISION)).await;
    let well = Upstream::stdio(Script::new("well", REVISION)).await;
    let config = Config::new().program("bomber", &under(&bomber, &habit), &marked(&mark));
    // A call that it cannot be started for is not to wait for long: that it is refused is what the test looks for.
    let config = config.upstream_with(&well, &format!("start_wait = \"500ms\"\n{}", marked(&mark)));
    let gateway =
        Gateway::serve_under(&["/bin/sh", "-c", &format!("{}; exec \"$@\"", confine.enter()), "sh"], &config).await;
    let client = Client::connect(&gateway.reach(), REVISION).await;
    let both = ["bomber__echo", "well__echo"];
    client.tools_until("both are up", |tools| both.iter().all(|name| tools.contains(&(*name).into()))).await;
    std::fs::write(&go, "").expect("the folder can be written");
    until("nothing more can be started", || async { (confine.members().len() > 200).then_some(()) }).await;
    confine.allow_processes(1);
    for name in both {
        assert_eq!(client.call(name, "{\"a\":1}").await.text(), "{\"a\":1}");
    }
    // One that ends now cannot be replaced, and that is said; it is tried until it can.
    process::signal(well.started(0).await.0, "KILL");
    gateway.says(&["well", "could not be started"]).await;
    let answer = client.call("well__echo", "{}").await;
    assert!(answer.message().contains("`well`"), "{}", answer.error());
    assert_eq!(client.call("bomber__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    confine.allow_processes(5000);
    until("it is started again", || async {
        client.call("well__echo", "{}").await.frame().result.is_some().then_some(())
    })
    .await;
    // Nor is anybody forgotten at the end, when nobody can be started who would look for them.
    confine.allow_processes(1);
    drop(client);
    assert!(gateway.stop().await.success(), "it ends as asked");
    none_left(&mark).await;
    let panics = gateway.stderr.all().into_iter().filter(|line| line.contains("panicked")).collect::<Vec<_>>();
    assert_eq!(panics, Vec::<String>::new());
}

#[tokio::test]
async fn a_child_that_takes_too_much_memory_is_lost_alone() {
    let Some(confine) = or_skip(Confine::memory(64 << 20)) else { return };
    let scratch = Scratch::new();
    let mark = scratch.path().display().to_string();
    // A line without an end is kept whole by whoever shows the last ones.
    let tools = [("eat", format!("{}; exec tail /dev/zero", confine.enter())), ("pid", "said $$".to_owned())];
    let tools: Vec<(&str, &str)> = tools.iter().map(|(name, body)| (*name, body.as_str())).collect();
    let well = Upstream::stdio(Script::new("well", REVISION)).await;
    let config = Config::new().program("eater", &shell::upstream(&tools), &marked(&mark)).upstream(&well);
    let gateway = Gateway::serve(&config).await;
    let client = Client::connect(&gateway.reach(), REVISION).await;
    let both = ["eater__pid", "well__echo"];
    client.tools_until("both are up", |tools| both.iter().all(|name| tools.contains(&(*name).into()))).await;
    let first = client.call("eater__pid", "{}").await.text();
    let eating = client.start(tool("eater__eat", "{}")).await;
    assert_eq!(client.call("well__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    let answer = eating.answer().await;
    assert!(answer.message().contains("`eater`") && answer.message().contains("SIGKILL"), "{}", answer.error());
    assert_ne!(answer.error_value()["data"]["retriable"], true, "it may have run: {}", answer.error());
    assert_ne!(client.call("eater__pid", "{}").await.text(), first, "another process serves now");
    assert!(gateway.stop().await.success(), "it ends as asked");
    none_left(&mark).await;
}
