//! Why something is not kept: the budget is spent.

use std::fmt::{self, Display, Formatter};

/// The budget is spent, and no holder is larger than the one that asks; or what a holder had was taken away for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent(Option<Figures>);

/// How it was when it was asked, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Figures {
    limit: usize,
    held: usize,
    asked: usize,
}

impl Spent {
    /// What there was is taken away, or there is no room of the system's.
    pub const LOST: Self = Self(None);

    /// Of so much so much was held when so much was asked for.
    pub(super) fn of(limit: usize, held: usize, asked: usize) -> Self {
        Self(Some(Figures { limit, held, asked }))
    }
}

impl Display for Spent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("the gateway has no memory left for it (`server.memory_limit`")?;
        if let Some(Figures { limit, held, asked }) = self.0 {
            let [limit, held, asked] = [limit, held, asked].map(|bytes| bytes as f64 / f64::from(1 << 20));
            write!(f, ": {held:.1} MiB are held and {asked:.1} MiB asked for, of {limit:.1} MiB")?;
        }
        f.write_str(")")
    }
}

impl std::error::Error for Spent {}

#[cfg(test)]
mod tests {
    use crate::memory::account::Kind;
    use crate::memory::budget::{Budget, Spent};

    const MIB: usize = 1 << 20;

    #[test]
    fn a_refusal_says_the_limit_what_is_held_and_what_was_asked_for() {
        let budget = Budget::new(16 * MIB);
        let _held = budget.charge(Kind::Queue, 10 * MIB).unwrap();
        let told = budget.charge(Kind::Line, 4 * MIB).unwrap_err().to_string();
        let says = "10.0 MiB are held and 4.0 MiB asked for, of 16.0 MiB";
        assert_eq!(told, format!("the gateway has no memory left for it (`server.memory_limit`: {says})"));
        assert_eq!(Spent::LOST.to_string(), "the gateway has no memory left for it (`server.memory_limit`)");
    }
}
