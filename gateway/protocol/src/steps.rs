//! How much work was done for what a peer sent: counted in tests, so that cost can be judged without a clock.

/// Notes so many steps: bytes, members or comparisons. Nothing where debug assertions are off.
#[inline(always)]
pub fn add(steps: usize) {
    #[cfg(debug_assertions)]
    counter::STEPS.with(|sum| sum.set(sum.get() + steps as u64));
    #[cfg(not(debug_assertions))]
    let _ = steps;
}

/// The steps that `work` takes on this thread; `None` where none are counted.
pub fn of(work: impl FnOnce()) -> Option<u64> {
    #[cfg(debug_assertions)]
    {
        let before = counter::STEPS.get();
        work();
        Some(counter::STEPS.get() - before)
    }
    #[cfg(not(debug_assertions))]
    {
        work();
        None
    }
}

#[cfg(debug_assertions)]
mod counter {
    thread_local! {
        pub(super) static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }
}
