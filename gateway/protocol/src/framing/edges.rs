//! Both ends of a message that is not taken: enough to know by its id which request it answers.

use bytes::Bytes;

/// How much of either end is kept: enough for the id of a frame.
const EDGE_BYTES: usize = 256;

/// The ends of a message that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct Edges {
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Edges {
    /// The next piece.
    pub(super) fn note(&mut self, piece: &[u8]) {
        let room = EDGE_BYTES.saturating_sub(self.head.len()).min(piece.len());
        self.head.extend_from_slice(&piece[..room]);
        if piece.len() >= EDGE_BYTES {
            self.tail.clear();
        }
        self.tail.extend_from_slice(&piece[piece.len().saturating_sub(EDGE_BYTES)..]);
        self.tail.drain(..self.tail.len().saturating_sub(EDGE_BYTES));
    }

    /// Its first and its last bytes; another message follows.
    pub(super) fn take(&mut self) -> (Bytes, Bytes) {
        (std::mem::take(&mut self.head).into(), std::mem::take(&mut self.tail).into())
    }

    /// Another message follows.
    pub(super) fn clear(&mut self) {
        self.head.clear();
        self.tail.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_kept_whatever_pieces_they_come_in() {
        let text: Vec<u8> = (0..2000_u32).map(|at| (at % 251) as u8).collect();
        for size in [1, 7, 255, 256, 257, 1999, 2000] {
            let mut edges = Edges::default();
            edges.note(b"of another one");
            edges.clear();
            text.chunks(size).for_each(|piece| edges.note(piece));
            let (head, tail) = edges.take();
            assert_eq!((&head[..], &tail[..]), (&text[..EDGE_BYTES], &text[2000 - EDGE_BYTES..]), "{size}");
        }
        let mut edges = Edges::default();
        edges.note(b"short");
        assert_eq!(edges.take(), (Bytes::from_static(b"short"), Bytes::from_static(b"short")));
    }
}
