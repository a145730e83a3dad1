//! How an instance takes a call: judged, then sent, or waiting for its turn, or refused.

use super::gate::{Admission, Retired, Sending};
use super::link::{Exchange, Lost};
use super::listening::ListenSource;
use super::notice::Notice;
use super::peer::Peer;
use super::places::Place;
use super::source::CallSource;
use super::standing::Standing;
use super::task_listening::TaskListening;
use super::tasks::Driven;
use super::turn::Sent;
use super::words;
use crate::call::{Call, ListenFilter, Reason, Refusal, Reply};
use crate::protocol::object::Key;
use crate::protocol::{Method, Object};
use http::{HeaderName, HeaderValue};
use std::sync::Arc;

impl Standing {
    /// Takes a call that wants an answer. Nothing waits here.
    pub(crate) fn take(self: &Arc<Self>, call: Call) -> Reply {
        // Before it is looked at who is there: who may rest sees the call.
        let held = if call.method == Method::Listen { None } else { self.need.hold(&call) };
        let reply = self.admitted(call);
        match held {
            Some(held) => reply.attach(Box::new(held)),
            None => reply,
        }
    }

    fn admitted(self: &Arc<Self>, call: Call) -> Reply {
        let revision = call.revision();
        match self.judge(&call) {
            Some(refusal) => Reply::refuse(revision, refusal),
            None if call.method == Method::Listen => self.listen(call),
            None if self.must_drive(&call) => Reply::live(Driven::start(self, &call)),
            None => match self.admit(&call) {
                Ok(Sending::Sent(sent)) => Reply::live(CallSource::sent(self, call, sent)),
                Ok(Sending::Waiting(wait)) => Reply::live(CallSource::waiting(self, call, wait)),
                Err(refusal) => Reply::refuse(revision, refusal),
            },
        }
    }

    /// What may not be called answers as what is not there.
    fn judge(&self, call: &Call) -> Option<Refusal> {
        if call.method != Method::ToolsCall || self.config.tools.is_open() {
            return None;
        }
        let name = call.params.text(Key::Name)?;
        (!self.config.tools.admits(&name)).then(|| {
            let name = words::name(call).unwrap_or(name);
            Refusal::new(Reason::InvalidParams, format!("Unknown tool: {name}"))
        })
    }

    fn listen(self: &Arc<Self>, call: Call) -> Reply {
        match ListenFilter::parse(&call.params) {
            Some(filter) if !filter.tasks.is_empty() => Reply::live(TaskListening::new(self, call, filter.tasks)),
            Some(filter) => Reply::live(ListenSource::new(self, filter, call.revision())),
            None => Reply::refuse(
                call.revision(),
                Refusal::new(Reason::InvalidParams, "`notifications` must say what to listen for"),
            ),
        }
    }

    /// How a task stands that somebody may have been given.
    pub(crate) fn task_stands(&self, params: Object) {
        let (upstream, whose) = (self.name.clone(), self.holding.audience());
        (self.notices)(Notice::Task { upstream, whose, params });
    }

    /// A task goes on: whoever drives it hears, else whoever was given it.
    pub(crate) fn task_goes_on(&self, task: &str, params: Object) {
        if !self.task_progress.told(task, &params) {
            let (upstream, whose) = (self.name.clone(), self.holding.audience());
            (self.notices)(Notice::TaskProgress { upstream, whose, task: task.into(), params });
        }
    }

    /// Tells a notification to who is there now.
    pub(crate) fn tell(&self, call: &Call) {
        // A stateless upstream asks for roots each time anew.
        let is_foreign = |peer: &Arc<Peer>| peer.revision().is_modern() && call.method == Method::RootsChanged;
        let Some(peer) = self.gate.peer().filter(|peer| !is_foreign(peer)) else { return };
        let Err(lost) = peer.tell(call) else { return };
        let (method, cause) = (call.method.label(), &**lost.text());
        tracing::debug!(upstream = &*self.name, method, cause, "a notification was not sent");
    }

    /// Sends a call, or has it wait, or refuses it; nothing waits here.
    pub(crate) fn admit(self: &Arc<Self>, call: &Call) -> Result<Sending, Refusal> {
        // A peer that turns out to be gone is given up, and the call waits for the next one: nothing of it was sent.
        for _ in 0..2 {
            let admission = match self.gate.admit(call, None) {
                Admission::Now(primary, place) => match self.session_of(&primary, call) {
                    Some(session) => match session.gate.admit(call, place) {
                        // It has just been given up: there is another one by now, or the primary is for all.
                        Admission::Shut(_) => continue,
                        admission => admission,
                    },
                    None => Admission::Now(primary, place),
                },
                admission => admission,
            };
            match admission {
                Admission::Now(peer, place) => match self.send(&peer, call, place) {
                    Ok(exchange) => return Ok(Sending::Sent(Sent { peer, exchange })),
                    Err(lost @ Lost::Unsent(_)) => self.noticed(&peer, &lost),
                    Err(lost) => return Err(words::lost(&self.name, call, &lost)),
                },
                Admission::Wait(wait) => {
                    self.need.wake();
                    return Ok(Sending::Waiting(wait));
                }
                Admission::Full(why) => {
                    // Where none may wait, the next one finds it there.
                    self.need.wake();
                    return Err(words::lost(&self.name, call, &Lost::Busy(why)));
                }
                Admission::Shut(cause) => return Err(self.unavailable(call, &cause)),
            }
        }
        Err(self.unavailable(call, &self.cause()))
    }

    /// What a loss says of the peer itself.
    pub(crate) fn noticed(&self, peer: &Arc<Peer>, lost: &Lost) {
        let why = match lost {
            Lost::Session(why) => Retired::Session(why.clone()),
            Lost::Unsent(why) => Retired::Unreachable(why.clone()),
            // It leads back to this gateway: that is found out when it is met again.
            lost if lost.leads_back() => Retired::Unreachable(lost.text().clone()),
            _ => return,
        };
        self.sessions.retire(peer, &why);
        self.gate.retire(peer, why);
    }

    /// Sends a call to a peer; it has its place until its end.
    pub(crate) fn send(&self, peer: &Arc<Peer>, call: &Call, place: Option<Place>) -> Result<Exchange, Lost> {
        let exchange = peer.send(call, self.headers_of(call))?;
        if let Some(place) = place {
            exchange.hold(place);
        }
        Ok(exchange)
    }

    /// The `Mcp-Param-*` headers of a call, which only stateless HTTP upstreams look at.
    fn headers_of(&self, call: &Call) -> Vec<(HeaderName, HeaderValue)> {
        let headers = self.headers.load();
        if headers.is_empty() || call.method != Method::ToolsCall {
            return Vec::new();
        }
        let made = call
            .params
            .text(Key::Name)
            .and_then(|name| headers.get(&*name))
            .map(|known| known.make(call.params.get(Key::Arguments)));
        made.unwrap_or_default()
    }
}
