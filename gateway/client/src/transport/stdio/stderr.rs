//! What a child writes to stderr: drained always, its last lines kept.

use super::stderr_log::StderrLog;
use crate::runtime::FairShare;
use crate::secrets::{decoded, mask, printable};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// How many lines are kept.
const LINES_MAX: usize = 20;
/// How much of a line is kept.
const LINE_BYTES: usize = 2048;
/// How much is read at once: as much as a pipe holds.
const CHUNK_BYTES: usize = 64 * 1024;
/// How much is read in [`PACE`]: who writes more is made to wait, and costs no more than a part of a core.
const PACE_BYTES: usize = 1024 * 1024;
const PACE: Duration = Duration::from_millis(5);

/// The last lines of a child's stderr. Cheap to clone; clones are the same.
#[derive(Debug, Clone, Default)]
pub struct StderrTail(Arc<Kept>);

#[derive(Debug, Default)]
struct Kept {
    lines: Mutex<VecDeque<String>>,
    grown: Notify,
}

impl StderrTail {
    /// The lines, oldest first.
    pub fn lines(&self) -> Vec<String> {
        self.0.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn push(&self, line: String) {
        let mut lines = self.0.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
        drop(lines);
        self.0.grown.notify_one();
    }

    /// Resolves when there is a line more.
    pub async fn grown(&self) {
        self.0.grown.notified().await;
    }
}

/// Drains stderr to its end.
pub(crate) async fn drain(mut input: impl AsyncRead + Unpin, tail: StderrTail, log: &StderrLog) {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut line = Vec::new();
    let (mut since, mut taken) = (Instant::now(), 0);
    let mut stretch = FairShare::default();
    loop {
        let read = match input.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        let mut rest = &chunk[..read];
        // Of a flood only what could be kept is looked at.
        let floods = memchr::memchr_iter(b'\n', rest).count().saturating_sub(LINES_MAX + 1);
        // Looked for from the end, where it is near.
        if let Some(last) = memchr::memrchr_iter(b'\n', rest).nth(LINES_MAX + 1) {
            rest = &rest[last + 1..];
            line.clear();
            log.keep_back(floods as u64);
            log.count(floods as u64);
        }
        while let Some(at) = memchr::memchr(b'\n', rest) {
            append(&mut line, &rest[..at]);
            finish(&mut line, &tail, log);
            log.count(1);
            rest = &rest[at + 1..];
        }
        append(&mut line, rest);
        stretch.read(read).await;
        taken += read;
        if taken >= PACE_BYTES {
            // Long past where so much came in a longer time.
            sleep_until(since + PACE).await;
            (since, taken) = (Instant::now(), 0);
        }
    }
    finish(&mut line, &tail, log);
}

/// Appends what fits; the rest of a long line is let go.
fn append(line: &mut Vec<u8>, text: &[u8]) {
    let room = (LINE_BYTES + mask::margin()).saturating_sub(line.len());
    line.extend_from_slice(&text[..text.len().min(room)]);
}

fn finish(line: &mut Vec<u8>, tail: &StderrTail, log: &StderrLog) {
    let text = printable(&mask::masked_and_cut(&decoded(line), LINE_BYTES));
    line.clear();
    if !text.is_empty() {
        log.line(&text);
        tail.push(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A log, and how many lines it has counted.
    fn counting() -> (StderrLog, Arc<AtomicU64>) {
        let counted = Arc::<AtomicU64>::default();
        (StderrLog::new(&"a".into(), ::metrics::Counter::from_arc(counted.clone())), counted)
    }

    #[tokio::test]
    async fn the_last_lines_are_kept_bounded_and_harmless() {
        let mut text = (0..30).map(|n| format!("line {n}\n")).collect::<String>();
        text.push_str(&"x".repeat(3 * LINE_BYTES));
        text.push_str("\n\u{1b}[31mred\u{7}");
        let tail = StderrTail::default();
        let (log, counted) = counting();
        drain(text.as_bytes(), tail.clone(), &log).await;
        let counted = counted.load(Ordering::Relaxed);
        let lines = tail.lines();
        assert_eq!((lines.len(), lines[0].as_str(), lines[18].len(), counted), (20, "line 12", LINE_BYTES, 31));
        assert_eq!(lines.last().map(String::as_str), Some("\\u{1b}[31mred\\u{7}"));
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_flood_only_so_much_is_read_at_a_time_and_every_line_is_counted() {
        // Lines of any length, so that borders fall anywhere in them.
        let text: Vec<u8> = (0..200_000).flat_map(|n| format!("{n} {}\n", "x".repeat(n % 97)).into_bytes()).collect();
        let (tail, (log, counted), begun) = (StderrTail::default(), counting(), Instant::now());
        drain(&text[..], tail.clone(), &log).await;
        assert_eq!(counted.load(Ordering::Relaxed), 200_000);
        let numbers: Vec<String> = tail.lines().iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
        assert_eq!(numbers, (199_980..200_000).map(|n| n.to_string()).collect::<Vec<_>>());
        let paused = u32::try_from(text.len() / (PACE_BYTES + CHUNK_BYTES)).unwrap();
        assert!(paused > 5 && begun.elapsed() >= PACE * paused, "{} bytes in {:?}", text.len(), begun.elapsed());
    }
}
