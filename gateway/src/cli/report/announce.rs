//! Shows a person what becomes of each upstream, as it happens.

use std::collections::HashMap;
use std::sync::Arc;

use crate::cli::process::table::{Colour, Line, Room, wrapped};
use crate::health::row::{Health, State};
use crate::health::{Cause, CauseCode, StatusBoard};
use crate::runtime::system::ServiceManager;
use crate::telemetry::logging::{self, say, say_with_colour};

use super::lines;
use super::lines::News;

/// A line about an upstream has about so many on a terminal, and goes on behind so many blanks.
const LINES_MAX: usize = 4;
const BELOW: usize = 6;

/// What was last shown of each upstream.
#[derive(Default)]
struct Shown {
    last: HashMap<Arc<str>, Key>,
    /// The last sum that was shown.
    summary: Option<Summary>,
    /// Whether each upstream has been seen after its first start.
    is_settled: bool,
}

/// What a line about an upstream is recognised by. Counts, times and the words of others make no other failure.
#[derive(Clone, PartialEq, Eq)]
enum Key {
    /// It can be used, and has so many tools.
    Usable(usize),
    /// It is awaited.
    Starting,
    /// It is in this state, for a reason of these kinds.
    Said(State, Vec<CauseCode>),
}

/// How many tools of how many upstreams can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Summary {
    tools: usize,
    usable: usize,
    upstreams: usize,
    is_settled: bool,
}

/// Shows every change until it is dropped. Nothing is shown twice: an upstream that fails for the same reason again and again
/// has one line. In a log of JSON the changes have events of their own, and only the sum is added. The service manager has each sum.
pub(crate) async fn upstreams(board: StatusBoard, manager: &ServiceManager) {
    let mut changes = board.changes();
    let (mut shown, mut told) = (Shown::default(), None);
    loop {
        changes.borrow_and_update();
        let all = board.snapshot();
        let (lines, summary) = shown.news(&all);
        let sum = shown.sum(&all);
        if told != Some(sum) {
            told = Some(sum);
            manager.status(&sum.text());
        }
        match summary {
            Some(Summary { tools, usable: 0, upstreams, .. }) if logging::is_json() => {
                tracing::warn!(tools, usable = 0, upstreams, "usable upstreams")
            }
            Some(Summary { tools, usable, upstreams, .. }) if logging::is_json() => {
                tracing::info!(tools, usable, upstreams, "usable upstreams")
            }
            _ if logging::is_json() => {}
            summary => {
                let room = Room::of_stderr();
                for (state, line) in lines {
                    let code = if room.has_colour { Colour::of(state.as_str()).code() } else { "" };
                    say_with_colour(&laid_out(line, room.columns), state.as_str(), code);
                }
                summary.into_iter().for_each(|summary| say(&laid_out(summary.text(), room.columns)));
            }
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// A line as it is written on a terminal: why an upstream is not there is read to its end, where it has one soon.
fn laid_out(line: String, columns: usize) -> String {
    wrapped(&Line::plain(line).cut(columns.saturating_mul(LINES_MAX), false), BELOW, columns)
}

impl Summary {
    fn text(self) -> String {
        lines::summary(self.tools, self.usable, self.upstreams, self.is_settled)
    }
}

impl Shown {
    /// A line for each change, with the state that it begins with, and the sum where it is due.
    fn news(&mut self, all: &[Health]) -> (Vec<(State, String)>, Option<Summary>) {
        let width = all.iter().map(|health| health.name.chars().count()).max().unwrap_or(0);
        let (mut lines, mut news) = (Vec::new(), None);
        for health in all {
            let Some((key, line)) = describe(health, width) else { continue };
            // That it is awaited again is no news once more is known.
            if health.state == State::Starting && self.last.contains_key(&health.name) {
                continue;
            }
            if self.last.insert(health.name.clone(), key.clone()).as_ref() != Some(&key) {
                lines.push((health.state, line));
            }
        }
        if all.iter().all(|health| self.last.contains_key(&health.name)) {
            let sum = self.sum(all);
            let is_settled = sum.is_settled;
            // The first sum, the one after all first starts, and a better one when no upstream is missing any more: others come and go.
            let settles = is_settled && !std::mem::replace(&mut self.is_settled, is_settled);
            let is_due = self.summary.is_none() || settles || (!lines.is_empty() && sum.usable == all.len());
            if is_due && self.summary != Some(sum) {
                self.summary = Some(sum);
                news = self.summary;
            }
        }
        (lines, news)
    }

    /// How things stand.
    fn sum(&self, all: &[Health]) -> Summary {
        let up = all.iter().filter(|health| health.state.is_up());
        let tools = up.clone().filter_map(|health| health.items).map(|items| items[0]).sum();
        let has_spoken = all.iter().all(|health| self.last.contains_key(&health.name));
        let is_settled = has_spoken && self.last.values().all(|key| *key != Key::Starting);
        Summary { tools, usable: up.count(), upstreams: all.len(), is_settled }
    }
}

/// What is to be shown, and what it is recognised by: a retry that fails alike is no news.
fn describe(health: &Health, width: usize) -> Option<(Key, String)> {
    let state = health.state;
    let cause = health.cause.as_ref().map(Cause::full);
    let said = |cause| News::Said { cause, retry: None };
    let news = match state {
        State::Ready => News::Usable {
            tools: health.items.map_or(0, |items| items[0]),
            after: health.started_in.unwrap_or_default(),
        },
        // A command has taken its cause away, and the start that it asked for is not there yet.
        State::BackingOff | State::Failed if cause.is_none() => said("restarting on request"),
        State::BackingOff | State::Failed => News::Said {
            cause: cause.as_deref().unwrap_or_default(),
            retry: health.retry_at.map(|at| at.saturating_duration_since(tokio::time::Instant::now())),
        },
        State::Idle => said("starts on the first request"),
        // What comes of it is shown when it has ended; the log says where that takes long.
        State::Stopping => return None,
        // Of one that starts there may be nothing to say yet; and at the end all are stopped, and nobody asks why.
        State::Starting | State::Degraded | State::Stopped => said(cause.as_deref()?),
    };
    let key = match &news {
        News::Usable { tools, .. } => Key::Usable(*tools),
        News::Said { .. } if state == State::Starting => Key::Starting,
        News::Said { .. } => {
            let codes = health.cause.as_ref().map(|cause| cause.codes().to_vec());
            Key::Said(state, codes.unwrap_or_default())
        }
    };
    Some((key, lines::upstream(&health.name, health.transport, width, state, news)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn news(shown: &mut Shown, board: &StatusBoard) -> Vec<String> {
        let (lines, summary) = shown.news(&board.snapshot());
        lines.into_iter().map(|(_, line)| line).chain(summary.map(Summary::text)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn each_thing_is_said_once_and_the_sum_when_all_have_spoken() {
        let board = StatusBoard::default();
        let (a, b) = (board.add(&"a".into(), "stdio"), board.add(&"long".into(), "http"));
        let mut shown = Shown::default();
        assert!(news(&mut shown, &board).is_empty());
        a.update(|health| {
            health.state = State::Ready;
            health.items = Some([3, 0, 0, 0]);
            health.started_in = Some(Duration::from_millis(200));
        });
        assert_eq!(news(&mut shown, &board), ["  ready        a      stdio   3 tools    0.2 s"]);
        for _ in 0..2 {
            b.update(|health| {
                health.state = State::BackingOff;
                health.cause = Some("refused".into());
            });
            b.update(|health| health.state = State::Starting);
        }
        b.update(|health| health.state = State::BackingOff);
        let expected = ["  backing_off  long   http    refused", "1 of 2 servers ready, 3 tools"];
        assert_eq!(news(&mut shown, &board), expected);
        assert!(news(&mut shown, &board).is_empty());
        b.update(|health| (health.state, health.items) = (State::Ready, Some([4, 0, 0, 0])));
        let expected = ["  ready        long   http    4 tools    0.0 s", "2 of 2 servers ready, 7 tools"];
        assert_eq!(news(&mut shown, &board), expected);
        // What comes and goes is not summed up each time.
        for (state, line) in [(State::BackingOff, "  backing_off  long   http    refused"), (State::Ready, expected[0])]
        {
            b.update(|health| health.state = state);
            assert_eq!(news(&mut shown, &board), [line]);
        }
    }

    #[test]
    fn why_an_upstream_is_not_there_is_read_whole_on_a_terminal_and_has_an_end() {
        let line = |cause: &str| format!("  backing_off  slack                        stdio   {cause}");
        let cause = "exited with status 1; last line on stderr: Error: SLACK_BOT_TOKEN is not set";
        let lines = [
            "  backing_off  slack                        stdio   exited with status 1; last",
            "      line on stderr: Error: SLACK_BOT_TOKEN is not set",
        ];
        assert_eq!(laid_out(line(cause), 80), lines.join("\n"));
        assert_eq!(laid_out(line(cause), usize::MAX), line(cause));
        let endless = laid_out(line(&"word ".repeat(1000)), 80);
        assert!(endless.lines().count() <= LINES_MAX + 1 && endless.ends_with('…'), "{endless}");
        assert!(endless.lines().all(|line| line.chars().count() <= 80), "{endless}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_slow_is_shown_once_and_the_same_failure_too() {
        let board = StatusBoard::default();
        let handle = board.add(&"a".into(), "stdio");
        let mut shown = Shown::default();
        let mut step = |state, cause: &str| {
            handle.update(|health| (health.state, health.cause) = (state, Some(cause.into())));
            news(&mut shown, &board)
        };
        let expected = ["  starting     a   stdio   it is silent", "so far 0 of 1 server ready, 0 tools"];
        assert_eq!(step(State::Starting, "it is silent"), expected);
        let expected = ["  backing_off  a   stdio   see 1.log", "0 of 1 server ready, 0 tools"];
        assert_eq!(step(State::BackingOff, "see 1.log"), expected);
        assert!(step(State::Starting, "it is silent").is_empty());
        assert!(step(State::BackingOff, "see 22.log").is_empty());
        handle.update(|health| health.cause = None);
        assert_eq!(news(&mut shown, &board), ["  backing_off  a   stdio   restarting on request"]);
    }
}
