//! Certificates and keys in files of PEM form. An error says what is wrong with a file and what to do, and is none of its bytes.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs;
use std::path::Path;

/// The most bytes of a file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The certificates in a file, of which there is one at least.
pub fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes = bytes(file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    found
        .ok()
        .filter(|found| !found.is_empty())
        .ok_or_else(|| format!("{} has no whole certificate in PEM form (`BEGIN CERTIFICATE`)", file.display()))
}

/// The private key in a file.
pub fn key(file: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(&bytes(file)?).map_err(|_| {
        let text = "has no private key in PEM form; write one, not encrypted (`BEGIN PRIVATE KEY`)";
        format!("{} {text}", file.display())
    })
}

/// What is wrong with a key and a certificate that were read from these files.
pub fn misfit(error: &rustls::Error, key: &Path, cert: &Path) -> String {
    match error {
        rustls::Error::InconsistentKeys(_) => {
            let (key, cert) = (key.display(), cert.display());
            format!("the key in {key} is not that of the certificate in {cert}; put both there anew")
        }
        error => format!("{} cannot be used with the certificate: {error}", key.display()),
    }
}

fn bytes(file: &Path) -> Result<Vec<u8>, String> {
    let cannot =
        |why: String| format!("cannot read {}: {why}; name a file in PEM form that this user may read", file.display());
    let seen = fs::metadata(file).map_err(|error| cannot(error.to_string()))?;
    if !seen.is_file() || seen.len() > FILE_BYTES_MAX {
        return Err(cannot("it is no regular file of at most 1 MiB".to_owned()));
    }
    fs::read(file).map_err(|error| cannot(error.to_string()))
}
