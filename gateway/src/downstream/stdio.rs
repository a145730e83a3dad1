//! Our own stdin and stdout: one client, both eras mixed, frames read in order, answers written as they come.

mod connection;
mod parting;
#[cfg(test)]
mod tests;
mod writer;

use super::config::Config;
use super::edge::Edge;
use crate::call::Handler;
use crate::lifecycle::Tasks;
use crate::protocol::lines::{Line, Lines};
use connection::Connection;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use writer::Writer;

/// How long what runs at the end of stdin has to finish and be written.
const AFTER_EOF: Duration = Duration::from_secs(2);

/// Serves the one client at the other end, until it closes either pipe or `tasks` is told to end. Then what runs may finish
/// for a while, and what is answered is written.
pub async fn serve<R, W>(handler: Handler, config: &Config, mut stdin: R, stdout: W, tasks: Tasks) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    // Not below `tasks`: what runs is not to be dropped as soon as that is told to end.
    let level = Tasks::new();
    let _guard = level.guard();
    let writer = Writer::start(stdout, &level);
    let edge = Arc::new(Edge::new(handler, config, tasks.clone()));
    let mut connection = Connection::new(edge.clone(), writer.outlet(), level.child());
    let read = tokio::select! {
        read = read(&mut connection, &mut stdin, config.max_body) => Some(read),
        () = tasks.ending() => None,
        () = writer.broken() => None,
    };
    // Nobody else can come back for what is parked.
    edge.parked.close();
    // A client that has closed its pipe answers nothing more; one that is still there is told what is withdrawn.
    let (grace, is_there) = if read.is_some() { (AFTER_EOF, false) } else { (config.shutdown_grace, true) };
    let end = async {
        connection.finish(is_there).await;
        writer.finish().await;
    };
    // What is still running or unwritten after that is dropped with its level.
    let _in_time = tokio::time::timeout(grace, end).await;
    level.end();
    level.ended().await;
    read.unwrap_or(Ok(()))
}

/// Reads frames and routes them, in their order, to the end of the stream.
async fn read<R>(connection: &mut Connection, stdin: &mut R, max: usize) -> io::Result<()>
where
    R: AsyncRead + Unpin,
{
    let mut lines = Lines::new(max);
    while stdin.read_buf(lines.buffer()).await? > 0 {
        while let Some(line) = lines.next_line() {
            take(connection, line, max).await;
        }
    }
    if let Some(line) = lines.last() {
        take(connection, line, max).await;
    }
    Ok(())
}

async fn take(connection: &mut Connection, line: Line, max: usize) {
    match line {
        Line::Frame(text) => connection.take(text).await,
        Line::TooLong { .. } => connection.refuse_line(max).await,
    }
}
