//! The harness against itself: a scripted client and a scripted upstream without anything between them.
//!
//! What holds here is what the gateway must not lose.

mod asks;
mod schemas;

use std::sync::Arc;

use trunkline_tests::client::{Client, Desk, Reach};
use trunkline_tests::revision::Revision;
use trunkline_tests::scenario::{self, Case};
use trunkline_tests::script::{Answers, Script};
use trunkline_tests::upstream::{Upstream, Way};

/// Every scenario, directly.
async fn check(way: Way, revision: Revision, change: impl FnOnce(&mut Script)) {
    let upstream = Upstream::start(way, Script::new("up", revision).asking().tasked().with(change)).await;
    let reach = match way {
        Way::Stdio => Reach::Child(upstream.program()),
        _ => Reach::Url(upstream.url()),
    };
    let client = Client::connect_with(&reach, revision, Desk::willing("ada")).await;
    scenario::run_all(Case {
        client,
        upstream: Arc::new(upstream),
        upstream_revision: revision,
        is_alone: true,
        prefix: String::new(),
        bystander: None,
    })
    .await;
}

macro_rules! direct {
    ($($name:ident: $revision:ident),*) => {$(
        mod $name {
            use super::*;

            #[tokio::test]
            async fn stdio() {
                check(Way::Stdio, Revision::$revision, |_| {}).await;
            }

            #[tokio::test]
            async fn http() {
                check(Way::Http, Revision::$revision, |_| {}).await;
            }

            #[tokio::test]
            async fn http_in_streams() {
                check(Way::Http, Revision::$revision, |script| script.http.answers = Answers::Sse).await;
            }
        }
    )*};
}

direct! {
    at_2024_11_05: R2024_11_05,
    at_2025_03_26: R2025_03_26,
    at_2025_06_18: R2025_06_18,
    at_2025_11_25: R2025_11_25,
    at_2026_07_28: R2026_07_28
}

mod misbehaviour {
    use trunkline_tests::client::tool;
    use trunkline_tests::journal::{Event, Order, What};
    use trunkline_tests::judge::{self, Judge};
    use trunkline_tests::script::{Act, Rule};

    use super::*;

    const REVISION: Revision = Revision::R2025_11_25;

    async fn child(script: Script) -> (Upstream, Client) {
        let upstream = Upstream::stdio(script).await;
        let client = Client::connect(&Reach::Child(upstream.program()), REVISION).await;
        (upstream, client)
    }

    #[tokio::test]
    async fn a_rule_acts_on_the_call_it_is_about() {
        let second = Rule::on_tool("echo", vec![Act::error(-5, "no")]).once().from_nth(2);
        let (_upstream, client) = child(Script::new("up", REVISION).rule(second)).await;
        assert_eq!(client.call("echo", "{}").await.text(), "{}");
        assert_eq!(client.call("echo", "{}").await.code(), -5);
        assert_eq!(client.call("echo", "{}").await.text(), "{}");
    }

    #[tokio::test]
    async fn a_process_that_exits_is_seen_to_go() {
        let exit = Rule::on_tool("echo", vec![Act::Exit(3)]);
        let (upstream, client) = child(Script::new("up", REVISION).rule(exit)).await;
        let (pid, _) = upstream.started(0).await;
        assert!(trunkline_tests::process::is_alive(pid));
        assert!(client.start(tool("echo", "{}")).await.outcome().await.is_none());
        upstream.gone(0).await;
        assert_eq!(client.stdio().ended().await.code(), Some(3));
    }

    #[tokio::test]
    async fn raw_bytes_and_halves_reach_the_reader() {
        let noise = vec![Act::Write("Loading…\n".into()), Act::WriteHex("ff0a".into()), Act::Half];
        let (upstream, client) = child(Script::new("up", REVISION).rule(Rule::on_tool("echo", noise))).await;
        client.stdio().keep_lines();
        let open = client.start(tool("echo", "{}")).await;
        // It runs only after the noise, and the half is written in the same breath.
        upstream.events.wait("the call runs", |event| matches!(event.what, What::Executed { .. }).then_some(())).await;
        upstream.order(Order::Write("rest\n".into())).await;
        client.stdio().lines.wait("the half", |line| line.ends_with("rest").then_some(())).await;
        assert_eq!(client.stdio().lines.all()[..2], ["Loading…".to_owned(), "\u{fffd}".to_owned()]);
        drop(open);
    }

    #[tokio::test]
    async fn a_strict_upstream_complains() {
        let upstream = Upstream::stdio(Script::new("up", REVISION)).await;
        let client = Client::open(&Reach::Child(upstream.program()), Revision::MODERN).await;
        assert_eq!(client.call("echo", "{}").await.text(), "{}");
        let complaints = upstream.complaints().await;
        let (schema, complaints): (Vec<_>, Vec<_>) =
            complaints.into_iter().partition(|text| text.starts_with("schema"));
        assert_eq!(schema, Vec::<String>::new());
        assert_eq!(complaints.len(), 2, "too early, and of the other era: {complaints:?}");
    }

    #[tokio::test]
    async fn a_cut_stream_can_be_resumed() {
        let cut = Rule::on_tool("echo", vec![Act::CutToResume]);
        let script = Script::new("up", REVISION).rule(cut).with(|script| script.http.resumable = true);
        let upstream = Upstream::http(script).await;
        let client = Client::connect(&Reach::Url(upstream.url()), REVISION).await;
        let cut = client.call("echo", "{\"a\":1}").await;
        assert!(cut.frame.is_none(), "no answer on the first stream");
        let mut headers = client.http().session();
        headers.push(("last-event-id".into(), cut.events[0].id.clone().expect("an id to resume from")));
        let rest = client.http().exchange(hyper::Method::GET, &headers, "".into(), &Default::default()).await;
        assert_eq!(rest.expect("an answer").text(), "{\"a\":1}");
    }

    #[tokio::test]
    async fn sessions_can_be_lost() {
        let upstream = Upstream::http(Script::new("up", REVISION)).await;
        let client = Client::connect(&Reach::Url(upstream.url()), REVISION).await;
        upstream.order(Order::ForgetSessions).await;
        assert_eq!(client.call("echo", "{}").await.status, 404);
    }

    #[tokio::test]
    async fn calls_with_one_id_are_told_apart() {
        for way in [Way::Stdio, Way::Http] {
            let script = Script::new("up", REVISION).with(|script| script.journal_frames = false);
            let upstream = Upstream::start(way, script).await;
            let reach = match way {
                Way::Stdio => Reach::Child(upstream.program()),
                _ => Reach::Url(upstream.url()),
            };
            let client = Client::connect(&reach, REVISION).await;
            let mut judge = Judge::default();
            for _ in 0..20 {
                let mut open = Vec::new();
                for _ in 0..64 {
                    let nonce = judge::nonce();
                    let call = client.start(tool("echo", &judge::arguments(&nonce)).id("1")).await;
                    open.push((nonce, call));
                }
                for (nonce, call) in open {
                    let answer = call.answer().await;
                    match way {
                        Way::Stdio => judge.hear_any("1", Some(&answer)),
                        _ => judge.hear("1", &nonce, Some(&answer)),
                    }
                }
            }
            judge.assert_clean(1280);
            assert_eq!(upstream.report().await, (1280, 0));
        }
    }

    #[tokio::test]
    async fn a_restarted_child_takes_lasting_orders() {
        let (upstream, client) = child(Script::new("up", REVISION)).await;
        upstream.order(Order::Open("door".into())).await;
        drop(client);
        upstream.gone(0).await;
        let again = Client::connect(&Reach::Child(upstream.program()), REVISION).await;
        assert_eq!(again.call("wait", "{\"gate\":\"door\"}").await.text(), "released");
        let second = |event: &Event| (event.instance == 1 && matches!(event.what, What::Waiting { .. })).then_some(());
        upstream.events.wait("the second process waits at the open door", second).await;
    }
}
