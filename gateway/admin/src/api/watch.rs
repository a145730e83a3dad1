//! Waits for news of calls, for who watches them: a long poll, of which there are few at a time.

use crate::pages::Shown;
use crate::telemetry::calls::Mark;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

/// So long a request waits at most.
const WAIT_MAX: Duration = Duration::from_secs(25);
/// So often it is looked whether there is news: a call wakes nobody.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// So many wait at a time; further ones are answered at once.
const WATCHERS_MAX: usize = 32;

static WATCHERS: Semaphore = Semaphore::const_new(WATCHERS_MAX);

/// What is known already, and how long news may take.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Since {
    /// The mark of the last answer.
    after: Option<Mark>,
    /// Seconds.
    wait: u64,
}

impl Since {
    /// Reads `after=CURSOR&wait=SECONDS`; an error says what one of them must be. A cursor of an earlier run is one, too.
    pub(super) fn parse(query: &str) -> Result<Self, &'static str> {
        let of = |key: &str| query.split('&').find_map(|part| part.strip_prefix(key)?.strip_prefix('='));
        let wait = of("wait").map_or(Ok(0), str::parse).map_err(|_| "`wait` must be a whole number of seconds\n")?;
        let after =
            of("after").map(|cursor| parsed(cursor).ok_or("`after` must be the `cursor` of an earlier answer\n"));
        Ok(Self { after: after.transpose()?, wait })
    }
}

/// Waits until there is news; the cursor of now, and where the ended calls that are known end.
pub(super) async fn changed(shown: &Shown, since: &Since) -> (String, u64) {
    let calls = &shown.looks.calls;
    let known = since.after;
    let until = Instant::now() + Duration::from_secs(since.wait).min(WAIT_MAX);
    let place = if since.wait > 0 { WATCHERS.try_acquire().ok() } else { None };
    let mut now = calls.mark();
    while place.is_some() && known == Some(now) && Instant::now() < until && !(shown.is_draining)() {
        sleep(LOOK_EVERY).await;
        now = calls.mark();
    }
    (written(now), known.map_or(0, |known| known.ended))
}

fn written(mark: Mark) -> String {
    format!("{}.{}.{}", mark.ended, mark.begun, mark.open)
}

/// `None` for what is no cursor of ours.
fn parsed(cursor: &str) -> Option<Mark> {
    let mut parts = cursor.splitn(3, '.').map(|part| part.parse::<u64>().ok());
    let (ended, begun, open) = (parts.next()??, parts.next()??, parts.next()??);
    Some(Mark { ended, begun, open: usize::try_from(open).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_and_nonsense_is_none() {
        let mark = Mark { ended: 7, begun: u64::MAX, open: 3 };
        assert_eq!(parsed(&written(mark)), Some(mark));
        for text in ["", "1", "1.2", "1.2.x", "-1.2.3", "1.2.3.4"] {
            assert_eq!(parsed(text), None, "{text}");
        }
        assert_eq!(Since::parse("wait=5&after=1.2.3"), Ok(Since { after: parsed("1.2.3"), wait: 5 }));
        assert_eq!(Since::parse("waits=5"), Ok(Since::default()));
        for (query, key) in
            [("after=zz", "`after`"), ("after=", "`after`"), ("wait=-1&after=1.2.3", "`wait`"), ("wait=1s", "`wait`")]
        {
            assert!(Since::parse(query).unwrap_err().starts_with(key), "{query}");
        }
    }
}
