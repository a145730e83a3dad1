//! Calls that their clients give up: a few of a load are cancelled, or lose their connection, or leave a question unanswered.
//! Nothing of them may stay in the gateway, and an upstream that is there is told.

use std::time::{Duration, Instant};

use crate::client::{Request, tool};
use crate::journal::now;
use crate::judge::{self, history::End, history::Made};
use crate::machine::load::{LOST_AFTER, end, request};
use crate::machine::stage::Stage;
use crate::seed::Seed;

/// How soon a call is given up that need not have reached anybody, in milliseconds, at the latest.
const SOON: usize = 30;
/// How long a call of a sick upstream is waited for.
const LATEST: Duration = Duration::from_millis(100);
/// So often it is looked whether a call has reached its upstream.
const LOOKS: Duration = Duration::from_millis(2);
/// What a client declares that leaves a question unanswered.
const CAN_BE_ASKED: &str = "{\"elicitation\":{}}";

/// How a call is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// It waits for what never comes, and is cancelled the way that its client has for it.
    Cancels,
    /// It is an ordinary one, perhaps answered at length just now, and its connection is closed.
    HangsUp,
    /// It asks its client, who is never seen again.
    LeavesQuestion,
}

/// One call that its client gives up, and what came of it.
pub(crate) async fn give_up(stage: &Stage, caller: usize, at: usize, seed: &mut Seed) -> Made {
    let how = match seed.below(100) {
        0..25 if stage.can_park(caller, at) => How::LeavesQuestion,
        0..35 if stage.callers[caller].client.is_http() => How::HangsUp,
        _ => How::Cancels,
    };
    let nonce = judge::nonce();
    let soon = Duration::from_millis(seed.below(SOON) as u64);
    let told = async {
        match how {
            How::Cancels => waits(stage, at, &nonce).await,
            How::HangsUp => tokio::time::sleep(soon).await,
            How::LeavesQuestion => std::future::pending().await,
        }
    };
    let filling = if how == How::HangsUp && seed.chance(50) { 200_000 } else { 0 };
    let (id, request) = wish(stage, (caller, at), how, &nonce, filling);
    one(stage, (caller, at), how, (id, &nonce, request), told).await
}

/// A call of an echo that is cancelled once it is told: whatever holds it, its client does not wait.
pub async fn echo_until(stage: &Stage, caller: usize, at: usize, told: impl Future<Output = ()>) -> Made {
    let nonce = judge::nonce();
    let (id, request) = request(&stage.places[at].upstream.name, &nonce, own_id(&nonce), 0);
    one(stage, (caller, at), How::Cancels, (id, &nonce, request), told).await
}

/// Until the call of this nonce waits at its upstream; a sick one need not be reached, nor one for longer than a call may take.
/// A cancellation that overtakes its call, on another connection, is not what is tried here.
async fn waits(stage: &Stage, at: usize, nonce: &str) {
    let (place, begun) = (&stage.places[at], Instant::now());
    let mut is_late = false;
    while !place.has_reached(nonce) && !is_late {
        tokio::time::sleep(LOOKS).await;
        let most = if place.is_ill() { LATEST } else { LOST_AFTER };
        is_late = begun.elapsed() > most;
    }
}

/// An id that no other call has, whatever its client is used to: a cancellation finds the newest call of an id.
fn own_id(nonce: &str) -> String {
    format!("\"given up {nonce}\"")
}

fn wish(stage: &Stage, (_, at): (usize, usize), how: How, nonce: &str, filling: usize) -> (String, Request) {
    let (upstream, id) = (&stage.places[at].upstream.name, own_id(nonce));
    match how {
        How::HangsUp => request(upstream, nonce, id, filling),
        How::Cancels => {
            let arguments = format!("{{\"nonce\":\"{nonce}\",\"gate\":\"{nonce}\"}}");
            (id.clone(), tool(&format!("{upstream}__wait"), &arguments).id(&id))
        }
        How::LeavesQuestion => {
            let arguments = format!("{{\"plan\":\"form\",\"who\":\"{nonce}\",\"nonce\":\"{nonce}\"}}");
            let asked = tool(&format!("{upstream}__ask"), &arguments).id(&id);
            (id, asked.capabilities(CAN_BE_ASKED))
        }
    }
}

/// One call, given up once it is told.
async fn one(
    stage: &Stage,
    (caller, at): (usize, usize),
    how: How,
    (id, nonce, request): (String, &str, Request),
    told: impl Future<Output = ()>,
) -> Made {
    let (place, client) = (&stage.places[at], &stage.callers[caller].client);
    let (sickness, begun) = (place.sickness(), Instant::now());
    let mut open = client.start(request).await;
    // What has an answer by then is not given up any more.
    let early = tokio::select! {
        answer = open.settles() => Some(answer),
        () = told => None,
    };
    let answer = match early {
        Some(answer) => Some(answer),
        None => {
            match how {
                How::Cancels => open.cancel().await,
                How::HangsUp => open.abandon(),
                How::LeavesQuestion => {}
            }
            // On a connection for all its client is told nothing of a call that it has cancelled.
            open.settled(if client.is_http() { LOST_AFTER } else { Duration::ZERO }).await
        }
    };
    let ends: Vec<End> = answer.map(end).into_iter().collect();
    let may_fail = place.sickness() != sickness || sickness % 2 == 1;
    let upstream = place.upstream.name.clone();
    Made {
        upstream,
        may_fail,
        given_up: true,
        id,
        nonce: nonce.into(),
        took: begun.elapsed(),
        deadline: stage.deadline,
        ends,
        caller,
        principal: stage.callers[caller].principal,
        ended: now(),
    }
}
