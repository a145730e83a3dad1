//! The extent of a test run: short by default, whole in `.ci/full`.

/// Returns true if `TRUNKLINE_SUITE=whole` asks for the longer loads and for all sets of the conformance suite.
#[must_use]
pub fn is_whole() -> bool {
    std::env::var_os("TRUNKLINE_SUITE").is_some_and(|value| value == "whole")
}

/// Chooses the size of a load.
#[must_use]
pub fn sized(short: usize, whole: usize) -> usize {
    if is_whole() { whole } else { short }
}
