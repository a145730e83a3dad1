//! Serves the control socket: short connections of this user and of root, few at once.

use super::folder::Bound;
use crate::runtime::Tasks;
use crate::runtime::complaints::{Complaints, left_unsaid};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// So many connections are served at once; further ones wait.
const CONNECTIONS_MAX: usize = 512;
/// A request has so long to come, and to be answered: an order waits for what it brings about.
const HEAD_WITHIN: Duration = Duration::from_secs(2);
const DONE_WITHIN: Duration = Duration::from_secs(60);
/// How long the loop rests when the system has no room for another connection.
const NO_ROOM: Duration = Duration::from_millis(100);

/// Serves until `tasks` is told to end; then the socket goes.
pub async fn serve(bound: Bound, router: Router, tasks: Tasks) {
    let level = tasks.child();
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let complaints = Complaints::default();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&bound, &room) => accepted,
            () = tasks.ending() => break,
        };
        match accepted {
            Ok((stream, place)) if is_ours(&stream) => {
                let router = router.clone();
                level.spawn_until_end(async move {
                    // Who asks and goes, or takes too long, is told nothing more.
                    let _ = timeout(DONE_WITHIN, connection(stream, router)).await;
                    drop(place);
                });
            }
            Ok(_) => {
                if let Some(more) = complaints.take("user") {
                    let more = left_unsaid(more);
                    tracing::warn!(more, "connection of another user to the control socket closed");
                }
            }
            Err(error) => {
                if let Some(more) = complaints.take("accept") {
                    let more = left_unsaid(more);
                    tracing::warn!(%error, more, "cannot accept a connection to the control socket");
                }
                sleep(NO_ROOM).await;
            }
        }
    }
    drop(bound);
    level.ended().await;
}

async fn accept(bound: &Bound, room: &Arc<Semaphore>) -> io::Result<(UnixStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = room.clone().acquire_owned().await.map_err(io::Error::other)?;
    Ok((bound.listener.accept().await?.0, place))
}

/// Whether its other end is of this user, or root's.
fn is_ours(stream: &UnixStream) -> bool {
    let ours = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == ours || peer.uid() == 0)
}

async fn connection(stream: UnixStream, router: Router) -> Result<(), hyper::Error> {
    http1::Builder::new()
        .keep_alive(false)
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await
}
