//! How fast what a peer has begun must come: with a least rate and a longest pause, whoever begins much cannot keep it open for ever.

use std::time::Duration;
use tokio::time::Instant;

/// Whatever was begun must come at least so fast, bytes a second, once it has paused. Bytes earn it time, never more than one pause
/// ahead: what came in one go leaves no time to trickle.
const PACE_MIN: u32 = 16 * 1024;

/// By when more must come of what was begun. Most is there already: the clock runs only from the first time that it is waited for.
#[derive(Debug)]
pub struct Pace {
    pause: Duration,
    /// What it is of, by when more of it must come, and how much of it had come when that was reckoned; `None` until it has paused.
    due: Option<(u64, Instant, usize)>,
}

impl Pace {
    /// The longest pause is this.
    pub fn new(pause: Duration) -> Self {
        Self { pause, due: None }
    }

    /// By when more must come, of which so much has come so far; asked before each wait. Another number is another thing that was begun.
    pub fn due(&mut self, number: u64, so_far: usize) -> Instant {
        let now = Instant::now();
        let latest = now.checked_add(self.pause).unwrap_or_else(|| now + Duration::from_secs(30 * 365 * 24 * 60 * 60));
        let known = self.due.filter(|(of, ..)| *of == number);
        let (_, before, counted) = known.unwrap_or((number, latest, so_far));
        let earned = Duration::from_secs_f64(so_far.saturating_sub(counted) as f64 / f64::from(PACE_MIN));
        let by = (before + earned).min(latest);
        self.due = Some((number, by, so_far));
        by
    }

    /// It was not read for a while: the clock begins anew.
    pub fn restart(&mut self) {
        self.due = None;
    }
}
