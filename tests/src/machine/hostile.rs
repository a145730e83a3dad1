//! A hostile client, with a token of its own: one attack a round, by the seed. Each is refused, or served as what it says, and costs
//! nobody else anything.

use crate::judge;
use crate::machine::guest::Guest;
use crate::machine::setting::HOSTILE;
use crate::machine::stage::Stage;
use crate::seed::Seed;

/// How deep and how wide arguments are.
const DEPTH: usize = 50_000;
const WIDTH: usize = 400_000;

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attack {
    /// A key of the protocol stands twice, at one level or another.
    DoubledKeys,
    /// Arguments that are nested ever so deep.
    Deep,
    /// Arguments with hundreds of thousands of members.
    Wide,
}

/// One attack, and what came of it that must not.
pub(crate) async fn attack(stage: &Stage, seed: &mut Seed) -> Vec<String> {
    let Some(guest) = Guest::of(stage, HOSTILE) else { return Vec::new() };
    let kinds = [Attack::DoubledKeys, Attack::Deep, Attack::Wide];
    let (kind, number) = (kinds[seed.below(kinds.len())], seed.below(DOUBLES.len()));
    let nonce = judge::nonce();
    let body = match kind {
        Attack::DoubledKeys => DOUBLES[number].replace("NONCE", &nonce),
        Attack::Deep => call(&nonce, &format!("{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH))),
        Attack::Wide => call(&nonce, &format!("[1{}]", ",1".repeat(WIDTH))),
    };
    let session = match guest.opens().await {
        Ok(session) => session,
        Err(why) => return vec![format!("{kind:?}: the hostile client has no session: {why}")],
    };
    let answer = guest.post(Some(&session), body).await;
    // It may have made room for another one of its principal.
    let _ = guest.ends(&session).await;
    let Ok(answer) = answer else { return Vec::new() };
    let is_served = answer.frame.as_ref().is_some_and(|frame| frame.result.is_some());
    let is_own = judge::echoed(&answer).as_ref() == Some(&nonce);
    let fault = match (kind, is_served) {
        (Attack::Wide, true) if !is_own => Some(format!("{kind:?}: the answer is another call's")),
        (Attack::DoubledKeys | Attack::Deep, true) => {
            Some(format!("{kind:?} {number} was served, and is to be refused"))
        }
        _ => None,
    };
    fault.into_iter().collect()
}

/// Requests that one reader takes for this, and another one for that.
const DOUBLES: [&str; 4] = [
    r#"{"jsonrpc":"2.0","id":"hostile","method":"tools/list","method":"tools/call","params":{"name":"u0__echo","arguments":{"nonce":"NONCE"}}}"#,
    r#"{"jsonrpc":"2.0","id":"hostile","method":"tools/call","params":{"name":"u0__echo","name":"u2__echo","arguments":{"nonce":"NONCE"}}}"#,
    r#"{"jsonrpc":"2.0","id":"hostile","id":"other","method":"tools/call","params":{"name":"u0__echo","arguments":{"nonce":"NONCE"}}}"#,
    r#"{"jsonrpc":"2.0","id":"hostile","method":"tools/call","params":{"name":"u0__echo","arguments":{"nonce":"NONCE"}},"params":{"name":"u2__echo","arguments":{"nonce":"NONCE"}}}"#,
];

fn call(nonce: &str, value: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"hostile","method":"tools/call","params":{{"name":"u0__echo","arguments":{{"nonce":"{nonce}","value":{value}}}}}}}"#
    )
}
