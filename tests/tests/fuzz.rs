//! What reads bytes of peers stands nonsense, and costs no more than in proportion when it grows.

use std::time::Duration;
use trunkline_tests::fuzz::{self, growth};
use trunkline_tests::seed::Seed;

/// Made of the corpus of each target, beside it.
const INPUTS: u64 = 400;
/// The most that may be needed for twice as much: sorting takes a little more than twice.
const RATIO_MAX: f64 = 2.6;

#[test]
fn the_corpus_and_what_is_made_of_it_is_read_without_a_fault() {
    let seed = Seed::of(20_261_122);
    for target in fuzz::all() {
        assert!(!fuzz::corpus(&target).is_empty(), "{} has no corpus", target.name);
        let run = fuzz::run(&target, &seed, INPUTS, Duration::from_secs(60));
        if let Some(finding) = run.finding {
            let input = String::from_utf8_lossy(&finding.input).into_owned();
            panic!("{}: {}\n  input: {input:?}", target.name, finding.why);
        }
    }
}

#[test]
fn a_fault_is_found_and_its_input_is_made_small() {
    let body = |input: &[u8]| {
        assert!(!input.windows(2).any(|two| two == b"{}"), "it holds an object");
        fuzz::Shape::of(input.len())
    };
    let target = fuzz::Target { name: "none", body, words: &["{}"] };
    let found = || fuzz::run(&target, &Seed::of(7), 100_000, Duration::from_secs(60)).finding.expect("it is found");
    let finding = found();
    assert_eq!((&finding.input[..], &*finding.why), (&b"{}"[..], "it holds an object"));
    assert_eq!(found().input, finding.input, "equal seeds give equal inputs");
}

#[test]
fn twice_as_much_of_anything_takes_twice_the_steps() {
    let mut faults = Vec::new();
    for growth in growth::all() {
        let Some((one, two)) = growth.steps() else { continue };
        let ratio = two as f64 / one as f64;
        if one < growth.size as u64 / 2 || ratio > RATIO_MAX {
            faults.push(format!("{}: {one} steps, then {two}: {ratio:.2} times as many", growth.name));
        }
    }
    assert!(faults.is_empty(), "\n  {}", faults.join("\n  "));
}
