//! `trunkline demo-upstream`: a small real MCP upstream on stdin and stdout that speaks both eras.

// What the eras do not share: how a request says its revision, and what a result must carry.
mod era;
// What the demo offers beside its tools: resources, a template, a prompt, and completions.
mod offer;
// One conversation on one pipe: frames in, answers out; a single owner of all that it remembers.
mod session;
// The demo's tools: what they are called, and what they do.
mod tools;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use super::process::{Failure, runtime};
use session::Session;

/// The longest line that is read; a longer one ends the program, as what follows it is a guess.
const LINE_BYTES: u64 = 16 << 20;
/// Frames that wait on either side.
const QUEUE: usize = 64;

/// Speaks until stdin ends.
pub(super) fn run() -> Result<(), Failure> {
    runtime::block_on(async {
        match speak(tokio::io::stdin(), tokio::io::stdout()).await {
            // Whoever started it has gone: there is nobody to tell, and nothing is wrong.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            spoken => Ok(spoken?),
        }
    })
}

/// Reads, answers and writes side by side, until `input` ends or nobody reads `output`.
async fn speak(input: impl AsyncRead + Unpin, output: impl AsyncWrite + Unpin) -> std::io::Result<()> {
    let (lines_in, mut lines) = mpsc::channel(QUEUE);
    let (frames, frames_out) = mpsc::channel(QUEUE);
    let answer = async {
        Session::new(frames).run(&mut lines).await;
        // The reader sees that nobody listens any more, and ends too.
        drop(lines);
    };
    let (read, (), written) = tokio::join!(read(input, lines_in), answer, write(output, frames_out));
    read.and(written)
}

async fn read(input: impl AsyncRead + Unpin, lines: mpsc::Sender<Vec<u8>>) -> std::io::Result<()> {
    let mut input = BufReader::new(input);
    loop {
        let mut line = Vec::new();
        let mut bounded = (&mut input).take(LINE_BYTES);
        let length = tokio::select! {
            length = bounded.read_until(b'\n', &mut line) => length?,
            () = lines.closed() => return Ok(()),
        };
        if length as u64 == LINE_BYTES {
            return Err(std::io::Error::other("a line is too long"));
        }
        if length == 0 || lines.send(line).await.is_err() {
            return Ok(());
        }
    }
}

async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut frames: mpsc::Receiver<serde_json::Value>,
) -> std::io::Result<()> {
    while let Some(frame) = frames.recv().await {
        let mut line = serde_json::to_vec(&frame)?;
        line.push(b'\n');
        output.write_all(&line).await?;
        if frames.is_empty() {
            output.flush().await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
