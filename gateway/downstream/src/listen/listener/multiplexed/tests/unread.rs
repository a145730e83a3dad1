//! An answer that its client does not read, though it has said that there is room for it.

use super::floods::{opening_with_room, request};
use super::{Bench, ON_THE_WAY};
use crate::listen::listener::multiplexed::UNSENT_MAX;
use bytes::Bytes;
use http_body::{Body, Frame};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

/// A body that never ends, and how much was taken of it.
pub(super) struct Endless(pub(super) Arc<AtomicUsize>);

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = Bytes::from_static(&[b'x'; 4096]);
        self.0.fetch_add(piece.len(), Ordering::SeqCst);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

#[tokio::test(start_paused = true)]
async fn of_an_answer_that_its_client_does_not_read_little_lies_in_the_connection_whatever_its_window() {
    let bench = Bench::new(1000);
    let mut peer = bench.connect(1);
    peer.write_all(&opening_with_room()).await.unwrap();
    peer.write_all(&request(1, "/endless", true)).await.unwrap();
    sleep(Duration::from_secs(10)).await;
    let taken = bench.taken.load(Ordering::SeqCst);
    // The frames that are just being written lie in the connection besides.
    assert!((UNSENT_MAX..UNSENT_MAX + ON_THE_WAY + (64 << 10)).contains(&taken), "{taken}");
}
