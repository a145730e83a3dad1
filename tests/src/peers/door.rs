//! A door that clients of other people wait at: a plan's step goes on once all of them have come, or the test has done its part.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// An address that answers when the test says so.
pub struct Door {
    /// What the step `wait` asks.
    pub url: String,
    listener: TcpListener,
}

/// Clients that wait at a door.
pub struct Waiting(Vec<TcpStream>);

impl Door {
    /// Opens it on a port of its own.
    ///
    /// # Panics
    /// When no port is free.
    pub async fn new() -> Door {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}/", listener.local_addr().expect("it is bound"));
        Door { url, listener }
    }

    /// Waits until so many clients have come.
    ///
    /// # Panics
    /// When one goes before it has asked.
    pub async fn comers(&self, count: usize) -> Waiting {
        let mut callers = Vec::new();
        while callers.len() < count {
            let (mut caller, _) = self.listener.accept().await.expect("a client comes");
            let _asked = caller.read(&mut [0; 4096]).await.expect("it asks");
            callers.push(caller);
        }
        Waiting(callers)
    }
}

impl Waiting {
    /// Has them go on; each sees this word as what came of its step.
    ///
    /// # Panics
    /// When one has gone.
    pub async fn go_on(self, word: &str) {
        let length = word.len();
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{word}");
        for mut caller in self.0 {
            caller.write_all(answer.as_bytes()).await.expect("it is told");
        }
    }
}
