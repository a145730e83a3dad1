//! What an upstream is secured with besides the authorities of the platform: files in PEM form.

use crate::secrets::pem;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::SystemTime;

/// The files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trust {
    /// Authorities that are trusted besides those of the platform.
    pub ca: Option<PathBuf>,
    /// A certificate that the upstream is shown, and its key.
    pub own: Option<(PathBuf, PathBuf)>,
    /// Whether no HTTP/2 is offered.
    pub http1_alone: bool,
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
        let certificates = |key, file: &PathBuf| pem::certificates(file).map_err(|text| TrustFault { key, text });
        let authorities = self.ca.as_ref().map(|file| certificates("ca", file)).transpose()?.unwrap_or_default();
        let Some((cert, key)) = &self.own else { return Ok(TrustRead { authorities, own: None }) };
        let chain = certificates("cert", cert)?;
        let of_key = |text| TrustFault { key: "key", text };
        let own = pem::key(key).map_err(of_key)?;
        let provider = rustls::crypto::ring::default_provider();
        CertifiedKey::from_der(chain.clone(), own.clone_key(), &provider)
            .map_err(|error| of_key(pem::misfit(&error, key, cert)))?;
        Ok(TrustRead { authorities, own: Some((chain, own)) })
    }
}
