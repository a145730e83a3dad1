//! TLS on loopback: an authority of the test's own, and a door that ends TLS before a scripted upstream.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::tape::Tape;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Who signs certificates.
pub struct Authority {
    /// Its own certificate, for a file of roots.
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Default for Authority {
    fn default() -> Authority {
        Authority::new()
    }
}

impl Authority {
    /// A new one, that nobody knows yet.
    pub fn new() -> Authority {
        let key = KeyPair::generate().expect("a key can be made");
        let mut params = CertificateParams::new(Vec::new()).expect("no names are fine names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Of its own name: what it did not sign is not even claimed to be its.
        params
            .distinguished_name
            .push(DnType::CommonName, format!("authority {}", NEXT.fetch_add(1, Ordering::Relaxed)));
        let pem = params.self_signed(&key).expect("it signs itself").pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    }

    /// A certificate for a host name or address, good until the first day of a year.
    pub fn certify(&self, name: &str, until: i32) -> Credentials {
        let key = KeyPair::generate().expect("a key can be made");
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
        let certificate = params.signed_by(&key, &self.issuer).expect("it signs");
        Credentials { certificate, key }
    }
}

impl Authority {
    /// A certificate for a client of this name.
    pub fn certify_client(&self, name: &str) -> Credentials {
        let key = KeyPair::generate().expect("a key can be made");
        let mut params = CertificateParams::new(Vec::new()).expect("no names are fine names");
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.issuer).expect("it signs");
        Credentials { certificate, key }
    }
}

/// A certificate and its key.
pub struct Credentials {
    certificate: Certificate,
    key: KeyPair,
}

impl Credentials {
    /// Both in PEM form.
    pub fn pem(&self) -> (String, String) {
        (self.certificate.pem(), self.key.serialize_pem())
    }

    /// A certificate that only vouches for itself.
    pub fn self_signed(name: &str) -> Credentials {
        let key = KeyPair::generate().expect("a key can be made");
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.distinguished_name.push(DnType::CommonName, name);
        Credentials { certificate: params.self_signed(&key).expect("it signs itself"), key }
    }
}

/// What came of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visit {
    /// The handshake did not end well.
    Refused,
    /// So many bytes of a request were read from it.
    Spoke(usize),
}

/// A door that speaks TLS and hands the rest on to `inner`; each connection leaves something on the tape.
pub async fn door(credentials: Credentials, inner: SocketAddr) -> (SocketAddr, Arc<Tape<Visit>>) {
    door_asking(credentials, None, inner).await
}

/// How TLS is spoken with these, for these protocols.
pub fn offering(credentials: &Credentials, protocols: &[&[u8]]) -> TlsAcceptor {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(credentials.key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = builder
        .expect("ring has them")
        .with_no_client_auth()
        .with_single_cert(vec![credentials.certificate.der().clone()], key)
        .expect("the key fits the certificate");
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

/// The same; a client must show a certificate of that authority.
pub async fn door_asking(
    credentials: Credentials,
    asks: Option<&Authority>,
    inner: SocketAddr,
) -> (SocketAddr, Arc<Tape<Visit>>) {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(credentials.key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("ring has them");
    let builder = match asks {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            let known = CertificateDer::from_pem_slice(authority.pem.as_bytes()).expect("a certificate");
            roots.add(known).expect("an authority");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.expect("a verifier"))
        }
    };
    let config = builder
        .with_single_cert(vec![credentials.certificate.der().clone()], key)
        .expect("the key fits the certificate");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    let visits = Arc::new(Tape::default());
    let tape = visits.clone();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(acceptor.clone(), socket, inner, tape.clone()));
        }
    });
    (address, visits)
}

async fn serve(acceptor: TlsAcceptor, socket: TcpStream, inner: SocketAddr, visits: Arc<Tape<Visit>>) {
    let Ok(mut outside) = acceptor.accept(socket).await else { return visits.push(Visit::Refused) };
    let mut first = vec![0; 1 << 16];
    let read = outside.read(&mut first).await.unwrap_or(0);
    if read == 0 {
        return visits.push(Visit::Refused);
    }
    visits.push(Visit::Spoke(read));
    let mut inside = TcpStream::connect(inner).await.expect("the upstream listens");
    if inside.write_all(&first[..read]).await.is_ok() {
        // A connection that breaks is the peer's affair.
        let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
    }
}
