//! TLS handshakes that fail: each is counted, and of each kind one line is logged now and then.

use crate::metrics::edges::{self, HANDSHAKES};
use crate::runtime::complaints::{Complaints, left_unsaid};
use ::metrics::Counter;
use std::io;
use std::net::SocketAddr;

/// Those of one listener.
pub(super) struct Failures {
    /// By [`HANDSHAKES`].
    counters: [Counter; HANDSHAKES.len()],
    complaints: Complaints,
}

impl Default for Failures {
    fn default() -> Self {
        Self { counters: HANDSHAKES.map(edges::handshake_failed), complaints: Complaints::default() }
    }
}

impl Failures {
    /// A handshake failed; without an error it was not over in time.
    pub(super) fn count(&self, peer: SocketAddr, error: Option<&io::Error>) {
        let kind = error.map_or("timeout", kind);
        if let Some(at) = HANDSHAKES.iter().position(|known| *known == kind) {
            self.counters[at].increment(1);
        }
        let error =
            error.map_or_else(|| "not over within `server.header_read_timeout`".to_owned(), ToString::to_string);
        // Probes of a port open a connection and close it without a word, again and again.
        if kind == "gone" {
            tracing::debug!(%peer, kind, error, "TLS handshake failed");
        } else if let Some(more) = self.complaints.take(kind) {
            tracing::warn!(%peer, kind, error, more = left_unsaid(more), "TLS handshake failed");
        }
    }
}

/// Which of [`HANDSHAKES`] an error is.
fn kind(error: &io::Error) -> &'static str {
    match error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::NoCertificatesPresented | rustls::Error::InvalidCertificate(_)) => "certificate",
        Some(rustls::Error::AlertReceived(_)) => "refused",
        Some(_) => "protocol",
        None => "gone",
    }
}
