//! The end under load: a hundred calls of one to ten seconds are in flight, and those that are shorter than the grace have their answers.

use super::load::{Connection, Dialect, Target};
use super::scrape::scrape;
use super::stage::{self, Process};
use super::wire::Way;
use anyhow::{Result, ensure};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use trunkline_tests::gateway::ADMIN_TOKEN;

const CALLS: usize = 100;
/// The shortest and the longest, in milliseconds.
const SHORTEST: u64 = 1_000;
const LONGEST: u64 = 10_000;
const GRACE: Duration = Duration::from_secs(6);
/// What the machine may take besides: a call that ends as the grace does may fall on either side.
const SLACK: Duration = Duration::from_millis(500);
const INFLIGHT: &str = "trunkline_inflight_requests{upstream=\"u0\"} ";

/// Tells the gateway to end while they run.
pub(crate) async fn measure(folder: &Path) -> Result<()> {
    println!("\nSIGTERM with {CALLS} calls of 1 to 10 s in flight, {} s of grace", GRACE.as_secs());
    let (upstream, behind) = stage::http_upstream(1)?;
    let (address, admin) = (stage::free_address()?, stage::free_address()?);
    let file = folder.join("drain.toml");
    let config = format!(
        "[server]\nlisten = \"{address}\"\n[server.shutdown]\ngrace = \"{}s\"\n[admin]\nlisten = \"{admin}\"\n\
         token = \"{ADMIN_TOKEN}\"\n[log]\nlevel = \"error\"\n[upstreams.u0]\nurl = \"http://{behind}/mcp\"\nmax_concurrency = {CALLS}\n",
        GRACE.as_secs()
    );
    std::fs::write(&file, config)?;
    let mut command = Command::new(stage::sibling("trunkline")?);
    command.args(["serve", "--config"]).arg(&file).stderr(Stdio::null());
    let gateway = Process::start(command.env("TRUNKLINE_CATALOG__CACHE", "false"), Some(&address))?;
    stage::await_ready(&admin)?;
    let mut connections = Vec::new();
    for worker in 0..CALLS {
        let dialect = if worker % 2 == 0 { Dialect::Modern } else { Dialect::Legacy };
        let tool = "u0__echo".to_owned();
        let target =
            Target { address: address.clone(), path: "/mcp".to_owned(), tool, dialect, way: Way::Http, token: None };
        connections.push(Connection::open(&target, worker).await?);
    }
    let begun = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for (worker, mut connection) in connections.into_iter().enumerate() {
        let wait = SHORTEST + (LONGEST - SHORTEST) * worker as u64 / (CALLS as u64 - 1);
        callers.spawn(async move { (Duration::from_millis(wait), connection.call_waiting(worker, wait).await) });
    }
    while inflight(&scrape(&admin).await?) < CALLS {
        ensure!(begun.elapsed() < Duration::from_millis(SHORTEST), "they are not all in flight within a second");
    }
    let late = begun.elapsed() + GRACE;
    let told = Instant::now();
    gateway.stop()?;
    let ended = told.elapsed();
    let (mut shorter, mut answered, mut beyond) = (0, 0, 0);
    while let Some(done) = callers.join_next().await {
        let (wait, answer) = done?;
        if wait + SLACK < late {
            shorter += 1;
            answer?;
            answered += 1;
        } else {
            beyond += usize::from(answer.is_ok());
        }
    }
    println!("  {:28} {shorter:>8}, of which {answered} have their answers", "shorter than the grace");
    println!("  {:28} {:>8}, of which {beyond} have their answers", "others", CALLS - shorter);
    println!("  {:28} {ended:>8.1?} after SIGTERM", "ended");
    drop(upstream);
    Ok(())
}

fn inflight(page: &str) -> usize {
    page.lines().find_map(|line| line.strip_prefix(INFLIGHT)?.trim().parse().ok()).unwrap_or_default()
}
