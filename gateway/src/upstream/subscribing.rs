//! Has a handshake upstream keep the subscriptions that are wanted of it: one request for each resource, however many want it.

use super::fault::Trouble;
use super::peer::Peer;
use super::standing::Standing;
use crate::protocol::{Method, Object, json};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// So many subscriptions are asked for at once: one that is not answered holds up nobody else's.
const ASKED_MAX: usize = 32;

/// Where one resource stands with the upstream.
enum State<'a> {
    /// It was asked to begin, or to end, and has not answered.
    Asked { begins: bool, answer: Pin<Box<dyn Future<Output = Result<(), Trouble>> + Send + 'a>> },
    /// It tells of changes.
    Active,
    /// It will not. Asked anew once those who were refused have let go.
    Refused,
}

struct Keeping<'a> {
    standing: &'a Standing,
    peer: &'a Peer,
    states: BTreeMap<Arc<str>, State<'a>>,
    /// What may have changed unseen since the last life of the upstream.
    missed: BTreeSet<Arc<str>>,
}

/// Keeps what is wanted for as long as the peer lives.
pub(crate) async fn keep(standing: &Standing, peer: &Peer, was_away: bool) {
    let missed = if was_away { standing.wants.wanted() } else { BTreeSet::new() };
    let mut keeping = Keeping { standing, peer, states: BTreeMap::new(), missed };
    loop {
        keeping.begin();
        let answered = std::future::poll_fn(|cx| keeping.poll_answered(cx));
        tokio::select! {
            () = standing.wants.changed() => {}
            (uri, begun, answer) = answered => {
                if answer.as_ref().is_err_and(|trouble| peer.is_gone(trouble)) {
                    return;
                }
                keeping.answered(uri, begun, answer.is_ok());
            }
        }
    }
}

impl<'a> Keeping<'a> {
    /// Asks for what is wanted and was not asked for, and takes back what nobody wants any more.
    fn begin(&mut self) {
        let wanted = self.standing.wants.wanted();
        self.states.retain(|uri, state| !matches!(state, State::Refused) || wanted.contains(uri));
        let asked = self.states.values().filter(|state| matches!(state, State::Asked { .. })).count();
        let mut room = ASKED_MAX.saturating_sub(asked);
        for uri in &wanted {
            match self.states.get(uri) {
                None if room > 0 => {
                    room -= 1;
                    self.ask(uri.clone(), true);
                }
                // Whoever came to what is there already waits for nothing.
                Some(State::Active) => self.standing.wants.settled(uri, true),
                Some(State::Refused) => self.standing.wants.settled(uri, false),
                None | Some(State::Asked { .. }) => {}
            }
        }
        let is_over = |(uri, state): &(&Arc<str>, &State<'_>)| matches!(state, State::Active) && !wanted.contains(*uri);
        let over: Vec<_> = self.states.iter().filter(is_over).map(|(uri, _)| uri.clone()).take(room).collect();
        over.into_iter().for_each(|uri| self.ask(uri, false));
    }

    fn ask(&mut self, uri: Arc<str>, begins: bool) {
        let (standing, peer, named) = (self.standing, self.peer, uri.clone());
        let answer = Box::pin(async move {
            if !peer.offer.supports.subscribe {
                return Err(Trouble::Odd("it does not tell of changes of a resource"));
            }
            let method = if begins { Method::ResourcesSubscribe } else { Method::ResourcesUnsubscribe };
            let params = Object::parse(format!("{{\"uri\":{}}}", json::quote(&named)).into());
            let params = params.map_err(|_| Trouble::Odd("the URI cannot be written"))?;
            peer.ask(&method, &params, standing.ask_limit()).await.map(drop)
        });
        self.states.insert(uri, State::Asked { begins, answer });
    }

    /// The next answer: of what, whether it was to begin, and what it was.
    fn poll_answered(&mut self, cx: &mut Context<'_>) -> Poll<(Arc<str>, bool, Result<(), Trouble>)> {
        for (uri, state) in &mut self.states {
            if let State::Asked { begins, answer } = state
                && let Poll::Ready(answer) = answer.as_mut().poll(cx)
            {
                return Poll::Ready((uri.clone(), *begins, answer));
            }
        }
        Poll::Pending
    }

    fn answered(&mut self, uri: Arc<str>, begun: bool, is_taken: bool) {
        if !begun {
            self.states.remove(&uri);
            return;
        }
        self.standing.wants.settled(&uri, is_taken);
        if self.missed.remove(&uri) {
            // Told once it is heard again, so that nothing falls between.
            self.standing.wants.missed(&uri);
        }
        self.states.insert(uri, if is_taken { State::Active } else { State::Refused });
    }
}
