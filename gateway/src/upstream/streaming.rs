//! Has a stateless upstream tell of all that is wanted, by one stream; a change of wants opens the next before it is let go.

use super::backoff;
use super::fading::Fading;
use super::fault::Trouble;
use super::link::{Arrival, Exchange, Lost};
use super::peer::{self, Peer};
use super::reads::Kinds;
use super::standing::Standing;
use crate::call::ListenFilter;
use crate::protocol::Method;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

/// How long after a stream of changes ended, or was not to be had just then, the next is opened: first and at most.
const REOPEN_MIN: Duration = Duration::from_millis(250);
const REOPEN_MAX: Duration = Duration::from_secs(30);

/// A stream that is open.
struct Open {
    exchange: Exchange,
    /// What was asked for.
    asked: ListenFilter,
    honoured: ListenFilter,
    since: Instant,
}

struct Keeping<'a> {
    standing: &'a Standing,
    peer: &'a Peer,
    open: Option<Open>,
    /// The older ones, which are heard for a while more.
    fading: Fading<'a>,
    /// What it would not open a stream for.
    refused: Option<ListenFilter>,
    delay: Duration,
    /// When a stream is next tried for, where that failed for now.
    next: Option<Instant>,
    /// Changes may have been missed.
    owes: bool,
    /// Hears of the first stream.
    settled: Option<oneshot::Sender<()>>,
}

/// What happens to a stream that is kept.
enum Happened {
    Wants,
    Ended,
    Due,
}

/// Keeps a stream open for as long as the peer lives; returns what showed that it is gone.
pub(crate) async fn keep(standing: &Standing, peer: &Peer, was_away: bool, settled: oneshot::Sender<()>) -> Trouble {
    let (open, refused) = (None, None);
    let fading = Fading::new(standing);
    let (delay, next, owes, settled) = (REOPEN_MIN, None, was_away, Some(settled));
    let mut keeping = Keeping { standing, peer, open, fading, refused, delay, next, owes, settled };
    loop {
        if let Err(gone) = keeping.settle().await {
            return gone;
        }
        if keeping.next.is_none() {
            keeping.begun();
        }
        match keeping.happens().await {
            Happened::Wants | Happened::Due => {}
            Happened::Ended => keeping.ended(),
        }
    }
}

impl Keeping<'_> {
    /// Has the open stream be what is wanted.
    async fn settle(&mut self) -> Result<(), Trouble> {
        let filter = wanted_of(self.standing, self.peer);
        if let Some(open) = self.open.as_ref().filter(|open| open.asked == filter) {
            filter.uris.iter().for_each(|uri| self.standing.wants.settled(uri, open.honoured.uris.contains(uri)));
            return Ok(());
        }
        if filter == ListenFilter::default() {
            self.open = None;
            return Ok(());
        }
        if self.refused.as_ref() == Some(&filter) || self.next.is_some_and(|next| Instant::now() < next) {
            return Ok(());
        }
        self.next = None;
        match self.listen(&filter).await {
            Ok(open) => {
                filter.uris.iter().for_each(|uri| self.standing.wants.settled(uri, open.honoured.uris.contains(uri)));
                if let Some(older) = self.open.replace(open) {
                    self.fading.add(older.exchange);
                }
                self.refused = None;
                self.begun();
                self.make_good();
            }
            Err(trouble) if self.peer.is_gone(&trouble) => return Err(trouble),
            Err(trouble) => self.failed(filter, &trouble),
        }
        Ok(())
    }

    /// Opens a stream; what older ones tell is heard meanwhile.
    async fn listen(&mut self, filter: &ListenFilter) -> Result<Open, Trouble> {
        let mut next = std::pin::pin!(listen(self.standing, self.peer, filter));
        loop {
            let ended = ended(&mut self.open);
            tokio::select! {
                opened = &mut next => return opened,
                () = ended => {}
                never = self.fading.heard() => match never {},
            }
            // Between its end and the beginning of the next nobody tells.
            (self.open, self.owes) = (None, true);
        }
    }

    /// It did not open a stream: what an older stream tells of goes on.
    fn failed(&mut self, filter: ListenFilter, trouble: &Trouble) {
        tracing::debug!(upstream = &*self.standing.name, %trouble, "the upstream does not tell of changes");
        let older = self.open.as_ref().map(|open| &open.honoured.uris);
        for uri in &filter.uris {
            self.standing.wants.settled(uri, older.is_some_and(|older| older.contains(uri)));
        }
        let may_pass = match trouble {
            Trouble::Late(_) => true,
            Trouble::Lost(Lost::Status(refusal)) => refusal.status == 429 || refusal.status >= 500,
            Trouble::Lost(_) => true,
            Trouble::Refused(_) | Trouble::Odd(_) => false,
        };
        if may_pass {
            self.next = Some(Instant::now() + self.pause());
        } else {
            self.make_good();
            self.refused = Some(filter);
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
            () = self.standing.wants.changed() => Happened::Wants,
            () = ended(&mut self.open) => Happened::Ended,
            never = self.fading.heard() => match never {},
            () = due => Happened::Due,
        }
    }

    /// The stream has ended: the next is opened after a while, and what was missed is made good then.
    fn ended(&mut self) {
        let open = self.open.take();
        if open.is_some_and(|open| open.since.elapsed() >= REOPEN_MAX) {
            self.delay = REOPEN_MIN;
        }
        self.owes = true;
        self.next = Some(Instant::now() + self.pause());
    }

    fn pause(&mut self) -> Duration {
        let pause = self.delay.mul_f64(0.5 + backoff::random() / 2.0);
        self.delay = (self.delay * 2).min(REOPEN_MAX);
        pause
    }

    /// Whatever changed while nobody told of it counts as changed.
    fn make_good(&mut self) {
        if std::mem::take(&mut self.owes) {
            self.standing.reads.mark(Kinds::ALL);
            self.standing.wants.all_missed();
        }
    }
}

/// Reads an open stream to its end.
async fn ended(open: &mut Option<Open>) {
    match open {
        Some(open) => drop(open.exchange.answer().await),
        None => std::future::pending().await,
    }
}

/// What a stateless upstream is asked to tell of.
fn wanted_of(standing: &Standing, peer: &Peer) -> ListenFilter {
    let supports = peer.offer.supports;
    let wanted = standing.wants.wanted();
    if !supports.subscribe {
        wanted.iter().for_each(|uri| standing.wants.settled(uri, false));
    }
    let uris = if supports.subscribe { wanted.into_iter().collect() } else { Vec::new() };
    ListenFilter {
        tools: supports.tools,
        prompts: supports.prompts,
        resources: supports.resources,
        uris,
        tasks: Vec::new(),
    }
}

/// Opens a stream of changes and waits until it was taken.
async fn listen(standing: &Standing, peer: &Peer, filter: &ListenFilter) -> Result<Open, Trouble> {
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
    Ok(Open { exchange, asked: filter.clone(), honoured, since: Instant::now() })
}
