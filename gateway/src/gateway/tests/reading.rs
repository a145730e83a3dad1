//! A configuration whose files are read slowly, or never: on a disk of a machine that does not answer.

use super::*;
use crate::config::Loaded;
use crate::gateway::reload::Outcome;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// What hangs ends by itself after so long, so that a test fails in place of hanging, too.
const HANGS: Duration = Duration::from_secs(30);

/// A gateway whose configuration is read once it is let go on each time; and what is told that a reading has begun, and has ended.
fn slow() -> (Gateway, (Receiver<()>, Receiver<()>), Sender<()>) {
    let ((begins, begun), (release, released), (ends, ended)) = (channel(), channel(), channel());
    let released = Mutex::new(released);
    let read: Read = Arc::new(move || {
        begins.send(()).unwrap();
        let _is_released = released.lock().unwrap().recv_timeout(HANGS);
        let _is_heard = ends.send(());
        Ok(Loaded { config: config(), warnings: Vec::new(), doubts: Vec::new() })
    });
    (Gateway::start(config(), Mode::Serve).reloaded_by(read), (begun, ended), release)
}

async fn bounded<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANGS * 2, future).await.expect("it takes too long")
}

/// How long something is waited for, by a clock that goes on where that of the test stands still.
#[allow(clippy::disallowed_methods, reason = "the test's own clock is paused")]
fn waits() -> impl Fn() -> Duration {
    let begun = std::time::Instant::now();
    move || begun.elapsed()
}

/// Waits for the reading to have begun.
async fn begins(begun: &Receiver<()>) {
    let waited = waits();
    while begun.try_recv().is_err() {
        assert!(waited() < HANGS, "nothing is read");
        tokio::task::yield_now().await;
    }
}

fn refused(outcome: Outcome) -> String {
    let Outcome::Refused(faults) = outcome else { panic!("{outcome:?}") };
    faults.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_configuration_that_is_never_read_stops_nobody_and_holds_up_no_end() {
    let (gateway, (begun, ended), release) = slow();
    let admin = gateway.serve().await.unwrap().admin.unwrap();
    let reloader = gateway.reloader.clone().unwrap();
    let others = async {
        begins(&begun).await;
        // There is one worker: whatever stands on it keeps everybody waiting.
        assert!(bounded(get(admin, "/readyz")).await.unwrap().starts_with("HTTP/1.1 200"));
        bounded(gateway.drain()).await;
        assert!(ended.try_recv().is_err(), "it is still being read");
    };
    let (outcome, ()) = tokio::join!(reloader.reload(), others);
    assert!(refused(outcome).contains("could not be read"));
    drop(release);
}

#[tokio::test(start_paused = true)]
async fn files_are_waited_for_ten_seconds_and_not_read_twice_at_once() {
    let (gateway, (begun, _ended), release) = slow();
    let reloader = gateway.reloader.clone().unwrap();
    let passes = async {
        begins(&begun).await;
        tokio::time::advance(Duration::from_secs(10)).await;
    };
    let (outcome, ()) = tokio::join!(reloader.reload(), passes);
    let said = refused(outcome);
    assert!(said.contains("the files of the configuration could not be read within 10 s"), "{said}");
    assert!(said.contains("see whether the disk answers"), "{said}");
    // What hangs takes one thread, however often it is asked for.
    for _ in 0..100 {
        assert!(refused(reloader.reload().await).contains("are still being read"));
    }
    assert!(begun.try_recv().is_err());
    // It answers again: once for what has hung, and then for whoever asks.
    (0..2).for_each(|_| release.send(()).unwrap());
    let waited = waits();
    while !matches!(reloader.reload().await, Outcome::Unchanged { .. }) {
        assert!(waited() < HANGS, "it is never read again");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_not_read_is_read_once_the_reading_that_hung_is_over() {
    let (gateway, (begun, _ended), release) = slow();
    let (reloader, tasks) = (gateway.reloader.clone().unwrap(), Tasks::new());
    let passes = async {
        begins(&begun).await;
        tokio::time::advance(Duration::from_secs(10)).await;
    };
    let (outcome, ()) = tokio::join!(reloader.reload(), passes);
    assert!(refused(outcome).contains("could not be read within 10 s"));
    reloader.follow(&tasks).unwrap();
    release.send(()).unwrap();
    // Nothing tells of a change: the files hold what they held when it hung.
    let waited = waits();
    while begun.try_recv().is_err() {
        assert!(waited() < HANGS, "it is never read again");
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    release.send(()).unwrap();
    tasks.end();
    tasks.ended().await;
}

#[tokio::test]
async fn a_configuration_that_makes_the_reader_panic_is_refused_and_said_to_be_our_fault() {
    let gateway = Gateway::start(config(), Mode::Serve).reloaded_by(Arc::new(|| panic!("on purpose")));
    let reloader = gateway.reloader.clone().unwrap();
    let said = refused(reloader.reload().await);
    assert!(said.contains("made Trunkline itself fail") && said.contains("please report it"), "{said}");
    assert!(!said.contains("within 10 s"), "{said}");
}
