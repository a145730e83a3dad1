//! TLS with an upstream: the authorities of the platform and of a file, a certificate of our own, and what a failure means.

use crate::config::{Stamp, Trust};
use crate::health::{Cause, CauseCode};
use crate::runtime::timer::late::within;
use crate::secrets::private;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConfig};
use rustls_platform_verifier::Verifier;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long the TLS handshake may take.
const TLS_MAX: Duration = Duration::from_secs(5);

/// What to do about a certificate that has expired.
const EXPIRED: &str = "renew it at the server; check the clock of this machine";

/// What HTTP/2 is called in a handshake.
pub(super) const HTTP2: &[u8] = b"h2";

/// What connections to one host are secured with.
pub(super) struct Secured {
    host: String,
    name: ServerName<'static>,
    trust: Trust,
    /// What the files held when they could be used last.
    read: Mutex<Option<Read>>,
}

/// What files held.
struct Read {
    stamp: Stamp,
    config: Arc<ClientConfig>,
    /// Whether a handshake succeeded with it.
    has_worked: bool,
    /// The files as they could not be used, which was said.
    refused: Option<Stamp>,
}

impl Secured {
    /// For a host, whose name its certificate must bear.
    pub(super) fn new(host: &str, trust: &Trust) -> Result<Self, String> {
        let name =
            ServerName::try_from(host.to_owned()).map_err(|_| format!("`{host}` is not a valid certificate name"))?;
        Ok(Self { host: host.to_owned(), name, trust: trust.clone(), read: Mutex::default() })
    }

    /// What the files hold now; what they held before where they cannot be used, such as between two steps of a renewal.
    fn of_files(&self) -> Result<Arc<ClientConfig>, String> {
        let stamp = self.trust.stamp();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = read.as_ref().filter(|read| read.stamp == stamp) {
            return Ok(read.config.clone());
        }
        match (of_files(&self.trust), read.as_mut()) {
            (Ok(config), _) => {
                *read = Some(Read { stamp, config: config.clone(), has_worked: false, refused: None });
                Ok(config)
            }
            (Err(why), Some(read)) if read.has_worked => {
                if read.refused.as_ref() != Some(&stamp) {
                    tracing::warn!(
                        host = self.host,
                        cause = why,
                        "the files of `tls` cannot be used; what they held before is"
                    );
                    read.refused = Some(stamp);
                }
                Ok(read.config.clone())
            }
            (Err(why), _) => Err(why),
        }
    }

    fn has_worked(&self) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.iter_mut().for_each(|read| read.has_worked = true);
    }

    /// TLS on a new connection, which may become one that bears many exchanges at once.
    pub(super) async fn secure<S>(&self, stream: S, may_be_shared: bool) -> Result<TlsStream<S>, Cause>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let failed = || Cause::new(CauseCode::TlsFailed, "the TLS handshake").foreign(&format!(" with {}", self.host));
        // A file that was renewed holds for the next connection.
        let config = match self.trust.is_empty() {
            true => of_platform(),
            false => private::off_the_workers(|| self.of_files()),
        };
        let mut config = config.map_err(|why| failed().own(&format!(" is not possible: {why}")))?;
        if may_be_shared && !self.trust.http1_alone {
            Arc::make_mut(&mut config).alpn_protocols.insert(0, HTTP2.to_vec());
        }
        let connector = TlsConnector::from(config);
        let shaken = within(TLS_MAX, connector.connect(self.name.clone(), stream)).await;
        let shaken = shaken.map_err(|_| failed().own(&format!(" took more than {} s", TLS_MAX.as_secs())))?;
        let stream = shaken.map_err(|error| {
            let (said, advice) = in_words(&error);
            failed().own(&format!(" failed: {said}")).advise(advice)
        })?;
        self.has_worked();
        Ok(stream)
    }
}

/// Why a handshake failed, with the library's own word where that is all there is to say; and what to do.
fn in_words(error: &std::io::Error) -> (String, &'static str) {
    let fault = match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(fault)) => fault,
        Some(rustls::Error::InvalidMessage(_)) => {
            return (
                "the server does not speak TLS".to_owned(),
                "where it is not to, begin `url` with http:// or ws://",
            );
        }
        Some(rustls::Error::AlertReceived(
            AlertDescription::CertificateRequired | AlertDescription::HandshakeFailure,
        )) => {
            let advice = "if it asks clients for a certificate, name one under `tls.cert` and `tls.key`";
            return (error.to_string(), advice);
        }
        _ => return (error.to_string(), ""),
    };
    match fault {
        CertificateError::UnknownIssuer => (
            "its certificate is signed by nobody known here".to_owned(),
            "if it is to be trusted, name a file with its authority's certificate under `tls.ca`",
        ),
        CertificateError::Expired => ("its certificate has expired".to_owned(), EXPIRED),
        CertificateError::ExpiredContext { time, not_after } => {
            let days = time.as_secs().saturating_sub(not_after.as_secs()) / (24 * 60 * 60);
            (format!("its certificate has expired, {days} days ago by the clock of this machine"), EXPIRED)
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            (format!("its certificate does not hold yet: {fault}"), "check the clock of this machine and the server's")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => (
            format!("its certificate is not that of this host: {fault}"),
            "write the name of its certificate in `url`, or have one made for this name",
        ),
        // It is given in no other form than its name.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            let said = "its certificate is an authority's, or signed by itself";
            (said.to_owned(), "a certificate for this host, signed by an authority, is needed")
        }
        fault => (format!("its certificate is not accepted: {fault}"), ""),
    }
}

/// Made once: reading the platform's roots takes a while.
fn of_platform() -> Result<Arc<ClientConfig>, String> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    CONFIG.get_or_init(|| of_files(&Trust::default())).clone()
}

/// With what the files hold now.
fn of_files(trust: &Trust) -> Result<Arc<ClientConfig>, String> {
    let read = trust.read().map_err(|fault| fault.to_string())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier::new_with_extra_roots(read.authorities, provider.clone())
        .map_err(|error| format!("the platform's certificates, or those of `tls.ca`, cannot be used: {error}"))?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match read.own {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(|error| format!("tls.key: {error}"))?,
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
