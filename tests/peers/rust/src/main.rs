//! The suite's server on the official Rust SDK, both eras at one endpoint:
//!
//!     dual-rust http|stdio
//!
//! Over HTTP it prints its endpoint.

// What tools, prompts and resources say.
mod content;
// Questions of both eras: a session is asked live, a stateless client by `input_required`.
mod questions;
// The server: lists, calls, subscriptions.
mod server;
// The tools.
mod tools;

use rmcp::ServiceExt;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use server::{Dual, World};
use std::sync::Arc;
use std::time::Duration;

#[tokio::main]
async fn main() {
    let world = Arc::new(World::default());
    match std::env::args().nth(1).as_deref() {
        Some("http") => over_http(world).await,
        Some("stdio") => {
            let running = Dual(world).serve(rmcp::transport::stdio()).await.expect("a client opens it");
            let _ended = running.waiting().await;
        }
        other => panic!("http or stdio, not {other:?}"),
    }
}

async fn over_http(world: Arc<World>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
    println!("http://{}/mcp", listener.local_addr().expect("it is bound"));
    let mut config = StreamableHttpServerConfig::default();
    config.sse_retry = Some(Duration::from_millis(100));
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(Dual(world.clone())), sessions, config);
    let router = axum::Router::new().nest_service("/mcp", service);
    axum::serve(listener, router).await.expect("it serves");
}
