//! Calls a tool for who looks at the gateway, as the principal `admin`.

use crate::admin::looks::{Done, Wanted};
use crate::call::caller::{Caller, Can, Grants, Principal};
use crate::call::reply::{Event, Failure, Outcome, Step};
use crate::call::{Call, Handle, Handler};
use crate::protocol::frame::Method;
use crate::protocol::json;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use bytes::Bytes;
use serde_json::value::RawValue;
use std::sync::{Arc, LazyLock};
use tokio::time::Instant;

/// The maker of these calls, in metrics, log and audit.
static PRINCIPAL: LazyLock<Principal> = LazyLock::new(|| Principal::named("admin"));

/// A larger result is not shown.
const RESULT_BYTES_MAX: usize = 1024 * 1024;

/// Calls a tool and waits for its outcome. Dropping the future cancels the call.
pub(super) async fn call(handler: &Handler, name: &str, wanted: &Wanted) -> Done {
    let began = Instant::now();
    let arguments = wanted.arguments.as_ref().map_or("{}", |arguments| arguments.get());
    let params = format!("{{\"name\":{},\"arguments\":{arguments}}}", json::quote(name));
    let (outcome, result, error) = match Object::parse(params.into()) {
        Ok(params) => told(outcome(handler, params).await),
        Err(_) => ("error", None, Some("the arguments are no JSON object".to_owned())),
    };
    Done { outcome, duration_seconds: began.elapsed().as_secs_f64(), result, error }
}

async fn outcome(handler: &Handler, params: Object) -> Outcome {
    let caller = Caller {
        principal: PRINCIPAL.clone(),
        address: None,
        grants: Grants::all(),
        revision: Revision::NEWEST_MODERN,
        capabilities: Bytes::from_static(b"{}"),
        tenant: None,
        can: Can::default(),
    };
    let mut reply = handler.handle(Call::about(Method::ToolsCall, params, Arc::new(caller))).in_full();
    loop {
        match reply.next().await {
            Step::Done(outcome) => return outcome,
            Step::Event(Event::Ask(ask)) => ask.answer.refuse(reply.revision(), "nobody can be asked from here"),
            Step::Event(_) => {}
        }
    }
}

fn told(outcome: Outcome) -> (&'static str, Option<Box<RawValue>>, Option<String>) {
    let error = |why: String| ("error", None, Some(why));
    match outcome {
        Outcome::Complete(result) if result.raw().len() > RESULT_BYTES_MAX => {
            error(format!("the result has {} bytes, too many to be shown here", result.raw().len()))
        }
        Outcome::Complete(result) => {
            let word = if result.find("isError") == Some(b"true") { "tool_error" } else { "ok" };
            let text = String::from_utf8_lossy(result.raw()).into_owned();
            match RawValue::from_string(text) {
                Ok(raw) => (word, Some(raw), None),
                Err(_) => error("the result is no JSON".to_owned()),
            }
        }
        Outcome::InputRequired(_) => {
            error("the tool asks the user something, which this page cannot answer".to_owned())
        }
        Outcome::Error(Failure::Refused(refusal)) => error(refusal.message),
        Outcome::Error(Failure::Upstream(failed)) => {
            let message = json::get(failed.raw(), "message").and_then(json::unquote);
            error(message.map_or_else(|| "the upstream answered with an error".to_owned(), Into::into))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::refusal::{Reason, Refusal};
    use crate::call::reply::Reply;
    use std::sync::Mutex;

    struct Says(Mutex<Vec<Outcome>>);

    impl Handle for Says {
        fn handle(&self, call: Call) -> Reply {
            assert_eq!(call.caller.principal.name(), "admin");
            assert!(call.params.raw().starts_with(b"{\"name\":\"a\\\"b\",\"arguments\":{"), "{:?}", call.params.raw());
            Reply::ready(Revision::NEWEST_MODERN, self.0.lock().unwrap().pop().unwrap())
        }
    }

    #[tokio::test]
    async fn each_outcome_is_told() {
        let object = |text: &str| Object::parse(text.to_owned().into()).unwrap();
        let large = format!("{{\"content\":\"{}\"}}", "x".repeat(RESULT_BYTES_MAX));
        let outcomes = vec![
            Outcome::InputRequired(object("{}")),
            Refusal::new(Reason::Busy, "full").into(),
            Outcome::Complete(object(&large)),
            Outcome::Complete(object("{\"isError\":true}")),
            Outcome::Complete(object("{\"content\":[]}")),
        ];
        let handler: Handler = Arc::new(Says(Mutex::new(outcomes)));
        let wanted: Wanted = serde_json::from_str("{\"arguments\":{\"x\":1}}").unwrap();
        let mut said = Vec::new();
        for _ in 0..5 {
            let done = call(&handler, "a\"b", &wanted).await;
            said.push((done.outcome, done.result.map(|result| result.get().to_owned()), done.error));
        }
        assert_eq!(said[0], ("ok", Some("{\"content\":[]}".to_owned()), None));
        assert_eq!(said[1], ("tool_error", Some("{\"isError\":true}".to_owned()), None));
        assert!(said[2].2.as_ref().is_some_and(|why| why.contains("too many")), "{said:?}");
        assert_eq!(said[3], ("error", None, Some("full".to_owned())));
        assert!(said[4].2.as_ref().is_some_and(|why| why.contains("asks the user")), "{said:?}");
    }

    #[test]
    fn what_is_no_json_is_no_argument() {
        // The parameters are put together by text: what would end them early is refused before.
        assert!(serde_json::from_str::<Wanted>("{\"arguments\":1},\"x\":{}").is_err());
        assert!(serde_json::from_str::<Wanted>("{\"name\":\"other\"}").is_err());
    }
}
