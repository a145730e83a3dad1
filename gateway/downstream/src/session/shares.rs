//! Whose the sessions of handshake clients are, and which of them makes room when there are too many.

use super::client::{Session, Stage};
use crate::call::share::Share;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// A session that was used makes room for another one of its own share after it was idle for so long.
const SPARE_AFTER: Duration = Duration::from_secs(60);
/// So many sessions are looked at for one that was never used; those that cannot go stand behind the others afterwards.
const LOOKED_AT_MAX: usize = 64;

/// The sessions, counted by share.
#[derive(Debug, Default)]
pub(crate) struct SessionShares {
    all: usize,
    /// No share stands here with none.
    by: HashMap<Share, Own>,
}

#[derive(Debug, Default)]
struct Own {
    count: usize,
    /// Those that had not been used when last looked at, oldest first; some may be gone.
    fresh: VecDeque<Arc<str>>,
}

/// Where room is made.
#[derive(Debug)]
pub(crate) struct Room {
    /// Of this share alone; `None`: of any.
    of: Option<Share>,
    /// That share has more than its part, so that what it uses is not spared.
    is_over: bool,
}

/// The table is full, or the part of the memory that is this share's, and no session makes room for another one of it.
#[derive(Debug)]
pub(crate) struct Full {
    /// Whose it would be.
    pub(crate) share: Share,
    /// So many sessions that share has.
    pub(crate) own: usize,
    /// So many there are.
    pub(crate) all: usize,
    /// There is room in the table, and none in the memory.
    pub(crate) is_of_memory: bool,
}

impl SessionShares {
    /// That there is no room for one of this share.
    pub(crate) fn full(&self, share: &Share, is_of_memory: bool) -> Full {
        Full { share: share.clone(), own: self.of(share), all: self.all(), is_of_memory }
    }

    /// How many there are.
    pub(crate) fn all(&self) -> usize {
        self.all
    }

    /// How many are of a share.
    pub(crate) fn of(&self, share: &Share) -> usize {
        self.by.get(share).map_or(0, |own| own.count)
    }

    /// A session is opened.
    pub(crate) fn enter(&mut self, share: &Share, id: &Arc<str>, is_fresh: impl Fn(&str) -> bool) {
        self.all += 1;
        let own = self.by.entry(share.clone()).or_default();
        own.count += 1;
        // Those that have ended, or were used, are forgotten while nobody needs room, too.
        if own.fresh.len() > own.count * 2 + LOOKED_AT_MAX {
            own.fresh.retain(|id| is_fresh(id));
        }
        own.fresh.push_back(id.clone());
    }

    /// One has ended.
    pub(crate) fn leave(&mut self, share: &Share) {
        self.all -= 1;
        if let Some(own) = self.by.get_mut(share) {
            own.count -= 1;
            if own.count == 0 {
                self.by.remove(share);
            }
        }
    }

    /// Where one of this share finds room: with the share that has the most, where that is better off by two at least; else with
    /// its own; where it has none yet and nobody has more than one, with any.
    pub(crate) fn room_for(&self, share: &Share) -> Room {
        let own = self.of(share);
        let most = self.by.iter().max_by_key(|(_, own)| own.count);
        match most.filter(|(_, most)| most.count > own + 1) {
            Some((share, _)) => Room { of: Some(share.clone()), is_over: true },
            None => Room { of: (own > 0).then(|| share.clone()), is_over: false },
        }
    }

    /// A session that was never used: one whose client said nothing after `initialize` before one that never called.
    pub(crate) fn unused(&mut self, room: &Room, find: impl Fn(&str) -> Option<Arc<Session>>) -> Option<Arc<str>> {
        let fresh = &mut self.by.get_mut(room.of.as_ref()?)?.fresh;
        let mut second = None;
        for _ in 0..fresh.len().min(LOOKED_AT_MAX) {
            let id = fresh.pop_front()?;
            let Some(session) = find(&id).filter(|session| !session.has_reached(Stage::Used)) else { continue };
            if session.idle().is_some() {
                if !session.has_reached(Stage::Initialized) {
                    return Some(id);
                }
                second = second.or_else(|| Some(id.clone()));
            }
            fresh.push_back(id);
        }
        second
    }
}

impl Room {
    /// With this share alone, which has no more than its part.
    pub(crate) fn of(share: &Share) -> Self {
        Self { of: Some(share.clone()), is_over: false }
    }

    /// Whether a share's sessions are looked at.
    pub(crate) fn is_of(&self, share: &Share) -> bool {
        self.of.as_ref().is_none_or(|of| of == share)
    }

    /// Which of these sessions goes: the longest idle one; of a share that has too many, else the newest without a call.
    pub(crate) fn choose(&self, those: impl Iterator<Item = Arc<Session>>) -> Option<Arc<str>> {
        let (mut longest, mut newest) = (None, None);
        for session in those {
            let may_go = |idle| self.is_over || idle > SPARE_AFTER || !session.has_reached(Stage::Used);
            match session.idle() {
                Some(idle) if may_go(idle) => longest = longest.max(Some((idle, session.short.clone()))),
                None if self.is_over && !session.is_at_work() => {
                    newest = newest.max(Some((session.opened, session.short.clone())));
                }
                _ => {}
            }
        }
        longest.map(|(_, id)| id).or_else(|| newest.map(|(_, id)| id))
    }
}
