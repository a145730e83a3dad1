//! The cookie that binds a page to the browser that opened it first.

use http::HeaderMap;
use http::header::COOKIE;
use sha2::{Digest, Sha256};

/// So many cookies of one name are looked at: another server of the same host can set one beside ours.
const LOOKED_AT_MAX: usize = 8;

/// The digest of a secret: how long it takes to compare says nothing of how much was right.
pub(super) type Secret = [u8; 32];

/// What is kept of a secret.
pub(super) fn digest(text: &str) -> Secret {
    Sha256::digest(text).into()
}

/// What the cookie of a visit is called. By TLS it can be set by this very host alone.
pub(super) fn name(id: &str, is_secure: bool) -> String {
    format!("{}trunkline-connect-{id}", if is_secure { "__Host-" } else { "" })
}

/// The header that sets it, to the end of the visit.
pub(super) fn set(id: &str, value: &str, is_secure: bool, seconds: u64) -> String {
    let secure = if is_secure { "; Secure" } else { "" };
    // The browser comes back from another site.
    format!("{}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}", name(id, is_secure))
}

/// Whether a request bears it.
pub(super) fn is_borne(headers: &HeaderMap, name: &str, secret: &Secret) -> bool {
    let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut ours = pairs.filter(|(key, _)| *key == name).take(LOOKED_AT_MAX);
    ours.any(|(_, value)| digest(value) == *secret)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn the_cookie_of_one_visit_is_not_that_of_another_and_by_tls_only_this_host_can_set_it() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, HeaderValue::from_static("a=1; trunkline-connect-x=evil; trunkline-connect-x=good"));
        assert!(is_borne(&headers, &name("x", false), &digest("good")));
        assert!(!is_borne(&headers, &name("y", false), &digest("good")));
        assert!(!is_borne(&headers, &name("x", true), &digest("good")));
        assert!(!is_borne(&headers, &name("x", false), &digest("other")));
        let plain = "trunkline-connect-x=v; Path=/; Max-Age=60; HttpOnly; SameSite=Lax";
        assert_eq!(set("x", "v", false, 60), plain);
        assert_eq!(set("x", "v", true, 60), format!("__Host-{plain}; Secure"));
    }
}
