//! An upstream of HTTP/2 that refuses, leaves and breaks, over streams in memory.

use super::{AGE_MAX, CONNECTION_WINDOW, EXCHANGES_MAX, Exchange, IDLE_MAX_TLS, Shared, WINDOW};
use crate::health::CauseCode;
use crate::runtime::Tasks;
use crate::runtime::watched::{Pieces, Watch, Watched};
use crate::transport::exchange::Lost;
use crate::transport::http::connection::flow::{Flow, Unread};
use crate::transport::recorder::Recorder;
use bytes::Bytes;
use futures_util::future::join_all;
use h2::Reason;
use h2::server::{Connection, SendResponse};
use http::{Request, Response};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{DuplexStream, duplex};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Counts the bytes sent, as the flow of a socket does.
struct Counter(Arc<Flow>);

impl<S> Watch<S> for Counter {
    fn wrote(&mut self, _is_pending: bool) {}

    fn sent(&mut self, count: usize) {
        self.0.send(count);
    }
}

/// A connection, and its other end.
async fn connected(tasks: &Tasks, over: &CancellationToken) -> (Arc<Shared>, Connection<DuplexStream, Bytes>) {
    connected_to(tasks, over, &h2::server::Builder::new()).await
}

/// The same; the other end has these settings.
async fn connected_to(
    tasks: &Tasks,
    over: &CancellationToken,
    settings: &h2::server::Builder,
) -> (Arc<Shared>, Connection<DuplexStream, Bytes>) {
    let (near, far) = duplex(1 << 16);
    let unread = Unread::new(Arc::<Recorder>::default());
    let flow = Arc::<Flow>::default();
    let (near, watch) = (Watched::new(near, Counter(flow.clone())), (flow, unread));
    let opened = Shared::open(near, "up.example:443", tasks, (0, over.clone()), watch);
    let (shared, server) = tokio::join!(opened, settings.handshake(far));
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
async fn a_connection_bears_no_more_than_was_on_it_when_the_upstream_refused_one_until_others_have_ended() {
    for (reason, has_run) in [(Reason::REFUSED_STREAM, false), (Reason::ENHANCE_YOUR_CALM, true)] {
        let (tasks, over) = (Tasks::new(), CancellationToken::new());
        let (shared, mut server) = connected(&tasks, &over).await;
        let (one, two, three) = (shared.begin().unwrap(), shared.begin().unwrap(), shared.begin().unwrap());
        let serves = async {
            next(&mut server).await.1.send_reset(reason);
            let _sent = timeout(Duration::from_secs(1), server.accept()).await;
        };
        let (answered, ()) = tokio::join!(asks(three), serves);
        assert_eq!(matches!(answered, Err(Lost::Unknown(_))), has_run, "{answered:?}");
        assert!(shared.is_good(), "it goes on");
        assert!(shared.begin().is_none(), "two are what it bears");
        drop(two);
        let more: Vec<_> = std::iter::from_fn(|| shared.begin()).take(5).collect();
        assert_eq!(more.len(), 2, "one in the place of the one that has ended, and one to try");
        drop((one, more));
    }
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
async fn why_an_exchange_broke_is_said_in_words_that_help() {
    let (tasks, over) = (Tasks::new(), CancellationToken::new());
    let (shared, mut server) = connected(&tasks, &over).await;
    for (reason, says) in [
        (Reason::INTERNAL_ERROR, "the connection broke: it reset the request (HTTP/2: INTERNAL_ERROR)"),
        (Reason::HTTP_1_1_REQUIRED, "(HTTP/2: HTTP_1_1_REQUIRED); set `http2 = false` in its `tls`"),
    ] {
        let one = asks(shared.begin().unwrap());
        let serves = async {
            next(&mut server).await.1.send_reset(reason);
            let _sent = timeout(Duration::from_secs(1), server.accept()).await;
        };
        let (answered, ()) = tokio::join!(one, serves);
        let said = answered.unwrap_err().text().full().into_owned();
        assert!(said.ends_with(says), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_asks_for_calm_is_told_from_one_that_breaks() {
    let (tasks, over) = (Tasks::new(), CancellationToken::new());
    for (reason, code) in
        [(Reason::ENHANCE_YOUR_CALM, CauseCode::RateLimited), (Reason::INTERNAL_ERROR, CauseCode::ConnectionLost)]
    {
        let (shared, mut server) = connected(&tasks, &over).await;
        let one = asks(shared.begin().unwrap());
        let serves = async {
            next(&mut server).await.1.send_reset(reason);
            let _sent = timeout(Duration::from_secs(1), server.accept()).await;
        };
        let (answered, ()) = tokio::join!(one, serves);
        let Err(Lost::Unknown(why)) = answered else { panic!("it may have run: {answered:?}") };
        assert_eq!(why.code(), code, "{why:?}");
    }
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

#[tokio::test(start_paused = true)]
async fn what_nobody_has_read_of_all_answers_on_a_connection_is_bounded() {
    let (tasks, over) = (Tasks::new(), CancellationToken::new());
    let (shared, mut server) = connected(&tasks, &over).await;
    let exchanges: Vec<_> = (0..20).map(|_| shared.begin().unwrap()).collect();
    // Their heads are taken, and nothing else.
    let answers = join_all(exchanges.iter().map(|exchange| exchange.send(request())));
    let serves = async {
        let mut bodies = Vec::new();
        for _ in 0..20 {
            let mut body = next(&mut server).await.1.send_response(Response::new(()), false).unwrap();
            body.reserve_capacity(1 << 20);
            bodies.push(body);
        }
        let _sent = timeout(Duration::from_secs(1), server.accept()).await;
        bodies.iter().map(h2::SendStream::capacity).collect::<Vec<_>>()
    };
    let (_answers, room) = tokio::join!(answers, serves);
    assert_eq!(room[0], WINDOW as usize, "{room:?}");
    assert_eq!(room.iter().sum::<usize>(), CONNECTION_WINDOW as usize, "{room:?}");
}

#[tokio::test(start_paused = true)]
async fn no_more_exchanges_are_on_a_connection_than_both_sides_want() {
    let (tasks, over) = (Tasks::new(), CancellationToken::new());
    for (wanted, most) in [(2, 2), (1000, EXCHANGES_MAX)] {
        let mut settings = h2::server::Builder::new();
        let (shared, mut server) = connected_to(&tasks, &over, settings.max_concurrent_streams(wanted)).await;
        let one = asks(shared.begin().unwrap());
        let serves = async {
            answer(next(&mut server).await);
            let _sent = timeout(Duration::from_secs(1), server.accept()).await;
        };
        assert!(matches!(tokio::join!(one, serves).0, Ok(200)));
        let mut open: Vec<_> = std::iter::from_fn(|| shared.begin()).take(2000).collect();
        assert_eq!(open.len(), most);
        drop(open.pop());
        assert!(shared.begin().is_some(), "its place is free");
    }
}

#[tokio::test(start_paused = true)]
async fn frames_that_answer_nothing_are_earned_with_requests() {
    let (tasks, over) = (Tasks::new(), CancellationToken::new());
    let (shared, mut server) = connected(&tasks, &over).await;
    for _ in 0..200 {
        let one = asks(shared.begin().unwrap());
        let serves = async {
            let mut asked = next(&mut server).await;
            for _ in 0..14 {
                asked.1.send_informational(Response::builder().status(103).body(()).unwrap()).unwrap();
            }
            answer(asked);
            let _sent = timeout(Duration::from_millis(1), server.accept()).await;
        };
        let (answered, ()) = tokio::join!(one, serves);
        assert!(matches!(answered, Ok(200)), "{answered:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_rested_for_long_or_is_old_is_not_used_again() {
    let (tasks, over) = (Tasks::new(), CancellationToken::new());
    let (shared, _server) = connected(&tasks, &over).await;
    assert!(shared.is_good());
    sleep(IDLE_MAX_TLS).await;
    assert!(!shared.is_good(), "nothing was on it for long");
    let open = shared.begin().unwrap();
    assert!(shared.is_good());
    sleep(AGE_MAX).await;
    assert!(!shared.is_good(), "it is old, whatever is on it");
    drop(open);
}

#[tokio::test(start_paused = true)]
async fn a_head_that_is_too_long_is_no_answer() {
    let (tasks, over) = (Tasks::new(), CancellationToken::new());
    for (length, is_answered) in [(1000, true), (40 * 1024, false)] {
        let (shared, mut server) = connected(&tasks, &over).await;
        let one = asks(shared.begin().unwrap());
        let serves = async {
            let mut asked = next(&mut server).await;
            let response = Response::builder().header("x-long", "x".repeat(length)).body(()).unwrap();
            let _sent = asked.1.send_response(response, true);
            let _sent = timeout(Duration::from_secs(1), server.accept()).await;
        };
        assert_eq!(tokio::join!(one, serves).0.is_ok(), is_answered, "{length}");
    }
}
