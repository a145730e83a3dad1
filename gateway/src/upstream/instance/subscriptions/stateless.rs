//! Has a stateless upstream tell of all that is wanted, by few streams; a change of wants opens the next before one is let go.

use super::fading::Fading;
use super::resources::{News, WantedSubscriptions};
use super::stream_plan::{NextStream, StreamPlan};
use crate::call::ListenFilter;
use crate::peer::fault::Trouble;
use crate::peer::{Peer, profile};
use crate::protocol::frame::Method;
use crate::protocol::frame::rpc_error::METHOD_NOT_FOUND;
use crate::runtime::timer::late::within;
use crate::transport::exchange::Lost;
use crate::transport::exchange::mailbox::Arrival;
use crate::transport::link::Exchange;
use crate::upstream::backoff;
use crate::upstream::config::Config;
use crate::upstream::instance::inventory::schedule::{ListKinds, ReadSchedule};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

/// How long after a stream of changes ended, or was not to be had just then, the next is opened: first and at most.
const REOPEN_MIN: Duration = Duration::from_millis(250);
const REOPEN_MAX: Duration = Duration::from_secs(30);

/// A stream that is open.
struct Open {
    exchange: Exchange,
    since: Instant,
}

struct Keeping<'a> {
    upstream: &'a str,
    wants: &'a WantedSubscriptions,
    reads: &'a ReadSchedule,
    /// How long an answer may take.
    limit: Duration,
    peer: &'a Peer,
    news: News<'a>,
    plan: StreamPlan,
    /// The streams of the plan: never many.
    open: Vec<Open>,
    /// The older ones, which are heard for a while more.
    fading: Fading<'a>,
    /// It would not open a stream for what is wanted now.
    is_refused: bool,
    delay: Duration,
    /// When a stream is next tried for, where that failed for now.
    next: Option<Instant>,
    /// Changes may have been missed.
    owes: bool,
    /// Hears of the first stream.
    settled: Option<oneshot::Sender<()>>,
}

/// What happens to the streams that are kept.
enum Happened {
    Wants,
    Ended,
    Due,
}

/// Keeps streams open for as long as the peer lives; returns what showed that it is gone.
pub(super) async fn keep(
    (wants, reads): (&WantedSubscriptions, &ReadSchedule),
    config: &Config,
    peer: &Peer,
    was_away: bool,
    settled: oneshot::Sender<()>,
) -> Trouble {
    let mut keeping = Keeping {
        upstream: &config.name,
        wants,
        reads,
        limit: config.ask_limit(),
        peer,
        news: wants.follow(),
        plan: StreamPlan::default(),
        open: Vec::new(),
        fading: Fading::new(wants),
        is_refused: false,
        delay: REOPEN_MIN,
        next: None,
        owes: was_away,
        settled: Some(settled),
    };
    loop {
        if let Err(gone) = keeping.settle().await {
            return gone;
        }
        if keeping.next.is_none() {
            keeping.begun();
        }
        match keeping.happens().await {
            Happened::Wants | Happened::Due => {}
            // The next is opened after a while, and what was missed is made good then.
            Happened::Ended => keeping.next = Some(Instant::now() + keeping.pause()),
        }
    }
}

impl Keeping<'_> {
    /// Has the open streams be what is wanted.
    async fn settle(&mut self) -> Result<(), Trouble> {
        self.look();
        if self.next.is_some_and(|next| Instant::now() < next) {
            return Ok(());
        }
        self.next = None;
        while !self.is_refused
            && let Some(NextStream { filter, replaces }) = self.plan.next(&lists_of(self.peer))
        {
            if filter == ListenFilter::default() {
                self.replaced(&replaces, false);
                continue;
            }
            match self.listen(&filter).await {
                Ok((open, honoured)) => {
                    self.plan.opened(self.wants, open.exchange.id(), &filter, &honoured);
                    self.replaced(&replaces, true);
                    self.open.push(open);
                    self.begun();
                    self.make_good();
                }
                Err(trouble) if self.peer.is_gone(&trouble) => return Err(trouble),
                Err(Trouble::Refused(error))
                    if error.code() != Some(METHOD_NOT_FOUND) && self.plan.narrow(self.wants, &filter) => {}
                Err(trouble) => {
                    self.failed(&trouble);
                    return Ok(());
                }
            }
            self.look();
        }
        Ok(())
    }

    /// Looks at what is wanted now and was not before, and at what nobody wants any more.
    fn look(&mut self) {
        let wants = self.wants;
        for uri in self.news.take() {
            self.is_refused = false;
            match self.peer.offer.supports.subscribe {
                true => self.plan.look(wants, &uri),
                false => wants.settled(&uri, false),
            }
        }
    }

    /// Lets streams go; what is still on its way on them is heard where another stream tells of the same.
    fn replaced(&mut self, ids: &[u64], by_another: bool) {
        for id in ids {
            self.plan.ended(*id);
            if let Some(at) = self.open.iter().position(|open| open.exchange.id() == *id) {
                let older = self.open.remove(at);
                if by_another {
                    self.fading.add(older.exchange);
                }
            }
        }
    }

    /// Opens a stream; what older ones tell is heard meanwhile.
    async fn listen(&mut self, filter: &ListenFilter) -> Result<(Open, Vec<Arc<str>>), Trouble> {
        let mut next = std::pin::pin!(listen(self.peer, filter, self.limit));
        loop {
            tokio::select! {
                opened = &mut next => return opened,
                () = std::future::poll_fn(|cx| poll_ended(&mut self.open, &mut self.plan, &mut self.delay, cx)) => {}
                never = self.fading.heard() => match never {},
                () = self.wants.changed() => {
                    self.look();
                    continue;
                }
            }
            // Between its end and the beginning of the next nobody tells.
            self.owes = true;
        }
    }

    /// It did not open a stream: what older streams tell of goes on.
    fn failed(&mut self, trouble: &Trouble) {
        tracing::debug!(
            upstream = self.upstream,
            trouble = &*trouble.cause().full(),
            "the upstream does not announce changes"
        );
        self.plan.refused(self.wants);
        let may_pass = match trouble {
            Trouble::Late(_) => true,
            Trouble::Lost(Lost::Status(refusal)) => refusal.class().proves_nothing(),
            Trouble::Lost(_) => true,
            Trouble::Refused(_) | Trouble::Odd(_) => false,
        };
        if may_pass {
            self.next = Some(Instant::now() + self.pause());
        } else {
            self.make_good();
            self.is_refused = true;
        }
    }

    /// From now on it tells, or it never will; where that came too late for whoever waited, changes may have been missed.
    fn begun(&mut self) {
        if let Some(Err(())) = self.settled.take().map(|settled| settled.send(())) {
            self.owes = true;
        }
    }

    async fn happens(&mut self) -> Happened {
        let next = self.next;
        let due = async {
            match next {
                Some(next) => sleep_until(next).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.wants.changed() => Happened::Wants,
            () = std::future::poll_fn(|cx| poll_ended(&mut self.open, &mut self.plan, &mut self.delay, cx)) => {
                (self.owes, self.is_refused) = (true, false);
                Happened::Ended
            }
            never = self.fading.heard() => match never {},
            () = due => Happened::Due,
        }
    }

    fn pause(&mut self) -> Duration {
        let pause = self.delay.mul_f64(0.5 + backoff::random() / 2.0);
        self.delay = (self.delay * 2).min(REOPEN_MAX);
        pause
    }

    /// Whatever changed while nobody told of it counts as changed.
    fn make_good(&mut self) {
        if std::mem::take(&mut self.owes) {
            self.reads.mark(ListKinds::ALL);
            self.wants.all_missed();
        }
    }
}

/// Reads the open streams until one ends, which is taken out; one that was open for long is opened again soon.
fn poll_ended(open: &mut Vec<Open>, plan: &mut StreamPlan, delay: &mut Duration, cx: &mut Context<'_>) -> Poll<()> {
    for at in 0..open.len() {
        while let Poll::Ready(arrival) = open[at].exchange.poll(cx) {
            if !matches!(arrival, Arrival::Response(_) | Arrival::Lost(_)) {
                continue;
            }
            let ended = open.remove(at);
            plan.ended(ended.exchange.id());
            if ended.since.elapsed() >= REOPEN_MAX {
                *delay = REOPEN_MIN;
            }
            return Poll::Ready(());
        }
    }
    Poll::Pending
}

/// What a stateless upstream is asked to tell of beside resources.
fn lists_of(peer: &Peer) -> ListenFilter {
    let supports = peer.offer.supports;
    ListenFilter {
        tools: supports.tools,
        prompts: supports.prompts,
        resources: supports.resources,
        ..ListenFilter::default()
    }
}

/// Opens a stream of changes and waits until it was taken; with it comes what the upstream honours.
async fn listen(peer: &Peer, filter: &ListenFilter, limit: Duration) -> Result<(Open, Vec<Arc<str>>), Trouble> {
    let mut exchange = peer.start(&Method::Listen, &filter.to_params()).map_err(Trouble::Lost)?;
    let taken = async {
        loop {
            match exchange.next().await {
                Arrival::Acknowledged(params) => return Ok(params),
                Arrival::Response(body) => {
                    profile::result_of(body, peer.revision())?;
                    return Err(Trouble::Odd("it ended the stream of changes before it took it"));
                }
                Arrival::Lost(lost) => return Err(Trouble::Lost(lost)),
                _ => {}
            }
        }
    };
    let params = within(limit, taken).await.map_err(|_| Trouble::Late(limit))??;
    let honoured = ListenFilter::parse(&params).unwrap_or_default();
    Ok((Open { exchange, since: Instant::now() }, honoured.uris))
}
