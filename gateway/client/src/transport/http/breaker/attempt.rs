//! One attempt of a request, from the breaker's verdict to its outcome; and what outcomes say of the upstream.

use super::verdict::seconds;
use crate::health::{Cause, CauseCode};
use crate::protocol::frame::message::Body;
use crate::transport::condition::Condition;
use crate::transport::events::LinkEvents;
use crate::transport::exchange::Lost;
use crate::transport::http::client::HttpClient;
use crate::transport::http::session::HttpSession;
use crate::transport::http::status::{HttpStatusError, StatusClass};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// One attempt of a request: begun where the breaker allows it, sent, and ended with its outcome.
pub(crate) struct Attempt {
    http: Arc<HttpSession>,
    /// The epoch of connections in which it began: it ends with that.
    pub(crate) epoch: u64,
    /// Whether it is the one that tries whether the upstream is well again.
    is_probe: bool,
    /// Whether a failure of it is told: its caller may be the only one who hears of it.
    is_told: bool,
    /// Whether it opens a session that a client has beside the gateway's.
    opens_for_client: bool,
}

impl Attempt {
    /// Begins one, where it may be sent now.
    pub(crate) fn begin(http: &Arc<HttpSession>, listens: bool) -> Result<Self, Lost> {
        let (wire, is_met) = (&http.wire, http.is_met());
        let is_probe = wire.breaker.is_marked() && wire.breaker.admits(is_met)?;
        let opens_for_client = !is_met && http.is_of_clients();
        let is_told = is_met && !listens;
        Ok(Self { http: http.clone(), epoch: wire.epoch.number(), is_probe, is_told, opens_for_client })
    }

    /// Why nothing of it may be sent any more, if its epoch has ended.
    pub(crate) fn may_go_on(&self) -> Result<(), Lost> {
        self.http.wire.epoch.ended(self.epoch).map_or(Ok(()), |why| Err(Lost::Unsent(why)))
    }

    /// Ends it. If its epoch has ended meanwhile the outcome says so, and nothing of the upstream.
    pub(crate) fn end(self, outcome: &mut Result<Body, Lost>) {
        let wire = &self.http.wire;
        if outcome.as_mut().is_err_and(|lost| wire.epoch.explain(self.epoch, lost)) {
            return;
        }
        // The upstream has not failed: its client has to get another token.
        if outcome.as_ref().is_err_and(|lost| lost.text().codes().contains(&CauseCode::ClientTokenRefused)) {
            return;
        }
        // An upstream that opens no further session serves those that there are.
        if !(self.opens_for_client && matches!(outcome, Err(Lost::Status(_)))) {
            judge(wire, outcome);
        }
        if self.is_told {
            tell(&*wire.inbox, outcome);
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if self.is_probe {
            self.http.wire.breaker.untried();
        }
    }
}

/// What an outcome says of the upstream: a bare server error, or a connection that did not hold, is a failure of it.
fn judge(client: &HttpClient, outcome: &Result<Body, Lost>) {
    let failure = match outcome {
        // As one that answers 429: it works, and has enough of us.
        Err(Lost::Unknown(why)) if why.code() == CauseCode::RateLimited => return,
        // An upstream may close a connection that was idle.
        Err(Lost::Unknown(why)) if why.code() == CauseCode::ReusedConnectionLost => return,
        Err(Lost::Unknown(why) | Lost::Unsent(why)) => Some(why),
        Err(Lost::Status(refusal)) => match refusal.class() {
            // It works, and has enough of us.
            StatusClass::Busy => return,
            class if class.is_failure() => Some(&refusal.text),
            _ => None,
        },
        _ => None,
    };
    if failure.is_none() && !client.breaker.is_marked() {
        return;
    }
    let _shown_next = client.breaker.shows();
    match failure {
        None if client.breaker.answered() => client.inbox.set_condition(Condition::Failing, None),
        None => {}
        Some(why) => {
            if let Some(told) = client.breaker.failed(Instant::now(), why) {
                client.inbox.set_condition(Condition::Failing, Some(&told));
            }
        }
    }
}

/// Whatever is no answer is counted, and said now and then: its caller may be the only one who hears of it.
fn tell(inbox: &dyn LinkEvents, outcome: &Result<Body, Lost>) {
    match outcome {
        Err(Lost::Odd(why)) => inbox.violated("no_answer", &why.full()),
        Err(Lost::Unknown(why)) => inbox.failed("broken", why.code(), &why.full()),
        Err(Lost::Unsent(why)) => inbox.failed("unreachable", why.code(), &why.full()),
        Err(Lost::Status(refusal)) => inbox.failed("status", refusal.text.code(), &refusal.text.full()),
        _ => {}
    }
}

/// The upstream has taken a request.
pub(crate) fn admitted(client: &HttpClient) {
    if !client.credentials.is_refusing() {
        return;
    }
    let _shown_next = client.breaker.shows();
    if client.credentials.taken() {
        client.inbox.set_condition(Condition::Denied, None);
    }
}

/// The upstream has refused a request; where that speaks of credentials it is shown, and what to do.
pub(crate) fn denied(client: &HttpClient, why: &HttpStatusError) {
    let _shown_next = client.breaker.shows();
    if client.credentials.refused(why.class()) {
        let cause = Cause::new(CauseCode::CredentialsRejected, "credentials rejected: ").then(&why.text);
        client.inbox.set_condition(Condition::Denied, Some(&cause));
    }
}

/// The upstream wants to be left alone for so long, and why: shown until then.
pub(crate) fn pause(client: &Arc<HttpClient>, pause: Duration, why: &Cause) {
    let until = Instant::now() + pause;
    let shown_next = client.breaker.shows();
    if !client.breaker.pause(until) {
        return;
    }
    let said = format!("rate-limited by the upstream (Retry-After {}): ", seconds(pause));
    let told = Cause::new(CauseCode::RateLimited, said).then(why);
    client.inbox.set_condition(Condition::Resting, Some(&told));
    drop(shown_next);
    let of = client.clone();
    client.tasks.spawn_until_end(async move {
        sleep_until(until).await;
        let _shown_next = of.breaker.shows();
        if of.breaker.resumed(until) {
            of.inbox.set_condition(Condition::Resting, None);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::verdict::Verdict;
    use super::*;
    use crate::config::BreakerConfig;
    use crate::config::Remote;
    use crate::runtime::Tasks;
    use crate::transport::http::Breaker;
    use crate::transport::recorder::Recorder;
    use std::sync::Barrier;

    /// So often two outcomes come at the same time.
    const ROUNDS: usize = 5_000;

    /// An upstream with a breaker that opens after so many failures.
    fn stage(failures: u32) -> (Arc<Recorder>, Arc<HttpClient>) {
        let recorder = Arc::<Recorder>::default();
        let breaker = Breaker::new(Some(BreakerConfig { failures, open_for: Duration::from_secs(3600) }));
        let remote = Remote::new("http://127.0.0.1:1/mcp".parse().unwrap(), http::HeaderMap::new());
        let wire = HttpClient::new((&remote, None), 4096, breaker.into(), recorder.clone(), Tasks::new()).unwrap();
        (recorder, wire)
    }

    #[tokio::test]
    async fn whether_an_upstream_answers_or_only_asks_for_calm_is_told_apart() {
        let (_recorder, wire) = stage(2);
        let calm = || Err(Lost::Unknown(Cause::new(CauseCode::RateLimited, "ENHANCE_YOUR_CALM")));
        let closed =
            || Err(Lost::Unknown(Cause::new(CauseCode::ReusedConnectionLost, "it closed the idle connection")));
        (0..10).for_each(|_| judge(&wire, &closed()));
        assert!(!wire.breaker.is_marked(), "it may close an idle connection");
        let broke = || Err(Lost::Unknown(Cause::new(CauseCode::ConnectionLost, "it was reset")));
        (0..10).for_each(|_| judge(&wire, &calm()));
        assert!(!wire.breaker.is_marked(), "it works, and has enough of us");
        judge(&wire, &broke());
        judge(&wire, &calm());
        assert!(wire.breaker.is_marked(), "nor is that an answer");
        judge(&wire, &broke());
        assert!(matches!(wire.breaker.verdict(Instant::now(), true), Verdict::Reject(..)));
    }

    #[tokio::test]
    async fn an_open_breaker_is_shown_and_a_closed_one_is_not_although_outcomes_cross() {
        let ((recorder, wire), turn) = (stage(1), Barrier::new(2));
        let outcomes = |outcome: Result<Body, Lost>| {
            for _ in 0..ROUNDS {
                turn.wait();
                judge(&wire, &outcome);
                turn.wait();
                let is_open = wire.breaker.is_marked();
                assert_eq!(recorder.condition(Condition::Failing).is_some(), is_open);
            }
        };
        std::thread::scope(|threads| {
            threads.spawn(|| outcomes(Err(Lost::Unknown("it was reset".into()))));
            outcomes(Err(Lost::Odd("an answer".into())));
        });
    }
}
