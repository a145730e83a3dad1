//! Ids of tasks as clients see them: they lead back to their upstream, for their owner alone.

use crate::call::Principal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use std::sync::{Arc, OnceLock};

/// So much of a digest stands before an upstream's own id.
const TAG: usize = 16;
/// Longer ids are not looked into.
const ID_BYTES_MAX: usize = 4096;

/// Where the secret is found that ids are wrapped with.
#[derive(Clone)]
pub struct Secret(Arc<dyn Fn() -> Vec<u8> + Send + Sync>);

impl Secret {
    /// It is looked for once, when the first task is seen.
    pub fn found_by(find: impl Fn() -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self(Arc::new(find))
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Wraps the ids of tasks: the same owner and the same own id always give the same text.
pub(super) struct Wrap {
    secret: Secret,
    key: OnceLock<hmac::Key>,
}

impl Wrap {
    pub(super) fn new(secret: Secret) -> Self {
        Self { secret, key: OnceLock::new() }
    }

    /// The public id of an upstream's own.
    pub(super) fn close(&self, upstream: &str, principal: &Principal, own: &str) -> String {
        let tag = self.tag(upstream, principal, own);
        URL_SAFE_NO_PAD.encode([&tag.as_ref()[..TAG], own.as_bytes()].concat())
    }

    /// Which of the upstreams it leads to, and its own id there. What is another principal's is not there.
    pub(super) fn open<'a>(
        &self,
        public: &str,
        principal: &Principal,
        mut upstreams: impl Iterator<Item = &'a str>,
    ) -> Option<(usize, String)> {
        let coded = Some(public).filter(|public| public.len() <= ID_BYTES_MAX)?;
        let plain = URL_SAFE_NO_PAD.decode(coded).ok()?;
        let (tag, own) = plain.split_at_checked(TAG)?;
        let own = std::str::from_utf8(own).ok()?;
        let member = upstreams.position(|name| are_equal(&self.tag(name, principal, own).as_ref()[..TAG], tag))?;
        Some((member, own.to_owned()))
    }

    fn tag(&self, upstream: &str, principal: &Principal, own: &str) -> hmac::Tag {
        let mut signed =
            hmac::Context::with_key(self.key.get_or_init(|| hmac::Key::new(hmac::HMAC_SHA256, &(self.secret.0)())));
        for part in ["task", upstream, principal.name(), own] {
            signed.update(&(part.len() as u64).to_be_bytes());
            signed.update(part.as_bytes());
        }
        signed.sign()
    }
}

/// Compares without telling by the time it takes where the two differ.
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |seen, (a, b)| seen | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(secret: &'static [u8]) -> Wrap {
        Wrap::new(Secret::found_by(|| secret.to_vec()))
    }

    #[test]
    fn an_id_is_of_one_upstream_and_one_principal_and_survives_no_change() {
        let (wrap, mine, yours) = (made(b"k"), Principal::named("m"), Principal::named("y"));
        let public = wrap.close("b", &mine, "id \u{e4}");
        assert_eq!(wrap.close("b", &mine, "id \u{e4}"), public);
        let open = |text: &str, who| wrap.open(text, who, ["a", "b"].into_iter());
        assert_eq!(open(&public, &mine), Some((1, "id \u{e4}".to_owned())));
        assert_eq!(open(&public, &yours), None);
        assert_eq!(made(b"l").open(&public, &mine, ["b"].into_iter()), None);
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
}
