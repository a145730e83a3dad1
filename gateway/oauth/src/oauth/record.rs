//! What is kept of a login.

// Whose it is.
mod account;

pub(super) use account::{Whose, account};

use crate::config::Registered;
use crate::secrets::mask;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// So long before its end a token is refreshed, or a fifth of its time where that is less.
const AHEAD: Duration = Duration::from_secs(60);
/// No access token is said to last longer.
const LASTS_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// The most scopes that an upstream can ask for, one after the other, their bytes together, and the longest one.
const SCOPES_MAX: usize = 32;
const SCOPES_BYTES_MAX: usize = 2048;
const SCOPE_BYTES_MAX: usize = 256;

/// The scopes in what an upstream says, as many as are taken.
pub(super) fn scopes_of(text: &str) -> Vec<String> {
    scopes_among(text.split_ascii_whitespace())
}

/// The scopes among these texts (RFC 6749, 3.3), as many as are taken.
pub(super) fn scopes_among<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut scopes: Vec<String> = Vec::new();
    for scope in texts.filter(|text| is_scope(text)) {
        if !scopes.iter().any(|known| known == scope) {
            scopes.push(scope.to_owned());
            if !are_few(&scopes) {
                scopes.pop();
                break;
            }
        }
    }
    scopes
}

/// Whether a text is a scope. What would end a quotation of it is none, and neither is what quotes a secret.
fn is_scope(text: &str) -> bool {
    let is_of_it = |byte: u8| byte.is_ascii_graphic() && !b"\"\\`".contains(&byte);
    !text.is_empty() && text.len() <= SCOPE_BYTES_MAX && text.bytes().all(is_of_it) && mask::masked(text) == text
}

fn are_few(scopes: &[String]) -> bool {
    scopes.len() <= SCOPES_MAX && scopes.iter().map(String::len).sum::<usize>() <= SCOPES_BYTES_MAX
}

/// A login: its tokens, and who gives the next ones to whom. There is no way to show it: most of it is secret.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The name of the upstream: a login is for that one alone.
    pub(super) upstream: String,
    /// The upstream as a resource, as the configuration has it: tokens are shown to that one alone.
    pub(super) resource: String,
    /// The same as the authorization server is told.
    pub(super) audience: String,
    /// The principal whose login it is, where it is not that of all.
    #[serde(default)]
    pub(super) principal: Option<String>,
    /// Which login it is: another one each time that a person logs in, and the same however often it is refreshed.
    #[serde(default)]
    pub(super) made: String,
    /// Whose account it is at the authorization server, where that has said so.
    #[serde(default)]
    pub(super) account: Option<String>,
    /// Who gave the tokens: only that one is shown the refresh token.
    pub(super) issuer: String,
    pub(super) token_endpoint: String,
    /// Where tokens are made good for nothing (RFC 7009).
    #[serde(default)]
    pub(super) revocation_endpoint: Option<String>,
    pub(super) client_id: String,
    pub(super) client_secret: Option<String>,
    pub(super) is_in_body: bool,
    /// Whether the authorization server knows the client by its own registration, and not by the configuration.
    pub(super) is_registered: bool,
    pub(super) scopes: Vec<String>,
    /// What the upstream has asked for beyond them: the next login asks for it, too.
    #[serde(default)]
    pub(super) wanted: Vec<String>,
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    /// When the access token was given, and when it ends, in milliseconds of Unix time.
    pub(super) given: u64,
    pub(super) ends: Option<u64>,
}

/// What a person has logged in to.
#[derive(Debug)]
pub struct LoggedIn {
    /// Who gave the tokens.
    pub issuer: String,
    /// What they allow, as far as that is known.
    pub scopes: Vec<String>,
    /// How long the access token still lasts, where that is known.
    pub lasts: Option<Duration>,
    /// Whether it is followed by others without a person.
    pub is_refreshed: bool,
}

impl From<&Record> for LoggedIn {
    fn from(record: &Record) -> Self {
        Self {
            issuer: record.issuer.clone(),
            scopes: record.scopes.clone(),
            lasts: record.left(),
            is_refreshed: record.refresh.is_some(),
        }
    }
}

impl Record {
    /// Who the gateway is at the authorization server.
    pub(super) fn client(&self) -> Registered {
        Registered { id: self.client_id.clone(), secret: self.client_secret.clone(), is_in_body: self.is_in_body }
    }

    /// Which login it is, and whose.
    pub(super) fn whose(&self) -> Whose {
        Whose { made: self.made.clone(), issuer: self.issuer.clone(), account: self.account.clone() }
    }

    /// How long the access token can still be used; `None` where that is not known.
    pub(super) fn left(&self) -> Option<Duration> {
        self.ends.map(|ends| Duration::from_millis(ends.saturating_sub(now())))
    }

    /// Whether the access token has ended.
    pub(super) fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// Whether the access token is to be refreshed before it is used.
    pub(super) fn is_near_its_end(&self) -> bool {
        let Some((left, ends)) = self.left().zip(self.ends) else { return false };
        let whole = Duration::from_millis(ends.saturating_sub(self.given));
        // A little earlier than the process that counts from when it read it.
        left <= AHEAD.min(whole / 5) * 5 / 4
    }

    /// Notes what the upstream asks for, beside what there is; whether that is news. There is no end of what one could ask for.
    pub(super) fn wants(&mut self, asked: &[String]) -> bool {
        let is_new = |record: &Self, scope: &String| !record.scopes.contains(scope) && !record.wanted.contains(scope);
        let news: Vec<String> = asked.iter().filter(|scope| is_new(self, scope)).cloned().collect();
        let all = [&self.wanted[..], &news].concat();
        let may = !news.is_empty() && are_few(&all);
        if may {
            self.wanted = all;
        }
        may
    }

    /// What it allows, and what the upstream wants beyond that.
    pub(super) fn all_scopes(self) -> impl Iterator<Item = String> {
        self.scopes.into_iter().chain(self.wanted)
    }

    /// Other tokens of the same login, given now.
    pub(super) fn renewed(&mut self, access: String, refresh: Option<String>, lasts: Option<Duration>) {
        self.given = now();
        let millis = |lasts: Duration| u64::try_from(lasts.min(LASTS_MAX).as_millis()).unwrap_or(u64::MAX);
        self.ends = lasts.map(|lasts| self.given.saturating_add(millis(lasts)));
        self.access = access;
        // Where none comes with it the one before is good for the next time, too.
        self.refresh = refresh.or_else(|| self.refresh.take());
    }

    /// All of it that nobody may see.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        [Some(&self.access), self.refresh.as_ref(), self.client_secret.as_ref()]
            .into_iter()
            .flatten()
            .map(|text| &**text)
    }
}

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn record(resource: &str, access: &str, refresh: Option<&str>) -> Record {
        Record {
            upstream: "up".to_owned(),
            resource: resource.to_owned(),
            audience: resource.to_owned(),
            principal: None,
            made: "the first".to_owned(),
            account: None,
            issuer: "https://as.example".to_owned(),
            token_endpoint: "https://as.example/token".to_owned(),
            revocation_endpoint: None,
            client_id: "me".to_owned(),
            client_secret: None,
            is_in_body: false,
            is_registered: true,
            scopes: Vec::new(),
            wanted: Vec::new(),
            access: access.to_owned(),
            refresh: refresh.map(str::to_owned),
            given: now(),
            ends: None,
        }
    }

    #[test]
    fn a_token_is_refreshed_a_while_before_its_end_and_one_without_an_end_never() {
        let mut record = record("https://h.example", "a", None);
        assert!(!record.is_near_its_end() && !record.is_over());
        for (whole, left, is_near, is_over) in [
            (3600, 3600, false, false),
            (3600, 90, false, false),
            (3600, 70, true, false),
            (100, 30, false, false),
            (100, 20, true, false),
            (100, 0, true, true),
        ] {
            (record.given, record.ends) = (now() - (whole - left) * 1000, Some(now() + left * 1000));
            assert_eq!((record.is_near_its_end(), record.is_over()), (is_near, is_over), "{left} of {whole}");
        }
    }

    #[test]
    fn what_is_wanted_beyond_what_there_is_is_noted_once_and_within_bounds() {
        let mut record = record("https://h.example", "a", None);
        record.scopes = scopes_of("read  write read");
        assert_eq!(record.scopes, ["read", "write"]);
        assert!(!record.wants(&scopes_of("write")) && record.wants(&scopes_of("write admin")));
        assert!(!record.wants(&scopes_of("admin read")) && record.wants(&scopes_of("more")));
        assert_eq!(record.wanted, ["admin", "more"]);
        let many: Vec<String> = (0..1000).map(|at| format!("s{at}")).collect();
        assert_eq!(scopes_of(&many.join(" ")).len(), SCOPES_MAX);
        assert!(!record.wants(&many) && record.wanted.len() == 2, "too many are none");
        assert_eq!(scopes_of(&format!("a\"b c\\d e`f {} ok", "x".repeat(SCOPE_BYTES_MAX + 1))), ["ok"]);
        assert_eq!(scopes_among(["", "two words", "\u{7f}", "\u{e4}", "ok"].into_iter()), ["ok"]);
        let long: Vec<String> = (10..30).map(|at| format!("{at}{}", "x".repeat(200))).collect();
        assert_eq!(scopes_of(&long.join(" ")).len(), SCOPES_BYTES_MAX / 202);
        assert!(!record.wants(&long) && record.wanted.len() == 2, "too long together");
    }

    #[test]
    fn a_refresh_token_that_is_not_replaced_stays() {
        let mut record = record("https://h.example", "a", Some("r"));
        record.renewed("b".to_owned(), None, Some(Duration::MAX));
        let is_bounded = record.left().is_some_and(|left| left <= LASTS_MAX && left > LASTS_MAX / 2);
        assert!(record.refresh.as_deref() == Some("r") && is_bounded && record.access == "b");
        record.renewed("c".to_owned(), Some("s".to_owned()), None);
        assert_eq!(record.secrets().collect::<Vec<_>>(), ["c", "s"]);
    }
}
