//! A JSON Web Token: what is read before its key is known, and how it is judged with it.

use super::claims::Claims;
use super::keys::Key;
use super::refused::{BOUND, EARLY, ELSEWHERE, Refused, UNKNOWN};
use crate::config::{Issuer, Resource};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

/// The longest token that is looked at.
pub(super) const TOKEN_MAX: usize = 16 * 1024;
/// The longest name of a key.
const KEY_NAME_MAX: usize = 256;
/// No token is good for longer than this without being judged anew.
const LIFE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// The types of tokens that open something; others of the same keys are made for something else.
const TYPES: [&str; 3] = ["jwt", "at+jwt", "application/at+jwt"];

const ODD: Refused = Refused::Invalid("the token is no access token that can be read");
const UNSIGNED: Refused = Refused::Invalid("the token is not signed as its authorization server signs");

/// What a token says of itself before anything is judged.
pub(super) struct Unjudged {
    pub(super) algorithm: Algorithm,
    pub(super) key: Option<String>,
    pub(super) issuer: String,
}

/// A token that is good.
pub(super) struct Judged {
    pub(super) claims: Claims,
    /// When it is good no more.
    pub(super) until: SystemTime,
}

/// Whether this is one token at all (RFC 6750, 2.1): what else a client sends is shown to nobody.
pub(super) fn may_be(token: &str) -> bool {
    let plain = token.trim_end_matches('=');
    !plain.is_empty() && plain.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte))
}

/// Whether a token is such a one, and not one that says nothing itself. One whose head has a member twice is, and is not read.
pub(super) fn is_one(token: &str) -> bool {
    token.split('.').count() == 3 && part::<Map<String, Value>>(token, 0).is_some()
}

/// Reads what is needed to find its key.
pub(super) fn read(token: &str) -> Result<Unjudged, Refused> {
    let [head, claims] = [0, 1].map(|index| part::<Claims>(token, index));
    let (head, claims) = (head.ok_or(ODD)?, claims.ok_or(ODD)?);
    // What it says that must be understood is understood by nobody here; where its key lies is never followed.
    let is_plain = !["crit", "b64", "enc", "zip"].iter().any(|name| head.0.contains_key(*name));
    let is_of_type = match head.0.get("typ") {
        None => true,
        Some(of_type) => of_type.as_str().is_some_and(|of_type| TYPES.contains(&&*of_type.to_ascii_lowercase())),
    };
    if !is_plain || !is_of_type {
        return Err(ODD);
    }
    let algorithm = head.text("alg").and_then(|name| Algorithm::from_str(name).ok()).ok_or(UNSIGNED)?;
    let key = match head.0.get("kid") {
        None => None,
        Some(name) => Some(name.as_str().filter(|name| name.len() <= KEY_NAME_MAX).ok_or(UNSIGNED)?.to_owned()),
    };
    Ok(Unjudged { algorithm, key, issuer: claims.text("iss").ok_or(UNKNOWN)?.to_owned() })
}

/// Judges a token by a key that may have signed it.
pub(super) fn judge(
    token: &str,
    issuer: &Issuer,
    resource: &Resource,
    key: &Key,
    by: Algorithm,
) -> Result<Judged, Refused> {
    if !issuer.algorithms.contains(&by) {
        return Err(UNSIGNED);
    }
    let mut asks = Validation::new(by);
    asks.leeway = issuer.clock_skew.as_secs();
    asks.validate_nbf = true;
    asks.required_spec_claims = ["exp", "iss", "aud"].map(str::to_owned).into();
    asks.iss = Some(HashSet::from([issuer.name.to_string()]));
    let audience = audience(issuer, resource);
    asks.aud = Some(audience.iter().cloned().collect());
    let decoded = jsonwebtoken::decode::<Claims>(token, &key.decoding, &asks);
    let claims = decoded.map_err(|why| refused(why.kind()))?.claims;
    // The library reads the claims on its own: what it has judged is what is used.
    let is_same = claims.text("iss") == Some(&issuer.name) && claims.is_for(&audience);
    if claims.is_bound() {
        return Err(BOUND);
    }
    let until = claims.moment("exp").filter(|_| is_same).and_then(|end| over(end, issuer.clock_skew)).ok_or(ODD)?;
    Ok(Judged { claims, until })
}

/// Who a token may be for.
pub(super) fn audience(issuer: &Issuer, resource: &Resource) -> Vec<String> {
    match &issuer.audience[..] {
        [] => resource.faces.iter().map(|face| face.url.clone()).collect(),
        written => written.to_vec(),
    }
}

/// The moment from which a token is good no more, which is in time.
pub(super) fn over(end: f64, skew: Duration) -> Option<SystemTime> {
    let most = SystemTime::now().checked_add(LIFE_MAX)?;
    let end = Duration::try_from_secs_f64(end).ok()?.checked_add(skew)?;
    Some(SystemTime::UNIX_EPOCH.checked_add(end).map_or(most, |end| end.min(most)))
}

/// A moment that is named in seconds since 1970; `None` beyond all clocks.
pub(super) fn moment(seconds: f64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(seconds).ok()?)
}

fn refused(why: &ErrorKind) -> Refused {
    match why {
        ErrorKind::ExpiredSignature => Refused::Expired,
        ErrorKind::ImmatureSignature => EARLY,
        ErrorKind::InvalidAudience => ELSEWHERE,
        ErrorKind::InvalidIssuer => UNKNOWN,
        ErrorKind::InvalidSignature | ErrorKind::InvalidAlgorithm => UNSIGNED,
        _ => ODD,
    }
}

/// The object that a part of a token is.
fn part<T: DeserializeOwned>(token: &str, index: usize) -> Option<T> {
    let part = token.split('.').nth(index)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::may_be;

    #[test]
    fn what_is_no_single_token_is_told_apart() {
        for (text, is_one) in [
            ("a", true),
            ("aZ09-._~+/==", true),
            ("", false),
            ("==", false),
            ("a=b", false),
            ("a b", false),
            ("a, Bearer b", false),
            ("a,b", false),
            ("\u{e4}", false),
        ] {
            assert_eq!(may_be(text), is_one, "{text}");
        }
    }
}
