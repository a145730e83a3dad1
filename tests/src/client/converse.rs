//! Calls that ask back: made again with answers, where the revision wants that, until something else comes.

use serde_json::value::RawValue;

use crate::client::desk::Desk;
use crate::client::{Answer, Client, Request};
use crate::frame::{Frame, fields, quote, text};

/// So many rounds, and no more.
const ROUNDS: usize = 20;

/// A call from its beginning to its end.
#[derive(Clone, Debug)]
pub struct Conversation {
    /// The last answer: what was asked still, if the desk did not answer that.
    pub answer: Answer,
    /// How often the client was sent back with questions or with a state; 0 for live questions.
    pub rounds: usize,
}

impl Conversation {
    /// Whether the call ended without an answer because the desk did not give one.
    #[must_use]
    pub fn is_open(&self) -> bool {
        asks(&self.answer)
    }
}

/// Whether an answer asks for input.
#[must_use]
pub fn asks(answer: &Answer) -> bool {
    let kind = answer.frame.as_ref().and_then(|frame: &Frame| fields(frame.result.as_deref()?).remove("resultType"));
    kind.is_some_and(|kind| kind.get() == "\"input_required\"")
}

/// The same request with the answers to what it was asked, and the state that came with that, byte for byte.
#[must_use]
pub fn again(request: &Request, answer: &Answer, responses: &str) -> Request {
    let mut result = fields(&RawValue::from_string(answer.result().to_owned()).expect("it was parsed"));
    let mut more = Vec::new();
    if result.contains_key("inputRequests") {
        more.push(format!("\"inputResponses\":{responses}"));
    }
    if let Some(state) = result.remove("requestState") {
        more.push(format!("\"requestState\":{state}"));
    }
    let rest = request.params.trim().strip_prefix('{').expect("parameters are an object");
    Request { id: None, params: format!("{{{},{rest}", more.join(",")), ..request.clone() }
}

impl Client {
    /// Makes a call, answers what it asks at the desk, and gives its end.
    pub async fn converse(&self, request: Request) -> Conversation {
        let mut answer = self.request(request.clone()).await;
        let mut rounds = 0;
        while asks(&answer) {
            if !self.revision.is_modern() {
                self.desk.complain(format!("input_required to a client with a handshake: {}", answer.result()));
            }
            rounds += 1;
            if rounds > ROUNDS {
                self.desk.complain(format!("asked more than {ROUNDS} times"));
                break;
            }
            let Some(responses) = self.desk.respond(&answer).await else { break };
            answer = self.request(again(&request, &answer, &responses)).await;
        }
        Conversation { answer, rounds }
    }
}

impl Desk {
    /// The answers to a round, as JSON text; nothing where one of them is not given.
    pub async fn respond(&self, answer: &Answer) -> Option<String> {
        let result = RawValue::from_string(answer.result().to_owned()).expect("it was parsed");
        let mut result = fields(&result);
        let questions = result.remove("inputRequests").map(|raw| fields(&raw)).unwrap_or_default();
        if questions.is_empty() && !result.contains_key("requestState") {
            self.complain(format!("neither questions nor a state: {}", answer.result()));
            return None;
        }
        let mut asked = Vec::new();
        for (key, question) in &questions {
            let mut question = fields(question);
            let method = question.remove("method").and_then(|raw| text(&raw)).unwrap_or_default();
            let params = question.remove("params").map_or_else(|| "{}".to_owned(), |raw| raw.get().to_owned());
            for stranger in question.keys() {
                self.complain(format!("a question in a round has no {stranger}"));
            }
            asked.push(self.enter(key, &method, &params));
        }
        let mut responses = Vec::new();
        for asked in asked {
            let Ok(result) = self.decide(&asked).await? else { return None };
            self.answered.push(asked.id.clone());
            responses.push(format!("{}:{result}", quote(&asked.id)));
        }
        Some(format!("{{{}}}", responses.join(",")))
    }
}
