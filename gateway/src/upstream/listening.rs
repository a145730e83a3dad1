//! A listen call's reply, and the task that has the live peer keep what listeners want.

use super::fault::Trouble;
use super::link::{Arrival, Exchange};
use super::peer::{self, Peer};
use super::standing::Standing;
use crate::call::{Change, Event, ListenFilter, Outcome, Source, Step};
use crate::protocol::{Method, Object, Revision};
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_util::sync::WaitForCancellationFutureOwned;

/// How long the upstream has to say what it honours.
const SETTLE_MAX: Duration = Duration::from_secs(5);
/// How long after a stream of changes ended another is opened, first and at most.
const REOPEN_MIN: Duration = Duration::from_millis(250);
const REOPEN_MAX: Duration = Duration::from_secs(30);

/// What a listen call's reply is read from.
pub(crate) struct ListenSource {
    standing: Arc<Standing>,
    key: usize,
    revision: Revision,
    /// Until the upstream has said what it honours.
    settle: Option<Pin<Box<Sleep>>>,
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl ListenSource {
    pub(crate) fn new(standing: &Arc<Standing>, filter: ListenFilter, revision: Revision) -> Self {
        let key = standing.wants.listen(filter.uris);
        let stopped = Box::pin(standing.stopped.clone().cancelled_owned());
        Self { standing: standing.clone(), key, revision, settle: Some(Box::pin(sleep(SETTLE_MAX))), stopped }
    }
}

impl Source for ListenSource {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let this = &mut *self;
        if this.stopped.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Step::Done(Outcome::Complete(Object::empty())));
        }
        let change = match &mut this.settle {
            Some(settle) => {
                let is_late = settle.as_mut().poll(cx).is_ready();
                let uris = std::task::ready!(this.standing.wants.poll_honoured(this.key, is_late, cx));
                this.settle = None;
                Change::Acknowledged(ListenFilter { uris, ..ListenFilter::default() })
            }
            None => Change::Updated(std::task::ready!(this.standing.wants.poll_updated(this.key, cx))),
        };
        Poll::Ready(Step::Event(Event::Change(change)))
    }

    fn revision(&self) -> Revision {
        self.revision
    }
}

impl Drop for ListenSource {
    fn drop(&mut self) {
        self.standing.wants.leave(self.key);
    }
}

/// Has a peer keep what is wanted, for as long as it lives.
pub(crate) async fn keep(standing: Arc<Standing>, peer: Arc<Peer>, was_away: bool) {
    if was_away {
        standing.wants.all_updated();
    }
    if peer.revision().is_modern() {
        let trouble = modern(&standing, &peer).await;
        if let Trouble::Lost(lost) = &trouble {
            standing.noticed(&peer, lost);
        }
    } else {
        legacy(&standing, &peer).await;
    }
}

async fn legacy(standing: &Standing, peer: &Peer) {
    let mut active: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut refused: BTreeSet<Arc<str>> = BTreeSet::new();
    loop {
        if let Some(level) = standing.wants.level() {
            peer.set_level(level);
        }
        let wanted = standing.wants.wanted();
        // Who comes later to what was refused is asked for anew, once those who were refused have let go.
        refused.retain(|uri| wanted.contains(uri));
        let unknown: Vec<_> = wanted.iter().filter(|uri| !active.contains(*uri) && !refused.contains(*uri)).collect();
        for uri in unknown {
            let answer = subscribe(standing, peer, &Method::ResourcesSubscribe, uri).await;
            if answer.as_ref().is_err_and(|trouble| peer.is_gone(trouble)) {
                return;
            }
            standing.wants.settled(uri, answer.is_ok());
            if answer.is_ok() {
                active.insert(uri.clone())
            } else {
                refused.insert(uri.clone())
            };
        }
        for uri in active.difference(&wanted) {
            let _ = subscribe(standing, peer, &Method::ResourcesUnsubscribe, uri).await;
        }
        active.retain(|uri| wanted.contains(uri));
        standing.wants.changed().await;
    }
}

async fn subscribe(standing: &Standing, peer: &Peer, method: &Method, uri: &str) -> Result<(), Trouble> {
    if !peer.offer.supports.subscribe {
        return Err(Trouble::Odd("it does not tell of changes of a resource"));
    }
    let params = format!("{{\"uri\":{}}}", crate::protocol::json::quote(uri));
    let params = Object::parse(params.into()).map_err(|_| Trouble::Odd("the URI cannot be written"))?;
    peer.ask(method, &params, standing.ask_limit()).await.map(drop)
}

/// One stream of changes for all that is wanted; a change of wants opens the next before this one is let go. Returns what
/// showed that the peer is gone.
async fn modern(standing: &Standing, peer: &Peer) -> Trouble {
    let mut open: Option<(Exchange, ListenFilter)> = None;
    let mut delay = REOPEN_MIN;
    let mut since = Instant::now();
    loop {
        let filter = wanted_of(standing, peer);
        if open.as_ref().is_none_or(|(_, honoured)| *honoured != filter) {
            match listen(standing, peer, &filter).await {
                Ok(exchange) => {
                    since = Instant::now();
                    open = exchange.map(|exchange| (exchange, filter));
                }
                Err(trouble) if peer.is_gone(&trouble) => return trouble,
                Err(trouble) => {
                    tracing::debug!(upstream = &*standing.name, %trouble, "the upstream does not tell of changes");
                    filter.uris.iter().for_each(|uri| standing.wants.settled(uri, false));
                    // It is not asked again for what it refused, but for what is wanted next.
                    standing.wants.changed().await;
                    continue;
                }
            }
        }
        let ended = async {
            match &mut open {
                Some((exchange, _)) => exchange.answer().await.map(drop),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = standing.wants.changed() => {}
            _ = ended => {
                open = None;
                delay = if since.elapsed() >= REOPEN_MAX { REOPEN_MIN } else { (delay * 2).min(REOPEN_MAX) };
                sleep(delay.mul_f64(0.5 + super::backoff::random() / 2.0)).await;
                // What happened meanwhile was missed.
                standing.reads.mark(super::reads::Kinds::ALL);
                standing.wants.all_updated();
            }
        }
    }
}

/// What a stateless upstream is asked to tell of.
fn wanted_of(standing: &Standing, peer: &Peer) -> ListenFilter {
    let supports = peer.offer.supports;
    let uris = if supports.subscribe { standing.wants.wanted().into_iter().collect() } else { Vec::new() };
    if !supports.subscribe {
        standing.wants.wanted().iter().for_each(|uri| standing.wants.settled(uri, false));
    }
    ListenFilter { tools: supports.tools, prompts: supports.prompts, resources: supports.resources, uris }
}

/// Opens a stream of changes and waits until it was taken; none where nothing is wanted.
async fn listen(standing: &Standing, peer: &Peer, filter: &ListenFilter) -> Result<Option<Exchange>, Trouble> {
    if *filter == ListenFilter::default() {
        return Ok(None);
    }
    let mut exchange = peer.start(&Method::Listen, &filter.to_params()).map_err(Trouble::Lost)?;
    let taken = async {
        loop {
            match exchange.next().await {
                Arrival::Acknowledged(params) => return Ok(params),
                Arrival::Response(body) => {
                    peer::result_of(body, peer.revision())?;
                    return Err(Trouble::Odd("it ended the stream of changes before it took it"));
                }
                Arrival::Lost(lost) => return Err(Trouble::Lost(lost)),
                _ => {}
            }
        }
    };
    let params = timeout(standing.ask_limit(), taken).await.map_err(|_| Trouble::Late(standing.ask_limit()))??;
    let honoured = ListenFilter::parse(&params).unwrap_or_default();
    for uri in &filter.uris {
        standing.wants.settled(uri, honoured.uris.contains(uri));
    }
    Ok(Some(exchange))
}
