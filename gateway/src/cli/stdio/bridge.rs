//! The bridge between the client on stdin and stdout and the gateway that it shares with others, whichever that is just now.

use std::cell::RefCell;
use std::io::{self, IsTerminal};
use std::pin::pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep, timeout};

use super::alone::BY_HAND;
use super::join::Joiner;
use super::ledger::Ledger;
use super::lines::{Between, End, Gateway, bridged, untaken, write};
use super::parting::Parting;
use super::reader::Reader;
use crate::cli::args::{Shared, settings};
use crate::cli::process::failure::in_its_room;
use crate::cli::process::{Failure, Input, Output, runtime};
use crate::gateway::{ShutdownSignals, budget};
use crate::memory::budget::Budget;
use crate::protocol::framing::lines::Line;
use crate::telemetry::logging::{Writer, complain, say};

/// A client whose gateway could not be joined has so long to ask for something, so that it is told.
const FIRST_WORDS: Duration = Duration::from_secs(5);
/// The last word to a client that leaves is written within this.
const PARTED_WITHIN: Duration = Duration::from_secs(1);
/// What a person does about it.
const ADVICE: &str =
    "Run `trunkline check` to look at the configuration; `trunkline stdio` without `--shared` serves this host alone";
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
        say(&in_its_room(BY_HAND));
    }
    let (budget, max) = (budget(&settings.loaded.config), settings.loaded.config.server.max_body);
    runtime::block_on(async move {
        let mut told = ShutdownSignals::new()?;
        let (stdin, stdout) = (Input::stdin(), Output::stdout());
        let gone = stdout.gone();
        let mut bridge = Bridge {
            parting: Parting::of(&stdin),
            client: Reader::new(stdin, &budget, max),
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

struct Bridge<R, W, J> {
    client: Reader<R>,
    /// The longest line of the client.
    max: usize,
    stdout: W,
    budget: Budget,
    ledger: RefCell<Ledger>,
    joiner: J,
    parting: Parting,
}

/// The way to the gateway that is meant just now.
trait Joins {
    /// Joins it, as soon as it can be joined.
    async fn join(&mut self) -> Result<Gateway, anyhow::Error>;

    /// Why it was not joined, where that was given up.
    fn given_up(&self, why: &str) -> anyhow::Error;
}

impl Joins for Joiner {
    async fn join(&mut self) -> Result<Gateway, anyhow::Error> {
        Self::join(self).await
    }

    fn given_up(&self, why: &str) -> anyhow::Error {
        Self::given_up(self, why)
    }
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin, J: Joins> Bridge<R, W, J> {
    async fn run(&mut self) -> Result<(), anyhow::Error> {
        let mut gateway = match self.joined(Duration::ZERO).await? {
            Some(Ok(gateway)) => gateway,
            Some(Err(why)) => return self.never_joined(why).await,
            None => return Ok(()),
        };
        let mut short = 0;
        loop {
            let joined = Instant::now();
            match bridged(self.between(), gateway).await? {
                End::Gateway => {}
                End::Client => return self.part().await,
                End::Unread => return Ok(()),
            }
            tracing::warn!("the shared gateway has ended; joining the next one");
            let told = self.ledger.borrow_mut().lost();
            match self.parting.before_over(write(&mut self.stdout, &told)).await {
                Some(written) => written?,
                None => return Ok(()),
            }
            short = if joined.elapsed() < SHORT { short + 1 } else { 0 };
            let next = match self.joined(rest(short)).await? {
                Some(Ok(gateway)) => Some(gateway),
                Some(Err(why)) => self.without(&format!("{why:#}")).await?,
                None => None,
            };
            gateway = match next {
                Some(gateway) => gateway,
                None => return self.part().await,
            };
        }
    }

    fn between(&mut self) -> Between<'_, R, W> {
        let Self { client, max, stdout, budget, ledger, parting, .. } = self;
        Between { client, max: *max, stdout, budget, ledger, parting }
    }

    /// Joins a gateway after a pause. `None`: the client has closed stdin, and has sent nothing before.
    async fn joined(&mut self, pause: Duration) -> io::Result<Option<Result<Gateway, anyhow::Error>>> {
        let Self { client, joiner, parting, .. } = self;
        let joined = {
            let mut joining = pin!(async {
                if !pause.is_zero() {
                    sleep(pause).await;
                }
                joiner.join().await
            });
            loop {
                // A line that has come is for the gateway, which has some time even where the client leaves meanwhile.
                let has_line = client.holds();
                tokio::select! {
                    joined = &mut joining => break Some(joined),
                    comes = client.comes(), if !has_line => if !comes? {
                        return Ok(None);
                    },
                    () = parting.over(), if has_line => break None,
                }
            }
        };
        let closed = "stdin was closed before a shared gateway was joined";
        Ok(Some(joined.unwrap_or_else(|| Err(joiner.given_up(closed)))))
    }

    /// The client came for a gateway, and there is none. Its first requests are told why, and the bridge ends: a client whose handshake
    /// fails gives the server up, and a host shows a server that has ended, with its last words, as failed. One that went on without a
    /// session would look as if it worked, and nobody would start it again once the cause is mended.
    async fn never_joined(&mut self, why: anyhow::Error) -> Result<(), anyhow::Error> {
        let said = format!("there is no shared gateway: {why:#}. {ADVICE}");
        let mut wait = FIRST_WORDS;
        // What has come by then is answered as well.
        while let Ok(Some(line)) = timeout(wait, self.client.next()).await.unwrap_or(Ok(None)) {
            match self.refused(line, &said).await? {
                Some(true) => wait = Duration::ZERO,
                Some(false) => {}
                None => break,
            }
        }
        Err(why)
    }

    /// Refuses what is asked for until there is a gateway, which takes the line that comes then; `None` at the end of stdin.
    async fn without(&mut self, why: &str) -> Result<Option<Gateway>, anyhow::Error> {
        complain(&format!("no shared gateway: {why}"));
        let (mut why, mut pause) = (why.to_owned(), PAUSES[0]);
        let mut until = Instant::now() + pause;
        while self.client.comes().await? {
            if Instant::now() >= until && !self.parting.has_begun() {
                match self.joined(Duration::ZERO).await? {
                    Some(Ok(gateway)) => return Ok(Some(gateway)),
                    Some(Err(error)) => why = format!("{error:#}"),
                    None => return Ok(None),
                }
                pause = (pause * 2).min(PAUSES[1]);
                until = Instant::now() + pause;
            }
            let Some(line) = self.client.next().await? else { break };
            if self.refused(line, &format!("there is no shared gateway: {why}")).await?.is_none() {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Refuses what is asked for in a line; says whether something was. `None`: the client has left, and reads nothing.
    async fn refused(&mut self, line: Line, why: &str) -> io::Result<Option<bool>> {
        let told = match &line {
            Line::Frame(line) => self.ledger.borrow_mut().refuse(line, why),
            line => untaken(line, self.max).into_iter().collect(),
        };
        let written = self.parting.before_over(write(&mut self.stdout, &told)).await;
        written.transpose().map(|written| written.map(|()| !told.is_empty()))
    }

    /// The client leaves: what it has asked for and is not answered is said to be so.
    async fn part(&mut self) -> Result<(), anyhow::Error> {
        let told = self.ledger.borrow_mut().parted();
        // Whoever reads nothing is told nothing.
        timeout(PARTED_WITHIN, write(&mut self.stdout, &told)).await.unwrap_or(Ok(()))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
