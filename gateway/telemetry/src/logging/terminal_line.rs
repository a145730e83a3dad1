//! A line of the log as a person reads it at a terminal: the time of day there, how bad it is, whose it is, and what.

use std::fmt::{self, Debug, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::local_time::Zone;

/// How lines look at a terminal.
pub(super) struct TerminalLine(Zone);

impl TerminalLine {
    pub(super) fn new() -> Self {
        Self(Zone::here())
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>, N: for<'a> FormatFields<'a> + 'static> FormatEvent<S, N> for TerminalLine {
    #[allow(clippy::disallowed_methods, reason = "the time of day is for a person, and times nothing")]
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let second = i64::try_from(now.as_secs()).unwrap_or_default();
        let mut seen = Seen::default();
        event.record(&mut seen);
        write!(out, "{} {:5} ", self.0.time_of_day(second, now.subsec_millis()), event.metadata().level())?;
        if !seen.upstream.is_empty() {
            write!(out, "{}: ", seen.upstream)?;
        }
        writeln!(out, "{}{}", seen.message, seen.rest)
    }
}

/// What an event says.
#[derive(Default)]
struct Seen {
    upstream: String,
    message: String,
    rest: String,
}

impl Visit for Seen {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "upstream" => self.upstream = value.to_owned(),
            "message" => self.message.push_str(value),
            // The stream of a child is that of its words.
            "stream" => {}
            _ => self.record_debug(field, &value),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // What is written into a text is written.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            "upstream" => write!(self.upstream, "{value:?}"),
            name => write!(self.rest, "  {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Out(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Out {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_server_stands_before_what_is_said_of_it() {
        let out = Out::default();
        let own = out.clone();
        let subscriber = tracing_subscriber::fmt()
            .event_format(TerminalLine(Zone::default()))
            .with_writer(move || own.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(upstream = "crash", stream = "stderr", lines = 3, "cannot find module");
            tracing::warn!(error = %"gone", "no server");
        });
        let said = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<_> = said.lines().map(|line| line.split_once(' ').unwrap()).collect();
        assert!(lines.iter().all(|(time, _)| time.len() == 12 && time.as_bytes()[2] == b':'), "{said}");
        assert_eq!(lines[0].1, "INFO  crash: cannot find module  lines=3");
        assert_eq!(lines[1].1, "WARN  no server  error=gone");
    }
}
