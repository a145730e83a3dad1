//! Questions over an in-memory pipe and over loopback: whose they are, how they end, what the upstream is told.

mod http;
mod pipe;

use super::super::tests::rig::call;
use crate::call::{Answer, Answered, Ask, Call, Caller, Event, Reply, Step, Tenant};
use crate::protocol::{Method, Object, Revision};
use std::sync::Arc;
use std::time::Duration;

const LEGACY: Revision = Revision::V2025_11_25;
const MODERN: Revision = Revision::V2026_07_28;
/// What a client declares that can be asked everything.
const ALL: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{}}"#;

fn object(text: &str) -> Object {
    Object::parse(bytes::Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

fn session(id: &str) -> Arc<Tenant> {
    Arc::new(Tenant::mute(id))
}

/// A tool call of a client that declares `can`, in a session or none.
fn tool(revision: Revision, can: &str, tenant: Option<&Arc<Tenant>>) -> Call {
    let call = call(revision, Method::ToolsCall, r#"{"name":"t"}"#);
    let caller = Caller { capabilities: can.to_owned().into(), tenant: tenant.cloned(), ..(*call.caller).clone() };
    Call { caller: Arc::new(caller), ..call }
}

fn modern() -> Call {
    tool(MODERN, ALL, None)
}

/// The next step, which must be a question.
async fn question(reply: &mut Reply) -> Box<Ask> {
    match within(reply.next()).await {
        Step::Event(Event::Ask(ask)) => ask,
        other => panic!("not a question: {other:?}"),
    }
}

fn give(answer: Answer, revision: Revision, result: &str) {
    answer.give(Answered { revision, body: Ok(object(result)) }).unwrap();
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("it takes too long")
}
