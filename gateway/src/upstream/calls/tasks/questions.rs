//! The questions of a driven task of a stateless upstream: put to the caller, and their answers gathered.

use crate::call::caller::Caller;
use crate::call::reply::ask::{Answer, Answered, Ask};
use crate::protocol::frame::Method;
use crate::protocol::payload::input;
use crate::protocol::revision::Revision;
use crate::protocol::translate;
use crate::protocol::value::Object;
use crate::runtime::timer::late::Alarm;
use crate::transport::questions::Answer as Said;
use crate::upstream::config::Config;
use crate::upstream::instance::questions;
use crate::upstream::instance::questions::Kind;
use std::collections::{HashSet, VecDeque};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// More open questions are not put.
const OPEN_MAX: usize = 16;
/// More questions in the life of one task are too many.
const KNOWN_MAX: usize = 1024;

/// The questions of one task.
#[derive(Default)]
pub(crate) struct TaskQuestions {
    /// The keys that were ever asked: each is asked once.
    known: HashSet<String>,
    /// Not put yet.
    fresh: VecDeque<Box<Ask>>,
    open: Vec<Open>,
    clock: Option<Alarm>,
}

struct Open {
    key: String,
    kind: Kind,
    method: Method,
    incoming: oneshot::Receiver<Answered>,
    answer: Option<Object>,
}

/// What there is to do.
pub(crate) enum Next {
    /// This is put to the caller.
    Put(Box<Ask>),
    /// All is answered.
    Answered(Vec<(String, Object)>),
    /// There will be no answer, for this reason.
    Never(String),
}

impl TaskQuestions {
    /// Takes down what a task asks now; says whether anything of it is new, else why it cannot be asked.
    pub(crate) fn take(&mut self, task: &Object, config: &Config, caller: &Caller) -> Result<bool, String> {
        let questions = input::questions(task).map_err(|_| "of its task cannot be read")?;
        let new: Vec<_> = questions.into_iter().filter(|question| !self.known.contains(&question.key)).collect();
        if new.len() > OPEN_MAX || self.known.len() + new.len() > KNOWN_MAX {
            return Err("of its task are too many".into());
        }
        for question in new {
            let Some(kind) = Kind::of(&question.method) else {
                return Err(format!("of its task are of a kind that is not known (`{}`)", question.method.as_str()));
            };
            let (answer, incoming) = Answer::new();
            let mut known = None;
            if let (Kind::Roots, Some(roots)) = (kind, &config.roots)
                && let Said::Result(raw) = questions::configured(roots)
            {
                known = Object::parse(raw).ok();
            } else if let Some(lacking) = kind.lacks(&question.params, caller.can(), caller.revision) {
                return Err(format!("of its task need {lacking}, which this client did not declare"));
            } else {
                self.fresh.push_back(Box::new(Ask {
                    key: questions::next_key(),
                    upstream: config.name.clone(),
                    method: question.method.clone(),
                    request: question.params,
                    revision: Revision::NEWEST_MODERN,
                    answer,
                }));
            }
            self.known.insert(question.key.clone());
            self.open.push(Open { key: question.key, kind, method: question.method, incoming, answer: known });
        }
        if !self.open.is_empty() {
            self.clock = Some(Alarm::after(config.question_timeout));
        }
        Ok(!self.open.is_empty())
    }

    /// What comes next.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        if let Some(ask) = self.fresh.pop_front() {
            return Poll::Ready(Next::Put(ask));
        }
        let is_late = self.clock.as_mut().is_some_and(|clock| clock.poll(cx).is_ready());
        for open in &mut self.open {
            if open.answer.is_some() {
                continue;
            }
            match Pin::new(&mut open.incoming).poll(cx) {
                Poll::Pending if !is_late => return Poll::Pending,
                answered => {
                    let said = if let Poll::Ready(Ok(answered)) = answered { open.said(answered) } else { None };
                    match said.or_else(|| open.silence()) {
                        Some(answer) => open.answer = Some(answer),
                        None => {
                            let why = format!("of its task ({}) was not answered by the client", open.kind.label());
                            return Poll::Ready(Next::Never(why));
                        }
                    }
                }
            }
        }
        let answered = self.open.drain(..).filter_map(|open| Some((open.key, open.answer?)));
        Poll::Ready(Next::Answered(answered.collect()))
    }
}

impl Open {
    /// A client's answer in the words of the upstream; a stateless one cannot be told of a refusal.
    fn said(&self, answered: Answered) -> Option<Object> {
        translate::answer(&self.method, &answered.body.ok()?, answered.revision, Revision::NEWEST_MODERN)
    }

    /// What is said where nobody answers, if that can be said.
    fn silence(&self) -> Option<Object> {
        match self.kind.silence() {
            Said::Result(raw) => Object::parse(raw).ok(),
            Said::Error(_) => None,
        }
    }
}
