//! Which subscriptions a handshake upstream is to be asked to begin or to end. Only what changed is looked at.

use super::resources::WantedSubscriptions;
use crate::call::share::{Part, Share, SharePermit, Shares};
use crate::steps;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// So many requests are open at once, half of them of one client alone: one that is not answered holds up nobody else's.
const ASKED_MAX: usize = 32;

/// Where one resource stands with the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It was asked to begin, or to end, and has not answered.
    Asked,
    /// It tells of changes.
    Active,
    /// It will not. Asked anew once those who were refused have let go.
    Refused,
}

/// A request that is to be sent now.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) uri: Arc<str>,
    pub(crate) begins: bool,
    /// Its place among those that are open.
    pub(crate) place: SharePermit,
}

/// Where each resource stands, and what is due.
#[derive(Debug)]
pub(crate) struct Requests {
    states: HashMap<Arc<str>, State>,
    due: Due,
    places: Arc<Shares>,
}

/// The resources that may have to be asked for: those of each client in their order, the clients by turns.
#[derive(Debug, Default)]
struct Due {
    lanes: VecDeque<(Share, VecDeque<Arc<str>>)>,
    all: HashSet<Arc<str>>,
}

impl Requests {
    pub(crate) fn new() -> Self {
        Self { states: HashMap::new(), due: Due::default(), places: Shares::new(ASKED_MAX, Part::OfFree) }
    }

    /// Looks at a resource: somebody wants it now, or nobody does any more, or the upstream has answered.
    pub(crate) fn look(&mut self, wants: &WantedSubscriptions, uri: &Arc<str>) {
        steps::add(1);
        match (wants.share_of(uri), self.states.get(uri)) {
            (_, Some(State::Asked)) | (None, None) => {}
            // Whoever came to what is there already waits for nothing.
            (Some(_), Some(State::Active)) => wants.settled(uri, true),
            (Some(_), Some(State::Refused)) => wants.settled(uri, false),
            (Some(share), None) => self.due.push(share, uri),
            (None, Some(State::Active)) => self.due.push(Share::Unknown, uri),
            (None, Some(State::Refused)) => _ = self.states.remove(uri),
        }
    }

    /// What is to be asked now, if anything is.
    pub(crate) fn next(&mut self, wants: &WantedSubscriptions) -> Option<Request> {
        loop {
            let (uri, place) = self.due.pop(&self.places)?;
            steps::add(1);
            // It may have changed since it became due.
            let begins = match (wants.share_of(&uri).is_some(), self.states.get(&uri)) {
                (true, None) => true,
                (false, Some(State::Active)) => false,
                _ => {
                    self.look(wants, &uri);
                    continue;
                }
            };
            self.states.insert(uri.clone(), State::Asked);
            return Some(Request { uri, begins, place });
        }
    }

    /// The upstream has answered a request.
    pub(crate) fn answered(&mut self, wants: &WantedSubscriptions, uri: &Arc<str>, begun: bool, is_taken: bool) {
        match begun {
            true => {
                wants.settled(uri, is_taken);
                self.states.insert(uri.clone(), if is_taken { State::Active } else { State::Refused });
            }
            false => _ = self.states.remove(uri),
        }
        self.look(wants, uri);
    }
}

impl Due {
    fn push(&mut self, share: Share, uri: &Arc<str>) {
        if !self.all.insert(uri.clone()) {
            return;
        }
        match self.lanes.iter_mut().find(|(of, _)| *of == share) {
            Some((_, lane)) => lane.push_back(uri.clone()),
            None => self.lanes.push_back((share, VecDeque::from([uri.clone()]))),
        }
    }

    /// Takes one out, of the first client that finds a place.
    fn pop(&mut self, places: &Arc<Shares>) -> Option<(Arc<str>, SharePermit)> {
        let found = |(at, (share, _)): (usize, &(Share, _))| Some((at, places.take(share)?));
        let (at, place) = self.lanes.iter().enumerate().find_map(found)?;
        let (share, mut lane) = self.lanes.remove(at)?;
        let uri = lane.pop_front()?;
        self.all.remove(&uri);
        if !lane.is_empty() {
            self.lanes.push_back((share, lane));
        }
        Some((uri, place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::caller::Principal;

    fn share(name: &str) -> Share {
        Share::Principal(Principal::named(name))
    }

    #[test]
    fn one_clients_subscriptions_that_are_not_answered_hold_up_nobody_elses() {
        let (wants, mut requests) = (WantedSubscriptions::default(), Requests::new());
        let news = wants.follow();
        let of = |name: &str, count: usize| {
            (0..count).map(|at| wants.listen(vec![format!("{name}:{at}").into()], &share(name))).collect::<Vec<_>>()
        };
        let (_ann, _bob) = (of("ann", 1000), of("bob", 2));
        news.take().iter().for_each(|uri| requests.look(&wants, uri));
        let asked: Vec<_> = std::iter::from_fn(|| requests.next(&wants)).collect();
        let of_bob = asked.iter().filter(|request| request.uri.starts_with("bob")).count();
        assert_eq!((of_bob, asked.len() - of_bob, requests.due.all.len()), (2, 15, 985));
    }

    #[test]
    fn what_changes_while_it_is_asked_for_is_seen_to_after_the_answer() {
        let (wants, mut requests) = (WantedSubscriptions::default(), Requests::new());
        let news = wants.follow();
        let mut step = |answered: Option<(bool, bool)>| {
            let uri: Arc<str> = "a:1".into();
            if let Some((begun, is_taken)) = answered {
                requests.answered(&wants, &uri, begun, is_taken);
            }
            news.take().iter().for_each(|uri| requests.look(&wants, uri));
            requests.next(&wants).map(|request| request.begins)
        };
        let listen = || wants.listen(vec!["a:1".into()], &Share::Unknown);
        let first = listen();
        assert_eq!(step(None), Some(true));
        wants.leave(first);
        assert_eq!(step(None), None, "it has not answered");
        assert_eq!(step(Some((true, true))), Some(false));
        let second = listen();
        assert_eq!(step(None), None);
        assert_eq!(step(Some((false, true))), Some(true));
        assert_eq!(step(Some((true, false))), None, "it refused");
        wants.leave(second);
        assert_eq!(step(None), None);
        let third = listen();
        assert_eq!(step(None), Some(true), "asked anew once those who were refused have let go");
        wants.leave(third);
    }
}
