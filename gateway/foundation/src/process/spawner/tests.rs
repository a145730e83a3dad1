//! Exits of ours and of strangers side by side, in a process of its own: whose children these are is a matter of the whole process.

use super::*;
use std::time::Duration;

/// In the process that plays the gateway: how many children it starts.
const ALONE: &str = "TRUNKLINE_TEST_EXITS_ALONE";
/// How many by hand; each leaves a stranger behind, and one that only stood between.
const EXITS: &str = "TRUNKLINE_EXITS";
const NAME: &str = "upstream::process::spawner::tests::no_status_is_lost_while_strangers_are_reaped";
/// So many are started at once.
const SIDE_BY_SIDE: usize = 16;

#[test]
fn no_status_is_lost_while_strangers_are_reaped() {
    if let Some(count) = std::env::var(ALONE).ok().and_then(|text| text.parse().ok()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        return runtime.block_on(start_and_see(count));
    }
    let count = std::env::var(EXITS).unwrap_or_else(|_| "700".into());
    let own = std::env::current_exe().unwrap();
    let run = std::process::Command::new(own).args(["--exact", NAME, "--nocapture"]).env(ALONE, count).output();
    let run = run.unwrap();
    let said = [run.stdout, run.stderr].concat();
    assert!(run.status.success(), "{}: {}", run.status, String::from_utf8_lossy(&said));
}

async fn start_and_see(count: usize) {
    crate::process::linux::adopt_strangers().unwrap();
    let tasks = Tasks::new();
    tasks.spawn_until_end(reap(signal(SignalKind::child()).unwrap()));
    let lost = std::sync::Arc::new(Mutex::new(Vec::new()));
    for begin in 0..SIDE_BY_SIDE {
        let lost = lost.clone();
        tasks.spawn(async move {
            for number in (begin..count).step_by(SIDE_BY_SIDE) {
                let code = i32::try_from(number % 250).unwrap() + 1;
                let mut command = Command::new("/bin/sh");
                command.arg("-c").arg(format!("(: &) ; exit {code}"));
                let mut child = spawner().spawn_here(command).unwrap();
                let pid = child.id().unwrap();
                let seen = child.wait().await.map(|status| status.code());
                spawner().ended(pid);
                if seen.as_ref().ok() != Some(&Some(code)) {
                    lost.lock().unwrap().push(format!("{code} was {seen:?}"));
                }
            }
        });
    }
    // The reaper is one of them, and stays.
    let all = async {
        while tasks.len() > 1 || left() > 0 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(300), all).await.expect("all end, and are reaped");
    assert_eq!(*lost.lock().unwrap(), Vec::<String>::new());
    assert!(spawner().ours().is_empty());
    tasks.end();
    tasks.ended().await;
}

#[test]
fn a_number_that_is_given_anew_before_its_first_end_is_known_stays_ours() {
    let nursery = Spawner::default();
    nursery.ours().insert(7, 2);
    nursery.ended(7);
    assert!(nursery.ours().contains_key(&7));
    nursery.ended(7);
    nursery.ended(7);
    assert!(nursery.ours().is_empty());
}

#[test]
fn nobody_waits_for_a_start_but_another_start() {
    let nursery = std::sync::Arc::new(Spawner::default());
    let starting = nursery.starting();
    let (told, heard) = std::sync::mpsc::channel();
    let beside = nursery.clone();
    std::thread::spawn(move || {
        beside.ours().insert(7, 1);
        beside.ended(7);
        told.send((beside.reap(), beside.ours().len())).unwrap();
    });
    let seen = heard.recv_timeout(Duration::from_secs(20));
    drop(starting);
    assert_eq!(seen, Ok((Dead::Perhaps, 0)), "an end is known, and the dead are looked for later");
}

/// How many children this process has, dead ones among them.
fn left() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let children =
        |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    threads.map(|thread| children(thread).split_whitespace().count()).sum()
}
