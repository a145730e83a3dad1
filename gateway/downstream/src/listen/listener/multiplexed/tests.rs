//! Clients of HTTP/2 that do what they may, and what they may not, over streams in memory.

use super::{CONNECTION_WINDOW, STREAM_WINDOW, STREAMS_MAX, serve};
use crate::listen::connections::Connections;
use crate::listen::leaving::Leaving;
use crate::listen::listener::Patience;
use crate::memory::Refusals;
use crate::memory::account::Kind;
use crate::memory::budget::Budget;
use crate::metrics::edges::Face;
use crate::runtime::Tasks;
use bytes::Bytes;
use futures_util::FutureExt;
use h2::client::SendRequest;
use h2::{Reason, RecvStream};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

// Frames as they come, well or not: floods, bombs, heads without end.
mod floods;
// An answer that its client does not read.
mod unread;

/// A connection that is served, at the client's end.
struct Bench {
    level: Tasks,
    cut: Tasks,
    leaving: Leaving,
    budget: Budget,
    refusals: Refusals,
    room: Arc<Connections>,
    /// How many requests were begun, and how many are under way.
    begun: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    /// What lets the requests for `/wait` go on.
    gate: Arc<Semaphore>,
    /// How many bytes were taken of the answers to `/endless`.
    taken: Arc<AtomicUsize>,
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<BoxBody<Bytes, Infallible>>, Infallible>> + Send>>;

/// The most bytes on their way in a duplex stream.
const ON_THE_WAY: usize = 1 << 16;

/// One request under way.
struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Bench {
    /// With so many places for connections.
    fn new(most: usize) -> Self {
        Self {
            level: Tasks::new(),
            cut: Tasks::new(),
            leaving: Leaving::default(),
            budget: Budget::new(64 << 20),
            refusals: Refusals::default(),
            room: Connections::new(most, false, Vec::new()),
            begun: Arc::default(),
            open: Arc::default(),
            gate: Arc::new(Semaphore::new(0)),
            taken: Arc::default(),
        }
    }

    /// A connection of this address.
    fn connect(&self, last: u8) -> DuplexStream {
        let (peer, stream) = duplex(ON_THE_WAY);
        let patience =
            Patience::new(Duration::from_secs(10), Duration::from_secs(5), self.leaving.clone(), self.cut.clone());
        let arrival = self.room.enter(std::net::IpAddr::from([192, 0, 2, last])).expect("there is room");
        let place = (arrival, self.budget.count(Kind::Connection, 1), Face::new("http"));
        let (begun, open, gate) = (self.begun.clone(), self.open.clone(), self.gate.clone());
        let taken = self.taken.clone();
        let service = tower::service_fn(move |request: Request<Incoming>| -> Answer {
            begun.fetch_add(1, Ordering::SeqCst);
            open.fetch_add(1, Ordering::SeqCst);
            let (under_way, gate, taken) = (UnderWay(open.clone()), gate.clone(), taken.clone());
            Box::pin(async move {
                let _under_way = under_way;
                let body = match request.uri().path() {
                    "/endless" => return Ok(Response::new(unread::Endless(taken).boxed())),
                    "/wait" => gate.acquire().await.map_or(0, |permit| (permit.forget(), 2).1),
                    "/large" => 1 << 20,
                    _ => 2,
                };
                let mut response = Response::new(Full::new(vec![b'x'; body].into()).boxed());
                if request.uri().path() == "/denied" {
                    *response.status_mut() = StatusCode::UNAUTHORIZED;
                }
                Ok(response)
            })
        });
        let room = (self.budget.clone(), self.refusals.clone());
        self.level.spawn(serve(stream, service, patience, self.level.clone(), room, place));
        peer
    }

    /// A client that does as it should, and what its connection ends with.
    async fn client(&self, last: u8) -> (SendRequest<Bytes>, tokio::sync::oneshot::Receiver<Option<Reason>>) {
        let (send, connection) = h2::client::handshake(self.connect(last)).await.unwrap();
        let (ended, end) = tokio::sync::oneshot::channel();
        self.level.spawn(async move {
            let reason = connection.await.err().and_then(|error| error.reason());
            let _nobody = ended.send(reason);
        });
        (send, end)
    }

    /// Waits until so many requests are under way.
    async fn under_way(&self, count: usize) {
        let waits = until(|| self.open.load(Ordering::SeqCst) == count);
        assert!(waits.await, "{} are under way, and not {count}", self.open.load(Ordering::SeqCst));
    }
}

/// Whether something becomes so in time.
async fn until(is: impl Fn() -> bool) -> bool {
    let waits = async {
        while !is() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(20), waits).await.is_ok()
}

type Answered = Result<Response<RecvStream>, h2::Error>;

/// Asks for a path.
async fn ask(send: &SendRequest<Bytes>, path: &str) -> Answered {
    let mut send = send.clone().ready().await?;
    let request = Request::get(format!("https://localhost{path}")).body(()).unwrap();
    send.send_request(request, true)?.0.await
}

async fn status(send: &SendRequest<Bytes>, path: &str) -> Result<u16, Option<Reason>> {
    ask(send, path).await.map(|answer| answer.status().as_u16()).map_err(|error| error.reason())
}

/// Reads what comes of an answer until it is cut, and never says so: the window is not opened again. How much came, and the reason.
async fn until_cut(answer: &mut RecvStream, mut beside: impl AsyncFnMut()) -> (usize, Option<Reason>) {
    let mut got = 0;
    loop {
        match timeout(Duration::from_secs(100), answer.data()).await.expect("it is cut") {
            Some(Ok(data)) => got += data.len(),
            Some(Err(error)) => return (got, error.reason()),
            None => panic!("all of it came"),
        }
        beside().await;
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_wait_hold_up_no_other_and_are_all_answered() {
    let bench = Bench::new(1000);
    let (send, _end) = bench.client(1).await;
    let waiting: Vec<_> = (0..20).map(|_| Box::pin(ask(&send, "/wait"))).collect();
    let all = futures_util::future::join_all(waiting);
    tokio::pin!(all);
    assert!(futures_util::poll!(&mut all).is_pending());
    bench.under_way(20).await;
    assert_eq!(status(&send, "/").await, Ok(200));
    bench.gate.add_permits(5);
    bench.under_way(15).await;
    bench.gate.add_permits(15);
    let answers = all.await;
    assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|answer| answer.status() == 200)));
    bench.under_way(0).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_client_withdraws_is_dropped_and_what_it_left_open_goes_with_it() {
    let bench = Bench::new(1000);
    let (send, _end) = bench.client(1).await;
    let mut one = Box::pin(ask(&send, "/wait"));
    let mut other = Box::pin(ask(&send, "/wait"));
    assert!(futures_util::poll!(&mut one).is_pending() && futures_util::poll!(&mut other).is_pending());
    bench.under_way(2).await;
    drop(one);
    bench.under_way(1).await;
    let mut peer = bench.connect(2);
    peer.write_all(&floods::opening()).await.unwrap();
    peer.write_all(&floods::request(1, "/wait", true)).await.unwrap();
    bench.under_way(2).await;
    drop(peer);
    bench.under_way(1).await;
    assert_eq!(status(&send, "/").await, Ok(200));
}

#[tokio::test(start_paused = true)]
async fn a_request_beside_others_has_the_place_of_a_connection_and_is_refused_where_there_is_none() {
    let bench = Bench::new(10);
    let (send, _end) = bench.client(1).await;
    let mut waiting = Vec::new();
    // One address has half of the places at most; the first request has that of its connection.
    for count in 1..=5 {
        let mut one = Box::pin(ask(&send, "/wait"));
        assert!(futures_util::poll!(&mut one).is_pending());
        waiting.push(one);
        bench.under_way(count).await;
    }
    assert_eq!(status(&send, "/").await, Err(Some(Reason::REFUSED_STREAM)), "which says that it did not run");
    assert!(bench.refusals.all().contains_key("connections"));
    let (other, _other_end) = bench.client(2).await;
    assert_eq!(status(&other, "/").await, Ok(200), "another address has places");
    bench.gate.add_permits(5);
    futures_util::future::join_all(waiting).await;
    assert_eq!(status(&send, "/").await, Ok(200));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_of_one_answer_loses_that_one_alone() {
    let bench = Bench::new(1000);
    let (send, _end) = bench.client(1).await;
    let mut unread = ask(&send, "/large").await.unwrap().into_body();
    assert!(bench.budget.used() < 1 << 21);
    let mut waits = Box::pin(ask(&send, "/wait"));
    assert!(futures_util::poll!(&mut waits).is_pending());
    bench.under_way(1).await;
    let begun = Instant::now();
    let others_are_served = async || assert_eq!(status(&send, "/").await, Ok(200), "others are served");
    let cut = until_cut(&mut unread, others_are_served).await;
    assert_eq!(cut, (65_535, Some(Reason::CANCEL)));
    assert!(begun.elapsed() >= Duration::from_secs(60));
    assert_eq!(status(&send, "/").await, Ok(200));
    bench.gate.add_permits(1);
    assert_eq!(waits.await.unwrap().status(), 200, "nor does one that has no answer yet");
    drop((send, unread));
    assert!(until(|| bench.budget.used() < 64 << 10).await, "its memory is free");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_the_last_byte_of_an_answer_loses_that_one_too() {
    let (bench, room) = (Bench::new(1000), (1 << 20) - 1);
    let mut client = h2::client::Builder::new();
    client.initial_window_size(room).initial_connection_window_size(1 << 21);
    let (send, connection) = client.handshake::<_, Bytes>(bench.connect(1)).await.unwrap();
    bench.level.spawn(async move { drop(connection.await) });
    let mut unread = ask(&send, "/large").await.unwrap().into_body();
    let begun = Instant::now();
    let cut = until_cut(&mut unread, async || ()).await;
    assert_eq!(cut, (room as usize, Some(Reason::CANCEL)));
    assert!(begun.elapsed() >= Duration::from_secs(60));
    assert_eq!(status(&send, "/").await, Ok(200));
    drop((send, unread));
    assert!(until(|| bench.budget.used() < 64 << 10).await, "its memory is free");
}

#[tokio::test(start_paused = true)]
async fn a_short_answer_has_its_place_until_its_client_takes_it() {
    let bench = Bench::new(1000);
    let (send, connection) =
        h2::client::Builder::new().initial_window_size(1).handshake::<_, Bytes>(bench.connect(1)).await.unwrap();
    bench.level.spawn(async move { drop(connection.await) });
    let mut answers = Vec::new();
    for _ in 0..10 {
        answers.push(ask(&send, "/").await.unwrap().into_body());
    }
    assert!(bench.budget.used() > 10 * 16 * 1024, "{} bytes are counted", bench.budget.used());
    for body in &mut answers {
        while let Some(data) = body.data().await {
            let data = data.unwrap();
            body.flow_control().release_capacity(data.len()).unwrap();
        }
    }
    assert!(until(|| bench.budget.used() < 64 << 10).await, "its memory is free");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_to_leave_is_told_so_and_what_it_has_begun_is_answered() {
    let bench = Bench::new(1000);
    let (send, end) = bench.client(1).await;
    let mut open = Box::pin(ask(&send, "/wait"));
    assert!(futures_util::poll!(&mut open).is_pending());
    bench.under_way(1).await;
    bench.level.end();
    // The connection takes nothing new.
    let is_closed = || send.clone().ready().now_or_never().is_some_and(|one| one.is_err());
    assert!(until(is_closed).await, "no request is taken");
    bench.gate.add_permits(1);
    assert_eq!(open.await.unwrap().status(), 200);
    assert_eq!(end.await.unwrap(), None, "it ends without an error");
    timeout(Duration::from_secs(5), bench.level.ended()).await.expect("nothing is left");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_never_ends_is_cut_with_the_grace_and_its_connection_ends() {
    let bench = Bench::new(1000);
    let (send, end) = bench.client(1).await;
    let mut open = Box::pin(ask(&send, "/wait"));
    assert!(futures_util::poll!(&mut open).is_pending());
    bench.under_way(1).await;
    bench.level.end();
    bench.cut.end();
    assert!(open.await.is_err());
    let _reason = end.await.unwrap();
    timeout(Duration::from_secs(5), bench.level.ended()).await.expect("nothing is left");
    assert_eq!(bench.open.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_who_is_not_known_or_is_to_leave_is_the_last_one_of_its_connection() {
    let bench = Bench::new(1000);
    let begun = Instant::now();
    let (send, end) = bench.client(1).await;
    assert_eq!(status(&send, "/denied").await, Ok(401));
    assert_eq!(end.await.unwrap(), None);
    let (send, end) = bench.client(1).await;
    assert_eq!(status(&send, "/").await, Ok(200));
    bench.leaving.ask();
    assert_eq!(status(&send, "/").await, Ok(200));
    assert_eq!(end.await.unwrap(), None);
    assert!(begun.elapsed() < Duration::from_secs(1), "it did not lie idle before");
}

#[tokio::test(start_paused = true)]
async fn what_is_under_way_is_answered_on_a_connection_on_which_another_request_is_denied() {
    let bench = Bench::new(1000);
    let (send, end) = bench.client(1).await;
    let mut waiting = Box::pin(ask(&send, "/wait"));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    bench.under_way(1).await;
    assert_eq!(status(&send, "/denied").await, Ok(401));
    sleep(Duration::from_secs(60)).await;
    bench.gate.add_permits(1);
    assert_eq!(waiting.await.unwrap().status(), 200);
    assert_eq!(end.await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_connection_on_which_nothing_is_asked_is_closed_after_five_minutes() {
    let bench = Bench::new(1000);
    let (send, end) = bench.client(1).await;
    assert_eq!(status(&send, "/").await, Ok(200));
    let begun = Instant::now();
    let ended = timeout(Duration::from_secs(1000), end).await.expect("it ends");
    assert_eq!(ended.unwrap(), None, "it is told so");
    // Counted from when the watch has noticed, as on any connection.
    assert!((300..=600).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_client_is_told_how_much_it_may_ask_for_at_once_and_of_no_other_protocol() {
    let bench = Bench::new(1000);
    let (send, _end) = bench.client(1).await;
    assert_eq!(status(&send, "/").await, Ok(200));
    assert_eq!(send.current_max_send_streams(), STREAMS_MAX as usize);
    assert!(!send.is_extended_connect_protocol_enabled());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_long_keeps_its_connection() {
    let bench = Bench::new(1000);
    let (send, _end) = bench.client(1).await;
    let mut open = Box::pin(ask(&send, "/wait"));
    assert!(futures_util::poll!(&mut open).is_pending());
    bench.under_way(1).await;
    sleep(Duration::from_secs(1000)).await;
    bench.gate.add_permits(1);
    assert_eq!(open.await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn what_a_client_may_send_of_bodies_that_nobody_reads_is_bounded_for_a_request_and_for_all() {
    let bench = Bench::new(1000);
    let (send, _end) = bench.client(1).await;
    assert_eq!(status(&send, "/").await, Ok(200));
    let mut bodies = Vec::new();
    for count in 1..=6 {
        let mut send = send.clone().ready().await.unwrap();
        let request = Request::post("https://localhost/wait").body(()).unwrap();
        let (answer, mut body) = send.send_request(request, false).unwrap();
        body.reserve_capacity(1 << 20);
        bodies.push((answer, body));
        bench.under_way(count).await;
    }
    let room: Vec<_> = bodies.iter().map(|(_, body)| body.capacity()).collect();
    assert_eq!(room[0], STREAM_WINDOW as usize, "{room:?}");
    assert_eq!(room.iter().sum::<usize>(), CONNECTION_WINDOW as usize, "{room:?}");
}
