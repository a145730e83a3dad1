//! Log messages at every level that the request, or its session, wants.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::engine::change::Change;
use crate::engine::{Engine, Out, Outlet, lock};
use crate::frame::{Frame, quote, text};
use crate::revision::Revision;

/// From the quietest wish to the loudest matter.
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The level of each session that has set one.
#[derive(Default)]
pub(crate) struct Levels(Mutex<HashMap<String, String>>);

impl Levels {
    /// Keeps the level of a session.
    pub(crate) fn set(&self, session: &str, frame: &Frame) {
        lock(&self.0).insert(session.to_owned(), frame.param_text("level").unwrap_or_default());
    }
}

/// Says one thing at each level that is wanted; a session that has set none hears all of them.
pub(crate) async fn say(engine: &Engine, frame: &Frame, revision: Revision, who: &str, outlet: &Outlet) {
    let wanted = if revision.is_modern() {
        let Some(level) = frame.meta("io.modelcontextprotocol/logLevel") else { return };
        text(&level)
    } else {
        lock(&engine.levels.0).get(outlet.session()).cloned()
    };
    let from = wanted.and_then(|wanted| LEVELS.iter().position(|level| *level == wanted)).unwrap_or(0);
    for level in &LEVELS[from..] {
        let says = quote(&format!("{level} for {who}"));
        let params = format!("{{\"level\":\"{level}\",\"logger\":\"script\",\"data\":{says}}}");
        outlet.send(Out::Notice(Change::new("notifications/message", &params).frame())).await;
    }
}
