//! Random values of a login: the proof key of its code, and its state.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// A proof key for code exchange (RFC 7636).
pub(super) struct ProofKey(String);

impl ProofKey {
    /// Makes a random key.
    pub(super) fn random() -> Self {
        Self(random())
    }

    /// The verifier, which is shown when the code is exchanged.
    pub(super) fn verifier(&self) -> &str {
        &self.0
    }

    /// The challenge, by the method `S256`.
    pub(super) fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(&self.0))
    }
}

/// A random text of 32 bytes that a URL can carry.
pub(super) fn random() -> String {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the system's random source does not fail once it has worked");
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7636, appendix B.
    #[test]
    fn challenge_is_the_hash_of_the_verifier() {
        let key = ProofKey("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned());
        assert_eq!(key.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        let (one, other) = (ProofKey::random(), ProofKey::random());
        assert!(one.0 != other.0 && one.0.len() == 43, "RFC 7636 requires 43 to 128 characters");
    }
}
