//! How it ends: at the end of stdin, and when the gateway is told to end.

use super::*;

#[tokio::test(start_paused = true)]
async fn at_the_end_of_stdin_what_runs_has_two_seconds() {
    let mut host = Host::start();
    host.handshake().await;
    let _listen = host.hands.next().await;
    host.write(&call("1", "x")).await;
    host.write(&call("2", "x")).await;
    let (first, second) = (host.hands.next().await, host.hands.next().await);
    host.stdin.write_all(call("3", "echo").as_bytes()).await.unwrap();
    drop(host.stdin);
    let began = tokio::time::Instant::now();
    assert!(soon(host.stdout.next_line()).await.unwrap().unwrap().contains("\"id\":3"));
    first.complete("{}");
    assert!(soon(host.stdout.next_line()).await.unwrap().unwrap().contains("\"id\":1"));
    let cut = soon(host.stdout.next_line()).await.unwrap().unwrap();
    assert!(
        cut.starts_with(r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"#)
            && cut.contains("it may or may not have run"),
        "{cut}"
    );
    second.cancelled().await;
    soon(host.ended).await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_cut_off_is_answered_with_what_there_is() {
    let mut host = Host::start();
    host.handshake().await;
    let _listen = host.hands.next().await;
    host.write(&format!("[{},{},{}]", call("1", "echo"), call("2", "x"), call("3", "x"))).await;
    let (_second, _third) = (host.hands.next().await, host.hands.next().await);
    host.write(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#).await;
    drop(host.stdin);
    let cut = soon(host.stdout.next_line()).await.unwrap().unwrap();
    let is_cut =
        cut.starts_with(r#"[{"jsonrpc":"2.0","id":1,"result""#) && cut.contains(r#"},{"jsonrpc":"2.0","id":2,"error""#);
    assert!(is_cut && !cut.contains("\"id\":3"), "{cut}");
    soon(host.ended).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn while_it_ends_withdrawals_are_heard_and_nothing_is_begun() {
    let mut host = Host::with(Config { shutdown_grace: Duration::from_secs(30), ..Config::default() }, 1 << 20);
    host.handshake().await;
    let _listen = host.hands.next().await;
    for id in ["1", "2"] {
        host.write(&call(id, "x")).await;
    }
    let (first, second) = (host.hands.next().await, host.hands.next().await);
    let began = tokio::time::Instant::now();
    host.tasks.end();
    host.write(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).await;
    first.cancelled().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    let refused = |line: String, id: &str| {
        let is_refused = line.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error""#));
        assert!(is_refused && line.contains("nothing was run"), "{line}");
    };
    host.write(&call("\"n\"", "echo")).await;
    refused(host.line().await, "\"n\"");
    host.write(&format!("[{},7,{}]", call("8", "echo"), call("9", "echo"))).await;
    let array: Vec<serde_json::Value> = serde_json::from_str(&host.line().await).unwrap();
    let ids: Vec<_> = array.iter().map(|one| one["id"].to_string()).collect();
    assert_eq!(ids, ["8", "null", "9"]);
    for one in [&array[0], &array[2]] {
        assert!(one["error"]["message"].as_str().unwrap().contains("nothing was run"), "{one}");
    }
    // Who closes stdin as well has gone, and what runs has no longer than then.
    drop(host.stdin);
    assert!(soon(host.stdout.next_line()).await.unwrap().unwrap().contains(r#""id":2,"error""#));
    second.cancelled().await;
    assert_eq!(began.elapsed(), Duration::from_secs(2));
    soon(host.ended).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn at_the_end_of_stdin_nobody_is_waited_for_who_could_answer() {
    let mut host = Host::start();
    host.handshake().await;
    let _listen = host.hands.next().await;
    host.write(&call("1", "x")).await;
    let hand = host.hands.next().await;
    let one = hand.ask(Method::RootsList, "{}");
    assert!(host.line().await.contains("roots/list"));
    drop(host.stdin);
    assert!(soon(one).await.is_err());
    assert!(soon(hand.ask(Method::RootsList, "{}")).await.is_err());
    hand.complete("{}");
    assert!(soon(host.stdout.next_line()).await.unwrap().unwrap().contains("\"result\""));
    soon(host.ended).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn when_told_to_end_questions_are_withdrawn_and_what_runs_may_finish() {
    let mut host = Host::with(Config { shutdown_grace: Duration::from_secs(5), ..Config::default() }, 1 << 20);
    host.handshake().await;
    let tenant = host.hands.next().await.call.caller.tenant.clone().unwrap();
    for id in ["1", "2", "3"] {
        host.write(&call(id, "x")).await;
    }
    let (asking, running, endless) = (host.hands.next().await, host.hands.next().await, host.hands.next().await);
    let one = asking.ask(Method::RootsList, "{}");
    assert!(host.line().await.contains("roots/list"));
    let (ask, outside) = question(Method::RootsList, "{}");
    tenant.ask(ask).unwrap();
    assert!(host.line().await.contains("roots/list"));
    let began = tokio::time::Instant::now();
    host.tasks.end();
    assert!(soon(one).await.is_err() && soon(outside).await.is_err());
    let mut withdrawn = [host.line().await, host.line().await];
    withdrawn.sort();
    for (line, id) in withdrawn.iter().zip([1, 2]) {
        assert!(line.contains("notifications/cancelled") && line.contains(&format!("\"requestId\":{id},")), "{line}");
    }
    assert!(soon(asking.ask(Method::RootsList, "{}")).await.is_err(), "nobody is asked any more");
    asking.complete("{}");
    assert!(host.line().await.contains("\"id\":1,\"result\""));
    tokio::time::sleep(Duration::from_secs(4)).await;
    running.complete("{}");
    assert!(host.line().await.contains("\"id\":2,\"result\""));
    let cut = host.line().await;
    assert!(
        cut.contains(r#""id":3,"error""#)
            && cut.contains("shut down before `tools/call` of upstream `up` was answered"),
        "{cut}"
    );
    endless.cancelled().await;
    soon(host.ended).await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn what_there_was_no_room_for_is_answered_when_the_gateway_ends() {
    const ROOM: usize = 4096;
    let mut host = Host::with(Config { shutdown_grace: Duration::from_secs(30), ..Config::default() }, 1 << 20);
    host.handshake().await;
    let _listen = host.hands.next().await;
    let mut hands = Vec::new();
    for id in 0..=ROOM {
        host.write(&call(&id.to_string(), "x")).await;
        if id < ROOM {
            hands.push(host.hands.next().await);
        }
    }
    // By the paused clock: once nothing else is left to be done.
    tokio::time::sleep(Duration::from_millis(1)).await;
    host.tasks.end();
    tokio::time::sleep(Duration::from_millis(1)).await;
    hands.into_iter().for_each(|hand| hand.complete("{}"));
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..=ROOM {
        let line = host.line().await;
        let answer: serde_json::Value = serde_json::from_str(&line).unwrap();
        let is_last = answer["id"] == ROOM;
        assert_eq!(is_last, line.contains("nothing was run"), "{line}");
        assert!(ids.insert(answer["id"].as_u64()), "{line}");
    }
    drop(host.stdin);
    soon(host.ended).await.unwrap();
}
