//! Browsers that persons sit at.

use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use trunkline_tests::peers;
use trunkline_tests::within::within_limit;

/// One step of a browser, its start among them, on a crowded machine.
const LIMIT: Duration = Duration::from_secs(90);

/// A browser, with nothing in common between those who use it.
pub(crate) struct Browser {
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

/// What it shows.
#[derive(Debug, Deserialize)]
pub(crate) struct Seen {
    /// Where it is, or could not come to.
    pub(crate) url: String,
    pub(crate) status: u16,
    pub(crate) title: String,
    pub(crate) text: String,
    /// Why it shows a page of its own.
    pub(crate) error: Option<String>,
    /// What axe finds serious there.
    pub(crate) faults: Vec<Value>,
}

impl Seen {
    /// A page of ours, which says all of this and has no fault.
    pub(crate) fn says(&self, status: u16, words: &[&str]) {
        assert_eq!((self.status, &self.error, &*self.faults), (status, &None, &[][..]), "{self:?}");
        words.iter().for_each(|words| assert!(self.text.contains(words), "{words}: {}", self.text));
        assert!(self.title.ends_with("Trunkline"), "{}", self.title);
    }
}

impl Browser {
    /// Nothing where this machine has none.
    pub(crate) fn start() -> Option<Browser> {
        let (browser, folder) = peers::page()?;
        let mut command = Command::new("node");
        command.arg("person.mjs").arg(browser).current_dir(folder).kill_on_drop(true);
        // `TRUNKLINE_PICTURES=FOLDER` leaves a picture of each page there.
        command.args(std::env::var_os("TRUNKLINE_PICTURES"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("node starts");
        let (stdin, stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        Some(Browser { stdin, lines: BufReader::new(stdout).lines(), _child: child })
    }

    /// Does this; what is shown then.
    pub(crate) async fn does(&mut self, step: Value) -> Seen {
        let what = format!("the browser has done {step}");
        self.stdin.write_all(format!("{step}\n").as_bytes()).await.expect("it reads");
        let line = within_limit(LIMIT, &what, self.lines.next_line()).await.expect("it writes").expect("it goes on");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{what}: {error}: {line}"))
    }

    pub(crate) async fn opens(&mut self, who: &str, url: &str) -> Seen {
        self.does(json!({ "who": who, "open": url })).await
    }

    pub(crate) async fn clicks(&mut self, who: &str, name: &str) -> Seen {
        self.does(json!({ "who": who, "click": name })).await
    }

    /// Logs in at a page of the provider, and allows what is asked for: what the browser comes to.
    pub(crate) async fn logs_in(&mut self, who: &str) -> Seen {
        self.does(json!({ "who": who, "fill": ["Enter any login", who] })).await;
        self.does(json!({ "who": who, "fill": ["and password", "secret"] })).await;
        let asks = self.clicks(who, "Sign-in").await;
        assert!(asks.text.contains("Authorize") || asks.text.contains("Continue"), "{asks:?}");
        self.clicks(who, "Continue").await
    }
}
