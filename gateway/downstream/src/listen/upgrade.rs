//! A connection that goes over from HTTP to another protocol.

use bytes::Bytes;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncWrite};

/// A connection both ways.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

/// What is left of a connection when HTTP is over on it.
pub(crate) struct Upgraded {
    pub(crate) stream: Box<dyn Duplex>,
    /// What was read of it already.
    pub(crate) early: Bytes,
}

/// What goes on with it.
pub(crate) type Upgrade = Box<dyn FnOnce(Upgraded) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Whether a connection goes over, and to what. Set with the answer that says so; clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Switch(Arc<Inner>);

#[derive(Default)]
struct Inner {
    is_on: AtomicBool,
    to: Mutex<Option<Upgrade>>,
}

impl Switch {
    /// The connection goes over once the answer to its last request is written.
    pub(crate) fn to(&self, upgrade: Upgrade) {
        *self.0.to.lock().unwrap_or_else(PoisonError::into_inner) = Some(upgrade);
        self.0.is_on.store(true, Ordering::Release);
    }

    /// Whether what comes is no request.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_on.load(Ordering::Acquire)
    }

    /// What it goes over to.
    pub(crate) fn take(&self) -> Option<Upgrade> {
        self.0.to.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Switch").field("is_on", &self.is_on()).finish()
    }
}
