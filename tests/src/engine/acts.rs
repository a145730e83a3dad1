//! What a rule makes the script do.

use std::time::Duration;

use tokio::io::AsyncWriteExt;

use crate::engine::change::Change;
use crate::engine::said::Said;
use crate::engine::{Engine, Out, Outlet, quotes};
use crate::frame::{Frame, fields, text as text_of};
use crate::journal::What;
use crate::revision::Revision;
use crate::script::{Act, Quoting};

/// What a flood on stderr says.
pub(crate) const CHATTER: &str = "a line of a flood on stderr, of no use to anybody";

/// Does one act; says whether the matter is ended by it.
pub(crate) async fn run(engine: &Engine, act: &Act, frame: &Frame, revision: Revision, outlet: &Outlet) -> bool {
    let id = frame.id_text();
    match act {
        Act::Gate(gate) => {
            engine.journal.tell(What::Waiting { gate: gate.clone(), id: id.into() }).await;
            engine.gates.pass(gate).await;
        }
        Act::Delay(time) => tokio::time::sleep(Duration::from_millis(*time)).await,
        Act::Write(text) => outlet.send(Out::Raw(filled(text, frame).into_bytes())).await,
        Act::WriteHex(digits) => outlet.send(Out::Raw(bytes_of(digits))).await,
        Act::WriteLong(length) => {
            let mut line = vec![b'x'; *length];
            line.push(b'\n');
            outlet.send(Out::Raw(line)).await;
        }
        Act::Flood(count) => flood(*count, outlet).await,
        Act::Stderr(lines) => chatter_on_stderr(*lines).await,
        Act::Late(time) => {
            let said = engine.ordinary(frame, revision, outlet).await.into_frame(id);
            let (outlet, time) = (outlet.clone(), Duration::from_millis(*time));
            // Not part of the call: a cancel does not reach it.
            tokio::spawn(async move {
                tokio::time::sleep(time).await;
                outlet.send(Out::Answer(said)).await;
            });
        }
        Act::Run => {
            drop(engine.ordinary(frame, revision, outlet).await);
        }
        Act::Hang => std::future::pending::<()>().await,
        Act::Exit(status) => std::process::exit(*status),
        Act::Error { code, message, data } => {
            let said = Said::error(*code, message, data.as_deref());
            outlet.send(Out::Answer(said.into_frame(id))).await;
        }
        Act::Result(text) => outlet.send(Out::Answer(Said::result(text).into_frame(id))).await,
        Act::Frame(text) => outlet.send(Out::Answer(filled(text, frame))).await,
        Act::Half => {
            let whole = engine.ordinary(frame, revision, outlet).await.into_frame(id);
            outlet.send(Out::Raw(whole.as_bytes()[..whole.len() / 2].to_vec())).await;
            outlet.send(Out::Cut(false)).await;
        }
        Act::Status { status, kind, body } => {
            let body = filled(body, frame);
            outlet.send(Out::Status { status: *status, kind: kind.clone(), body, header: None }).await;
        }
        Act::Quote(quoting) => quotes::say(engine, *quoting, frame, outlet).await,
        Act::Cut => outlet.send(Out::Cut(false)).await,
        Act::CutToResume => outlet.send(Out::Cut(true)).await,
    }
    !is_beside(act)
}

/// Whether the call goes on after it.
fn is_beside(act: &Act) -> bool {
    matches!(
        act,
        Act::Gate(_)
            | Act::Delay(_)
            | Act::Write(_)
            | Act::WriteHex(_)
            | Act::WriteLong(_)
            | Act::Flood(_)
            | Act::Stderr(_)
            | Act::Run
            | Act::Quote(Quoting::Stderr | Quoting::Stdout)
            | Act::CutToResume
    )
}

async fn flood(count: usize, outlet: &Outlet) {
    for number in 0..count {
        let params = format!("{{\"level\":\"debug\",\"logger\":\"script\",\"data\":\"flood {number}\"}}");
        outlet.send(Out::Notice(Change::new("notifications/message", &params).frame())).await;
    }
}

async fn chatter_on_stderr(lines: usize) {
    let text = format!("{CHATTER}\n").repeat(lines);
    let mut stderr = tokio::io::stderr();
    // Where nobody reads it, it is lost.
    let _ = stderr.write_all(text.as_bytes()).await;
    let _ = stderr.flush().await;
}

/// A text with the request's id and nonce in their places.
fn filled(text: &str, frame: &Frame) -> String {
    let nonce = || text_of(&fields(&frame.param("arguments")?).remove("nonce")?);
    let text = text.replace("$ID", frame.id_text());
    if text.contains("$NONCE") { text.replace("$NONCE", &nonce().unwrap_or_default()) } else { text }
}

fn bytes_of(digits: &str) -> Vec<u8> {
    let pair = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
    (0..digits.len()).step_by(2).map(pair).collect()
}
