//! Results that come in chunks after their answer (`streamId`, `notifications/stream/chunk`): bounded, folded into one result.

mod folded;

use crate::call::share::{Share, may_have};
use crate::health::{Cause, CauseCode};
use crate::memory::account::Kind;
use crate::memory::budget::{Budget, Charge};
use crate::protocol::frame::message::Body;
use crate::protocol::json;
use crate::protocol::payload::chunk::{ID_BYTES_MAX, announced_id, part_of};
use crate::protocol::value::Object;
use crate::transport::exchange::ProgressRate;
use bytes::Bytes;
use folded::Folded;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::Instant;

/// So many results may be coming at once. Of these, and of the bytes, one client has at most as much as is free afterwards.
const STREAMS_MAX: usize = 256;
/// So much of one may come, and so much of all together.
const WHOLE_BYTES_MAX: usize = 64 * 1024 * 1024;
const ALL_BYTES_MAX: usize = 4 * WHOLE_BYTES_MAX;
/// What chunks say is told where it is no longer than this; the result has all of it.
const NOTE_BYTES_MAX: usize = 16 * 1024;
/// Chunks that come before their answer, as they may on another stream, come this little before it; older ones are of a call
/// that is over, and of another result under the same name.
const AHEAD_MAX: Duration = Duration::from_secs(5);
/// After an answer and after each chunk the next one comes within this: whoever announces a result may forget it.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(60);

/// What is coming of one upstream.
#[derive(Default)]
pub(crate) struct Chunks(Mutex<Vec<Stream>>);

struct Stream {
    /// Its raw id.
    id: Bytes,
    folded: Folded,
    /// For which client it comes, once that is known.
    share: Option<Share>,
    /// Counts what is held.
    charge: Charge,
    /// Chunks to be told of, as many as the pace admits: which it was, and its text, raw. The last one may be several in one.
    notes: VecDeque<(u64, Bytes)>,
    noted: usize,
    pace: ProgressRate,
    count: u64,
    reader: Reader,
    begun: Instant,
    /// The last chunk came.
    is_whole: bool,
    /// Why there will be no result.
    broken: Option<Cause>,
    waker: Option<Waker>,
}

#[derive(PartialEq, Eq)]
enum Reader {
    /// Nobody has come for it yet.
    Expected,
    Reads,
    /// Nobody will: what still comes is let go.
    Gone,
}

/// One result in the making.
pub(crate) struct Folding {
    chunks: Arc<Chunks>,
    id: Bytes,
    /// The answer that said that it is to come.
    head: Object,
    /// What the call had come to before.
    begun_at: u64,
    /// Resolves when the link is gone.
    closed: Pin<Box<dyn Future<Output = Cause> + Send>>,
}

/// What reading on comes to.
pub(crate) enum Fold {
    /// The parameters of a notice of progress that tells of a chunk.
    Progress(Object),
    /// The whole result.
    Whole(Object),
    /// There will be none.
    Broken(Cause),
}

impl Chunks {
    /// Takes the parameters of a notification; false where they belong nowhere.
    pub(crate) fn arrived(&self, params: &Object, budget: &Budget) -> bool {
        let Some((id, is_final)) = part_of(params) else { return false };
        let Some(chunk) = params.find("chunk").filter(|chunk| chunk.starts_with(b"{")) else { return false };
        let mut streams = self.lock();
        let held: usize = streams.iter().map(Stream::held).sum();
        let at = match streams.iter().position(|stream| *stream.id == *id) {
            Some(at) => at,
            None if id.len() > ID_BYTES_MAX => return false,
            None => match make_room(&mut streams) {
                true => {
                    streams.push(Stream::new(Bytes::copy_from_slice(id), Reader::Expected));
                    streams.len() - 1
                }
                false => return false,
            },
        };
        let share = &streams[at].share;
        let own = streams.iter().filter(|stream| stream.share == *share).map(Stream::held).sum();
        let room = Room { own, free: ALL_BYTES_MAX.saturating_sub(held) };
        let stream = &mut streams[at];
        match stream.reader {
            Reader::Gone if is_final => drop(streams.remove(at)),
            Reader::Gone => {}
            Reader::Expected if stream.is_whole => {
                *stream = Stream::new(stream.id.clone(), Reader::Expected);
                stream.take(chunk, is_final, room, budget);
            }
            _ => {
                stream.take(chunk, is_final, room, budget);
                let waker = stream.waker.take();
                drop(streams);
                waker.into_iter().for_each(Waker::wake);
            }
        }
        true
    }

    /// No chunk of this result will come any more; one whose last chunk came does not mind.
    pub(crate) fn unfinished(&self, id: &[u8]) {
        let mut streams = self.lock();
        if let Some(stream) = streams.iter_mut().find(|stream| *stream.id == *id && !stream.is_whole) {
            stream.give_up("the stream of its chunks ended before the last one");
            let waker = stream.waker.take();
            drop(streams);
            waker.into_iter().for_each(Waker::wake);
        }
    }

    /// A new link knows nothing of what came on the last one.
    pub(crate) fn forget(&self) {
        self.lock().retain(|stream| stream.reader == Reader::Reads);
    }

    /// Begins to read the result that an answer announces, where it does; `begun_at` is what the call of that client has come to so far.
    pub(crate) fn announced(
        self: &Arc<Self>,
        body: &Body,
        share: Option<&Share>,
        begun_at: u64,
        closed: impl Future<Output = Cause> + Send + 'static,
    ) -> Option<Folding> {
        let (id, Body::Result(head)) = (announced_id(body)?, body) else { return None };
        let mut streams = self.lock();
        match streams.iter_mut().find(|stream| stream.id == id) {
            Some(stream) if stream.reader == Reader::Expected && stream.begun.elapsed() < AHEAD_MAX => {
                stream.reader = Reader::Reads;
            }
            Some(stream) => *stream = Stream::new(id.clone(), Reader::Reads),
            None => {
                let mut stream = Stream::new(id.clone(), Reader::Reads);
                let reads = |stream: &&Stream| stream.reader == Reader::Reads && stream.broken.is_none();
                let all = streams.iter().filter(reads).count();
                let own = streams.iter().filter(reads).filter(|stream| stream.share.as_ref() == share).count();
                if !may_have(own, STREAMS_MAX.saturating_sub(all)) {
                    stream.give_up(&format!("of {all} results that come in chunks just now, {own} are this client's"));
                } else if !make_room(&mut streams) {
                    stream.give_up("too many results come in chunks just now");
                }
                streams.push(stream);
            }
        }
        if let Some(stream) = streams.iter_mut().find(|stream| stream.id == id) {
            stream.share = share.cloned();
            if begun_at > 0 {
                // What was told of the call before counts, too.
                stream.pace = ProgressRate::spent();
            }
        }
        drop(streams);
        Some(Folding { chunks: self.clone(), id, head: head.clone(), begun_at, closed: Box::pin(closed) })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Stream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How much a client has of what chunks may take, and how much is free.
#[derive(Clone, Copy)]
struct Room {
    own: usize,
    free: usize,
}

impl Room {
    fn has(self, more: usize) -> bool {
        self.free.checked_sub(more).is_some_and(|left| may_have(self.own + more, left))
    }
}

/// Makes room for one more: what nobody has come for is of a call that is over.
fn make_room(streams: &mut Vec<Stream>) -> bool {
    if streams.len() < STREAMS_MAX {
        return true;
    }
    let gone = streams.iter().position(|stream| stream.reader == Reader::Gone);
    let unread = || streams.iter().position(|stream| stream.reader == Reader::Expected);
    gone.or_else(unread).map(|at| streams.remove(at)).is_some()
}

impl Stream {
    fn new(id: Bytes, reader: Reader) -> Self {
        let (folded, notes) = (Folded::default(), VecDeque::new());
        Self {
            id,
            folded,
            share: None,
            charge: Charge::default(),
            notes,
            noted: 0,
            pace: ProgressRate::default(),
            count: 0,
            reader,
            begun: Instant::now(),
            is_whole: false,
            broken: None,
            waker: None,
        }
    }

    /// How many bytes it has.
    fn held(&self) -> usize {
        self.folded.len() + self.noted
    }

    /// Takes a chunk.
    fn take(&mut self, chunk: &[u8], is_final: bool, room: Room, budget: &Budget) {
        if self.is_whole || self.broken.is_some() {
            return;
        }
        if self.folded.len() + chunk.len() > WHOLE_BYTES_MAX || !room.has(chunk.len()) {
            return self.give_up("its chunks are more than may be held");
        }
        // What it is put together in grows by doubling.
        let bytes = (self.folded.len() + self.noted + chunk.len()).saturating_mul(2);
        let owned = self.share.as_ref().map(|share| budget.owned_by(share.owner()));
        if let Err(why) = self.charge.grow(owned.as_ref().unwrap_or(budget), Kind::Reply, bytes) {
            return self.give_up(&format!("its chunks were dropped: {why}"));
        }
        self.folded.push(chunk);
        self.count += 1;
        self.is_whole = is_final;
        if is_final {
            return;
        }
        let text = json::get(chunk, "content").filter(|raw| raw.starts_with(b"\"") && raw.len() <= NOTE_BYTES_MAX);
        let mut text = Bytes::copy_from_slice(text.unwrap_or(b"\"\""));
        if !self.pace.admits(self.notes.len())
            && let Some((_, before)) = self.notes.pop_back()
        {
            self.noted -= before.len();
            text = joined(&before, text);
        }
        self.noted += text.len();
        self.notes.push_back((self.count, text));
    }

    fn give_up(&mut self, why: &str) {
        (self.folded, self.charge) = Default::default();
        self.broken = Some(Cause::new(CauseCode::ResponseIncomplete, why));
    }

    fn next_note(&mut self) -> Option<(u64, Bytes)> {
        let note = self.notes.pop_front()?;
        self.noted -= note.1.len();
        Some(note)
    }

    /// What is there to be read.
    fn next(&mut self, head: &Object, begun_at: u64) -> Option<Fold> {
        let is_over = self.is_whole || self.broken.is_some();
        let may_tell = self.pace.admits(0);
        if let Some((number, text)) = may_tell.then(|| self.next_note()).flatten() {
            self.pace.told();
            let (progress, text) = (begun_at + number, String::from_utf8_lossy(&text));
            let params = format!("{{\"progressToken\":0,\"progress\":{progress},\"message\":{text}}}");
            return Some(Fold::Progress(Object::parse(params.into()).unwrap_or_default()));
        }
        if is_over {
            // The result that follows at once has it, too.
            (self.notes, self.noted) = (VecDeque::new(), 0);
        }
        if let Some(why) = &self.broken {
            return Some(Fold::Broken(why.clone()));
        }
        self.is_whole.then(|| Fold::Whole(self.folded.whole(head)))
    }
}

/// Two raw texts as one, where that is not too long; else the second.
fn joined(one: &Bytes, other: Bytes) -> Bytes {
    match (one.strip_suffix(b"\""), other.strip_prefix(b"\"")) {
        (Some(one), Some(rest)) if one.len() + rest.len() <= NOTE_BYTES_MAX => [one, rest].concat().into(),
        _ => other,
    }
}

impl Folding {
    /// Reads on.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Fold> {
        if let Some(fold) = self.next(cx) {
            return Poll::Ready(fold);
        }
        let Poll::Ready(why) = self.closed.as_mut().poll(cx) else { return Poll::Pending };
        // The last of it may have come just before.
        Poll::Ready(self.next(cx).unwrap_or(Fold::Broken(why)))
    }

    fn next(&self, cx: &mut Context<'_>) -> Option<Fold> {
        let mut streams = self.chunks.lock();
        let Some(stream) = streams.iter_mut().find(|stream| stream.id == self.id) else {
            return Some(Fold::Broken(Cause::new(
                CauseCode::ResponseIncomplete,
                "another result of the same name came between",
            )));
        };
        let next = stream.next(&self.head, self.begun_at);
        if next.is_none() {
            stream.waker = Some(cx.waker().clone());
            if !stream.notes.is_empty() {
                stream.pace.poll(cx);
            }
        }
        next
    }
}

impl Drop for Folding {
    fn drop(&mut self) {
        let mut streams = self.chunks.lock();
        if let Some(at) = streams.iter().position(|stream| stream.id == self.id) {
            match streams[at].is_whole || streams[at].broken.is_some() {
                true => drop(streams.remove(at)),
                false => streams[at] = Stream::new(self.id.clone(), Reader::Gone),
            }
        }
    }
}

#[cfg(test)]
mod tests;
