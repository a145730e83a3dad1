//! The benchmark: the upstream directly, nginx before it, the gateway before it, side by side in one run.
//!
//! `bench` measures, `bench --smoke` shows in a minute that it still runs, `bench --instructions` counts the gateway's
//! instructions a call under callgrind, `bench --start` measures only start and recovery, `bench --scrape` only the metrics
//! after a million calls with invented names, `bench --memory` only resident memory, `bench --large` only answers of 1 MB,
//! `bench --reload` only a hundred reloads and an end under load. With `--budget=release`, `=dist` or `=guided` it fails where a call,
//! memory or an answer of 1 MB costs more than it may in such a build. `bench --train` and `bench --idle` run what the guided one is profiled by.

#![allow(clippy::print_stdout, reason = "the report is what this program is for")]
#![allow(clippy::disallowed_methods, reason = "it measures by the clock, and has no level of tasks")]

mod drain;
mod instructions;
mod large;
mod load;
mod memory;
mod others;
mod reload;
mod scrape;
mod stage;
mod start;
mod wire;

use anyhow::{Context, Result, ensure};
use instructions::Build;
use load::{Connection, Dialect, Run, Target, calls};
use stage::{Behind, Process};
use std::path::Path;
use std::time::Duration;
use wire::Way;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How much is measured.
#[derive(Clone, Copy)]
struct Scale {
    rounds: usize,
    calls: usize,
    sessions: usize,
    starts: usize,
    invented: usize,
    reloads: usize,
}

fn main() -> Result<()> {
    let flags: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| flags.iter().any(|given| given == flag);
    let scale = match has("--smoke") {
        true => Scale { rounds: 1, calls: 4_000, sessions: 1_500, starts: 3, invented: 20_000, reloads: 5 },
        false => Scale { rounds: 5, calls: 60_000, sessions: 4_500, starts: 11, invented: 1_000_000, reloads: 100 },
    };
    let folder = std::env::temp_dir().join(format!("trunkline-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let held = match flags.iter().find_map(|flag| flag.strip_prefix("--budget=")) {
        Some(name) => Some(Build::named(name).with_context(|| format!("no build is called {name}"))?),
        None => None,
    };
    let done = runtime.block_on(async {
        if has("--train") {
            instructions::train(&folder).await?;
            lists(scale, &folder).await?;
            return start::measure(scale.starts, &folder).await;
        }
        if has("--large") {
            return large::measure(scale, &folder, held.is_some()).await;
        }
        if has("--idle") {
            return memory::idle(&folder);
        }
        if has("--memory") {
            return memory::measure(scale, &folder, held).await;
        }
        if has("--start") {
            return start::measure(scale.starts, &folder).await;
        }
        if has("--scrape") {
            return scrape::measure(scale.invented, &folder).await;
        }
        if has("--reload") {
            reload::measure(scale.reloads, &folder).await?;
            return drain::measure(&folder).await;
        }
        if !has("--instructions") {
            println!("{} cores, median of {} rounds, every answer checked", cores(), scale.rounds);
            over_http(scale, &folder).await?;
            over_stdio(scale, &folder).await?;
            others::measure(scale, &folder).await?;
            lists(scale, &folder).await?;
            memory::measure(scale, &folder, held).await?;
            large::measure(scale, &folder, held.is_some()).await?;
            start::measure(scale.starts, &folder).await?;
            scrape::measure(scale.invented, &folder).await?;
            reload::measure(scale.reloads, &folder).await?;
            if !has("--smoke") {
                drain::measure(&folder).await?;
            }
        }
        if has("--instructions") || has("--smoke") {
            instructions::measure(&folder, held).await?;
        }
        anyhow::Ok(())
    });
    let _ = std::fs::remove_dir_all(&folder);
    done
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// One line of the report, and what it is compared with.
struct Line {
    name: &'static str,
    one: Run,
    many: Run,
    cpu: Option<Duration>,
}

async fn measure(name: &'static str, target: &Target, process: Option<&Process>, scale: Scale) -> Result<Line> {
    calls(target, 64, scale.calls / 10).await?;
    let one = calls(target, 1, scale.calls / 8).await?;
    let before = process.map(Process::cpu).transpose()?;
    let many = calls(target, 64, scale.calls).await?;
    let after = process.map(Process::cpu).transpose()?;
    // A thread that has ended meanwhile has taken its time with it.
    let used = before.zip(after).map(|(before, after)| after.saturating_sub(before));
    let cpu = used.map(|used| used / scale.calls as u32);
    Ok(Line { name, one, many, cpu })
}

/// Measures all targets in turn, round by round, and prints each one's median round.
async fn rounds(title: &str, targets: &[(&'static str, Target, Option<&Process>)], scale: Scale) -> Result<()> {
    let mut lines: Vec<Vec<Line>> = targets.iter().map(|_| Vec::new()).collect();
    for _ in 0..scale.rounds {
        for ((name, target, process), into) in targets.iter().zip(&mut lines) {
            into.push(measure(name, target, *process, scale).await?);
        }
    }
    println!("\n{title}");
    println!(
        "  {:28} {:>9} {:>9} {:>10} {:>9} {:>9} {:>9}",
        "", "p50 at 1", "p99 at 1", "calls/s 64", "p50 at 64", "p99 at 64", "CPU/call"
    );
    let reference =
        median(lines.iter().find(|l| l[0].name.starts_with("nginx")).unwrap_or(&lines[0]), |l| l.many.rate());
    for line in &lines {
        let us = |of: &dyn Fn(&Line) -> Duration| format!("{:.0} µs", median(line, |l| of(l).as_secs_f64() * 1e6));
        let rate = median(line, |l| l.many.rate());
        let cpu = if line[0].cpu.is_some() { us(&|l| l.cpu.unwrap_or_default()) } else { "–".into() };
        println!(
            "  {:28} {:>9} {:>9} {:>10.0} {:>9} {:>9} {:>9}  {:.2} x",
            line[0].name,
            us(&|l| l.one.percentile(0.5)),
            us(&|l| l.one.percentile(0.99)),
            rate,
            us(&|l| l.many.percentile(0.5)),
            us(&|l| l.many.percentile(0.99)),
            cpu,
            rate / reference,
        );
    }
    Ok(())
}

fn median(lines: &[Line], of: impl Fn(&Line) -> f64) -> f64 {
    let mut values: Vec<f64> = lines.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn target(address: &str, tool: &str, dialect: Dialect) -> Target {
    Target { address: address.into(), path: "/mcp".into(), tool: tool.into(), dialect, way: Way::Http, token: None }
}

async fn over_http(scale: Scale, folder: &Path) -> Result<()> {
    let (upstream, direct) = stage::http_upstream(1)?;
    let nginx = stage::nginx(&direct, folder)?;
    let (gateway, address) = stage::gateway(&[Behind::Http(&direct)], folder, &[])?;
    let mut targets = vec![("direct", target(&direct, "echo", Dialect::Modern), None)];
    match &nginx {
        Some((process, address)) => {
            targets.push(("nginx, one worker", target(address, "echo", Dialect::Modern), Some(process)))
        }
        None => println!("nginx is not installed: ratios are to the direct line"),
    }
    targets.push(("trunkline, modern client", target(&address, "u0__echo", Dialect::Modern), Some(&gateway)));
    targets.push(("trunkline, legacy client", target(&address, "u0__echo", Dialect::Legacy), Some(&gateway)));
    rounds("HTTP upstream, tools/call, 64-byte echo", &targets, scale).await?;
    drop((gateway, nginx, upstream));
    Ok(())
}

async fn over_stdio(scale: Scale, folder: &Path) -> Result<()> {
    let (upstream, direct) = stage::http_upstream(1)?;
    let (gateway, address) = stage::gateway(&[Behind::Stdio(1)], folder, &[])?;
    let targets = [
        ("the same program by HTTP", target(&direct, "echo", Dialect::Modern), None),
        ("trunkline, modern client", target(&address, "u0__echo", Dialect::Modern), Some(&gateway)),
        ("trunkline, legacy client", target(&address, "u0__echo", Dialect::Legacy), Some(&gateway)),
    ];
    rounds("stdio upstream, tools/call, 64-byte echo", &targets, scale).await?;
    drop((gateway, upstream));
    Ok(())
}

/// The median of whole lists over one connection.
async fn list(target: &Target, scale: Scale) -> Result<(Duration, usize)> {
    let mut connection = Connection::open(target, 0).await?;
    let mut times = Vec::new();
    let mut bytes = 0;
    for _ in 0..scale.rounds * 50 {
        let (took, length) = connection.list().await?;
        times.push(took);
        bytes = length;
    }
    ensure!(
        connection.count("\"inputSchema\"") == 1_000,
        "the list holds {} tools",
        connection.count("\"inputSchema\"")
    );
    times.sort_unstable();
    Ok((times[times.len() / 2], bytes))
}

async fn lists(scale: Scale, folder: &Path) -> Result<()> {
    println!("\ntools/list with 1,000 tools");
    let (upstream, direct) = stage::http_upstream(1_000)?;
    let print = |name: &str, (took, bytes): (Duration, usize)| {
        println!("  {name:28} {:>8.3} ms  {bytes} bytes", took.as_secs_f64() * 1e3)
    };
    print("direct", list(&target(&direct, "echo", Dialect::Modern), scale).await?);
    if let Some((_nginx, address)) = stage::nginx(&direct, folder)? {
        print("nginx, one worker", list(&target(&address, "echo", Dialect::Modern), scale).await?);
    }
    let (one, address) = stage::gateway(&[Behind::Http(&direct)], folder, &[])?;
    print("trunkline, 1 upstream", list(&target(&address, "", Dialect::Modern), scale).await?);
    drop(one);
    let fifty: Vec<Behind<'_>> = (0..50).map(|_| Behind::Stdio(20)).collect();
    let (many, address) = stage::gateway(&fifty, folder, &[])?;
    print("trunkline, 50 upstreams", list(&target(&address, "", Dialect::Modern), scale).await?);
    drop((many, upstream));
    Ok(())
}
