//! Others have their turn while what an upstream writes does not end.

use crate::runtime::Tasks;
use crate::runtime::turns_beside;
use crate::transport::pipe::Pipe;
use crate::transport::pipe::reader::read;
use crate::transport::recorder::Recorder;
use crate::transport::stdio::{StderrLog, StderrTail, drain};
use std::sync::Arc;

const LINES: usize = 20_000;

#[tokio::test(start_paused = true)]
async fn a_flood_of_messages_leaves_others_their_turns() {
    let pipe = Pipe::new(Arc::<Recorder>::default(), Tasks::new());
    let line = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":"a"}}"#;
    let text = format!("{line}\n").repeat(LINES);
    let turns = turns_beside(async { drop(read(&pipe, text.as_bytes(), 4096).await) }).await;
    // They are small: what each costs besides its bytes is what counts.
    assert!(turns >= LINES / 128, "{turns} turns beside {LINES} messages");
}

#[tokio::test(start_paused = true)]
async fn a_flood_on_stderr_leaves_others_their_turns() {
    let text = "a line of no use to anybody\n".repeat(LINES);
    let log = StderrLog::new(&"a".into(), ::metrics::Counter::noop());
    let turns = turns_beside(drain(text.as_bytes(), StderrTail::default(), &log)).await;
    assert!(turns >= text.len() / (128 * 1024), "{turns} turns beside {} bytes", text.len());
}
