//! The reply of one listen call: what was taken, then the changes, as long as its caller listens.

use super::pending::Heard;
use super::registry::{Listeners, Registration};
use super::sees::Sees;
use crate::call::caller::Caller;
use crate::call::caller::credential::subject;
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::{Change, Event, Outcome, Reply, Source, Step};
use crate::call::{Call, ListenFilter};
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::router::catalog::snapshot::Catalog;
use crate::router::catalog::{Current, START_WAIT};
use crate::router::names::{Looks, MemberId, uri};
use crate::router::tasks::routes;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// So long the acknowledgement waits for the upstreams' own; what was not acknowledged by then is not honoured.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(10);
/// So many resources may be listened to in one call.
const URIS_MAX: usize = 1024;
/// So many tasks may be.
const TASKS_MAX: usize = 64;

/// Takes a listen call; `sees` says whose the catalog is. What lists of its caller show now may be ahead of that.
pub(crate) fn listen(
    (current, shown): (&Arc<Current>, &Arc<Current>),
    listeners: &Listeners,
    call: Call,
    sees: Sees,
) -> Reply {
    let revision = call.revision();
    let Some(mut filter) = ListenFilter::parse(&call.params) else {
        let why = "`notifications` must be an object of flags, `resourceSubscriptions` and `taskIds`";
        return Reply::refuse(revision, Refusal::new(Reason::InvalidParams, why));
    };
    if filter.uris.len() > URIS_MAX {
        let why = format!("at most {URIS_MAX} resources can be listened to in one call");
        return Reply::refuse(revision, Refusal::new(Reason::InvalidParams, why));
    }
    match filter.uris.iter().find_map(|uri| uri::refuse_long(uri)) {
        // A subscription of a session has one URI and an answer.
        Some(refusal) if call.caller.tenant.is_some() => return Reply::refuse(revision, refusal),
        // The acknowledgement has what is honoured: the other URIs of the call.
        Some(_) => filter.uris.retain(|uri| uri::refuse_long(uri).is_none()),
        None => {}
    }
    if filter.tasks.len() > TASKS_MAX {
        let why = format!("at most {TASKS_MAX} tasks can be listened to in one call");
        return Reply::refuse(revision, Refusal::new(Reason::InvalidParams, why));
    }
    if let Some(refusal) = routes::refuse_listening(&call.caller).filter(|_| !filter.tasks.is_empty()) {
        return Reply::refuse(revision, refusal);
    }
    let registration = match listeners.register(&call, &filter, sees) {
        Ok(registration) => registration,
        Err(why) => {
            return Reply::refuse(revision, Refusal::new(Reason::Busy, why));
        }
    };
    registration.saw(shown.load().versions());
    let lists = ListenFilter { uris: Vec::new(), tasks: Vec::new(), ..filter.clone() };
    let has_owners = !filter.uris.is_empty() || !filter.tasks.is_empty();
    let caller = call.caller.clone();
    let again = has_owners.then(|| Box::new(call.clone()));
    let opening = has_owners.then(|| Box::pin(open(current.clone(), call, filter)) as Opening);
    Reply::live(Listening {
        registration,
        current: current.clone(),
        opening,
        again,
        lost: ListenFilter::default(),
        renewed: Vec::new(),
        parts: Vec::new(),
        honoured: Some(lists),
        limit: has_owners.then(|| Box::pin(tokio::time::sleep(ACKNOWLEDGED_WITHIN))),
        caller,
    })
}

type Opening = Pin<Box<dyn Future<Output = Vec<Part>> + Send>>;

/// The listen call that one upstream has for us.
struct Part {
    member: MemberId,
    reply: Reply,
    /// What was asked of it, in own and public words, so that what comes back is told as it was asked for.
    asked: BTreeMap<Arc<str>, Arc<str>>,
    is_of_tasks: bool,
    is_acknowledged: bool,
}

impl Part {
    /// What an own URI is called outside: as it was asked for, as it is listed, or as a part of what was asked for.
    fn public(&self, own: &Arc<str>, catalog: &Catalog) -> Arc<str> {
        if let Some(public) = self.asked.get(own) {
            return public.clone();
        }
        let listed = catalog.publish(self.member, own);
        let whole = |(asked, public): (&Arc<str>, &Arc<str>)| Some((public.clone(), own.strip_prefix(&**asked)?));
        match self.asked.iter().filter_map(whole).min_by_key(|(_, rest)| rest.len()) {
            Some((whole, rest)) if listed == *own => format!("{whole}{rest}").into(),
            _ => listed,
        }
    }
}

struct Listening {
    registration: Registration,
    current: Arc<Current>,
    opening: Option<Opening>,
    /// The call, where upstreams are asked.
    again: Option<Box<Call>>,
    /// What was asked of upstreams that have gone, in public words.
    lost: ListenFilter,
    /// Resources that another upstream has told of since: they may have changed meanwhile.
    renewed: Vec<Arc<str>>,
    parts: Vec<Part>,
    /// What will be acknowledged; `None` once it was.
    honoured: Option<ListenFilter>,
    /// When the acknowledgement no longer waits for upstreams; `None` where it need not.
    limit: Option<Pin<Box<Sleep>>>,
    caller: Arc<Caller>,
}

/// Finds the owners of URIs and of tasks, and calls each of them once for either.
async fn open(current: Arc<Current>, call: Call, filter: ListenFilter) -> Vec<Part> {
    let ListenFilter { uris, tasks, .. } = filter;
    let grants = &call.caller.grants;
    let catalog = current.keep();
    let is_settled = |now: &Catalog| {
        let mut looks = Looks::default();
        now.unseen().all(|id| !now.members[id].is_coming() || !now.sees(id, grants))
            || uris.iter().all(|uri| now.find_uri_within(uri, grants, &mut looks).is_some())
    };
    let catalog = match is_settled(&catalog) {
        true => catalog,
        false => current.until(Instant::now() + START_WAIT, is_settled).await,
    };
    let (mut by_member, mut by_task): (Owned, Owned) = Default::default();
    let mut looks = Looks::default();
    for uri in &uris {
        if let Some(found) = catalog.find_uri_within(uri, grants, &mut looks) {
            by_member.entry(found.member).or_default().insert(found.own.into(), uri.clone());
        }
    }
    for id in &tasks {
        if let Some((member, own)) = routes::find(&catalog, &call.caller, id) {
            by_task.entry(member).or_default().insert(own.into(), id.clone());
        }
    }
    let owned = by_member.into_iter().map(|one| (one, false)).chain(by_task.into_iter().map(|one| (one, true)));
    let parts = owned.map(|((member, asked), is_of_tasks)| {
        let own = asked.keys().cloned().collect();
        let filter = match is_of_tasks {
            true => ListenFilter { tasks: own, ..ListenFilter::default() },
            false => ListenFilter { uris: own, ..ListenFilter::default() },
        };
        let call = Call { params: filter.to_params(), log_level: None, ..call.clone() };
        Part { member, reply: catalog.members[member].owner.handle(call), asked, is_of_tasks, is_acknowledged: false }
    });
    parts.collect()
}

/// What was asked of each member, in own and public words.
type Owned = BTreeMap<MemberId, BTreeMap<Arc<str>, Arc<str>>>;

impl Listening {
    /// Reads the upstreams' replies; gives a change that was acknowledged before.
    fn poll_parts(&mut self, cx: &mut Context<'_>) -> Option<Change> {
        let mut at = 0;
        while at < self.parts.len() {
            let part = &mut self.parts[at];
            // Nothing may be told before everything is acknowledged; it waits, coalesced, with the upstream.
            if part.is_acknowledged && self.honoured.is_some() {
                at += 1;
                continue;
            }
            match part.reply.poll_step(cx) {
                Poll::Pending => at += 1,
                Poll::Ready(Step::Event(Event::Change(Change::Acknowledged(filter)))) => {
                    part.is_acknowledged = true;
                    let public = |own: &Arc<str>| part.asked.get(own).cloned();
                    match &mut self.honoured {
                        Some(honoured) => {
                            honoured.uris.extend(filter.uris.iter().filter_map(public));
                            honoured.tasks.extend(filter.tasks.iter().filter_map(public));
                        }
                        None => self.renewed.extend(filter.uris.iter().filter_map(public)),
                    }
                }
                Poll::Ready(Step::Event(Event::Change(Change::Updated(own)))) => {
                    let catalog = self.current.load();
                    let public = part.public(&own, &catalog);
                    // What was asked for may be seen no more, and a part of it may never have been to be seen.
                    let is_there = catalog.members.get(part.member).is_some();
                    if !is_there || catalog.may_read(part.member, &public, &self.registration.rights().grants) {
                        return Some(Change::Updated(public));
                    }
                }
                Poll::Ready(Step::Event(Event::Change(Change::Task(told)))) => {
                    let (catalog, listened) = (self.current.load(), |own: &str| part.asked.contains_key(own));
                    if catalog.members.get(part.member).is_some()
                        && catalog.sees(part.member, &self.registration.rights().grants)
                        && let Some(told) = routes::publish(&catalog, part.member, &self.caller, told, listened)
                    {
                        return Some(Change::Task(told));
                    }
                }
                Poll::Ready(Step::Event(_)) => {}
                Poll::Ready(Step::Done(_)) => self.part_ended(at),
            }
        }
        self.renewed.pop().map(Change::Updated)
    }

    /// What an upstream no longer honours is simply no longer heard of; what one had that has gone is asked of whoever has it now.
    fn part_ended(&mut self, at: usize) {
        let part = self.parts.swap_remove(at);
        if self.honoured.is_some() || self.current.load().members.get(part.member).is_some() {
            return;
        }
        let lost = if part.is_of_tasks { &mut self.lost.tasks } else { &mut self.lost.uris };
        lost.extend(part.asked.into_values());
    }

    /// Takes over the rights that its session has by now. An upstream that knows its clients by tokens of their own holds the subscriptions
    /// of one token: they are asked for with the next one, since it may allow less.
    fn follow_rights(&mut self) {
        let Some(before) = self.registration.follow_rights(&self.current) else { return };
        let now = self.registration.rights();
        self.caller = Arc::new(self.caller.with_rights(&now));
        self.again.iter_mut().for_each(|call| call.caller = self.caller.clone());
        if self.honoured.is_some() || subject::is_as_good(&before.principal, &now.principal) {
            return;
        }
        for part in self.parts.drain(..) {
            let lost = if part.is_of_tasks { &mut self.lost.tasks } else { &mut self.lost.uris };
            lost.extend(part.asked.into_values());
        }
    }

    /// Asks for what was lost; whether there is anything to ask for.
    fn ask_again(&mut self) -> bool {
        if self.opening.is_some() || (self.lost.uris.is_empty() && self.lost.tasks.is_empty()) {
            return false;
        }
        let (lost, call) = (std::mem::take(&mut self.lost), self.again.clone());
        self.opening = call.map(|call| Box::pin(open(self.current.clone(), *call, lost)) as Opening);
        self.opening.is_some()
    }

    /// The upstreams' replies, once they are made.
    fn poll_opening(&mut self, cx: &mut Context<'_>) {
        if let Some(opening) = &mut self.opening
            && let Poll::Ready(parts) = opening.as_mut().poll(cx)
        {
            self.parts.extend(parts);
            self.opening = None;
        }
    }

    /// The acknowledgement, once all upstreams have given theirs or the time is over.
    fn poll_acknowledged(&mut self, cx: &mut Context<'_>) -> Poll<ListenFilter> {
        let is_complete = self.opening.is_none() && self.parts.iter().all(|part| part.is_acknowledged);
        if let (false, Some(limit)) = (is_complete, &mut self.limit) {
            std::task::ready!(limit.as_mut().poll(cx));
            self.opening = None;
            self.parts.retain(|part| part.is_acknowledged);
        }
        Poll::Ready(self.honoured.take().unwrap_or_default())
    }
}

impl Source for Listening {
    fn poll_step(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let this = self.get_mut();
        let change = |change| Poll::Ready(Step::Event(Event::Change(change)));
        this.follow_rights();
        this.poll_opening(cx);
        if this.honoured.is_some() {
            // An upstream acknowledges first, so what else it told by now it should not have.
            while this.poll_parts(cx).is_some() {}
            return this
                .poll_acknowledged(cx)
                .map(|honoured| Step::Event(Event::Change(Change::Acknowledged(honoured))));
        }
        match this.registration.listener.next(cx.waker()) {
            Some(Heard::Change(kind)) => return change(kind),
            Some(Heard::Log(level, params)) => return Poll::Ready(Step::Event(Event::Log(level, params))),
            Some(Heard::Closed) => return Poll::Ready(Step::Done(Outcome::Complete(Object::empty()))),
            None => {}
        }
        loop {
            match this.poll_parts(cx) {
                Some(updated) => return change(updated),
                None if !this.ask_again() => return Poll::Pending,
                None => this.poll_opening(cx),
            }
        }
    }

    fn revision(&self) -> Revision {
        self.caller.revision
    }
}
