//! Large messages of peers are put together within the budget.

use crate::memory::gather::Gather;
use crate::protocol::framing::Store;
use bytes::Bytes;

impl Store for Gather {
    fn push(&mut self, piece: &[u8]) -> bool {
        Self::push(self, piece).is_ok()
    }

    fn held(&self) -> usize {
        self.len()
    }

    fn give(&mut self) -> Bytes {
        self.take()
    }

    fn forget(&mut self) {
        self.clear();
    }
}
