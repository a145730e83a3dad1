//! Questions about tokens that say nothing themselves: one at a time for each.

use super::claims::Claims;
use super::refused::{BOUND, EARLY, ELSEWHERE, Refused};
use super::token::{Judged, over};
use crate::call::share::{Part, Share, SharePermit, Shares};
use crate::config::Issuer;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// A verdict is kept no longer than this; then it is asked again.
pub(super) const KEPT_MAX: Duration = Duration::from_secs(60);
/// So long a token counts for what it has opened, where it is not said when it ends.
const LIFE: Duration = Duration::from_secs(3600);
/// So many tokens are asked about at once. Nobody has more of these places than are free: one who shows invented tokens keeps none from
/// being looked at that others show.
const ASKING_MAX: usize = 256;

const INACTIVE: Refused = Refused::Invalid("the authorization server does not know the token, or it has ended");
const OTHER_TYPE: Refused = Refused::Invalid("the token is of another type than Bearer");

/// The tokens that are asked about now, by digest.
pub(super) struct Questions {
    asked: Mutex<HashMap<[u8; 32], Told>>,
    places: Arc<Shares>,
}

impl Default for Questions {
    fn default() -> Self {
        Self { asked: Mutex::default(), places: Shares::new(ASKING_MAX, Part::OfFree) }
    }
}

/// Who waits is told why a token is not taken; that it is taken is known by its verdict.
type Told = watch::Receiver<Option<Refused>>;

/// How a question goes on.
pub(super) enum Turn<'a> {
    /// It is this one's to ask; whoever waits is told when it is dropped.
    Ask(Asking<'a>),
    /// Somebody asks already.
    Wait(Told),
    /// Too many are asked, or too many of these.
    Full,
}

/// A question under way.
pub(super) struct Asking<'a> {
    questions: &'a Questions,
    digest: [u8; 32],
    told: watch::Sender<Option<Refused>>,
    _place: SharePermit,
}

impl Asking<'_> {
    /// Those who wait are refused, too.
    pub(super) fn refuse(&self, why: &Refused) {
        self.told.send_replace(Some(why.clone()));
    }
}

impl Questions {
    /// Whose turn it is to ask about a token, which takes a place of this share.
    pub(super) fn turn(&self, digest: [u8; 32], share: &Share) -> Turn<'_> {
        let mut asked = self.lock();
        if let Some(told) = asked.get(&digest) {
            return Turn::Wait(told.clone());
        }
        let Some(place) = self.places.take(share) else { return Turn::Full };
        let (sender, told) = watch::channel(None);
        asked.insert(digest, told);
        Turn::Ask(Asking { questions: self, digest, told: sender, _place: place })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], Told>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.questions.lock().remove(&self.digest);
    }
}

/// What an answer says of a token.
pub(super) fn judge(answer: &[u8], issuer: &Issuer, audience: &[String]) -> Result<Judged, Refused> {
    let claims: Claims = serde_json::from_slice(answer).map_err(|_| Refused::Unverified)?;
    match claims.0.get("active").and_then(serde_json::Value::as_bool) {
        Some(true) => {}
        Some(false) => return Err(INACTIVE),
        None => return Err(Refused::Unverified),
    }
    let now = SystemTime::now();
    if claims.text("iss").is_some_and(|said| *said != *issuer.name) || !claims.is_for(audience) {
        return Err(ELSEWHERE);
    }
    if claims.is_bound() {
        return Err(BOUND);
    }
    if !claims.is_bearer() {
        return Err(OTHER_TYPE);
    }
    let latest = (now + issuer.clock_skew).duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    if claims.moment("nbf").is_some_and(|begins| begins > latest) {
        return Err(EARLY);
    }
    let end = claims.moment("exp").map(|end| over(end, issuer.clock_skew).ok_or(INACTIVE)).transpose()?;
    if end.is_some_and(|end| end <= now) {
        return Err(Refused::Expired);
    }
    Ok(Judged { until: end.unwrap_or(now + LIFE), claims })
}
