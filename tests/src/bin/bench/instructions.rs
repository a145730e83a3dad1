//! Instructions a call of the gateway's process, counted by callgrind: a figure that the machine's noise does not move.

use super::load::{Dialect, Target, calls};
use super::stage::{self, Behind};
use anyhow::{Context, Result};
use std::path::Path;

/// Calls of the short and of the long run; the difference is what calls cost, without start and end.
const CALLS: [usize; 2] = [500, 2_500];

/// Prints the count over an HTTP and over a stdio upstream; says so where valgrind is not installed.
pub(crate) async fn measure(folder: &Path) -> Result<()> {
    println!("\ninstructions a call of the gateway (callgrind)");
    let Some(valgrind) =
        ["/usr/bin/valgrind", "/usr/local/bin/valgrind"].into_iter().find(|path| Path::new(path).exists())
    else {
        println!("  valgrind is not installed: not counted");
        return Ok(());
    };
    let (upstream, direct) = stage::http_upstream(1)?;
    for (name, behind, dialect) in [
        ("HTTP upstream, modern client", Behind::Http(&direct), Dialect::Modern),
        ("HTTP upstream, legacy client", Behind::Http(&direct), Dialect::Legacy),
        ("stdio upstream, modern client", Behind::Stdio(1), Dialect::Modern),
    ] {
        let mut counted = [0; 2];
        for (count, calls) in counted.iter_mut().zip(CALLS) {
            *count = run(valgrind, &behind, dialect, calls, folder).await?;
        }
        let a_call = counted[1].saturating_sub(counted[0]) / (CALLS[1] - CALLS[0]) as u64;
        println!("  {name:32} {:>6.1} k", a_call as f64 / 1e3);
    }
    drop(upstream);
    Ok(())
}

/// The instructions of a whole run of the gateway with so many calls.
async fn run(valgrind: &str, behind: &Behind<'_>, dialect: Dialect, count: usize, folder: &Path) -> Result<u64> {
    let out = folder.join("callgrind.out");
    let flag = format!("--callgrind-out-file={}", out.display());
    let wrapper = [valgrind, "-q", "--tool=callgrind", "--trace-children=no", &flag];
    let behind = match behind {
        Behind::Http(address) => Behind::Http(address),
        Behind::Stdio(tools) => Behind::Stdio(*tools),
    };
    let (gateway, address) = stage::gateway(&[behind], folder, &wrapper)?;
    let target = Target { address, path: "/mcp".into(), tool: "u0__echo".into(), dialect };
    calls(&target, 4, count).await?;
    gateway.stop()?;
    let text = std::fs::read_to_string(&out)?;
    let line = text.lines().find_map(|line| line.strip_prefix("summary: ").or(line.strip_prefix("totals: ")));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).context("callgrind wrote no total")
}
