//! An upstream as a child process: frames on stdin and stdout, the journal on a control connection.

use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::engine::{Engine, Out, Outlet};
use crate::frame::Frame;
use crate::journal::{Journal, Order, What};
use crate::revision::Revision;
use crate::schema;
use crate::script::Script;
use crate::upstream::hub::HELLO;

/// Plays the script of that file until stdin ends.
pub async fn run(file: &Path) {
    let text = std::fs::read_to_string(file).expect("the script can be read");
    let script: Script = serde_json::from_str(&text).expect("the script is a script");
    schema::told(script.schemas.clone());
    let (sender, receiver) = mpsc::channel(1024);
    let writer = tokio::spawn(write_lines(receiver, tokio::io::stdout(), false));
    let (journal, orders) = connect(&script).await;
    journal.tell(What::Started { pid: std::process::id() }).await;
    let engine = Engine::new(script, journal);
    watch_term(&engine);
    if let Some(orders) = orders {
        let (begin, begun) = oneshot::channel();
        tokio::spawn(obey(engine.clone(), orders, sender.clone(), begin));
        // A test that is over gives no orders; then there is nothing to wait for.
        let _ = begun.await;
    }
    let stdin = BufReader::with_capacity(1 << 16, tokio::io::stdin());
    read_lines(&engine, stdin, &Outlet::onto(sender.clone())).await;
    engine.journal.tell(What::Eof).await;
    if engine.script.deaf_to_eof {
        std::future::pending::<()>().await;
    }
    writer.abort();
}

async fn connect(script: &Script) -> (Journal, Option<tokio::net::tcp::OwnedReadHalf>) {
    let Some(address) = script.control else { return (Journal::Off, None) };
    let mut socket = TcpStream::connect(address).await.expect("the test takes the journal");
    // Events and orders are small, and each is waited for.
    socket.set_nodelay(true).expect("a socket takes options");
    socket.write_all(HELLO.as_bytes()).await.expect("the test takes the journal");
    let (reader, writer) = socket.into_split();
    (Journal::There(Arc::new(Mutex::new(writer))), Some(reader))
}

async fn obey(
    engine: Arc<Engine>,
    orders: tokio::net::tcp::OwnedReadHalf,
    sender: mpsc::Sender<Out>,
    begin: oneshot::Sender<()>,
) {
    let mut begin = Some(begin);
    let mut lines = BufReader::new(orders).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        match serde_json::from_str(&line).expect("a test gives orders") {
            Order::Begin => drop(begin.take()),
            Order::Exit(status) => std::process::exit(status),
            Order::Write(text) => Outlet::onto(sender.clone()).send(Out::Raw(text.into_bytes())).await,
            order => engine.order(order).await,
        }
    }
}

/// SIGTERM is told of; whether it ends the process is the script's business.
fn watch_term(engine: &Arc<Engine>) {
    let engine = engine.clone();
    let mut signals = signal(SignalKind::terminate()).expect("signals can be taken");
    tokio::spawn(async move {
        while signals.recv().await.is_some() {
            engine.journal.tell(What::Term).await;
            if !engine.script.deaf_to_term {
                std::process::exit(143);
            }
        }
    });
}

/// Takes one frame a line, to the end.
pub(crate) async fn read_lines(engine: &Arc<Engine>, mut input: impl AsyncBufRead + Unpin, outlet: &Outlet) {
    let mut agreed = None;
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line).await.unwrap_or(0) == 0 {
            return;
        }
        let bytes = line.trim_ascii();
        if bytes.is_empty() {
            continue;
        }
        engine.note(bytes, Vec::new()).await;
        match Frame::parse(bytes) {
            Ok(frame) => take(engine, frame, &mut agreed, outlet).await,
            Err(fault) => engine.complain(format!("not a frame: {fault}")).await,
        }
    }
}

/// Takes one frame; requests run on side by side.
pub(crate) async fn take(engine: &Arc<Engine>, frame: Frame, agreed: &mut Option<Revision>, outlet: &Outlet) {
    let Some(method) = frame.method.as_deref() else {
        engine.answered(&frame, "").await;
        return;
    };
    let revision = revision_of(engine, &frame, method, agreed, outlet).await;
    if frame.id.is_none() && !engine.has_rule(method) {
        engine.notice(&frame, revision, outlet).await;
        return;
    }
    let (engine, outlet) = (engine.clone(), outlet.clone());
    // Before the next line is read: that may be its cancellation.
    let token = frame.id.is_some().then(|| engine.admit(&frame, &outlet));
    tokio::spawn(async move {
        match token {
            Some(token) => engine.serve_admitted(token, &frame, revision, &outlet).await,
            // A rule may make even this take its time; the end of stdin is noticed all the same.
            None => engine.notice(&frame, revision, &outlet).await,
        }
    });
}

/// The revision that a frame is read in: its own claim, else what the handshake agreed on.
async fn revision_of(
    engine: &Arc<Engine>,
    frame: &Frame,
    method: &str,
    agreed: &mut Option<Revision>,
    outlet: &Outlet,
) -> Revision {
    let script = &engine.script;
    if frame.meta("io.modelcontextprotocol/protocolVersion").is_some() && script.is_modern() {
        return Revision::MODERN;
    }
    if method == "initialize" {
        let revision = script.negotiate(&frame.param_text("protocolVersion").unwrap_or_default());
        match (agreed.is_some(), revision) {
            (false, Some(_)) => tell_changes(engine, outlet),
            (true, _) if !engine.has_rule("initialize") => engine.complain("a second initialize").await,
            _ => {}
        }
        engine.declare("", frame);
        *agreed = revision;
    } else if agreed.is_none() && script.is_modern() && frame.id.is_none() {
        // A stateless client's notifications bear no claim.
        return Revision::MODERN;
    } else if agreed.is_none() && !matches!(method, "ping" | "server/discover") {
        engine.complain(format!("{method} before initialize")).await;
    }
    agreed.or(script.negotiate("")).unwrap_or(Revision::MODERN)
}

/// From the handshake on changes are told without being asked for.
fn tell_changes(engine: &Arc<Engine>, outlet: &Outlet) {
    let mut changes = engine.changes.subscribe();
    let (engine, outlet) = (engine.clone(), outlet.clone());
    tokio::spawn(async move {
        while let Ok(change) = changes.recv().await {
            if engine.tells(&change, "") {
                outlet.send(Out::Notice(change.frame())).await;
            }
        }
    });
}

/// Writes what is queued in one go, until that fails or, where that is meant, the connection is to be cut.
pub(crate) async fn write_lines(mut receiver: mpsc::Receiver<Out>, mut output: impl AsyncWrite + Unpin, cuts: bool) {
    let mut bytes = Vec::new();
    while let Some(out) = receiver.recv().await {
        let mut is_over = cuts && matches!(out, Out::Cut(_));
        put(out, &mut bytes);
        while let Ok(out) = receiver.try_recv() {
            is_over |= cuts && matches!(out, Out::Cut(_));
            put(out, &mut bytes);
        }
        if output.write_all(&bytes).await.is_err() || output.flush().await.is_err() {
            return;
        }
        if is_over {
            return;
        }
        bytes.clear();
    }
}

fn put(out: Out, bytes: &mut Vec<u8>) {
    match out {
        Out::Together(texts) => {
            for text in texts {
                put(Out::Notice(text), bytes);
            }
        }
        Out::Notice(text) | Out::Answer(text) | Out::Refused(_, text) => {
            bytes.extend_from_slice(text.as_bytes());
            bytes.push(b'\n');
        }
        Out::Raw(raw) => bytes.extend_from_slice(&raw),
        // These are for HTTP; half a frame needs nothing more here.
        Out::Status { .. } | Out::Cut(_) => {}
    }
}
