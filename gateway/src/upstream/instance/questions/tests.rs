//! Questions over an in-memory pipe and over loopback: whose they are, how they end, what the upstream is told.

mod http;
mod pages;
mod pipe;
mod time;
mod whose;

use crate::call::Call;
use crate::call::caller::{Caller, ClientSession};
use crate::call::reply::ask::{Answer, Answered, Ask};
use crate::call::reply::{Event, Reply, Step};
use crate::protocol::frame::Method;
use crate::protocol::frame::message::Id;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::upstream::config::Config;
use crate::upstream::tests::rig::{Far, Rig, call};
use std::sync::Arc;
use std::time::Duration;

const LEGACY: Revision = Revision::V2025_11_25;
const MODERN: Revision = Revision::V2026_07_28;
/// What a client declares that can be asked everything: over HTTP it is called for in the session that the lists are read in.
const ALL: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{},"extensions":{"io.modelcontextprotocol/ui":{}}}"#;

const FORM: &str = r#"{"message":"?","requestedSchema":{"type":"object"}}"#;

fn object(text: &str) -> Object {
    Object::parse(bytes::Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

fn session(id: &str) -> Arc<ClientSession> {
    Arc::new(ClientSession::mute(id))
}

/// A tool call of a client that declares `can`, in a session or none.
fn tool(revision: Revision, can: &str, tenant: Option<&Arc<ClientSession>>) -> Call {
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

async fn asks(far: &mut Far, id: &str, method: &str, params: &str) {
    far.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)).await;
}

async fn elicits(far: &mut Far, id: &str) {
    asks(far, id, "elicitation/create", FORM).await;
}

/// An upstream in memory that was met.
fn rig(config: Config) -> Rig {
    let rig = Rig::new(config);
    rig.met(LEGACY, "{}");
    rig
}

/// A call that the upstream has read, and the id it has there.
async fn started(rig: &mut Rig, call: Call) -> (Reply, Id) {
    let reply = rig.upstream().call(call);
    (reply, rig.far.request().await.0)
}

fn give(answer: Answer, revision: Revision, result: &str) {
    answer.give(Answered { revision, body: Ok(object(result)) }).unwrap();
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it takes too long")
}
