//! Carries finished log lines to stderr without ever waiting for whoever reads it.

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;
use tokio::time::Instant;

/// So many lines wait for a slow reader; then the newest are counted and dropped.
const LINES_MAX: usize = 4096;
/// A longer line is cut: much of it is foreign text.
const LINE_BYTES_MAX: usize = 8 * 1024;

/// Where lines are handed in. Cheap to clone.
#[derive(Clone)]
pub(super) struct Lines {
    sender: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

enum Message {
    Line(Vec<u8>),
    /// Something may be due later.
    Look,
    /// Everything before this was written.
    Flushed(SyncSender<()>),
}

/// What is to be done at its time by the thread that writes the lines; what it says comes to them like all else.
pub(super) trait Due: Send + Sync {
    /// When it is due, if it is.
    fn next(&self) -> Option<Instant>;
    /// Its time may have come.
    fn now(&self);
}

impl Lines {
    /// Starts the thread that writes them, and does what is due.
    pub(super) fn start(out: impl Write + Send + 'static, due: Arc<dyn Due>) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel(LINES_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let counted = dropped.clone();
        std::thread::Builder::new().name("log".into()).spawn(move || write_all(&receiver, &counted, out, &*due))?;
        Ok(Self { sender, dropped })
    }

    /// Something may be due now, or sooner than before. Where there is no room to say so the thread is awake, and looks.
    pub(super) fn look(&self) {
        let _ = self.sender.try_send(Message::Look);
    }

    /// Hands a line in that is not of the log.
    pub(super) fn line(&self, text: &str) {
        self.put(tame(text.as_bytes()).into_bytes());
    }

    fn put(&self, line: Vec<u8>) {
        if let Err(TrySendError::Full(_)) = self.sender.try_send(Message::Line(line)) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until what was handed in is written, but not longer than this; also where just now there is no room to ask for it.
    pub(super) fn flush(&self, limit: Duration) {
        let until = Instant::now() + limit;
        let (sender, receiver) = sync_channel(1);
        let mut asking = Message::Flushed(sender);
        loop {
            match self.sender.try_send(asking) {
                Ok(()) => break,
                Err(TrySendError::Full(back)) if Instant::now() < until => asking = back,
                Err(_) => return,
            }
            std::thread::yield_now();
        }
        let _ = receiver.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}

fn write_all(receiver: &Receiver<Message>, dropped: &AtomicU64, mut out: impl Write, due: &dyn Due) {
    loop {
        let wait = due.next().map(|at| at.saturating_duration_since(Instant::now()));
        let message = match wait {
            None => receiver.recv().map_err(RecvTimeoutError::from),
            Some(Duration::ZERO) => {
                due.now();
                continue;
            }
            Some(wait) => receiver.recv_timeout(wait),
        };
        // Nobody can be told that stderr is gone.
        match message {
            Ok(Message::Line(line)) => drop(out.write_all(&line)),
            Ok(Message::Flushed(done)) => drop(done.try_send(())),
            Ok(Message::Look) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let missing = dropped.swap(0, Ordering::Relaxed);
        if missing > 0 {
            let _ = writeln!(out, "({missing} lines of the log were dropped here: stderr is not read fast enough)");
        }
    }
}

/// One event's line, collected piece by piece and handed in whole.
pub(super) struct Line {
    lines: Lines,
    text: Vec<u8>,
}

impl<'a> tracing_subscriber::fmt::MakeWriter<'a> for Lines {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { lines: self.clone(), text: Vec::new() }
    }
}

impl Write for Line {
    fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
        let room = LINE_BYTES_MAX.saturating_sub(self.text.len());
        self.text.extend_from_slice(&piece[..piece.len().min(room)]);
        Ok(piece.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if !self.text.is_empty() {
            self.lines.put(tame(&self.text).into_bytes());
        }
    }
}

/// The line with everything that a terminal would act on made visible, ended by a newline.
fn tame(text: &[u8]) -> String {
    let is_cut = text.len() == LINE_BYTES_MAX;
    let text = String::from_utf8_lossy(text);
    let body = text.trim_end_matches('\n');
    let mut tamed = match body.chars().any(char::is_control) {
        true => Cow::Owned(body.chars().map(escape).collect::<String>()),
        false => Cow::Borrowed(body),
    }
    .into_owned();
    tamed.push_str(if is_cut { "…\n" } else { "\n" });
    tamed
}

fn escape(c: char) -> Cow<'static, str> {
    match c {
        c if c.is_control() => Cow::Owned(c.escape_default().to_string()),
        c => Cow::Owned(c.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Condvar, Mutex};

    #[test]
    fn control_characters_of_others_are_made_visible() {
        assert_eq!(tame("a\u{1b}[2J\r\nb\u{9b}ä\n".as_bytes()), "a\\u{1b}[2J\\r\\nb\\u{9b}ä\n");
        assert!(tame(&[b'x'; LINE_BYTES_MAX]).ends_with("x…\n"));
    }

    /// A stderr that nobody reads until its gate opens.
    #[derive(Clone, Default)]
    struct Stuck(Arc<Gate>);

    type Gate = (Mutex<(bool, Vec<u8>)>, Condvar);

    impl Write for Stuck {
        fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
            let (state, opened) = &*self.0;
            let mut state = opened.wait_while(state.lock().unwrap(), |(open, _)| !*open).unwrap();
            state.1.extend_from_slice(piece);
            Ok(piece.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    struct Nothing;

    impl Due for Nothing {
        fn next(&self) -> Option<Instant> {
            None
        }
        fn now(&self) {}
    }

    #[test]
    fn a_stderr_that_nobody_reads_stops_nobody() {
        let stuck = Stuck::default();
        let lines = Lines::start(stuck.clone(), Arc::new(Nothing)).unwrap();
        for _ in 0..LINES_MAX + 10 {
            lines.put(b"x\n".to_vec());
        }
        assert!(lines.dropped.load(Ordering::Relaxed) >= 9, "one may be with the writer already");
        let (state, opened) = &*stuck.0;
        state.lock().unwrap().0 = true;
        opened.notify_all();
        while lines.sender.try_send(Message::Line(b"last\n".to_vec())).is_err() {
            std::thread::yield_now();
        }
        lines.flush(Duration::from_secs(60));
        let text = String::from_utf8(state.lock().unwrap().1.clone()).unwrap();
        assert!(
            text.contains("lines of the log were dropped") && text.ends_with("last\n"),
            "{}",
            &text[text.len() - 99..]
        );
    }
}
