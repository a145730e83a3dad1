//! Where children of one script report, and from where they take orders.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex as AsyncMutex;

use crate::journal::{Event, Order, What, now};
use crate::tape::Tape;

/// The test's end of the control connections.
pub(crate) struct Hub {
    /// Where children connect to.
    pub(crate) address: SocketAddr,
    desk: Arc<Desk>,
}

#[derive(Default)]
struct Desk {
    children: AsyncMutex<Vec<OwnedWriteHalf>>,
    lasting: Mutex<Vec<Order>>,
}

impl Hub {
    /// Opens the door for children; what they tell goes to the tape.
    pub(crate) async fn open(events: Arc<Tape<Event>>) -> Hub {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let desk = Arc::new(Desk::default());
        let accepting = desk.clone();
        tokio::spawn(async move {
            let mut instance = 0;
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(child(socket, instance, accepting.clone(), events.clone()));
                instance += 1;
            }
        });
        Hub { address, desk }
    }

    /// Gives an order to every living child, and lasting ones to those that start later.
    pub(crate) async fn order(&self, order: Order) {
        if matches!(order, Order::Open(_) | Order::Rules(_)) {
            self.desk.lasting.lock().unwrap_or_else(PoisonError::into_inner).push(order.clone());
        }
        for child in self.desk.children.lock().await.iter_mut() {
            send(child, &order).await;
        }
    }
}

async fn child(socket: TcpStream, instance: usize, desk: Arc<Desk>, events: Arc<Tape<Event>>) {
    let (reader, mut writer) = socket.into_split();
    let lasting = desk.lasting.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for order in &lasting {
        send(&mut writer, order).await;
    }
    desk.children.lock().await.push(writer);
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let event: Event = serde_json::from_str(&line).expect("a child writes events");
        events.push(Event { instance, ..event });
    }
    events.push(Event { instance, at: now(), what: What::Gone });
}

async fn send(child: &mut OwnedWriteHalf, order: &Order) {
    let mut line = serde_json::to_vec(order).expect("an order is plain data");
    line.push(b'\n');
    // A child that is gone takes no orders.
    let _ = child.write_all(&line).await;
}
