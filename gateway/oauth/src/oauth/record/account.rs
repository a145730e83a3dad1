//! Whose a login is: whether two of them may be of different accounts.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

/// The longest name of an account that is kept.
const NAME_MAX: usize = 1024;

/// Which login it is, and whose.
#[derive(Clone)]
pub(crate) struct Whose {
    pub(super) made: String,
    pub(super) issuer: String,
    pub(super) account: Option<String>,
}

impl Whose {
    /// Whether the two may be of different accounts: a person has logged in between, and nobody has said that it is the same account.
    pub(crate) fn may_differ(&self, other: &Self) -> bool {
        let is_known = self.account.is_some() && self.issuer == other.issuer;
        self.made != other.made && !(is_known && self.account == other.account)
    }
}

/// The account in what a token end point has answered: in the ID token (OpenID Connect, 3.1.3.7: it comes straight from who signs it), else in an
/// access token that says that it is one of RFC 9068. It is compared, and lets nobody in.
pub(crate) fn account(access: &str, id: Option<&str>) -> Option<String> {
    let subject = |token: &str, is_kind: fn(&Map<String, Value>) -> bool| {
        let mut parts = token.split('.').map(|part| {
            let text = URL_SAFE_NO_PAD.decode(part).ok()?;
            serde_json::from_slice::<Map<String, Value>>(&text).ok()
        });
        let (head, claims) = (parts.next()??, parts.next()??);
        let subject = claims.get("sub")?.as_str().filter(|name| !name.is_empty() && name.len() <= NAME_MAX)?;
        is_kind(&head).then(|| subject.to_owned())
    };
    let is_access = |head: &Map<String, Value>| {
        let kind = head.get("typ").and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
        kind.strip_prefix("application/").unwrap_or(&kind) == "at+jwt"
    };
    let of_id = id.and_then(|id| subject(id, |_| true)).map(|name| format!("id:{name}"));
    of_id.or_else(|| Some(format!("access:{}", subject(access, is_access)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jwt(head: &str, claims: &str) -> String {
        format!("{}.{}.c2ln", URL_SAFE_NO_PAD.encode(head), URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn an_account_is_known_by_an_id_token_or_by_an_access_token_that_says_that_it_names_one() {
        let [ada, at] = [r#"{"sub":"ada"}"#, r#"{"typ":"AT+jwt"}"#];
        let known = |access: &str, id: Option<&str>| account(access, id);
        assert_eq!(known("opaque", Some(&jwt("{}", ada))).as_deref(), Some("id:ada"));
        assert_eq!(known(&jwt(at, ada), None).as_deref(), Some("access:ada"));
        assert_eq!(known(&jwt(r#"{"typ":"application/at+jwt"}"#, ada), None).as_deref(), Some("access:ada"));
        let long = format!("{{\"sub\":\"{}\"}}", "x".repeat(NAME_MAX + 1));
        for (access, id) in [
            ("opaque".to_owned(), None),
            (jwt(r#"{"typ":"JWT"}"#, ada), None),
            (jwt("{}", ada), None),
            (jwt(at, r#"{"sub":""}"#), None),
            (jwt(at, r#"{"sub":7}"#), Some(jwt("{}", "[]"))),
            (jwt(at, &long), Some("no.token".to_owned())),
        ] {
            assert_eq!(known(&access, id.as_deref()), None, "{access:.60}");
        }
    }

    #[test]
    fn a_login_may_be_of_another_account_unless_it_is_the_same_login_or_says_that_it_is_the_same_account() {
        let of = |made: &str, issuer: &str, account: Option<&str>| {
            let (made, issuer, account) = (made.to_owned(), issuer.to_owned(), account.map(str::to_owned));
            Whose { made, issuer, account }
        };
        let first = of("1", "https://as", Some("id:ada"));
        for (other, may_differ) in [
            (of("1", "https://as", None), false),
            (of("2", "https://as", Some("id:ada")), false),
            (of("2", "https://as", Some("id:bob")), true),
            (of("2", "https://as", None), true),
            (of("2", "https://other", Some("id:ada")), true),
        ] {
            assert_eq!(first.may_differ(&other), may_differ);
            assert_eq!(other.may_differ(&first), may_differ);
        }
        assert!(of("1", "https://as", None).may_differ(&of("2", "https://as", None)), "nobody knows");
    }
}
