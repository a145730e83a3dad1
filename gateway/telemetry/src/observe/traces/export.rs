//! Sends spans to a collector: in batches, one at a time, again after a pause where that can help.

use super::otlp;
use super::partial::Rejected;
use crate::call::caller::trace::Span;
use crate::runtime::Tasks;
use crate::secrets::visible;
use bytes::Bytes;
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use trunkline_foundation::metrics::edges;

/// So many spans are sent at once.
const BATCH_MAX: usize = 2048;
/// A span waits so long for others.
const GATHER: Duration = Duration::from_secs(1);
/// How long the collector may take for a batch, and for all that is left at the end.
const ANSWER_MAX: Duration = Duration::from_secs(10);
const LAST_MAX: Duration = Duration::from_secs(2);
/// The pauses between attempts double from the one to the other.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// A batch that the collector has not taken after so many attempts is dropped.
const ATTEMPTS_MAX: u32 = 5;

/// Posts a body to the collector: the status and the body of its answer, or why there is none.
pub type Post = Box<dyn Fn(Bytes) -> Posting + Send + Sync>;
/// A body on its way.
type Posting = Pin<Box<dyn Future<Output = Result<(u16, Bytes), String>> + Send>>;

/// Sends spans until the level ends, and then those that wait.
pub(super) async fn run(mut spans: Receiver<Span>, post: Post, resource: Bytes, tasks: Tasks) {
    let mut collector = Collector { post, tasks: tasks.clone(), is_down: false, lost: 0, is_choosy: false, last: None };
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            biased;
            () = tasks.ending() => break,
            count = spans.recv_many(&mut batch, BATCH_MAX) => if count == 0 { return },
        }
        let filling = async {
            while batch.len() < BATCH_MAX && {
                let room = BATCH_MAX - batch.len();
                spans.recv_many(&mut batch, room).await > 0
            } {}
        };
        tokio::select! {
            biased;
            () = tasks.ending() => {}
            _ = timeout(GATHER, filling) => {}
        }
        collector.take(otlp::request(&resource, &batch), batch.len()).await;
        batch.clear();
    }
    while let Ok(span) = spans.try_recv() {
        batch.push(span);
    }
    for part in batch.chunks(BATCH_MAX) {
        collector.take(otlp::request(&resource, part), part.len()).await;
    }
}

/// The collector, and what was said of it.
struct Collector {
    post: Post,
    tasks: Tasks,
    is_down: bool,
    /// How many spans it did not get since it is down.
    lost: usize,
    /// It has rejected spans of the last batch that it took.
    is_choosy: bool,
    /// Until when it may take what is left, once that is known.
    last: Option<Instant>,
}

impl Collector {
    /// Gives it a batch.
    async fn take(&mut self, body: Bytes, spans: usize) {
        let mut pause = PAUSE_MIN;
        for attempt in 1.. {
            let is_last = self.tasks.is_ending();
            let answer = self.answer(body.clone()).await;
            let (why, can_help) = match answer {
                Ok((200..300, answer)) => return self.has_taken(spans as u64, &Rejected::of(&answer)),
                Ok((status @ (429 | 502..=504), _)) => (format!("HTTP {status}"), true),
                Ok((status, _)) => (format!("HTTP {status}"), false),
                Err(why) => (why, true),
            };
            self.has_not(&why);
            if !can_help || is_last || attempt == ATTEMPTS_MAX {
                break;
            }
            tokio::select! {
                () = sleep(pause) => {}
                () = self.tasks.ending() => {}
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
        self.lost += spans;
        edges::spans("dropped").increment(spans as u64);
    }

    /// Posts it once. What is under way when the level ends has no more time than what is left.
    async fn answer(&mut self, body: Bytes) -> Result<(u16, Bytes), String> {
        let (tasks, last) = (&self.tasks, &mut self.last);
        let ended = async {
            tasks.ending().await;
            sleep_until(*last.get_or_insert_with(|| Instant::now() + LAST_MAX)).await;
        };
        let late = |limit: Duration| Err(format!("no answer within {} s", limit.as_secs()));
        tokio::select! {
            answer = timeout(ANSWER_MAX, (self.post)(body)) => answer.unwrap_or_else(|_| late(ANSWER_MAX)),
            () = ended => late(LAST_MAX),
        }
    }

    /// It has taken a batch, perhaps in part: what it has rejected it would reject again.
    fn has_taken(&mut self, spans: u64, rejected: &Rejected) {
        let dropped = rejected.spans.min(spans);
        edges::spans("sent").increment(spans - dropped);
        edges::spans("dropped").increment(dropped);
        if dropped > 0 && !std::mem::replace(&mut self.is_choosy, true) {
            tracing::warn!(dropped, cause = &*visible(&rejected.why), "the collector of traces rejects spans");
        }
        self.is_choosy &= dropped > 0;
        if std::mem::take(&mut self.is_down) {
            let lost = std::mem::take(&mut self.lost);
            tracing::info!(lost, "traces are sent again");
        }
    }

    /// Said once, until it takes some again.
    fn has_not(&mut self, why: &str) {
        if !std::mem::replace(&mut self.is_down, true) {
            let more = "spans are lost until it does";
            tracing::warn!(cause = why, "the collector of traces ([traces] endpoint) takes none; {more}");
        }
    }
}
