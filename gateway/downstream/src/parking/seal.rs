//! Seals what a stateless client carries for us: it can neither be read nor altered, and holds until a time.

use crate::call::caller::Principal;
use crate::protocol::frame::Method;
use crate::secrets::sealer::{Once, Sealer};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// How every text begins that a gateway of ours has sealed, in whatever format.
pub(crate) const PREFIX: &str = "trunkline-";
/// How one begins that was sealed in this format: what follows is the key's number and, behind a point, the sealed bytes.
const FORMAT: &str = "trunkline-2.";
/// What the key is used for, so that no other use of the same secret has the same one.
const PURPOSE: &[u8] = b"trunkline requestState 2";

/// What is sealed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State {
    /// The request that it was given out for.
    pub(crate) bond: Bond,
    /// The upstream that asks.
    pub(crate) upstream: Arc<str>,
    /// Until when it holds, counted from 1970.
    pub(crate) expires: Duration,
    /// What it leads back to.
    pub(crate) way: Way,
}

/// The request that a state belongs to: nobody else's, and no other one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bond {
    pub(crate) principal: Principal,
    pub(crate) method: Method,
    /// Of its parameters.
    pub(crate) digest: [u8; 32],
}

/// What a state leads back to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Way {
    /// A call that is kept here.
    Kept {
        /// This run of the gateway.
        instance: u64,
        /// The call in its table.
        id: u64,
    },
    /// The upstream's own state, raw.
    Passed(Bytes),
}

/// Why a text is no state of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unopened {
    /// It does not look like one.
    Foreign,
    /// It looks like one, and was altered or sealed with another key.
    Broken,
}

/// Seals with one key, and opens with that and others.
pub(crate) struct Seal(Sealer);

impl Seal {
    /// With keys made of secrets, of which there is at least one: the first seals, all open.
    pub(crate) fn new(secrets: &[Vec<u8>]) -> Self {
        Self(Sealer::new(secrets, FORMAT, PURPOSE))
    }

    /// The sealed text; `once` is random and never used twice.
    pub(crate) fn close(&self, state: &State, once: Once) -> String {
        self.0.close(state.write(), once)
    }

    /// What was sealed, whether it still holds or not.
    pub(crate) fn open(&self, text: &str) -> Result<State, Unopened> {
        if !text.starts_with(PREFIX) {
            return Err(Unopened::Foreign);
        }
        self.0.open(text).and_then(|open| State::read(&open)).ok_or(Unopened::Broken)
    }
}

impl State {
    /// Whether its time is over; `now` is counted from 1970.
    pub(crate) fn has_expired(&self, now: Duration) -> bool {
        now >= self.expires
    }

    fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(&(self.expires.as_millis() as u64).to_be_bytes());
        out.extend_from_slice(&self.bond.digest);
        for text in [self.bond.principal.name(), self.bond.method.as_str(), &self.upstream] {
            out.extend_from_slice(&(text.len() as u32).to_be_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        match &self.way {
            Way::Kept { instance, id } => {
                out.push(0);
                out.extend_from_slice(&instance.to_be_bytes());
                out.extend_from_slice(&id.to_be_bytes());
            }
            Way::Passed(state) => {
                out.push(1);
                out.extend_from_slice(state);
            }
        }
        out
    }

    fn read(mut from: &[u8]) -> Option<Self> {
        let expires = Duration::from_millis(number(&mut from)?);
        let digest = take(&mut from, 32)?.try_into().ok()?;
        let principal = text(&mut from)?;
        // Nobody's name is empty but that of whoever needs none.
        let principal = if principal.is_empty() { Principal::anonymous() } else { Principal::named(principal) };
        let method = Method::parse(text(&mut from)?);
        let upstream = text(&mut from)?.into();
        let way = match take(&mut from, 1)? {
            [0] => Way::Kept { instance: number(&mut from)?, id: number(&mut from)? },
            _ => Way::Passed(Bytes::copy_from_slice(from)),
        };
        Some(Self { bond: Bond { principal, method, digest }, upstream, expires, way })
    }
}

fn take<'a>(from: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(taken)
}

fn number(from: &mut &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(take(from, 8)?.try_into().ok()?))
}

fn text<'a>(from: &mut &'a [u8]) -> Option<&'a str> {
    let length = u32::from_be_bytes(take(from, 4)?.try_into().ok()?);
    std::str::from_utf8(take(from, length as usize)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use proptest::prelude::*;

    const NOW: Duration = Duration::from_secs(1_800_000_000);

    fn state(principal: &str, way: Way) -> State {
        let principal = if principal.is_empty() { Principal::anonymous() } else { Principal::named(principal) };
        let bond = Bond { principal, method: Method::ToolsCall, digest: [7; 32] };
        State { bond, upstream: "canary-upstream".into(), expires: NOW + Duration::from_secs(60), way }
    }

    fn seal() -> Seal {
        Seal::new(&[b"0123456789abcdef0123456789abcdef".to_vec()])
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

        #[test]
        fn what_is_sealed_is_opened_unchanged(principal in "\\PC{0,20}", inner: Vec<u8>, id: u64, instance: u64, nonce: [u8; 12]) {
            for way in [Way::Kept { instance, id }, Way::Passed(inner.clone().into())] {
                let state = state(&principal, way);
                let text = seal().close(&state, nonce);
                prop_assert!(text.starts_with(PREFIX) && text.bytes().all(|byte| byte.is_ascii_graphic()));
                prop_assert_eq!(seal().open(&text), Ok(state));
            }
        }

        #[test]
        fn no_flipped_bit_and_no_cut_survives(at: prop::sample::Index, bit in 0..7u8, inner in "[ -~]{0,40}") {
            let text = seal().close(&state("canary-name", Way::Passed(inner.into())), [9; 12]);
            let mut flipped = text.clone().into_bytes();
            let at = at.index(flipped.len());
            flipped[at] ^= 1 << bit;
            let flipped = String::from_utf8(flipped).unwrap();
            prop_assert!(seal().open(&flipped).is_err());
            prop_assert!(seal().open(&text[..at]).is_err());
            prop_assert_eq!(seal().open(&text).is_ok(), true);
        }

        #[test]
        fn nothing_is_opened_that_was_not_sealed(text in "\\PC{0,80}", bytes: Vec<u8>) {
            prop_assert_eq!(seal().open(&text), Err(Unopened::Foreign));
            let (coded, begins) = (URL_SAFE_NO_PAD.encode(bytes), seal().0.begins().to_owned());
            for claimed in [format!("{PREFIX}{coded}"), format!("trunkline-1.{coded}"), format!("{begins}{coded}")] {
                prop_assert_eq!(seal().open(&claimed), Err(Unopened::Broken));
            }
        }
    }

    #[test]
    fn nothing_of_it_can_be_read() {
        let text = seal().close(&state("canary-name", Way::Passed("\"canary-state\"".into())), [1; 12]);
        let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(seal().0.begins()).unwrap()).unwrap();
        let shown = [text.as_bytes(), &bytes].concat();
        for word in ["canary", "tools/call"] {
            assert!(!shown.windows(word.len()).any(|window| window == word.as_bytes()), "{word}");
        }
        assert!(!shown.windows(4).any(|window| window == [7; 4]));
    }

    #[test]
    fn it_holds_until_its_time_and_for_its_key_alone() {
        let state = state("", Way::Kept { instance: 1, id: 2 });
        let text = seal().close(&state, [3; 12]);
        let opened = seal().open(&text).unwrap();
        let is_over = |seconds| opened.has_expired(NOW + Duration::from_secs(seconds));
        assert_eq!((is_over(59), is_over(60), &opened), (false, true, &state));
        assert_eq!(Seal::new(&[b"another key".to_vec()]).open(&text), Err(Unopened::Broken));
    }

    #[test]
    fn the_first_key_seals_and_all_open_by_the_number_that_a_text_names() {
        let [old, new] = [b"the old key".to_vec(), b"the new key".to_vec()];
        let state = state("token:alice", Way::Kept { instance: 1, id: 2 });
        let (before, after) = (Seal::new(std::slice::from_ref(&old)), Seal::new(&[new.clone(), old]));
        let (first, second) = (before.close(&state, [1; 12]), after.close(&state, [2; 12]));
        assert_eq!((after.open(&first), after.open(&second)), (Ok(state.clone()), Ok(state.clone())));
        assert_eq!(before.open(&second), Err(Unopened::Broken));
        assert_eq!(Seal::new(&[new]).open(&second), Ok(state));
        let number = |text: &str| text.split('.').nth(1).map(str::to_owned);
        assert!(first.starts_with("trunkline-2.") && number(&first) != number(&second));
        let renamed = format!("{}{}", after.0.begins(), first.rsplit('.').next().unwrap());
        assert_eq!(after.open(&renamed), Err(Unopened::Broken), "the number is sealed too");
    }
}
