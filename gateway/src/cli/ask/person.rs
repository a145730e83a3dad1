//! The person at the terminal: asked where stdin is one, told how far a call is.

use std::io::{BufRead, IsTerminal, Write};

use rustix::termios::{QueueSelector, tcflush};
use serde_json::{Value, json};

use super::form::{self, Person};
use crate::cli::process::failure::note;
use crate::cli::process::table::obeys;
use crate::config::fault::printable;
use crate::telemetry::logging::say;

/// The one who has typed the command.
pub(super) struct Terminal {
    /// Why there is nobody to answer.
    nobody: Option<&'static str>,
    /// Whether a line of progress can be written over.
    is_shown: bool,
    /// A line of progress stands on the screen.
    has_progress: bool,
}

impl Terminal {
    pub(super) fn new() -> Self {
        let is_shown = std::io::stderr().is_terminal();
        // A question that nobody sees would be waited for without end.
        let nobody = match (std::io::stdin().is_terminal(), is_shown) {
            (false, _) => Some("stdin is no terminal"),
            (true, false) => Some("stderr is no terminal"),
            (true, true) => None,
        };
        Self { nobody, is_shown: is_shown && obeys(), has_progress: false }
    }

    /// The answer to a question of a server: its result, or in words why there is none.
    pub(super) fn answer(&mut self, method: &str, params: &Value, line: &[u8]) -> Result<Value, String> {
        match (method, self.nobody) {
            ("elicitation/create", None) => Ok(form::answered(params, line, self)),
            ("elicitation/create", Some(why)) => {
                let message = params["message"].as_str().unwrap_or_default();
                let url = params["url"].as_str().map(|url| format!(" ({})", printable(url))).unwrap_or_default();
                self.note(&format!("declined, since {why}: the server asks: {}{url}", form::shortened(message)));
                Ok(json!({ "action": "decline" }))
            }
            ("ping", _) => Ok(json!({})),
            (method, _) => {
                let asker = form::asker(params);
                self.note(&format!("refused: {asker} asks for {}, which a command line has not", printable(method)));
                Err(format!("{method} cannot be answered at a command line"))
            }
        }
    }

    /// Says how far a call is: in one line that is written over, where that can be.
    pub(super) fn progress(&mut self, params: &Value) {
        let done = params["progress"].as_f64().unwrap_or_default();
        let of = params["total"].as_f64().map(|total| format!(" of {total}")).unwrap_or_default();
        let what = params["message"].as_str().map(|text| format!(": {}", printable(text))).unwrap_or_default();
        let text = format!("{done}{of}{what}");
        match self.is_shown {
            true => {
                // What went on in the next line would not be written over.
                let short: String = text.chars().take(PROGRESS_CHARS_MAX).collect();
                self.write(&format!("\r\x1b[K\x1b[?7l{short}\x1b[?7h"));
                self.has_progress = true;
            }
            false => note(&text),
        }
    }

    /// The line of progress goes.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.has_progress) {
            self.write("\r\x1b[K");
        }
    }

    /// What nobody is asked for.
    fn note(&mut self, text: &str) {
        self.clear();
        note(text);
    }

    fn write(&self, text: &str) {
        let mut stderr = std::io::stderr().lock();
        // Whoever closed it does not want to see it.
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }
}

/// No terminal is wider.
const PROGRESS_CHARS_MAX: usize = 400;

impl Person for Terminal {
    fn say(&mut self, text: &str) {
        self.clear();
        say(text);
    }

    fn line(&mut self, prompt: &str) -> Option<String> {
        self.clear();
        // What was typed or pasted before this was asked does not answer it.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
        self.write(prompt);
        let mut line = String::new();
        match std::io::stdin().lock().read_line(&mut line) {
            Ok(1..) => Some(line),
            _ => {
                self.write("\n");
                None
            }
        }
    }
}
