//! The gateway as a whole, without upstreams.

mod coming_and_going;
mod crossing;
mod reading;

use super::*;
use crate::downstream::config::Listener;
use clients::Place;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

fn config() -> Config {
    let mut config = Config::default();
    config.server.listeners = vec![Listener::at(([127, 0, 0, 1], 0).into())];
    config.admin.listen = Some(([127, 0, 0, 1], 0).into());
    config
}

fn port(place: &Place) -> SocketAddr {
    place.address.port().unwrap()
}

async fn get(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    Ok(response)
}

#[tokio::test]
async fn it_serves_is_looked_at_and_ends() {
    let gateway = Gateway::start(config(), Mode::Serve);
    let addresses = gateway.serve().await.unwrap();
    let admin = addresses.admin.unwrap();
    assert!(get(admin, "/readyz").await.unwrap().starts_with("HTTP/1.1 200"));
    assert!(get(admin, "/metrics").await.unwrap().contains("trunkline_build_info"));
    assert!(get(port(&addresses.clients[0]), "/mcp").await.unwrap().starts_with("HTTP/1.1 4"));
    gateway.drain().await;
    assert!(get(admin, "/livez").await.is_err());
    assert!(get(port(&addresses.clients[0]), "/mcp").await.is_err());
}

#[tokio::test]
async fn it_does_not_serve_everyone_unasked() {
    let mut open = config();
    open.server.listeners = vec![Listener::at(([0, 0, 0, 0], 0).into())];
    assert!(matches!(Gateway::start(open.clone(), Mode::Serve).serve().await, Err(Error::Open(_))));
    open.auth.allow_unauthenticated = true;
    let gateway = Gateway::start(open, Mode::Serve);
    assert!(gateway.serve().await.is_ok());
    gateway.drain().await;
}

#[tokio::test]
async fn a_taken_address_is_named() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let mut config = config();
    config.server.listeners = vec![Listener::at(taken.local_addr().unwrap())];
    let error = Gateway::start(config, Mode::Serve).serve().await.unwrap_err().to_string();
    assert!(error.contains(&taken.local_addr().unwrap().to_string()), "{error}");
}

#[tokio::test]
async fn one_client_is_served_on_its_pipes() {
    let gateway = Gateway::start(config(), Mode::Stdio);
    let (mut client, ours) = tokio::io::duplex(1 << 16);
    let (stdin, stdout) = tokio::io::split(ours);
    client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"0\"}}}\n").await.unwrap();
    let (read, mut write) = tokio::io::split(client);
    let talk = async {
        let mut lines = BufReader::new(read).lines();
        let hello = lines.next_line().await.unwrap().unwrap();
        write.shutdown().await.unwrap();
        hello
    };
    let (served, hello) = tokio::join!(gateway.stdio(stdin, stdout, std::future::pending()), talk);
    served.unwrap();
    assert!(hello.contains("\"id\":\"x\"") && hello.contains("2025-06-18"), "{hello}");
    gateway.drain().await;
}
