//! Serves the control socket: short connections of this user and of root, few at once.

use super::folder::Bound;
use crate::answer::{TEXT, answer};
use crate::runtime::Tasks;
use crate::runtime::complaints::{Complaints, left_unsaid};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tower::ServiceExt;

/// So many connections are served at once; further ones wait.
const CONNECTIONS_MAX: usize = 512;
/// So long a request may take to come: its head, and the rest of it.
const HEAD_WITHIN: Duration = Duration::from_secs(2);
const BODY_WITHIN: Duration = Duration::from_secs(10);
/// The most bytes of a request.
const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;
/// So long an answer may take to be read.
const READ_WITHIN: Duration = Duration::from_secs(60);
/// So often it is looked whether the other end of a connection whose request is carried out is still there.
const LOOK_EVERY: Duration = Duration::from_secs(1);
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
                    if let Err(error) = connection(stream, router).await {
                        tracing::debug!(%error, "connection to the control socket ended");
                    }
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

/// How far the one request of a connection is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Coming,
    CarriedOut,
    Answered,
}

/// Serves the one request of a connection. It is carried out for as long as that takes: a call has its own time limit. Dropping the
/// connection cancels what it carries out.
async fn connection(stream: UnixStream, router: Router) -> io::Result<()> {
    let other_end = stream.as_fd().try_clone_to_owned()?;
    let (stage, seen) = watch::channel(Stage::Coming);
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let (router, stage) = (router.clone(), &stage);
        async move {
            let response = match whole(request).await {
                Ok(request) => {
                    stage.send_replace(Stage::CarriedOut);
                    let Ok(response) = router.oneshot(request).await;
                    response
                }
                Err(refused) => *refused,
            };
            stage.send_replace(Stage::Answered);
            Ok::<_, Infallible>(response)
        }
    });
    let serving = http1::Builder::new()
        .keep_alive(false)
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::select! {
        served = serving => served.map_err(io::Error::other),
        why = of_no_use(&other_end, seen) => Err(why),
    }
}

/// Resolves when nobody is there any more who waits for the answer, or reads it.
async fn of_no_use(other_end: &OwnedFd, mut seen: watch::Receiver<Stage>) -> io::Error {
    loop {
        let now = *seen.borrow_and_update();
        match now {
            Stage::Coming => _ = seen.changed().await,
            Stage::CarriedOut => _ = timeout(LOOK_EVERY, seen.changed()).await,
            Stage::Answered => {
                sleep(READ_WITHIN).await;
                return io::Error::new(io::ErrorKind::TimedOut, "the answer was not read");
            }
        }
        if now == Stage::CarriedOut && has_gone(other_end) {
            return io::Error::new(io::ErrorKind::BrokenPipe, "closed before the answer");
        }
    }
}

/// Whether the other end was closed. That nothing more comes from it says less: it may wait for the answer.
fn has_gone(socket: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(socket, PollFlags::empty())];
    poll(&mut polled, Some(&Timespec::default())).is_ok() && polled[0].revents().contains(PollFlags::HUP)
}

/// A request with all of its body; else what is answered.
async fn whole(request: hyper::Request<Incoming>) -> Result<Request, Box<Response>> {
    let (head, body) = request.into_parts();
    let refused = |status, why: String| Box::new(answer(status, TEXT, why));
    match timeout(BODY_WITHIN, to_bytes(Body::new(body), BODY_BYTES_MAX)).await {
        Ok(Ok(body)) => Ok(Request::from_parts(head, Body::from(body))),
        Ok(Err(error)) => Err(refused(
            StatusCode::BAD_REQUEST,
            format!("cannot read the request (at most {BODY_BYTES_MAX} bytes): {error}\n"),
        )),
        Err(_) => {
            let why = format!("the request did not come whole within {} s\n", BODY_WITHIN.as_secs());
            Err(refused(StatusCode::REQUEST_TIMEOUT, why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::folder::{Mode, bind};
    use crate::runtime::Scratch;
    use axum::routing::{get, post};
    use std::io::{Read, Write};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::unix::pipe;
    use tokio::time::Instant;

    /// A request whose answer takes ten minutes, with the end that tells when it is no longer carried out.
    fn slow() -> (Router, pipe::Receiver) {
        let (sender, receiver) = pipe::pipe().unwrap();
        let sender = Arc::new(std::sync::Mutex::new(Some(sender)));
        let router = Router::new().route(
            "/slow",
            post(move |_: axum::body::Bytes| async move {
                let _held = sender.lock().unwrap().take();
                sleep(Duration::from_secs(600)).await;
                "done"
            }),
        );
        (router, receiver)
    }

    async fn sent(end: &mut UnixStream, length: usize, body: &str) {
        let head = format!("POST /slow HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}");
        end.write_all(head.as_bytes()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_carried_out_for_as_long_as_it_takes_and_half_a_one_is_told_so() {
        let (mut end, far) = UnixStream::pair().unwrap();
        let begun = Instant::now();
        let asking = async {
            sent(&mut end, 2, "{}").await;
            end.shutdown().await.unwrap();
            let mut answer = String::new();
            end.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let (served, answer) = tokio::join!(connection(far, slow().0), asking);
        assert!(served.is_ok() && answer.ends_with("done"), "{served:?} {answer}");
        assert!(begun.elapsed() >= Duration::from_secs(600));
        let (mut end, far) = UnixStream::pair().unwrap();
        let asking = async {
            sent(&mut end, 3, "{}").await;
            let mut answer = String::new();
            end.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let (_, answer) = tokio::join!(connection(far, slow().0), asking);
        assert!(answer.contains(" 408 ") && answer.contains("within 10 s"), "{answer}");
    }

    #[tokio::test]
    async fn another_user_is_not_served_though_the_folder_lets_everybody_in() {
        let scratch = Scratch::new();
        let bound = bind(std::slice::from_ref(&scratch.0), &[], Mode::Serve).unwrap();
        scratch.open_to_all();
        let socket = scratch.0.join(&scratch.names()[0]);
        let (tasks, router) = (Tasks::new(), Router::new().route("/", get(async || "it is me")));
        tasks.spawn(serve(bound, router, tasks.clone()));
        let ask = move || {
            let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
            // It may be closed by now.
            let _ = stream.write_all(b"GET / HTTP/1.0\r\n\r\n");
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            answer
        };
        let answers = tokio::task::spawn_blocking(move || (ask(), Scratch::as_another_user(ask))).await;
        let (own, others) = answers.unwrap();
        assert!(own.ends_with("it is me"), "{own}");
        assert_eq!(others.unwrap_or_default(), "");
        tasks.end();
        tasks.ended().await;
    }

    #[tokio::test(start_paused = true)]
    async fn who_goes_before_the_answer_cancels_what_was_asked() {
        let (mut end, far) = UnixStream::pair().unwrap();
        let (router, mut held) = slow();
        let begun = Instant::now();
        let asking = async {
            sent(&mut end, 2, "{}").await;
            sleep(Duration::from_secs(2)).await;
            // A program that another test is just starting may hold a copy of this end for a moment, in which a paused clock runs far.
            end.into_std().unwrap().shutdown(std::net::Shutdown::Both).unwrap();
            assert_eq!(held.read_u8().await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "nobody carries it out");
        };
        let (served, ()) = tokio::join!(connection(far, router), asking);
        assert_eq!(served.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }
}
