//! Which stream of changes of a stateless upstream tells of which resources. Only what changed is looked at, and a new stream repeats
//! no more than it has to.

use super::resources::WantedSubscriptions;
use crate::call::ListenFilter;
use crate::call::share::Share;
use crate::steps;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// A stream of so few resources is replaced by one with what is wanted beside them. Larger ones are left open, and replaced once as
/// much is wanted beside them, or once half of what they tell of is wanted no more: so the streams are few, and each resource is asked
/// for a few times at most, however many there are.
const SMALL: usize = 64;

/// So many resources of one client may be refused alone; then the rest of what that client waits for is not asked for.
const ALONE_MAX: usize = 16;

/// What is told on which stream.
#[derive(Debug, Default)]
pub(crate) struct StreamPlan {
    streams: Vec<Planned>,
    /// Where each resource is told of.
    told: HashMap<Arc<str>, Told>,
    /// What is wanted, and told of on no stream.
    fresh: BTreeSet<Arc<str>>,
    /// What is wanted, and was refused when it was asked for alone.
    refused: BTreeSet<Arc<str>>,
    /// While it is not known which resource of a stream was refused: so many are asked for at once, and nothing is replaced.
    most: Option<usize>,
    /// How many of each client were refused alone meanwhile.
    alone: HashMap<Share, usize>,
}

#[derive(Debug)]
struct Planned {
    id: u64,
    asked: Vec<Arc<str>>,
    /// How many of them nobody wants any more.
    unwanted: usize,
    has_lists: bool,
}

#[derive(Debug)]
struct Told {
    on: u64,
    is_honoured: bool,
    is_wanted: bool,
}

/// A stream that is to be opened, and those that it replaces. One that would tell of nothing is not opened: the others end without it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NextStream {
    pub(crate) filter: ListenFilter,
    pub(crate) replaces: Vec<u64>,
}

impl StreamPlan {
    /// Looks at a resource: somebody wants it now, or nobody does any more.
    pub(crate) fn look(&mut self, wants: &WantedSubscriptions, uri: &Arc<str>) {
        steps::add(1);
        let is_wanted = wants.share_of(uri).is_some();
        let Some(told) = self.told.get_mut(uri) else {
            match is_wanted {
                true if self.refused.contains(uri) => wants.settled(uri, false),
                true => _ = self.fresh.insert(uri.clone()),
                false => _ = self.fresh.remove(uri) || self.refused.remove(uri),
            }
            return;
        };
        if is_wanted {
            // Whoever came to what is there already waits for nothing.
            wants.settled(uri, told.is_honoured);
        }
        if std::mem::replace(&mut told.is_wanted, is_wanted) != is_wanted
            && let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == told.on)
        {
            stream.unwanted = if is_wanted { stream.unwanted - 1 } else { stream.unwanted + 1 };
        }
    }

    /// The stream that is to be opened next, where one is; `lists` is what all streams together tell of beside resources.
    pub(crate) fn next(&self, lists: &ListenFilter) -> Option<NextStream> {
        let wants_lists = *lists != ListenFilter::default();
        let owes_lists = wants_lists && !self.streams.iter().any(|stream| stream.has_lists);
        if let Some(most) = self.most {
            return Some(self.narrowed(most, owes_lists.then_some(lists)));
        }
        let (mut replaced, mut kept): (Vec<&Planned>, Vec<&Planned>) =
            self.streams.iter().partition(|stream| stream.is_worn(wants_lists));
        if self.fresh.is_empty() && !owes_lists && replaced.is_empty() {
            return None;
        }
        let live = |stream: &Planned| stream.asked.len() - stream.unwanted;
        let mut size = self.fresh.len() + replaced.iter().map(|stream| live(stream)).sum::<usize>();
        kept.sort_by_key(|stream| stream.asked.len());
        for stream in kept {
            if stream.asked.len() > size.max(SMALL) {
                break;
            }
            size += live(stream);
            replaced.push(stream);
        }
        let mut uris = self.fresh.clone();
        for uri in replaced.iter().flat_map(|stream| &stream.asked) {
            steps::add(1);
            if self.told.get(uri).is_some_and(|told| told.is_wanted) {
                uris.insert(uri.clone());
            }
        }
        steps::add(uris.len());
        let mut filter = ListenFilter { uris: uris.into_iter().collect(), ..ListenFilter::default() };
        if owes_lists || wants_lists && replaced.iter().any(|stream| stream.has_lists) {
            filter = ListenFilter { uris: filter.uris, ..lists.clone() };
        }
        Some(NextStream { filter, replaces: replaced.iter().map(|stream| stream.id).collect() })
    }

    /// The next stream while a resource that is refused is looked for: the lists, then the resources, each apart from what is told.
    fn narrowed(&self, most: usize, lists: Option<&ListenFilter>) -> NextStream {
        let filter = match lists {
            Some(lists) => lists.clone(),
            None => ListenFilter { uris: self.fresh.iter().take(most).cloned().collect(), ..ListenFilter::default() },
        };
        NextStream { filter, replaces: Vec::new() }
    }

    /// The upstream refuses a stream of this. That may be for one resource of it: half as much is asked for next, and what is refused
    /// alone is not asked for again. Says whether there is anything to ask for.
    pub(crate) fn narrow(&mut self, wants: &WantedSubscriptions, asked: &ListenFilter) -> bool {
        let fresh = asked.uris.iter().filter(|uri| self.fresh.contains(*uri)).count();
        match (self.most, fresh) {
            (_, 0) => {
                self.most = None;
                return false;
            }
            (Some(_), 1) => self.refused_alone(wants, &asked.uris[0]),
            _ => self.most = Some((fresh / 2).max(1)),
        }
        self.widen(1);
        true
    }

    fn refused_alone(&mut self, wants: &WantedSubscriptions, uri: &Arc<str>) {
        let share = wants.share_of(uri).unwrap_or(Share::Unknown);
        let alone = self.alone.entry(share.clone()).or_default();
        *alone += 1;
        let gone: Vec<_> = match *alone >= ALONE_MAX {
            true => self.fresh.iter().filter(|uri| wants.share_of(uri).is_none_or(|of| of == share)).cloned().collect(),
            false => vec![uri.clone()],
        };
        for uri in gone {
            self.fresh.remove(&uri);
            wants.settled(&uri, false);
            self.refused.insert(uri);
        }
    }

    /// So many times as much is asked for next; all there is, once nothing is looked for.
    fn widen(&mut self, by: usize) {
        self.most = self.most.filter(|_| !self.fresh.is_empty()).map(|most| most.saturating_mul(by));
        if self.most.is_none() {
            self.alone.clear();
        }
    }

    /// A stream is open: the upstream honours these of what it was asked for. What is no longer wanted of it is looked at.
    pub(crate) fn opened(&mut self, wants: &WantedSubscriptions, id: u64, asked: &ListenFilter, honoured: &[Arc<str>]) {
        let honoured: HashSet<&Arc<str>> = honoured.iter().collect();
        let has_lists = asked.tools || asked.prompts || asked.resources;
        self.streams.push(Planned { id, asked: asked.uris.clone(), unwanted: 0, has_lists });
        for uri in &asked.uris {
            self.fresh.remove(uri);
            let told = Told { on: id, is_honoured: honoured.contains(uri), is_wanted: true };
            self.told.insert(uri.clone(), told);
            self.look(wants, uri);
        }
        self.widen(2);
    }

    /// A stream tells no more: what only it told of is wanted anew.
    pub(crate) fn ended(&mut self, id: u64) {
        let Some(at) = self.streams.iter().position(|stream| stream.id == id) else { return };
        self.fresh.append(&mut self.refused);
        for uri in self.streams.remove(at).asked {
            steps::add(1);
            if self.told.get(&uri).is_some_and(|told| told.on == id)
                && let Some(told) = self.told.remove(&uri)
                && told.is_wanted
            {
                self.fresh.insert(uri);
            }
        }
    }

    /// The upstream opens no stream for this: who waits for what is told of on no stream is told so.
    pub(crate) fn refused(&self, wants: &WantedSubscriptions) {
        self.fresh.iter().for_each(|uri| wants.settled(uri, false));
    }
}

impl Planned {
    /// Whether it tells of too much that nobody wants.
    fn is_worn(&self, wants_lists: bool) -> bool {
        let is_empty = self.asked.len() == self.unwanted && !(self.has_lists && wants_lists);
        is_empty || self.unwanted > 0 && (self.asked.len() <= SMALL || self.unwanted * 2 > self.asked.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::share::Share;

    /// Keeps what is wanted, as an upstream would have it that honours everything; how many resources it was asked for.
    fn keep(
        plan: &mut StreamPlan,
        wants: &WantedSubscriptions,
        news: &super::super::resources::News<'_>,
        next: &mut u64,
    ) -> usize {
        news.take().iter().for_each(|uri| plan.look(wants, uri));
        let mut asked = 0;
        while let Some(NextStream { filter, replaces }) = plan.next(&ListenFilter::lists()) {
            asked += filter.uris.len();
            *next += 1;
            plan.opened(wants, *next, &filter, &filter.uris);
            replaces.into_iter().for_each(|id| plan.ended(id));
        }
        asked
    }

    #[test]
    fn the_streams_are_few_and_each_resource_is_asked_for_a_few_times() {
        let (wants, mut plan, mut next) = (WantedSubscriptions::default(), StreamPlan::default(), 0);
        let news = wants.follow();
        let mut keys = Vec::new();
        let mut asked = keep(&mut plan, &wants, &news, &mut next);
        for at in 0..8192 {
            keys.push(wants.listen(vec![format!("a:{at}").into()], &Share::Unknown));
            let now = keep(&mut plan, &wants, &news, &mut next);
            assert!(now > 0, "none waits");
            asked += now;
        }
        assert!(plan.streams.len() <= 9, "{} streams", plan.streams.len());
        assert!(asked < 8192 * 48, "{asked} resources were asked for");
        assert_eq!(plan.streams.iter().filter(|stream| stream.has_lists).count(), 1);
        let all: HashSet<_> = plan.streams.iter().flat_map(|stream| stream.asked.clone()).collect();
        assert_eq!((all.len(), plan.told.len(), plan.fresh.len()), (8192, 8192, 0));
        let mut again = 0;
        for key in keys {
            wants.leave(key);
            again += keep(&mut plan, &wants, &news, &mut next);
        }
        assert!(again < 8192 * 48, "{again} resources were asked for anew");
        assert_eq!((plan.streams.len(), plan.told.len()), (1, 0), "one tells of the lists");
    }

    #[test]
    fn one_refused_resource_costs_no_other() {
        let (wants, mut plan) = (WantedSubscriptions::default(), StreamPlan::default());
        let news = wants.follow();
        let share = |name: &str| Share::Principal(crate::call::caller::Principal::named(name));
        let of = |name: &str, good: &str, count: usize, bad: &dyn Fn(usize) -> bool| {
            let uri = |at| format!("{}:{name}/{at}", if bad(at) { "bad" } else { good }).into();
            wants.listen((0..count).map(uri).collect(), &share(name))
        };
        let (ann, bob) = (of("ann", "a", 100, &|at| at == 37), of("bob", "a", 3, &|at| at == 1));
        // Whose all stand behind those that are refused.
        let (eve, zoe) = (of("eve", "a", 1000, &|_| true), of("zoe", "z", 5, &|_| false));
        news.take().iter().for_each(|uri| plan.look(&wants, uri));
        let mut requests = 0;
        while let Some(NextStream { filter, replaces }) = plan.next(&ListenFilter::lists()) {
            requests += 1;
            match filter.uris.iter().any(|uri| uri.starts_with("bad")) {
                true => assert!(plan.narrow(&wants, &filter)),
                false => plan.opened(&wants, requests, &filter, &filter.uris),
            }
            replaces.into_iter().for_each(|id| plan.ended(id));
        }
        let honoured = |key| {
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            match wants.poll_honoured(key, false, &mut cx) {
                std::task::Poll::Ready(uris) => uris.len(),
                std::task::Poll::Pending => panic!("it is not known"),
            }
        };
        assert_eq!((honoured(ann), honoured(bob), honoured(eve), honoured(zoe)), (99, 2, 0, 5));
        assert!(requests < 100, "{requests} requests");
        assert!(plan.streams.iter().any(|stream| stream.has_lists) && plan.most.is_none() && plan.alone.is_empty());
    }

    #[test]
    fn what_a_stream_told_of_that_ended_is_wanted_anew_and_what_is_wanted_again_is_there_already() {
        let (wants, mut plan, mut next) = (WantedSubscriptions::default(), StreamPlan::default(), 0);
        let news = wants.follow();
        let many = (0..100).map(|at| format!("a:{at}").into()).collect();
        let (_many, one) = (wants.listen(many, &Share::Unknown), wants.listen(vec!["b:1".into()], &Share::Unknown));
        assert_eq!(keep(&mut plan, &wants, &news, &mut next), 101);
        wants.leave(one);
        assert_eq!(keep(&mut plan, &wants, &news, &mut next), 0, "one of many is left");
        let _again = wants.listen(vec!["b:1".into()], &Share::Unknown);
        assert_eq!(keep(&mut plan, &wants, &news, &mut next), 0, "it is told of still");
        plan.ended(next);
        assert_eq!(keep(&mut plan, &wants, &news, &mut next), 101);
    }
}
