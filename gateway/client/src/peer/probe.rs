//! Which era an upstream speaks: asked once per link, remembered with an age limit.

use super::discover::Verdict;
use super::fault::{Fault, FaultKind};
use super::profile::{Offer, Peer};
pub use super::tools_only::meet as meet_tools_only;
use super::{discover, handshake, tools_only};
use crate::config::EraChoice;
use crate::health::{Cause, CauseCode};
use crate::protocol::capabilities::beyond::Declared;
use crate::protocol::frame::message::Body;
use crate::protocol::frame::rpc_error::{METHOD_NOT_FOUND, RpcError, UNSUPPORTED_REVISION};
use crate::protocol::revision::Era;
use crate::runtime::timer::late::within;
use crate::transport::exchange::Lost;
use crate::transport::http::StatusClass;
use crate::transport::link::Link;
use std::time::Duration;
use tokio::time::Instant;

/// How long a silent pipe is waited for before the handshake is tried on it too.
const SILENCE: Duration = Duration::from_secs(3);
/// How long a verdict holds.
const AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// What is remembered of an upstream's era; only a valid answer is.
#[derive(Debug, Clone, Copy, Default)]
pub struct EraMemory(Option<(Era, Instant)>);

/// How an upstream is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbePlan {
    /// It is asked, and believed.
    Ask,
    /// It is offered a handshake, and asked where it refuses that.
    HandshakeFirst,
    /// Handshake at once.
    Handshake,
    /// Never a handshake.
    Discover,
    /// A handshake, where it is known already that the upstream can be spoken to without one.
    HandshakeToo,
}

impl EraMemory {
    /// How to meet the upstream now, where nothing is known in this era first.
    pub fn plan(&self, choice: EraChoice, first: Era, now: Instant) -> ProbePlan {
        match (choice, self.0) {
            (EraChoice::Legacy, _) => ProbePlan::Handshake,
            (EraChoice::Modern, _) => ProbePlan::Discover,
            (EraChoice::Auto, Some((era, at))) if now.duration_since(at) < AGE_MAX => match era {
                Era::Legacy => ProbePlan::Handshake,
                Era::Modern => ProbePlan::Discover,
            },
            (EraChoice::Auto, _) => match first {
                Era::Legacy => ProbePlan::HandshakeFirst,
                Era::Modern => ProbePlan::Ask,
            },
        }
    }

    /// The upstream has answered in this era.
    pub fn note(&mut self, era: Era, now: Instant) {
        // The age counts from the first answer: a verdict that only confirms itself would never be questioned.
        if self.0.is_none_or(|(known, at)| known != era || now.duration_since(at) >= AGE_MAX) {
            self.0 = Some((era, now));
        }
    }

    /// What was remembered has failed.
    pub fn forget(&mut self) {
        self.0 = None;
    }
}

/// Meets the upstream on a new link; a handshake `declares` what it may ask. The caller bounds the time.
pub async fn meet(link: &Link, plan: ProbePlan, declares: &Declared) -> Result<Peer, Fault> {
    let offer = match plan {
        ProbePlan::Ask => ask(link, declares).await?,
        ProbePlan::Handshake => shake(link, declares).await?,
        ProbePlan::HandshakeFirst => shake_first(link, declares).await?,
        ProbePlan::HandshakeToo => initialize(link, declares).await.map_err(|(fault, _)| fault)?,
        ProbePlan::Discover => discover(link).await?,
    };
    let peer = Peer::new(link.clone(), offer);
    if !peer.revision().is_modern() {
        match handshake::initialized(link).await {
            Err(lost @ (Lost::Unsent(_) | Lost::Session(_))) => return Err((&lost).into()),
            // Some refuse the notice and work all the same; whoever does not will say so of the next request.
            Err(lost) => {
                tracing::debug!(cause = &*lost.text().full(), "the upstream did not accept the end of the handshake")
            }
            Ok(()) => {}
        }
    }
    Ok(peer)
}

async fn shake(link: &Link, declares: &Declared) -> Result<Offer, Fault> {
    match initialize(link, declares).await {
        Err((fault, Unmet::Unknown)) if !link.is_pipe() => tools_only::listed(link).await.map_err(|_| fault),
        read => read.map_err(|(fault, _)| fault),
    }
}

/// What opens a process pins it to an era: whoever takes a handshake is not asked anything before.
async fn shake_first(link: &Link, declares: &Declared) -> Result<Offer, Fault> {
    let (fault, why) = match initialize(link, declares).await {
        Ok(offer) => return Ok(offer),
        Err(unmet) => unmet,
    };
    if why == Unmet::Otherwise {
        return Err(fault);
    }
    match discover(link).await {
        Ok(offer) => Ok(offer),
        Err(_) if why == Unmet::Unknown && !link.is_pipe() => tools_only::listed(link).await.map_err(|_| fault),
        Err(_) => Err(fault),
    }
}

/// Why a handshake came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unmet {
    /// There is no such thing as `initialize` there.
    Unknown,
    /// The upstream has said that it needs none.
    Stateless,
    Otherwise,
}

async fn initialize(link: &Link, declares: &Declared) -> Result<Offer, (Fault, Unmet)> {
    let exchange = handshake::initialize(link, declares);
    let mut exchange = exchange.map_err(|lost| (Fault::from(&lost), Unmet::Otherwise))?;
    let answer = exchange.answer().await;
    handshake::read_initialize(&answer).map_err(|fault| (fault, why(&answer)))
}

fn why(answer: &Result<Body, Lost>) -> Unmet {
    match answer {
        Ok(Body::Error(raw)) => match RpcError::from_raw(raw.clone()).code() {
            Some(METHOD_NOT_FOUND) => Unmet::Unknown,
            Some(UNSUPPORTED_REVISION) => Unmet::Stateless,
            _ => Unmet::Otherwise,
        },
        Err(Lost::Status(refusal)) => match refusal.class() {
            StatusClass::NotThere | StatusClass::Refused | StatusClass::Unsupported => Unmet::Unknown,
            _ => Unmet::Otherwise,
        },
        _ => Unmet::Otherwise,
    }
}

async fn discover(link: &Link) -> Result<Offer, Fault> {
    let mut exchange = discover::discover(link).map_err(|lost| Fault::from(&lost))?;
    match discover::read_discover(&exchange.answer().await) {
        Verdict::Modern(offer) => Ok(*offer),
        Verdict::Legacy => {
            let said = "it does not answer `server/discover`, as a stateless upstream must";
            Err(Fault::passing(Cause::new(CauseCode::HandshakeInvalid, said)))
        }
        Verdict::Foreign(fault) | Verdict::Nothing(fault) => Err(fault),
    }
}

async fn ask(link: &Link, declares: &Declared) -> Result<Offer, Fault> {
    let mut asked = discover::discover(link).map_err(|lost| Fault::from(&lost))?;
    // Only on a pipe is silence an answer: over HTTP a time-out may be anyone's.
    let silence = if link.is_pipe() { SILENCE } else { Duration::MAX };
    let answer = match within(silence, asked.answer()).await {
        Ok(answer) => answer,
        Err(_) => return both(link, asked, declares).await,
    };
    match discover::read_discover(&answer) {
        Verdict::Modern(offer) => Ok(*offer),
        Verdict::Legacy => shake(link, declares).await.map_err(|fault| ended(link, fault)),
        Verdict::Foreign(fault) => Err(fault),
        Verdict::Nothing(fault) => Err(ended(link, fault)),
    }
}

/// Neither silence nor a refusal is final: the first valid answer of either wins.
async fn both(link: &Link, mut asked: crate::transport::link::Exchange, declares: &Declared) -> Result<Offer, Fault> {
    let mut shaken = handshake::initialize(link, declares).map_err(|lost| ended(link, Fault::from(&lost)))?;
    let (mut no_discovery, mut no_handshake) = (false, None);
    loop {
        tokio::select! {
            answer = asked.answer(), if !no_discovery => match discover::read_discover(&answer) {
                Verdict::Modern(offer) => {
                    // A handshake may not be cancelled; its answer is let go.
                    shaken.detach();
                    return Ok(*offer);
                }
                _ => no_discovery = true,
            },
            answer = shaken.answer(), if no_handshake.is_none() => match handshake::read_initialize(&answer) {
                Ok(offer) => {
                    // Before the handshake's end a legacy upstream is not told of a cancellation either.
                    asked.detach();
                    return Ok(offer);
                }
                Err(fault) => no_handshake = Some(fault),
            },
        }
        if let (true, Some(fault)) = (no_discovery, &no_handshake) {
            return Err(ended(link, fault.clone()));
        }
    }
}

/// A child that ended when it was asked is started again and not asked.
fn ended(link: &Link, fault: Fault) -> Fault {
    if link.is_closed() { Fault { kind: FaultKind::EndedWhenAsked, ..fault } } else { fault }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_grows_old_and_a_choice_stands_above_it() {
        let now = Instant::now();
        let mut memory = EraMemory::default();
        assert_eq!(memory.plan(EraChoice::Auto, Era::Modern, now), ProbePlan::Ask);
        memory.note(Era::Legacy, now);
        assert_eq!(memory.plan(EraChoice::Auto, Era::Modern, now), ProbePlan::Handshake);
        assert_eq!(memory.plan(EraChoice::Modern, Era::Modern, now), ProbePlan::Discover);
        memory.note(Era::Legacy, now + AGE_MAX / 2);
        assert_eq!(memory.plan(EraChoice::Auto, Era::Modern, now + AGE_MAX), ProbePlan::Ask);
        memory.forget();
        assert_eq!(memory.plan(EraChoice::Auto, Era::Modern, now), ProbePlan::Ask);
    }
}
