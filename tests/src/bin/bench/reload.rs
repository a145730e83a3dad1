//! A hundred reloads under 500 calls a second of clients of both eras: calls that fail, and how soon a changed file is in force.

use super::load::{Connection, Dialect, Target};
use super::scrape::scrape;
use super::stage::{self, Process};
use super::wire::Way;
use anyhow::{Context, Result, ensure};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use trunkline_tests::gateway::ADMIN_TOKEN;
use trunkline_tests::process::children;

/// Each of so many connections …
const WORKERS: usize = 10;
/// … makes a call in this time: 500 a second.
const EVERY: Duration = Duration::from_millis(20);
/// So soon a changed file is to be in force, where nothing else takes the machine.
const IN_FORCE_WITHIN: Duration = Duration::from_millis(200);
/// Between two reloads.
const PAUSE: Duration = Duration::from_millis(100);
/// From here on what the process takes is compared: a fifth of the reloads have filled what it keeps.
const SETTLED: usize = 5;
/// So much more it may take then.
const MORE_KIB: u64 = 16 << 10;
const APPLIED: &str = "trunkline_config_reloads_total{outcome=\"applied\"} ";

/// What the calls of all workers come to.
#[derive(Default)]
struct Load {
    is_over: AtomicBool,
    made: AtomicUsize,
}

/// Changes the file so often, each time once the last change is in force.
pub(crate) async fn measure(reloads: usize, folder: &Path) -> Result<()> {
    println!("\n{reloads} reloads under 500 calls a second of both eras");
    let (upstream, behind) = stage::http_upstream(1)?;
    let (address, admin) = (stage::free_address()?, stage::free_address()?);
    let folder = folder.join("reload");
    std::fs::create_dir_all(&folder)?;
    let write = |round: usize| write(&folder, round, &configuration(round, (&address, &admin), &behind)?);
    write(0)?;
    let mut command = Command::new(stage::sibling("trunkline")?);
    command.args(["serve", "--config"]).arg(folder.join("trunkline.toml")).stderr(Stdio::null());
    let gateway = Process::start(command.env("TRUNKLINE_CATALOG__CACHE", "false"), Some(&address))?;
    stage::await_ready(&admin)?;
    let kept = children(gateway.id());
    let load = Arc::new(Load::default());
    let mut callers = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        let dialect = if worker % 2 == 0 { Dialect::Modern } else { Dialect::Legacy };
        // Half of them call the upstream that changes.
        let tool = format!("u{}__echo", worker / 2 % 2);
        let target =
            Target { address: address.clone(), path: "/mcp".to_owned(), tool, dialect, way: Way::Http, token: None };
        callers.spawn(call(Connection::open(&target, worker).await?, worker, load.clone()));
    }
    let (mut settled, mut times) = (gateway.resident()?, Vec::new());
    let started = Instant::now();
    for round in 1..=reloads {
        let changed = Instant::now();
        write(round)?;
        while applied(&scrape(&admin).await?) < round {
            ensure!(changed.elapsed() < Duration::from_secs(10), "reload {round} is not in force after 10 s");
        }
        times.push(changed.elapsed());
        tokio::time::sleep(PAUSE).await;
        if round == reloads / SETTLED {
            settled = gateway.resident()?;
        }
    }
    let took = started.elapsed();
    let resident = gateway.resident()?;
    load.is_over.store(true, Ordering::Relaxed);
    while let Some(done) = callers.join_next().await {
        done??;
    }
    times.sort_unstable();
    let shown = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let made = load.made.load(Ordering::Relaxed);
    println!("  {:28} {made:>8} made, {:.0} a second, none failed", "calls", made as f64 / took.as_secs_f64());
    println!("  {:28} {:>8.1?} p50, {:.1?} p99; {IN_FORCE_WITHIN:?} are meant", "in force", shown(0.5), shown(0.99));
    println!("  {:28} {:>8.1} MiB early on, {:.1} at the end", "resident", mib(settled), mib(resident));
    println!("  {:28} {kept:?} before, {:?} after", "children", children(gateway.id()));
    ensure!(children(gateway.id()) == kept, "the child that did not change was started anew");
    ensure!(resident < settled + MORE_KIB, "the process grows with each reload");
    gateway.stop()?;
    drop(upstream);
    Ok(())
}

/// A worker calls at its beat. The first call that fails ends it.
async fn call(mut connection: Connection, worker: usize, load: Arc<Load>) -> Result<()> {
    let mut beat = tokio::time::interval(EVERY);
    for call in 0.. {
        beat.tick().await;
        if load.is_over.load(Ordering::Relaxed) {
            break;
        }
        connection.call(call).await.with_context(|| format!("call {call} of worker {worker}"))?;
        load.made.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// A child that never changes, and an upstream that changes each time.
fn configuration(round: usize, (address, admin): (&str, &str), behind: &str) -> Result<String> {
    Ok(format!(
        "[server]\nlisten = \"{address}\"\n[admin]\nlisten = \"{admin}\"\ntoken = \"{ADMIN_TOKEN}\"\n[log]\nlevel = \"error\"\n\
         [upstreams.u0]\ncommand = \"{}\"\nargs = [\"stdio\", \"1\"]\n\
         [upstreams.u1]\nurl = \"http://{behind}/mcp\"\ncall_timeout = \"{}s\"\n",
        stage::sibling("bench-upstream")?.display(),
        60 + round % 2
    ))
}

/// Writes the file, by turns as careful editors do and as a ConfigMap is renewed: the file is a link into a folder behind another link, and
/// that one is swapped.
fn write(folder: &Path, round: usize, text: &str) -> Result<()> {
    let file = folder.join("trunkline.toml");
    let next = folder.join("next");
    if round % 4 < 2 {
        std::fs::write(&next, text)?;
        std::fs::rename(&next, &file)?;
        return Ok(());
    }
    let version = format!("..{round}");
    std::fs::create_dir(folder.join(&version))?;
    std::fs::write(folder.join(&version).join("trunkline.toml"), text)?;
    symlink(&version, &next)?;
    std::fs::rename(&next, folder.join("..data"))?;
    if !file.is_symlink() {
        symlink("..data/trunkline.toml", &next)?;
        std::fs::rename(&next, &file)?;
    }
    Ok(())
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

fn applied(page: &str) -> usize {
    page.lines().find_map(|line| line.strip_prefix(APPLIED)?.trim().parse().ok()).unwrap_or_default()
}
