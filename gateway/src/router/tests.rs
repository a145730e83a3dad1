//! The router with scripted upstreams: what clients see and what upstreams get.

mod calls;
mod declared;
mod discovery;
mod given_tasks;
mod listening;
mod lists;
mod members;
mod pins;
mod rights;
mod tasks;
mod uris;
mod views;

use super::config::Strategy;
use super::*;
use crate::call::LogLevel;
use crate::call::caller::rights::Role;
use crate::call::caller::{Caller, ClientSession, Grants, Principal};
use crate::call::reply::{Failure, Outcome};
use crate::health::row::State;
use crate::health::{Cause, CauseCode};
use crate::memory::Refusals;
use crate::memory::account::Kind as MemoryKind;
use crate::memory::budget::Budget;
use crate::protocol::capabilities::Supports;
use crate::protocol::capabilities::beyond::Declared;
use crate::protocol::json;
use crate::protocol::revision::Revision;
use crate::protocol::value::{Edit, Glob, Key};
use crate::upstream::SessionLevels;
use crate::upstream::inventory::{Inventory, Item, Variant};
use crate::upstream::notice::Audience;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// What an upstream says to a call; `None` leaves it at the echo.
type Answer = dyn Fn(&Call) -> Option<Reply> + Send + Sync;

/// What an upstream offers.
type Offers = watch::Sender<Option<Arc<Inventory>>>;

/// An upstream that answers `{"own": <the parameters it got>}` and remembers what it was told.
struct Scripted {
    name: Arc<str>,
    prefix: String,
    offers: Offers,
    state: Mutex<State>,
    retry: Mutex<Option<Duration>>,
    cause: Mutex<Option<Cause>>,
    /// Grows when it stands elsewhere.
    moves: watch::Sender<u64>,
    /// Not all of its lists could be read.
    is_partial: AtomicBool,
    heard: Mutex<Vec<String>>,
    answer: Box<Answer>,
    /// What its instances offer, by session; `None` where there are none.
    own: Option<Mutex<HashMap<Arc<str>, Offers>>>,
    /// Why a principal has to log in.
    to_log_in: Mutex<Option<Cause>>,
    /// What it offers to each principal, by its name; `None` where all have one login.
    personal: Option<Mutex<HashMap<String, Offers>>>,
    /// What it offers to those who declare other capabilities, by what they declare; `None` where all see the same.
    variants: Option<Mutex<HashMap<Declared, watch::Sender<Variant>>>>,
    /// What was last remarked on it.
    remark: Mutex<Option<String>>,
}

impl Scripted {
    fn new(name: &str, prefix: &str) -> Arc<Self> {
        Self::answering(name, prefix, |_| None)
    }

    fn answering(
        name: &str,
        prefix: &str,
        answer: impl Fn(&Call) -> Option<Reply> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self::plain(name, prefix, answer))
    }

    /// One of which each session has an instance to itself.
    fn per_session(name: &str, prefix: &str) -> Arc<Self> {
        Arc::new(Self { own: Some(Mutex::default()), ..Self::plain(name, prefix, |_| None) })
    }

    /// One that each principal has a login of its own for.
    fn per_principal(name: &str, prefix: &str) -> Arc<Self> {
        let plain = Self::plain(name, prefix, |_| None);
        plain.offer(Inventory::empty(Revision::V2025_11_25));
        Arc::new(Self { personal: Some(Mutex::default()), ..plain })
    }

    fn plain(name: &str, prefix: &str, answer: impl Fn(&Call) -> Option<Reply> + Send + Sync + 'static) -> Self {
        Self {
            name: name.into(),
            prefix: prefix.into(),
            offers: watch::Sender::new(None),
            state: Mutex::new(State::Starting),
            retry: Mutex::default(),
            cause: Mutex::default(),
            moves: watch::Sender::new(0),
            is_partial: AtomicBool::new(false),
            heard: Mutex::default(),
            answer: Box::new(answer),
            own: None,
            to_log_in: Mutex::default(),
            personal: None,
            variants: None,
            remark: Mutex::default(),
        }
    }

    fn stands(&self, state: State) {
        *self.state.lock().unwrap() = state;
        self.moves.send_modify(|moves| *moves += 1);
    }

    fn offer(&self, inventory: Inventory) {
        *self.state.lock().unwrap() = State::Ready;
        self.offers.send_replace(Some(Arc::new(inventory)));
    }

    /// The instance of a session offers this; it is made, where there is none.
    fn offer_to(&self, tenant: &Arc<ClientSession>, inventory: Inventory) {
        let mut own = self.own.as_ref().unwrap().lock().unwrap();
        let offers = own.entry(tenant.id().clone()).or_insert_with(|| {
            tenant.got_instance();
            watch::Sender::new(self.offers.borrow().clone())
        });
        offers.send_replace(Some(Arc::new(inventory)));
    }

    /// This is offered to a principal.
    fn offer_alone_to(&self, principal: &str, inventory: Inventory) {
        let mut personal = self.personal.as_ref().unwrap().lock().unwrap();
        personal.entry(principal.to_owned()).or_default().send_replace(Some(Arc::new(inventory)));
    }

    fn heard(&self) -> Vec<String> {
        std::mem::take(&mut self.heard.lock().unwrap())
    }
}

impl Handle for Scripted {
    fn handle(&self, call: Call) -> Reply {
        let params = match &call.target_name {
            Some(name) => call.params.with(&[(Key::Name, Edit::Set(name))]),
            None => call.params.raw().clone(),
        };
        let text = String::from_utf8(params.to_vec()).unwrap();
        self.heard.lock().unwrap().push(format!("{} {text}", call.method.as_str()));
        let echo = || Object::parse(format!("{{\"own\":{text}}}").into()).unwrap();
        let reply = (self.answer)(&call).unwrap_or_else(|| Reply::complete(Revision::V2025_11_25, echo()));
        reply.owned_by(&self.name)
    }
}

impl Owner for Scripted {
    fn name(&self) -> &Arc<str> {
        &self.name
    }
    fn title(&self) -> Option<&str> {
        None
    }
    fn prefix(&self) -> &str {
        &self.prefix
    }
    fn withdraw(&self, cancel: &Call) {
        let text = String::from_utf8(cancel.params.raw().to_vec()).unwrap();
        self.heard.lock().unwrap().push(format!("{} {text}", cancel.method.as_str()));
    }
    fn inventory(&self) -> watch::Receiver<Option<Arc<Inventory>>> {
        self.offers.subscribe()
    }
    fn state(&self) -> State {
        *self.state.lock().unwrap()
    }
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.moves.subscribe())
    }
    fn is_whole(&self) -> bool {
        !self.is_partial.load(Ordering::Relaxed)
    }
    fn cause(&self) -> Option<Cause> {
        let partial = || "`tools/list` could not be read".into();
        self.cause.lock().unwrap().clone().or_else(|| self.is_partial.load(Ordering::Relaxed).then(partial))
    }

    fn retry_in(&self) -> Option<Duration> {
        *self.retry.lock().unwrap()
    }
    fn remark(&self, _: &'static str, remark: Option<String>) {
        *self.remark.lock().unwrap() = remark;
    }
    fn refresh(&self, _: &Call) {}
    fn is_per_session(&self) -> bool {
        self.own.is_some()
    }
    fn inventory_of(&self, session: &Arc<ClientSession>) -> Option<watch::Receiver<Option<Arc<Inventory>>>> {
        Some(self.own.as_ref()?.lock().unwrap().get(session.id())?.subscribe())
    }
    fn cause_for(&self, _: &Principal) -> Option<Cause> {
        self.to_log_in.lock().unwrap().clone()
    }
    fn is_personal(&self) -> bool {
        self.personal.is_some()
    }
    fn offered_to(&self, principal: &Principal, _: Era) -> Option<watch::Receiver<Option<Arc<Inventory>>>> {
        let mut personal = self.personal.as_ref()?.lock().unwrap();
        Some(personal.entry(principal.name().to_owned()).or_default().subscribe())
    }
    fn may_vary(&self) -> bool {
        self.variants.is_some()
    }
    fn variant(&self, _: Era, set: &Declared) -> Option<watch::Receiver<Variant>> {
        let mut all = self.variants.as_ref()?.lock().unwrap();
        Some(all.entry(set.clone()).or_insert_with(|| watch::Sender::new(Variant::Coming)).subscribe())
    }
    fn want_levels(&self, levels: &Arc<SessionLevels>) {
        let level = levels.of(&Audience::Everyone, &self.name);
        self.heard.lock().unwrap().push(format!("level {level:?}"));
    }
}

fn item(kind: &str, key: &str) -> Item {
    let definition = format!("{{\"{kind}\":{},\"x\":1e400}}", json::quote(key));
    Item::new(key.into(), Object::parse(definition.into()).unwrap())
}

fn inventory(tools: &[&str]) -> Inventory {
    Inventory {
        revision: Revision::V2025_11_25,
        tools: tools.iter().map(|name| item("name", name)).collect(),
        resources: Default::default(),
        templates: Default::default(),
        prompts: Default::default(),
        capabilities: Object::empty(),
        instructions: None,
        supports: Supports { tools: true, ..Supports::default() },
        fresh: Arc::default(),
        announced: Default::default(),
    }
}

/// A router over scripted upstreams, and the means to ask it.
struct Stage {
    router: Router,
    listeners: Listeners,
    #[allow(dead_code, reason = "its drop would end nothing, but it belongs to the stage")]
    tasks: Tasks,
}

impl Stage {
    fn new(strategy: Strategy, upstreams: &[&Arc<Scripted>]) -> Self {
        Self::paged(strategy, 1_000, upstreams)
    }

    fn paged(strategy: Strategy, page_size: usize, upstreams: &[&Arc<Scripted>]) -> Self {
        Self::of(Listeners::default(), strategy, page_size, upstreams)
    }

    fn within(budget: &Budget, strategy: Strategy, upstreams: &[&Arc<Scripted>]) -> Self {
        Self::of(Listeners::new(budget.clone(), Refusals::default()), strategy, 1_000, upstreams)
    }

    fn of(listeners: Listeners, strategy: Strategy, page_size: usize, upstreams: &[&Arc<Scripted>]) -> Self {
        let naming = Naming { strategy, ..Naming::default() };
        let terms = Terms {
            naming,
            page_size,
            first_list_wait: Duration::from_secs(2),
            instructions: String::new(),
            unknown: config::Unknown::Pass,
            pins: config::Pins::default(),
            secret: Secret::found_by(|| vec![vec![7; 32]]),
        };
        let tasks = Tasks::new();
        let owners = upstreams.iter().map(|upstream| (*upstream).clone() as Arc<dyn Owner>).collect();
        Self { router: Router::start(owners, terms, listeners.clone(), &tasks), listeners, tasks }
    }

    fn ask(&self, method: Method, params: &str) -> Reply {
        self.router.handle(call(method, params))
    }
}

/// The rights of one role: these tools of all upstreams.
fn tools_alone(names: &[&str]) -> Grants {
    let tools = Some(names.iter().map(|name| Glob::new(name)).collect());
    let (resources, prompts) = (Some(Vec::new()), Some(Vec::new()));
    granted(Role { name: "r".into(), upstreams: vec![Glob::new("*")], tools, read_only: false, resources, prompts })
}

fn granted(role: Role) -> Grants {
    Grants::of(Some(Arc::new(Rights::of([Arc::new(role)]))))
}

fn call(method: Method, params: &str) -> Call {
    Call {
        method,
        params: Object::parse(Bytes::copy_from_slice(params.as_bytes())).unwrap(),
        meta: Bytes::new(),
        caller: Arc::new(Caller {
            principal: Principal::anonymous(),
            address: None,
            grants: Grants::all(),
            revision: Revision::V2025_06_18,
            capabilities: Bytes::from_static(b"{}"),
            tenant: None,
            can: crate::call::caller::Can::default(),
        }),
        progress: false,
        log_level: None,
        is_notification: false,
        param_headers: None,
        target_name: None,
        public: None,
        bound_to: None,
        trace: None,
    }
}

/// The result's text, or what went wrong.
async fn told(reply: Reply) -> String {
    match reply.outcome().await.1 {
        Outcome::Complete(result) => String::from_utf8(result.raw().to_vec()).unwrap(),
        Outcome::Error(Failure::Refused(refusal)) => format!("{:?}: {refusal}", refusal.reason),
        other => panic!("{other:?}"),
    }
}

/// Why it was refused.
async fn refusal(reply: Reply) -> crate::call::refusal::Refusal {
    match reply.outcome().await.1 {
        Outcome::Error(Failure::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

/// The names in a list result.
async fn names(reply: Reply) -> Vec<String> {
    let result = told(reply).await;
    let tools = json::get(result.as_bytes(), "tools").unwrap_or_else(|| panic!("{result}"));
    let name = |place: std::ops::Range<usize>| json::unquote(json::get(&tools[place], "name").unwrap()).unwrap().into();
    json::elements(tools).unwrap().into_iter().map(name).collect()
}

/// Lets every task run until all wait.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}
