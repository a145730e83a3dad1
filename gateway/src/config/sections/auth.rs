//! `[auth]`: static tokens, authorization servers, and what those may see who bear their tokens.

// `[[auth.issuers]]`: authorization servers whose access tokens are taken.
mod issuers;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::policy::config::client_token::LENGTH_MIN;
use crate::policy::config::moment::moment;
use crate::policy::config::{Auth, Generated, Resource, Token};

pub(super) use issuers::{INTROSPECTION_DOC, ISSUERS_DOC, RULES_DOC};

use super::roles::{Roles, certificates};
use crate::config::doc::{KeyDoc, TableDoc};
use crate::config::fault::Fault;
use crate::config::read::{ANY, Section};

/// What the bearer of a token may see, and until when.
type Terms = (Option<Vec<Arc<str>>>, Option<SystemTime>);

/// What `mode` says, if it is written.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    None,
    Token,
    OAuth,
}

/// Keys of `[auth]`.
pub(crate) const AUTH_DOC: TableDoc = TableDoc {
    heading: "[auth]",
    path: &["auth"],
    intro: "[Who may call](../security.md#who-may-call).",
    keys: &[&[
        KeyDoc {
            key: "mode",
            kind: "`\"none\"`, `\"token\"`, `\"oauth\"`",
            default: "by what is configured",
            description: "states the intent: `\"none\"` beside tokens is a fault, as is another one than \
                `\"oauth\"` beside `[[auth.issuers]]`",
        },
        KeyDoc {
            key: "allow_unauthenticated",
            kind: "bool",
            default: "`false`",
            description: "listen beyond loopback without tokens",
        },
        KeyDoc {
            key: "generate_token",
            kind: "bool",
            default: "`false`",
            description: "where nobody is asked for a token or a certificate beyond loopback, the gateway [makes a \
                token](../security.md#a-token-that-the-gateway-makes)",
        },
    ]],
    notes: "",
};

/// `[auth]`.
pub(crate) fn auth(mut section: Section<'_>) -> Auth {
    let mode = section.word("mode", &[("none", Mode::None), ("token", Mode::Token), ("oauth", Mode::OAuth)]);
    let allow_unauthenticated = section.flag("allow_unauthenticated").unwrap_or(false);
    let generates = section.flag("generate_token").unwrap_or(false);
    let roles = Roles::read(section.table("roles"));
    let certificates = certificates(&mut section, &roles);
    let (issuers, has_issuers) = issuers::issuers(&mut section, &roles);
    let entries = section.list_of_tables("tokens");
    let written = entries.len();
    let mut tokens: Vec<Token> = Vec::new();
    let mut names: HashSet<Arc<str>> = HashSet::new();
    let mut digests: HashMap<[u8; 32], Arc<str>> = HashMap::new();
    for entry in entries {
        let place = entry.own_place();
        // What is wrong with the one half hides nothing of the other.
        let (name, digest, (roles, expires)) = token(entry, &roles);
        let shown = name.clone().unwrap_or_else(|| Arc::from("a token without a name"));
        if name.as_ref().is_some_and(|name| !names.insert(name.clone())) {
            let text = format!("two tokens are named `{shown}`");
            section.reading.fault(Fault::error("duplicate-name", text).at(place.clone()));
        }
        if let Some(other) = digest.and_then(|digest| digests.insert(digest, shown.clone())) {
            let text = format!("`{other}` and `{shown}` have the same token");
            let fault = Fault::error("duplicate-token", text).at(place);
            section.reading.fault(fault.hint("give each client a token of its own"));
        }
        tokens.extend(name.zip(digest).map(|(name, digest)| Token { name, digest, roles, expires }));
    }
    match mode {
        Some(Mode::None | Mode::Token) if has_issuers => {
            section.wrong("mode", "[[auth.issuers]] are configured: write \"oauth\", or remove them")
        }
        Some(Mode::OAuth) if !has_issuers => section.wrong("mode", "no [[auth.issuers]] are configured"),
        Some(Mode::None) if written > 0 => {
            section.wrong("mode", "[[auth.tokens]] are configured: write \"token\", or remove them")
        }
        Some(Mode::None) if generates => {
            section.wrong("mode", "`generate_token` makes a token: write \"token\", or remove it")
        }
        Some(Mode::Token) if written == 0 && !generates => section.wrong("mode", "no [[auth.tokens]] are configured"),
        _ => {}
    }
    section.end("[auth]");
    let generated = match (generates, mode) {
        (false, _) => Generated::Off,
        (true, Some(Mode::Token)) => Generated::Demanded,
        (true, _) => Generated::Wanted,
    };
    let resource = Resource::default();
    Auth { tokens, issuers, resource, certificates, roles: roles.into_all(), allow_unauthenticated, generated }
}

/// Keys of `[[auth.tokens]]`.
pub(crate) const TOKENS_DOC: TableDoc = TableDoc {
    heading: "[[auth.tokens]]",
    path: &["auth", "tokens", ANY],
    intro: "",
    keys: &[&[
        KeyDoc {
            key: "name",
            kind: "text, up to 64 characters",
            default: "required",
            description: "the name of the principal",
        },
        KeyDoc {
            key: "hash",
            kind: "text",
            default: "this or `token`",
            description: "`sha256:` and the digest of the token in hexadecimal",
        },
        KeyDoc {
            key: "token",
            kind: "text, from 16 characters",
            default: "this or `hash`",
            description: "the token; only its digest is kept",
        },
        KeyDoc {
            key: "expires",
            kind: "day or moment, UTC",
            default: "never",
            description: "as `\"2027-01-01\"` or `\"2027-01-01T12:00:00Z\"`: [from then on](../security.md#tokens) \
                it is refused",
        },
        KeyDoc {
            key: "roles",
            kind: "list",
            default: "everything",
            description: "the [roles](../security.md#roles) of its bearer; `[]`: nothing",
        },
    ]],
    notes: "",
};

/// The name, the digest, and the roles and the end of a token, as far as they can be taken.
fn token(mut section: Section<'_>, roles: &Roles) -> (Option<Arc<str>>, Option<[u8; 32]>, Terms) {
    let terms = (roles.named(&mut section), section.parse("expires", moment));
    let name = section.parse("name", |text| match text {
        "" => Err("expected a name".to_owned()),
        text if text.len() > 64 || text.chars().any(char::is_control) => {
            Err("expected up to 64 characters on one line".to_owned())
        }
        text => Ok(Arc::from(text)),
    });
    let (has_name, has_hash, has_token) =
        (section.has("name") || name.is_some(), section.has("hash"), section.has("token"));
    let hash = section.parse("hash", hash);
    let reading = section.reading;
    // Hashed at once: the token itself is kept nowhere but among what is masked.
    let token = section.parse("token", |text| match text.trim() {
        "" => Err("the token is empty".to_owned()),
        text if text.len() < LENGTH_MIN => Err(format!("the token is shorter than {LENGTH_MIN} characters")),
        text => {
            reading.secret(text);
            Ok(<[u8; 32]>::from(Sha256::digest(text.as_bytes())))
        }
    });
    let place = section.own_place();
    let fault = |kind, text: &str| section.reading.fault(Fault::error(kind, text).at(place.clone()));
    let missing = |text: &str| fault("missing-key", text);
    if !has_name && name.is_none() {
        missing("a token has no `name`");
    }
    match (has_hash, has_token) {
        (true, true) => fault("two-forms", "a token has both `hash` and `token`"),
        (false, false) => missing("a token has neither `hash` nor `token`"),
        _ => {}
    }
    section.end("[[auth.tokens]]");
    (name, hash.or(token), terms)
}

fn hash(text: &str) -> Result<[u8; 32], String> {
    const EXPECTED: &str = "expected \"sha256:\" and 64 hexadecimal digits";
    let digits = text.strip_prefix("sha256:").filter(|digits| digits.len() == 64).ok_or(EXPECTED)?;
    let mut digest = [0; 32];
    for (byte, pair) in digest.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| EXPECTED)?;
        if !pair.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(EXPECTED.to_owned());
        }
        *byte = u8::from_str_radix(pair, 16).map_err(|_| EXPECTED)?;
    }
    Ok(digest)
}
