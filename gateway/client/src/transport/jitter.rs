//! Random numbers that spread retries over time.

/// Returns a number in 0..1 for jitter.
pub fn random() -> f64 {
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}
