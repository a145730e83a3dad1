//! Start and recovery: how long a host waits for its first answer, for every healthy tool, and after a crash.

use super::load::{Connection, Dialect, Target};
use super::stage::{self, Behind, Process};
use super::wire::Way;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::io::AsyncBufReadExt;
use trunkline_tests::process;

/// What stands behind the gateway at its start: many healthy ones, and each kind of sick one.
const HEALTHY: usize = 12;
const HANGING: usize = 5;
const EXITING: usize = 2;
/// Nothing that is measured here may take longer.
const LIMIT: Duration = Duration::from_secs(30);

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Prints the medians of several starts and of several crashes.
pub(crate) async fn measure(rounds: usize, folder: &Path) -> Result<()> {
    println!("\nstart and recovery, median of {rounds}");
    // A first list waits for upstreams that were never seen, the hanging ones too: that wait is a setting, and not what
    // is measured; it is shown once.
    let (mut greeted, mut listed, mut faults) =
        starts("[catalog]\ncache = false\nfirst_list_wait = \"0s\"\n", rounds, folder).await?;
    let of = HEALTHY + HANGING + EXITING + 1;
    print(&format!("exec to `initialize` answered, {of} upstreams"), &mut greeted);
    faults.sort_unstable();
    println!("  {:48} {:>8}", "pages touched for the first time until then", faults[faults.len() / 2]);
    print(&format!("exec to a list of all {HEALTHY} healthy ones"), &mut listed);
    let (_, mut waited, _) = starts("[catalog]\ncache = false\n", 1, folder).await?;
    print("the same with the first list's own wait", &mut waited);
    let mut again = second_starts(rounds, folder).await?;
    print("exec to that list at the second start, none up yet", &mut again);
    let mut back = recovery(rounds, folder).await?;
    print("kill -9 of a child to the next good call", &mut back);
    Ok(())
}

/// Several starts with these settings: the times of the greeting, and of the whole list, and the page faults before the greeting.
async fn starts(settings: &str, rounds: usize, folder: &Path) -> Result<(Vec<Duration>, Vec<Duration>, Vec<u64>)> {
    let file = folder.join("twenty.toml");
    std::fs::write(&file, twenty(settings)?)?;
    let (mut greeted, mut listed, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let start = tokio::time::timeout(LIMIT, start(&file)).await.context("no list with all healthy tools")??;
        greeted.push(start.greeted);
        listed.push(start.listed);
        faults.push(start.faults);
    }
    Ok((greeted, listed, faults))
}

/// Starts after one that has kept what the upstreams offer: none of them answers this time.
async fn second_starts(rounds: usize, folder: &Path) -> Result<Vec<Duration>> {
    let (file, cold) = (folder.join("again.toml"), folder.join("cold"));
    let mut text = format!(
        "[admin]\nlisten = \"off\"\n[log]\nlevel = \"error\"\n[catalog]\ncache_dir = {:?}\n",
        folder.join("cache")
    );
    let program = stage::sibling("bench-upstream")?;
    for at in 0..HEALTHY {
        // Once the file is there, it reads and never answers, and ends with its stdin.
        let line = format!("test -e {} && exec cat >/dev/null; exec {} stdio 4", cold.display(), program.display());
        text += &format!("[upstreams.u{at}]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"{line}\"]\n");
    }
    std::fs::write(&file, text)?;
    start(&file).await?;
    std::fs::write(&cold, "")?;
    let mut listed = Vec::new();
    for _ in 0..rounds {
        let start =
            tokio::time::timeout(LIMIT, start(&file)).await.context("nothing was kept of the first start")??;
        listed.push(start.listed);
    }
    Ok(listed)
}

fn print(name: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let of = |at: usize| times.get(at).copied().unwrap_or_default().as_secs_f64() * 1e3;
    println!("  {name:48} {:>8.1} ms  (worst {:.1} ms)", of(times.len() / 2), of(times.len().saturating_sub(1)));
}

/// Twenty upstreams: five that never answer, two that end at once, one that is missing, twelve that work.
fn twenty(settings: &str) -> Result<String> {
    let mut text = format!("[admin]\nlisten = \"{}\"\n[log]\nlevel = \"error\"\n{settings}", stage::free_address()?);
    for at in 0..HANGING {
        // It reads and never answers, and ends with its stdin.
        text += &format!("[upstreams.hangs{at}]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"cat >/dev/null\"]\n");
    }
    for at in 0..EXITING {
        text += &format!("[upstreams.exits{at}]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"exit 7\"]\n");
    }
    text += "[upstreams.missing]\ncommand = \"/no/such/program\"\n";
    let program = stage::sibling("bench-upstream")?;
    for at in 0..HEALTHY {
        text += &format!("[upstreams.u{at}]\ncommand = \"{}\"\nargs = [\"stdio\", \"4\"]\n", program.display());
    }
    Ok(text)
}

struct Start {
    greeted: Duration,
    faults: u64,
    listed: Duration,
}

/// One start of `trunkline stdio`, as a host does it.
async fn start(file: &Path) -> Result<Start> {
    let program = stage::sibling("trunkline")?;
    let began = Instant::now();
    let mut host = Host::start(Command::new(program).args(["stdio", "--config"]).arg(file))?;
    host.shake_hands().await?;
    let greeted = began.elapsed();
    let faults = page_faults(host.child.id())?;
    for id in 1.. {
        host.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{}}}}"#))?;
        let mut list = host.hear().await?;
        while !list.contains(&format!("\"id\":{id}")) {
            // A notice that a list has changed.
            list = host.hear().await?;
        }
        if (0..HEALTHY).all(|at| list.contains(&format!("\"u{at}__echo\""))) {
            return Ok(Start { greeted, faults, listed: began.elapsed() });
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    unreachable!("the ids do not end")
}

/// How many pages a process has touched for the first time.
fn page_faults(pid: u32) -> Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name of the program, which may hold anything, ends with the last parenthesis.
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields.split_whitespace());
    fields.and_then(|mut fields| fields.nth(7)).context("no such field")?.parse().context("no number")
}

/// What a host has of the gateway that it started; dropping it closes stdin and waits for the end.
pub(crate) struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: tokio::io::Lines<tokio::io::BufReader<tokio::process::ChildStdout>>,
}

impl Host {
    /// Starts it.
    pub(crate) fn start(command: &mut Command) -> Result<Host> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let stdout: ChildStdout = child.stdout.take().context("a pipe was asked for")?;
        let lines = tokio::io::BufReader::new(tokio::process::ChildStdout::from_std(stdout)?).lines();
        Ok(Host { stdin: child.stdin.take(), child, lines })
    }

    /// Shakes hands.
    pub(crate) async fn shake_hands(&mut self) -> Result<()> {
        self.say(INITIALIZE)?;
        let answer = self.hear().await?;
        ensure!(answer.contains("\"protocolVersion\":\"2025-06-18\""), "not greeted but told {answer}");
        self.say(INITIALIZED)
    }

    /// Writes a line.
    pub(crate) fn say(&mut self, line: &str) -> Result<()> {
        use std::io::Write;
        let stdin = self.stdin.as_mut().context("stdin is open")?;
        Ok(stdin.write_all(format!("{line}\n").as_bytes())?)
    }

    /// The next line.
    pub(crate) async fn hear(&mut self) -> Result<String> {
        self.lines.next_line().await?.context("the gateway has ended")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stdin.take();
        let _ = self.child.wait();
    }
}

/// Kills the child of a gateway with SIGKILL, again and again, and calls until a call works.
async fn recovery(rounds: usize, folder: &Path) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..rounds {
        // A gateway of its own each time: crashes in a row are meant to wait longer.
        let (gateway, address) = stage::gateway(&[Behind::Stdio(1)], folder, &[])?;
        let (path, tool) = ("/mcp".into(), "u0__echo".into());
        let target = Target { address, path, tool, dialect: Dialect::Modern, way: Way::Http, token: None };
        let mut connection = Connection::open(&target, 0).await?;
        connection.call(0).await?;
        let child = only_child(&gateway)?;
        let began = Instant::now();
        let killed = Command::new("kill").args(["-KILL", &child.to_string()]).status()?;
        ensure!(killed.success(), "the child could not be killed");
        for call in 1.. {
            // A call that was on its way is told of the end at once; the next one waits for the new child.
            if connection.call(call).await.is_ok() {
                times.push(began.elapsed());
                break;
            }
            ensure!(began.elapsed() < LIMIT, "no call worked within {LIMIT:?} of the kill");
            connection = Connection::open(&target, 0).await?;
        }
        ensure!(only_child(&gateway)? != child, "it was the dead child that answered");
        gateway.stop()?;
    }
    Ok(times)
}

/// The upstream. Beside it stands the process that ends all upstreams when the gateway is gone.
fn only_child(gateway: &Process) -> Result<u32> {
    let is_upstream = |pid: &u32| process::is_alive(*pid) && !process::command_line(*pid).contains("guard-upstreams");
    process::children(gateway.id()).into_iter().find(is_upstream).context("the gateway has no child")
}
