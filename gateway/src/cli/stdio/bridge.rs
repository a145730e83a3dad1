//! The bridge between the client on stdin and stdout and the gateway that it shares with others, whichever that is just now.

use std::cell::RefCell;
use std::io::{self, IsTerminal};
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, sleep, timeout};

use super::alone::BY_HAND;
use super::join::Joiner;
use super::ledger::Ledger;
use super::reader::Reader;
use crate::call::refusal::{Reason, Refusal};
use crate::cli::args::{Shared, settings};
use crate::cli::process::{Failure, Input, Output, runtime};
use crate::gateway::{ShutdownSignals, budget};
use crate::memory::budget::Budget;
use crate::protocol::frame::message::error;
use crate::protocol::framing::Untaken;
use crate::protocol::framing::lines::Line;
use crate::protocol::revision::Revision;
use crate::telemetry::logging::{Writer, complain, say};

/// At the end of stdin the gateway has its own time for what runs, and a moment more.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// After a gateway could not be joined, so long no other attempt is made; twice as long each time, up to the second.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// A gateway that ends sooner after it was joined ends at once, and may be brought to it by what it is sent.
const SHORT: Duration = Duration::from_secs(1);
/// So many of them in a row are followed without a pause.
const SHORT_MAX: u32 = 3;
/// The longest pause between them.
const REST_MAX: Duration = Duration::from_secs(8);

/// How long nothing is joined after so many gateways that ended at once.
fn rest(short: u32) -> Duration {
    match short.checked_sub(SHORT_MAX) {
        Some(more @ 1..) => (SHORT * 2_u32.saturating_pow(more - 1)).min(REST_MAX),
        _ => Duration::ZERO,
    }
}

/// Bridges until stdin ends.
pub(super) fn run(shared: &Shared) -> Result<(), Failure> {
    let settings = settings::read(shared, Vec::new())?;
    settings.begin_bridge(Writer::Stdio)?;
    if io::stdin().is_terminal() {
        say(BY_HAND);
    }
    let (budget, max) = (budget(&settings.loaded.config), settings.loaded.config.server.max_body);
    runtime::block_on(async move {
        let mut told = ShutdownSignals::new()?;
        let stdout = Output::stdout();
        let gone = stdout.gone();
        let mut bridge = Bridge {
            client: Reader::new(Input::stdin(), &budget, max),
            max,
            stdout,
            budget,
            ledger: RefCell::default(),
            joiner: Joiner::new(shared),
        };
        tokio::select! {
            bridged = bridge.run() => unread_is_no_fault(bridged),
            () = told.to_end() => Ok(()),
            () = gone => Ok(()),
        }
    })
}

/// A host that went away while it was written to is no fault of ours.
fn unread_is_no_fault(bridged: Result<(), anyhow::Error>) -> Result<(), anyhow::Error> {
    let kind = bridged.as_ref().err().and_then(|error| error.downcast_ref::<io::Error>()).map(io::Error::kind);
    if kind == Some(io::ErrorKind::BrokenPipe) { Ok(()) } else { bridged }
}

struct Bridge<R, W> {
    client: Reader<R>,
    /// The longest line of the client.
    max: usize,
    stdout: W,
    budget: Budget,
    ledger: RefCell<Ledger>,
    joiner: Joiner,
}

/// How a gateway was left.
#[derive(PartialEq)]
enum End {
    /// The client has closed stdin.
    Client,
    /// The gateway has ended.
    Gateway,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Bridge<R, W> {
    async fn run(&mut self) -> Result<(), anyhow::Error> {
        let mut gateway = self.joiner.join().await?;
        let (mut first, mut short) = (None, 0);
        loop {
            let joined = Instant::now();
            if self.bridged(gateway, first.take()).await? == End::Client {
                return Ok(());
            }
            tracing::warn!("the shared gateway has ended; joining the next one");
            let told = self.ledger.borrow_mut().lost();
            write(&mut self.stdout, &told).await?;
            short = if joined.elapsed() < SHORT { short + 1 } else { 0 };
            sleep(rest(short)).await;
            gateway = match self.joiner.join().await {
                Ok(gateway) => gateway,
                Err(why) => match self.without(&format!("{why:#}")).await? {
                    Some((gateway, line)) => {
                        first = Some(line);
                        gateway
                    }
                    None => return Ok(()),
                },
            };
        }
    }

    /// Refuses what is asked for until there is a gateway, which takes the line that comes then; `None` at the end of stdin.
    async fn without(&mut self, why: &str) -> Result<Option<(BufReader<UnixStream>, Bytes)>, anyhow::Error> {
        complain(&format!("no shared gateway: {why}"));
        let (mut why, mut pause) = (why.to_owned(), PAUSES[0]);
        let mut until = Instant::now() + pause;
        while let Some(line) = self.client.next().await? {
            let Line::Frame(line) = line else {
                self.untaken(line).await?;
                continue;
            };
            if Instant::now() >= until {
                match self.joiner.join().await {
                    Ok(gateway) => return Ok(Some((gateway, line))),
                    Err(error) => why = format!("{error:#}"),
                }
                pause = (pause * 2).min(PAUSES[1]);
                until = Instant::now() + pause;
            }
            let refused = self.ledger.borrow_mut().refuse(&line, &format!("there is no shared gateway: {why}"));
            write(&mut self.stdout, &refused).await?;
        }
        Ok(None)
    }

    async fn untaken(&mut self, line: Line) -> io::Result<()> {
        match refused(&line, self.max) {
            Some(frame) => write(&mut self.stdout, &[frame]).await,
            None => Ok(()),
        }
    }

    /// Bridges to one gateway, to the end of either side.
    async fn bridged(&mut self, gateway: BufReader<UnixStream>, first: Option<Bytes>) -> Result<End, anyhow::Error> {
        let Self { client, max, stdout, budget, ledger, .. } = self;
        let (reading, mut writing) = tokio::io::split(gateway);
        let mut gateway = Reader::new(reading, budget, budget.longest());
        let (stdout, answered) = (Mutex::new(stdout), Notify::new());
        let greeting = ledger.borrow_mut().greeting();
        // Entered before anything is written: a gateway that goes at once leaves no request without an answer.
        let first = first.map(|line| ledger.borrow_mut().up(line)).unwrap_or_default();
        let up = async {
            // A gateway that cannot be written to is noticed where it is read.
            let mut is_there =
                write(&mut writing, &greeting).await.is_ok() && write(&mut writing, &first).await.is_ok();
            while is_there {
                while !ledger.borrow().has_room() {
                    answered.notified().await;
                }
                let Some(line) = client.next().await? else {
                    let _unwritten = writing.shutdown().await;
                    return Ok::<_, anyhow::Error>(End::Client);
                };
                match line {
                    Line::Frame(line) => {
                        let frames = ledger.borrow_mut().up(line);
                        is_there = write(&mut writing, &frames).await.is_ok();
                    }
                    line => {
                        if let Some(frame) = refused(&line, *max) {
                            write(&mut **stdout.lock().await, &[frame]).await?;
                        }
                    }
                }
            }
            std::future::pending().await
        };
        let down = async {
            // One that ends in the midst of a line is as good as ended.
            while let Some(line) = gateway.next().await.unwrap_or_default() {
                let frames = match line {
                    Line::Frame(line) => ledger.borrow_mut().down(line),
                    Line::Untaken { head, why, .. } => {
                        let why = format!("the answer was dropped: {why}");
                        ledger.borrow_mut().untaken(&head, &why)
                    }
                };
                answered.notify_one();
                write(&mut **stdout.lock().await, &frames).await?;
            }
            Ok::<_, anyhow::Error>(End::Gateway)
        };
        let mut down = pin!(down);
        let end = tokio::select! {
            end = up => end?,
            end = down.as_mut() => end?,
        };
        if end == End::Client {
            // What still runs is answered in its time, or not at all.
            timeout(LAST_WORDS, down).await.unwrap_or(Ok(End::Client))?;
        }
        Ok(end)
    }
}

/// What is said of a line that cannot be taken.
fn refused(line: &Line, max: usize) -> Option<Bytes> {
    let Line::Untaken { why, .. } = line else { return None };
    let why = match why {
        Untaken::TooLong => format!("a line is longer than {max} bytes, the limit set by `server.max_body`"),
        why => format!("a message was dropped: {why}"),
    };
    let refusal = Refusal::new(Reason::InvalidRequest, why);
    Some(error(None, refusal.to_rpc(Revision::NEWEST_LEGACY).raw()))
}

async fn write<W: AsyncWrite + Unpin>(out: &mut W, frames: &[Bytes]) -> io::Result<()> {
    for frame in frames {
        if frame.len() < TOGETHER_BYTES {
            let mut line = Vec::with_capacity(frame.len() + 1);
            line.extend_from_slice(frame);
            line.push(b'\n');
            out.write_all(&line).await?;
        } else {
            out.write_all(frame).await?;
            out.write_all(b"\n").await?;
        }
    }
    if frames.is_empty() { Ok(()) } else { out.flush().await }
}

/// A shorter frame is written in one go with its line end.
const TOGETHER_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_that_end_at_once_are_followed_ever_more_slowly() {
        let rests: Vec<_> = (0..=9).map(|short| rest(short).as_secs()).collect();
        assert_eq!(rests, [0, 0, 0, 0, 1, 2, 4, 8, 8, 8]);
        assert_eq!(rest(u32::MAX), REST_MAX);
    }
}
