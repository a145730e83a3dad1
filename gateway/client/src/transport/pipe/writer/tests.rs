//! Writes that fail, and peers that close their end.

use super::*;
use crate::memory::budget::Budget;
use crate::protocol::frame::Method;
use crate::protocol::value::Object;
use crate::runtime::Tasks;
use crate::transport::events::Nobody;
use crate::transport::exchange::mailbox::Arrival;
use crate::transport::exchange::{Lost, Request};
use crate::transport::pipe::PipeExchange;
use std::future::{pending, ready};
use std::sync::Arc;

/// An output that takes so many bytes, and then is closed by its peer.
struct Closing(usize);

impl AsyncWrite for Closing {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let count = bytes.len().min(self.0);
        self.0 -= count;
        Poll::Ready(if count > 0 { Ok(count) } else { Err(io::ErrorKind::BrokenPipe.into()) })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn pipe() -> Arc<Pipe> {
    Pipe::new(Arc::new(Nobody(Budget::default())), Tasks::new())
}

fn exchange(pipe: &Arc<Pipe>) -> PipeExchange {
    pipe.exchange(&Request::new(&Method::ToolsCall, &Object::empty(), None)).unwrap()
}

async fn lost(mut exchange: PipeExchange) -> Lost {
    match poll_fn(|cx| exchange.poll(cx)).await {
        Arrival::Lost(lost) => lost,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn failed_write_leaves_frames_without_a_byte_unsent() {
    let pipe = pipe();
    let [sent, begun, unsent] = [(); 3].map(|()| exchange(&pipe));
    let frame = pipe.out().len() / 3;
    let end = write(&pipe, Closing(frame + frame / 2), pending()).await;
    assert_eq!(end.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    let late = exchange(&pipe);
    pipe.close("closed its stdin".into());
    for exchange in [sent, begun] {
        assert!(matches!(lost(exchange).await, Lost::Unknown(_)));
    }
    for exchange in [unsent, late] {
        assert!(matches!(lost(exchange).await, Lost::Unsent(_)));
    }
}

#[tokio::test(start_paused = true)]
async fn writer_ends_when_an_idle_peer_hangs_up() {
    let pipe = pipe();
    let end = write(&pipe, Closing(usize::MAX), ready(())).await;
    assert_eq!(end.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test(start_paused = true)]
async fn writer_waits_for_open_calls_after_a_hang_up() {
    let pipe = pipe();
    let open = exchange(&pipe);
    let mut writing = pin!(write(&pipe, Closing(usize::MAX), ready(())));
    tokio::select! {
        biased;
        end = writing.as_mut() => panic!("a call is open: {end:?}"),
        () = sleep(HUNG_UP_LOOK * 10) => {}
    }
    drop(open);
    assert!(writing.await.is_err());
}
