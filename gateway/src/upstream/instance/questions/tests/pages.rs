//! Pages that sessions are asked to open: who hears that one was seen to.

use super::*;
use crate::call::reply::{Failure, Outcome};
use crate::upstream::tests::rig::{config, outcome};
use std::sync::Mutex;

type Told = Arc<Mutex<Vec<String>>>;

fn listener(id: &str) -> (Arc<ClientSession>, Told) {
    let told = Told::default();
    let hears = told.clone();
    let tenant = ClientSession::mute(id).telling(move |method, params| {
        hears.lock().unwrap().push(format!("{} {}", method.as_str(), String::from_utf8_lossy(params.raw())));
    });
    (Arc::new(tenant), told)
}

async fn completes(rig: &mut Rig, id: &str) {
    rig.far.notify("notifications/elicitation/complete", &format!(r#"{{"elicitationId":"{id}"}}"#)).await;
    // What comes behind it was read after it.
    asks(&mut rig.far, "9", "ping", "{}").await;
    rig.far.line().await;
}

#[tokio::test(start_paused = true)]
async fn the_session_that_was_asked_hears_and_nobody_else() {
    let mut rig = rig(config());
    let ((one, told), (other, others)) = (listener("1"), listener("2"));
    let (mut reply, _) = started(&mut rig, tool(LEGACY, ALL, Some(&one))).await;
    let page = r#"{"mode":"url","message":"m","url":"https://h/","elicitationId":"e\u0031"}"#;
    asks(&mut rig.far, "1", "elicitation/create", page).await;
    let ask = question(&mut reply).await;
    assert_eq!(ask.request.raw(), page);
    give(ask.answer, LEGACY, r#"{"action":"accept"}"#);
    rig.far.line().await;
    let (_calls, _) = started(&mut rig, tool(LEGACY, ALL, Some(&other))).await;
    completes(&mut rig, "unknown").await;
    assert!(told.lock().unwrap().is_empty());
    completes(&mut rig, "e1").await;
    completes(&mut rig, "e1").await;
    assert_eq!(*told.lock().unwrap(), [r#"notifications/elicitation/complete {"elicitationId":"e1"}"#]);
    assert!(others.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn pages_that_are_required_first_are_told_of_too_and_the_error_passes() {
    let mut rig = rig(config());
    let (one, told) = listener("1");
    let (mut reply, id) = started(&mut rig, tool(LEGACY, ALL, Some(&one))).await;
    let error = r#"{"code":-32042,"message":"first","data":{"elicitations":[{"mode":"url","elicitationId":"e"},7]}}"#;
    let id = String::from_utf8_lossy(id.raw()).into_owned();
    rig.far.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)).await;
    let Outcome::Error(Failure::Upstream(seen)) = outcome(&mut reply).await else { panic!() };
    assert_eq!(seen.raw(), error);
    completes(&mut rig, "e").await;
    assert_eq!(told.lock().unwrap().len(), 1);
}
