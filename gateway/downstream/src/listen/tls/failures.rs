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
        let error = error.map_or_else(|| "not over within `server.header_read_timeout`".to_owned(), in_words);
        // Probes of a port open a connection and close it without a word, again and again.
        if kind == "gone" {
            tracing::debug!(%peer, kind, error, "TLS handshake failed");
        } else if let Some(more) = self.complaints.take(kind) {
            tracing::warn!(%peer, kind, error, more = left_unsaid(more), "TLS handshake failed");
        }
    }
}

/// What went wrong; in words of our own where the library has a name alone.
fn in_words(error: &io::Error) -> String {
    let said = error.to_string();
    let own = [
        (
            "UnsupportedCertVersion",
            "the certificate of the client is of X.509 version 1; have one of version 3 made, with extensions",
        ),
        (
            "CaUsedAsEndEntity",
            "the certificate of the client is an authority's, or signed by itself; have one signed by an authority of `client_ca`",
        ),
    ];
    own.iter().find(|(name, _)| said.contains(name)).map_or(said.clone(), |(_, own)| (*own).to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{CertificateError, Error, OtherError};
    use std::fmt;
    use std::sync::Arc;

    /// A fault of a certificate that has a name alone.
    #[derive(Debug)]
    struct UnsupportedCertVersion;

    impl fmt::Display for UnsupportedCertVersion {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            fmt::Debug::fmt(self, f)
        }
    }

    impl std::error::Error for UnsupportedCertVersion {}

    #[test]
    fn what_is_wrong_with_the_certificate_of_a_client_is_said_in_words() {
        let of = |fault| in_words(&io::Error::new(io::ErrorKind::InvalidData, Error::InvalidCertificate(fault)));
        let old = of(CertificateError::Other(OtherError(Arc::new(UnsupportedCertVersion))));
        assert!(old.contains("version 1") && old.contains("version 3"), "{old}");
        assert_eq!(of(CertificateError::Revoked), "invalid peer certificate: Revoked");
    }
}
