//! Which of the open brackets of a JSON text are objects: one bit a level.

/// The deepest nesting that is accepted; deeper input is refused, not walked.
pub const DEPTH_MAX: u32 = 128;

/// The brackets that are open.
#[derive(Default)]
pub(super) struct Nest {
    bits: u128,
    depth: u32,
}

impl Nest {
    /// Another one is opened; `None` where it would lie too deep.
    pub(super) fn push(&mut self, object: bool) -> Option<()> {
        if self.depth == DEPTH_MAX {
            return None;
        }
        self.bits = self.bits << 1 | u128::from(object);
        self.depth += 1;
        Some(())
    }

    /// The innermost is closed.
    pub(super) fn pop(&mut self) {
        self.bits >>= 1;
        self.depth -= 1;
    }

    /// Whether the innermost is an object's.
    pub(super) fn in_object(&self) -> bool {
        self.bits & 1 == 1
    }

    /// Whether none is open.
    pub(super) fn is_empty(&self) -> bool {
        self.depth == 0
    }
}
