//! Frames held against the published schemas of their revision.
//!
//! The schemas are not ours to keep: they are taken from the folder that `TRUNKLINE_SCHEMAS` names, one
//! `REVISION.json` for each. Without it nothing is judged, and that is said once.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::OnceLock;

use serde_json::Value;

use crate::frame::Frame;
use crate::revision::Revision;

pub mod answers;
pub mod validator;

use validator::Schema;

/// Who is meant to read a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// It came from an upstream's side.
    Client,
    /// It came from a client's side.
    Upstream,
}

/// The published schemas, each read when it is first asked for.
pub struct Schemas {
    folder: PathBuf,
    books: [OnceLock<Book>; 5],
}

/// The schema of one revision, and which definition is whose.
struct Book {
    schema: Schema,
    /// What a client may be told or asked, by method.
    to_client: HashMap<String, String>,
    /// What an upstream may be told or asked, by method.
    to_upstream: HashMap<String, String>,
}

static SCHEMAS: OnceLock<Option<Schemas>> = OnceLock::new();

/// The schemas, if they are at hand.
pub fn published() -> Option<&'static Schemas> {
    let load = || {
        let folder = folder();
        if folder.is_none() {
            // Not `eprintln!`: the test runner would swallow it, and a silent skip is a lie.
            let _ = writeln!(std::io::stderr(), "frames are not held against schemas: TRUNKLINE_SCHEMAS is not set");
        }
        folder.map(Schemas::of)
    };
    SCHEMAS.get_or_init(load).as_ref()
}

/// The folder that the environment names.
pub(crate) fn folder() -> Option<PathBuf> {
    std::env::var_os("TRUNKLINE_SCHEMAS").filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// Takes the folder from whoever started this process: its environment need not reach a child.
pub(crate) fn told(folder: Option<PathBuf>) {
    SCHEMAS.get_or_init(|| folder.map(Schemas::of));
}

/// What is wrong with a frame that `reader` got in a revision; `method` is that of the request which an answer is to.
/// Nothing without the schemas.
#[must_use]
pub fn faults(frame: &Frame, method: Option<&str>, reader: Reader, revision: Revision) -> Vec<String> {
    let Some(schemas) = published() else { return Vec::new() };
    schemas
        .faults(frame, method, reader, revision)
        .into_iter()
        .map(|fault| format!("schema {revision}: {fault}"))
        .collect()
}

impl Schemas {
    fn of(folder: PathBuf) -> Schemas {
        Schemas { folder, books: Default::default() }
    }

    fn book(&self, revision: Revision) -> &Book {
        self.books[revision as usize].get_or_init(|| {
            let file = self.folder.join(format!("{revision}.json"));
            let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let root = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            Book::new(Schema::new(root))
        })
    }

    /// Whether any revision has such a method.
    fn knows(&self, method: &str) -> bool {
        let has = |book: &Book| book.to_client.contains_key(method) || book.to_upstream.contains_key(method);
        Revision::ALL.into_iter().any(|revision| has(self.book(revision)))
    }

    fn faults(&self, frame: &Frame, method: Option<&str>, reader: Reader, revision: Revision) -> Vec<String> {
        let Some(value) = tree(frame) else { return Vec::new() };
        let book = self.book(revision);
        let mut faults = book.envelope(frame, &value);
        match (&frame.method, method) {
            // The extension has tasks of its own form, and no published schema.
            (Some(name), _) if revision.is_modern() && name.starts_with("tasks/") => {}
            (None, Some(name)) if revision.is_modern() && name.starts_with("tasks/") => {}
            (None, _) if revision.is_modern() && value["result"]["resultType"] == "task" => {}
            (Some(name), _) => {
                let known = if reader == Reader::Client { &book.to_client } else { &book.to_upstream };
                match known.get(name) {
                    Some(definition) => faults.extend(book.schema.faults(definition, &value)),
                    // What no revision has is somebody's own; what another one has is in the wrong place.
                    None if self.knows(name) => {
                        faults.push(format!("{name} is not for a {reader:?} of this revision"));
                    }
                    None => {}
                }
            }
            (None, method) => {
                let method = method.unwrap_or("");
                faults.extend(answers::faults(&book.schema, revision, method, &value));
            }
        }
        faults.iter().map(|fault| format!("{fault}, in {}", crate::frame::shorten(&value.to_string()))).collect()
    }
}

impl Book {
    fn new(schema: Schema) -> Book {
        let table = |groups: [&str; 2]| {
            let names = groups.into_iter().flat_map(|group| schema.variants(group));
            names.filter_map(|name| Some((schema.method(&name)?, name))).collect::<HashMap<_, _>>()
        };
        let (to_client, to_upstream) =
            (table(["ServerRequest", "ServerNotification"]), table(["ClientRequest", "ClientNotification"]));
        Book { schema, to_client, to_upstream }
    }

    fn envelope(&self, frame: &Frame, value: &Value) -> Vec<String> {
        let names: &[&str] = match (&frame.method, &frame.id, &frame.error) {
            (Some(_), Some(_), _) => &["JSONRPCRequest"],
            (Some(_), None, _) => &["JSONRPCNotification"],
            // Whoever could not read an id answers `null`, as JSON-RPC has it.
            (None, Some(id), Some(_)) if id.get() == "null" => return Vec::new(),
            (None, _, Some(_)) => &["JSONRPCErrorResponse", "JSONRPCError"],
            (None, ..) => &["JSONRPCResultResponse", "JSONRPCResponse"],
        };
        let name = names.iter().find(|name| self.schema.has(name)).expect("every revision has envelopes");
        self.schema.faults(name, value)
    }
}

/// A frame as a tree; nothing for numbers and texts that no tree can hold.
fn tree(frame: &Frame) -> Option<Value> {
    let parts = [("jsonrpc", &frame.jsonrpc), ("id", &frame.id), ("params", &frame.params), ("result", &frame.result)];
    let mut value = serde_json::Map::new();
    for (name, raw) in parts.into_iter().chain([("error", &frame.error)]) {
        if let Some(raw) = raw {
            value.insert(name.into(), serde_json::from_str(raw.get()).ok()?);
        }
    }
    if let Some(method) = &frame.method {
        value.insert("method".into(), method.as_str().into());
    }
    Some(Value::Object(value))
}
