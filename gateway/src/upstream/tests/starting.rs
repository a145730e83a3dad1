//! What cannot be started is looked at once a minute, and children that hang keep nobody from starting.

use super::*;
use crate::transport::stdio::start_limit::StartLimit;
use crate::upstream::config::Start;
use std::os::unix::fs::PermissionsExt;
use tokio::time::Instant;

fn command(command: &str) -> Config {
    let transport = Transport::Stdio { command: command.into(), args: Vec::new(), env: Vec::new(), cwd: None };
    Config { transport, ..config() }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_started_is_looked_at_once_a_minute_and_not_oftener() {
    let begun = Instant::now();
    let (upstream, board, tasks) = start(command("/no/such/command"));
    let mut changes = board.changes();
    let mut attempts = Vec::new();
    while attempts.len() < 10 {
        changes.changed().await.unwrap();
        let health = board.snapshot().remove(0);
        if health.state == State::Failed && attempts.len() as u64 == health.restarts {
            attempts.push(begun.elapsed().as_secs());
            let due = health.retry_at.unwrap() - Instant::now();
            assert_eq!(due, Duration::from_secs(60), "when it is looked at next is shown");
        }
    }
    assert_eq!(attempts, (0..10).map(|minute| minute * 60).collect::<Vec<_>>());
    stop(&upstream, &tasks).await;
}

#[tokio::test]
async fn a_file_that_may_not_be_run_has_failed_at_once_and_is_started_once_it_may() {
    let folder = std::env::temp_dir().join(format!("trunkline-{}-starting", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("program");
    let Transport::Stdio { args, env, .. } = shell(ANSWER).transport else { panic!() };
    std::fs::write(&file, format!("#!/bin/sh\n{}\n", args[1])).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let transport = Transport::Stdio { command: file.display().to_string(), args: Vec::new(), env, cwd: None };
    let mut config = Config { transport, ..config() };
    config.restart.window = Duration::from_millis(200);
    let (upstream, board, tasks) = start(config);
    let mut changes = board.changes();
    bounded(async {
        while upstream.state() != State::Failed {
            changes.changed().await.unwrap();
        }
    })
    .await;
    let cause = board.snapshot().remove(0).cause.unwrap();
    let cause = cause.full();
    assert!(cause.contains("cannot be executed") && cause.contains("os error 13"), "{cause}");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    bounded(known(&mut upstream.inventory())).await;
    stop(&upstream, &tasks).await;
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The others come up behind a child that does this and never says a word; how long they waited for it.
async fn behind(script: &str) -> Duration {
    let starts = StartLimit::new(1);
    let (board, tasks) = (StatusBoard::default(), Tasks::new());
    let silent = |mut config: Config| {
        if let Transport::Stdio { args, .. } = &mut config.transport {
            args[1] = script.into();
        }
        config
    };
    let configs = [silent(shell(ANSWER)), shell(ANSWER), shell(ANSWER)];
    let upstreams = configs.map(|config| {
        let handle = board.add(&config.name, "stdio");
        let upstream = Upstream::new(config, handle, Arc::new(|_| ()));
        upstream.share_starts(&starts);
        upstream.keep_alive(&tasks);
        upstream
    });
    let begun = Instant::now();
    for upstream in &upstreams[1..] {
        bounded(known(&mut upstream.inventory())).await;
    }
    let waited = begun.elapsed();
    assert_eq!(upstreams[0].state(), State::Starting, "it has not said anything, and still may");
    tasks.end();
    for upstream in &upstreams {
        bounded(upstream.stopped()).await;
    }
    waited
}

#[tokio::test]
async fn who_waits_until_it_is_needed_keeps_nobody_from_starting() {
    let (starts, board, tasks) = (StartLimit::new(1), StatusBoard::default(), Tasks::new());
    let upstreams = [Start::Lazy, Start::Manual, Start::Eager].map(|start| {
        let config = Config { start, ..shell(ANSWER) };
        let handle = board.add(&config.name, "stdio");
        let upstream = Upstream::new(config, handle, Arc::new(|_| ()));
        upstream.share_starts(&starts);
        upstream.keep_alive(&tasks);
        upstream
    });
    bounded(known(&mut upstreams[2].inventory())).await;
    assert_eq!([upstreams[0].state(), upstreams[1].state()], [State::Idle, State::Stopped]);
    tasks.end();
    for upstream in &upstreams {
        bounded(upstream.stopped()).await;
    }
}

#[tokio::test]
async fn a_child_that_says_nothing_holds_up_the_others_while_it_works_and_not_for_its_handshake() {
    let working = behind("while :; do :; done").await;
    assert!(working >= Duration::from_secs(2), "there is one start for all: {working:?}");
    behind("while read -r line; do :; done").await;
}

#[tokio::test]
async fn a_child_that_only_logs_to_its_stdout_is_shown_with_that_and_no_longer_with_what_its_last_life_ended_of() {
    let mut config = shell(ANSWER);
    if let Transport::Stdio { args, .. } = &mut config.transport {
        args[1] = "echo Listening on 3000; while read -r line; do :; done".into();
    }
    let (upstream, board, tasks) = start(config);
    upstream.primary.status.handle.update(|health| health.cause = Some("it was killed".into()));
    let mut changes = board.changes();
    let known = bounded(async {
        loop {
            match board.snapshot().remove(0).cause {
                Some(cause) if cause.full().contains("Listening") => break cause,
                _ => changes.changed().await.unwrap(),
            }
        }
    })
    .await;
    let expected = "no answer yet; it prints other things than MCP to stdout";
    assert!(known.full().starts_with(expected), "{known:?}");
    assert_eq!(upstream.state(), State::Starting);
    let told = upstream.cause().unwrap().public().into_owned();
    assert!(told.starts_with(expected) && !told.contains("Listening"), "{told}");
    stop(&upstream, &tasks).await;
}
