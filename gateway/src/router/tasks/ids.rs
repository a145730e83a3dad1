//! Ids of tasks as clients see them: sealed for their owner alone, and the same text each time.
//!
//! The nonce is synthetic: a keyed digest of the owner and of all that is sealed. Equal ids thus give equal texts, and two
//! different ones never share a nonce, which is all that the cipher asks for. `ring` is here already; a cipher with such a mode
//! of its own (AES-SIV) would be one more dependency for the same promise.

use crate::call::caller::Principal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::{hkdf, hmac};
use std::sync::{Arc, OnceLock};

/// What the keys are used for, so that no other use of the same secret has the same ones.
const PURPOSE: &[u8] = b"trunkline task ids 2";
/// The format that ids are in.
const FORMAT: u8 = 2;
/// So much of a digest is a key's number.
const NUMBER: usize = 3;
/// Longer ids are not looked into, and not given out.
const ID_BYTES_MAX: usize = 8192;

/// Where the secrets are found that ids are wrapped with: the first wraps, all unwrap.
#[derive(Clone)]
pub struct Secret(Arc<dyn Fn() -> Vec<Vec<u8>> + Send + Sync>);

impl Secret {
    /// They are looked for once, when the first task is seen.
    pub fn found_by(find: impl Fn() -> Vec<Vec<u8>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(find))
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Wraps the ids of tasks: the same owner and the same own id always give the same text.
pub(crate) struct TaskIds {
    secret: Secret,
    keys: OnceLock<Vec<Keys>>,
}

/// What one secret gives.
struct Keys {
    /// How an id begins that was sealed with them: the format, and their number.
    begins: [u8; 1 + NUMBER],
    /// Makes the nonces.
    nonce: hmac::Key,
    seal: LessSafeKey,
}

impl Keys {
    fn of(secret: &[u8]) -> Self {
        let root = hkdf::Salt::new(hkdf::HKDF_SHA256, PURPOSE).extract(secret);
        let why = "the length is the algorithm's own";
        let nonce = root.expand(&[PURPOSE, b"nonce"], hmac::HMAC_SHA256).map(hmac::Key::from).expect(why);
        let seal = root.expand(&[PURPOSE, b"seal"], &CHACHA20_POLY1305).map(UnboundKey::from).expect(why);
        let mut begins = [FORMAT; 1 + NUMBER];
        begins[1..].copy_from_slice(&hmac::sign(&nonce, b"number").as_ref()[..NUMBER]);
        Self { begins, nonce, seal: LessSafeKey::new(seal) }
    }

    /// The synthetic nonce: of everything that is sealed, and of whom it is sealed for.
    fn nonce(&self, principal: &Principal, plain: &[u8]) -> [u8; NONCE_LEN] {
        let mut seen = hmac::Context::with_key(&self.nonce);
        for part in [principal.name().as_bytes(), plain] {
            seen.update(&(part.len() as u64).to_be_bytes());
            seen.update(part);
        }
        let digest = seen.sign();
        let (nonce, _) = digest.as_ref().split_first_chunk().expect("a digest is longer than a nonce");
        *nonce
    }
}

impl TaskIds {
    pub(crate) fn new(secret: Secret) -> Self {
        Self { secret, keys: OnceLock::new() }
    }

    /// The first seals, all open.
    fn keys(&self) -> &[Keys] {
        self.keys.get_or_init(|| (self.secret.0)().iter().map(|secret| Keys::of(secret)).collect())
    }

    /// Whether the public id of an upstream's own is short enough to be looked into again.
    pub(crate) fn fit(upstream: &str, own: &str) -> bool {
        let sealed = size_of::<u32>() + upstream.len() + own.len() + CHACHA20_POLY1305.tag_len();
        ((1 + NUMBER + NONCE_LEN + sealed) * 4).div_ceil(3) <= ID_BYTES_MAX
    }

    /// The public id of an upstream's own.
    pub(crate) fn close(&self, upstream: &str, principal: &Principal, own: &str) -> String {
        let keys = &self.keys()[0];
        let mut sealed = [&(upstream.len() as u32).to_be_bytes(), upstream.as_bytes(), own.as_bytes()].concat();
        let nonce = keys.nonce(principal, &sealed);
        let whose = Aad::from(principal.name().as_bytes());
        keys.seal
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), whose, &mut sealed)
            .expect("an id is far shorter than the algorithm allows");
        URL_SAFE_NO_PAD.encode([&keys.begins, &nonce[..], &sealed].concat())
    }

    /// Which of the upstreams it leads to, and its own id there. What is another principal's is not there.
    pub(crate) fn open<'a, T>(
        &self,
        public: &str,
        principal: &Principal,
        mut upstreams: impl Iterator<Item = (T, &'a str)>,
    ) -> Option<(T, String)> {
        let coded = Some(public).filter(|public| public.len() <= ID_BYTES_MAX)?;
        let mut bytes = URL_SAFE_NO_PAD.decode(coded).ok()?;
        let (begins, rest) = bytes.split_at_mut_checked(1 + NUMBER)?;
        let keys = self.keys().iter().find(|keys| keys.begins == begins)?;
        let (nonce, sealed) = rest.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let whose = Aad::from(principal.name().as_bytes());
        let plain = keys.seal.open_in_place(nonce, whose, sealed).ok()?;
        let (length, rest) = plain.split_first_chunk()?;
        let (upstream, own) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        let own = std::str::from_utf8(own).ok()?;
        let (member, _) = upstreams.find(|(_, name)| name.as_bytes() == upstream)?;
        Some((member, own.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(secret: &'static [u8]) -> TaskIds {
        TaskIds::new(Secret::found_by(|| vec![secret.to_vec()]))
    }

    #[test]
    fn the_first_key_wraps_and_all_unwrap() {
        let mine = Principal::of_token("m");
        let both = TaskIds::new(Secret::found_by(|| vec![b"new".to_vec(), b"old".to_vec()]));
        let old = made(b"old").close("a", &mine, "7");
        let open = |wrap: &TaskIds, text: &str| wrap.open(text, &mine, ["a"].into_iter().enumerate());
        assert_eq!(open(&both, &old), Some((0, "7".to_owned())));
        let new = both.close("a", &mine, "7");
        assert_eq!((open(&both, &new), open(&made(b"old"), &new)), (Some((0, "7".to_owned())), None));
    }

    #[test]
    fn an_id_is_of_one_upstream_and_one_principal_and_survives_no_change() {
        let (wrap, mine, yours) = (made(b"k"), Principal::named("m"), Principal::named("y"));
        let public = wrap.close("b", &mine, "id \u{e4}");
        assert_eq!(wrap.close("b", &mine, "id \u{e4}"), public);
        let open = |text: &str, who| wrap.open(text, who, ["a", "b"].into_iter().enumerate());
        assert_eq!(open(&public, &mine), Some((1, "id \u{e4}".to_owned())));
        assert_eq!(open(&public, &yours), None);
        assert_eq!(made(b"l").open(&public, &mine, ["b"].into_iter().enumerate()), None);
        let bytes = URL_SAFE_NO_PAD.decode(&public).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&URL_SAFE_NO_PAD.encode(bytes), &mine), None, "bit {bit}");
        }
        for text in ["", "A", "own", "====", "\u{e4}"] {
            assert_eq!(open(text, &mine), None);
        }
    }

    #[test]
    fn every_id_that_fits_opens_again_and_no_longer_one_does() {
        let (wrap, mine) = (made(b"k"), Principal::named("m"));
        let longest = (0..ID_BYTES_MAX).rev().find(|count| TaskIds::fit("a", &"x".repeat(*count))).unwrap();
        for (count, opens) in [(longest, true), (longest + 1, false)] {
            let own = "x".repeat(count);
            let opened = wrap.open(&wrap.close("a", &mine, &own), &mine, ["a"].into_iter().enumerate());
            assert_eq!(opened, opens.then_some((0, own)), "{count}");
        }
    }

    /// It names no upstream and no own id, and what two of them have in common shows nowhere.
    #[test]
    fn nothing_of_an_id_can_be_read_but_that_two_are_the_same() {
        let (wrap, mine, yours) = (made(b"k"), Principal::named("m"), Principal::named("y"));
        let long = "canary-".repeat(20);
        let seen = |upstream, whose, own: &str| URL_SAFE_NO_PAD.decode(wrap.close(upstream, whose, own)).unwrap();
        let bytes = seen("canary-upstream", &mine, &long);
        assert!(!bytes.windows(6).any(|window| window == b"canary"));
        let others = [
            seen("canary-upstream", &yours, &long),
            seen("canary-upstrean", &mine, &long),
            seen("canary-upstrea", &mine, &format!("m{long}")),
            seen("canary-upstream", &mine, &long.replace("y-canary-c", "y-canarz-c")),
        ];
        for other in others {
            assert!(!bytes.windows(8).any(|window| other.windows(8).any(|another| another == window)));
        }
    }
}
