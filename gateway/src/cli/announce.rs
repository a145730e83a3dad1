//! Shows a person what becomes of each upstream, as it happens.

use std::collections::HashMap;
use std::sync::Arc;

use crate::lifecycle::{Board, Health, State};
use crate::telemetry::logging::say;

use super::report::{self, News};

/// What was last shown of each upstream.
#[derive(Default)]
struct Shown {
    last: HashMap<Arc<str>, String>,
    summary: bool,
}

/// Shows every change until it is dropped. Nothing is shown twice: an upstream that fails for the same reason again and again
/// has one line.
pub(super) async fn upstreams(board: Board) {
    let mut changes = board.changes();
    let mut shown = Shown::default();
    loop {
        changes.borrow_and_update();
        for line in shown.news(&board.snapshot()) {
            say(&line);
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

impl Shown {
    fn news(&mut self, all: &[Health]) -> Vec<String> {
        let width = all.iter().map(|health| health.name.chars().count()).max().unwrap_or(0);
        let mut lines = Vec::new();
        for health in all {
            let Some((key, line)) = describe(health, width) else { continue };
            // That it is awaited again is no news once more is known.
            if health.state == State::Starting && self.last.contains_key(&health.name) {
                continue;
            }
            if self.last.insert(health.name.clone(), key.clone()).as_ref() != Some(&key) {
                lines.push(line);
            }
        }
        let settled = all.iter().all(|health| self.last.contains_key(&health.name));
        if settled && !std::mem::replace(&mut self.summary, true) {
            let ready = all.iter().filter(|health| health.state.is_up());
            let tools = ready.clone().filter_map(|health| health.items).map(|items| items[0]).sum();
            lines.push(report::summary(tools, ready.count(), all.len()));
        }
        lines
    }
}

/// What is to be shown, and what it is recognised by: a retry that fails alike is no news.
fn describe(health: &Health, width: usize) -> Option<(String, String)> {
    let news = match health.state {
        State::Ready => News::Ready {
            tools: health.items.map_or(0, |items| items[0]),
            after: health.started_in.unwrap_or_default(),
        },
        State::Degraded => News::Degraded { cause: health.cause.as_deref()? },
        State::BackingOff | State::Failed => News::Failed {
            cause: health.cause.as_deref().unwrap_or("unknown"),
            retry: health.retry_at.map(|at| at.saturating_duration_since(tokio::time::Instant::now())),
        },
        State::Starting => News::Waiting { cause: health.cause.as_deref()? },
        State::Idle => News::Resting { until: "started when it is needed" },
        // At the end all are stopped, and nobody asks why.
        State::Stopped => News::Resting { until: health.cause.as_deref()? },
    };
    let key = match &news {
        News::Ready { tools, .. } => format!("ready {tools}"),
        News::Waiting { .. } => "waiting".to_owned(),
        News::Resting { until } => format!("resting {until}"),
        News::Degraded { cause } => format!("degraded {cause}"),
        // Figures (a process id, the name of a log file) make no other failure.
        News::Failed { cause, .. } => format!("failed {}", cause.replace(|c: char| c.is_ascii_digit(), "")),
    };
    Some((key, report::upstream(&health.name, health.transport, width, news)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn each_thing_is_said_once_and_the_sum_when_all_have_spoken() {
        let board = Board::default();
        let (a, b) = (board.seat(&"a".into(), "stdio"), board.seat(&"long".into(), "http"));
        let mut shown = Shown::default();
        assert!(shown.news(&board.snapshot()).is_empty());
        a.update(|health| {
            health.state = State::Ready;
            health.items = Some([3, 0, 0, 0]);
            health.started_in = Some(Duration::from_millis(200));
        });
        assert_eq!(shown.news(&board.snapshot()), ["  ready    a      stdio   3 tools    0.2 s"]);
        for _ in 0..2 {
            b.update(|health| {
                health.state = State::BackingOff;
                health.cause = Some("refused".into());
            });
            b.update(|health| health.state = State::Starting);
        }
        b.update(|health| health.state = State::BackingOff);
        let expected = ["  failed   long   http    refused", "3 tools from 1 of 2 upstreams."];
        assert_eq!(shown.news(&board.snapshot()), expected);
        assert!(shown.news(&board.snapshot()).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_slow_is_shown_once_and_the_same_failure_too() {
        let board = Board::default();
        let seat = board.seat(&"a".into(), "stdio");
        let mut shown = Shown::default();
        let mut step = |state, cause: &str| {
            seat.update(|health| (health.state, health.cause) = (state, Some(cause.to_owned())));
            shown.news(&board.snapshot())
        };
        let expected = ["  waiting  a   stdio   it is silent", "0 tools from 0 of 1 upstream."];
        assert_eq!(step(State::Starting, "it is silent"), expected);
        assert_eq!(step(State::BackingOff, "see 1.log"), ["  failed   a   stdio   see 1.log"]);
        assert!(step(State::Starting, "it is silent").is_empty());
        assert!(step(State::BackingOff, "see 22.log").is_empty());
    }
}
