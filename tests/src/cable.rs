//! A cable: TCP between two parties, in the hand of a test. It splits, delays, stalls, resets, cuts and corrupts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    /// In pieces of one to seven bytes, each in a packet of its own.
    InPieces,
    /// Each portion up to so many milliseconds later.
    Late(u64),
    /// Not at all: what is sent lies in the cable until it carries again. New connections are taken.
    Nothing,
    /// Every connection, old or new, is reset.
    Resets,
    /// Every connection on which an answer comes is reset before any of that answer is carried.
    ResetsAnswers,
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
    let is_reset = {
        let ((near_reads, near_writes), (far_reads, far_writes)) = (near.split(), far.split());
        let (asks, says) = (state.carries.subscribe(), state.carries.subscribe());
        let questions = carry(near_reads, far_writes, asks, Way::Questions, seed.part("questions"));
        let answers = carry(far_reads, near_writes, says, Way::Answers, seed.part("answers"));
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
    way: Way,
    mut seed: Seed,
) -> bool {
    let mut portion = vec![0; 16 * 1024];
    let mut carried = 0;
    while let Ok(length @ 1..) = from.read(&mut portion).await {
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
    }
    let _ = to.shutdown().await;
    false
}

/// Writes in pieces of up to so many bytes.
async fn write(to: &mut WriteHalf<'_>, mut bytes: &[u8], most: usize, seed: &mut Seed) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let length = if most == usize::MAX { bytes.len() } else { bytes.len().min(1 + seed.below(most)) };
        to.write_all(&bytes[..length]).await?;
        to.flush().await?;
        bytes = &bytes[length..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Cable, Carries};
    use crate::seed::Seed;
    use crate::within::within;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    /// A cable to somebody who says back what he hears.
    async fn echo() -> Cable {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut reads, mut writes) = socket.split();
                    let _ = tokio::io::copy(&mut reads, &mut writes).await;
                });
            }
        });
        Cable::to(address, Seed::of(1)).await
    }

    async fn dial(cable: &Cable) -> TcpStream {
        TcpStream::connect(cable.address).await.expect("the near end listens")
    }

    /// Says something, and gives what comes back.
    async fn said(socket: &mut TcpStream, text: &[u8]) -> std::io::Result<Vec<u8>> {
        socket.write_all(text).await?;
        let mut back = vec![0; text.len()];
        within("an echo", socket.read_exact(&mut back)).await?;
        Ok(back)
    }

    #[tokio::test]
    async fn bytes_arrive_whole_in_pieces_and_late() {
        let cable = echo().await;
        let mut socket = dial(&cable).await;
        let text: Vec<u8> = (0..5000).map(|number| b'a' + (number % 26) as u8).collect();
        for how in [Carries::Plainly, Carries::InPieces, Carries::Late(20), Carries::Plainly] {
            cable.carry(how);
            assert_eq!(said(&mut socket, &text).await.expect("it comes back"), text, "{how:?}");
        }
    }

    #[tokio::test]
    async fn what_is_stalled_comes_later_and_whole() {
        let cable = echo().await;
        let mut socket = dial(&cable).await;
        said(&mut socket, b"before").await.expect("it comes back");
        cable.carry(Carries::Nothing);
        socket.write_all(b"later").await.expect("it is taken");
        let mut back = [0; 5];
        let early = std::time::Duration::from_millis(50);
        assert!(tokio::time::timeout(early, socket.read_exact(&mut back)).await.is_err(), "nothing is carried");
        cable.carry(Carries::Plainly);
        within("it goes on", socket.read_exact(&mut back)).await.expect("it comes back");
        assert_eq!(&back, b"later");
    }

    #[tokio::test]
    async fn it_resets_cuts_severs_and_spoils() {
        let cable = echo().await;
        let mut socket = dial(&cable).await;
        said(&mut socket, b"before").await.expect("it comes back");
        cable.carry(Carries::Resets);
        let ended = within("a reset", socket.read(&mut [0; 8])).await.expect_err("no orderly end");
        assert_eq!(ended.kind(), std::io::ErrorKind::ConnectionReset);
        cable.carry(Carries::Only(4));
        let mut socket = dial(&cable).await;
        socket.write_all(b"four and more").await.expect("it is taken");
        let mut back = Vec::new();
        within("an end", socket.read_to_end(&mut back)).await.expect("an orderly end");
        assert_eq!(back, b"four");
        cable.carry(Carries::Spoilt);
        let mut socket = dial(&cable).await;
        assert_eq!(
            said(&mut socket, b"spoilt").await.expect("it comes back").iter().filter(|byte| **byte == 0).count(),
            1
        );
        cable.carry(Carries::ResetsAnswers);
        let ended = said(&mut socket, b"heard").await.expect_err("no answer");
        assert_eq!(ended.kind(), std::io::ErrorKind::ConnectionReset);
        cable.carry(Carries::Plainly);
        let mut socket = dial(&cable).await;
        said(&mut socket, b"again").await.expect("it comes back");
        cable.sever();
        assert_eq!(within("an end", socket.read(&mut [0; 8])).await.expect("an orderly end"), 0);
    }
}
