//! What an upstream is secured with besides the authorities of the platform: files in PEM form.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The most bytes of a file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trust {
    /// Authorities that are trusted besides those of the platform.
    pub ca: Option<PathBuf>,
    /// A certificate that the upstream is shown, and its key.
    pub own: Option<(PathBuf, PathBuf)>,
}

/// When each file was changed, its length and its number; none of one that cannot be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp(Vec<Option<(SystemTime, u64, u64)>>);

/// What they hold.
pub struct TrustRead {
    /// The authorities.
    pub authorities: Vec<CertificateDer<'static>>,
    /// The certificate, what leads from it to a known authority, and its key.
    pub own: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
}

/// What is wrong with a file: the key that names it, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("tls.{key}: {text}")]
pub struct TrustFault {
    /// The key.
    pub key: &'static str,
    /// What is wrong.
    pub text: String,
}

impl Trust {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ca.is_none() && self.own.is_none()
    }

    /// By what a change of them is noticed.
    pub fn stamp(&self) -> Stamp {
        let own = self.own.iter().flat_map(|(cert, key)| [cert, key]);
        let stamp_of = |file: &PathBuf| {
            let seen = fs::metadata(file).ok()?;
            Some((seen.modified().ok()?, seen.len(), seen.ino()))
        };
        Stamp(self.ca.iter().chain(own).map(stamp_of).collect())
    }

    /// Reads them.
    pub fn read(&self) -> Result<TrustRead, TrustFault> {
        let authorities = self.ca.as_deref().map(|file| certificates("ca", file)).transpose()?.unwrap_or_default();
        let Some((cert, key)) = &self.own else { return Ok(TrustRead { authorities, own: None }) };
        let chain = certificates("cert", cert)?;
        let own = PrivateKeyDer::from_pem_slice(&bytes("key", key)?).map_err(|_| {
            let text = "has no private key in PEM form; write one, not encrypted (`BEGIN PRIVATE KEY`)";
            fault("key", format!("{} {text}", key.display()))
        })?;
        let provider = rustls::crypto::ring::default_provider();
        CertifiedKey::from_der(chain.clone(), own.clone_key(), &provider).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                let (key, cert) = (key.display(), cert.display());
                fault("key", format!("the key in {key} is not that of the certificate in {cert}; put both there anew"))
            }
            error => fault("key", format!("{} cannot be used with the certificate: {error}", key.display())),
        })?;
        Ok(TrustRead { authorities, own: Some((chain, own)) })
    }
}

fn fault(key: &'static str, text: String) -> TrustFault {
    TrustFault { key, text }
}

fn bytes(key: &'static str, file: &Path) -> Result<Vec<u8>, TrustFault> {
    let cannot = |why: String| {
        fault(key, format!("cannot read {}: {why}; name a file in PEM form that this user may read", file.display()))
    };
    let seen = fs::metadata(file).map_err(|error| cannot(error.to_string()))?;
    if !seen.is_file() || seen.len() > FILE_BYTES_MAX {
        return Err(cannot("it is no regular file of at most 1 MiB".to_owned()));
    }
    fs::read(file).map_err(|error| cannot(error.to_string()))
}

fn certificates(key: &'static str, file: &Path) -> Result<Vec<CertificateDer<'static>>, TrustFault> {
    let bytes = bytes(key, file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    found.ok().filter(|found| !found.is_empty()).ok_or_else(|| {
        fault(key, format!("{} has no whole certificate in PEM form (`BEGIN CERTIFICATE`)", file.display()))
    })
}
