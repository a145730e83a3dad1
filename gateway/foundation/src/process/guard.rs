//! The guard: a small process that outlives the gateway by a moment, and ends whatever of its children is left then.

use super::remains::{Groups, Remains};
use super::{linux, sweep};
use std::io::BufRead;
use std::process::ExitCode;

/// The hidden command that it is.
pub(crate) const GUARD: &str = "guard-upstreams";
/// What the system calls its process.
const NAME: &str = "upstream-guard";

/// What the gateway tells its guard, a line each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuardNote {
    /// A child was started, as the first of a process group: its number, and when it began.
    Started(i32, u64),
    /// Nothing is left of a group.
    Ended(i32),
    /// The gateway ends in order, and has found nobody any more.
    Over,
}

impl GuardNote {
    pub(crate) fn line(self) -> String {
        match self {
            Self::Started(pid, began) => format!("+{pid} {began}\n"),
            Self::Ended(pid) => format!("-{pid}\n"),
            Self::Over => "over\n".into(),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let line = line.trim_end();
        if line == "over" {
            return Some(Self::Over);
        }
        if let Some(pid) = line.strip_prefix('-') {
            return pid.parse().ok().map(Self::Ended);
        }
        let (pid, began) = line.strip_prefix('+')?.split_once(' ')?;
        Some(Self::Started(pid.parse().ok()?, began.parse().ok()?))
    }
}

/// Waits for the end of stdin, whose other end only the gateway holds; then ends everybody who bears a mark of its run, or is in a
/// group that a child of it began. Until then it hears of these groups there.
pub fn guard(run: &str) -> ExitCode {
    // Who ends all that is called like the gateway is not to end it too.
    linux::be_called(NAME);
    let (groups, is_in_order) = heard(&mut std::io::stdin().lock());
    sweep::end_all(&Remains::new(run, groups), is_in_order);
    ExitCode::SUCCESS
}

/// The groups that may have members when the other end is closed, and whether the gateway has ended in order.
fn heard(notes: &mut impl BufRead) -> (Groups, bool) {
    let (mut groups, mut line, mut is_over) = (Groups::new(), String::new(), false);
    while notes.read_line(&mut line).is_ok_and(|read| read > 0) {
        match GuardNote::parse(&line) {
            Some(GuardNote::Started(pid, began)) => _ = groups.insert(pid, began),
            Some(GuardNote::Ended(pid)) => _ = groups.remove(&pid),
            Some(GuardNote::Over) => is_over = true,
            // Half a line: the gateway was killed while it wrote.
            None => {}
        }
        line.clear();
    }
    (groups, is_over)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_knows_the_groups_that_were_begun_and_not_ended() {
        let all = [GuardNote::Started(7, 100), GuardNote::Started(8, 101), GuardNote::Ended(7)];
        let notes: String = all.iter().map(|note| note.line()).collect();
        assert_eq!(heard(&mut format!("{notes}+9 1").as_bytes()), (Groups::from([(8, 101), (9, 1)]), false));
        assert_eq!(heard(&mut format!("{notes}+9").as_bytes()), (Groups::from([(8, 101)]), false));
        assert!(heard(&mut format!("{notes}{}", GuardNote::Over.line()).as_bytes()).1);
    }
}
