//! Instructions a call of the gateway's process, counted by callgrind: a figure that the machine's noise does not move. Beside them
//! what else makes a call dear: memory that is asked for, and instructions that the nearest cache does not hold.

use super::large;
use super::load::{Dialect, Target, calls};
use super::stage::{self, Behind};
use super::start::Host;
use super::wire::Way;
use anyhow::{Context, Result, ensure};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use trunkline_tests::issuer::Issuer;

/// Calls of each case when a build is told what runs often.
const TRAINED: usize = 20_000;
/// Answers of 1 MB for the same.
const TRAINED_LARGE: usize = 400;
/// Calls of the short and of the long run; the difference is what calls cost, without start and end.
const CALLS: [usize; 2] = [500, 2_500];
/// So many are under way at once.
const IN_FLIGHT: usize = 4;
/// The caches of the model, the same on every machine.
const CACHES: [&str; 4] = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"];

/// Who calls, what stands behind, and the most instructions that a call of it may cost, by the build: `release`, `dist`, and `dist`
/// guided by a profile. Each is what was reached, and two in a hundred, or four for the first and the last of them: a run differs from
/// the next, and no two profiles are the same. Then how often a call may ask for memory: what was reached, and once more.
const CASES: [(&str, Front, bool, [u64; 3], u64); 6] = [
    ("HTTP upstream, stateless client", Front::Http(Dialect::Modern), true, [79_200, 61_200, 49_800], 21),
    // 3 k more: what an access token and roles may cost.
    ("the same, access token and roles", Front::Bearing, true, [82_000, 64_200, 52_800], 21),
    ("HTTP upstream, handshake client", Front::Http(Dialect::Legacy), true, [76_500, 58_200, 47_600], 20),
    ("HTTP upstream, `trunkline stdio`", Front::Stdio, true, [64_100, 48_500, 39_500], 16),
    ("stdio upstream, handshake client", Front::Http(Dialect::Legacy), false, [54_300, 41_200, 33_600], 12),
    // A child is opened by handshake, so these calls are translated.
    ("stdio upstream, stateless client", Front::Http(Dialect::Modern), false, [57_700, 44_100, 36_200], 13),
];

/// The same of a start of `trunkline stdio` with one upstream, to the answer to `initialize`, and of its end: what was reached, and a
/// quarter, since it reads what is there of an environment.
const START: [u64; 3] = [4_200_000, 3_900_000, 3_100_000];

/// Instructions that an answer of 1 MB may cost, in any build: 15 per cent over the measured value of a release build.
const LARGE_MAX: u64 = 7_400_000;
/// Answers of the short and of the long run.
const LARGE_ANSWERS: [usize; 2] = [8, 48];

/// The build that is measured: by its budgets a count is judged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// The profile `release`.
    Release,
    /// The profile `dist`.
    Dist,
    /// `dist`, guided by a profile of itself.
    Guided,
}

impl Build {
    /// The build of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "release" => Some(Self::Release),
            "dist" => Some(Self::Dist),
            "guided" => Some(Self::Guided),
            _ => None,
        }
    }
}

/// How the gateway is called.
#[derive(Clone, Copy)]
enum Front {
    /// `trunkline serve`.
    Http(Dialect),
    /// The same, by stateless clients that bear an access token, whose scope gives a role.
    Bearing,
    /// `trunkline stdio`, by a client that shakes hands.
    Stdio,
    /// `trunkline serve`, by stateless clients whose answers have 1 MB.
    Large,
}

/// What callgrind has counted.
#[derive(Clone, Copy, Default)]
struct Count {
    instructions: u64,
    /// Instructions that the first cache did not hold.
    missed: u64,
    allocations: u64,
}

/// Prints the counts; says so where valgrind is not installed. Fails where they are held to their budgets and one is over.
pub(crate) async fn measure(folder: &Path, held: Option<Build>) -> Result<()> {
    println!("\na call of the gateway, counted by callgrind");
    let Some(valgrind) =
        ["/usr/bin/valgrind", "/usr/local/bin/valgrind"].into_iter().find(|path| Path::new(path).exists())
    else {
        println!("  valgrind is not installed: not counted");
        return Ok(());
    };
    println!(
        "  {:34} {:>12} {:>8} {:>12} {:>8} {:>12}",
        "", "instructions", "budget", "allocations", "budget", "L1i misses"
    );
    let (upstream, address) = stage::http_upstream(1)?;
    let build = held.unwrap_or(Build::Release) as usize;
    let mut over = Vec::new();
    for (name, front, is_http, budgets, asked) in CASES {
        let budget = budgets[build];
        let run = Run { folder, behind: behind(is_http, &address) };
        let mut counts = [Count::default(); 2];
        for (count, calls) in counts.iter_mut().zip(CALLS) {
            *count = run.count(valgrind, front, calls).await?;
        }
        let a_call =
            |of: fn(&Count) -> u64| of(&counts[1]).saturating_sub(of(&counts[0])) as f64 / (CALLS[1] - CALLS[0]) as f64;
        let (instructions, allocations) = (a_call(|count| count.instructions), a_call(|count| count.allocations));
        println!(
            "  {name:34} {:>10.1} k {:>6.1} k {allocations:>12.1} {asked:>8} {:>12.0}",
            instructions / 1e3,
            budget as f64 / 1e3,
            a_call(|count| count.missed),
        );
        if instructions > budget as f64 {
            over.push(format!("{name}: {instructions:.0} instructions of {budget}"));
        }
        if allocations > asked as f64 {
            over.push(format!("{name}: {allocations:.1} allocations of {asked}"));
        }
    }
    let run = Run { folder, behind: behind(true, &address) };
    let (start, budget) = (run.count(valgrind, Front::Stdio, 0).await?, START[build]);
    let name = "a start and its end, `trunkline stdio`";
    println!("  {name:34} {:>8} k {:>6} k", start.instructions / 1000, budget / 1000);
    if start.instructions > budget {
        over.push(format!("{name}: {} instructions of {budget}", start.instructions));
    }
    let mut counts = [0; 2];
    for (count, answers) in counts.iter_mut().zip(LARGE_ANSWERS) {
        *count = run.count(valgrind, Front::Large, answers).await?.instructions;
    }
    let answer = counts[1].saturating_sub(counts[0]) / (LARGE_ANSWERS[1] - LARGE_ANSWERS[0]) as u64;
    let (name, budget) = ("an answer of 1 MB, HTTP upstream", LARGE_MAX);
    println!("  {name:34} {:>8} k {:>6} k", answer / 1000, budget / 1000);
    if answer > budget {
        over.push(format!("{name}: {answer} instructions of {budget}"));
    }
    drop(upstream);
    ensure!(held.is_none() || over.is_empty(), "a call or a start costs more than its budget: {}", over.join("; "));
    Ok(())
}

/// Has the gateway answer many calls of each case, so that a build that counts for itself sees what runs often.
pub(crate) async fn train(folder: &Path) -> Result<()> {
    let (upstream, address) = stage::http_upstream(1)?;
    for (_, front, is_http, ..) in CASES {
        Run { folder, behind: behind(is_http, &address) }.calls(&[], front, TRAINED).await?;
    }
    Run { folder, behind: behind(true, &address) }.calls(&[], Front::Large, TRAINED_LARGE).await?;
    upstream.stop()
}

fn behind(is_http: bool, address: &str) -> Behind<'_> {
    if is_http { Behind::Http(address) } else { Behind::Stdio(1) }
}

/// How the gateway is run.
struct Run<'a> {
    folder: &'a Path,
    behind: Behind<'a>,
}

impl Run<'_> {
    /// What a whole run of the gateway with so many calls costs.
    async fn count(&self, valgrind: &str, front: Front, count: usize) -> Result<Count> {
        let out = self.folder.join("callgrind.out");
        let flag = format!("--callgrind-out-file={}", out.display());
        let mut wrapper = vec![valgrind, "-q", "--tool=callgrind", "--trace-children=no", &flag];
        wrapper.extend(CACHES);
        self.calls(&wrapper, front, count).await?;
        read(&std::fs::read_to_string(&out)?)
    }

    /// Starts the gateway, `wrapper` before it, has it answer so many calls, and ends it.
    async fn calls(&self, wrapper: &[&str], front: Front, count: usize) -> Result<()> {
        let target = |address, dialect, token| Target {
            address,
            path: "/mcp".into(),
            tool: "u0__echo".into(),
            dialect,
            way: Way::Http,
            token,
        };
        match front {
            Front::Http(dialect) => {
                let (gateway, address) = stage::gateway(std::slice::from_ref(&self.behind), self.folder, wrapper)?;
                calls(&target(address, dialect, None), IN_FLIGHT, count).await?;
                gateway.stop()
            }
            Front::Bearing => {
                let (issuer, address) = (Issuer::start().await, stage::free_address()?);
                let public = format!("http://{address}");
                let more = "scopes = [\"mcp\"]\n[[auth.issuers.rules]]\nscope = \"echo\"\nroles = [\"echo\"]\n";
                let role = "[auth.roles.echo]\nupstreams = [\"u*\"]\ntools = [\"*__echo\"]\n";
                let rules = Behind::With(format!("enabled = false\ncommand = \"true\"\n{}{role}", issuer.entry(more)));
                let keys = format!("listen = \"{address}\"\npublic_url = \"{public}\"");
                let behind = [self.behind.clone(), rules];
                let gateway = stage::listening(&behind, self.folder, &keys, &address, wrapper)?;
                let token = issuer.token(&format!("{public}/mcp"), "bench", "mcp echo");
                calls(&target(address, Dialect::Modern, Some(token)), IN_FLIGHT, count).await?;
                gateway.stop()
            }
            Front::Large => {
                let (gateway, address) = stage::gateway(std::slice::from_ref(&self.behind), self.folder, wrapper)?;
                large::calls(&target(address, Dialect::Modern, None), count).await?;
                gateway.stop()
            }
            Front::Stdio => self.stdio(wrapper, count).await,
        }
    }

    /// Calls as the host that has started the gateway.
    async fn stdio(&self, wrapper: &[&str], count: usize) -> Result<()> {
        let file: PathBuf = self.folder.join("stdio.toml");
        let text = "[admin]\nlisten = \"off\"\n[log]\nlevel = \"error\"\n[catalog]\ncache = false\n";
        std::fs::write(&file, format!("{text}{}", stage::upstreams(std::slice::from_ref(&self.behind))?))?;
        let trunkline = stage::sibling("trunkline")?;
        let mut words = wrapper.iter().map(Path::new).chain([trunkline.as_path()]);
        let mut command = Command::new(words.next().context("there is always the gateway itself")?);
        command.args(words).args(["stdio", "--config"]).arg(&file);
        let mut host = Host::start(&mut command)?;
        host.shake_hands().await?;
        for first in (1..=count).step_by(IN_FLIGHT) {
            let ids = first..(first + IN_FLIGHT).min(count + 1);
            for id in ids.clone() {
                host.say(&format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"u0__echo","arguments":{{"text":"words {id} 0123456789abcdef0123456789abcdef0123456789abcde"}}}}}}"#
                ))?;
            }
            let mut waited: Vec<_> = ids.collect();
            while !waited.is_empty() {
                // A notice that a list has changed is none of them.
                let answer = host.hear().await?;
                waited.retain(|id| {
                    !(answer.contains(&format!("\"id\":{id},")) && answer.contains(&format!("words {id} ")))
                });
            }
        }
        Ok(())
    }
}

/// What a file of callgrind says of a whole run.
fn read(text: &str) -> Result<Count> {
    let after = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::split_whitespace);
    let events: Vec<_> = after("events: ").context("callgrind names no events")?.collect();
    let sums = after("summary: ").or(after("totals: ")).context("callgrind wrote no total")?;
    let sums: Vec<u64> = sums.flat_map(str::parse).collect();
    let sum = |event: &str| events.iter().position(|known| *known == event).and_then(|at| sums.get(at).copied());
    let instructions = sum("Ir").context("callgrind counted no instructions")?;
    Ok(Count { instructions, missed: sum("I1mr").unwrap_or_default(), allocations: allocations(text) })
}

/// How often memory was asked for.
fn allocations(text: &str) -> u64 {
    const ASKED: [&str; 3] = ["mi_malloc_aligned", "mi_zalloc_aligned", "mi_realloc_aligned"];
    // A name stands beside its number the first time, and the number alone from then on.
    let mut numbers = HashSet::new();
    let (mut sum, mut is_asked) = (0, false);
    for line in text.lines() {
        if let Some(function) = line.strip_prefix("cfn=").or(line.strip_prefix("fn=")) {
            let (number, name) = function.split_once(' ').unwrap_or((function, ""));
            if ASKED.contains(&name) {
                numbers.insert(number);
            }
            is_asked = numbers.contains(number);
        } else if let Some(calls) = line.strip_prefix("calls=").filter(|_| is_asked) {
            sum += calls.split(' ').next().and_then(|count| count.parse::<u64>().ok()).unwrap_or_default();
        }
    }
    sum
}
