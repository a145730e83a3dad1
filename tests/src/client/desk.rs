//! The desk: who answers what a client is asked, by a plan, and keeps count of it.
//!
//! A question that the plan does not foresee is a complaint, as is one that names somebody else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::engine::gates::{EVER, Gates};
use crate::frame::Frame;
use crate::revision::Revision;
use crate::schema::{self, Reader};
use crate::script::plan::Kind;
use crate::tape::Tape;

/// What is answered to a kind of question.
#[derive(Clone, Debug)]
pub enum Reply {
    /// What is asked for, in the desk's name.
    Accept,
    /// An elicitation is declined.
    Decline,
    /// An elicitation is cancelled.
    Cancel,
    /// An error with this code. There is no way to say that in the stateless era: the call is not made again.
    Refuse(i64),
    /// Nothing. In the stateless era the call is not made again.
    Silence,
    /// This result, as it is (JSON text).
    Result(String),
    /// First a wait for [`Desk::release`] of that gate, then the other reply.
    Gate(String, Box<Reply>),
}

/// A question that came.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Its raw id; in the stateless era its key.
    pub id: String,
    /// Its kind; nothing if the desk knows no such question.
    pub kind: Option<Kind>,
    /// Its method.
    pub method: String,
    /// Its parameters.
    pub params: Value,
}

/// A desk.
pub struct Desk {
    /// The name that its answers carry.
    pub name: String,
    /// The questions that came, pings aside.
    pub asked: Tape<Asked>,
    /// The raw ids of the questions that were withdrawn.
    pub withdrawn: Tape<String>,
    /// The raw ids (in the stateless era the keys) of the questions that were answered.
    pub answered: Tape<String>,
    revision: Revision,
    complaints: Arc<Tape<String>>,
    capabilities: Option<String>,
    replies: Mutex<HashMap<&'static str, Reply>>,
    gates: Gates,
    is_choosy: bool,
    judges: bool,
}

impl Desk {
    /// A desk that expects no question, and declares nothing.
    #[must_use]
    pub fn closed() -> Desk {
        Desk {
            name: "nobody".into(),
            asked: Tape::default(),
            withdrawn: Tape::default(),
            answered: Tape::default(),
            revision: Revision::MODERN,
            complaints: Arc::default(),
            capabilities: Some("{}".into()),
            replies: Mutex::default(),
            gates: Gates::default(),
            is_choosy: false,
            judges: true,
        }
    }

    /// A desk that declares what its revision has, accepts every question, and wants each to name it.
    #[must_use]
    pub fn willing(name: &str) -> Desk {
        Desk { name: name.into(), capabilities: None, is_choosy: true, ..Desk::closed() }
            .reply(Kind::Form, Reply::Accept)
            .reply(Kind::Url, Reply::Accept)
            .reply(Kind::Sampling, Reply::Accept)
            .reply(Kind::SamplingTools, Reply::Accept)
            .reply(Kind::Roots, Reply::Accept)
    }

    /// The same with another reply to a kind of question.
    #[must_use]
    pub fn reply(self, kind: Kind, reply: Reply) -> Desk {
        self.now(kind, reply);
        self
    }

    /// The same, declaring this (JSON text).
    #[must_use]
    pub fn declaring(mut self, capabilities: &str) -> Desk {
        self.capabilities = Some(capabilities.into());
        self
    }

    /// The same, without holding every frame against the schemas: for loads.
    #[must_use]
    pub fn unjudging(mut self) -> Desk {
        self.judges = false;
        self
    }

    /// From now on this is the reply to a kind of question.
    pub fn now(&self, kind: Kind, reply: Reply) {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner).insert(kind.word(), reply);
    }

    /// Lets every reply behind that gate go on, now and later.
    pub fn release(&self, gate: &str) {
        self.gates.release(gate, EVER);
    }

    /// What it declares in its revision.
    #[must_use]
    pub fn capabilities(&self) -> String {
        let whole = match self.revision {
            Revision::R2024_11_05 | Revision::R2025_03_26 => "{\"roots\":{\"listChanged\":true},\"sampling\":{}}",
            Revision::R2025_06_18 => "{\"roots\":{\"listChanged\":true},\"sampling\":{},\"elicitation\":{}}",
            Revision::R2025_11_25 => {
                "{\"roots\":{\"listChanged\":true},\"sampling\":{\"tools\":{}},\"elicitation\":{\"form\":{},\"url\":{}}}"
            }
            Revision::R2026_07_28 => {
                "{\"roots\":{},\"sampling\":{\"tools\":{}},\"elicitation\":{\"form\":{},\"url\":{}}}"
            }
        };
        self.capabilities.clone().unwrap_or_else(|| whole.into())
    }

    /// Whether it can be asked such a thing.
    #[must_use]
    pub fn can(&self, kind: Kind) -> bool {
        kind.is_in(self.revision) && kind.is_declared(&serde_json::from_str(&self.capabilities()).expect("JSON"))
    }

    /// Waits until the n-th question (from 0) has come.
    pub async fn asked(&self, nth: usize) -> Asked {
        self.asked.wait_from(nth, &format!("question {nth} comes to {}", self.name), |asked| Some(asked.clone())).await
    }

    /// The same for a revision, with a place for its complaints.
    pub(crate) fn at(mut self, revision: Revision, complaints: Arc<Tape<String>>) -> Desk {
        (self.revision, self.complaints) = (revision, complaints);
        self
    }

    /// Holds something against the peer.
    pub(crate) fn complain(&self, text: String) {
        self.complaints.push(format!("{}: {text}", self.name));
    }

    /// Holds a frame against the schema of the client's revision.
    pub(crate) fn judge(&self, frame: &Frame, method: Option<&str>) {
        if self.judges {
            let faults = schema::faults(frame, method, Reader::Client, self.revision);
            faults.into_iter().for_each(|fault| self.complain(fault));
        }
    }

    /// Takes a question down, and says what is wrong with it.
    pub(crate) fn take(&self, frame: &Frame) -> Asked {
        if self.revision.is_modern() {
            self.complain(format!("a request to a stateless client: {frame:?}"));
        }
        let params = frame.params.as_ref().map_or("{}", |raw| raw.get());
        self.enter(frame.id_text(), frame.method.as_deref().unwrap_or(""), params)
    }

    /// Takes a question down that came on its own or in a round.
    pub(crate) fn enter(&self, id: &str, method: &str, params: &str) -> Asked {
        let params: Value = serde_json::from_str(params).unwrap_or_default();
        let kind = match method {
            "elicitation/create" if params["mode"] == "url" => Some(Kind::Url),
            "elicitation/create" => Some(Kind::Form),
            "sampling/createMessage" if params.get("tools").is_some() => Some(Kind::SamplingTools),
            "sampling/createMessage" => Some(Kind::Sampling),
            "roots/list" => Some(Kind::Roots),
            _ => None,
        };
        let asked = Asked { id: id.into(), kind, method: method.into(), params };
        if method != "ping" || self.revision.is_modern() {
            self.check(&asked);
            self.asked.push(asked.clone());
        }
        asked
    }

    fn check(&self, asked: &Asked) {
        let text = asked.params.to_string();
        match asked.kind {
            None => self.complain(format!("an unknown question: {} {text}", asked.method)),
            Some(kind) if !self.can(kind) => self.complain(format!("undeclared, yet asked: {} {text}", kind.word())),
            Some(Kind::Roots) => {}
            Some(_) if self.is_choosy && !text.contains(&format!(" for {} (", self.name)) => {
                self.complain(format!("a question for somebody else: {text}"));
            }
            Some(_) => {}
        }
    }

    /// Hears a notification: a question may be withdrawn.
    pub(crate) fn hear(&self, frame: &Frame) {
        if frame.is_notice("notifications/cancelled")
            && let Some(id) = frame.param("requestId")
        {
            self.withdrawn.push(id.get().to_owned());
        }
    }

    /// The whole answer to a question; nothing where there is none, or where it was withdrawn meanwhile.
    pub(crate) async fn answer(&self, asked: Asked) -> Option<String> {
        let id = &asked.id;
        if asked.method == "ping" {
            return Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}"));
        }
        let body = match self.decide(&asked).await? {
            Ok(result) => format!("\"result\":{result}"),
            Err(code) => format!("\"error\":{{\"code\":{code},\"message\":\"{} refuses\"}}", self.name),
        };
        if self.withdrawn.all().contains(id) {
            return None;
        }
        self.answered.push(id.clone());
        Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{body}}}"))
    }

    /// What is answered: a result (JSON text), an error's code, or nothing.
    pub(crate) async fn decide(&self, asked: &Asked) -> Option<Result<String, i64>> {
        let known = asked.kind.and_then(|kind| {
            self.replies
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get(kind.word())
                .cloned()
                .map(|reply| (kind, reply))
        });
        let Some((kind, mut reply)) = known else {
            if asked.kind.is_some() {
                self.complain(format!("an unexpected question: {asked:?}"));
            }
            return Some(Err(-32601));
        };
        while let Reply::Gate(gate, then) = reply {
            self.gates.pass(&gate).await;
            reply = *then;
        }
        Some(Ok(match reply {
            Reply::Accept => self.accept(kind, asked).to_string(),
            Reply::Decline => "{\"action\":\"decline\"}".into(),
            Reply::Cancel => "{\"action\":\"cancel\"}".into(),
            Reply::Result(text) => text,
            Reply::Refuse(code) => return Some(Err(code)),
            Reply::Silence | Reply::Gate(..) => return None,
        }))
    }

    fn accept(&self, kind: Kind, asked: &Asked) -> Value {
        let text = json!({"type": "text", "text": format!("{} says: {}", self.name, asked.params["messages"])});
        let call = json!([{"type": "tool_use", "id": "dice-1", "name": "dice", "input": {"for": self.name}}]);
        match kind {
            Kind::Form => {
                json!({"action": "accept", "content": {"from": self.name, "about": asked.params["message"]}})
            }
            Kind::Sampling => {
                json!({"role": "assistant", "content": text, "model": self.name, "stopReason": "endTurn"})
            }
            Kind::SamplingTools => {
                json!({"role": "assistant", "content": call, "model": self.name, "stopReason": "toolUse"})
            }
            Kind::Roots => json!({"roots": [{"uri": format!("file:///home/{}", self.name), "name": self.name}]}),
            Kind::Url | Kind::State | Kind::Required => json!({"action": "accept"}),
        }
    }
}
