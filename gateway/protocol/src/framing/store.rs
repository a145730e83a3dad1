//! Where a message is put together that is larger than its reader's buffer.

use bytes::Bytes;

/// Holds what was read of one message; whoever makes it says how much memory there is for that.
pub trait Store {
    /// Takes a piece; false where there is no room for it. Then all that was taken is gone.
    fn push(&mut self, piece: &[u8]) -> bool;

    /// How much it holds.
    fn held(&self) -> usize;

    /// Gives all of it out as one, and is empty.
    fn give(&mut self) -> Bytes;

    /// Forgets all of it.
    fn forget(&mut self);
}

/// For what is bounded otherwise.
impl Store for Vec<u8> {
    fn push(&mut self, piece: &[u8]) -> bool {
        self.extend_from_slice(piece);
        true
    }

    fn held(&self) -> usize {
        self.len()
    }

    fn give(&mut self) -> Bytes {
        std::mem::take(self).into()
    }

    fn forget(&mut self) {
        *self = Self::new();
    }
}

/// A message that cannot be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Untaken {
    /// It is longer than the limit.
    #[error("it is longer than the limit")]
    TooLong,
    /// There is no memory for it.
    #[error("the gateway has no memory left for it (`server.memory_limit`)")]
    NoRoom,
}
