//! The log: on stderr only, text for people or JSON for programs, never waited for.

// The time of day where the person is.
mod local_time;
// A line as a person reads it at a terminal.
mod terminal_line;

pub use local_time::Zone;

use super::config::{Format, Log};
use super::lines::{Form, Lines};
use super::ration::{Ration, Rationed};
use crate::secrets::{mask, visible};
use std::backtrace::BacktraceStatus;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use terminal_line::TerminalLine;
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::Handle;
use tracing_subscriber::util::SubscriberInitExt;
use trunkline_foundation::metrics;

/// So long the end of the process waits for its last lines.
const FLUSH_WAIT: Duration = Duration::from_millis(250);

/// What checks certificates, and logs on its own.
const VERIFIER: &str = "rustls_platform_verifier";
/// What reads HTTP/2, and logs on its own.
const HTTP2: &str = "h2";

static LINES: OnceLock<Lines> = OnceLock::new();
static RATION: OnceLock<Arc<Ration>> = OnceLock::new();
/// Shows what another configuration says is shown.
static LEVEL: OnceLock<SetLevel> = OnceLock::new();

/// Whether each call has a line.
static CALLS: AtomicBool = AtomicBool::new(false);

/// Whether each call has a line. Costs a call nothing but this look.
pub(super) fn has_calls() -> bool {
    CALLS.load(Ordering::Relaxed)
}

/// Puts the level of a configuration into force.
type SetLevel = Box<dyn Fn(&Log) + Send + Sync>;

/// The command that writes the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// `serve`: where stderr is no terminal, programs read it.
    Serve,
    /// `stdio`: a host shows stderr to a person.
    Stdio,
    /// The gateway that several `stdio` share: its stderr is a file, which is never longer than this many bytes.
    File(u64),
}

/// Stderr that is a file of its own, opened for appending: it is emptied before it is too long.
struct OwnFile {
    max: u64,
    written: u64,
}

impl Write for OwnFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.written + bytes.len() as u64 > self.max {
            // What is no file cannot be emptied, and needs not be.
            let _ = rustix::fs::ftruncate(std::io::stderr(), 0);
            self.written = 0;
        }
        let count = std::io::stderr().write(bytes)?;
        self.written += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

/// Starts the log; once in a process, later calls change nothing. Where `serve` shows a person each change of an upstream, the lines of the
/// log about the same are left out.
pub fn start(config: &Log, writer: Writer) {
    if LINES.get().is_some() {
        return;
    }
    CALLS.store(config.calls, Ordering::Relaxed);
    let ration = Arc::<Ration>::default();
    let is_terminal = std::io::stderr().is_terminal();
    let is_text = is_text(config.format, writer, is_terminal);
    let form = if is_text { Form::Text } else { Form::Json };
    let out: Box<dyn Write + Send> = match writer {
        Writer::File(max) => Box::new(OwnFile { max, written: 0 }),
        Writer::Serve | Writer::Stdio => Box::new(std::io::stderr()),
    };
    let Ok(lines) = Lines::start(out, ration.clone(), form) else { return };
    if LINES.set(lines.clone()).is_err() || RATION.set(ration.clone()).is_err() {
        return;
    }
    if !is_text {
        // Also the last words of a panic are one line.
        std::panic::set_hook(Box::new(|panic| {
            let trace = std::backtrace::Backtrace::capture();
            let trace = (trace.status() == BacktraceStatus::Captured).then(|| format!("\n{trace}"));
            complain(&format!("{panic}{}", trace.unwrap_or_default()));
        }));
    }
    let is_shown = is_text && writer == Writer::Serve;
    let rationed = Rationed { ration, lines: lines.clone() };
    let filter = filter(config, is_shown);
    rationed.ration.holds(&filter);
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // Colours would be written in the very bytes that make foreign text dangerous.
        .with_ansi(false)
        .with_target(false)
        .with_writer(lines);
    // Where something else has taken the log already, as in a test, that stays.
    let _ = match is_text {
        true if is_terminal => {
            let builder = builder.event_format(TerminalLine::new()).with_filter_reloading();
            levelled(builder.reload_handle(), is_shown);
            builder.finish().with(rationed).try_init()
        }
        true => {
            let builder = builder.compact().with_filter_reloading();
            levelled(builder.reload_handle(), is_shown);
            builder.finish().with(rationed).try_init()
        }
        false => {
            let builder = builder.json().flatten_event(true).with_current_span(false).with_filter_reloading();
            levelled(builder.reload_handle(), is_shown);
            builder.finish().with(rationed).try_init()
        }
    };
}

/// Keeps the way to the filter of the log.
fn levelled<S: 'static>(handle: Handle<EnvFilter, S>, is_shown: bool) {
    let set = move |config: &Log| {
        let filter = filter(config, is_shown);
        if let Some(ration) = RATION.get() {
            ration.holds(&filter);
        }
        // It fails where something else has taken the log.
        let _ = handle.reload(filter);
    };
    let _is_first = LEVEL.set(Box::new(set));
}

/// From now on what this configuration says is shown; how lines look stays.
pub fn set_level(config: &Log) {
    CALLS.store(config.calls, Ordering::Relaxed);
    if let Some(set) = LEVEL.get() {
        set(config);
    }
}

/// What is shown. Lines of children are events of their own target, so that they can be shown or not.
fn filter(config: &Log, is_shown: bool) -> EnvFilter {
    let filter = EnvFilter::builder().parse_lossy(&config.level);
    let most = filter.max_level_hint().unwrap_or(LevelFilter::TRACE);
    let shown = config.upstream_stderr.is_some_and(|level| LevelFilter::from(level) <= most);
    let level = if shown { LevelFilter::INFO } else { LevelFilter::OFF };
    // The verifier cries about each bad certificate on its own, not knowing whose it is; the upstream's cause says it all.
    let quiet = format!("{VERIFIER}=off");
    // Who asks for more than the usual is given all of it.
    let is_usual = most <= LevelFilter::INFO;
    let doubled = (is_shown && is_usual).then(|| format!("{}=off", metrics::UPSTREAM_STATE));
    // It has a line for each connection of a flood, which whoever can connect could fill the log with.
    let floods = is_usual.then(|| format!("{HTTP2}=off"));
    let directives = [format!("{}={level}", metrics::CHILD_STDERR), quiet].into_iter().chain(doubled).chain(floods);
    directives.fold(filter, |filter, directive| {
        filter.add_directive(directive.parse().expect("a target and a level make a directive"))
    })
}

/// How a line looks.
fn is_text(format: Format, writer: Writer, is_terminal: bool) -> bool {
    match format {
        Format::Text => true,
        Format::Json => false,
        Format::Auto => is_terminal || writer != Writer::Serve,
    }
}

/// Whether each line on stderr is a JSON object.
pub fn is_json() -> bool {
    LINES.get().is_some_and(Lines::is_json)
}

/// Shows a person something on stderr, without secrets, between the lines of the log where there is one. Never waits for whoever reads, and does
/// without where nobody can: a process that serves must not end for want of a reader.
pub fn say(text: &str) {
    put(Level::INFO, text);
}

/// The same, with one word of its first line in a colour: the code that makes a terminal show it.
pub fn say_with_colour(text: &str, word: &str, code: &str) {
    match LINES.get() {
        Some(lines) if !code.is_empty() => lines.say_with_colour(&mask::masked(text), word, code),
        _ => say(text),
    }
}

/// The same for what went wrong.
pub fn complain(text: &str) {
    put(Level::ERROR, text);
}

fn put(level: Level, text: &str) {
    let text = &*mask::masked(text);
    match LINES.get() {
        Some(_) if text.is_empty() => {}
        Some(lines) => lines.say(level, text),
        None => text.lines().for_each(|line| drop(writeln!(std::io::stderr(), "{}", visible(line)))),
    }
}

/// Waits a moment for the last lines; for the end of the process.
pub fn flush() {
    if let Some(ration) = RATION.get() {
        ration.end();
    }
    if let Some(lines) = LINES.get() {
        lines.flush(FLUSH_WAIT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_children_are_shown_where_their_level_is() {
        for (general, children, expected) in [
            ("info", Some(Level::INFO), "info"),
            ("warn", Some(Level::INFO), "off"),
            ("warn", Some(Level::WARN), "info"),
            ("debug", None, "off"),
        ] {
            let log = Log { level: general.to_owned(), upstream_stderr: children, ..Log::default() };
            let filter = filter(&log, false).to_string();
            let directive = format!("{}={expected}", trunkline_foundation::metrics::CHILD_STDERR);
            assert!(filter.split(',').any(|part| part == directive), "{general} {children:?}: {filter}");
        }
    }

    #[test]
    fn what_reads_http2_has_no_lines_of_its_own_unless_more_than_the_usual_is_asked_for() {
        for (general, is_off) in [("info", true), ("warn,h2=info", true), ("debug", false), ("info,h2=debug", false)] {
            let filter = filter(&Log { level: general.to_owned(), ..Log::default() }, false).to_string();
            assert_eq!(filter.split(',').any(|part| part == "h2=off"), is_off, "{general}: {filter}");
        }
    }

    #[test]
    fn only_a_person_is_written_text() {
        let of = |writer, is_terminal| {
            [Format::Auto, Format::Text, Format::Json].map(|format| is_text(format, writer, is_terminal))
        };
        assert_eq!(of(Writer::Serve, true), [true, true, false]);
        assert_eq!(of(Writer::Serve, false), [false, true, false]);
        assert_eq!(of(Writer::Stdio, true), [true, true, false]);
        assert_eq!(of(Writer::Stdio, false), [true, true, false]);
    }

    #[test]
    fn what_people_are_shown_is_not_logged_too_unless_more_is_asked_for() {
        let off = format!("{}=off", trunkline_foundation::metrics::UPSTREAM_STATE);
        for (level, is_shown, expected) in [("info", true, true), ("info", false, false), ("debug", true, false)] {
            let filter = filter(&Log { level: level.to_owned(), ..Log::default() }, is_shown).to_string();
            assert_eq!(filter.split(',').any(|part| part == off), expected, "{level} {is_shown}: {filter}");
        }
    }
}
