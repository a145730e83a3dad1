//! Which of the connections that wait for their next use may have one.

use std::time::Duration;
use tokio::time::Instant;

/// How many wait for their next use.
const IDLE_MAX: usize = 64;
/// How long one waits; servers close theirs after a minute or more.
pub(super) const IDLE_TIME: Duration = Duration::from_secs(45);
/// How old one gets: a name that leads elsewhere by now is followed, since every new connection looks it up.
pub(super) const AGE_MAX: Duration = Duration::from_secs(300);

/// Connections that wait; the one that was used last is used next.
#[derive(Debug)]
pub(crate) struct Idle<T>(Vec<Waiting<T>>);

#[derive(Debug)]
struct Waiting<T> {
    connection: T,
    born: Instant,
    since: Instant,
}

impl<T> Default for Idle<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Idle<T> {
    /// Keeps a connection for its next use, unless it is old or many wait already.
    pub(crate) fn put(&mut self, connection: T, born: Instant) {
        let since = Instant::now();
        if self.0.len() < IDLE_MAX && since < born + AGE_MAX {
            self.0.push(Waiting { connection, born, since });
        }
    }

    /// How many there are; some may be closed or old by now.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// One that is likely to be open and not too old, and when it was made.
    pub(crate) fn take(&mut self, is_closed: impl Fn(&T) -> bool) -> Option<(T, Instant)> {
        let now = Instant::now();
        while let Some(Waiting { connection, born, since }) = self.0.pop() {
            if now >= since + IDLE_TIME {
                // All that lie below it have waited longer.
                self.0.clear();
                return None;
            }
            if !is_closed(&connection) && now < born + AGE_MAX {
                return Some((connection, born));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn what_waited_long_is_old_or_closed_is_not_used_again() {
        let mut idle = Idle::default();
        let take = |idle: &mut Idle<u32>| idle.take(|number| *number == 13).map(|(number, _)| number);
        let born = Instant::now();
        [1, 2, 13].into_iter().for_each(|number| idle.put(number, born));
        assert_eq!(take(&mut idle), Some(2));
        advance(IDLE_TIME).await;
        assert_eq!(take(&mut idle), None, "it has waited for long");
        // In use without a pause, and given up all the same once it is old.
        let born = Instant::now();
        let mut uses = 0;
        idle.put(7, born);
        while let Some((number, of)) = idle.take(|_| false) {
            assert_eq!((number, of), (7, born));
            advance(Duration::from_secs(10)).await;
            idle.put(number, of);
            uses += 1;
        }
        assert_eq!(uses, 30);
        (0..1000).for_each(|number| idle.put(number, Instant::now()));
        assert_eq!(std::iter::from_fn(|| take(&mut idle)).count(), IDLE_MAX - 1, "the closed one is left out");
    }
}
