//! A rate that clients have in common, of which nobody takes so much that others find none.

use crate::call::share::{Rate, RateCell, Share};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// So many clients are remembered before those that have rested are forgotten.
const CLIENTS_MAX: usize = 256;

/// How far all have come with a rate together, and each of them. Who is alone may have all of it; where others have come within its time,
/// nobody may have more of it than is left.
#[derive(Debug)]
pub(super) struct DividedRate {
    all: RateCell,
    clients: Mutex<Clients>,
}

#[derive(Debug)]
struct Clients {
    by: HashMap<Share, RateCell>,
    /// Who came last, and who came last of the others.
    last: Option<(Share, Instant)>,
    other: Option<(Share, Instant)>,
    look_at: usize,
}

/// There is nothing to be had now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Taken {
    /// In so much time there may be.
    pub(super) wait: Duration,
    /// What is left is for others.
    pub(super) is_for_others: bool,
}

impl DividedRate {
    /// One that has rested.
    pub(super) fn new(rate: Rate) -> Self {
        let clients = Clients { by: HashMap::new(), last: None, other: None, look_at: CLIENTS_MAX };
        Self { all: RateCell::new(rate), clients: Mutex::new(clients) }
    }

    /// The rate.
    pub(super) fn rate(&self) -> Rate {
        self.all.rate()
    }

    /// Whether a client may take one.
    pub(super) fn has_any(&self, share: &Share) -> Result<(), Taken> {
        self.may(&mut self.lock(), share)
    }

    /// Takes one for a client.
    pub(super) fn take(&self, share: &Share) -> Result<(), Taken> {
        let mut clients = self.lock();
        self.may(&mut clients, share)?;
        self.all.take().map_err(|wait| Taken { wait, is_for_others: false })?;
        if clients.by.len() >= clients.look_at {
            clients.by.retain(|_, own| !own.has_rested());
            clients.look_at = clients.by.len() * 2 + CLIENTS_MAX;
        }
        clients.by.entry(share.clone()).or_insert_with(|| RateCell::new(self.all.rate())).owe(1);
        Ok(())
    }

    fn may(&self, clients: &mut Clients, share: &Share) -> Result<(), Taken> {
        clients.came(share);
        self.all.has_one().map_err(|wait| Taken { wait, is_for_others: false })?;
        let own = clients.by.get(share).map_or(0, RateCell::taken);
        if own == 0 || own < self.all.left() || clients.is_alone(share, self.all.rate().per) {
            return Ok(());
        }
        Err(Taken { wait: self.all.rate().each(), is_for_others: true })
    }

    fn lock(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clients {
    /// Somebody comes, whether there is anything for it or not.
    fn came(&mut self, share: &Share) {
        let now = Instant::now();
        match &mut self.last {
            Some((last, at)) if last == share => *at = now,
            _ => self.other = self.last.replace((share.clone(), now)),
        }
    }

    fn is_alone(&self, share: &Share, within: Duration) -> bool {
        let others = [&self.last, &self.other].into_iter().flatten().filter(|(who, _)| who != share);
        others.into_iter().all(|(_, at)| at.elapsed() >= within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::caller::Principal;
    use tokio::time::advance;

    const MINUTE: Duration = Duration::from_secs(60);

    fn share(name: &str) -> Share {
        Share::Principal(Principal::named(name))
    }

    fn taken(rate: &DividedRate, name: &str) -> usize {
        let share = share(name);
        (0..1000).take_while(|_| rate.take(&share).is_ok()).count()
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_alone_has_all_and_where_others_come_nobody_has_more_than_is_left() {
        let rate = DividedRate::new(Rate { count: 60, per: MINUTE });
        assert_eq!(taken(&rate, "ann"), 60);
        let wait = Duration::from_secs(1);
        assert_eq!(rate.take(&share("bob")), Err(Taken { wait, is_for_others: false }));
        advance(wait).await;
        assert_eq!(rate.take(&share("ann")), Err(Taken { wait, is_for_others: true }), "bob has come meanwhile");
        assert_eq!(rate.has_any(&share("bob")), Ok(()));
        assert_eq!(rate.take(&share("bob")), Ok(()));
        // All is as after a rest, but both have come within the time.
        advance(MINUTE).await;
        assert!(rate.has_any(&share("bob")).is_ok());
        assert_eq!([taken(&rate, "ann"), taken(&rate, "bob"), taken(&rate, "cyd")], [30, 15, 8]);
        advance(MINUTE).await;
        assert_eq!(taken(&rate, "ann"), 60, "the others have not come for a minute");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_never_stops_leaves_room_to_one_that_comes_now_and_then() {
        let rate = DividedRate::new(Rate { count: 60, per: MINUTE });
        let (mut hog, mut refused) = (0, 0);
        for second in 0..600 {
            hog += taken(&rate, "hog");
            if second % 10 == 0 {
                refused += usize::from(rate.take(&share("other")).is_err());
            }
            advance(Duration::from_secs(1)).await;
        }
        assert_eq!(refused, 1, "only when it came first");
        assert!(hog > 500, "and the rest is used: {hog}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_rested_is_forgotten() {
        let rate = DividedRate::new(Rate { count: 1000, per: Duration::from_secs(1) });
        for name in 0..5000 {
            assert!(rate.take(&share(&name.to_string())).is_ok());
            advance(Duration::from_millis(10)).await;
        }
        assert!(rate.lock().by.len() <= CLIENTS_MAX);
    }
}
