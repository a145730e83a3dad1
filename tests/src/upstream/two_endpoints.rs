//! An upstream over HTTP+SSE: a stream of events down, POSTs up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hyper::header::HeaderValue;
use tokio::sync::mpsc;

use crate::engine::{Out, Outlet};
use crate::frame::Frame;
use crate::journal::What;
use crate::revision::Revision;
use crate::script::Act;
use crate::sse;
use crate::upstream::body::{Answer, stream, whole};
use crate::upstream::child;
use crate::upstream::http::{Headers, Host, header};

/// One client's stream.
#[derive(Clone)]
struct Connection {
    sender: mpsc::Sender<Out>,
    agreed: Arc<tokio::sync::Mutex<Option<Revision>>>,
}

/// The streams that are open.
#[derive(Default)]
pub(crate) struct Connections(Mutex<HashMap<u64, Connection>>);

/// Opens a stream: its first event names the address for messages.
pub(crate) async fn open(host: &Arc<Host>, headers: &Headers) -> Answer {
    let engine = &host.engine;
    engine.journal.tell(What::Visit { method: "GET".into(), headers: headers.clone() }).await;
    if let Some(Act::Status { status, kind, body }) = engine.acts_for("GET", None).first() {
        return whole(*status, kind, body.clone());
    }
    let number = host.number();
    let (sender, receiver) = mpsc::channel(1024);
    host.streams.insert(number, Connection { sender, agreed: Arc::default() });
    let (feeder, answer) = stream();
    let origin = format!("http://{}", header(headers, "host").unwrap_or_default());
    let named = engine.script.http.endpoint.replace("$ORIGIN", &origin).replace("$ID", &number.to_string());
    tokio::spawn(feed(host.clone(), number, named, receiver, feeder));
    answer
}

/// Takes a message of the stream that its address names.
pub(crate) async fn post(host: &Arc<Host>, query: &str, headers: &Headers, body: &Bytes) -> Answer {
    let engine = &host.engine;
    engine.note(body, headers.clone()).await;
    let number = query.strip_prefix("session=").and_then(|number| number.parse().ok());
    let Some(connection) = number.and_then(|number| host.streams.get(number)) else {
        return whole(404, "text/plain", "no such session");
    };
    let Ok(frame) = Frame::parse(body) else {
        engine.complain("a POST without a frame").await;
        return whole(400, "text/plain", "not a frame");
    };
    if let Some(Act::Status { status, kind, body }) =
        engine.acts_for("POST", frame.param_text("name").as_deref()).first()
    {
        return whole(*status, kind, body.clone());
    }
    let is_held = frame.method.as_ref().is_some_and(|method| engine.script.http.held.contains(method));
    let outlet = Outlet::onto(connection.sender.clone());
    child::take(engine, frame, &mut *connection.agreed.lock().await, &outlet).await;
    if is_held {
        std::future::pending::<()>().await;
    }
    let mut taken = whole(202, "text/plain", "Accepted");
    // How many connections wait for their next use depends on the load, and who counts what is open at rest cannot cut them: the streams
    // go over connections to the same port.
    taken.headers_mut().insert("connection", HeaderValue::from_static("close"));
    taken
}

impl Connections {
    fn insert(&self, number: u64, connection: Connection) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(number, connection);
    }

    fn get(&self, number: u64) -> Option<Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
    }

    fn remove(&self, number: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
    }

    /// Forgets whose streams are open, which go on.
    pub(crate) fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Feeds one stream until it is cut, or its client is gone.
async fn feed(
    host: Arc<Host>,
    number: u64,
    endpoint: String,
    mut receiver: mpsc::Receiver<Out>,
    feeder: mpsc::Sender<Bytes>,
) {
    let first = match &*endpoint {
        "" => ": no address\n\n".to_owned(),
        endpoint => format!("event: endpoint\ndata: {endpoint}\n\n"),
    };
    let mut next = Some(Bytes::from(first));
    while let Some(bytes) = next.take() {
        if feeder.send(bytes).await.is_err() {
            break;
        }
        let out = tokio::select! {
            out = receiver.recv() => out,
            () = feeder.closed() => break,
        };
        next = match out {
            // Forgotten: the stream says nothing more, and stays open.
            None => std::future::pending().await,
            Some(Out::Notice(text) | Out::Answer(text) | Out::Refused(_, text)) => Some(event(&text)),
            Some(Out::Together(texts)) => Some(texts.iter().flat_map(|text| event(text)).collect()),
            Some(Out::Raw(raw)) => Some(raw.into()),
            Some(Out::Cut(_) | Out::Status { .. }) => break,
        };
    }
    host.streams.remove(number);
}

fn event(text: &str) -> Bytes {
    format!("event: message\n{}", sse::encode(None, text)).into()
}
