//! Seals bytes as a text that can neither be read nor altered, with keys made of secrets.

// The secret of this gateway's own that seals what it keeps or hands out.
pub mod state_key;
// The key that seals logins, where it lies in the keyring of the system.
pub mod keyring;
// Texts that are nearly sealed ones, for tests.
#[cfg(any(test, feature = "test-support"))]
pub mod mutants;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::{hkdf, hmac};

/// What the number of a key is made for.
const NUMBER: &[u8] = b"trunkline key number";
/// So much of a digest is a key's number.
const NUMBER_BYTES: usize = 6;
/// How long that is as text.
const NUMBER_CHARS: usize = NUMBER_BYTES * 4 / 3;
/// How long the part of a sealed text is that is random, behind the number of the key and a point.
const NONCE_CHARS: usize = NONCE_LEN * 4 / 3;

/// Random bytes that seal one text.
pub type Once = [u8; NONCE_LEN];

/// Seals with one key, and opens with that and others.
pub struct Sealer(Vec<Key>);

/// A key, and how a text begins that was sealed with it: with the format, and behind that the key's number and a point.
struct Key {
    begins: String,
    key: LessSafeKey,
}

impl Key {
    fn new(secret: &[u8], format: &str, purpose: &[u8]) -> Self {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, purpose).extract(secret);
        let key = salt.expand(&[purpose], &AES_256_GCM).map(UnboundKey::from);
        let number = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), NUMBER);
        let begins = format!("{format}{}.", URL_SAFE_NO_PAD.encode(&number.as_ref()[..NUMBER_BYTES]));
        Self { begins, key: LessSafeKey::new(key.expect("the length is the algorithm's own")) }
    }
}

impl Sealer {
    /// With keys made of secrets, of which there is at least one: the first seals, all open. Texts begin with `format`; `purpose` is what
    /// the keys are used for, so that no other use of the same secrets has the same ones.
    pub fn new(secrets: &[Vec<u8>], format: &str, purpose: &[u8]) -> Self {
        Self(secrets.iter().map(|secret| Key::new(secret, format, purpose)).collect())
    }

    /// The sealed text; `once` is random and never used twice.
    pub fn close(&self, mut bytes: Vec<u8>, once: Once) -> String {
        let Key { begins, key } = &self.0[0];
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(once), Aad::from(begins.as_bytes()), &mut bytes)
            .expect("what is sealed is far shorter than the algorithm allows");
        let mut text = begins.clone();
        URL_SAFE_NO_PAD.encode_string([&once[..], &bytes].concat(), &mut text);
        text
    }

    /// What was sealed; `None` where the text was altered, or sealed with another key.
    pub fn open(&self, text: &str) -> Option<Vec<u8>> {
        let (Key { begins, key }, rest) =
            self.0.iter().find_map(|key| Some((key, text.strip_prefix(&*key.begins)?)))?;
        let mut bytes = URL_SAFE_NO_PAD.decode(rest).ok()?;
        let (once, sealed) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let once = Nonce::try_assume_unique_for_key(once).ok()?;
        key.open_in_place(once, Aad::from(begins.as_bytes()), sealed).ok().map(|open| open.to_vec())
    }

    /// How a text begins that this seals.
    #[cfg(any(test, feature = "test-support"))]
    pub fn begins(&self) -> &str {
        &self.0[0].begins
    }
}

/// The random part of a text of this format: no two texts that were sealed have the same.
pub fn random_part<'a>(text: &'a str, format: &str) -> Option<&'a str> {
    text.strip_prefix(format)?.get(NUMBER_CHARS + 1..NUMBER_CHARS + 1 + NONCE_CHARS)
}
