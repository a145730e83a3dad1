//! Ends what is left of children: asked first, then killed, and looked for until nobody is found twice.

use super::linux;
use super::remains::{Groups, Remains};
use rustix::process::Signal;
use std::sync::Arc;
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

/// How long the guard goes after a process that forks and exits so fast that no look finds it, and how long at a time.
const CHASE: Duration = Duration::from_secs(10);
/// The same where the gateway has ended in order, and waits for the guard.
const CHASE_IN_ORDER: Duration = Duration::from_millis(500);
const CHASE_STEP: Duration = Duration::from_millis(100);
/// So many processes started during one look are a sign of such a one; where nobody waits for the guard, one is enough.
const FORKS_IN_ORDER: u32 = 4;

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
pub async fn end_marked(text: &str) -> Vec<i32> {
    let (begun, mut progress) = (Instant::now(), Progress::default());
    let remains = Arc::new(Remains::new(text, Groups::new()));
    loop {
        let found = look(&remains).await;
        match progress.next(found.len(), begun.elapsed()) {
            Next::Done => return Vec::new(),
            Next::GiveUp => return found,
            Next::Signal(signal) => found.iter().for_each(|pid| remains.signal(*pid, signal)),
            Next::Look => {}
        }
        if !found.is_empty() {
            sleep(STEP).await;
        }
    }
}

/// Looks on a thread of its own, or here where the system has no thread left: then above all nobody may be forgotten.
async fn look(remains: &Arc<Remains>) -> Vec<i32> {
    let (found, looked) = oneshot::channel();
    let all = remains.clone();
    let looking = std::thread::Builder::new().name("sweep".into()).spawn(move || found.send(all.look()));
    match looking {
        Ok(_) => looked.await.unwrap_or_default(),
        Err(_) => remains.look(),
    }
}

/// Ends all of them, in a process that does nothing else.
#[allow(clippy::disallowed_methods, reason = "the guard has no runtime and no other work")]
pub(crate) fn end_all(remains: &Remains, is_in_order: bool) {
    let (chase, forks) = if is_in_order { (CHASE_IN_ORDER, FORKS_IN_ORDER) } else { (CHASE, 1) };
    let (begun, mut progress) = (std::time::Instant::now(), Progress::default());
    loop {
        let before = linux::newest();
        let found = remains.look();
        if found.is_empty() && forked(before, linux::newest(), forks) && begun.elapsed() < chase {
            // Somebody forks without end. It may be one of them, gone before it was looked at.
            let until = std::time::Instant::now() + CHASE_STEP;
            while std::time::Instant::now() < until {
                linux::newest().into_iter().for_each(|pid| remains.strike(pid));
            }
            continue;
        }
        match progress.next(found.len(), begun.elapsed()) {
            Next::Done | Next::GiveUp => return,
            Next::Signal(signal) => found.iter().for_each(|pid| remains.signal(*pid, signal)),
            Next::Look => {}
        }
        if !found.is_empty() {
            std::thread::sleep(STEP);
        }
    }
}

/// Whether so many processes were started between two looks at the newest that somebody may have slipped through.
fn forked(before: Option<i32>, after: Option<i32>, forks: u32) -> bool {
    before.zip(after).is_some_and(|(before, after)| before.abs_diff(after) >= forks)
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
