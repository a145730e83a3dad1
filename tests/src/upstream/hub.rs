//! Where children of one script report, and from where they take orders.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex as AsyncMutex;

use crate::journal::{Event, Order, What, now};
use crate::tape::Tape;

/// What a child says first. Others may have the address by mistake: gateways try again where an upstream of another test was.
pub(crate) const HELLO: &str = "a child of the test\n";

/// The test's end of the control connections.
pub(crate) struct Hub {
    /// Where children connect to.
    pub(crate) address: SocketAddr,
    desk: Arc<Desk>,
}

#[derive(Default)]
struct Desk {
    /// By the number of the instance; those that are gone take no orders.
    children: AsyncMutex<Vec<(usize, OwnedWriteHalf)>>,
    lasting: Mutex<Vec<Order>>,
    /// How many there were so far.
    count: AtomicUsize,
}

impl Hub {
    /// Opens the door for children; what they tell goes to the tape.
    pub(crate) async fn open(events: Arc<Tape<Event>>) -> Hub {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let desk = Arc::new(Desk::default());
        let accepting = desk.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(child(socket, accepting.clone(), events.clone()));
            }
        });
        Hub { address, desk }
    }

    /// Gives an order to every living child, and lasting ones to those that start later; says which ones were there.
    pub(crate) async fn order(&self, order: Order) -> Vec<usize> {
        if matches!(order, Order::Open(_) | Order::Rules(_)) {
            let mut lasting = self.desk.lasting.lock().unwrap_or_else(PoisonError::into_inner);
            // Of rules the last ones count.
            lasting.retain(|earlier| !matches!((earlier, &order), (Order::Rules(_), Order::Rules(_))));
            lasting.push(order.clone());
        }
        let mut children = self.desk.children.lock().await;
        for (_, child) in children.iter_mut() {
            send(child, &order).await;
        }
        children.iter().map(|(instance, _)| *instance).collect()
    }
}

async fn child(socket: TcpStream, desk: Arc<Desk>, events: Arc<Tape<Event>>) {
    socket.set_nodelay(true).expect("a socket takes options");
    let (reader, mut writer) = socket.into_split();
    let (mut reader, mut line) = (BufReader::new(reader), String::new());
    if reader.read_line(&mut line).await.is_err() || line != HELLO {
        return;
    }
    line.clear();
    let instance = {
        // With the list of children in hand, so that no order is given between what lasts and the beginning.
        let mut children = desk.children.lock().await;
        let lasting = desk.lasting.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for order in lasting.iter().chain([&Order::Begin]) {
            send(&mut writer, order).await;
        }
        let instance = desk.count.fetch_add(1, Ordering::Relaxed);
        children.push((instance, writer));
        instance
    };
    // A child that is killed while it writes leaves a line without an end.
    while matches!(reader.read_line(&mut line).await, Ok(1..)) && line.ends_with('\n') {
        let event: Event = serde_json::from_str(&line).expect("a child writes events");
        events.push(Event { instance, ..event });
        line.clear();
    }
    desk.children.lock().await.retain(|(other, _)| *other != instance);
    events.push(Event { instance, at: now(), what: What::Gone });
}

async fn send(child: &mut OwnedWriteHalf, order: &Order) {
    let mut line = serde_json::to_vec(order).expect("an order is plain data");
    line.push(b'\n');
    // A child that is gone takes no orders.
    let _ = child.write_all(&line).await;
}
