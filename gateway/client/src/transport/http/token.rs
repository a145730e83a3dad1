//! The access token of a request, and the source that supplies it.

use crate::health::{Cause, CauseCode};
use crate::runtime::Tasks;
use futures_util::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, StatusCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// So long before its end another one is fetched, or a fifth of its time where that is less. In the last sixth of that it is no longer
/// shown: it would end on its way.
const AHEAD: Duration = Duration::from_secs(60);
/// What claims to last longer is fetched anew all the same.
const LASTS_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// So long after a refused token was replaced another one is not.
const REPLACED_MIN: Duration = Duration::from_secs(30);

/// A token that the upstream is shown.
#[derive(Debug)]
pub struct Token {
    header: HeaderValue,
    born: Instant,
    /// When another one is fetched, and when it is no longer shown; `None` where it is until it is refused.
    times: Option<(Instant, Instant)>,
    /// Whether it took the place of one that was refused.
    replaces: bool,
    /// Whether the upstream has taken it.
    was_taken: AtomicBool,
    /// Whether a request was refused that was sent again with it.
    was_in_vain: AtomicBool,
}

impl Token {
    /// As it was given out now.
    pub fn new(issued: &str, lasts: Option<Duration>, replaces: bool) -> Result<Self, Cause> {
        let odd = || {
            let said = "what was given out is no token: it is empty, or has spaces or characters beyond ASCII";
            Cause::new(CauseCode::TokenRefused, said)
        };
        let is_word = !issued.is_empty() && issued.bytes().all(|byte| byte.is_ascii_graphic());
        let header = HeaderValue::from_str(&format!("Bearer {issued}"));
        let mut header = header.ok().filter(|_| is_word).ok_or_else(odd)?;
        header.set_sensitive(true);
        let born = Instant::now();
        let times = lasts.filter(|lasts| !lasts.is_zero()).map(|lasts| {
            let lasts = lasts.min(LASTS_MAX);
            let ahead = AHEAD.min(lasts / 5);
            (born + lasts - ahead, born + lasts - ahead / 6)
        });
        Ok(Self { header, born, times, replaces, was_taken: AtomicBool::default(), was_in_vain: AtomicBool::default() })
    }

    /// Whether it is this one.
    pub fn is(&self, token: &str) -> bool {
        self.header.as_bytes().strip_prefix(b"Bearer ") == Some(token.as_bytes())
    }

    /// Puts it into the headers of a request.
    pub fn put(&self, headers: &mut HeaderMap) {
        headers.insert(AUTHORIZATION, self.header.clone());
    }

    /// The upstream has taken it.
    pub(crate) fn taken(&self) {
        if !self.was_taken.load(Ordering::Relaxed) {
            self.was_taken.store(true, Ordering::Relaxed);
        }
    }

    /// What a request came to that was refused with another token, and sent again with this one. Where it is refused again the token was
    /// not the reason.
    pub(crate) fn judged(&self, status: StatusCode) {
        match status {
            StatusCode::UNAUTHORIZED => self.was_in_vain.store(true, Ordering::Relaxed),
            _ => self.taken(),
        }
    }

    /// Whether another one is to be fetched.
    pub fn is_near_its_end(&self, now: Instant) -> bool {
        self.times.is_some_and(|(ahead, _)| now >= ahead)
    }

    /// How long it is still shown, where it ends.
    pub fn ends_in(&self, now: Instant) -> Option<Duration> {
        self.times.map(|(_, end)| end.saturating_duration_since(now))
    }

    /// Whether it is no longer shown.
    pub fn is_over(&self, now: Instant) -> bool {
        self.times.is_some_and(|(_, end)| now >= end)
    }

    /// Whether another one may be taken where this one is: where it is itself another one, and new, the next would be refused just so;
    /// and so would it where the upstream refuses some requests whatever they are shown with, though it takes others.
    pub fn may_be_replaced(&self, now: Instant) -> bool {
        let is_new = now.duration_since(self.born) < REPLACED_MIN;
        let was_good = self.was_taken.load(Ordering::Relaxed) || !self.replaces;
        was_good && !self.was_in_vain.load(Ordering::Relaxed) || !is_new
    }
}

/// Supplies the access token for the requests to one upstream.
pub trait TokenSource: Send + Sync {
    /// Returns true if requests carry a token. Without configured credentials they do so only after a login.
    fn is_active(&self) -> bool;

    /// Returns the token at hand if it can still be sent. If its end is near, a task of this level fetches the next one.
    fn current(&self, tasks: &Tasks) -> Option<Arc<Token>>;

    /// Returns a token that can be sent: the token at hand, or the next one as soon as it is fetched.
    fn fetch<'a>(&'a self, tasks: &'a Tasks) -> BoxFuture<'a, Result<Arc<Token>, Cause>>;

    /// Returns true if a token that the upstream refused may be replaced.
    fn can_replace(&self, refused: &Arc<Token>) -> bool;

    /// Returns another token than the refused one.
    fn replace<'a>(&'a self, refused: &'a Arc<Token>, tasks: &'a Tasks) -> BoxFuture<'a, Result<Arc<Token>, Cause>>;

    /// Explains a refusal by the state of the login, if the tokens come from a login and the refusal concerns it.
    fn explain<'a>(
        &'a self,
        refusal: (StatusCode, &'a HeaderMap),
        is_of_client: bool,
        tasks: &'a Tasks,
    ) -> BoxFuture<'a, Option<LoginAdvice>>;
}

/// Advice for a person after a refusal that concerns a login.
#[derive(Debug)]
pub enum LoginAdvice {
    /// Nobody has logged in: the cause says so and names the command.
    Required(Cause),
    /// The login exists, or cannot be made: the next step.
    Hint(String),
    /// The login lacks a scope that the upstream asks for: the next step.
    MoreScope(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str, lasts: Option<u64>, replaces: bool) -> Result<Token, Cause> {
        Token::new(text, lasts.map(Duration::from_secs), replaces)
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_fetched_anew_a_while_before_its_end_and_not_shown_at_its_end() {
        for (lasts, ahead, end) in [(3600, 3540, 3590), (100, 80, 97), (u64::MAX, LASTS_MAX.as_secs() - 60, u64::MAX)] {
            let token = token("t", Some(lasts), false).unwrap();
            let at = |seconds: u64| token.born + Duration::from_secs(seconds.min(LASTS_MAX.as_secs()));
            assert!(!token.is_near_its_end(at(ahead - 1)) && token.is_near_its_end(at(ahead)), "{lasts}");
            assert!(!token.is_over(at(ahead)) && token.is_over(at(end)), "{lasts}");
        }
        for endless in [None, Some(0)] {
            assert!(!token("t", endless, false).unwrap().is_over(Instant::now() + LASTS_MAX * 2));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_was_refused_at_once_like_the_one_before_it_is_not_replaced_for_a_while() {
        let now = Instant::now();
        assert!(token("t", None, false).unwrap().may_be_replaced(now));
        let other = token("t", None, true).unwrap();
        assert!(!other.may_be_replaced(now) && other.may_be_replaced(now + REPLACED_MIN));
        other.taken();
        assert!(other.may_be_replaced(now), "it was good for a while");
        other.judged(StatusCode::UNAUTHORIZED);
        assert!(!other.may_be_replaced(now) && other.may_be_replaced(now + REPLACED_MIN), "for others alone");
    }

    #[test]
    fn what_is_no_token_is_said_without_being_repeated() {
        for text in ["", "canary one", "canary\n", "canär"] {
            let why = token(text, None, false).unwrap_err();
            assert!(why.code() == CauseCode::TokenRefused && !why.full().contains("can"), "{text:?}");
        }
        let mut headers = HeaderMap::new();
        token("a.b-c~d+e/f==", None, false).unwrap().put(&mut headers);
        assert_eq!(headers[AUTHORIZATION], "Bearer a.b-c~d+e/f==");
        assert!(!format!("{headers:?}").contains("a.b-c"), "it is marked sensitive");
    }
}
