//! A cable: TCP between two parties, in the hand of a test. It splits, delays, stalls, resets, cuts and corrupts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::seed::Seed;

/// How a cable carries bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// As they come.
    Plainly,
    /// In pieces of one to seven bytes, each in a packet of its own; in the midst of long portions they are longer.
    InPieces,
    /// Each portion up to so many milliseconds later.
    Late(u64),
    /// Not at all: what is sent lies in the cable until it carries again. New connections are taken.
    Nothing,
    /// Every connection, old or new, is reset.
    Resets,
    /// Every connection on which an answer comes is reset before any of that answer is carried.
    ResetsAnswers,
    /// The next answer resets its connection before any of it is carried.
    ResetsOneAnswer,
    /// Every connection is closed in order up to so many milliseconds after an answer, unless it is asked meanwhile.
    Closes(u64),
    /// The answers of a connection break off after so many bytes.
    Only(usize),
    /// One byte of each portion of an answer becomes NUL, which is allowed nowhere in HTTP heads and in JSON.
    Spoilt,
    /// The same for what is asked.
    SpoiltQuestions,
}

/// A cable's near end listens, its far end is connected to for each connection.
pub struct Cable {
    /// The near end.
    pub address: SocketAddr,
    state: Arc<State>,
    stop: CancellationToken,
}

struct State {
    far: SocketAddr,
    carries: watch::Sender<Carries>,
    /// Replaced when all connections of now are to be severed.
    sever: watch::Sender<u64>,
    open: AtomicUsize,
    /// An answer was reset.
    has_reset: AtomicBool,
    seed: Seed,
}

/// Which way a half carries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Questions,
    Answers,
}

impl Cable {
    /// A cable to that address.
    pub async fn to(far: SocketAddr, seed: Seed) -> Cable {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let state = Arc::new(State {
            far,
            carries: watch::Sender::new(Carries::Plainly),
            sever: watch::Sender::new(0),
            open: AtomicUsize::new(0),
            has_reset: AtomicBool::new(false),
            seed,
        });
        let stop = CancellationToken::new();
        tokio::spawn(accept(listener, state.clone(), stop.clone()));
        Cable { address, state, stop }
    }

    /// From now on bytes are carried so, on connections that are open too.
    pub fn carry(&self, how: Carries) {
        self.state.carries.send_replace(how);
    }

    /// Closes every connection of now, in order.
    pub fn sever(&self) {
        self.state.sever.send_modify(|count| *count += 1);
    }

    /// How many connections are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.state.open.load(Ordering::Relaxed)
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn accept(listener: TcpListener, state: Arc<State>, stop: CancellationToken) {
    let mut number = 0_u64;
    loop {
        let near = tokio::select! {
            accepted = listener.accept() => accepted.expect("the socket accepts").0,
            () = stop.cancelled() => return,
        };
        number += 1;
        let (state, stop, seed) = (state.clone(), stop.clone(), state.seed.part(&number.to_string()));
        tokio::spawn(async move {
            state.open.fetch_add(1, Ordering::Relaxed);
            tokio::select! { () = connect(&state, near, seed) => {}, () = stop.cancelled() => {} }
            state.open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// One connection, to its end.
async fn connect(state: &State, mut near: TcpStream, seed: Seed) {
    let (mut carries, mut sever) = (state.carries.subscribe(), state.sever.subscribe());
    sever.mark_unchanged();
    let resets = |how: &Carries| *how == Carries::Resets;
    let Ok(mut far) = TcpStream::connect(state.far).await else { return };
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let asked = AtomicUsize::new(0);
    let is_reset = {
        let ((near_reads, near_writes), (far_reads, far_writes)) = (near.split(), far.split());
        let (asks, says) = (state.carries.subscribe(), state.carries.subscribe());
        let questions = carry(near_reads, far_writes, asks, (Way::Questions, &asked, state), seed.part("questions"));
        let answers = carry(far_reads, near_writes, says, (Way::Answers, &asked, state), seed.part("answers"));
        tokio::select! {
            is_reset = both(questions, answers) => is_reset,
            _ = carries.wait_for(resets) => true,
            _ = sever.changed() => false,
        }
    };
    if is_reset {
        let _ = (near.set_zero_linger(), far.set_zero_linger());
    }
}

/// Until the answers have ended, whatever becomes of the questions; says whether the connection is to be reset.
async fn both(questions: impl Future<Output = bool>, answers: impl Future<Output = bool>) -> bool {
    let (mut questions, mut answers) = (std::pin::pin!(questions), std::pin::pin!(answers));
    tokio::select! {
        is_reset = &mut answers => is_reset,
        _ = &mut questions => answers.await,
    }
}

/// Carries one way until it ends; then nothing more is said that way. Says whether the connection is to be reset.
async fn carry(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    mut carries: watch::Receiver<Carries>,
    (way, asked, state): (Way, &AtomicUsize, &State),
    mut seed: Seed,
) -> bool {
    let mut portion = vec![0; 16 * 1024];
    let mut carried = 0;
    while let Ok(length @ 1..) = from.read(&mut portion).await {
        asked.fetch_add(usize::from(way == Way::Questions), Ordering::Relaxed);
        // What came while nothing is carried waits here, and what comes after it waits in the sockets.
        let moves = |how: &Carries| *how != Carries::Nothing;
        let Ok(how) = carries.wait_for(moves).await.map(|how| *how) else { return false };
        let mut bytes = &mut portion[..length];
        match how {
            Carries::Late(most) => {
                let time = seed.below(usize::try_from(most).expect("it is short") + 1);
                tokio::time::sleep(Duration::from_millis(time as u64)).await;
            }
            Carries::Spoilt if way == Way::Answers => bytes[seed.below(length)] = 0,
            Carries::ResetsAnswers if way == Way::Answers => return true,
            Carries::ResetsOneAnswer if way == Way::Answers && !state.has_reset.swap(true, Ordering::Relaxed) => {
                return true;
            }
            Carries::SpoiltQuestions if way == Way::Questions => bytes[seed.below(length)] = 0,
            Carries::Only(most) if way == Way::Answers => {
                let room = most.saturating_sub(carried).min(length);
                bytes = &mut bytes[..room];
            }
            _ => {}
        }
        carried += bytes.len();
        let pieces = if how == Carries::InPieces { 7 } else { usize::MAX };
        if write(&mut to, bytes, pieces, &mut seed).await.is_err() || bytes.len() < length {
            return false;
        }
        if let (Carries::Closes(most), Way::Answers) = (how, way) {
            let before = asked.load(Ordering::Relaxed);
            let time = seed.below(usize::try_from(1000 * most).expect("it is short") + 1);
            tokio::time::sleep(Duration::from_micros(time as u64)).await;
            if asked.load(Ordering::Relaxed) == before {
                return false;
            }
        }
    }
    let _ = to.shutdown().await;
    false
}

/// So many bytes at either end of a portion are cut into the shortest pieces: there heads and frames begin and end.
const EDGE: usize = 128;
/// So much longer pieces are in the midst of a portion, which would cost more than all else otherwise.
const LONGER: usize = 100;

/// Writes in pieces of up to so many bytes.
async fn write(to: &mut WriteHalf<'_>, bytes: &[u8], most: usize, seed: &mut Seed) -> std::io::Result<()> {
    let mut at = 0;
    while at < bytes.len() {
        let left = bytes.len() - at;
        let is_midst = at >= EDGE && left > EDGE;
        let length = match most {
            usize::MAX => left,
            most if is_midst => 1 + seed.below((most * LONGER).min(left - EDGE)),
            most => (1 + seed.below(most)).min(left),
        };
        to.write_all(&bytes[at..at + length]).await?;
        to.flush().await?;
        at += length;
    }
    Ok(())
}
