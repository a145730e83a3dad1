//! The keys of an authorization server: bounded, each with the tokens that it has signed.

use super::signatures;
use crate::call::caller::credential::Revocation;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// The most keys that are kept; a server that has more is one that lies.
const KEYS_MAX: usize = 64;

/// One key.
pub(super) struct Key {
    /// Its name, where it has one.
    pub(super) id: Option<String>,
    /// What it signs by.
    algorithms: Vec<Algorithm>,
    pub(super) decoding: DecodingKey,
    print: [u8; 32],
    /// What counts as long as the key does.
    pub(super) counts: Revocation,
}

/// All that are known now.
#[derive(Default)]
pub(super) struct KeySet(Vec<Key>);

#[derive(Deserialize)]
struct Document {
    keys: Vec<serde_json::Value>,
}

impl KeySet {
    /// Reads a JSON Web Key Set. What was known `before` stays the same; what is there no more is revoked, with all that it has signed.
    pub(super) fn read(body: &[u8], above: &Revocation, before: Option<&Self>) -> Result<Self, String> {
        signatures::install();
        let document: Document =
            serde_json::from_slice(body).map_err(|_| "what it has for its keys is no JSON Web Key Set".to_owned())?;
        if document.keys.len() > KEYS_MAX {
            return Err(format!("it has more than {KEYS_MAX} keys"));
        }
        // Keys of kinds that nobody knows here stand beside the others.
        let keys: Vec<Key> = document.keys.into_iter().filter_map(|key| Key::of(key, above)).collect();
        if keys.is_empty() {
            return Err("none of its keys can be used: RSA, EC with P-256 or P-384, or Ed25519 are".to_owned());
        }
        let mut now = Self(keys);
        for old in before.map(|before| &before.0[..]).unwrap_or_default() {
            match now.0.iter_mut().find(|key| key.print == old.print) {
                Some(same) => same.counts = old.counts.clone(),
                None => old.counts.revoke(),
            }
        }
        Ok(now)
    }

    /// Those that may have signed a token that names this key, or none.
    pub(super) fn of<'a>(&'a self, id: Option<&'a str>, algorithm: Algorithm) -> impl Iterator<Item = &'a Key> {
        let fits = move |key: &&Key| id.is_none_or(|id| key.id.as_deref() == Some(id));
        self.0.iter().filter(fits).filter(move |key| key.algorithms.contains(&algorithm))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Key {
    fn of(value: serde_json::Value, above: &Revocation) -> Option<Self> {
        let key: Jwk = serde_json::from_value(value).ok()?;
        if !matches!(key.common.public_key_use, None | Some(PublicKeyUse::Signature)) {
            return None;
        }
        let of_kind: &[Algorithm] = match &key.algorithm {
            AlgorithmParameters::RSA(_) => &[
                Algorithm::RS256,
                Algorithm::RS384,
                Algorithm::RS512,
                Algorithm::PS256,
                Algorithm::PS384,
                Algorithm::PS512,
            ],
            AlgorithmParameters::EllipticCurve(of) if of.curve == EllipticCurve::P256 => &[Algorithm::ES256],
            AlgorithmParameters::EllipticCurve(of) if of.curve == EllipticCurve::P384 => &[Algorithm::ES384],
            AlgorithmParameters::OctetKeyPair(of) if of.curve == EllipticCurve::Ed25519 => &[Algorithm::EdDSA],
            // A secret is no key that anybody may read.
            _ => return None,
        };
        let algorithms = match key.common.key_algorithm {
            Some(said) => {
                let said = Algorithm::try_from(said).ok().filter(|said| of_kind.contains(said))?;
                vec![said]
            }
            None => of_kind.to_vec(),
        };
        let decoding = DecodingKey::from_jwk(&key).ok()?;
        let print = Sha256::digest(serde_json::to_vec(&(&key.common.key_id, &key.algorithm)).ok()?).into();
        Some(Self { id: key.common.key_id, algorithms, decoding, print, counts: above.below() })
    }
}
