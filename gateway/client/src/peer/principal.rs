//! The name of a call's principal, as an upstream is told it: of each call by itself, whoever has the link in common.

use crate::call::caller::Principal;
use crate::config::ToldIdentity;
use crate::protocol::json;
use http::{HeaderName, HeaderValue};
use std::borrow::Cow;

/// The header that names a principal; the anonymous one has no name.
pub(super) fn header(told: &ToldIdentity, principal: &Principal) -> Option<(HeaderName, HeaderValue)> {
    let name = told.header.clone().filter(|_| !principal.is_anonymous())?;
    Some((name, HeaderValue::from_str(&coded(principal.name())).ok()?))
}

/// A name in visible ASCII characters: every other byte, and `%` itself, as `%` and two digits. Nothing in it can end a header.
fn coded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'!'..=b'~' if byte != b'%' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Members of `_meta` with the one that names the principal in place of whatever the client has under its key.
pub(super) fn member<'a>(told: &ToldIdentity, principal: &Principal, members: Cow<'a, [u8]>) -> Cow<'a, [u8]> {
    let Some(key) = &told.meta else { return members };
    if members.is_empty() && principal.is_anonymous() {
        return members;
    }
    let object = [b"{", &*members, b"}"].concat();
    let mut found = Vec::with_capacity(object.len() + key.len() + principal.name().len() + 8);
    json::others(&object, &[key], &mut found);
    if !principal.is_anonymous() {
        found.extend_from_slice(format!(",\"{key}\":{}", json::quote(principal.name())).as_bytes());
    }
    // Each stands behind a comma.
    found.drain(..found.len().min(1));
    Cow::Owned(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told() -> ToldIdentity {
        ToldIdentity { header: Some(HeaderName::from_static("x-principal")), meta: Some("a.example/who".into()) }
    }

    #[test]
    fn a_name_cannot_end_its_header_and_is_read_back_by_decoding_it_once() {
        let of = |name: &str| header(&told(), &Principal::named(name)).map(|(_, value)| value);
        for (name, text) in [
            ("token:ci", "token:ci"),
            ("cert:a\r\nX-Admin: 1", "cert:a%0D%0AX-Admin:%201"),
            ("oauth:50%25 c https://as", "oauth:50%2525%20c%20https://as"),
            ("token:é", "token:%C3%A9"),
            ("token:\u{7f}\0", "token:%7F%00"),
        ] {
            assert_eq!(of(name).unwrap(), text);
        }
        assert_eq!(of(""), None);
    }

    #[test]
    fn the_member_takes_the_place_of_every_one_that_the_client_has_under_its_key() {
        let of = |members: &str, name: &str| {
            let found = member(&told(), &Principal::named(name), Cow::Borrowed(members.as_bytes()));
            String::from_utf8(found.into_owned()).unwrap()
        };
        let own = r#""a.example/who":"token:\"x\"""#;
        assert_eq!(of("", "token:\"x\""), own);
        assert_eq!(of(r#""b": 1.0 ,"c":[2]"#, "token:\"x\""), format!(r#""b": 1.0,"c":[2],{own}"#));
        let forged = r#""a.example/who":"token:root","b":1,"a.example\/wh\u006f" : {"x":1}"#;
        assert_eq!(of(forged, "token:\"x\""), format!(r#""b":1,{own}"#));
        assert_eq!(of(forged, ""), r#""b":1"#);
        assert_eq!(of(r#""a.example/who":"token:root""#, ""), "");
        assert_eq!(of("", ""), "");
    }
}
