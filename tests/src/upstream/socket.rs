//! An upstream over WebSocket.

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use hyper::body::Incoming;
use hyper::header::{HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use hyper::upgrade::Upgraded;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::engine::{Out, Outlet};
use crate::frame::Frame;
use crate::journal::What;
use crate::script::Act;
use crate::upstream::body::{Answer, whole};
use crate::upstream::child;
use crate::upstream::http::{Headers, Host, header};

/// Has the connection become a WebSocket, and serves one client on it.
pub(crate) async fn open(host: &Arc<Host>, headers: &Headers, mut request: Request<Incoming>) -> Answer {
    let engine = &host.engine;
    engine.journal.tell(What::Visit { method: "GET".into(), headers: headers.clone() }).await;
    if let Some(Act::Status { status, kind, body }) = engine.acts_for("GET", None).first() {
        return whole(*status, kind, body.clone());
    }
    let Some(key) = request.headers().get(SEC_WEBSOCKET_KEY).cloned() else {
        return whole(426, "text/plain", "this is a WebSocket");
    };
    for (name, wanted) in [("sec-websocket-version", "13"), ("sec-websocket-protocol", "mcp"), ("upgrade", "websocket")]
    {
        if header(headers, name) != Some(wanted) {
            engine.complain(format!("{name} is {:?}", header(headers, name))).await;
        }
    }
    let mut answer = whole(StatusCode::SWITCHING_PROTOCOLS.as_u16(), "", "");
    let accept = derive_accept_key(key.as_bytes()).parse().expect("visible text");
    answer.headers_mut().insert(SEC_WEBSOCKET_ACCEPT, accept);
    answer.headers_mut().insert(hyper::header::CONNECTION, HeaderValue::from_static("Upgrade"));
    answer.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
    let named = &engine.script.http.subprotocol;
    if !named.is_empty() {
        answer.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, named.parse().expect("visible text"));
    }
    let host = host.clone();
    tokio::spawn(async move {
        if let Ok(upgraded) = hyper::upgrade::on(&mut request).await {
            serve(&host, TokioIo::new(upgraded)).await;
        }
    });
    answer
}

async fn serve(host: &Arc<Host>, stream: TokioIo<Upgraded>) {
    let engine = &host.engine;
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
    let (sender, mut receiver) = mpsc::channel(1024);
    let outlet = Outlet::onto(sender);
    let mut agreed = None;
    loop {
        tokio::select! {
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    engine.note(text.as_bytes(), Vec::new()).await;
                    match Frame::parse(text.as_bytes()) {
                        Ok(frame) => child::take(engine, frame, &mut agreed, &outlet).await,
                        Err(fault) => engine.complain(format!("not a frame: {fault}")).await,
                    }
                }
                Some(Ok(Message::Pong(data))) => engine.journal.tell(What::Listening(format!("pong {}", data.len()))).await,
                Some(Ok(Message::Binary(_))) => engine.complain("a binary message").await,
                Some(Ok(_)) => {}
                Some(Err(_)) | None => break,
            },
            Some(out) = receiver.recv() => if tell(&mut socket, out).await.is_none() { break },
        }
    }
    engine.journal.tell(What::Eof).await;
}

/// Sends one thing; nothing where that ends the connection.
async fn tell(socket: &mut WebSocketStream<TokioIo<Upgraded>>, out: Out) -> Option<()> {
    match out {
        Out::Notice(text) | Out::Answer(text) | Out::Refused(_, text) => socket.send(Message::text(text)).await.ok(),
        Out::Together(texts) => {
            for text in texts {
                socket.send(Message::text(text)).await.ok()?;
            }
            Some(())
        }
        // What the script writes: a control frame by its name, else frames one byte long each, the last of which ends the message.
        Out::Raw(raw) if raw == b"ping\n" => {
            socket.send(Message::Ping(Bytes::from_static(b"are you there"))).await.ok()
        }
        Out::Raw(raw) if raw == b"pings\n" => loop {
            socket.send(Message::Ping(Bytes::new())).await.ok()?;
        },
        Out::Raw(raw) if raw == b"binary\n" => socket.send(Message::binary(raw)).await.ok(),
        Out::Raw(raw) => fragments(socket, &raw).await,
        Out::Status { status, body, .. } => {
            let frame = CloseFrame { code: status.into(), reason: body.into() };
            let _ = socket.close(Some(frame)).await;
            while let Some(Ok(_)) = socket.next().await {}
            None
        }
        Out::Cut(_) => None,
    }
}

/// A message in many frames, with a ping between them.
async fn fragments(socket: &mut WebSocketStream<TokioIo<Upgraded>>, text: &[u8]) -> Option<()> {
    use tokio_tungstenite::tungstenite::protocol::frame::Frame;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
    for (at, byte) in text.iter().enumerate() {
        let kind = if at == 0 { Data::Text } else { Data::Continue };
        let frame = Frame::message(vec![*byte], OpCode::Data(kind), at + 1 == text.len());
        socket.send(Message::Frame(frame)).await.ok()?;
        if at == 2 {
            socket.send(Message::Ping(Bytes::from_static(b"between"))).await.ok()?;
        }
    }
    Some(())
}
