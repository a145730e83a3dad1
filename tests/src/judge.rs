//! The judge: whether every call got its own answer, once; and of a whole run, whether the seven invariants hold.

pub mod history;
pub mod invariants;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::client::Answer;

/// A nonce that no other call has.
#[must_use]
pub fn nonce() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("nonce-{}-{number}", std::process::id())
}

/// The arguments of a call that carries a nonce.
#[must_use]
pub fn arguments(nonce: &str) -> String {
    format!("{{\"nonce\":\"{nonce}\"}}")
}

/// The nonce that an echo gave back.
#[must_use]
pub fn echoed(answer: &Answer) -> Option<String> {
    let result = answer.frame.as_ref()?.result.as_ref()?.get();
    let start = result.find("nonce-")?;
    let rest = &result[start..];
    let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-')?;
    Some(rest[..end].to_owned())
}

/// The count of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls made.
    pub sent: u64,
    /// Answers that carried the nonce of their own call.
    pub own: u64,
    /// Answers that carried another call's nonce.
    pub crossed: u64,
    /// Calls without an answer.
    pub lost: u64,
    /// Nonces that came back more than once.
    pub doubled: u64,
    /// Answers whose id was not byte for byte the one sent.
    pub wrong_ids: u64,
}

/// Takes answers down and counts at the end.
#[derive(Default)]
pub struct Judge {
    tally: Tally,
    seen: HashMap<String, u64>,
}

impl Judge {
    /// Takes down the answer to a call with this id and nonce.
    pub fn hear(&mut self, id: &str, nonce: &str, answer: Option<&Answer>) {
        self.tally.sent += 1;
        let Some(answer) = answer.filter(|answer| answer.frame.is_some()) else {
            self.tally.lost += 1;
            return;
        };
        if answer.id() != id {
            self.tally.wrong_ids += 1;
        }
        match echoed(answer) {
            Some(back) if back == nonce => self.tally.own += 1,
            Some(_) => self.tally.crossed += 1,
            None => self.tally.lost += 1,
        }
        if let Some(back) = echoed(answer) {
            *self.seen.entry(back).or_default() += 1;
        }
    }

    /// As [`Judge::hear`] where calls share an id on one pipe: there only the set of nonces can be right or wrong, so
    /// that an answer to any call that is open counts as one's own.
    pub fn hear_any(&mut self, id: &str, answer: Option<&Answer>) {
        let nonce = answer.and_then(echoed).unwrap_or_default();
        self.hear(id, &nonce, answer);
    }

    /// Joins what another judge heard.
    pub fn join(&mut self, other: Judge) {
        self.tally.sent += other.tally.sent;
        self.tally.own += other.tally.own;
        self.tally.crossed += other.tally.crossed;
        self.tally.lost += other.tally.lost;
        self.tally.wrong_ids += other.tally.wrong_ids;
        for (nonce, count) in other.seen {
            *self.seen.entry(nonce).or_default() += count;
        }
    }

    /// The count.
    #[must_use]
    pub fn tally(&self) -> Tally {
        let doubled = self.seen.values().filter(|count| **count > 1).count() as u64;
        Tally { doubled, ..self.tally }
    }

    /// Panics unless `sent` calls were made and each got its own answer once.
    pub fn assert_clean(&self, sent: u64) {
        assert_eq!(self.tally(), Tally { sent, own: sent, ..Tally::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::{Judge, Tally};
    use crate::client::Answer;
    use crate::frame::Frame;

    fn answer(id: u32, nonce: &str) -> Answer {
        let text = format!(r#"{{"id":{id},"result":{{"content":[{{"text":"{{\"nonce\":\"{nonce}\"}}"}}]}}}}"#);
        Answer { frame: Frame::parse(text.as_bytes()).ok(), ..Answer::default() }
    }

    #[test]
    fn every_kind_of_wrong_is_counted() {
        let mut judge = Judge::default();
        judge.hear("1", "nonce-1-1", Some(&answer(1, "nonce-1-1")));
        judge.hear("1", "nonce-1-2", Some(&answer(1, "nonce-1-1")));
        judge.hear("\"1\"", "nonce-1-3", Some(&answer(1, "nonce-1-3")));
        judge.hear("1", "nonce-1-4", None);
        let expected = Tally { sent: 4, own: 2, crossed: 1, lost: 1, doubled: 1, wrong_ids: 1 };
        assert_eq!(judge.tally(), expected);
    }
}
