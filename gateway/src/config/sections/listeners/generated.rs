//! `[auth] generate_token`: where anybody could call from another machine, the gateway asks for a token of its own.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::config::fault::{Fault, Place};
use crate::config::read::Reading;
use crate::policy::config::client_token::{self, LENGTH_MIN};
use crate::policy::config::{Auth, Generated, Token};

/// What whoever starts the gateway gives in place of it.
pub(crate) const VARIABLE: &str = "TRUNKLINE_TOKEN";
/// The name of its bearers.
const NAME: &str = "generated";

/// Whether whoever starts the gateway gives one.
pub(crate) fn is_given(reading: &Reading) -> bool {
    reading.environment.get(VARIABLE).is_some_and(|given| !given.is_empty())
}

/// Adds the token that was given or made before; says in `auth` where none has been made yet.
pub(crate) fn add(reading: &Reading, auth: &mut Auth) {
    if let Some(given) = reading.environment.get(VARIABLE).filter(|given| !given.is_empty()) {
        let given = given.to_str().unwrap_or("\u{fffd}").trim();
        auth.generated = Generated::Off;
        let fault = |text: String| {
            reading.fault(Fault::error("bad-value", text).at(Some(Place::Variable(VARIABLE.into()))));
        };
        match given {
            given if !given.bytes().all(|byte| byte.is_ascii_graphic()) => {
                fault(
                    "the token has characters that no header can carry: use letters, digits and marks of ASCII"
                        .to_owned(),
                );
            }
            given if given.len() < LENGTH_MIN => fault(format!("the token is shorter than {LENGTH_MIN} characters")),
            _ => {}
        }
        // Also one that is refused: the door is not told to be open besides.
        return auth.tokens.push(token(reading, given));
    }
    let Some(state) = reading.environment.state_folder() else { return };
    match client_token::kept(&state) {
        Ok(Some(kept)) => {
            auth.generated = Generated::Kept;
            auth.tokens.push(token(reading, &kept));
        }
        Ok(None) => auth.generated = Generated::Lacking,
        Err(error) => {
            let file = client_token::file(&state);
            let fault = Fault::error("bad-value", format!("{} cannot be used: {error}", file.display()));
            reading.fault(fault.hint("`auth.generate_token` keeps the token of clients there"));
            auth.generated = Generated::Lacking;
        }
    }
}

fn token(reading: &Reading, text: &str) -> Token {
    reading.secret(text);
    let digest = Sha256::digest(text.as_bytes()).into();
    Token { name: Arc::from(NAME), digest, roles: None, expires: None }
}
