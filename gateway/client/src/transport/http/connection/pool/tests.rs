//! Connections that are reused, and servers that close them.

use super::super::epoch::ConnectionEpoch;
use super::super::flow::Unread;
use super::super::idle::IDLE_MAX_PLAIN;
use super::*;
use crate::config::Remote;
use crate::runtime::Tasks;
use crate::transport::recorder::Recorder;
use http::HeaderMap;
use http_body_util::BodyExt;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender as Orders, channel};

/// A server on a thread of its own. It answers each request with the number of its connection, until it is ordered to do something else.
struct Server {
    orders: Orders<Order>,
    done: Receiver<()>,
    url: http::Uri,
}

enum Order {
    /// Serves one request on the last connection.
    Answer,
    /// Accepts a connection, and serves one request.
    Accept,
    /// Closes the last connection.
    Close,
    /// Reads a request from the last connection, and closes it without an answer.
    ReadAndClose,
}

fn read(stream: &mut TcpStream) {
    let count = stream.read(&mut [0; 4096]).unwrap();
    assert!(count > 0, "a request");
}

fn serve(listener: &TcpListener, orders: &Receiver<Order>, done: &Orders<()>) {
    let (mut last, mut number) = (None, -1);
    for order in orders {
        if let Order::Accept = order {
            last = Some(listener.accept().unwrap().0);
            number += 1;
        }
        let stream = last.as_mut().unwrap();
        match order {
            Order::Accept | Order::Answer => {
                read(stream);
                write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{number}").unwrap();
            }
            Order::ReadAndClose => {
                read(stream);
                last = None;
            }
            Order::Close => last = None,
        }
        done.send(()).unwrap();
    }
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let ((orders, taken), (says, done)) = (channel(), channel());
        std::thread::spawn(move || serve(&listener, &taken, &says));
        Self { orders, done, url }
    }

    fn order(&self, order: Order) {
        self.orders.send(order).unwrap();
    }

    /// Gives an order and waits for its end on the thread of the runtime, which learns nothing of the socket meanwhile.
    fn order_now(&self, order: Order) {
        while self.done.try_recv().is_ok() {}
        self.order(order);
        self.done.recv().unwrap();
    }
}

struct Stage {
    server: Server,
    pool: Pool,
    epoch: Arc<ConnectionEpoch>,
}

fn stage() -> Stage {
    let (server, level, epoch) = (Server::start(), Tasks::new(), Arc::<ConnectionEpoch>::default());
    let unread = Unread::new(Arc::<Recorder>::default());
    let remote = Remote::new(server.url.clone(), HeaderMap::new());
    let pool = Pool::new(Connector::new(&remote, level, epoch.clone(), unread).unwrap());
    Stage { server, pool, epoch }
}

impl Stage {
    async fn ask(&self) -> Result<u8, Lost> {
        let again = || Request::get("/").header("host", "x").body(Pieces::default()).unwrap();
        let (response, held) = self.pool.send(Lane::Exchange(None), &mut Some(again()), &again, &|| {}).await?;
        let number = response.into_body().collect().await.unwrap().to_bytes();
        self.pool.put(held);
        Ok(number[0] - b'0')
    }

    async fn ask_and(&self, order: Order) -> Result<u8, Lost> {
        self.server.order(order);
        self.ask().await
    }

    /// The kind of a break.
    async fn breaks(&self) -> CauseCode {
        match self.ask_and(Order::ReadAndClose).await.unwrap_err() {
            Lost::Unknown(why) => why.code(),
            lost => panic!("{lost:?}"),
        }
    }

    fn idle_limit(&self) -> Duration {
        self.pool.dialer.idle_limit().limit(Instant::now())
    }
}

#[tokio::test]
async fn connections_of_an_ended_epoch_are_not_reused() {
    let stage = stage();
    assert_eq!(stage.ask_and(Order::Accept).await.unwrap(), 0);
    assert_eq!(stage.ask_and(Order::Answer).await.unwrap(), 0, "one after the other on one connection");
    // Its task has not run yet, so the connection still looks open.
    stage.epoch.end("by order".into());
    assert_eq!(stage.ask_and(Order::Accept).await.unwrap(), 1);
    assert_eq!(stage.idle_limit(), IDLE_MAX_PLAIN, "the gateway has closed it");
    stage.pool.idle().take(stage.pool.dialer.idle_limit(), |_| true);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(stage.idle_limit(), IDLE_MAX_PLAIN, "nor is this the limit of the server");
}

#[tokio::test]
async fn a_connection_closed_while_idle_is_replaced_and_teaches() {
    let stage = stage();
    assert_eq!(stage.ask_and(Order::Accept).await.unwrap(), 0);
    stage.server.order_now(Order::Close);
    assert_eq!(stage.ask_and(Order::Accept).await.unwrap(), 1);
    assert!(stage.idle_limit() < IDLE_MAX_PLAIN);
}

#[tokio::test]
async fn a_close_is_learned_without_a_request() {
    let stage = stage();
    assert_eq!(stage.ask_and(Order::Accept).await.unwrap(), 0);
    stage.server.order_now(Order::Close);
    let learns = async {
        while stage.idle_limit() == IDLE_MAX_PLAIN {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), learns).await.unwrap();
}

#[tokio::test]
async fn a_break_of_a_reused_connection_has_a_cause_of_its_own() {
    let stage = stage();
    assert_eq!(stage.ask_and(Order::Accept).await.unwrap(), 0);
    assert_eq!(stage.breaks().await, CauseCode::ReusedConnectionLost);
    assert!(stage.idle_limit() < IDLE_MAX_PLAIN);
    assert_eq!(stage.ask_and(Order::Accept).await.unwrap(), 1);
}
