//! What was lost with a session at an upstream: its client is told in the first result of the session that came in its place.

use crate::memory::joined;
use crate::protocol::json;
use crate::protocol::value::{Key, Object};
use std::sync::atomic::{AtomicU8, Ordering};

/// The `_meta` key of a result that says so.
const STATE_LOST: &str = "trunkline/state_lost";
/// A larger result is not copied for it: the next one says it.
const RESULT_BYTES_MAX: usize = 1 << 20;

/// Why a session at an upstream is no longer there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Loss {
    /// Another session needed its place.
    MadeRoom = 1,
    /// The upstream no longer knows it.
    ByUpstream = 2,
    /// The gateway was restarted, and the upstream no longer knew it.
    Restart = 3,
    /// The gateway was restarted, and the session goes on without what its client had asked for.
    Wishes = 4,
    /// As [`Self::Restart`]; what its client had asked for is known, and asked for again.
    RestartAlone = 5,
}

impl Loss {
    /// Why, as a program reads it.
    fn reason(self) -> &'static str {
        match self {
            Self::MadeRoom => "max_sessions",
            Self::ByUpstream => "upstream",
            Self::Restart | Self::Wishes | Self::RestartAlone => "restart",
        }
    }

    /// What was kept for the client and is no longer. Where the gateway knows what that had asked for, it sets the log level and subscribes
    /// again.
    fn lost(self) -> &'static str {
        match self {
            Self::MadeRoom | Self::ByUpstream | Self::RestartAlone => r#"["roots","tools"]"#,
            Self::Restart => r#"["roots","tools","subscriptions","log_level"]"#,
            Self::Wishes => r#"["subscriptions","log_level"]"#,
        }
    }

    /// The result, which says that this was lost at an upstream.
    fn told_in(self, upstream: &str, result: Object) -> Object {
        let upstream = json::quote(upstream);
        let (reason, lost) = (self.reason(), self.lost());
        let mut meta =
            format!("{{\"{STATE_LOST}\":{{\"upstream\":{upstream},\"reason\":\"{reason}\",\"lost\":{lost}}}")
                .into_bytes();
        if let Some(before) = result.share(Key::Meta).filter(|meta| meta.starts_with(b"{")) {
            json::others(&before, &[STATE_LOST], &mut meta);
            meta.push(b'}');
            return result.set_by(Key::Meta, &meta, joined);
        }
        meta.push(b'}');
        result.set(Key::Meta, &meta)
    }
}

/// A loss that a client has not been told of.
#[derive(Debug, Default)]
pub struct OwedWord(AtomicU8);

impl OwedWord {
    /// This is to be told, once.
    pub fn owe(&self, loss: Loss) {
        self.0.store(loss as u8, Ordering::Relaxed);
    }

    /// What is to be told; from now on nothing is.
    pub fn take(&self) -> Option<Loss> {
        // Nearly always there is nothing, which costs a call no more than a look.
        if self.0.load(Ordering::Relaxed) == 0 {
            return None;
        }
        match self.0.swap(0, Ordering::Relaxed) {
            1 => Some(Loss::MadeRoom),
            2 => Some(Loss::ByUpstream),
            3 => Some(Loss::Restart),
            4 => Some(Loss::Wishes),
            5 => Some(Loss::RestartAlone),
            _ => None,
        }
    }

    /// Whether something is to be told.
    pub fn is_owed(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// The result, which tells it where that is due.
    pub fn told_in(&self, upstream: &str, result: Object) -> Object {
        if !self.is_owed() || result.raw().len() > RESULT_BYTES_MAX {
            return result;
        }
        match self.take() {
            Some(loss) => loss.told_in(upstream, result),
            None => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(owed: &OwedWord, result: &str) -> String {
        let result = Object::parse(bytes::Bytes::copy_from_slice(result.as_bytes())).unwrap();
        String::from_utf8(owed.told_in("a\"b", result).raw().to_vec()).unwrap()
    }

    #[test]
    fn the_first_result_says_what_was_lost_and_the_next_is_untouched() {
        let owed = OwedWord::default();
        let word = r#""trunkline/state_lost":{"upstream":"a\"b","reason":"upstream","lost":["roots","tools"]}"#;
        for (result, expected) in [
            (r#"{ "content":[1e400] }"#.to_owned(), vec![r#""content":[1e400]"#.to_owned(), word.to_owned()]),
            ("{}".to_owned(), vec![format!("{{\"_meta\":{{{word}}}}}")]),
            (
                r#"{"_meta":{"x/y" : 1.0,"trunkline/state_lost":7},"content":[]}"#.to_owned(),
                vec![format!("\"_meta\":{{{word},\"x/y\" : 1.0}}"), r#""content":[]"#.to_owned()],
            ),
        ] {
            owed.owe(Loss::ByUpstream);
            let first = told(&owed, &result);
            serde_json::from_str::<serde_json::Value>(&first.replace("1e400", "1")).unwrap();
            assert!(expected.iter().all(|part| first.contains(part)), "{first}");
            assert_eq!(told(&owed, &result), result, "it is told once");
        }
    }

    #[test]
    fn a_large_result_is_not_copied_for_it_and_the_next_one_says_it() {
        let owed = OwedWord::default();
        owed.owe(Loss::MadeRoom);
        let large = format!("{{\"content\":\"{}\"}}", "x".repeat(RESULT_BYTES_MAX));
        assert_eq!(told(&owed, &large), large);
        assert!(told(&owed, "{}").contains("max_sessions"));
    }
}
