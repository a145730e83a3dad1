//! Orders to a real child: one instance at a time, whatever is under way, and what it was ordered to do counts as no failure.

use super::*;
use crate::call::reply::Reply;
use crate::health::Order;
use crate::upstream::config::RestartPolicy;
use std::path::{Path, PathBuf};
use tokio::time::Instant;

/// A child that writes down when it begins and when it ends, and takes its time to end; a call of `hang` is never answered.
struct Slow {
    config: Config,
    book: PathBuf,
}

impl Slow {
    fn new(name: &str) -> Self {
        let book = std::env::temp_dir().join(format!("trunkline-{}-{name}", std::process::id()));
        let mut config = shell(&format!(
            "case \"$line\" in *hang*) ;; *wait*) echo waits >> $BOOK; read -r _ < $GATE; {ANSWER} ;; *exit*) exit 3 ;; *) {ANSWER} ;; esac"
        ));
        if let Transport::Stdio { args, .. } = &mut config.transport {
            // Only a closed stdin ends it, so that it always comes to its last line.
            args[1] = format!(
                "trap '' TERM; echo begins >> $BOOK; [ -e $GATE ] || mkfifo $GATE; {}; sleep 0.3; echo ends >> $BOOK",
                args[1]
            )
            .replace("$BOOK", &book.display().to_string())
            .replace("$GATE", &gate_of(&book).display().to_string());
        }
        config.restart.stop_timeout = Duration::from_secs(60);
        Self { config, book }
    }

    /// What a call of `wait` reads a line from.
    fn gate(&self) -> PathBuf {
        gate_of(&self.book)
    }

    fn written(&self) -> String {
        std::fs::read_to_string(&self.book).unwrap_or_default().replace('\n', " ")
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.book);
        let _ = std::fs::remove_file(self.gate());
    }
}

fn gate_of(book: &Path) -> PathBuf {
    book.with_extension("gate")
}

fn named(name: &str) -> Call {
    call(LEGACY, Method::ToolsCall, &format!(r#"{{"name":"t","arguments":{{"do":"{name}"}}}}"#))
}

/// A call that the child has read and never answers.
async fn hangs(upstream: &Upstream) -> Reply {
    let running = upstream.call(named("hang"));
    // It is read first.
    drop(bounded(upstream.call(named("echo")).outcome()).await);
    running
}

async fn is_in(board: &StatusBoard, state: State) {
    let mut changes = board.changes();
    bounded(async {
        while board.snapshot()[0].state != state {
            changes.changed().await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn a_restart_under_way_ends_what_runs_keeps_what_comes_and_starts_nothing_before_the_end() {
    let mut slow = Slow::new("restarted");
    // Three by hand would be more than there may be.
    slow.config.restart.max_restarts = 2;
    let (upstream, board, tasks) = start(slow.config.clone());
    bounded(known(&mut upstream.inventory())).await;
    is_in(&board, State::Ready).await;
    for round in 1..=3 {
        let mut running = hangs(&upstream).await;
        let order = board.order("a", Order::RestartNow).unwrap();
        let Step::Done(Outcome::Error(Failure::Refused(refusal))) = bounded(running.next()).await else { panic!() };
        assert_eq!(refusal.reason, Reason::OutcomeUnknown, "{refusal}");
        // Its child still runs, and nobody is refused for that. A reply is looked at when it is there: how long a start takes
        // is the machine's affair.
        let coming = upstream.call(named("echo"));
        bounded(order).await.unwrap();
        is_in(&board, State::Ready).await;
        let (_, served) = bounded(coming.outcome()).await;
        assert!(matches!(served, Outcome::Complete(_)), "{served:?}");
        assert_eq!(slow.written(), "begins ends ".repeat(round) + "begins ", "one after the other");
    }
    let health = board.snapshot().remove(0);
    assert_eq!((health.state, health.restarts), (State::Ready, 0), "nothing was mended");
    // A failure of its own is the first that counts.
    drop(bounded(upstream.call(named("exit")).outcome()).await);
    let mut changes = board.changes();
    bounded(async {
        while board.snapshot()[0].state == State::Ready {
            changes.changed().await.unwrap();
        }
    })
    .await;
    assert_ne!(upstream.state(), State::Failed);
    stop(&upstream, &tasks).await;
}

#[tokio::test]
async fn a_restart_lets_running_calls_end_and_keeps_what_comes() {
    let slow = Slow::new("graceful");
    let (upstream, board, tasks) = start(slow.config.clone());
    bounded(known(&mut upstream.inventory())).await;
    is_in(&board, State::Ready).await;
    let running = upstream.call(named("wait"));
    bounded(async {
        while !slow.written().contains("waits") {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    let order = board.order("a", Order::Restart).unwrap();
    is_in(&board, State::Stopping).await;
    let cause = board.snapshot()[0].cause.clone().unwrap_or_default().full().into_owned();
    assert!(cause.contains("1 running calls have 5 s to end"), "{cause}");
    let coming = upstream.call(named("echo"));
    // Whoever waits at the other end goes on.
    let gate = slow.gate();
    tokio::task::spawn_blocking(move || std::fs::write(gate, "on\n")).await.unwrap().unwrap();
    let (_, ended) = bounded(running.outcome()).await;
    assert!(matches!(ended, Outcome::Complete(_)), "{ended:?}");
    bounded(order).await.unwrap();
    is_in(&board, State::Ready).await;
    let (_, served) = bounded(coming.outcome()).await;
    assert!(matches!(served, Outcome::Complete(_)), "{served:?}");
    assert_eq!(slow.written(), "begins waits ends begins ");
    stop(&upstream, &tasks).await;
}

#[tokio::test]
async fn a_stop_under_way_is_done_when_the_child_has_ended_and_a_start_before_that_comes_after_it() {
    let slow = Slow::new("stopped");
    let (upstream, board, tasks) = start(slow.config.clone());
    bounded(known(&mut upstream.inventory())).await;
    let mut running = hangs(&upstream).await;
    let stopped = board.order("a", Order::Stop).unwrap();
    drop(bounded(running.next()).await);
    let refused = bounded(upstream.call(named("echo")).outcome()).await.1;
    assert!(
        matches!(&refused, Outcome::Error(Failure::Refused(refusal)) if refusal.message.contains("trunkline start a")),
        "{refused:?}"
    );
    let started = board.order("a", Order::Start).unwrap();
    bounded(stopped).await.unwrap();
    assert!(slow.written().starts_with("begins ends "), "{}", slow.written());
    bounded(started).await.unwrap();
    is_in(&board, State::Ready).await;
    let served = bounded(upstream.call(named("echo")).outcome()).await.1;
    assert!(matches!(served, Outcome::Complete(_)), "{served:?}");
    assert_eq!(slow.written(), "begins ends begins ");
    stop(&upstream, &tasks).await;
}

#[tokio::test(start_paused = true)]
async fn what_has_failed_is_started_at_once_when_it_is_ordered_to() {
    let transport =
        Transport::Stdio { command: "/no/such/command".into(), args: Vec::new(), env: Vec::new(), cwd: None };
    let (upstream, board, tasks) = start(Config { transport, ..config() });
    is_in(&board, State::Failed).await;
    let begun = Instant::now();
    for (order, then) in [(Order::Start, State::Failed), (Order::Stop, State::Stopped)] {
        let done = board.order("a", order).unwrap();
        tokio::time::timeout(Duration::from_secs(1), done).await.expect("it does not wait for its minute").unwrap();
        is_in(&board, then).await;
    }
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(upstream.state(), State::Stopped, "and it stays so");
    stop(&upstream, &tasks).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_never_started_again_is_started_by_an_order_alone() {
    let transport =
        Transport::Stdio { command: "/no/such/command".into(), args: Vec::new(), env: Vec::new(), cwd: None };
    let mut config = Config { transport, ..config() };
    config.restart.policy = RestartPolicy::Never;
    let (upstream, board, tasks) = start(config);
    is_in(&board, State::Failed).await;
    let mut changes = board.changes();
    changes.borrow_and_update();
    // Somebody asks for lists that were never known.
    upstream.refresh(&named("echo"));
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(!changes.has_changed().unwrap(), "{:?}", board.snapshot());
    board.order("a", Order::Start).unwrap().await.unwrap();
    assert!(changes.has_changed().unwrap(), "it was tried");
    stop(&upstream, &tasks).await;
}
