//! Who may be sent to which page, and what its visit has come to.

use super::cookie;
use super::flow::{Flow, PERSON_MAX, Stage, Visit, random};
use super::logins::Begun;
use crate::call::caller::{ClientSession, Principal};
use http::HeaderMap;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio::time::Instant;

/// So many logins wait for their persons, and so many of one principal.
const FLOWS_MAX: usize = 1024;
const OF_PRINCIPAL_MAX: usize = 32;

/// All logins that wait for their persons.
#[derive(Default)]
pub(super) struct Flows(Mutex<Vec<Flow>>);

/// What a link leads to.
pub(super) enum Opened {
    /// Nothing, or nothing any more.
    Unknown,
    /// Somebody has opened it in another browser.
    Taken,
    /// It is opened for the first time, by whom this cookie is given to.
    First { id: String, upstream: Arc<str>, principal: Principal, cookie: String },
    /// It is opened again.
    Again { id: String },
}

/// What a page shows.
pub(super) enum Shown<T> {
    Later(watch::Receiver<()>),
    Now(T),
    Gone,
}

/// What an answer of an authorization server belongs to.
pub(super) enum Brought {
    Unknown,
    /// Another browser has begun it.
    Taken,
    /// The browser has brought it before.
    Again,
    /// It was begun for this upstream, and comes back to the place of another one. It is over.
    Elsewhere {
        upstream: Arc<str>,
    },
    Good {
        id: String,
        upstream: Arc<str>,
        principal: Principal,
        begun: Box<Begun>,
        /// As [`Flow::over`].
        over: watch::Receiver<bool>,
    },
}

impl Flows {
    /// What is told a principal that needs a login: the id of a visit, and the end of the page's address. One at a time for each upstream;
    /// `None` where there are too many.
    pub(super) fn tell(
        &self,
        (upstream, place): (&Arc<str>, &str),
        principal: &Principal,
        session: Option<&Arc<ClientSession>>,
    ) -> Option<(String, String)> {
        let now = Instant::now();
        let mut flows = self.lock();
        flows.retain(|flow| !flow.is_over(now));
        if let Some(flow) = flows.iter_mut().find(|flow| flow.is_of(upstream, principal) && flow.is_open(now)) {
            flow.told(session);
            return Some((flow.id.clone(), flow.link.clone()));
        }
        let of_principal = flows.iter().filter(|flow| flow.principal == *principal).count();
        if of_principal >= OF_PRINCIPAL_MAX || flows.len() >= FLOWS_MAX && !make_room(&mut flows, of_principal) {
            return None;
        }
        let mut flow = Flow::new((upstream, place), principal)?;
        flow.told(session);
        let told = (flow.id.clone(), flow.link.clone());
        flows.push(flow);
        Some(told)
    }

    /// Closed when nobody waits any more for the person of a principal who is to log in to an upstream; `None` where nobody does.
    pub(super) fn over(&self, upstream: &str, principal: &Principal) -> Option<watch::Receiver<bool>> {
        let (flows, now) = (self.lock(), Instant::now());
        let flow = flows.iter().find(|flow| flow.is_of(upstream, principal) && !flow.is_over(now))?;
        Some(flow.over.subscribe())
    }

    /// Follows a link. It leads to one browser alone: the first one. Whatever was begun before for the same principal ends with that.
    pub(super) fn open(&self, link: &str, headers: &HeaderMap, is_secure: bool) -> Opened {
        let (asked, now) = (cookie::digest(link), Instant::now());
        let mut flows = self.lock();
        flows.retain(|flow| !flow.is_over(now));
        let Some(at) = flows.iter().position(|flow| cookie::digest(&flow.link) == asked) else {
            return Opened::Unknown;
        };
        let flow = &mut flows[at];
        let id = flow.id.clone();
        if flow.visit.is_some() {
            return if flow.is_of_browser(headers, is_secure) { Opened::Again { id } } else { Opened::Taken };
        }
        let Some(cookie) = random::<32>() else { return Opened::Unknown };
        flow.visit = Some(Visit::new(cookie::digest(&cookie)));
        flow.until = now + PERSON_MAX;
        let (upstream, principal) = (flow.upstream.clone(), flow.principal.clone());
        flows.retain(|other| other.id == id || !other.is_of(&upstream, &principal));
        Opened::First { id, upstream, principal, cookie }
    }

    /// It is known where the person goes on, or why nowhere.
    pub(super) fn begun(&self, id: &str, begun: Result<Begun, String>) {
        self.with(id, |flow| {
            let stage = begun.map_or_else(Stage::Failed, |begun| Stage::Begun(Box::new(begun)));
            if let Some(visit) = &mut flow.visit {
                visit.moves(stage);
            }
        });
    }

    /// What the page of a visit shows, in these words of it.
    pub(super) fn shown<T>(&self, id: &str, say: impl FnOnce(&Flow, &Stage) -> T) -> Shown<T> {
        let shown = self.with(id, |flow| {
            let Some(visit) = &flow.visit else { return Shown::Gone };
            match &visit.stage {
                Stage::Beginning => Shown::Later(visit.moved.subscribe()),
                stage => Shown::Now(say(flow, stage)),
            }
        });
        shown.unwrap_or(Shown::Gone)
    }

    /// Takes what a browser brings back with this state to the place of an upstream, once.
    pub(super) fn brought(&self, (at, state): (&str, &str), headers: &HeaderMap, is_secure: bool) -> Brought {
        let (given, now) = (cookie::digest(state), Instant::now());
        let mut flows = self.lock();
        flows.retain(|flow| !flow.is_over(now));
        let is_it = |flow: &&mut Flow| match flow.visit.as_ref().map(|visit| &visit.stage) {
            Some(Stage::Begun(begun)) => cookie::digest(&begun.state) == given,
            _ => false,
        };
        let Some(flow) = flows.iter_mut().find(is_it) else {
            let is_back = |flow: &Flow| {
                let stage = flow.visit.as_ref().map(|visit| &visit.stage);
                matches!(stage, Some(Stage::Finishing)) && flow.is_of_browser(headers, is_secure)
            };
            return if flows.iter().any(is_back) { Brought::Again } else { Brought::Unknown };
        };
        if !flow.is_of_browser(headers, is_secure) {
            return Brought::Taken;
        }
        let (id, upstream) = (flow.id.clone(), flow.upstream.clone());
        if *upstream != *at {
            flows.retain(|flow| flow.id != id);
            return Brought::Elsewhere { upstream };
        }
        let (principal, over) = (flow.principal.clone(), flow.over.subscribe());
        let Some(visit) = &mut flow.visit else { return Brought::Unknown };
        match std::mem::replace(&mut visit.stage, Stage::Finishing) {
            Stage::Begun(begun) => Brought::Good { id, upstream, principal, begun, over },
            _ => Brought::Unknown,
        }
    }

    /// The person has logged in: all logins of the same principal there are over, and who was told of one is told so.
    pub(super) fn done(&self, id: &str) {
        let over: Vec<Flow> = {
            let mut flows = self.lock();
            let Some(flow) = flows.iter().find(|flow| flow.id == id) else { return };
            let (upstream, principal) = (flow.upstream.clone(), flow.principal.clone());
            flows.extract_if(.., |flow| flow.is_of(&upstream, &principal)).collect()
        };
        over.iter().for_each(Flow::tell_complete);
    }

    /// Nothing came of it: whoever calls next gets another link.
    pub(super) fn failed(&self, id: &str) {
        self.lock().retain(|flow| flow.id != id);
    }

    /// Ends the pages of those whom none is meant for any more, whoever has opened them and however far they are.
    pub(super) fn end(&self, is_meant: impl Fn((&str, &str), &Principal) -> bool) {
        let of = |flow: &Flow| (flow.id.clone(), flow.upstream.clone(), flow.place.clone(), flow.principal.clone());
        let all: Vec<_> = self.lock().iter().map(of).collect();
        let is_over =
            |(_, upstream, place, principal): &(_, Arc<str>, String, _)| !is_meant((upstream, place), principal);
        let ends: Vec<_> = all.into_iter().filter(is_over).map(|(id, ..)| id).collect();
        let is_ended = |flow: &mut Flow| ends.contains(&flow.id);
        let ended: Vec<Flow> = self.lock().extract_if(.., is_ended).collect();
        ended.iter().for_each(|flow| _ = flow.over.send_replace(true));
    }

    fn with<T>(&self, id: &str, act: impl FnOnce(&mut Flow) -> T) -> Option<T> {
        self.lock().iter_mut().find(|flow| flow.id == id).map(act)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Flow>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a login that nobody has opened, the oldest one of the principal with the most of them: at least two more than the one that asks has,
/// so that a few principals do not take the logins of all others.
fn make_room(flows: &mut Vec<Flow>, of_asking: usize) -> bool {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    flows.iter().for_each(|flow| *counts.entry(flow.principal.name()).or_default() += 1);
    let is_unopened = |flow: &Flow| flow.visit.is_none();
    let most = flows.iter().filter(|flow| is_unopened(flow)).map(|flow| counts[flow.principal.name()]).max();
    let Some(most) = most.filter(|most| *most >= of_asking + 2) else { return false };
    let oldest = flows.iter().position(|flow| is_unopened(flow) && counts[flow.principal.name()] == most);
    oldest.map(|at| flows.remove(at)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::advance;

    fn tell(flows: &Flows, upstream: usize, principal: &str) -> Option<String> {
        let upstream = format!("up{upstream}").into();
        flows.tell((&upstream, ""), &Principal::named(principal), None).map(|(_, link)| link)
    }

    fn opened(flows: &Flows, link: &str) -> &'static str {
        match flows.open(link, &HeaderMap::new(), false) {
            Opened::Unknown => "unknown",
            Opened::Taken => "taken",
            Opened::First { .. } => "first",
            Opened::Again { .. } => "again",
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_is_told_again_until_somebody_is_at_it_for_a_minute_and_the_next_one_ends_that() {
        let flows = Flows::default();
        let first = tell(&flows, 1, "ada").unwrap();
        assert_eq!(tell(&flows, 1, "ada"), Some(first.clone()));
        assert!(first.len() == 64 && tell(&flows, 1, "bob") != Some(first.clone()), "of another principal");
        assert_eq!(opened(&flows, &first), "first");
        advance(Duration::from_secs(59)).await;
        assert_eq!(tell(&flows, 1, "ada"), Some(first.clone()));
        advance(Duration::from_secs(1)).await;
        let next = tell(&flows, 1, "ada").unwrap();
        assert_ne!(next, first);
        // Whoever is at it may go on, as long as nobody opens the next one.
        assert_eq!(opened(&flows, &first), "taken");
        assert_eq!((opened(&flows, &next), opened(&flows, &first)), ("first", "unknown"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_and_a_visit_last_ten_minutes_each() {
        let flows = Flows::default();
        let (unopened, link) = (tell(&flows, 1, "ada").unwrap(), tell(&flows, 2, "ada").unwrap());
        advance(PERSON_MAX - Duration::from_secs(1)).await;
        assert_eq!(opened(&flows, &link), "first");
        advance(Duration::from_secs(1)).await;
        assert_eq!((opened(&flows, &unopened), opened(&flows, &link)), ("unknown", "taken"));
        advance(PERSON_MAX).await;
        assert_eq!(opened(&flows, &link), "unknown");
        assert!(flows.over("up2", &Principal::named("ada")).is_none());
    }

    #[tokio::test]
    async fn one_principal_has_a_part_of_all_logins_and_there_is_an_end_of_them() {
        let flows = Flows::default();
        let all = |principal: &str| (0..=OF_PRINCIPAL_MAX).filter_map(|at| tell(&flows, at, principal)).count();
        assert_eq!(all("ada"), OF_PRINCIPAL_MAX);
        let told: usize = (1..FLOWS_MAX / OF_PRINCIPAL_MAX).map(|at| all(&format!("p{at}"))).sum();
        assert_eq!(told, FLOWS_MAX - OF_PRINCIPAL_MAX);
        let open = || flows.lock().len();
        assert_eq!(open(), FLOWS_MAX);
        let known = flows.lock()[0].link.clone();
        assert!(tell(&flows, 0, "ada") == Some(known), "what is told already is told again");
        // Those who have the most make room, one by one, until they have about as many as whoever asks.
        let first = tell(&flows, 40, "p1");
        assert!(first.is_none(), "it has the most itself");
        let of_bob = all("bob");
        assert!((OF_PRINCIPAL_MAX - 2..OF_PRINCIPAL_MAX).contains(&of_bob), "{of_bob}");
        let told = (0..FLOWS_MAX * 2).filter(|at| tell(&flows, 0, &format!("q{at}")).is_some()).count();
        assert!(
            (FLOWS_MAX / 2..FLOWS_MAX).contains(&told) && open() == FLOWS_MAX,
            "{told}, then there is an end: {}",
            open()
        );
    }

    #[tokio::test]
    async fn what_one_principal_opens_brings_back_or_finishes_is_nothing_to_another() {
        let flows = Flows::default();
        let (upstream, ada, bob) = ("up1".into(), Principal::named("token:ada"), Principal::named("token:bob"));
        let sessions = [(); 2].map(|()| Arc::new(ClientSession::mute("s")));
        let (of_ada, ada_link) = flows.tell((&upstream, ""), &ada, Some(&sessions[0])).unwrap();
        let (of_bob, bob_link) = flows.tell((&upstream, ""), &bob, Some(&sessions[1])).unwrap();
        let borne = |link: &str, headers: &HeaderMap| match flows.open(link, headers, false) {
            Opened::First { id, principal, cookie, .. } => {
                let mut headers = HeaderMap::new();
                headers.insert("cookie", format!("{}={cookie}", cookie::name(&id, false)).parse().unwrap());
                (principal, headers)
            }
            _ => panic!("it is opened first"),
        };
        let (whose, in_ada) = borne(&ada_link, &HeaderMap::new());
        assert_eq!(whose, ada);
        assert!(flows.over("up1", &bob).is_some(), "the other one is not ended by that");
        let (whose, in_bob) = borne(&bob_link, &in_ada);
        assert_eq!(whose, bob);
        assert!(matches!(flows.open(&ada_link, &in_bob, false), Opened::Taken));
        let begin = |id: &str, state: &str| {
            let finish: super::super::logins::Finish = Box::new(|_, _| Box::pin(async { Ok(true) }));
            let (url, state, issuer) = (String::new(), state.to_owned(), String::new());
            flows.begun(id, Ok(Begun { url, state, issuer, elsewhere: None, scopes: Vec::new(), whose: None, finish }));
        };
        begin(&of_ada, "state-of-ada");
        begin(&of_bob, "state-of-bob");
        // The state of one in the browser of the other ends neither.
        assert!(matches!(flows.brought(("up1", "state-of-bob"), &in_ada, false), Brought::Taken));
        assert!(matches!(flows.brought(("up1", "state-of-ada"), &in_bob, false), Brought::Taken));
        let (waits_ada, waits_bob) = (flows.over("up1", &ada).unwrap(), flows.over("up1", &bob).unwrap());
        let Brought::Good { id, .. } = flows.brought(("up1", "state-of-ada"), &in_ada, false) else {
            panic!("it is the right one")
        };
        assert_eq!(id, of_ada);
        flows.done(&id);
        assert!(waits_ada.has_changed().is_err(), "whoever waits for it goes on");
        assert!(waits_bob.has_changed().is_ok(), "and nobody else does");
        assert!(matches!(flows.brought(("up1", "state-of-bob"), &in_bob, false), Brought::Good { .. }));
        flows.failed(&of_bob);
        assert!(flows.lock().is_empty());
    }

    #[tokio::test]
    async fn a_page_that_leads_nowhere_any_more_ends_however_far_it_is_and_no_other_does() {
        let flows = Flows::default();
        let (up, ada, bob) = ("up1".into(), Principal::named("token:ada"), Principal::named("token:bob"));
        let (id, link) = flows.tell((&up, "here"), &ada, None).unwrap();
        let (_, of_bob) = flows.tell((&up, "here"), &bob, None).unwrap();
        let Opened::First { cookie, .. } = flows.open(&link, &HeaderMap::new(), false) else { panic!("it opens") };
        let finish: super::super::logins::Finish = Box::new(|_, _| Box::pin(async { Ok(true) }));
        let (url, state, issuer) = (String::new(), "state".to_owned(), String::new());
        let begun = Begun { url, state, issuer, elsewhere: None, scopes: Vec::new(), whose: None, finish };
        flows.begun(&id, Ok(begun));
        let mut headers = HeaderMap::new();
        headers.insert("cookie", format!("{}={cookie}", cookie::name(&id, false)).parse().unwrap());
        let Brought::Good { over, .. } = flows.brought(("up1", "state"), &headers, false) else { panic!("it is good") };
        flows.end(|_, _| true);
        assert!(!*over.borrow() && over.has_changed().is_ok());
        flows.end(|(_, place), principal| place == "here" && *principal == bob);
        assert!(*over.borrow(), "what is under way is told");
        assert!(matches!(flows.open(&link, &headers, false), Opened::Unknown));
        assert!(matches!(flows.open(&of_bob, &headers, false), Opened::First { .. }));
    }
}
