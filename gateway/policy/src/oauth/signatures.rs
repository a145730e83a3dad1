//! Signatures, by `ring`: what `jsonwebtoken` computes with.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature as by;

static BY_RING: CryptoProvider =
    CryptoProvider { signer_factory: signer, verifier_factory: verifier, key_utils: KeyUtils::new_unimplemented() };

/// From now on signatures can be judged.
pub(super) fn install() {
    // Whoever was first has installed the same.
    let _is_first = BY_RING.install_default();
}

/// Nothing is signed here.
fn signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    // A key of one kind is never used by the algorithm of another.
    match key.family() == algorithm.family() {
        true => Ok(Box::new(Signed { algorithm: *algorithm, key: key.clone() })),
        false => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

/// Something signed with a key.
struct Signed {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for Signed {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for Signed {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), signature::Error> {
        let judged = match (self.algorithm, self.key.kind()) {
            (algorithm, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                let [n, e] = [n, e].map(|number| {
                    let zeros = number.iter().take_while(|byte| **byte == 0).count();
                    &number[zeros..]
                });
                let Some(kind) = rsa(algorithm) else { return Err(signature::Error::new()) };
                by::RsaPublicKeyComponents { n, e }.verify(kind, message, signature)
            }
            (algorithm, DecodingKeyKind::SecretOrDer(point)) => {
                let kind: &dyn by::VerificationAlgorithm = match algorithm {
                    Algorithm::ES256 => &by::ECDSA_P256_SHA256_FIXED,
                    Algorithm::ES384 => &by::ECDSA_P384_SHA384_FIXED,
                    Algorithm::EdDSA => &by::ED25519,
                    _ => return Err(signature::Error::new()),
                };
                by::UnparsedPublicKey::new(kind, point).verify(message, signature)
            }
        };
        judged.map_err(|_| signature::Error::new())
    }
}

/// Keys of fewer than 2048 bits are not taken.
fn rsa(algorithm: Algorithm) -> Option<&'static by::RsaParameters> {
    Some(match algorithm {
        Algorithm::RS256 => &by::RSA_PKCS1_2048_8192_SHA256,
        Algorithm::RS384 => &by::RSA_PKCS1_2048_8192_SHA384,
        Algorithm::RS512 => &by::RSA_PKCS1_2048_8192_SHA512,
        Algorithm::PS256 => &by::RSA_PSS_2048_8192_SHA256,
        Algorithm::PS384 => &by::RSA_PSS_2048_8192_SHA384,
        Algorithm::PS512 => &by::RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}
