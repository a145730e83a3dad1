//! The audit: a line of JSON for each call, order and configuration, in a file of its own that is only added to. No call waits for it: a
//! thread writes the lines, and those that find no room are counted as lost.

mod file;

use super::config::{Arguments, Audit as Config};
use crate::protocol::value::{Key, Object};
use crate::secrets::mask::{self, Kept};
use file::AuditFile;
pub use file::unusable;
use ring::digest::{SHA256, digest};
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use trunkline_foundation::metrics;

/// So many lines, and so many bytes of them, wait for a slow disk; then the newest are counted and dropped.
const LINES_MAX: usize = 8192;
const BYTES_MAX: usize = 16 << 20;
/// Longer arguments stand in a line as their digest.
const ARGUMENTS_BYTES_MAX: usize = 64 << 10;
/// So much of a URI is kept.
const URI_BYTES_MAX: usize = 2 << 10;
/// So long the end of the process waits for the last lines.
const FLUSH_WAIT: Duration = Duration::from_secs(1);

/// The audit of the process, where there is one.
static AUDIT: OnceLock<Audit> = OnceLock::new();

struct Audit {
    sender: SyncSender<Message>,
    /// The bytes of the lines that wait.
    waiting: AtomicUsize,
    arguments: Arguments,
}

enum Message {
    Line(String),
    /// Everything before this was written.
    Flushed(SyncSender<()>),
}

/// Opens the file of the configuration, if it has one; once in a process, later calls change nothing.
pub fn start(config: &Config) -> io::Result<()> {
    let Some(path) = &config.file else { return Ok(()) };
    if AUDIT.get().is_some() {
        return Ok(());
    }
    let file = AuditFile::open(path, config.max_size as u64, config.keep)?;
    let (sender, receiver) = sync_channel(LINES_MAX);
    let made = Audit { sender, waiting: AtomicUsize::new(0), arguments: config.arguments };
    let audit = AUDIT.get_or_init(|| made);
    std::thread::Builder::new().name("audit".into()).spawn(move || write_all(&receiver, &audit.waiting, file)).map(drop)
}

/// Waits a moment until what was handed in is written; for the end of the process.
pub fn flush() {
    let Some(audit) = AUDIT.get() else { return };
    let (sender, receiver) = sync_channel(1);
    // Where there is no room for this a disk stands, and waiting for it has no end.
    if audit.sender.try_send(Message::Flushed(sender)).is_ok() {
        let _ = receiver.recv_timeout(FLUSH_WAIT);
    }
}

/// Whether calls are to be told of. Costs a call nothing but this look.
pub(super) fn is_on() -> bool {
    AUDIT.get().is_some()
}

/// What is kept of the arguments of a call.
#[derive(Default, Serialize)]
pub(super) struct Given {
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments_sha256: Option<String>,
    /// The resource that is asked for, or completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
}

impl Given {
    /// What the audit keeps of these parameters.
    pub(super) fn of(params: &Object) -> Self {
        let Some(audit) = AUDIT.get() else { return Self::default() };
        let given = params.get(Key::Arguments).map(|raw| Self::kept(raw, audit.arguments)).unwrap_or_default();
        Self { uri: uri(params), ..given }
    }

    fn kept(raw: &[u8], arguments: Arguments) -> Self {
        let whole = match arguments {
            Arguments::None => return Self::default(),
            Arguments::Hash => None,
            Arguments::Full if raw.len() > ARGUMENTS_BYTES_MAX => None,
            Arguments::Full => whole(raw),
        };
        let hash = || digest(&SHA256, raw).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { arguments_sha256: whole.is_none().then(hash), arguments: whole, uri: None }
    }
}

/// The URI in these parameters, also where it is what completes, without the secrets of the process.
fn uri(params: &Object) -> Option<String> {
    let of = params.text(Key::Uri).map(Cow::into_owned);
    let uri = of.or_else(|| Object::parse(params.share(Key::Reference)?).ok()?.text(Key::Uri).map(Cow::into_owned))?;
    Some(mask::masked_and_cut(&uri, URI_BYTES_MAX))
}

/// The arguments without the secrets of the process, in one line.
fn whole(raw: &[u8]) -> Option<Box<RawValue>> {
    let masked = mask::masked_json(raw, Kept::Names);
    let text = std::str::from_utf8(masked.as_deref().unwrap_or(raw)).ok()?;
    // No string of JSON has a line break as it is: these stand between its parts.
    RawValue::from_string(text.replace(['\n', '\r'], " ")).ok()
}

/// A call that has ended.
#[derive(Serialize)]
pub(super) struct Call<'a> {
    pub(super) principal: &'a str,
    pub(super) session: Option<&'a str>,
    pub(super) upstream: &'a str,
    pub(super) method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<&'a str>,
    pub(super) outcome: &'a str,
    pub(super) duration_ms: f64,
    pub(super) bytes_in: usize,
    pub(super) bytes_out: usize,
    #[serde(flatten)]
    pub(super) given: &'a Given,
}

#[derive(Serialize)]
struct Ordered<'a> {
    order: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<&'a str>,
    by: &'a str,
    status: u16,
}

#[derive(Serialize)]
struct Reread {
    outcome: &'static str,
}

#[derive(Serialize)]
struct Line<'a, T> {
    time: &'a str,
    event: &'static str,
    #[serde(flatten)]
    about: &'a T,
}

/// A call has ended.
pub(super) fn call(call: &Call<'_>) {
    hand_in("call", call);
}

/// An order was given to an upstream, or to the gateway, and answered with this status.
pub fn order(order: &str, upstream: Option<&str>, by: &'static str, status: u16) {
    hand_in("order", &Ordered { order, upstream, by, status });
}

/// The files of the configuration were read anew.
pub fn configuration(outcome: &'static str) {
    hand_in("configuration", &Reread { outcome });
}

fn hand_in<T: Serialize>(event: &'static str, about: &T) {
    let Some(audit) = AUDIT.get() else { return };
    let mut time = String::new();
    // A time that cannot be written is left out.
    let _ = SystemTime.format_time(&mut Writer::new(&mut time));
    let Ok(mut line) = serde_json::to_string(&Line { time: &time, event, about }) else { return };
    line.push('\n');
    audit.put(line);
}

impl Audit {
    fn put(&self, line: String) {
        let length = line.len();
        let before = self.waiting.fetch_add(length, Ordering::Relaxed);
        if before + length > BYTES_MAX || self.sender.try_send(Message::Line(line)).is_err() {
            self.waiting.fetch_sub(length, Ordering::Relaxed);
            metrics::audit_lines_lost().increment(1);
        }
    }
}

fn write_all(receiver: &Receiver<Message>, waiting: &AtomicUsize, mut file: AuditFile) {
    let mut lost: u64 = 0;
    while let Ok(message) = receiver.recv() {
        let line = match message {
            Message::Line(line) => line,
            Message::Flushed(done) => {
                let _ = done.try_send(());
                continue;
            }
        };
        waiting.fetch_sub(line.len(), Ordering::Relaxed);
        match file.write(line.as_bytes()) {
            Ok(()) if lost > 0 => {
                tracing::info!(lost, "the audit is written again");
                lost = 0;
            }
            Ok(()) => {}
            Err(error) => {
                if lost == 0 {
                    tracing::error!(%error, "the audit cannot be written; its lines are lost until it can be");
                }
                lost += 1;
                metrics::audit_lines_lost().increment(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn of_arguments_a_digest_is_kept_nothing_or_all_in_one_line() {
        let text = |arguments| serde_json::to_string(&Given::kept(b"{\"a\":\n \"b\\n\"}", arguments)).unwrap();
        assert_eq!(text(Arguments::None), "{}");
        assert_eq!(text(Arguments::Full), "{\"arguments\":{\"a\":  \"b\\n\"}}");
        let hash = text(Arguments::Hash);
        assert!(hash.starts_with("{\"arguments_sha256\":\"") && hash.len() == 21 + 64 + 2, "{hash}");
        let long = format!("\"{}\"", "x".repeat(ARGUMENTS_BYTES_MAX));
        assert!(Given::kept(long.as_bytes(), Arguments::Full).arguments_sha256.is_some());
    }

    #[test]
    fn the_resource_that_is_asked_for_or_completed_is_named() {
        let of = |text: &'static str| uri(&Object::parse(Bytes::from_static(text.as_bytes())).unwrap());
        assert_eq!(of(r#"{"uri":"file:\/\/\/a"}"#).as_deref(), Some("file:///a"));
        assert_eq!(of(r#"{"ref":{"type":"ref/resource","uri":"a:{b}"},"argument":{}}"#).as_deref(), Some("a:{b}"));
        assert_eq!(of(r#"{"ref":{"type":"ref/prompt","name":"a"}}"#), None);
        assert_eq!(of(r#"{"name":"a","arguments":{"uri":"b:"}}"#), None);
        let long = Object::parse(Bytes::from(format!("{{\"uri\":\"a:{}\"}}", "x".repeat(8000)))).unwrap();
        assert!(uri(&long).unwrap().len() < URI_BYTES_MAX + 8);
    }

    #[test]
    fn where_nobody_writes_lines_are_counted_and_nobody_waits() {
        let (sender, receiver) = sync_channel(2);
        let audit = Audit { sender, waiting: AtomicUsize::new(0), arguments: Arguments::Hash };
        let registry = crate::recorder::Registry::default();
        ::metrics::with_local_recorder(&registry, || (0..5).for_each(|_| audit.put("line\n".to_owned())));
        let shown = registry.render(crate::recorder::exposition::Format::Prometheus);
        assert!(shown.contains("\ntrunkline_audit_lines_lost_total 3\n"), "{shown}");
        assert_eq!(audit.waiting.load(Ordering::Relaxed), 10);
        drop(receiver);
    }
}
