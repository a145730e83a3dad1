//! Has a handshake upstream keep the subscriptions that are wanted of it: one request for each resource, however many want it.

use super::requests::{Request, Requests};
use super::resources::{News, WantedSubscriptions};
use crate::call::share::SharePermit;
use crate::peer::Peer;
use crate::peer::fault::Trouble;
use crate::protocol::frame::Method;
use crate::protocol::json;
use crate::protocol::value::Object;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

struct Keeping<'a> {
    wants: &'a WantedSubscriptions,
    /// How long an answer may take.
    limit: Duration,
    peer: &'a Peer,
    news: News<'a>,
    requests: Requests,
    /// The requests that are not answered yet: never many.
    asked: Vec<Asked<'a>>,
    /// What may have changed unseen since the last life of the upstream.
    missed: BTreeSet<Arc<str>>,
}

/// A request that is not answered yet.
struct Asked<'a> {
    uri: Arc<str>,
    begins: bool,
    answer: Pin<Box<dyn Future<Output = Result<(), Trouble>> + Send + 'a>>,
    _place: SharePermit,
}

/// Keeps what is wanted for as long as the peer lives; gives what showed that it is gone.
pub(crate) async fn keep(wants: &WantedSubscriptions, peer: &Peer, limit: Duration, was_away: bool) -> Trouble {
    let missed = if was_away { wants.wanted() } else { BTreeSet::new() };
    let (news, requests) = (wants.follow(), Requests::new());
    let mut keeping = Keeping { wants, limit, peer, news, requests, asked: Vec::new(), missed };
    loop {
        keeping.begin();
        let answered = std::future::poll_fn(|cx| keeping.poll_answered(cx));
        tokio::select! {
            () = wants.changed() => {}
            (uri, begun, answer) = answered => {
                let is_taken = match answer {
                    Err(trouble) if peer.is_gone(&trouble) => return trouble,
                    answer => answer.is_ok(),
                };
                keeping.answered(&uri, begun, is_taken);
            }
        }
    }
}

impl<'a> Keeping<'a> {
    /// Asks for what is wanted and was not asked for, and takes back what nobody wants any more.
    fn begin(&mut self) {
        for uri in self.news.take() {
            self.requests.look(self.wants, &uri);
        }
        while let Some(request) = self.requests.next(self.wants) {
            self.ask(request);
        }
    }

    fn ask(&mut self, request: Request) {
        let Request { uri, begins, place } = request;
        let (limit, peer, named) = (self.limit, self.peer, uri.clone());
        let answer = Box::pin(async move {
            if !peer.offer.supports.subscribe {
                return Err(Trouble::Odd("it does not tell of changes of a resource"));
            }
            let method = if begins { Method::ResourcesSubscribe } else { Method::ResourcesUnsubscribe };
            let params = Object::parse(format!("{{\"uri\":{}}}", json::quote(&named)).into());
            let params = params.map_err(|_| Trouble::Odd("the URI cannot be written"))?;
            peer.ask(&method, &params, limit).await.map(drop)
        });
        self.asked.push(Asked { uri, begins, answer, _place: place });
    }

    /// The next answer: of what, whether it was to begin, and what it was.
    fn poll_answered(&mut self, cx: &mut Context<'_>) -> Poll<(Arc<str>, bool, Result<(), Trouble>)> {
        for at in 0..self.asked.len() {
            if let Poll::Ready(answer) = self.asked[at].answer.as_mut().poll(cx) {
                let Asked { uri, begins, .. } = self.asked.remove(at);
                return Poll::Ready((uri, begins, answer));
            }
        }
        Poll::Pending
    }

    fn answered(&mut self, uri: &Arc<str>, begun: bool, is_taken: bool) {
        let wants = self.wants;
        self.requests.answered(wants, uri, begun, is_taken);
        if begun && self.missed.remove(uri) {
            // Told once it is heard again, so that nothing falls between.
            wants.missed(uri);
        }
    }
}
