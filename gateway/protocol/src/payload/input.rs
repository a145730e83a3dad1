//! `input_required` results and their retries: questions embedded in a result, answers embedded in a request.

use crate::frame::Method;
use crate::json;
use crate::value::{Edit, Key, Object};

/// A question that a stateless upstream has embedded in its result.
#[derive(Debug, Clone)]
pub struct Embedded {
    /// Its key among the questions of the result.
    pub key: String,
    /// What is asked.
    pub method: Method,
    /// With what.
    pub params: Object,
}

/// The most questions of one result.
pub const QUESTIONS_MAX: usize = 64;

/// The questions of an `input_required` result; else what in it is not as the protocol has it.
pub fn questions(result: &Object) -> Result<Vec<Embedded>, &'static str> {
    if result.get(Key::RequestState).is_some_and(|state| json::unquote(state).is_none()) {
        return Err("`requestState` is no text");
    }
    let Some(raw) = result.find("inputRequests") else { return Ok(Vec::new()) };
    let found = embedded(result, raw).ok_or("`inputRequests` cannot be read")?;
    if found.len() > QUESTIONS_MAX {
        return Err("it asks too many questions at once");
    }
    let says = |question: &Embedded| matches!(question.method, Method::Elicitation | Method::Sampling);
    let is_bare = |question: &Embedded| says(question) && question.params.raw() == "{}";
    if found.iter().any(is_bare) { Err("a question has no `params`, or empty ones") } else { Ok(found) }
}

fn embedded(result: &Object, raw: &[u8]) -> Option<Vec<Embedded>> {
    let mut found = Vec::new();
    for member in json::Members::of(raw).ok()? {
        let member = member.ok()?;
        let request = &raw[member.value..member.end];
        let key = json::unquote(&raw[member.start..member.key_end])?.into_owned();
        let method = Method::parse(&json::unquote(json::get(request, "method")?)?);
        let params = match json::get(request, "params") {
            Some(params) => Object::parse(result.raw().slice_ref(params)).ok()?,
            None => Object::empty(),
        };
        found.push(Embedded { key, method, params });
        // More are refused: they need not all be kept.
        if found.len() > QUESTIONS_MAX {
            break;
        }
    }
    Some(found)
}

/// An `input_required` result; `state` is plain text.
pub fn required(questions: &[Embedded], state: Option<&str>) -> Object {
    let mut out = b"{\"resultType\":\"input_required\"".to_vec();
    if !questions.is_empty() {
        out.extend_from_slice(b",\"inputRequests\":{");
        for (at, question) in questions.iter().enumerate() {
            out.extend_from_slice(if at == 0 { b"" } else { b"," });
            out.extend_from_slice(json::quote(&question.key).as_bytes());
            out.extend_from_slice(b":{\"method\":");
            out.extend_from_slice(json::quote(question.method.as_str()).as_bytes());
            out.extend_from_slice(b",\"params\":");
            out.extend_from_slice(question.params.raw());
            out.push(b'}');
        }
        out.push(b'}');
    }
    if let Some(state) = state {
        out.extend_from_slice(b",\"requestState\":");
        out.extend_from_slice(json::quote(state).as_bytes());
    }
    out.push(b'}');
    Object::parse(out.into()).expect("what we write is an object")
}

/// The answer to the question of `key` in a retry's parameters, where it is there and an object.
pub fn answer(params: &Object, key: &str) -> Option<Object> {
    let all = params.get(Key::InputResponses)?;
    let raw = json::get(all, key)?;
    Object::parse(params.raw().slice_ref(raw)).ok()
}

/// The retry of a request: its parameters with answers, raw and by key, and with the raw state that it was given.
pub fn retry(params: &Object, answers: &[(String, Object)], state: Option<&[u8]>) -> Object {
    let mut all = b"{".to_vec();
    for (at, (key, answer)) in answers.iter().enumerate() {
        all.extend_from_slice(if at == 0 { b"" } else { b"," });
        all.extend_from_slice(json::quote(key).as_bytes());
        all.push(b':');
        all.extend_from_slice(answer.raw());
    }
    all.push(b'}');
    let state = state.map_or(Edit::Drop, Edit::Set);
    let responses = if answers.is_empty() { Edit::Drop } else { Edit::Set(&all) };
    let raw = params.with(&[(Key::InputResponses, responses), (Key::RequestState, state)]);
    Object::parse(raw).unwrap_or_else(|_| params.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &'static str) -> Object {
        Object::parse(text.into()).unwrap()
    }

    #[test]
    fn questions_survive_their_own_writing() {
        let asked = [
            Embedded { key: "a\"b".into(), method: Method::RootsList, params: Object::empty() },
            Embedded { key: "c".into(), method: Method::Elicitation, params: object(r#"{"message":"ok?"}"#) },
        ];
        let result = required(&asked, Some("s\"1"));
        assert_eq!(result.get(Key::RequestState).and_then(crate::json::unquote).as_deref(), Some("s\"1"));
        let read = questions(&result).unwrap();
        assert_eq!(read.len(), 2);
        for (one, other) in read.iter().zip(&asked) {
            assert_eq!((&one.key, &one.method, one.params.raw()), (&other.key, &other.method, other.params.raw()));
        }
        assert_eq!(questions(&object(r#"{"requestState":"x"}"#)).map(|all| all.len()), Ok(0));
        for (odd, why) in [
            (r#"{"inputRequests":{"a":7}}"#, "`inputRequests` cannot be read"),
            (r#"{"inputRequests":{"a":{"method":"elicitation/create"}}}"#, "a question has no `params`, or empty ones"),
            (r#"{"inputRequests":{},"requestState":5}"#, "`requestState` is no text"),
        ] {
            assert_eq!(questions(&object(odd)).err(), Some(why), "{odd}");
        }
    }

    #[test]
    fn a_retry_has_the_answers_of_its_round_and_the_state_byte_for_byte() {
        let first = object(r#"{"name":"t","inputResponses":{"old":{}},"requestState":"old"}"#);
        let again = retry(&first, &[("k\n".into(), object(r#"{"action":"accept"}"#))], Some(br#""s\u0041""#));
        assert_eq!(again.get(Key::RequestState), Some(&br#""s\u0041""#[..]));
        assert_eq!(answer(&again, "k\n").unwrap().raw(), r#"{"action":"accept"}"#);
        assert!(answer(&again, "old").is_none());
        assert_eq!(again.text(Key::Name).as_deref(), Some("t"));
        let bare = retry(&first, &[], None);
        assert!(bare.get(Key::InputResponses).is_none() && bare.get(Key::RequestState).is_none());
    }
}
