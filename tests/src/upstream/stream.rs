//! The answer to a POST: one JSON body, or a stream of events.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::engine::Out;
use crate::script::Answers;
use crate::sse;
use crate::upstream::body::{Answer, stream, whole};
use crate::upstream::http::Host;
use crate::upstream::legacy;

/// Turns what an engine says into an HTTP answer. `may_prime`: a stream may begin with an id to resume from.
pub(crate) async fn answer(host: &Arc<Host>, mut receiver: mpsc::Receiver<Out>, may_prime: bool) -> Answer {
    let manner = &host.engine.script.http;
    if manner.resumable && may_prime {
        let (feeder, answer) = stream();
        tokio::spawn(primed(host.clone(), receiver, feeder));
        return answer;
    }
    match receiver.recv().await {
        // Cancelled: an empty stream says that nothing will come.
        None => whole(200, "text/event-stream", ""),
        Some(Out::Status { status, kind, body, header }) => {
            let mut answer = whole(status, &kind, body);
            let header = header.and_then(|(name, value)| Some((name, value.parse().ok()?)));
            header.into_iter().for_each(|(name, value)| drop(answer.headers_mut().insert(name, value)));
            answer
        }
        Some(Out::Refused(status, text)) => whole(status, "application/json", text),
        Some(Out::Answer(text)) if manner.answers == Answers::Auto => whole(200, "application/json", text),
        Some(first) => {
            let (feeder, answer) = stream();
            tokio::spawn(pump(first, receiver, feeder));
            answer
        }
    }
}

/// The rest of an answer that was cut.
pub(crate) fn resumed(host: &Arc<Host>, mut receiver: mpsc::Receiver<Out>) -> Answer {
    let (feeder, answer) = stream();
    let stream = host.number();
    tokio::spawn(async move {
        let mut event = 0;
        while let Some(out) = receiver.recv().await {
            event += 1;
            if send(&feeder, Some(&format!("s{stream}-{event}")), out).await {
                return;
            }
        }
    });
    answer
}

/// A stream that begins with an event id, and may be cut after it.
async fn primed(host: Arc<Host>, mut receiver: mpsc::Receiver<Out>, feeder: mpsc::Sender<Bytes>) {
    let stream = host.number();
    let mut event = 0;
    let first = format!("s{stream}-{event}");
    let _ = feeder.send(Bytes::from(format!("id: {first}\nretry: 20\ndata:\n\n"))).await;
    while let Some(out) = receiver.recv().await {
        if let Out::Cut(true) = out {
            legacy::keep(&host, first, receiver);
            return;
        }
        event += 1;
        if send(&feeder, Some(&format!("s{stream}-{event}")), out).await {
            return;
        }
    }
}

async fn pump(first: Out, mut receiver: mpsc::Receiver<Out>, feeder: mpsc::Sender<Bytes>) {
    let mut next = Some(first);
    while let Some(out) = next {
        if send(&feeder, None, out).await {
            return;
        }
        next = tokio::select! {
            out = receiver.recv() => out,
            () = feeder.closed() => return,
        };
    }
}

/// Sends one thing; says whether the stream is over.
async fn send(feeder: &mpsc::Sender<Bytes>, id: Option<&str>, out: Out) -> bool {
    let (text, last) = match out {
        Out::Notice(text) => (sse::encode(id, &text), false),
        Out::Together(texts) => (texts.iter().map(|text| sse::encode(id, text)).collect(), false),
        Out::Answer(text) | Out::Refused(_, text) => (sse::encode(id, &text), true),
        Out::Raw(raw) => (format!("data: {}", String::from_utf8_lossy(&raw)), false),
        Out::Cut(_) | Out::Status { .. } => return true,
    };
    feeder.send(Bytes::from(text)).await.is_err() || last
}
