//! How long one task may go on at a stretch: whoever reads what never ends lets others have their turn.

use tokio::task::yield_now;

/// After so many bytes others have their turn: about a millisecond's worth of the smallest messages.
const MOST: usize = 64 * 1024;
/// A read of less has taken all that there was: the next one waits, and others have their turn then.
const LITTLE: usize = 8 * 1024;

/// What a task has done since others had their turn.
#[derive(Debug, Default)]
pub struct Stretch(usize);

impl Stretch {
    /// So many bytes were read at once, and are dealt with.
    pub async fn read(&mut self, bytes: usize) {
        match bytes < LITTLE {
            true => self.0 = 0,
            false => self.did(bytes).await,
        }
    }

    /// So many bytes of what was read are dealt with.
    pub async fn did(&mut self, bytes: usize) {
        self.0 += bytes;
        if self.0 >= MOST {
            self.0 = 0;
            yield_now().await;
        }
    }
}
