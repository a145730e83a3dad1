//! `fuzz`: feeds everything that reads bytes of peers with nonsense, so many seconds each. `fuzz --help` says how.

use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::Instant;
use trunkline_tests::fuzz::{self, Finding, Target};
use trunkline_tests::seed::Seed;

const HELP: &str = "fuzz [--seconds N] [--seed S] [--only NAME]...   feeds each target for N seconds (10)
fuzz --replay NAME FILE                           reads one input again
fuzz --list                                       names the targets";

fn main() -> ExitCode {
    match fuzz(std::env::args().skip(1)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("fuzz: {error:#}\n{HELP}");
            ExitCode::from(2)
        }
    }
}

fn fuzz(mut arguments: impl Iterator<Item = String>) -> Result<bool> {
    let (mut seconds, mut seed, mut chosen) = (10, None, Vec::new());
    while let Some(argument) = arguments.next() {
        let mut value = |what: &str| arguments.next().with_context(|| format!("{argument} needs {what}"));
        match argument.as_str() {
            "--seconds" => seconds = value("a number")?.parse().context("--seconds needs a number")?,
            "--seed" => seed = Some(value("a number")?.parse().context("--seed needs a number")?),
            "--only" => chosen.push(named(&value("a name")?)?),
            "--replay" => return again(&named(&value("a name")?)?, Path::new(&value("a file")?)),
            "--list" => {
                fuzz::all().iter().for_each(|target| say(target.name));
                return Ok(true);
            }
            _ => bail!("{argument} is not known"),
        }
    }
    let targets = if chosen.is_empty() { fuzz::all() } else { chosen };
    let (number, seed) = seed.map_or_else(|| Seed::of_run("fuzz"), |number| (number, Seed::of(number)));
    say(&format!("seed {number}, {} targets, {seconds} s each", targets.len()));
    // What a body says when it fails is said once, at its end.
    std::panic::set_hook(Box::new(|_| {}));
    let mut all_stand = true;
    for target in &targets {
        let begun = Instant::now();
        say(&format!("{:16} …", target.name));
        let run = fuzz::run(target, &seed, u64::MAX, Duration::from_secs(seconds));
        let rate = run.inputs as f64 / begun.elapsed().as_secs_f64();
        say(&format!("{:16} {:>10} inputs {rate:>9.0}/s {:>6} shapes", target.name, run.inputs, run.shapes));
        if let Some(finding) = run.finding {
            all_stand = false;
            tell(&finding, number)?;
        }
    }
    Ok(all_stand)
}

fn named(name: &str) -> Result<Target> {
    fuzz::named(name).with_context(|| format!("there is no target {name}; see --list"))
}

/// Writes the input to a file, and how it is read again.
fn tell(finding: &Finding, seed: u64) -> Result<()> {
    let folder = PathBuf::from("target/fuzz");
    std::fs::create_dir_all(&folder)?;
    let file = folder.join(format!("{}-{seed}", finding.target));
    std::fs::write(&file, &finding.input)?;
    let (name, shown) = (finding.target, file.display());
    say(&format!("FOUND {name}: {}\n  input ({} bytes): {shown}", finding.why, finding.input.len()));
    say(&format!("  again: cargo run -p trunkline-tests --bin fuzz -- --replay {name} {shown}"));
    Ok(())
}

fn again(target: &Target, file: &Path) -> Result<bool> {
    let input = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let read = fuzz::replay(target, &input);
    match &read {
        Ok(_) => say("it stands"),
        Err(why) => say(&format!("it fails: {why}")),
    }
    Ok(read.is_ok())
}

fn say(text: &str) {
    // Where nobody reads there is nobody to tell.
    let _ = writeln!(std::io::stdout(), "{text}");
}
