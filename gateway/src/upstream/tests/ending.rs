//! What is shown of an upstream, and told to its callers, while what is left of its child is being ended.

use super::http::is;
use super::*;
use crate::health::Order;
use std::path::PathBuf;

/// A child that is deaf to the end of stdin and to SIGTERM until a file is there; a call of `mute` has it close its stdout.
struct Deaf {
    config: Config,
    released: PathBuf,
}

impl Deaf {
    fn new(name: &str) -> Self {
        let released = std::env::temp_dir().join(format!("trunkline-{}-{name}", std::process::id()));
        let mut config = shell(&format!("case \"$line\" in *mute*) exec >&- ;; *hang*) ;; *) {ANSWER} ;; esac"));
        if let Transport::Stdio { args, .. } = &mut config.transport {
            args[1] = format!("trap '' TERM; {}; while ! [ -e {} ]; do sleep 0.02; done", args[1], released.display());
        }
        config.restart.stop_timeout = Duration::from_secs(3600);
        Self { config, released }
    }

    fn release(&self) {
        std::fs::write(&self.released, "").unwrap();
    }
}

impl Drop for Deaf {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.released);
    }
}

fn tool(what: &str) -> Call {
    call(LEGACY, Method::ToolsCall, &format!(r#"{{"name":"t","arguments":{{"do":"{what}"}}}}"#))
}

#[tokio::test]
async fn an_upstream_that_closed_its_stdout_is_shown_as_stopping_before_its_process_has_ended() {
    let deaf = Deaf::new("mute");
    let (upstream, board, tasks) = start(deaf.config.clone());
    bounded(known(&mut upstream.inventory())).await;
    let lost = upstream.call(tool("mute"));
    is(&board, State::Stopping).await;
    let health = board.snapshot().remove(0);
    assert!(health.pid.is_some() && health.cause.is_some_and(|cause| cause.full().contains("closed its stdout")));
    let Outcome::Error(Failure::Refused(refusal)) = bounded(lost.outcome()).await.1 else { panic!() };
    assert_eq!(refusal.reason, Reason::OutcomeUnknown);
    // A call that comes now is for the next child.
    let coming = upstream.call(tool("echo"));
    let why = upstream.primary.status.cause(upstream.config().stop_limit());
    assert!(why.full().contains("closed its stdout; its process is ending (at most 3600 s"), "{why:?}");
    deaf.release();
    assert!(matches!(bounded(coming.outcome()).await.1, Outcome::Complete(_)));
    stop(&upstream, &tasks).await;
}

#[tokio::test]
async fn an_upstream_that_is_stopped_by_order_is_shown_as_stopping_and_its_refusal_is_final() {
    let deaf = Deaf::new("ordered");
    let (upstream, board, tasks) = start(deaf.config.clone());
    bounded(known(&mut upstream.inventory())).await;
    let stopped = board.order("a", Order::Stop).unwrap();
    is(&board, State::Stopping).await;
    let Outcome::Error(Failure::Refused(refusal)) = bounded(upstream.call(tool("echo")).outcome()).await.1 else {
        panic!()
    };
    assert!(!refusal.is_retriable() && refusal.message.contains("trunkline start a"), "{refusal}");
    deaf.release();
    bounded(stopped).await.unwrap();
    is(&board, State::Stopped).await;
    stop(&upstream, &tasks).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_finds_its_peer_gone_is_told_nothing_about_a_state_that_is_over() {
    let rig = Rig::new(config());
    rig.instance.status.transition(State::Ready, None, None, None);
    let Outcome::Error(Failure::Refused(refusal)) = rig.upstream().call(tool("echo")).outcome().await.1 else {
        panic!()
    };
    assert!(refusal.message.contains("connection just lost") && refusal.is_retriable(), "{refusal}");
}
