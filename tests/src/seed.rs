//! A seed: where everything that looks like chance comes from, so that a run can be played again.

use std::time::{SystemTime, UNIX_EPOCH};

/// The variable that names the seed of a run which is to be played again.
pub const VARIABLE: &str = "TRUNKLINE_SEED";

/// A small generator (SplitMix64). Equal seeds give equal numbers.
#[derive(Clone, Debug)]
pub struct Seed {
    state: u64,
}

impl Seed {
    /// A generator of this seed.
    #[must_use]
    pub fn of(number: u64) -> Seed {
        Seed { state: number }
    }

    /// The seed of the environment, else one of the clock; it is printed, so that the run can be played again.
    #[must_use]
    pub fn of_run(what: &str) -> (u64, Seed) {
        let given = std::env::var(VARIABLE).ok().and_then(|text| text.trim().parse().ok());
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
        let fresh = || u64::from(since.subsec_nanos()) ^ (u64::from(std::process::id()) << 20);
        let number = given.unwrap_or_else(fresh);
        eprintln!("{what}: to play this run again set {VARIABLE}={number}");
        (number, Seed::of(number))
    }

    /// A generator of its own for one part, which what other parts take does not change.
    #[must_use]
    pub fn part(&self, name: &str) -> Seed {
        let mix = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        Seed { state: name.bytes().fold(self.state ^ 0xcbf2_9ce4_8422_2325, mix) }
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.number() % limit as u64).expect("it is below a usize")
    }

    /// True so many times out of a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// Puts these into another order.
    pub fn shuffle<T>(&mut self, of: &mut [T]) {
        for last in (1..of.len()).rev() {
            of.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Seed;

    #[test]
    fn a_seed_gives_the_same_again_and_its_parts_are_their_own() {
        let take = |mut seed: Seed| (0..20).map(|_| seed.below(1000)).collect::<Vec<_>>();
        assert_eq!(take(Seed::of(7)), take(Seed::of(7)));
        assert_ne!(take(Seed::of(7)), take(Seed::of(8)));
        let (whole, mut used) = (Seed::of(7), Seed::of(7).part("load"));
        used.number();
        assert_eq!(take(whole.part("faults")), take(Seed::of(7).part("faults")));
        assert_ne!(take(whole.part("faults")), take(whole.part("load")));
        let mut order: Vec<usize> = (0..30).collect();
        Seed::of(3).shuffle(&mut order);
        assert_ne!(order, (0..30).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..30).collect::<Vec<_>>());
    }
}
