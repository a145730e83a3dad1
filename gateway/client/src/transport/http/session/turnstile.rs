//! Keeps a session's calls behind the level of log messages that was set for them: over HTTP, requests overtake each other.

use crate::protocol::frame::Method;
use crate::transport::exchange::Request;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// So long a call waits for the answer to a level: an upstream that does not answer costs its own calls no more than that.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// What drives a request.
pub(crate) type Drive = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The newest level that was set, until it is answered.
#[derive(Debug, Default)]
pub(crate) struct Turnstile {
    /// Whether a level was set and may not have been answered: whoever finds none takes no lock.
    is_shut: AtomicBool,
    answered: Mutex<Option<CancellationToken>>,
}

impl Turnstile {
    /// Has a request follow the level before it, where it is about log messages. What drives it is boxed already: it is large, and
    /// each hand that it passes through would copy it.
    pub(crate) fn behind(&self, request: &Request<'_>, drive: Drive) -> Drive {
        let sets = *request.method == Method::SetLevel;
        if !sets && (request.logs.is_none() || !self.is_shut.load(Ordering::Acquire)) {
            return drive;
        }
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let before = answered.clone().filter(|before| !before.is_cancelled());
        let opens = sets.then(|| answered.insert(CancellationToken::new()).clone().drop_guard());
        self.is_shut.store(sets || before.is_some(), Ordering::Release);
        drop(answered);
        Box::pin(async move {
            if let Some(before) = before {
                // Late or not, the call goes on: at worst it says less.
                let _late = timeout(WAIT_MAX, before.cancelled()).await;
            }
            drive.await;
            drop(opens);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::LogLevel;
    use crate::protocol::value::Object;
    use std::sync::Arc;
    use std::task::{Context, Waker};
    use tokio::time::Instant;

    fn is_ready(driven: &mut Drive) -> bool {
        driven.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    fn call(turnstile: &Turnstile, logs: Option<LogLevel>) -> Drive {
        let nothing = Object::empty();
        turnstile.behind(&Request { logs, ..Request::new(&Method::ToolsCall, &nothing, None) }, Box::pin(async {}))
    }

    /// A level that is set, answered once the token says so.
    fn level(turnstile: &Turnstile) -> (Drive, CancellationToken) {
        let (answer, nothing) = (CancellationToken::new(), Object::empty());
        let answered = answer.clone().cancelled_owned();
        (turnstile.behind(&Request::new(&Method::SetLevel, &nothing, None), Box::pin(answered)), answer)
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_wants_messages_goes_out_behind_the_level_and_others_at_once() {
        let turnstile = Turnstile::default();
        assert!(is_ready(&mut call(&turnstile, Some(LogLevel::Info))));
        let (mut set, answer) = level(&turnstile);
        let mut waits = call(&turnstile, Some(LogLevel::Info));
        assert!(!is_ready(&mut set) && !is_ready(&mut waits));
        assert!(is_ready(&mut call(&turnstile, None)));
        answer.cancel();
        assert!(is_ready(&mut set) && is_ready(&mut waits));
        assert!(is_ready(&mut call(&turnstile, Some(LogLevel::Info))));
        assert!(!turnstile.is_shut.load(Ordering::Relaxed), "and later ones take no lock");
    }

    #[tokio::test(start_paused = true)]
    async fn levels_keep_their_order_and_one_that_is_never_answered_holds_up_nobody_for_long() {
        let turnstile = Turnstile::default();
        let (mut stuck, _never) = level(&turnstile);
        let sent = Arc::new(AtomicBool::new(false));
        let (noted, nothing) = (sent.clone(), Object::empty());
        let next = async move { noted.store(true, Ordering::Relaxed) };
        let mut next = turnstile.behind(&Request::new(&Method::SetLevel, &nothing, None), Box::pin(next));
        assert!(!is_ready(&mut stuck) && !is_ready(&mut next) && !sent.load(Ordering::Relaxed));
        let start = Instant::now();
        next.await;
        assert!(sent.load(Ordering::Relaxed));
        assert_eq!(start.elapsed().as_secs(), 1);
        drop(stuck);
        assert!(is_ready(&mut call(&turnstile, Some(LogLevel::Info))));
    }
}
