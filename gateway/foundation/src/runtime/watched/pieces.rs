//! A body as it is written: in pieces, since a connection copies each behind its head, into one buffer and one write.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The most bytes of a piece. One that is as long fills the buffer of its connection, which is written then: that buffer never grows
/// with what is sent.
const PIECE_BYTES: usize = 32 * 1024;

/// What is left of a body that is in memory.
#[derive(Debug, Clone, Default)]
pub struct Pieces(Bytes);

impl From<Bytes> for Pieces {
    fn from(all: Bytes) -> Self {
        Self(all)
    }
}

impl Pieces {
    /// The next piece; none where nothing is left.
    #[inline]
    pub fn take(&mut self) -> Option<Bytes> {
        match self.0.len() {
            0 => None,
            1..=PIECE_BYTES => Some(std::mem::take(&mut self.0)),
            _ => Some(self.0.split_to(PIECE_BYTES)),
        }
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.0.len()
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.take().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_the_whole_and_none_is_longer_than_a_buffer() {
        for length in [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES + 7] {
            let all: Bytes = (0..length).map(|at| at as u8).collect();
            let mut pieces = Pieces::from(all.clone());
            let mut whole = Vec::new();
            while let Some(piece) = pieces.take() {
                assert!(!piece.is_empty() && piece.len() <= PIECE_BYTES);
                whole.extend_from_slice(&piece);
                assert_eq!(pieces.left(), length - whole.len());
            }
            assert!(whole == all && pieces.is_end_stream());
        }
    }
}
