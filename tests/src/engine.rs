//! The interpreter: plays a script, whatever the transport and the revision.
//!
//! A transport hands over each frame with the revision that it is read in and an [`Outlet`] for what comes back.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::frame::Frame;
use crate::journal::{Journal, Order, What};
use crate::revision::Revision;
use crate::script::plan::Plan;
use crate::script::{Act, Rule, Script};

pub(crate) mod acts;
mod asks;
pub mod change;
mod chatter;
mod checks;
pub(crate) mod gates;
mod greeting;
mod listen;
mod lists;
pub mod outlet;
mod quotes;
mod read;
mod said;
mod tasks;
mod tools;

use asks::live::Questions;
use asks::rounds::States;
use change::Change;
use chatter::Levels;
use gates::Gates;
pub use outlet::{Out, Outlet};
use said::Said;

/// A script being played.
pub struct Engine {
    /// What is played.
    pub script: Script,
    /// Where it is told what happens.
    pub journal: Journal,
    /// Changes that belong to no call, for whoever listens.
    pub changes: broadcast::Sender<Change>,
    gates: Gates,
    rules: Mutex<Vec<(Rule, usize)>>,
    /// By session and id: ids of two sessions have nothing to do with one another.
    open: Mutex<Vec<((String, String), CancellationToken)>>,
    /// By where they were added, as [`Engine::side`] says it.
    added: Mutex<Vec<(String, String)>>,
    /// Those that only some clients are offered.
    added_for: Mutex<Vec<(String, bool, String)>>,
    /// By where they were asked for.
    subscribed: Mutex<HashSet<(String, String)>>,
    /// What each session's client has said that its roots are, asked once.
    roots: Mutex<HashMap<String, String>>,
    seen: Mutex<HashSet<String>>,
    calls: AtomicU64,
    doubled: AtomicU64,
    questions: Questions,
    states: States,
    levels: Levels,
    tasks: tasks::Tasks,
}

impl Engine {
    /// Begins to play a script.
    #[must_use]
    pub fn new(script: Script, journal: Journal) -> Arc<Engine> {
        let rules = script.rules.iter().map(|rule| (rule.clone(), 0)).collect();
        Arc::new(Engine {
            script,
            journal,
            changes: broadcast::Sender::new(256),
            gates: Gates::default(),
            rules: Mutex::new(rules),
            open: Mutex::default(),
            added: Mutex::default(),
            added_for: Mutex::default(),
            subscribed: Mutex::default(),
            roots: Mutex::default(),
            seen: Mutex::default(),
            calls: AtomicU64::new(0),
            doubled: AtomicU64::new(0),
            questions: Questions::default(),
            states: States::default(),
            levels: Levels::default(),
            tasks: tasks::Tasks::default(),
        })
    }

    /// Tells the journal that a frame came.
    pub async fn note(&self, raw: &[u8], headers: Vec<(String, String)>) {
        if self.script.journal_frames {
            self.journal.tell(What::Frame { raw: String::from_utf8_lossy(raw).into_owned(), headers }).await;
        }
    }

    /// Tells the journal that the peer broke the protocol.
    pub async fn complain(&self, text: impl Into<String>) {
        if self.script.journal_frames {
            self.journal.tell(What::Complaint(text.into())).await;
        }
    }

    /// Takes a notification; a rule may act on it.
    pub async fn notice(&self, frame: &Frame, revision: Revision, outlet: &Outlet) {
        checks::schema(self, frame, None, revision).await;
        for act in self.acts_for(frame.method.as_deref().unwrap_or(""), None) {
            if acts::run(self, &act, frame, revision, outlet).await {
                return;
            }
        }
        if frame.method.as_deref() == Some("notifications/cancelled") {
            let id = frame.param("requestId").map_or_else(String::new, |raw| raw.get().to_owned());
            let meant = (outlet.session().to_owned(), id);
            let found = lock(&self.open).iter().rev().find(|(open, _)| *open == meant).map(|(_, token)| token.clone());
            // A cancel for a call that is over is ordinary: the two race.
            if let Some(token) = found {
                token.cancel();
            }
        }
    }

    /// Takes the answer to a question of its own; `session` is where it came.
    pub async fn answered(&self, frame: &Frame, session: &str) {
        asks::live::answered(self, frame, session).await;
    }

    /// Keeps what a session declared in its `initialize`.
    pub fn declare(&self, session: &str, frame: &Frame) {
        self.questions.declare(session, frame);
    }

    /// What a session declared in its `initialize`.
    pub fn declared(&self, session: &str) -> serde_json::Value {
        self.questions.declared(session)
    }

    /// Takes a request in: from now on a cancellation finds it.
    pub fn admit(&self, frame: &Frame, outlet: &Outlet) -> CancellationToken {
        let token = CancellationToken::new();
        let key = (outlet.session().to_owned(), frame.id_text().to_owned());
        lock(&self.open).push((key, token.clone()));
        token
    }

    /// Serves one request to its end.
    pub async fn serve(&self, frame: &Frame, revision: Revision, outlet: &Outlet) {
        let token = self.admit(frame, outlet);
        self.serve_admitted(token, frame, revision, outlet).await;
    }

    /// Serves a request that was taken in to its end: by the rules, else in the ordinary way.
    pub async fn serve_admitted(&self, token: CancellationToken, frame: &Frame, revision: Revision, outlet: &Outlet) {
        checks::frame(self, frame, revision).await;
        let id = frame.id_text().to_owned();
        let key = (outlet.session().to_owned(), id.clone());
        tokio::select! {
            biased;
            () = token.cancelled() => self.cancelled(&id, "notification").await,
            () = outlet.gone() => self.cancelled(&id, "stream").await,
            () = self.act(frame, revision, outlet) => {}
        }
        let mut open = lock(&self.open);
        if let Some(at) = open.iter().rposition(|(open, _)| *open == key) {
            open.remove(at);
        }
    }

    async fn cancelled(&self, id: &str, how: &str) {
        self.journal.tell(What::Cancelled { id: id.into(), how: how.into() }).await;
    }

    async fn act(&self, frame: &Frame, revision: Revision, outlet: &Outlet) {
        for act in self.acts_for(frame.method.as_deref().unwrap_or(""), name_of(frame).as_deref()) {
            if acts::run(self, &act, frame, revision, outlet).await {
                return;
            }
        }
        let said = match asks::of(self, frame) {
            Some(asking) => asks::run(self, &asking, frame, revision, outlet).await,
            None if tasks::concerns(self, frame) => tasks::run(self, frame, revision, outlet).await,
            None => Some(self.ordinary(frame, revision, outlet).await),
        };
        if let Some(said) = said {
            outlet.send(Out::Answer(said.into_frame(frame.id_text()))).await;
        }
    }

    /// Whether any rule is about such a method; looking does not count.
    #[must_use]
    pub fn has_rule(&self, method: &str) -> bool {
        lock(&self.rules).iter().any(|(rule, _)| rule.method == method || rule.method == "*")
    }

    /// The acts of the first rule that applies to such a message; each look counts.
    pub fn acts_for(&self, method: &str, name: Option<&str>) -> Vec<Act> {
        for (rule, count) in lock(&self.rules).iter_mut().filter(|(rule, _)| rule.fits(method, name)) {
            *count += 1;
            if *count >= rule.from && *count - rule.from < rule.times {
                return rule.acts.clone();
            }
        }
        Vec::new()
    }

    /// The ordinary answer to a request.
    async fn ordinary(&self, frame: &Frame, revision: Revision, outlet: &Outlet) -> Said {
        let script = &self.script;
        match frame.method.as_deref().unwrap_or("") {
            "initialize" => greeting::initialize(script, frame),
            "server/discover" if revision.is_modern() => greeting::discover(script),
            "subscriptions/listen" if revision.is_modern() => listen::run(self, frame, outlet).await,
            "ping" if !revision.is_modern() => Said::result("{}"),
            "logging/setLevel" if !revision.is_modern() => {
                self.levels.set(outlet.session(), frame);
                Said::result("{}")
            }
            "tools/list" => lists::tools(self, frame, revision, outlet.session()),
            "tools/call" => tools::call(self, frame, revision, outlet).await,
            "resources/list" if script.offers_all => lists::resources(script, frame, revision),
            "resources/templates/list" if script.offers_all => lists::templates(script, frame, revision),
            "resources/read" if script.offers_all => read::resource(script, frame, revision),
            "resources/subscribe" if script.offers_all && !revision.is_modern() => {
                lock(&self.subscribed)
                    .insert((self.side(outlet.session()), frame.param_text("uri").unwrap_or_default()));
                Said::result("{}")
            }
            "resources/unsubscribe" if script.offers_all && !revision.is_modern() => {
                lock(&self.subscribed)
                    .remove(&(self.side(outlet.session()), frame.param_text("uri").unwrap_or_default()));
                Said::result("{}")
            }
            "prompts/list" if script.offers_all => lists::prompts(script, frame, revision),
            "prompts/get" if script.offers_all => read::prompt(script, frame, revision),
            "completion/complete" if script.offers_all => read::completion(script, frame, revision),
            other => Said::error(-32601, &format!("Method not found: {other}"), None),
        }
    }

    /// Does what a test orders; what only a transport can do is left to it.
    pub async fn order(&self, order: Order) {
        match order {
            Order::Release(gate) => self.gates.release(&gate, 1),
            Order::Open(gate) => self.gates.release(&gate, gates::EVER),
            Order::AddTool(name) => self.add_tool(name, ""),
            Order::AddToolFor(capability, must, name) => self.add_tool_for((capability, must, name)),
            Order::Notify(method, params) => self.announce(Change::new(&method, &params)),
            Order::NotifyIn(session, method, params) => {
                self.announce(Change { session: Some(session), ..Change::new(&method, &params) });
            }
            Order::Ask(plan, who) => {
                for ask in Plan::parse(&plan).expect("a plan").rounds.concat() {
                    asks::live::outside(self, ask.kind, &who).await;
                }
            }
            Order::Rules(rules) => *lock(&self.rules) = rules.into_iter().map(|rule| (rule, 0)).collect(),
            Order::Report => {
                let (calls, doubled) = (self.calls.load(Ordering::Relaxed), self.doubled.load(Ordering::Relaxed));
                self.journal.tell(What::Report { calls, doubled }).await;
            }
            Order::Write(_) | Order::ForgetSessions | Order::CountAnew(_) | Order::Exit(_) | Order::Begin => {}
        }
    }

    /// Whether a session with a legacy peer is told of a change: of an update only where it subscribed.
    #[must_use]
    pub fn tells(&self, change: &Change, session: &str) -> bool {
        let is_for = change.session.as_deref().is_none_or(|only| only == session);
        is_for && change.updated_uri().is_none_or(|uri| lock(&self.subscribed).contains(&(self.side(session), uri)))
    }

    /// Where what a session does holds: in it alone, or everywhere.
    fn side(&self, session: &str) -> String {
        if self.script.http.apart { session.to_owned() } else { String::new() }
    }

    /// The tools that were added where a session sees them.
    fn added(&self, session: &str) -> Vec<String> {
        let side = self.side(session);
        lock(&self.added).iter().filter(|(at, _)| at.is_empty() || *at == side).map(|(_, name)| name.clone()).collect()
    }

    /// Adds an echoing tool, and says so.
    fn add_tool(&self, name: String, session: &str) {
        let side = self.side(session);
        let only = (!side.is_empty()).then(|| side.clone());
        lock(&self.added).push((side, name));
        self.announce(Change { session: only, ..Change::new("notifications/tools/list_changed", "{}") });
    }

    fn add_tool_for(&self, offer: (String, bool, String)) {
        let told = self.questions.those(|declared| declared[&offer.0].is_object() == offer.1);
        lock(&self.added_for).push(offer);
        for session in told {
            self.announce(Change { session: Some(session), ..Change::new("notifications/tools/list_changed", "{}") });
        }
    }

    /// The tools that are listed for those who declare this.
    fn tools_for(&self, declared: &serde_json::Value) -> Vec<String> {
        let added = lock(&self.added_for);
        let all = self.script.tools_for.iter().chain(added.iter());
        let fits = all.filter(|(capability, must, _)| declared[capability].is_object() == *must);
        fits.map(|(_, _, name)| name.clone()).collect()
    }

    fn announce(&self, change: Change) {
        // Nobody may be listening.
        let _ = self.changes.send(change);
    }

    /// Counts a call that runs, and tells the journal before anything else is done about it.
    async fn executed(&self, nonce: String) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if !lock(&self.seen).insert(nonce.clone()) {
            self.doubled.fetch_add(1, Ordering::Relaxed);
        }
        if self.script.journal_frames || self.script.journal_calls {
            self.journal.tell(What::Executed { nonce }).await;
        }
    }
}

fn name_of(frame: &Frame) -> Option<String> {
    frame.param_text("name").or_else(|| frame.param_text("uri"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
