//! What a rule makes the script do.

use std::time::Duration;

use crate::engine::said::Said;
use crate::engine::{Engine, Out, Outlet};
use crate::frame::Frame;
use crate::journal::What;
use crate::revision::Revision;
use crate::script::Act;

/// Does one act; says whether the matter is ended by it.
pub(crate) async fn run(engine: &Engine, act: &Act, frame: &Frame, revision: Revision, outlet: &Outlet) -> bool {
    let id = frame.id_text();
    match act {
        Act::Gate(gate) => {
            engine.journal.tell(What::Waiting { gate: gate.clone(), id: id.into() }).await;
            engine.gates.pass(gate).await;
            return false;
        }
        Act::Delay(time) => {
            tokio::time::sleep(Duration::from_millis(*time)).await;
            return false;
        }
        Act::Write(text) => {
            outlet.send(Out::Raw(text.replace("$ID", id).into_bytes())).await;
            return false;
        }
        Act::WriteHex(digits) => {
            outlet.send(Out::Raw(bytes_of(digits))).await;
            return false;
        }
        Act::WriteLong(length) => {
            let mut line = vec![b'x'; *length];
            line.push(b'\n');
            outlet.send(Out::Raw(line)).await;
            return false;
        }
        Act::Hang => std::future::pending::<()>().await,
        Act::Exit(status) => std::process::exit(*status),
        Act::Error { code, message, data } => {
            let said = Said::error(*code, message, data.as_deref());
            outlet.send(Out::Answer(said.into_frame(id))).await;
        }
        Act::Result(text) => outlet.send(Out::Answer(Said::result(text).into_frame(id))).await,
        Act::Frame(text) => outlet.send(Out::Answer(text.replace("$ID", id))).await,
        Act::Half => {
            let whole = engine.ordinary(frame, revision, outlet).await.into_frame(id);
            outlet.send(Out::Raw(whole.as_bytes()[..whole.len() / 2].to_vec())).await;
            outlet.send(Out::Cut(false)).await;
        }
        Act::Status { status, kind, body } => {
            let body = body.replace("$ID", id);
            outlet.send(Out::Status { status: *status, kind: kind.clone(), body }).await;
        }
        Act::Cut => outlet.send(Out::Cut(false)).await,
        Act::CutToResume => {
            outlet.send(Out::Cut(true)).await;
            return false;
        }
    }
    true
}

fn bytes_of(digits: &str) -> Vec<u8> {
    let pair = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
    (0..digits.len()).step_by(2).map(pair).collect()
}
