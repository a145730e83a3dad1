//! Ids of sessions that say, sealed, what a gateway needs to go on with the session after a restart.

// Marks that outlive the run: of sessions that have ended, of runs that gave out ids.
mod marks;

use crate::call::caller::Principal;
use crate::config::{Config, SigningKey};
use crate::edge::Asks;
use crate::edge::client_era::Who;
use crate::parking::key;
use crate::protocol::revision::Revision;
use crate::secrets::sealer::{Sealer, random_part};
use bytes::Bytes;
use std::path::PathBuf;
use std::sync::{Once, OnceLock};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

pub(crate) use marks::Marks;

/// The file of the runs that have given out ids, in the folder of our state.
const RUNS: &str = "runs";
/// How a sealed id begins.
const FORMAT: &str = "trunkline-s1.";
/// What its key is used for.
const PURPOSE: &[u8] = b"trunkline session id 1";
/// A longer id is not given out: proxies bound all headers of a request together at 4 to 8 KiB. A client that declares more has an id
/// that means nothing after a restart.
pub(crate) const ID_CHARS_MAX: usize = 1000;
/// So long after its handshake a session can be revived. Its id stays what it was then.
const HOLDS: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Gives sealed ids out, and reads those of other runs.
pub(crate) struct SealedIds {
    configured: Vec<SigningKey>,
    folder: Option<PathBuf>,
    /// Its key is looked for at the first handshake; `None` where no key outlives the process.
    sealer: OnceLock<Option<Sealer>>,
    /// One moment on both clocks.
    began: (Instant, Duration),
    /// This run of the gateway: what it has sealed, and does not know, has ended.
    run: [u8; 8],
    /// The runs that have given out ids with this folder: of a session of another one nothing is known here.
    runs: Marks,
    /// That it gives out ids is kept before the first one.
    is_kept: Once,
}

impl SealedIds {
    pub(crate) fn new(config: &Config) -> Self {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            configured: config.session.signing_keys.clone(),
            folder: config.state_folder.clone(),
            sealer: OnceLock::new(),
            began: (Instant::now(), since_1970),
            run: key::random(),
            runs: Marks::kept_in(config.state_folder.as_deref(), RUNS),
            is_kept: Once::new(),
        }
    }

    /// The id of a session that is opened now; `None` where it would be too long, or where no key outlives the process.
    pub(crate) fn give_out(&self, who: &Who, asks: &Asks) -> Option<String> {
        let expires = (self.now() + HOLDS).as_millis() as u64;
        let mut bytes = Vec::with_capacity(128 + asks.capabilities.len());
        bytes.extend_from_slice(&self.run);
        bytes.extend_from_slice(&expires.to_be_bytes());
        bytes.push(u8::from(asks.is_dialect));
        for text in [who.principal.name(), asks.revision.as_str(), &asks.client] {
            bytes.extend_from_slice(&u16::try_from(text.len()).ok()?.to_be_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes.extend_from_slice(&asks.capabilities);
        if bytes.len() > ID_CHARS_MAX {
            return None;
        }
        let id = Some(self.sealer()?.close(bytes, key::random())).filter(|id| id.len() <= ID_CHARS_MAX)?;
        self.is_kept.call_once(|| {
            if let Err(error) = self.runs.keep(&mark(self.run)) {
                tracing::debug!(%error, "the run leaves no mark: the next one takes what its sessions had for lost");
            }
        });
        Some(id)
    }

    /// What the session of an id asked for in its handshake, where another run has opened it for this principal, and it still holds; and whether
    /// that run was one of this folder, so that what it kept of the session is to be found.
    pub(crate) fn read(&self, id: &str, principal: &Principal) -> Option<(Asks, bool)> {
        if id.len() > ID_CHARS_MAX || !id.starts_with(FORMAT) {
            return None;
        }
        let bytes = self.sealer()?.open(id)?;
        let mut from = &bytes[..];
        let run: [u8; 8] = take(&mut from, 8)?.try_into().ok()?;
        let expires = Duration::from_millis(u64::from_be_bytes(take(&mut from, 8)?.try_into().ok()?));
        let is_dialect = take(&mut from, 1)? == [1];
        let [whose, revision, client] = [text(&mut from)?, text(&mut from)?, text(&mut from)?];
        let revision = Revision::parse(revision).filter(|revision| !revision.is_modern())?;
        if run == self.run || self.now() >= expires || whose != principal.name() {
            return None;
        }
        let asks = Asks { revision, is_dialect, capabilities: Bytes::copy_from_slice(from), client: client.into() };
        Some((asks, self.runs.are_kept() && self.runs.has(&mark(run))))
    }

    fn now(&self) -> Duration {
        let (began, since_1970) = self.began;
        since_1970 + began.elapsed()
    }

    fn sealer(&self) -> Option<&Sealer> {
        let made = || Some(Sealer::new(&key::lasting(&self.configured, self.folder.as_deref())?, FORMAT, PURPOSE));
        self.sealer.get_or_init(made).as_ref()
    }
}

/// What a run leaves behind.
fn mark(run: [u8; 8]) -> String {
    format!("{:016x}", u64::from_be_bytes(run))
}

/// What an id is known by here: short, and of one session alone.
pub(crate) fn short(id: &str) -> &str {
    random_part(id, FORMAT).unwrap_or(id)
}

fn take<'a>(from: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(taken)
}

fn text<'a>(from: &mut &'a [u8]) -> Option<&'a str> {
    let length = u16::from_be_bytes(take(from, 2)?.try_into().ok()?);
    std::str::from_utf8(take(from, length.into())?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::sealer::mutants::Mutants;

    fn ids(key: &str) -> SealedIds {
        let mut config = Config::default();
        config.session.signing_keys = vec![SigningKey::new(key.repeat(32)).unwrap()];
        SealedIds::new(&config)
    }

    fn who(name: &str) -> Who {
        let principal = if name.is_empty() { Principal::anonymous() } else { Principal::named(name) };
        Who::of(principal)
    }

    fn asks(capabilities: &str) -> Asks {
        let capabilities = Bytes::copy_from_slice(capabilities.as_bytes());
        Asks { revision: Revision::V2025_06_18, is_dialect: false, capabilities, client: "a client 1".into() }
    }

    #[tokio::test(start_paused = true)]
    async fn another_run_with_the_same_key_reads_what_was_asked_for_until_it_no_longer_holds() {
        let (before, after) = (ids("k"), ids("k"));
        for name in ["", "ann"] {
            let id = before.give_out(&who(name), &asks(r#"{"roots":{}}"#)).unwrap();
            let (read, is_of_this_folder) = after.read(&id, &who(name).principal).unwrap();
            assert!(!is_of_this_folder, "there is none");
            assert_eq!((read.revision, &*read.client), (Revision::V2025_06_18, "a client 1"));
            assert_eq!((&read.capabilities[..], read.is_dialect), (&br#"{"roots":{}}"#[..], false));
            assert!(id.len() < 250 && id.bytes().all(|byte| byte.is_ascii_graphic()), "{}: {id}", id.len());
            assert!(before.read(&id, &who(name).principal).is_none(), "what a run does not know of its own has ended");
            assert!(after.read(&id, &who("bob").principal).is_none());
            assert!(ids("other").read(&id, &who(name).principal).is_none());
        }
        let id = before.give_out(&who("ann"), &asks("{}")).unwrap();
        tokio::time::advance(HOLDS - Duration::from_secs(1)).await;
        assert!(after.read(&id, &who("ann").principal).is_some());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(after.read(&id, &who("ann").principal).is_none());
    }

    #[test]
    fn whether_a_run_had_this_folder_is_known_by_the_next_ones() {
        let folder = std::env::temp_dir().join(format!("trunkline-runs-{}", std::process::id()));
        let of = |folder: Option<&PathBuf>| {
            let mut config = Config { state_folder: folder.cloned(), ..Config::default() };
            config.session.signing_keys = vec![SigningKey::new("k".repeat(32)).unwrap()];
            SealedIds::new(&config)
        };
        let ids: Vec<_> = [Some(&folder), Some(&folder), None]
            .map(|folder| of(folder).give_out(&who("a"), &asks("{}")).unwrap())
            .into();
        let next = of(Some(&folder));
        let known = ids.iter().map(|id| next.read(id, &who("a").principal).unwrap().1).collect::<Vec<_>>();
        assert_eq!(known, [true, true, false]);
        assert!(!of(None).read(&ids[0], &who("a").principal).unwrap().1);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn no_altered_id_is_read_and_nothing_can_be_read_from_one() {
        let id = ids("k").give_out(&who("canary"), &asks(r#"{"roots":{}}"#)).unwrap();
        let reader = ids("k");
        for at in 0..id.len() {
            for bit in 0..7 {
                let mut altered = id.clone().into_bytes();
                altered[at] ^= 1 << bit;
                let altered = String::from_utf8(altered).unwrap();
                assert!(reader.read(&altered, &who("canary").principal).is_none(), "{at}");
            }
            assert!(reader.read(&id[..at], &who("canary").principal).is_none(), "{at}");
        }
        assert!(reader.read(&format!("{id}A"), &who("canary").principal).is_none());
        assert!(reader.read(&id, &who("canary").principal).is_some());
        assert!(!id.contains("canary") && !id.contains("roots"));
    }

    #[test]
    fn of_a_million_ids_that_are_made_from_good_ones_none_is_read() {
        const MUTANTS: usize = 1_000_000;
        let ann = who("ann").principal;
        let (before, elsewhere) = (ids("k"), ids("o"));
        let declares = |ids: &SealedIds, what: &str| ids.give_out(&who("ann"), &asks(what)).unwrap();
        let good = [declares(&before, "{}"), declares(&before, r#"{"roots":{}}"#), declares(&elsewhere, "{}")];
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let read = |share: usize| {
            let (reader, mutants) = (ids("k"), Mutants::new(good.iter().map(|id| &**id), share as u64));
            mutants.take(MUTANTS / threads + 1).filter(|id| reader.read(id, &ann).is_some()).count()
        };
        let read: usize = std::thread::scope(|scope| {
            let read = &read;
            let shares: Vec<_> = (0..threads).map(|share| scope.spawn(move || read(share))).collect();
            shares.into_iter().map(|share| share.join().unwrap()).sum()
        });
        assert_eq!(read, 0);
        assert!(good[..2].iter().all(|id| ids("k").read(id, &ann).is_some()), "what they were made from is good");
    }

    #[test]
    fn a_client_that_declares_much_has_an_id_that_ends_with_the_run() {
        let ids = ids("k");
        let declares = |bytes: usize| ids.give_out(&who("ann"), &asks(&format!("{{\"x\":\"{}\"}}", "y".repeat(bytes))));
        assert!(declares(500).is_some_and(|id| id.len() <= ID_CHARS_MAX));
        assert_eq!((declares(700), declares(8000)), (None, None));
        assert!(ids.give_out(&who(&"n".repeat(70_000)), &asks("{}")).is_none());
        assert!(SealedIds::new(&Config::default()).give_out(&who(""), &asks("{}")).is_none(), "no key outlives it");
    }

    #[test]
    fn an_id_is_known_by_the_part_that_no_other_has() {
        let ids = ids("k");
        let [one, other] = [(); 2].map(|()| ids.give_out(&who("ann"), &asks("{}")).unwrap());
        assert_ne!(short(&one), short(&other));
        assert_eq!((short(&one).len(), short("an-id-of-old")), (16, "an-id-of-old"));
        assert_eq!(short("trunkline-s1.x"), "trunkline-s1.x");
    }
}
