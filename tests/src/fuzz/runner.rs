//! Runs a body over the corpus and over what is made of it; finds inputs that it does not stand.

use super::mutate::mutated;
use super::target::{Shape, Target};
use crate::seed::Seed;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use trunkline::fuzzing::steps;

/// So many inputs are kept because they came to something new.
const KEPT_MAX: usize = 2048;
/// So often it is tried to make a bad input smaller.
const CUTS_MAX: usize = 400;

/// An input that a body does not stand.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Of which target.
    pub target: &'static str,
    /// The input, as small as it could be made.
    pub input: Vec<u8>,
    /// What was said.
    pub why: String,
}

/// What a run came to.
#[derive(Debug)]
pub struct Run {
    /// Inputs that were read.
    pub inputs: u64,
    /// Kinds of inputs that were told apart.
    pub shapes: usize,
    /// The first bad one.
    pub finding: Option<Finding>,
}

/// The inputs of a target that the repository keeps, with their files.
#[must_use]
pub fn corpus(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let entries = std::fs::read_dir(&folder).map(|entries| entries.flatten().map(|entry| entry.path()).collect());
    let mut paths: Vec<PathBuf> = entries.unwrap_or_default();
    paths.sort();
    paths.into_iter().filter_map(|path| Some((path.clone(), std::fs::read(path).ok()?))).collect()
}

/// Reads one input; says what was wrong.
pub fn replay(target: &Target, input: &[u8]) -> Result<Shape, String> {
    let mut shape = Shape(0);
    let read = AssertUnwindSafe(|| steps::of(|| shape = (target.body)(input)));
    match catch_unwind(read) {
        Ok(steps) => Ok(Shape::of((shape, steps.and_then(u64::checked_ilog2)))),
        Err(panic) => Err(said(&*panic)),
    }
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
    text.unwrap_or("a panic without words").to_owned()
}

/// Reads the corpus, then inputs made of it, until so many were read or the time is over. Equal seeds give equal inputs.
#[must_use]
pub fn run(target: &Target, seed: &Seed, inputs_max: u64, time: Duration) -> Run {
    let mut seed = seed.part(target.name);
    let mut inputs: Vec<Vec<u8>> = corpus(target).into_iter().map(|(_, input)| input).collect();
    inputs.push(Vec::new());
    let (mut shapes, mut read, begun) = (HashSet::new(), 0, Instant::now());
    let first = inputs.clone();
    let mut finding = None;
    for input in &first {
        read += 1;
        match replay(target, input) {
            Ok(shape) => _ = shapes.insert(shape),
            Err(why) => finding = finding.or_else(|| Some((input.clone(), why))),
        }
    }
    while finding.is_none() && read < inputs_max && begun.elapsed() < time {
        let input = mutated(&mut seed, &inputs, target);
        read += 1;
        match replay(target, &input) {
            Ok(shape) if shapes.insert(shape) && inputs.len() < KEPT_MAX => inputs.push(input),
            Ok(_) => {}
            Err(why) => finding = Some((input, why)),
        }
    }
    let finding = finding.map(|(input, _)| smaller(target, input));
    Run { inputs: read, shapes: shapes.len(), finding }
}

/// The same fault in fewer bytes.
fn smaller(target: &Target, mut input: Vec<u8>) -> Finding {
    let (mut length, mut left) = ((input.len() / 2).max(1), CUTS_MAX);
    while length > 0 && left > 0 {
        let mut at = 0;
        while at < input.len() && left > 0 {
            left -= 1;
            let less = [&input[..at], &input[(at + length).min(input.len())..]].concat();
            match replay(target, &less) {
                Err(_) => input = less,
                Ok(_) => at += length,
            }
        }
        length /= 2;
    }
    let why = replay(target, &input).err().unwrap_or_else(|| "it passes when it is read again".to_owned());
    Finding { target: target.name, input, why }
}
