//! Ends every process that bears a mark: asked first, then killed, and looked for until nobody is found twice.

use super::linux;
use rustix::process::Signal;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

/// How long those that are asked have.
const GRACE: Duration = Duration::from_millis(500);
/// How long after that is looked for those that cannot be killed, as in an uninterruptible wait.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks.
const STEP: Duration = Duration::from_millis(10);
/// Whoever is found no more so often is gone: one that forks while it is looked for is seen by the second look.
const LOOKS: u32 = 2;

/// Where a sweep stands. Pure: who is there and how long it took are passed in.
#[derive(Debug, Default)]
struct Progress {
    empty: u32,
    was_asked: bool,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Done,
    Look,
    Signal(Signal),
    GiveUp,
}

impl Progress {
    fn next(&mut self, found: usize, since: Duration) -> Next {
        if found == 0 {
            self.empty += 1;
            return if self.empty >= LOOKS { Next::Done } else { Next::Look };
        }
        self.empty = 0;
        if since >= GRACE + PATIENCE {
            return Next::GiveUp;
        }
        if since >= GRACE {
            return Next::Signal(Signal::KILL);
        }
        match std::mem::replace(&mut self.was_asked, true) {
            false => Next::Signal(Signal::TERM),
            true => Next::Look,
        }
    }
}

/// Ends everybody who bears the mark; those that would not go.
pub(super) async fn end_marked(text: &str) -> Vec<i32> {
    let (begun, mut progress) = (Instant::now(), Progress::default());
    loop {
        let found = look(text).await;
        match progress.next(found.len(), begun.elapsed()) {
            Next::Done => return Vec::new(),
            Next::GiveUp => return found,
            Next::Signal(signal) => found.iter().for_each(|pid| linux::signal_marked(*pid, text, signal)),
            Next::Look => {}
        }
        if !found.is_empty() {
            sleep(STEP).await;
        }
    }
}

/// Looks on a thread of its own, or here where the system has no thread left: then above all nobody may be forgotten.
async fn look(text: &str) -> Vec<i32> {
    let (found, looked) = oneshot::channel();
    let mark = text.to_owned();
    let looking = std::thread::Builder::new().name("sweep".into()).spawn(move || found.send(linux::marked(&mark)));
    match looking {
        Ok(_) => looked.await.unwrap_or_default(),
        Err(_) => linux::marked(text),
    }
}

/// As [`end_marked`], in a process that does nothing else.
#[allow(clippy::disallowed_methods, reason = "the guard has no runtime and no other work")]
pub(super) fn end_all(text: &str) {
    let (begun, mut progress) = (std::time::Instant::now(), Progress::default());
    loop {
        let found = linux::marked(text);
        match progress.next(found.len(), begun.elapsed()) {
            Next::Done | Next::GiveUp => return,
            Next::Signal(signal) => found.iter().for_each(|pid| linux::signal_marked(*pid, text, signal)),
            Next::Look => {}
        }
        if !found.is_empty() {
            std::thread::sleep(STEP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asked_once_then_killed_until_nobody_is_found_twice() {
        let mut progress = Progress::default();
        let ms = Duration::from_millis;
        assert_eq!(progress.next(2, ms(0)), Next::Signal(Signal::TERM));
        assert_eq!(progress.next(2, ms(10)), Next::Look);
        assert_eq!(progress.next(1, GRACE), Next::Signal(Signal::KILL));
        assert_eq!(progress.next(0, GRACE + ms(10)), Next::Look);
        // One was just being forked.
        assert_eq!(progress.next(1, GRACE + ms(20)), Next::Signal(Signal::KILL));
        assert_eq!(progress.next(0, GRACE + ms(30)), Next::Look);
        assert_eq!(progress.next(0, GRACE + ms(40)), Next::Done);
        assert_eq!(Progress::default().next(1, GRACE + PATIENCE), Next::GiveUp);
    }
}
