//! Connections to one HTTP endpoint, used again when their last answer was read to its end.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// An open connection.
pub(crate) type Connection = SendRequest<Full<Bytes>>;

async fn shake<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(socket: S) -> Result<Connection, String> {
    let (sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(socket)).await.map_err(|error| error.to_string())?;
    tokio::spawn(connection);
    Ok(sender)
}

/// The idle connections to an address.
pub(crate) struct Pool {
    address: String,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    /// A pool for `host:port`, or for the path of a Unix socket.
    pub(crate) fn new(address: &str) -> Pool {
        Pool { address: address.to_owned(), idle: Mutex::default() }
    }

    /// Sends a request; the connection comes back with the answer.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Result<(Response<Incoming>, Connection), String> {
        while let Some(mut connection) = self.take() {
            if connection.ready().await.is_err() {
                continue;
            }
            match connection.try_send_request(request.clone()).await {
                Ok(response) => return Ok((response, connection)),
                Err(mut failed) => {
                    if failed.take_message().is_none() {
                        return Err(failed.into_error().to_string());
                    }
                    // The peer had closed it; nothing was sent.
                }
            }
        }
        let mut connection = self.connect().await?;
        let response = connection.send_request(request).await.map_err(|error| error.to_string())?;
        Ok((response, connection))
    }

    async fn connect(&self) -> Result<Connection, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.address);
        if self.address.starts_with('/') {
            return shake(UnixStream::connect(&self.address).await.map_err(failed)?).await;
        }
        let socket = TcpStream::connect(&self.address).await.map_err(failed)?;
        socket.set_nodelay(true).map_err(failed)?;
        shake(socket).await
    }

    fn take(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Closes the idle connections.
    pub(crate) fn clear(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Takes a connection back whose answer was read to its end.
    pub(crate) fn give(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}
