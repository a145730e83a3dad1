//! An upstream of HTTP/2 that refuses, leaves and breaks, over streams in memory.

use super::{Exchange, Shared};
use crate::runtime::Tasks;
use crate::runtime::watched::Pieces;
use crate::upstream::tests::rig::{Rig, config};
use crate::upstream::transport::exchange::Lost;
use crate::upstream::transport::http::connection::flow::{Flow, Unread};
use bytes::Bytes;
use futures_util::future::join_all;
use h2::Reason;
use h2::server::{Connection, SendResponse};
use http::{Request, Response};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{DuplexStream, duplex};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// A connection, and its other end.
async fn connected(tasks: &Tasks, over: &CancellationToken) -> (Arc<Shared>, Connection<DuplexStream, Bytes>) {
    let (near, far) = duplex(1 << 16);
    let unread = Unread::new(Rig::new(config()).instance);
    let watch = (Arc::new(Flow::default()), unread);
    let opened = Shared::open(near, "up.example:443", tasks, (0, over.clone()), watch);
    let (shared, server) = tokio::join!(opened, h2::server::handshake(far));
    (Arc::new(shared.unwrap_or_else(|_| panic!("it opens"))), server.unwrap())
}

fn request() -> Request<Pieces> {
    let request = Request::post("/mcp?x=1").header("host", "other").header("connection", "close");
    request.body(Bytes::from_static(b"{}").into()).unwrap()
}

async fn asks(exchange: Exchange) -> Result<u16, Lost> {
    exchange.send(request()).await.map(|answer| answer.status().as_u16())
}

type Asked = (Request<h2::RecvStream>, SendResponse<Bytes>);

async fn next(server: &mut Connection<DuplexStream, Bytes>) -> Asked {
    server.accept().await.unwrap().unwrap()
}

fn answer(mut asked: Asked) {
    asked.1.send_response(Response::new(()), true).unwrap();
}

#[tokio::test(start_paused = true)]
async fn many_exchanges_are_on_one_connection_and_what_is_refused_did_not_run() {
    let (tasks, over) = (Tasks::new(), CancellationToken::new());
    let (shared, mut server) = connected(&tasks, &over).await;
    let exchanges: Vec<_> = (0..3).map(|_| asks(shared.begin().unwrap())).collect();
    let serves = async {
        let (first, mut second, third) = (next(&mut server).await, next(&mut server).await, next(&mut server).await);
        assert_eq!(first.0.uri().to_string(), "https://up.example:443/mcp?x=1");
        assert!(!first.0.headers().contains_key("host") && !first.0.headers().contains_key("connection"));
        second.1.send_reset(Reason::REFUSED_STREAM);
        answer(third);
        answer(first);
        while server.accept().await.is_some() {}
    };
    let answers = async {
        let answers = join_all(exchanges).await;
        over.cancel();
        answers
    };
    let (answers, ()) = tokio::join!(answers, serves);
    assert!(matches!(&answers[..], [Ok(200), Err(Lost::Busy(_)), Ok(200)]), "{answers:?}");
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_leaves_answers_what_it_has_looked_at_and_the_rest_did_not_run() {
    let (tasks, over) = (Tasks::new(), CancellationToken::new());
    let (shared, mut server) = connected(&tasks, &over).await;
    let first = asks(shared.begin().unwrap());
    let serves = async {
        let first = next(&mut server).await;
        server.graceful_shutdown();
        let _sent = timeout(Duration::from_secs(1), server.accept()).await;
        answer(first);
        while server.accept().await.is_some() {}
    };
    let (answered, ()) = tokio::join!(first, serves);
    assert!(matches!(answered, Ok(200)), "{answered:?}");
    // What comes later is not sent on it.
    let later = asks(shared.begin().unwrap()).await;
    assert!(matches!(later, Err(Lost::Unsent(_))), "{later:?}");
    assert!(!shared.is_good());
}

#[tokio::test(start_paused = true)]
async fn of_what_was_under_way_when_a_connection_broke_nobody_knows_whether_it_ran() {
    let (tasks, over) = (Tasks::new(), CancellationToken::new());
    let (shared, mut server) = connected(&tasks, &over).await;
    let one = asks(shared.begin().unwrap());
    let serves = async {
        let _asked = next(&mut server).await;
        drop(server);
    };
    let (answered, ()) = tokio::join!(one, serves);
    assert!(matches!(answered, Err(Lost::Unknown(_))), "{answered:?}");
    // So it is where it was reset for another reason, and where its epoch ends.
    let (shared, mut server) = connected(&tasks, &over).await;
    let exchanges = [asks(shared.begin().unwrap()), asks(shared.begin().unwrap())];
    let serves = async {
        let (mut one, _other) = (next(&mut server).await, next(&mut server).await);
        one.1.send_reset(Reason::INTERNAL_ERROR);
        let _sent = timeout(Duration::from_secs(1), server.accept()).await;
        over.cancel();
        let _gone = timeout(Duration::from_secs(1), server.accept()).await;
    };
    let (answers, ()) = tokio::join!(join_all(exchanges), serves);
    assert!(answers.iter().all(|one| matches!(one, Err(Lost::Unknown(_)))), "{answers:?}");
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_says_nothing_any_more_is_pinged_and_given_up() {
    let (tasks, over) = (Tasks::new(), CancellationToken::new());
    let (shared, mut server) = connected(&tasks, &over).await;
    let one = asks(shared.begin().unwrap());
    let serves = async {
        let _asked = next(&mut server).await;
        // It reads no more.
        std::future::pending::<()>().await;
    };
    let answered = tokio::select! {
        answered = timeout(Duration::from_secs(60), one) => answered.expect("it is given up"),
        () = serves => unreachable!("it never ends"),
    };
    assert!(matches!(answered, Err(Lost::Unknown(_))), "{answered:?}");
}

#[tokio::test(start_paused = true)]
async fn an_upstream_may_send_frames_that_answer_nothing_within_measure_and_loses_the_connection_beyond_it() {
    for (interim, is_answered) in [(200, true), (5000, false)] {
        let (tasks, over) = (Tasks::new(), CancellationToken::new());
        let (shared, mut server) = connected(&tasks, &over).await;
        let one = asks(shared.begin().unwrap());
        let serves = async {
            let mut asked = next(&mut server).await;
            for _ in 0..interim {
                let head = Response::builder().status(103).body(()).unwrap();
                if asked.1.send_informational(head).is_err() {
                    break;
                }
                let _sent = timeout(Duration::from_millis(1), server.accept()).await;
            }
            let _gone = asked.1.send_response(Response::new(()), true);
            let _sent = timeout(Duration::from_secs(1), server.accept()).await;
        };
        let (answered, ()) = tokio::join!(one, serves);
        match is_answered {
            true => assert!(matches!(answered, Ok(200)), "{answered:?}"),
            false => assert!(format!("{answered:?}").contains("no part of a body"), "{answered:?}"),
        }
    }
}
