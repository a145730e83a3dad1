//! What an identity provider reads and writes: forms, and ID tokens.

use serde_json::json;

use crate::canary::base64;
use crate::identity::Fields;

/// The fields of a form or of a query.
pub(super) fn fields(text: &str) -> Fields {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut out) = (text.bytes(), Vec::new());
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let mut digit = || char::from(bytes.next().expect("two digits")).to_digit(16).expect("a digit");
                let (high, low) = (digit(), digit());
                out.push(u8::try_from(high * 16 + low).expect("a byte"));
            }
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).expect("it is text")
}

/// An ID token of an account.
pub(super) fn id_token(issuer: &str, account: &str) -> String {
    let coded = |text: String| base64(text.as_bytes()).trim_end_matches('=').replace('+', "-").replace('/', "_");
    let claims = json!({ "iss": issuer, "sub": account, "aud": "registered-1", "exp": 4_000_000_000_u64, "iat": 1 });
    format!("{}.{}.c2ln", coded(json!({ "alg": "RS256" }).to_string()), coded(claims.to_string()))
}
