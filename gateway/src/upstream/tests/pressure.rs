//! Too much at once: progress faster than anyone reads, and an upstream that does not read what it is sent.

use super::rig::{Rig, call, config, outcome};
use super::*;
use crate::protocol::frame::Frame;
use crate::protocol::json;
use tokio::time::{Instant, sleep};

fn rig(config: Config) -> Rig {
    let rig = Rig::new(config);
    rig.met(LEGACY, "{}");
    rig
}

fn reached(params: &crate::protocol::Object) -> u64 {
    String::from_utf8_lossy(json::get(params.raw(), "progress").unwrap()).parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn progress_is_told_twenty_times_a_second_at_most_and_the_last_of_it_always() {
    let mut rig = rig(config());
    let mut reply = rig.upstream().call(Call { progress: true, ..call(LEGACY, Method::ToolsCall, r#"{"name":"t"}"#) });
    let (id, _, _) = rig.far.request().await;
    let token = String::from_utf8_lossy(id.raw()).into_owned();
    let telling = async {
        for number in 1..=50_000u64 {
            rig.far
                .notify("notifications/progress", &format!(r#"{{"progressToken":{token},"progress":{number}}}"#))
                .await;
            if number % 10 == 0 {
                sleep(Duration::from_millis(1)).await;
            }
        }
        // A while without any: the last one is told in its time, not only with the end.
        sleep(Duration::from_secs(5)).await;
        // A few in a row, after a rest, are all told.
        for number in 50_001..=50_006u64 {
            rig.far
                .notify("notifications/progress", &format!(r#"{{"progressToken":{token},"progress":{number}}}"#))
                .await;
        }
        rig.far.result(&id, "{}").await;
    };
    let hearing = async {
        let mut heard = Vec::new();
        loop {
            match reply.next().await {
                Step::Event(Event::Progress(params)) => heard.push((Instant::now(), reached(&params))),
                Step::Event(other) => panic!("{other:?}"),
                Step::Done(_) => return (heard, Instant::now()),
            }
        }
    };
    let ((), (heard, end)) = tokio::join!(telling, hearing);
    assert!(heard.windows(2).all(|two| two[0].1 < two[1].1), "only forwards");
    let crowded = heard.windows(21).find(|some| some[20].0 - some[0].0 < Duration::from_secs(1));
    assert!(crowded.is_none(), "{crowded:?}");
    let flood: Vec<_> = heard.iter().filter(|(_, number)| *number <= 50_000).collect();
    assert!((50..=80).contains(&flood.len()), "steadily: {}", flood.len());
    let last = flood.last().unwrap();
    assert!(last.1 == 50_000 && end - last.0 > Duration::from_secs(4), "{last:?}");
    let after: Vec<_> = heard.iter().map(|(_, number)| *number).filter(|number| *number > 50_000).collect();
    assert_eq!(after, (50_001..=50_006).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_does_not_read_harms_its_own_calls_alone_and_works_again_when_it_does() {
    let mut deaf = rig(Config { call_timeout: Some(Duration::from_secs(30)), ..config() });
    let mut well = rig(config());
    let (upstream, begun) = (deaf.upstream(), Instant::now());
    let large = |number: usize| {
        let text = "x".repeat(1 << 20);
        call(LEGACY, Method::ToolsCall, &format!(r#"{{"name":"t{number}","arguments":{{"text":"{text}"}}}}"#))
    };
    let mut open = Vec::new();
    let refused = loop {
        assert!(open.len() < 8, "what is kept for it has a bound");
        let mut reply = upstream.call(large(open.len()));
        // What can be known at once is known at the first look.
        match tokio::time::timeout(Duration::ZERO, reply.next()).await {
            Ok(Step::Done(Outcome::Error(Failure::Refused(refusal)))) => break refusal,
            Ok(other) => panic!("{other:?}"),
            Err(_) => open.push(reply),
        }
    };
    assert_eq!((refused.reason.clone(), refused.is_retriable, begun.elapsed()), (Reason::Busy, true, Duration::ZERO));
    assert!(refused.message.contains("does not read what it is sent"), "{refused}");
    assert!(open.len() >= 4, "some megabytes may wait: {}", open.len());
    // Whatever it says meanwhile is read: neither side waits for the other.
    let line = format!(r#"{{"level":"info","data":"{}"}}"#, "y".repeat(1 << 19));
    for _ in 0..200 {
        deaf.far.notify("notifications/message", &line).await;
    }
    let mut other = well.upstream().call(call(LEGACY, Method::ToolsCall, r#"{"name":"t"}"#));
    let (id, _, _) = well.far.request().await;
    well.far.result(&id, "{}").await;
    assert!(matches!(outcome(&mut other).await, Outcome::Complete(_)));
    for reply in &mut open {
        let Outcome::Error(Failure::Refused(refusal)) = outcome(reply).await else { panic!() };
        assert_eq!((refusal.reason, begun.elapsed().as_secs()), (Reason::Timeout, 30));
    }
    drop(open);
    // It reads again: the calls, that they are withdrawn, and what comes next.
    let mut next = loop {
        let mut reply = upstream.call(call(LEGACY, Method::ToolsCall, r#"{"name":"next"}"#));
        match tokio::time::timeout(Duration::ZERO, reply.next()).await {
            Err(_) => break reply,
            Ok(_) => drop(deaf.far.line().await),
        }
    };
    let id = loop {
        let line = deaf.far.line().await;
        if let Ok(Frame::Request { id, params, .. }) = Frame::parse(&line.into())
            && params.text(Key::Name).as_deref() == Some("next")
        {
            break id;
        }
    };
    deaf.far.result(&id, "{}").await;
    assert!(matches!(outcome(&mut next).await, Outcome::Complete(_)));
}
