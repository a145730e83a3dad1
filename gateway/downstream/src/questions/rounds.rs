//! A stateless upstream that asks a handshake client: its questions put live, and the call made again with the answers.

use crate::call::Call;
use crate::call::reply::ask::{Answer, Answered, Ask};
use crate::edge::CallContext;
use crate::protocol::capabilities::{Capabilities, need};
use crate::protocol::frame::Method;
use crate::protocol::payload::input;
use crate::protocol::payload::input::Embedded;
use crate::protocol::revision::Revision;
use crate::protocol::value::{Key, Object};
use crate::protocol::{frame, json, translate};
use crate::runtime::timer::late::Alarm;
use bytes::Bytes;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Sleep;

/// How long a round without questions rests before the call is made again; twice as long each time.
const REST_MIN: Duration = Duration::from_millis(250);
/// The longest such rest.
const REST_MAX: Duration = Duration::from_secs(5);

/// The rounds of one call.
pub(crate) struct Rounds {
    /// The call as the client made it, without its parameters.
    call: Call,
    /// These, raw: they are walked again where the call is made again.
    params: Bytes,
    count: usize,
    rest: Duration,
    state: State,
    /// Visits to web pages that were agreed to under a name of ours.
    visits: Vec<String>,
}

enum State {
    /// The upstream has the call, or it is over.
    Idle,
    /// The client is asked.
    Asked(Box<Round>),
    /// Nothing is asked: the call is made again after a rest.
    Resting(Pin<Box<Sleep>>, Box<Call>),
}

/// One round under way.
struct Round {
    upstream: Option<Arc<str>>,
    /// What the upstream reads answers in.
    revision: Revision,
    /// What the upstream wants back, raw.
    state: Option<Bytes>,
    questions: Vec<Question>,
    clock: Alarm,
    timeout: Duration,
}

struct Question {
    key: String,
    method: Method,
    need: Capabilities,
    /// The name that a visit to a web page was given.
    visit: Option<String>,
    incoming: oneshot::Receiver<Answered>,
    answer: Option<Object>,
}

/// What comes after a round.
pub(crate) enum Next {
    /// The call, to be made again.
    Again(Box<Call>),
    /// The call is over; why.
    Over(String),
}

impl Rounds {
    /// Of a call that was made.
    pub(crate) fn new(call: &Call) -> Self {
        let (call, params) = (call.without_params(), call.params.raw().clone());
        Self { call, params, count: 0, rest: REST_MIN, state: State::Idle, visits: Vec::new() }
    }

    /// Begins a round; the questions are to be put in their order. Says why the call cannot go on.
    pub(crate) fn begin(&mut self, result: &Object, line: &CallContext<'_>) -> Result<Vec<Ask>, String> {
        let upstream = line.reply.owner().cloned();
        let who = name(upstream.as_ref());
        let state = result.share(Key::RequestState);
        let found = input::questions(result).and_then(|found| match found.len() {
            0 if state.is_none() => Err("there is neither a question nor a `requestState`"),
            _ => Ok(found),
        });
        let found = found.map_err(|why| format!("{who} asks for input in an invalid way: {why}."))?;
        let max = line.edge.questions.max_rounds;
        if self.count >= max {
            return Err(format!(
                "{who} asked more than {max} times during one call, the limit set by `questions.max_rounds`."
            ));
        }
        self.count += 1;
        if found.is_empty() {
            let call = Box::new(self.again(&[], state.as_deref(), upstream));
            self.state = State::Resting(Box::pin(tokio::time::sleep(self.rest)), call);
            self.rest = (self.rest * 2).min(REST_MAX);
            return Ok(Vec::new());
        }
        self.rest = REST_MIN;
        let can = self.call.caller.can();
        let revision = line.reply.revision();
        let (mut questions, mut asks) = (Vec::new(), Vec::new());
        for Embedded { key, method, params } in found {
            let need = may_be_asked(&who, &method, &params, can, line.asked.mute)?;
            let (answer, incoming) = Answer::new();
            let asker = upstream.clone().unwrap_or_default();
            let ask = Ask { key: 0, upstream: asker, method: method.clone(), request: params, revision, answer };
            questions.push(Question { key, method, need, visit: None, incoming, answer: None });
            asks.push(ask);
        }
        let timeout = line.edge.questions.timeout;
        let clock = Alarm::after(timeout);
        self.state = State::Asked(Box::new(Round { upstream, revision, state, questions, clock, timeout }));
        Ok(asks)
    }

    /// Notes the name that a visit to a web page was given.
    pub(crate) fn was_put(&mut self, at: usize, visit: Option<String>) {
        if let State::Asked(round) = &mut self.state {
            round.questions[at].visit = visit;
        }
    }

    /// What comes next, once it is known.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        match &mut self.state {
            State::Idle => Poll::Pending,
            State::Resting(sleep, call) => {
                std::task::ready!(sleep.as_mut().poll(cx));
                let call = call.clone();
                self.state = State::Idle;
                Poll::Ready(Next::Again(call))
            }
            State::Asked(round) => {
                let collected = std::task::ready!(round.poll(cx));
                let State::Asked(round) = std::mem::replace(&mut self.state, State::Idle) else { return Poll::Pending };
                Poll::Ready(match collected {
                    Ok(()) => Next::Again(Box::new(self.take(*round))),
                    Err(why) => Next::Over(why),
                })
            }
        }
    }

    /// Ends the round, whose questions are withdrawn with it; what to say of it, with `why`, where there was one.
    pub(crate) fn give_up(&mut self, why: &str) -> Option<String> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Asked(round) => Some(round.says(&round.questions[0], why)),
            State::Resting(..) | State::Idle => None,
        }
    }

    /// Whether nothing is waited for here.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// What the client is told before the end: which visits to web pages are seen to.
    pub(crate) fn farewell(&mut self) -> impl Iterator<Item = Vec<u8>> + '_ {
        self.visits.drain(..).map(|name| {
            let params = format!("{{\"elicitationId\":{}}}", json::quote(&name));
            frame::message::notification(&Method::ElicitationComplete, params.as_bytes()).into()
        })
    }

    /// The call again, with what a round has collected.
    fn take(&mut self, round: Round) -> Call {
        let mut answers = Vec::with_capacity(round.questions.len());
        for question in round.questions {
            let Some(answer) = question.answer else { continue };
            let is_agreed = answer.find("action") == Some(b"\"accept\"");
            self.visits.extend(question.visit.filter(|_| is_agreed));
            answers.push((question.key, answer));
        }
        self.again(&answers, round.state.as_deref(), round.upstream)
    }

    fn again(&self, answers: &[(String, Object)], state: Option<&[u8]>, upstream: Option<Arc<str>>) -> Call {
        // It was walked when it came, and so it is an object.
        let params = Object::parse(self.params.clone()).unwrap_or_default();
        let params = input::retry(&params, answers, state);
        Call { params, bound_to: upstream, ..self.call.clone() }
    }
}

impl Round {
    /// Ready when everything is answered, or it is known that it will not be; then it says why.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        let (mut over, mut is_waiting) = (None, false);
        for (at, question) in self.questions.iter_mut().enumerate() {
            if question.answer.is_some() {
                continue;
            }
            match Pin::new(&mut question.incoming).poll(cx) {
                Poll::Pending => is_waiting = true,
                Poll::Ready(answered) => match question.read(answered.ok(), self.revision) {
                    Ok(answer) => question.answer = Some(answer),
                    Err(why) => {
                        over = Some((at, why));
                        break;
                    }
                },
            }
        }
        if let Some((at, why)) = over {
            return Poll::Ready(Err(self.says(&self.questions[at], &why)));
        }
        if !is_waiting {
            return Poll::Ready(Ok(()));
        }
        std::task::ready!(self.clock.poll(cx));
        let open = self.questions.iter().find(|question| question.answer.is_none()).unwrap_or(&self.questions[0]);
        let seconds = self.timeout.as_secs();
        let why = format!("and no answer came within {seconds} s, the limit set by `questions.timeout`");
        Poll::Ready(Err(self.says(open, &why)))
    }

    fn says(&self, question: &Question, why: &str) -> String {
        format!("{} asked for {}, {why}.", name(self.upstream.as_ref()), need::words(question.need))
    }
}

impl Question {
    /// The answer in the upstream's words; else why there is none.
    fn read(&self, answered: Option<Answered>, to: Revision) -> Result<Object, String> {
        let Some(Answered { revision, body }) = answered else {
            return Err("and the client gave no answer that can be read".to_owned());
        };
        match body {
            Ok(result) => translate::answer(&self.method, &result, revision, to)
                .ok_or_else(|| "and the client's answer cannot be said in the upstream's revision".to_owned()),
            Err(refused) => Err(format!(
                "and the client refused: {}",
                refused.message().unwrap_or_else(|| "no reason given".into())
            )),
        }
    }
}

/// What a question needs, where the client can be asked it; else what the client lacks.
fn may_be_asked(
    who: &str,
    method: &Method,
    params: &Object,
    can: Capabilities,
    mute: Option<&str>,
) -> Result<Capabilities, String> {
    let Some(need) = need::of(method, params) else {
        return Err(format!("{who} asks `{}`, which the gateway does not know.", method.as_str()));
    };
    if can.has(need) {
        return Ok(need);
    }
    let lacks = mute.unwrap_or("which this client did not declare");
    Err(format!("{who} asks for {}, {lacks}.", need::words(need)))
}

fn name(upstream: Option<&Arc<str>>) -> String {
    upstream.map_or_else(|| "An upstream".to_owned(), |name| format!("The upstream `{name}`"))
}
