//! Results that are announced and come in chunks, or do not come.

use super::rig::{Rig, call, config, outcome};
use super::*;
use crate::call::refusal::Reason;
use crate::call::reply::{Event, Failure, Outcome, Reply, Step};
use crate::protocol::revision::Revision;
use crate::upstream::instance::chunks::SILENCE_MAX;
use std::time::Duration;
use tokio::time::Instant;

/// A call without a time limit, whose answer says that its result is to come.
async fn announced(rig: &mut Rig) -> Reply {
    rig.met(Revision::V2025_03_26, r#"{"tools":{}}"#);
    let reply = rig.upstream().call(call(Revision::V2025_03_26, Method::ToolsCall, r#"{"name":"t"}"#));
    let (id, ..) = rig.far.request().await;
    rig.far.result(&id, r#"{"stream":true,"streamId":"s"}"#).await;
    reply
}

async fn gives_up(reply: &mut Reply) {
    let Outcome::Error(Failure::Refused(refusal)) = outcome(reply).await else { panic!("it has an answer") };
    assert_eq!(refusal.reason, Reason::OutcomeUnknown);
    assert!(refusal.message.contains("no part of its result came for 60 s"), "{}", refusal.message);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_never_comes_ends_long_before_the_call_would() {
    let mut rig = Rig::new(Config { max_call_time: None, ..config() });
    let mut reply = announced(&mut rig).await;
    let begun = Instant::now();
    gives_up(&mut reply).await;
    assert_eq!(begun.elapsed().as_secs(), SILENCE_MAX.as_secs());
}

#[tokio::test(start_paused = true)]
async fn chunks_are_told_twenty_times_a_second_at_most_and_all_of_their_text() {
    let mut rig = Rig::new(config());
    let mut reply = announced(&mut rig).await;
    let telling = async {
        for number in 0..2000 {
            let text = number % 10;
            let chunk = format!(r#"{{"streamId":"s","chunk":{{"content":"{text}"}}}}"#);
            rig.far.notify("notifications/stream/chunk", &chunk).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // A while without any: the last of it is told in its time.
        tokio::time::sleep(Duration::from_secs(5)).await;
        rig.far.notify("notifications/stream/chunk", r#"{"streamId":"s","chunk":{"content":"!","final":true}}"#).await;
    };
    let hearing = async {
        let (mut heard, mut text) = (Vec::new(), String::new());
        loop {
            match reply.next().await {
                Step::Event(Event::Progress(params)) => {
                    heard.push(Instant::now());
                    text.push_str(&params.find("message").and_then(crate::protocol::json::unquote).unwrap());
                }
                Step::Event(other) => panic!("{other:?}"),
                Step::Done(outcome) => return (heard, text, outcome, Instant::now()),
            }
        }
    };
    let ((), (heard, text, outcome, end)) = tokio::join!(telling, hearing);
    let crowded = heard.windows(21).find(|some| some[20] - some[0] < Duration::from_secs(1));
    assert!(crowded.is_none(), "{crowded:?}");
    assert!((25..=40).contains(&heard.len()), "steadily: {}", heard.len());
    assert_eq!(text, "0123456789".repeat(200));
    assert!(end - *heard.last().unwrap() > Duration::from_secs(4), "not only with the end");
    let whole = format!(r#"{{"content":[{{"type":"text","text":"{text}!"}}]}}"#);
    assert!(matches!(&outcome, Outcome::Complete(result) if result.raw() == whole.as_bytes()), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn each_chunk_is_a_sign_of_life() {
    let mut rig = Rig::new(Config { max_call_time: None, ..config() });
    let mut reply = announced(&mut rig).await;
    let begun = Instant::now();
    for _ in 0..3 {
        let silence = tokio::time::timeout(SILENCE_MAX - Duration::from_secs(1), reply.next());
        assert!(silence.await.is_err());
        rig.far.notify("notifications/stream/chunk", r#"{"streamId":"s","chunk":{"content":"x"}}"#).await;
        assert!(matches!(reply.next().await, Step::Event(Event::Progress(_))));
    }
    gives_up(&mut reply).await;
    assert_eq!(begun.elapsed().as_secs(), 3 * (SILENCE_MAX.as_secs() - 1) + SILENCE_MAX.as_secs());
}
