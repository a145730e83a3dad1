//! Carries finished log lines to stderr without ever waiting for whoever reads it.

use crate::secrets::mask::{self, Kept};
use crate::secrets::{visible, visible_json};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;
use tokio::time::Instant;
use tracing::Level;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use trunkline_foundation::metrics;

/// So many lines wait for a slow reader; then the newest are counted and dropped.
const LINES_MAX: usize = 4096;
/// A longer line is cut: much of it is foreign text.
const LINE_BYTES_MAX: usize = 8 * 1024;

/// What a line of the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Json,
}

/// Where lines are handed in. Cheap to clone.
#[derive(Clone)]
pub(super) struct Lines {
    form: Form,
    /// Without room of its own: that of so many lines would be touched at each start.
    sender: Sender<Message>,
    counts: Arc<Counts>,
}

/// How many lines there are that are not written.
#[derive(Default)]
struct Counts {
    waiting: AtomicUsize,
    /// Since the last line that was written.
    dropped: AtomicU64,
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
    pub(super) fn start(out: impl Write + Send + 'static, due: Arc<dyn Due>, form: Form) -> std::io::Result<Self> {
        let (sender, receiver) = channel();
        let counts = Arc::<Counts>::default();
        let counted = counts.clone();
        std::thread::Builder::new()
            .name("log".into())
            .spawn(move || write_all(&receiver, &counted, out, &*due, form))?;
        Ok(Self { form, sender, counts })
    }

    /// Something may be due now, or sooner than before. Where there is no room to say so the thread is awake, and looks.
    pub(super) fn look(&self) {
        _ = self.hand_in(Message::Look);
    }

    /// Hands something in, where there is room.
    fn hand_in(&self, message: Message) -> bool {
        let has_room = self.counts.waiting.fetch_add(1, Ordering::Relaxed) < LINES_MAX;
        if !has_room || self.sender.send(message).is_err() {
            self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        has_room
    }

    /// Whether each line is a JSON object.
    pub(super) fn is_json(&self) -> bool {
        self.form == Form::Json
    }

    /// Hands in what is no event of the log: as it is, line by line, or as the message of one object.
    pub(super) fn say(&self, level: Level, text: &str) {
        match self.form {
            Form::Text => text.lines().for_each(|line| self.put(tame(line.as_bytes(), Form::Text).into_bytes())),
            Form::Json => self.put(tame(object(level, text).as_bytes(), Form::Json).into_bytes()),
        }
    }

    /// The same at a terminal, with a word of ours in a colour: what makes the colour is put in once all else that a terminal would act on
    /// is written out.
    pub(super) fn say_with_colour(&self, text: &str, word: &str, code: &str) {
        for (number, line) in text.lines().enumerate() {
            let line = tame(line.as_bytes(), self.form);
            let coloured = format!("{code}{word}\x1b[0m");
            let line = if number == 0 { line.replacen(word, &coloured, 1) } else { line };
            self.put(line.into_bytes());
        }
    }

    fn put(&self, line: Vec<u8>) {
        if !self.hand_in(Message::Line(line)) {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            metrics::lines_lost().increment(1);
        }
    }

    /// Waits until what was handed in is written, but not longer than this.
    pub(super) fn flush(&self, limit: Duration) {
        let (sender, receiver) = sync_channel(1);
        // Few ask, so that they need no room.
        self.counts.waiting.fetch_add(1, Ordering::Relaxed);
        if self.sender.send(Message::Flushed(sender)).is_ok() {
            _ = receiver.recv_timeout(limit);
        }
    }
}

fn write_all(receiver: &Receiver<Message>, counts: &Counts, mut out: impl Write, due: &dyn Due, form: Form) {
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
        if message.is_ok() {
            counts.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        // Nobody can be told that stderr is gone.
        match message {
            Ok(Message::Line(line)) => drop(out.write_all(&line)),
            Ok(Message::Flushed(done)) => drop(done.try_send(())),
            Ok(Message::Look) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let missing = counts.dropped.swap(0, Ordering::Relaxed);
        if missing > 0 {
            let text = format!("({missing} lines of the log were dropped here: stderr is not read fast enough)");
            let _ = match form {
                Form::Text => writeln!(out, "{text}"),
                Form::Json => writeln!(out, "{}", object(Level::WARN, &text)),
            };
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
        // A secret that is cut is not found any more.
        let room = (LINE_BYTES_MAX + mask::margin()).saturating_sub(self.text.len());
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
            self.lines.put(tame(&self.text, self.lines.form).into_bytes());
        }
    }
}

/// The members that every object of the log has.
fn object(level: Level, text: &str) -> String {
    let mut time = String::new();
    // A time that cannot be written is left out.
    let _ = SystemTime.format_time(&mut Writer::new(&mut time));
    format!("{{\"timestamp\":\"{time}\",\"level\":\"{level}\",\"message\":{}}}", serde_json::Value::from(text))
}

/// An object of the log that was cut, as an object again. A string that is not whole ends in `…`; another member that is not whole
/// is left out.
fn closed(text: &str) -> String {
    let bytes = text.as_bytes();
    // Where the last whole member ends.
    let mut whole = 1;
    loop {
        let key = whole + usize::from(whole > 1);
        let Ok(colon) = string_end(bytes, key) else { break };
        let value = colon + 1;
        let end = match bytes.get(value) {
            Some(b'"') => match string_end(bytes, value) {
                Ok(end) => Some(end),
                Err(end) => return format!("{}…\"}}", text.get(..end).unwrap_or_default()),
            },
            _ => bytes.iter().skip(value).position(|byte| matches!(byte, b',' | b'}')).map(|at| value + at),
        };
        let Some(end) = end else { break };
        whole = end;
        if bytes.get(whole) == Some(&b'}') {
            return text.to_owned();
        }
    }
    format!("{}}}", text.get(..whole).unwrap_or("{"))
}

/// Where the string that begins at `at` ends; for a string that is cut, where its last whole character ends.
fn string_end(bytes: &[u8], mut at: usize) -> Result<usize, usize> {
    at += 1;
    while let Some(byte) = bytes.get(at) {
        let length = match byte {
            b'"' => return Ok(at + 1),
            b'\\' if bytes.get(at + 1) == Some(&b'u') => 6,
            b'\\' => 2,
            _ => 1,
        };
        if at + length > bytes.len() {
            break;
        }
        at += length;
    }
    Err(at)
}

/// The line with everything that a terminal would act on or hide written out, ended by a newline.
fn tame(text: &[u8], form: Form) -> String {
    let is_cut = text.len() >= LINE_BYTES_MAX;
    // A line of JSON that is whole stays JSON.
    let masked = match form {
        Form::Json if !is_cut => mask::masked_json(text, Kept::Names),
        _ => None,
    };
    let text = masked.as_deref().unwrap_or(text);
    let text = mask::masked_and_cut(&String::from_utf8_lossy(text), LINE_BYTES_MAX);
    let body = text.trim_end_matches('\n');
    match form {
        Form::Text if is_cut => format!("{}…\n", visible(body)),
        Form::Text => format!("{}\n", visible(body)),
        Form::Json if is_cut => format!("{}\n", visible_json(&closed(body))),
        Form::Json => format!("{}\n", visible_json(body)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Registry;
    use crate::recorder::exposition::Format;
    use std::sync::{Condvar, Mutex};

    #[test]
    fn control_characters_of_others_are_made_visible() {
        let text = |text: &str| tame(text.as_bytes(), Form::Text);
        assert_eq!(text("a\u{1b}[2J\r\nb\u{9b}ä\n"), "a\\u{1b}[2J\\r\\nb\\u{9b}ä\n");
        assert_eq!(text("up\u{202e}nwod\u{200b}\n"), "up\\u{202e}nwod\\u{200b}\n");
        assert!(tame(&[b'x'; LINE_BYTES_MAX], Form::Text).ends_with("x…\n"));
    }

    #[test]
    fn a_line_of_json_stays_json_whatever_others_put_into_it() {
        let line = serde_json::json!({ "message": "a\u{1b}\u{9b}\u{202e}" });
        let tamed = tame(line.to_string().as_bytes(), Form::Json);
        assert_eq!(tamed, "{\"message\":\"a\\u001b\\u009b\\u202e\"}\n");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&tamed).unwrap(), line);
    }

    #[test]
    fn a_line_of_json_that_is_cut_anywhere_is_a_line_of_json() {
        let line = "{\"timestamp\":\"now\",\"message\":\"a\\u001b\\\"ä\",\"lines\":120,\"is\":true,\"said\":\"b\\n\"}";
        let whole: serde_json::Value = serde_json::from_str(line).unwrap();
        for at in (1..=line.len()).filter(|at| line.is_char_boundary(*at)) {
            let closed = closed(&line[..at]);
            let value: serde_json::Value = serde_json::from_str(&closed).unwrap_or_else(|_| panic!("{at}: {closed}"));
            for (key, value) in value.as_object().unwrap() {
                let text = value.as_str().unwrap_or_default();
                let is_part = text.strip_suffix('…').is_some_and(|part| whole[key].as_str().unwrap().starts_with(part));
                assert!(is_part || *value == whole[key], "{at}: {closed}");
            }
        }
        let long = object(Level::INFO, &"x\n".repeat(LINE_BYTES_MAX));
        let tamed = tame(long.as_bytes(), Form::Json);
        let value: serde_json::Value = serde_json::from_str(&tamed).unwrap();
        let message = value["message"].as_str().and_then(|message| message.strip_suffix('…'));
        assert!(
            value["level"] == "INFO" && message.is_some_and(|message| message.trim_matches(['x', '\n']).is_empty())
        );
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
        let lines = Lines::start(stuck.clone(), Arc::new(Nothing), Form::Text).unwrap();
        let registry = Registry::default();
        ::metrics::with_local_recorder(&registry, || (0..LINES_MAX + 10).for_each(|_| lines.put(b"x\n".to_vec())));
        let dropped = lines.counts.dropped.load(Ordering::Relaxed);
        assert!(dropped >= 9, "one may be with the writer already");
        let shown = registry.render(Format::Prometheus);
        assert!(shown.contains(&format!("\ntrunkline_log_lines_lost_total {dropped}\n")), "{shown}");
        let (state, opened) = &*stuck.0;
        state.lock().unwrap().0 = true;
        opened.notify_all();
        while !lines.hand_in(Message::Line(b"last\n".to_vec())) {
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
