//! What is open between a client and a gateway, and what the next gateway is told: bytes in, bytes out. A client keeps its session,
//! whichever gateway stands behind it.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use smallvec::{SmallVec, smallvec};

use super::ids::{array, with_id};
use crate::call::refusal::{Reason, Refusal};
use crate::protocol::frame::message::{BATCH_MAX, Body, Frame, Id, error, notification};
use crate::protocol::frame::{Method, message};
use crate::protocol::json;
use crate::protocol::revision::Revision;
use crate::protocol::value::{Key, Object};

/// So many requests may be open; the client is read further when there is room again.
const OPEN_MAX: usize = 4096;
/// So many questions; beyond that the answer to the oldest is not heard any more.
const QUESTIONS_MAX: usize = 4096;
/// So many subscriptions are taken over to the next gateway.
const SUBSCRIPTIONS_MAX: usize = 4096;
/// What is longer is not kept for the next gateway; the gateway takes nothing of this length.
const KEPT_BYTES_MAX: usize = 64 * 1024;
/// What ids of the bridge's own requests begin with.
const OWN: &str = "\"trunkline-bridge-";

/// Frames, nearly always one.
pub(super) type Frames = SmallVec<[Bytes; 1]>;

/// What an open request is, for when it is not answered.
#[derive(Debug, Clone, PartialEq)]
enum Asked {
    /// It is sent to the next gateway.
    Initialize(Bytes),
    /// It has effects: it may have run.
    Effect,
    /// It can be asked again.
    Look,
    /// Once answered, holds for the next gateway, too.
    Level(Bytes),
    Subscribe(Bytes, Bytes),
    Unsubscribe(Bytes),
}

/// The handshake that was made.
struct Session {
    params: Bytes,
    is_initialized: bool,
    has_batches: bool,
}

/// What is open, and what holds.
#[derive(Default)]
pub(super) struct Ledger {
    open: HashMap<Id, Vec<Asked>>,
    count: usize,
    /// The client's number of a question, and the gateway's.
    questions: BTreeMap<u64, Id>,
    last_question: u64,
    session: Option<Session>,
    level: Option<Bytes>,
    subscribed: BTreeMap<Bytes, Bytes>,
    last_own: u64,
}

impl Ledger {
    /// Whether another request can be taken.
    pub(super) fn has_room(&self) -> bool {
        self.count < OPEN_MAX
    }

    /// A line of the client: what goes to the gateway.
    pub(super) fn up(&mut self, line: Bytes) -> Frames {
        if Frame::is_batch(&line) {
            return self.batch_up(line);
        }
        match Frame::parse(&line) {
            Ok(Frame::Request { id, method, params }) => {
                self.open(&id, asked(&method, &params));
                smallvec![line]
            }
            Ok(Frame::Notification { method, params }) => {
                self.told(&method, &params);
                smallvec![line]
            }
            Ok(Frame::Response { id: Some(id), .. }) => self.answer_up(&line, &id).into_iter().collect(),
            // What is no frame is answered by the gateway.
            Ok(Frame::Response { id: None, .. }) | Err(_) => smallvec![line],
        }
    }

    /// An answer of the client; one to a question of a gateway that is gone goes nowhere.
    fn answer_up(&mut self, line: &Bytes, id: &Id) -> Option<Bytes> {
        let asked = self.questions.remove(&id.number()?)?;
        Some(with_id(line, asked.raw()))
    }

    fn told(&mut self, method: &Method, params: &Object) {
        match method {
            Method::Initialized => {
                if let Some(session) = &mut self.session {
                    session.is_initialized = true;
                }
            }
            // What is cancelled is not answered.
            Method::Cancelled => {
                if let Some(id) = params.share(Key::RequestId).and_then(Id::from_raw) {
                    self.close(&id);
                }
            }
            _ => {}
        }
    }

    fn batch_up(&mut self, line: Bytes) -> Frames {
        let has_batches = self.session.as_ref().is_some_and(|session| session.has_batches);
        let (true, Ok(parts)) = (has_batches, Frame::split(&line, BATCH_MAX)) else { return smallvec![line] };
        let (mut answers, mut others) = (Frames::new(), Vec::new());
        for part in parts {
            match Frame::parse(&part) {
                Ok(Frame::Response { .. }) => answers.extend(self.up(part)),
                _ => others.extend(self.up(part)),
            }
        }
        if !others.is_empty() {
            answers.push(array(&others));
        }
        answers
    }

    /// A line of the client while there is no gateway: what it is answered.
    pub(super) fn refuse(&mut self, line: &Bytes, why: &str) -> Frames {
        let parts = match Frame::is_batch(line) {
            true => Frame::split(line, BATCH_MAX).unwrap_or_default(),
            false => vec![line.clone()],
        };
        let mut answers = Frames::new();
        for part in parts {
            match Frame::parse(&part) {
                Ok(Frame::Request { id, .. }) => answers.push(self.refusal(&id, Reason::Unavailable, why)),
                Ok(Frame::Notification { method, params }) => self.told(&method, &params),
                Ok(Frame::Response { .. }) | Err(_) => {}
            }
        }
        answers
    }

    /// A line of the gateway: what goes to the client.
    pub(super) fn down(&mut self, line: Bytes) -> Frames {
        if Frame::is_batch(&line) {
            for part in Frame::split(&line, BATCH_MAX).unwrap_or_default() {
                if let Ok(Frame::Response { id: Some(id), body }) = Frame::parse(&part) {
                    self.answered(&id, &body);
                }
            }
            return smallvec![line];
        }
        match Frame::parse(&line) {
            Ok(Frame::Response { id: Some(id), body }) if self.is_own(&id) => self.own(&body),
            Ok(Frame::Response { id: Some(id), body }) => {
                self.answered(&id, &body);
                smallvec![line]
            }
            Ok(Frame::Request { id, .. }) => smallvec![self.question(&line, &id)],
            Ok(Frame::Notification { method: Method::Cancelled, params }) => smallvec![self.withdrawn(line, params)],
            _ => smallvec![line],
        }
    }

    /// Whether the bridge has asked this. A client may choose ids of the same form.
    fn is_own(&self, id: &Id) -> bool {
        id.raw().starts_with(OWN.as_bytes()) && !self.open.contains_key(id)
    }

    fn question(&mut self, line: &Bytes, id: &Id) -> Bytes {
        if self.questions.len() >= QUESTIONS_MAX {
            self.questions.pop_first();
        }
        self.last_question += 1;
        self.questions.insert(self.last_question, id.detached());
        with_id(line, self.last_question.to_string().as_bytes())
    }

    /// A question that is withdrawn has another number here; a call that is, its own.
    fn withdrawn(&mut self, line: Bytes, params: Object) -> Bytes {
        let meant = params.share(Key::RequestId).and_then(Id::from_raw);
        let question = meant.and_then(|meant| self.questions.iter().find(|(_, id)| **id == meant).map(|(at, _)| *at));
        let Some(question) = question else { return line };
        self.questions.remove(&question);
        let params = params.set(Key::RequestId, question.to_string().as_bytes());
        notification(&Method::Cancelled, params.raw())
    }

    /// The gateway has sent an answer that there is no memory for.
    pub(super) fn untaken(&mut self, head: &[u8], why: &str) -> Frames {
        let id = head.strip_prefix(b"{\"jsonrpc\":\"2.0\",\"id\":").and_then(|rest| {
            let end = json::value(rest, 0).ok()?;
            Id::from_raw(Bytes::copy_from_slice(&rest[..end]))
        });
        let Some(id) = id else { return Frames::new() };
        self.close(&id);
        smallvec![self.refusal(&id, Reason::BadAnswer, why)]
    }

    fn open(&mut self, id: &Id, asked: Asked) {
        self.open.entry(id.detached()).or_default().push(asked);
        self.count += 1;
    }

    fn close(&mut self, id: &Id) -> Option<Asked> {
        let asked = self.open.get_mut(id)?.pop();
        if self.open.get(id).is_some_and(Vec::is_empty) {
            self.open.remove(id);
        }
        self.count -= usize::from(asked.is_some());
        asked
    }

    /// What the answer to a request says holds from now on.
    fn answered(&mut self, id: &Id, body: &Body) {
        let (Some(asked), Body::Result(result)) = (self.close(id), body) else { return };
        match asked {
            Asked::Initialize(params) => {
                let has_batches = result.find("protocolVersion") == Some(b"\"2025-03-26\"");
                self.session = Some(Session { params, is_initialized: false, has_batches });
            }
            Asked::Level(params) => self.level = Some(params),
            Asked::Subscribe(uri, params) if self.subscribed.len() < SUBSCRIPTIONS_MAX => {
                self.subscribed.insert(uri, params);
            }
            Asked::Unsubscribe(uri) => _ = self.subscribed.remove(&uri),
            Asked::Effect | Asked::Look | Asked::Subscribe(..) => {}
        }
    }

    /// The gateway is gone: what the client is told. What is open is not, but for a handshake, which the next gateway answers.
    pub(super) fn lost(&mut self) -> Frames {
        let mut told = Frames::new();
        let questions = std::mem::take(&mut self.questions);
        for number in questions.keys() {
            let params = format!("{{\"requestId\":{number},\"reason\":\"the gateway that asked has ended\"}}");
            told.push(notification(&Method::Cancelled, params.as_bytes()));
        }
        let (again, over): (HashMap<_, _>, _) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|(_, asked)| matches!(asked[..], [Asked::Initialize(_)]));
        (self.count, self.open) = (again.len(), again);
        told.extend(self.unanswered(&over, "the shared gateway ended before it answered"));
        told
    }

    /// The client leaves: what it is told of what it has asked for and is not answered.
    pub(super) fn parted(&mut self) -> Frames {
        self.count = 0;
        let over = std::mem::take(&mut self.open);
        self.unanswered(&over, "stdin was closed, and the shared gateway did not answer in time")
    }

    fn unanswered(&self, over: &HashMap<Id, Vec<Asked>>, why: &str) -> Frames {
        let all = over.iter().flat_map(|(id, all)| all.iter().map(move |asked| (id, asked)));
        all.map(|(id, asked)| match asked {
            Asked::Effect => self.refusal(id, Reason::OutcomeUnknown, &format!("{why}: {UNKNOWN}")),
            _ => self.refusal(id, Reason::Unavailable, &format!("{why}; try again")),
        })
        .collect()
    }

    /// What a gateway is told first: the handshake of the client, and what holds since.
    pub(super) fn greeting(&mut self) -> Frames {
        let mut told: Frames = self
            .open
            .iter()
            .filter_map(|(id, asked)| match &asked[..] {
                [Asked::Initialize(params)] => Some(request(id.raw(), &Method::Initialize, params)),
                _ => None,
            })
            .collect();
        let Some(session) = &self.session else { return told };
        let mut own = |method: &Method, params: &[u8]| {
            self.last_own += 1;
            request(format!("{OWN}{}\"", self.last_own).as_bytes(), method, params)
        };
        told.push(own(&Method::Initialize, &session.params));
        if session.is_initialized {
            told.push(notification(&Method::Initialized, b"{}"));
            told.extend(self.level.as_ref().map(|params| own(&Method::SetLevel, params)));
            told.extend(self.subscribed.values().map(|params| own(&Method::ResourcesSubscribe, params)));
        }
        told
    }

    /// An answer to the bridge itself. That to the handshake is the first the client could not see: whatever it was to be told of
    /// meanwhile may have changed.
    fn own(&mut self, body: &Body) -> Frames {
        let Body::Result(result) = body else { return Frames::new() };
        let Some(capabilities) = result.find("capabilities") else { return Frames::new() };
        if !self.session.as_ref().is_some_and(|session| session.is_initialized) {
            return Frames::new();
        }
        let tells =
            |key: &str| json::get(capabilities, key).and_then(|of| json::get(of, "listChanged")) == Some(b"true");
        let lists = [
            ("tools", Method::ToolsChanged),
            ("prompts", Method::PromptsChanged),
            ("resources", Method::ResourcesChanged),
        ];
        let lists = lists.iter().filter(|(key, _)| tells(key)).map(|(_, method)| notification(method, b"{}"));
        let updated = |uri: &Bytes| {
            let params = [b"{\"uri\":".as_slice(), uri, b"}"].concat();
            notification(&Method::ResourceUpdated, &params)
        };
        lists.chain(self.subscribed.keys().map(updated)).collect()
    }

    fn refusal(&self, id: &Id, reason: Reason, why: &str) -> Bytes {
        let revision = if self.session.is_some() { Revision::NEWEST_LEGACY } else { Revision::NEWEST_MODERN };
        error(Some(&id.raw()[..]), Refusal::new(reason, why).to_rpc(revision).raw())
    }
}

/// For a call that may have run.
const UNKNOWN: &str = "the call may or may not have run; check before retrying";

/// What a request is.
fn asked(method: &Method, params: &Object) -> Asked {
    let kept = || (params.raw().len() <= KEPT_BYTES_MAX).then(|| Bytes::copy_from_slice(params.raw()));
    let uri = || params.get(Key::Uri).map(Bytes::copy_from_slice);
    let special = match method {
        Method::Initialize => kept().map(Asked::Initialize),
        Method::SetLevel => kept().map(Asked::Level),
        Method::ResourcesSubscribe => uri().zip(kept()).map(|(uri, params)| Asked::Subscribe(uri, params)),
        Method::ResourcesUnsubscribe => uri().map(Asked::Unsubscribe),
        Method::ToolsCall | Method::TasksUpdate | Method::Other(_) => Some(Asked::Effect),
        _ => None,
    };
    special.unwrap_or(Asked::Look)
}

fn request(id: &[u8], method: &Method, params: &[u8]) -> Bytes {
    let mut frame = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
    frame.extend_from_slice(id);
    frame.extend_from_slice(b",\"method\":");
    frame.extend_from_slice(json::quote(method.as_str()).as_bytes());
    frame.extend_from_slice(b",\"params\":");
    frame.extend_from_slice(params);
    frame.push(b'}');
    message::one_line(frame).into()
}

#[cfg(test)]
mod tests;
