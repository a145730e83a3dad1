//! TLS for clients: a certificate and its key from files, read anew when they change.

// Handshakes that fail.
mod failures;

use super::certificate;
use crate::secrets::pem;
use arc_swap::ArcSwap;
use failures::Failures;
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

/// What the versions of HTTP are called in a handshake.
pub(super) const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// The files, and what is spoken with them.
#[derive(Clone, Debug, PartialEq)]
pub struct Tls {
    /// The certificate, and what leads from it to a known authority.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The authorities whose clients may show certificates.
    pub client_ca: Option<PathBuf>,
    /// Whether clients may choose HTTP/2.
    pub http2: bool,
}

/// What is wrong with a file: the key that names it, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {text}")]
pub struct TlsFault {
    /// The key.
    pub key: &'static str,
    /// What is wrong.
    pub text: String,
}

fn fault(key: &'static str, text: impl Into<String>) -> TlsFault {
    TlsFault { key, text: text.into() }
}

impl Tls {
    /// The files that are watched.
    pub fn files(&self) -> Vec<PathBuf> {
        [Some(&self.cert), Some(&self.key), self.client_ca.as_ref()].into_iter().flatten().cloned().collect()
    }

    /// Whether the files can be used.
    pub fn check(&self) -> Result<(), TlsFault> {
        self.load().map(drop)
    }

    /// What the files say: for connections on which a certificate is asked for, and for those on which it is demanded.
    fn load(&self) -> Result<Secured, TlsFault> {
        let ends = certificates("cert", &self.cert)?.first().and_then(|first| certificate::ends(first));
        Ok(Secured { asking: self.secured(false)?, demanding: self.secured(true)?, ends })
    }

    fn secured(&self, is_demanded: bool) -> Result<Arc<ServerConfig>, TlsFault> {
        let certificates = certificates("cert", &self.cert)?;
        if let Some(ended) =
            certificate::ends(&certificates[0]).and_then(|end| SystemTime::now().duration_since(end).ok())
        {
            let days = ended.as_secs() / 86_400;
            let text = format!("the certificate in {} expired {days} days ago; renew it", self.cert.display());
            return Err(fault("cert", text));
        }
        let key = pem::key(&self.key).map_err(|text| fault("key", text))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| fault("cert", error.to_string()))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let mut roots = RootCertStore::empty();
                for authority in self::certificates("client_ca", file)? {
                    let text = |error| format!("{} has a certificate that cannot be used: {error}", file.display());
                    roots.add(authority).map_err(|error| fault("client_ca", text(error)))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = if is_demanded { verifier } else { verifier.allow_unauthenticated() };
                builder
                    .with_client_cert_verifier(verifier.build().map_err(|error| fault("client_ca", error.to_string()))?)
            }
        };
        let mut config = builder
            .with_single_cert(certificates, key)
            .map_err(|error| fault("key", pem::misfit(&error, &self.key, &self.cert)))?;
        // The first one that a client knows too is spoken.
        let spoken: &[&[u8]] = if self.http2 { &[HTTP2, HTTP1] } else { &[HTTP1] };
        config.alpn_protocols = spoken.iter().map(|name| name.to_vec()).collect();
        Ok(Arc::new(config))
    }
}

fn certificates(key: &'static str, file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFault> {
    pem::certificates(file).map_err(|text| fault(key, text))
}

/// What connections are secured with.
pub struct Certificates {
    /// The table of the configuration that names the files.
    key: String,
    tls: ArcSwap<Tls>,
    /// Told when other files are named.
    renamed: Notify,
    /// Whether a client must show a certificate: there is no other credential.
    is_demanded: AtomicBool,
    in_force: ArcSwap<Secured>,
    failures: Failures,
}

/// What the files say, by whether a client must show a certificate.
struct Secured {
    asking: Arc<ServerConfig>,
    demanding: Arc<ServerConfig>,
    /// When the certificate expires, where that can be read.
    ends: Option<SystemTime>,
}

impl Certificates {
    /// Reads the files that a table of the configuration names; in words, why they cannot be used.
    pub fn open(key: String, tls: &Tls, is_demanded: bool) -> Result<Arc<Self>, String> {
        let in_force = ArcSwap::from_pointee(tls.load().map_err(|fault| format!("{key}.{fault}"))?);
        Ok(Arc::new(Self {
            key,
            tls: ArcSwap::from_pointee(tls.clone()),
            renamed: Notify::new(),
            is_demanded: is_demanded.into(),
            in_force,
            failures: Failures::default(),
        }))
    }

    /// Whether a client must show a certificate from the next connection on.
    pub fn demand(&self, is_demanded: bool) {
        self.is_demanded.store(is_demanded, Ordering::Relaxed);
    }

    /// The table of the configuration that names the files.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// When the certificate that is in force expires, where that can be read.
    pub fn ends(&self) -> Option<SystemTime> {
        self.in_force.load().ends
    }

    /// Reads the files anew; where they cannot be used, what was read before stays in force, and it is said why.
    pub fn reload(&self) -> Result<(), String> {
        let tls = self.tls.load_full();
        let read = tls.load().map_err(|fault| format!("{}.{fault}", self.key))?;
        self.in_force.store(Arc::new(read));
        Ok(())
    }

    /// These are the files from now on; they are read by whoever waits for [`Self::renamed`]. Whether certificates of clients are asked
    /// for stays as it was at the start: who may come in at all hangs on it.
    pub fn rename(&self, tls: &Tls) {
        let now = self.tls.load_full();
        let client_ca = now.client_ca.as_ref().map(|old| tls.client_ca.as_ref().unwrap_or(old).clone());
        let tls = Tls { client_ca, ..tls.clone() };
        if tls != *now {
            self.tls.store(Arc::new(tls));
            self.renamed.notify_one();
        }
    }

    /// Resolves when other files are named.
    pub async fn renamed(&self) {
        self.renamed.notified().await;
    }

    /// A handshake failed; without an error it was not over in time.
    pub(crate) fn failed(&self, peer: SocketAddr, error: Option<&io::Error>) {
        self.failures.count(peer, error);
    }

    /// The files that are watched.
    pub fn files(&self) -> Vec<PathBuf> {
        self.tls.load().files()
    }

    /// Secures one connection.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let secured = self.in_force.load();
        let is_demanded = self.is_demanded.load(Ordering::Relaxed);
        TlsAcceptor::from(if is_demanded { secured.demanding.clone() } else { secured.asking.clone() })
    }
}
