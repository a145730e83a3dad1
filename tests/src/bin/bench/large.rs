//! Answers of 1 MB: rate, CPU time and page faults for each, beside nginx.

use super::load::{Connection, Dialect, Target};
use super::stage::{self, Behind, Process};
use super::{Scale, target};
use anyhow::{Result, ensure};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes that each answer has at least.
pub(crate) const BYTES: usize = 1_000_000;
/// Calls in flight at once.
const IN_FLIGHT: usize = 8;
/// Page faults of the gateway that an answer may cost. It has 250 pages and is kept twice: memory that is mapped anew has 500 faults.
const FAULTS_MAX: u64 = 150;

/// The cost of one run, for each answer.
struct Cost {
    rate: f64,
    cpu: Option<Duration>,
    faults: Option<u64>,
}

/// Measures the upstream directly, nginx and the gateway; with `is_held`, fails where the gateway has too many page faults.
pub(crate) async fn measure(scale: Scale, folder: &Path, is_held: bool) -> Result<()> {
    println!("\nanswers of 1 MB, {IN_FLIGHT} in flight");
    let calls = (scale.calls / 40).max(400);
    let print = |name: &str, cost: &Cost| {
        let cpu = cost.cpu.map_or("–".into(), |cpu| format!("{:.3} ms CPU", cpu.as_secs_f64() * 1e3));
        let faults = cost.faults.map_or(String::new(), |faults| format!("{faults} page faults"));
        println!("  {name:34} {:>8.0} a second {cpu:>14} {faults:>16}", cost.rate);
    };
    let (upstream, direct) = stage::http_upstream(1)?;
    print("direct", &run(&target(&direct, "echo", Dialect::Modern), None, calls).await?);
    if let Some((nginx, address)) = stage::nginx(&direct, folder)? {
        print("nginx, one worker", &run(&target(&address, "echo", Dialect::Modern), Some(&nginx), calls).await?);
    }
    let mut over = Vec::new();
    for (behind, name, dialect) in [
        (Behind::Http(&direct), "HTTP upstream, stateless client", Dialect::Modern),
        (Behind::Http(&direct), "HTTP upstream, handshake client", Dialect::Legacy),
        (Behind::Stdio(1), "stdio upstream, handshake client", Dialect::Legacy),
    ] {
        let (gateway, address) = stage::gateway(&[behind], folder, &[])?;
        let cost = run(&target(&address, "u0__echo", dialect), Some(&gateway), calls).await?;
        print(name, &cost);
        over.extend(cost.faults.filter(|faults| *faults > FAULTS_MAX).map(|faults| format!("{name}: {faults}")));
        gateway.stop()?;
    }
    upstream.stop()?;
    ensure!(
        !is_held || over.is_empty(),
        "an answer of 1 MB has more than {FAULTS_MAX} page faults: {}",
        over.join("; ")
    );
    Ok(())
}

/// Makes so many calls after a quarter of them that is not measured.
async fn run(target: &Target, process: Option<&Process>, count: usize) -> Result<Cost> {
    calls(target, count / 4).await?;
    let figures = || process.map(|process| anyhow::Ok((process.cpu()?, process.faults()?))).transpose();
    let (before, begun) = (figures()?, Instant::now());
    calls(target, count).await?;
    let (took, after) = (begun.elapsed(), figures()?);
    let used = before.zip(after);
    Ok(Cost {
        rate: count as f64 / took.as_secs_f64(),
        cpu: used.map(|(before, after)| after.0.saturating_sub(before.0) / count as u32),
        faults: used.map(|(before, after)| after.1.saturating_sub(before.1) / count as u64),
    })
}

/// Makes so many calls whose answers have 1 MB.
pub(crate) async fn calls(target: &Target, count: usize) -> Result<()> {
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..IN_FLIGHT {
        let mut connection = Connection::open(target, worker).await?;
        let share = count / IN_FLIGHT + usize::from(worker < count % IN_FLIGHT);
        tasks.spawn(async move {
            for call in 0..share {
                connection.call_filled(call, BYTES).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}
