//! Questions that a call brings up, in all pairings of eras.
//!
//! The client is called `ada`, and its desk is willing; what cannot be bridged has an answer of its own.

use serde_json::{Value, json};

use crate::client::converse::{Conversation, again};
use crate::client::{Reply, Request, tool};
use crate::frame::quote;
use crate::journal::{Event, Order, What};
use crate::judge;
use crate::scenario::Case;
use crate::script::plan::Kind;
use crate::upstream::Way;

/// `elicitation/create` with a form.
pub(crate) async fn form(case: &Case) {
    one(case, Kind::Form).await;
}

/// `elicitation/create` with a URL.
pub(crate) async fn url(case: &Case) {
    one(case, Kind::Url).await;
}

/// `sampling/createMessage`.
pub(crate) async fn sampling(case: &Case) {
    one(case, Kind::Sampling).await;
}

/// `sampling/createMessage` with tools.
pub(crate) async fn sampling_tools(case: &Case) {
    one(case, Kind::SamplingTools).await;
}

/// `roots/list`.
pub(crate) async fn roots(case: &Case) {
    one(case, Kind::Roots).await;
}

/// One question; who can be asked is asked, and the others are answered for as the protocol has it.
async fn one(case: &Case, kind: Kind) {
    let talk = case.client.converse(ask(case, kind.word())).await;
    if case.upstream_revision.is_modern() && !case.client.desk.can(kind) {
        // The upstream says what it lacks; a client with a handshake knows no such error.
        let told = talk.answer.value();
        assert_eq!(told["isError"], true, "{told}");
        return;
    }
    let told = report(&talk);
    let outcome = &told["rounds"][0][0];
    if !kind.is_in(case.upstream_revision) {
        assert_eq!(outcome["unknown"], true, "{told}");
    } else if case.client.desk.can(kind) {
        answered(kind, outcome);
    } else if is_offered(case) {
        let code = if matches!(kind, Kind::Form | Kind::Url) { -32602 } else { -32601 };
        assert_eq!(outcome["error"]["code"], code, "refused for the client: {told}");
    } else {
        assert_eq!(outcome["undeclared"], true, "{told}");
    }
}

/// Whether the upstream was told that everything can be asked, whoever calls: a shared child or connection.
fn is_offered(case: &Case) -> bool {
    case.upstream.way() != Way::Http && !case.is_alone
}

/// Both are asked before any is answered.
pub(crate) async fn two_at_once(case: &Case) {
    let talk = case.client.converse(ask(case, "roots+sampling")).await;
    let told = report(&talk);
    answered(Kind::Roots, &told["rounds"][0][0]);
    answered(Kind::Sampling, &told["rounds"][0][1]);
    let most = if case.client.revision.is_modern() { 2 } else { 0 };
    assert!(talk.rounds <= most, "{} rounds: {told}", talk.rounds);
}

/// A question that comes of the answer to another one.
pub(crate) async fn two_rounds(case: &Case) {
    let talk = case.client.converse(ask(case, "sampling,roots")).await;
    let told = report(&talk);
    answered(Kind::Sampling, &told["rounds"][0][0]);
    answered(Kind::Roots, &told["rounds"][1][0]);
    assert_eq!(talk.rounds, if case.client.revision.is_modern() { 2 } else { 0 }, "{told}");
}

/// A stateless upstream may send its caller round for nothing.
pub(crate) async fn state_alone(case: &Case) {
    let told = report(&case.client.converse(ask(case, "state,roots")).await);
    answered(Kind::Roots, &told["rounds"][1][0]);
}

/// The person says no: an answer as any other.
pub(crate) async fn declined(case: &Case) {
    if !Kind::Form.is_in(case.upstream_revision) || !case.client.desk.can(Kind::Form) {
        return;
    }
    for (reply, action) in [(Reply::Decline, "decline"), (Reply::Cancel, "cancel")] {
        case.client.desk.now(Kind::Form, reply);
        let told = report(&case.client.converse(ask(case, "form")).await);
        assert_eq!(told["rounds"][0][0]["answer"], json!({"action": action}), "{told}");
    }
    case.client.desk.now(Kind::Form, Reply::Accept);
}

/// An error in place of an answer: a stateless upstream cannot be told, so that the call ends.
pub(crate) async fn refused(case: &Case) {
    if case.client.revision.is_modern() {
        return;
    }
    case.client.desk.now(Kind::Sampling, Reply::Refuse(-1));
    let talk = case.client.converse(ask(case, "sampling")).await;
    case.client.desk.now(Kind::Sampling, Reply::Accept);
    if case.upstream_revision.is_modern() {
        assert_eq!(talk.answer.value()["isError"], true, "{:?}", talk.answer);
    } else {
        assert_eq!(report(&talk)["rounds"][0][0]["error"]["code"], -1);
    }
}

/// What an upstream no longer wants to know is withdrawn at the client too; a parked question is answered in vain.
pub(crate) async fn withdrawn(case: &Case) {
    if case.upstream_revision.is_modern() {
        return;
    }
    let (desk, upstream) = (&case.client.desk, &case.upstream);
    let (asked, gone, mark, gate) = (desk.asked.mark(), desk.withdrawn.mark(), upstream.events.mark(), judge::nonce());
    desk.now(Kind::Roots, Reply::Gate(gate.clone(), Box::new(Reply::Accept)));
    // Where the call ends with it, the withdrawal comes among the notices.
    let _ear = case.client.listen(&[]).await;
    let (talk, ()) = tokio::join!(case.client.converse(ask(case, "roots~")), async {
        let question = desk.asked(asked).await;
        upstream.order(Order::Release("withdraw".into())).await;
        let withdraws = |event: &Event| matches!(event.what, What::Withdrawn { .. }).then_some(());
        upstream.events.wait_from(mark, "the question is withdrawn", withdraws).await;
        if !case.client.revision.is_modern() {
            let same = |id: &String| (*id == question.id).then_some(());
            desk.withdrawn.wait_from(gone, "it is withdrawn at the client", same).await;
        }
        desk.release(&gate);
    });
    desk.now(Kind::Roots, Reply::Accept);
    let told = report(&talk);
    assert_eq!(told["rounds"][0][0]["withdrawn"], true, "{told}");
}

/// An altered state is refused and harms nothing: the genuine one is taken after it, and the tool ran once.
pub(crate) async fn altered(case: &Case) {
    if !case.client.revision.is_modern() || case.upstream_revision.is_modern() {
        return;
    }
    let nonce = judge::nonce();
    let arguments = format!("{{\"plan\":\"roots\",\"who\":\"ada\",\"nonce\":\"{nonce}\"}}");
    let request = tool(&case.name("ask"), &arguments);
    let parked = case.client.request(request.clone()).await;
    let responses = case.client.desk.respond(&parked).await.expect("a willing desk answers");
    let genuine = again(&request, &parked, &responses);
    let state = parked.value()["requestState"].as_str().expect("a parked call has a state").to_owned();
    let middle = state.len() / 2;
    let other = if state[middle..].starts_with('A') { "B" } else { "A" };
    let bent = format!("{}{other}{}", &state[..middle], &state[middle + 1..]);
    let altered = Request { params: genuine.params.replace(&state, &bent), ..genuine.clone() };
    assert_eq!(case.client.request(altered).await.code(), -32602, "an altered state");
    let answer = case.client.request(genuine).await;
    answered(Kind::Roots, &report(&Conversation { answer, rounds: 1 })["rounds"][0][0]);
    case.upstream.ran(&nonce).await;
    assert_eq!(case.upstream.executed().await.into_iter().filter(|ran| *ran == nonce).count(), 1, "it ran once");
}

/// A cancel ends a call that waits for an answer; where the upstream has an open call it hears of it.
pub(crate) async fn cancelled(case: &Case) {
    if case.client.revision.is_modern() {
        return;
    }
    let desk = &case.client.desk;
    let (asked, mark) = (desk.asked.mark(), case.upstream.events.mark());
    desk.now(Kind::Roots, Reply::Silence);
    let open = case.client.start(ask(case, "roots")).await;
    desk.asked(asked).await;
    open.cancel().await;
    if !case.upstream_revision.is_modern() {
        // Its question is answered for it first, so that the call may be over before the cancel comes.
        let hears = |event: &Event| match &event.what {
            What::Frame { raw, .. } => raw.contains("notifications/cancelled").then_some(()),
            _ => None,
        };
        case.upstream.events.wait_from(mark, "the upstream hears of the cancel", hears).await;
    }
    desk.now(Kind::Roots, Reply::Accept);
    let told = report(&case.client.converse(ask(case, "roots")).await);
    answered(Kind::Roots, &told["rounds"][0][0]);
}

/// Progress goes on while a question is open.
pub(crate) async fn progress(case: &Case) {
    let arguments = arguments("roots").replace('{', "{\"progress\":\"yes\",");
    let request = tool(&case.name("ask"), &arguments).token("\"while asked\"");
    if case.client.revision.is_modern() {
        let told = report(&case.client.converse(request).await);
        answered(Kind::Roots, &told["rounds"][0][0]);
        return;
    }
    let gate = judge::nonce();
    case.client.desk.now(Kind::Roots, Reply::Gate(gate.clone(), Box::new(Reply::Accept)));
    let open = case.client.start(request).await;
    open.progress(1).await;
    case.client.desk.release(&gate);
    let text = open.answer().await.text();
    case.client.desk.now(Kind::Roots, Reply::Accept);
    assert!(text.contains("file:///home/ada"), "{text}");
}

/// A prompt may ask.
pub(crate) async fn prompt(case: &Case) {
    let params = format!("{{\"name\":{},\"arguments\":{}}}", quote(&case.name("ask")), arguments("roots"));
    let told = case.client.converse(Request::new("prompts/get", &params)).await.answer.value();
    let text = told["messages"][0]["content"]["text"].as_str().unwrap_or_else(|| panic!("no text: {told}"));
    assert!(text.contains("file:///home/ada"), "{text}");
}

/// A resource may ask.
pub(crate) async fn resource(case: &Case) {
    let params = format!("{{\"uri\":{}}}", quote(&case.uri("ask/roots/ada")));
    let told = case.client.converse(Request::new("resources/read", &params)).await.answer.value();
    let text = told["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {told}"));
    assert!(text.contains("file:///home/ada"), "{text}");
}

/// The error -32042 asks for consent: a round for a stateless client, itself for its own revision, text for older ones.
pub(crate) async fn required(case: &Case) {
    use crate::revision::Revision;
    if case.upstream_revision != Revision::R2025_11_25 {
        return;
    }
    let talk = case.client.converse(ask(case, "required")).await;
    match case.client.revision {
        Revision::R2026_07_28 => {
            assert_eq!(talk.rounds, 1, "{:?}", talk.answer);
            assert_eq!(report(&talk)["rounds"], json!([[]]));
        }
        Revision::R2025_11_25 => {
            let error = talk.answer.error_value();
            assert_eq!(error["code"], -32042, "{error}");
            assert_eq!(error["data"]["elicitations"][0]["mode"], "url", "{error}");
        }
        _ => {
            let told = talk.answer.value();
            assert_eq!(told["isError"], true, "{told}");
            assert!(told["content"][0]["text"].to_string().contains("https://consent.example/ada"), "{told}");
        }
    }
}

fn arguments(plan: &str) -> String {
    format!("{{\"plan\":\"{plan}\",\"who\":\"ada\",\"nonce\":\"{}\"}}", judge::nonce())
}

fn ask(case: &Case, plan: &str) -> Request {
    tool(&case.name("ask"), &arguments(plan))
}

fn report(talk: &Conversation) -> Value {
    assert!(!talk.is_open(), "the client gave no answer: {:?}", talk.answer);
    serde_json::from_str(&talk.answer.text()).unwrap_or_else(|error| panic!("{error}: {}", talk.answer.result()))
}

fn answered(kind: Kind, outcome: &Value) {
    assert_eq!(outcome["kind"], kind.word(), "{outcome}");
    let answer = &outcome["answer"];
    match kind {
        Kind::Form => assert_eq!(answer["content"]["from"], "ada", "{outcome}"),
        Kind::Sampling | Kind::SamplingTools => assert_eq!(answer["model"], "ada", "{outcome}"),
        Kind::Roots => assert_eq!(answer["roots"][0]["uri"], "file:///home/ada", "{outcome}"),
        Kind::Url | Kind::State | Kind::Required => assert_eq!(*answer, json!({"action": "accept"}), "{outcome}"),
    }
}
