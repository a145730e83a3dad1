//! Our own stdin and stdout: one client, both eras mixed, frames read in order, answers written as they come.

// One client on a pipe: its frames are routed in order, its calls are each answered when ready.
mod connection;
// How a listen call ends on a connection that others share.
mod parting;
// The one task that writes to stdout: all that is queued in one write.
mod writer;

#[cfg(test)]
mod tests;

use super::config::Config;
use super::edge::Edge;
use crate::call::Handler;
use crate::memory::account::Kind;
use crate::memory::budget::Budget;
use crate::memory::{Gather, Refusals};
use crate::metrics;
use crate::protocol::framing::lines::{Line, Lines};
use crate::runtime::Tasks;
pub(crate) use connection::{Client, Connection};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::time::{Instant, sleep, timeout_at};
use writer::Writer;

/// How long what runs at the end of stdin has to finish and be written.
const AFTER_EOF: Duration = Duration::from_secs(2);
/// How long the word that something was cut off has to be written.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Serves the one client at the other end, until it closes either pipe or `tasks` is told to end; `gone` resolves when nobody reads stdout
/// any more, where that can be known before something is written. Then what runs may finish
/// for a while, and what is answered is written; what takes longer is answered as cut off.
pub async fn serve<R, W>(
    handler: Handler,
    config: &Config,
    pipes: (R, W, impl Future<Output = ()>),
    tasks: Tasks,
    room: (&Budget, &Refusals),
) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    serve_as(Client::stdio(), handler, config, pipes, tasks, room).await
}

/// Serves one of many clients, each of which brings its lines over a connection of its own; as [`serve`] does otherwise.
pub async fn serve_joined<S>(
    handler: Handler,
    config: &Config,
    stream: S,
    tasks: Tasks,
    room: (&Budget, &Refusals),
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let _counted = Joined::new();
    let (input, output) = tokio::io::split(stream);
    let pipes = (input, output, std::future::pending());
    serve_as(Client::joined(), handler, config, pipes, tasks, room).await
}

/// One more that has joined.
struct Joined;

impl Joined {
    fn new() -> Self {
        metrics::sessions("shared").increment(1.0);
        Self
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        metrics::sessions("shared").decrement(1.0);
    }
}

async fn serve_as<R, W>(
    client: Client,
    handler: Handler,
    config: &Config,
    (mut stdin, stdout, gone): (R, W, impl Future<Output = ()>),
    tasks: Tasks,
    room: (&Budget, &Refusals),
) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    // Not below `tasks`: what runs is not to be dropped as soon as that is told to end.
    let level = Tasks::new();
    let _guard = level.guard();
    let writer = Writer::start(stdout, &level);
    let fault = writer.fault();
    let edge = Arc::new(Edge::new(handler, config, (tasks.clone(), Tasks::new()), room));
    let cut = Tasks::new();
    let is_alone = client.transport == "stdio";
    let mut connection = Connection::new(edge.clone(), writer.outlet(), level.child(), cut.clone(), client);
    let store = Gather::new(&edge.budget, Kind::Body, config.max_body);
    let mut input = Input { lines: Lines::new(config.max_body, store), held: None, max: config.max_body };
    let (served, closed) = tokio::select! {
        read = read(&mut connection, &mut input, &mut stdin) => (Some(read), "stdin closed"),
        () = tasks.ending() => (None, ""),
        // A client that reads nothing any more is as good as gone.
        () = writer.broken() => (Some(Ok(())), "stdout closed"),
        () = gone => (Some(Ok(())), "stdout closed"),
    };
    // Nobody else can come back for what is parked.
    edge.parked.close();
    // A client that has closed its pipe answers nothing more; one that is still there is told what is withdrawn.
    let (grace, is_there) = if served.is_some() { (AFTER_EOF, false) } else { (config.shutdown_grace, true) };
    if !is_there && is_alone {
        let closed = if fault().is_err() { "stdout failed" } else { closed };
        let seconds = grace.as_secs_f32();
        tracing::info!("{closed}; shutting down: waiting up to {seconds} s for calls in progress");
    }
    let until = Instant::now() + grace;
    let over = async {
        connection.retire(is_there);
        let ended = connection.ended();
        if !is_there {
            return ended.await;
        }
        let gone = async {
            let _gone_or_broken = read(&mut connection, &mut input, &mut stdin).await;
            sleep(AFTER_EOF).await;
        };
        tokio::select! {
            () = ended => {}
            () = gone => {}
        }
    };
    let _in_time = timeout_at(until, over).await;
    cut.end();
    let end = async {
        let ended = connection.ended();
        drop(connection);
        ended.await;
        writer.finish().await;
    };
    // What is still unwritten after that is dropped with its level.
    let _in_time = timeout_at(until.max(Instant::now() + LAST_WORDS), end).await;
    level.end();
    level.ended().await;
    fault().and(served.unwrap_or(Ok(())))
}

/// What has come and was not taken yet: it outlives whoever reads, so that nothing is lost when that ends.
struct Input {
    lines: Lines<Gather>,
    /// There was no room for it.
    held: Option<Line>,
    max: usize,
}

/// Reads frames and routes them, in their order, to the end of the stream. It can be dropped wherever it waits.
async fn read<R>(connection: &mut Connection, input: &mut Input, stdin: &mut R) -> io::Result<()>
where
    R: AsyncRead + Unpin,
{
    let mut is_over = false;
    loop {
        while let Some(line) = input.held.take().or_else(|| input.lines.next_line()) {
            if connection.has_room() {
                take(connection, line, input.max);
            } else {
                input.held = Some(line);
                connection.room().await;
            }
        }
        if is_over {
            return Ok(());
        }
        is_over = match input.lines.reading() {
            (buffer, None) => stdin.read_buf(buffer).await? == 0,
            (buffer, Some(gather)) => tokio::select! {
                biased;
                () = gather.lost() => {
                    input.held = Some(input.lines.give_up());
                    false
                }
                read = stdin.read_buf(buffer) => read? == 0,
            },
        };
        if is_over {
            input.held = input.lines.last();
        }
    }
}

fn take(connection: &mut Connection, line: Line, max: usize) {
    match line {
        Line::Frame(text) => connection.take(text),
        // It is told of at its end, once.
        Line::Untaken { tail: None, .. } => {}
        Line::Untaken { why, .. } => connection.refuse_line(why, max),
    }
}
