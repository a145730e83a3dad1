//! Too much at once: progress faster than anyone reads, and an upstream that does not read its input.

use super::rig::{Rig, call, config, outcome};
use super::*;
use crate::call::Call;
use crate::call::caller::{Caller, Principal};
use crate::call::refusal::Refusal;
use crate::call::reply::Reply;
use crate::protocol::frame::message::Frame;
use crate::protocol::json;
use std::sync::Arc;
use tokio::time::{Instant, sleep, timeout};

fn rig(config: Config) -> Rig {
    let rig = Rig::new(config);
    rig.met(LEGACY, "{}");
    rig
}

fn reached(params: &crate::protocol::value::Object) -> u64 {
    String::from_utf8_lossy(json::get(params.raw(), "progress").unwrap()).parse().unwrap()
}

const MIB: usize = 1 << 20;

/// A call of a client with arguments of a length.
fn sized(client: &str, number: usize, length: usize) -> Call {
    let text = "x".repeat(length);
    let params = format!(r#"{{"name":"{client}{number}","arguments":{{"text":"{text}"}}}}"#);
    let call = call(LEGACY, Method::ToolsCall, &params);
    let caller = Caller { principal: Principal::named(client), ..(*call.caller).clone() };
    Call { caller: Arc::new(caller), ..call }
}

/// The refusal of a call, where it is refused at the first look.
async fn refused_at_once(reply: &mut Reply) -> Option<Refusal> {
    match timeout(Duration::ZERO, reply.next()).await {
        Ok(Step::Done(Outcome::Error(Failure::Refused(refusal)))) => Some(refusal),
        Ok(other) => panic!("{other:?}"),
        Err(_) => None,
    }
}

/// Has the upstream read and answer so many requests; the names of their tools.
async fn answers(rig: &mut Rig, count: usize) -> Vec<String> {
    let mut names = Vec::new();
    for _ in 0..count {
        let (id, _, params) = rig.far.request().await;
        names.push(params.text(Key::Name).unwrap().into_owned());
        rig.far.result(&id, "{}").await;
    }
    names
}

#[tokio::test(start_paused = true)]
async fn one_client_leaves_room_in_the_send_queue_for_another() {
    let mut rig = rig(config());
    let upstream = rig.upstream();
    let (mut open, mut refused) = (Vec::new(), Vec::new());
    for number in 0..24 {
        let mut reply = upstream.call(sized("a", number, MIB));
        match refused_at_once(&mut reply).await {
            Some(refusal) => refused.push(refusal),
            None => open.push(reply),
        }
    }
    for client in ["b", "c"] {
        let mut reply = upstream.call(sized(client, 0, MIB));
        assert_eq!(refused_at_once(&mut reply).await, None, "there is room for another client");
        open.push(reply);
    }
    assert!((5..=6).contains(&open.len()), "of a part of the queue: {}", open.len());
    for refusal in &refused {
        assert_eq!((refusal.reason.clone(), refusal.is_retriable()), (Reason::Busy, true));
        let text = &refusal.message;
        assert!(text.contains("this client's own requests") && !text.contains("does not read"), "{text}");
    }
    let count = open.len();
    let names = answers(&mut rig, count).await;
    assert_eq!(names[count - 2..], ["b0", "c0"]);
    for reply in &mut open {
        assert!(matches!(outcome(reply).await, Outcome::Complete(_)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_larger_than_a_clients_part_is_sent_where_none_waits_and_takes_no_other_clients_part() {
    let mut rig = rig(config());
    let upstream = rig.upstream();
    let mut large = upstream.call(sized("a", 0, 12 * MIB));
    assert_eq!(refused_at_once(&mut large).await, None);
    let mut other = upstream.call(sized("b", 0, MIB));
    assert_eq!(refused_at_once(&mut other).await, None);
    for (client, length) in [("a", MIB), ("c", 12 * MIB)] {
        let refusal = refused_at_once(&mut upstream.call(sized(client, 1, length))).await.expect("it is refused");
        assert_eq!(refusal.reason, Reason::Busy);
    }
    assert_eq!(answers(&mut rig, 2).await, ["a0", "b0"]);
    for reply in [&mut large, &mut other] {
        assert!(matches!(outcome(reply).await, Outcome::Complete(_)));
    }
    let mut next = upstream.call(sized("a", 2, 12 * MIB));
    assert_eq!(refused_at_once(&mut next).await, None, "nothing waits any more");
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
    let mut open = Vec::new();
    let refused = loop {
        assert!(open.len() < 8, "what is kept for it has a bound");
        let mut reply = upstream.call(sized("a", open.len(), MIB));
        match refused_at_once(&mut reply).await {
            Some(refusal) => break refusal,
            None => open.push(reply),
        }
    };
    assert_eq!((refused.reason.clone(), refused.is_retriable(), begun.elapsed()), (Reason::Busy, true, Duration::ZERO));
    assert!(refused.message.contains("this client's own requests"), "{refused}");
    assert!(open.len() >= 3, "some megabytes may wait: {}", open.len());
    // Once that is known, the refusal says that it does not read.
    sleep(Duration::from_secs(10)).await;
    let refused = refused_at_once(&mut upstream.call(sized("a", open.len(), 2 * MIB))).await.expect("it is refused");
    assert!(refused.message.contains("input not read"), "{refused}");
    // Whatever it says meanwhile is read: neither side waits for the other.
    let line = format!(r#"{{"level":"info","data":"{}"}}"#, "y".repeat(1 << 19));
    for _ in 0..200 {
        deaf.far.notify("notifications/message", &line).await;
    }
    let mut other = well.upstream().call(call(LEGACY, Method::ToolsCall, r#"{"name":"t"}"#));
    let (id, _, _) = well.far.request().await;
    well.far.result(&id, "{}").await;
    assert!(matches!(outcome(&mut other).await, Outcome::Complete(_)));
    let mut is_first = true;
    for reply in &mut open {
        let Outcome::Error(Failure::Refused(refusal)) = outcome(reply).await else { panic!() };
        // Of the first a part was sent; the others never are.
        let reason = if std::mem::take(&mut is_first) { Reason::Timeout } else { Reason::Unavailable };
        assert_eq!((refusal.reason, begun.elapsed().as_secs()), (reason, 30));
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
