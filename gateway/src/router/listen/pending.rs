//! What one listener has yet to hear: flags for lists, and log messages, bounded in number and in bytes.

use crate::call::reply::Change;
use crate::call::{ListenFilter, LogLevel};
use crate::memory::StandingCharge;
use crate::memory::budget::Budget;
use crate::metrics;
use crate::protocol::value::Object;
use crate::router::catalog::Kind;
use crate::router::catalog::snapshot::Versions;
use std::collections::VecDeque;
use std::task::Waker;

/// So many log messages wait for one listener; then the oldest goes.
const LOGS_MAX: usize = 64;
/// And so many bytes of them; one that has no room is dropped.
pub(super) const LOGS_BYTES_MAX: usize = 256 * 1024;
/// What a listener has yet to hear.
#[derive(Default)]
pub(super) struct Pending {
    /// The catalog of which it was told last, or which was in force when it had its place: of that one it need not be told.
    pub(super) seen: Versions,
    tools: bool,
    prompts: bool,
    resources: bool,
    logs: VecDeque<(LogLevel, Object, StandingCharge)>,
    log_bytes: usize,
    is_closed: bool,
    pub(super) waker: Option<Waker>,
}

/// What a listener hears next.
#[derive(Debug)]
pub(crate) enum Heard {
    Change(Change),
    Log(LogLevel, Object),
    /// The gateway ends.
    Closed,
}

impl Pending {
    /// This catalog is in force; nothing was heard yet.
    pub(super) fn saw(&mut self, now: Versions) {
        self.seen = now;
        (self.tools, self.prompts, self.resources) = Default::default();
    }

    /// A list has changed; that is kept where it was asked for.
    pub(super) fn tell(&mut self, kind: Kind, filter: &ListenFilter) {
        let (flag, is_wanted) = match kind {
            Kind::Tools => (&mut self.tools, filter.tools),
            Kind::Prompts => (&mut self.prompts, filter.prompts),
            Kind::Resources | Kind::Templates => (&mut self.resources, filter.resources),
        };
        if is_wanted {
            *flag = true;
            self.wake();
        }
    }

    /// Takes a log message; the oldest go for it, and one that finds no room is dropped.
    pub(super) fn log(&mut self, level: LogLevel, params: Object, budget: &Budget) {
        let length = params.raw().len();
        while self.logs.len() >= LOGS_MAX || self.log_bytes + length > LOGS_BYTES_MAX {
            self.next_log();
            metrics::dropped("overflow").increment(1);
        }
        let Ok(charge) = budget.stand(length) else { return metrics::dropped("overflow").increment(1) };
        self.log_bytes += length;
        self.logs.push_back((level, params, charge));
        self.wake();
    }

    pub(super) fn take(&mut self) -> Option<Heard> {
        let flags = [
            (&mut self.tools, Change::Tools),
            (&mut self.prompts, Change::Prompts),
            (&mut self.resources, Change::Resources),
        ];
        for (flag, change) in flags {
            if std::mem::take(flag) {
                return Some(Heard::Change(change));
            }
        }
        let log = self.next_log().map(|(level, params)| Heard::Log(level, params));
        log.or_else(|| self.is_closed.then_some(Heard::Closed))
    }

    fn next_log(&mut self) -> Option<(LogLevel, Object)> {
        let (level, params, _) = self.logs.pop_front()?;
        self.log_bytes -= params.raw().len();
        Some((level, params))
    }

    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.wake();
    }

    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
