//! Resident memory: idle, after calls, and of each session.

use super::load::{Connection, Dialect, calls};
use super::stage::{self, Behind};
use super::{Build, Scale, target};
use anyhow::{Result, ensure};
use std::path::Path;

/// Sessions with open connections in each of the two steps that are compared.
const CONNECTED: usize = 1000;
/// KiB of an idle gateway with one upstream, by build, 15 per cent over 20, 16 and 10 MiB. Most of it is code: the kernel maps 64 KiB
/// around each page that is used, so the figure depends on where the linker places functions that run.
const IDLE_MAX: [u64; 3] = [23_500, 18_800, 11_700];
/// KiB of these on heap and stacks, in any build.
const IDLE_ANON_MAX: u64 = 2_200;
/// Bytes of a session with its connection, in any build.
const SESSION_MAX: u64 = 18_900;

/// Prints the memory of a gateway with one upstream before its first call.
pub(crate) fn idle(folder: &Path) -> Result<()> {
    let (upstream, direct) = stage::http_upstream(1)?;
    let (gateway, _) = stage::gateway(&[Behind::Http(&direct)], folder, &[])?;
    println!("idle {:.1} MiB", gateway.resident()? as f64 / 1024.0);
    gateway.stop()?;
    upstream.stop()
}

/// Prints the figures; with `held`, fails where one is over its budget.
pub(crate) async fn measure(scale: Scale, folder: &Path, held: Option<Build>) -> Result<()> {
    println!("\nresident memory");
    let (upstream, direct) = stage::http_upstream(1)?;
    let (gateway, address) = stage::gateway(&[Behind::Http(&direct)], folder, &[])?;
    let print = |name: &str, kib: u64| println!("  {name:28} {:>8.1} MiB", kib as f64 / 1024.0);
    let (idle, idle_anon) = (gateway.resident()?, gateway.resident_anon()?);
    print("idle", idle);
    print("idle, heap and stacks", idle_anon);
    calls(&target(&address, "u0__echo", Dialect::Modern), 64, 10_000).await?;
    print("after 10,000 calls", gateway.resident()?);
    let legacy = target(&address, "u0__echo", Dialect::Legacy);
    // The first ones fill what the calls have left free: what one costs is seen with the others.
    let mut resident = [0; 2];
    for (at, resident) in resident.iter_mut().enumerate() {
        for _ in 0..scale.sessions {
            Connection::open(&legacy, 0).await?;
        }
        *resident = gateway.resident()?;
        print(&format!("with {} idle sessions", (at + 1) * scale.sessions), *resident);
    }
    let more = resident[1].saturating_sub(resident[0]);
    println!("  {:28} {:>8.1} KiB", "a session", more as f64 / scale.sessions as f64);
    let mut open = Vec::new();
    for resident in &mut resident {
        for _ in 0..CONNECTED {
            open.push(Connection::open(&legacy, 0).await?);
        }
        *resident = gateway.resident()?;
    }
    let session = resident[1].saturating_sub(resident[0]) * 1024 / CONNECTED as u64;
    println!("  {:28} {:>8.1} KiB", "a session, connected", session as f64 / 1024.0);
    drop(open);
    gateway.stop()?;
    upstream.stop()?;
    let Some(build) = held else { return Ok(()) };
    let figures = [
        ("KiB when idle", idle, IDLE_MAX[build as usize]),
        ("KiB on heap and stacks when idle", idle_anon, IDLE_ANON_MAX),
        ("bytes of a session with its connection", session, SESSION_MAX),
    ];
    let over = figures.iter().filter(|(_, value, budget)| value > budget);
    let over: Vec<_> = over.map(|(name, value, budget)| format!("{name}: {value} of {budget}")).collect();
    ensure!(over.is_empty(), "resident memory is over its budget: {}", over.join("; "));
    Ok(())
}
