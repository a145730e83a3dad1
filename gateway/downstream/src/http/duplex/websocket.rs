//! A WebSocket: its messages are read in order, and answered as over stdio. The connection is the session: when it ends, its calls do.

use super::writer::{self, Order, Pongs};
use crate::edge::Edge;
use crate::edge::client_era::Who;
use crate::listen::Upgraded;
use crate::memory::account::Kind;
use crate::memory::{Gather, StandingCharge};
use crate::metrics;
use crate::protocol::framing::websocket::{Fault, Message, Messages};
use crate::runtime::timer::Pace;
use crate::runtime::timer::late::{Late, within};
use crate::runtime::watched::{Credit, linger, linger_within};
use crate::runtime::{FairShare, Tasks};
use crate::session::table::new_id;
use crate::stdio::{Client, Connection};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;

/// So many frames wait for a client that does not read; calls wait then, too.
const QUEUE: usize = 256;
/// How long a close frame may take to be written.
const CLOSE_MAX: Duration = Duration::from_secs(1);
/// So many frames that ask for nothing are earned with a message that does.
const WITH_A_MESSAGE: u64 = 4;
/// So much is read on of a flood behind the close frame: its client sends on, whatever it is told.
const FLOOD_READ_MAX: usize = 1024 * 1024;

/// What a client is served by.
pub(super) struct Terms {
    pub(super) edge: Arc<Edge>,
    pub(super) who: Who,
    /// The largest message, in bytes.
    pub(super) max: usize,
    /// The longest pause within one.
    pub(super) pause: Duration,
    /// A ping is sent where nothing else was for so long.
    pub(super) keepalive: Duration,
    pub(super) _kept: StandingCharge,
}

impl Terms {
    /// Resolves once what the client called with counts no more.
    async fn until_revoked(&self) {
        match self.who.revocation.revoked() {
            Some(revoked) => revoked.await,
            None => std::future::pending().await,
        }
    }
}

/// How a connection ends.
enum End {
    /// The other side is gone without a word.
    Gone,
    /// The other side closes, with this code.
    Told(Option<u16>),
    /// It broke the rules.
    Broken(Fault),
    /// A message that it began does not go on.
    Slow,
    /// It sends more frames that ask for nothing than it may.
    Flood,
    /// What it called with is known no more.
    Revoked,
    /// The gateway ends, and what ran has.
    Drained,
}

impl End {
    /// The close frame that says so.
    fn order(&self) -> Option<Order> {
        let (code, reason) = match self {
            Self::Gone => return None,
            Self::Told(code) => (*code, String::new()),
            Self::Broken(fault) => (Some(fault.code()), fault.to_string()),
            Self::Slow => (Some(1008), "a message did not go on, or came too slowly".to_owned()),
            Self::Flood => (Some(1008), "too many frames that ask for nothing".to_owned()),
            Self::Revoked => (Some(1008), "the token is no longer valid".to_owned()),
            Self::Drained => (Some(1012), "the gateway is shutting down".to_owned()),
        };
        Some(Order::Close { code, reason, is_last: matches!(self, Self::Drained) })
    }
}

/// Serves one client, until either side closes. Dropped, it cancels what the client has under way.
pub(super) async fn serve(upgraded: Upgraded, terms: Terms) {
    let Upgraded { stream, early } = upgraded;
    let (mut input, output) = tokio::io::split(stream);
    let calls = Tasks::new();
    let _cancelled = calls.guard();
    let _counted = Counted::new();
    let (outlet, frames) = mpsc::channel(QUEUE);
    let (orders, ordered) = mpsc::channel(1);
    let pongs = Arc::new(Pongs::default());
    let budget = terms.edge.budget.owned_by(terms.who.share().owner());
    let client = Client { who: terms.who.clone(), id: new_id().into(), transport: "websocket" };
    let edge = &terms.edge;
    let mut talk = Talk {
        connection: Connection::new(edge.clone(), outlet, calls.child(), edge.cut(), client),
        messages: Messages::new(terms.max, Gather::new(&budget, Kind::Body, terms.max), &early),
        orders,
        pongs: pongs.clone(),
        pace: Pace::new(terms.pause),
        credit: Credit::default(),
        max: terms.max,
    };
    drop(early);
    let mut writing = pin!(writer::write(output, (frames, &pongs, ordered), &budget, terms.keepalive));
    let end = tokio::select! {
        biased;
        written = writing.as_mut() => Err(written),
        end = talk.until_end(&mut input, &terms) => Ok(end),
    };
    talk.connection.close();
    calls.end();
    let is_flood = matches!(end, Ok(End::Flood));
    if is_flood {
        edge.refusals.turn_away("frames", &"a client over WebSocket sends frames that ask for nothing");
    }
    let written = match end.map(|end| end.order()) {
        // It has closed for want of memory, or the connection broke.
        Err(written) => written,
        Ok(None) => return,
        Ok(Some(order)) => {
            let closing = async { tokio::join!(talk.orders.send(order), writing.as_mut()).1 };
            within(CLOSE_MAX, closing).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        }
    };
    if written.is_ok() {
        // What is closed with bytes unread is reset, and the close frame is lost.
        match is_flood {
            true => linger_within(FLOOD_READ_MAX, &mut input).await,
            false => linger(&mut input).await,
        }
    }
}

/// A client that is being served.
struct Talk {
    connection: Connection,
    messages: Messages<Gather>,
    orders: mpsc::Sender<Order>,
    pongs: Arc<Pongs>,
    pace: Pace,
    /// How many frames may still come that ask for nothing.
    credit: Credit,
    max: usize,
}

impl Talk {
    /// Takes messages. When the gateway is to end nothing is begun any more, and what runs may finish.
    async fn until_end<R: AsyncRead + Unpin>(&mut self, input: &mut R, terms: &Terms) -> End {
        let mut revoked = pin!(terms.until_revoked());
        tokio::select! {
            end = self.read(input) => return end,
            () = &mut revoked => return End::Revoked,
            () = terms.edge.tasks.ending() => {}
        }
        self.connection.retire(true);
        let ended = self.connection.ended();
        tokio::select! {
            end = self.read(input) => end,
            () = &mut revoked => End::Revoked,
            () = ended => End::Drained,
        }
    }

    /// Reads messages and routes them, in their order. It can be dropped wherever it waits.
    async fn read<R: AsyncRead + Unpin>(&mut self, input: &mut R) -> End {
        let mut stretch = FairShare::default();
        loop {
            loop {
                if !self.connection.has_room() {
                    self.connection.room().await;
                    self.pace.restart();
                }
                match self.messages.next_message() {
                    Err(fault) => return End::Broken(fault),
                    Ok(None) => break,
                    Ok(Some(Message::Close(frame))) => return End::Told(frame.map(|(code, _)| code)),
                    Ok(Some(message)) => {
                        if !self.take(message) {
                            return End::Flood;
                        }
                    }
                }
                // Its bytes count as they are read.
                stretch.message(0).await;
            }
            let begun = self.messages.begun();
            let reading = async {
                match self.messages.reading() {
                    (buffer, None) => Some(input.read_buf(buffer).await),
                    (buffer, Some(gather)) => tokio::select! {
                        biased;
                        () = gather.lost() => None,
                        read = input.read_buf(buffer) => Some(read),
                    },
                }
            };
            match self.pace.keep(begun, reading).await {
                Ok(None) => self.messages.give_up(),
                Ok(Some(Ok(count @ 1..))) => stretch.read(count).await,
                Ok(Some(_)) => return End::Gone,
                Err(Late) => return End::Slow,
            }
        }
    }

    /// Takes a message; false where it is one too many of those that ask for nothing.
    fn take(&mut self, message: Message) -> bool {
        match message {
            Message::Text(text) => self.connection.take(text),
            Message::Untaken { why, .. } => self.connection.refuse_line(why, self.max),
            Message::Ping(payload) => {
                self.pongs.put(payload);
                return self.credit.spend(0);
            }
            Message::Pong => return self.credit.spend(0),
            Message::Blank(bytes) => return self.credit.spend(bytes),
            Message::Part | Message::Close(_) => return true,
        }
        self.credit.earn(WITH_A_MESSAGE, 0);
        true
    }
}

/// One more that is open.
struct Counted;

impl Counted {
    fn new() -> Self {
        metrics::sessions("websocket").increment(1.0);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        metrics::sessions("websocket").decrement(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::memory::Refusals;
    use crate::memory::budget::Budget;
    use crate::protocol::framing::websocket::{Kind as Opcode, write_masked_head};
    use crate::protocol::revision::Revision;
    use crate::runtime::turns_beside;
    use crate::scripted::scripted;
    use tokio::io::AsyncWriteExt;

    const FRAMES: usize = 20_000;
    const NOTICE: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
    const MAX: usize = 1 << 20;
    const PAUSE: Duration = Duration::from_secs(10);

    fn talk() -> Talk {
        let (budget, levels) = (Budget::default(), (Tasks::new(), Tasks::new()));
        let (handler, _) = scripted(Revision::V2025_11_25);
        let edge = Arc::new(Edge::new(handler, &Config::default(), levels, (&budget, &Refusals::default())));
        let client = Client { who: Who::anonymous(), id: "t".into(), transport: "websocket" };
        Talk {
            connection: Connection::new(edge.clone(), mpsc::channel(QUEUE).0, Tasks::new(), edge.cut(), client),
            messages: Messages::new(MAX, Gather::new(&budget, Kind::Body, MAX), b""),
            orders: mpsc::channel(1).0,
            pongs: Arc::default(),
            pace: Pace::new(PAUSE),
            credit: Credit::default(),
            max: MAX,
        }
    }

    /// A frame with a mask that changes nothing.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_masked_head(Opcode::Text, payload.len(), [0; 4], &mut bytes);
        bytes[0] = first;
        bytes.extend_from_slice(payload);
        bytes
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_does_not_go_on_or_trickles_ends_the_connection_and_a_slow_steady_one_is_taken() {
        let pieces = |first: u8, size: usize| frame(first, &vec![b' '; size]);
        for (name, piece, seconds, is_slow) in [
            ("nothing", Vec::new(), 1, true),
            ("a byte a second", pieces(0, 1), 1, true),
            ("empty pieces", pieces(0, 0), 1, true),
            ("pings", pieces(0x89, 1), 1, true),
            ("the rest of a head", vec![0x00], 3600, true),
            ("20 KB a second", pieces(0, 160_000), 8, false),
        ] {
            let (mut talk, (mut near, mut far)) = (talk(), tokio::io::duplex(1 << 20));
            let begun = tokio::time::Instant::now();
            let sending = async move {
                far.write_all(&pieces(1, 40_000)).await.expect("it is read");
                for _ in 0..6 {
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    let _gone = far.write_all(&piece).await;
                }
                tokio::time::sleep(1000 * PAUSE).await;
            };
            let end = tokio::select! {
                end = talk.read(&mut near) => end,
                () = sending => End::Gone,
            };
            let took = begun.elapsed().as_secs();
            assert!(matches!(end, End::Slow), "{name}");
            assert_eq!(took == PAUSE.as_secs(), is_slow, "{name}: {took} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_any_frames_leaves_others_their_turns() {
        for (name, begin, one, end) in [
            ("pings", Vec::new(), frame(0x89, b""), frame(0x81, NOTICE)),
            ("pongs", Vec::new(), frame(0x8a, b""), frame(0x81, NOTICE)),
            ("empty pieces", frame(0x01, b"{"), frame(0x00, b""), frame(0x80, b"}")),
            ("pieces", frame(0x01, b"{"), frame(0x00, b" "), frame(0x80, b"}")),
            ("blank messages", Vec::new(), frame(0x81, b" "), frame(0x81, NOTICE)),
        ] {
            // As many as each message earns, so that the connection goes on.
            let group = [begin, one.repeat(WITH_A_MESSAGE as usize), end].concat();
            let (mut talk, bytes) = (talk(), group.repeat(FRAMES / WITH_A_MESSAGE as usize));
            let mut end = End::Drained;
            let flood = async {
                end = talk.read(&mut &bytes[..]).await;
            };
            let turns = turns_beside(flood).await;
            assert!(turns >= FRAMES / 128, "{turns} turns beside {FRAMES} {name}");
            assert!(matches!(end, End::Gone), "all of them are taken: {name}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn frames_that_ask_for_nothing_are_taken_within_measure_and_end_the_connection_beyond_it() {
        let blank = |size: usize| frame(0x81, &vec![b' '; size]);
        for (name, begin, one, most) in [
            ("pings", Vec::new(), frame(0x89, b"x"), 1000),
            ("pongs", Vec::new(), frame(0x8a, b""), 1000),
            ("empty pieces", frame(0x01, b"{"), frame(0x00, b""), 1000),
            ("blank messages", Vec::new(), blank(1), 1000),
            ("empty messages", Vec::new(), blank(0), 1000),
            ("long blank messages", Vec::new(), blank(4096), 200),
        ] {
            for (count, is_flood) in [(most, false), (most + 1, true)] {
                let (mut talk, bytes) = (talk(), [begin.clone(), one.repeat(count)].concat());
                let end = talk.read(&mut &bytes[..]).await;
                assert_eq!(matches!(end, End::Flood), is_flood, "{count} {name}");
            }
            // And so many a second.
            let mut talk = talk();
            let end = talk.read(&mut &[begin, one.repeat(most)].concat()[..]).await;
            assert!(matches!(end, End::Gone), "{name}");
            tokio::time::advance(Duration::from_secs(1)).await;
            let end = talk.read(&mut &one.repeat(most / 10)[..]).await;
            assert!(matches!(end, End::Gone), "{name}");
            let end = talk.read(&mut &one[..]).await;
            assert!(matches!(end, End::Flood), "{name}");
            assert_eq!(end.order().map(|Order::Close { code, .. }| code), Some(Some(1008)));
        }
        // The pieces of a message are what it consists of, however many there are.
        let (mut talk, pieces) = (talk(), frame(0x00, b"x").repeat(FRAMES));
        let end = talk.read(&mut &[frame(0x01, b"{"), pieces, frame(0x80, b"}")].concat()[..]).await;
        assert!(matches!(end, End::Gone));
    }
}
