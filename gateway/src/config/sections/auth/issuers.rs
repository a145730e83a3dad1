//! `[[auth.issuers]]`: authorization servers whose access tokens are taken, and what these are worth.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;

use crate::policy::config::Issuer;
use crate::policy::config::issuer::{ALGORITHMS, Introspection, Rule, When};
use crate::upstream::config::{Reach, Trust};

use crate::config::doc::{KeyDoc, TableDoc};
use crate::config::fault::Fault;
use crate::config::read::{ANY, Section, duration};
use crate::config::sections::address::{Address, address, is_public};
use crate::config::sections::roles::Roles;

/// What the clocks of two machines may differ by, where nothing is said, and at most.
const SKEW: Duration = Duration::from_secs(30);
const SKEW_MAX: Duration = Duration::from_secs(60);
/// What a client asks for that wants a refresh token: that is between it and its authorization server.
const OFFLINE: &str = "offline_access";
const OFFLINE_SAID: &str =
    "`offline_access` is for clients to ask for, and says nothing of what a token opens: leave it out";
/// So many pairs of a scope and one that it includes are taken.
const INCLUDES_MAX: usize = 256;
/// So many are taken.
const ISSUERS_MAX: usize = 16;

/// All that are right, and whether any are written.
pub(super) fn issuers(section: &mut Section<'_>, roles: &Roles) -> (Vec<Issuer>, bool) {
    let (mut all, mut names) = (Vec::new(), HashSet::new());
    let entries = section.list_of_tables("issuers");
    let written = entries.len();
    for entry in entries {
        let (place, reading) = (entry.own_place(), entry.reading);
        let Some(issuer) = issuer(entry, roles) else { continue };
        if !names.insert(issuer.name.clone()) {
            let text = format!("two entries of [[auth.issuers]] are `{}`", issuer.name);
            reading.fault(Fault::error("duplicate-name", text).at(place));
        }
        all.push(issuer);
    }
    if written > ISSUERS_MAX {
        section.wrong("issuers", &format!("expected at most {ISSUERS_MAX} of them"));
    }
    (all, written > 0)
}

/// Keys of `[[auth.issuers]]`.
pub(crate) const ISSUERS_DOC: TableDoc = TableDoc {
    heading: "[[auth.issuers]]",
    path: &["auth", "issuers", ANY],
    intro: "[Authorization servers](../security.md#access-tokens) whose access tokens clients may bear; at most \
        16. `[server] public_url` must be set.",
    keys: &[&[
        KeyDoc {
            key: "issuer",
            kind: "URL",
            default: "required",
            description: "what it is called, letter by letter as tokens and metadata name it; `https`, or `http` \
                on this machine",
        },
        KeyDoc {
            key: "audience",
            kind: "text or list",
            default: "`public_url` with `path`, `/sse` or `/ws`",
            description: "what tokens are for: one of these must be in `aud`",
        },
        KeyDoc {
            key: "scopes",
            kind: "list",
            default: "none",
            description: "scopes that every token must have; `offline_access` is refused, as it says nothing of \
                what a token opens",
        },
        KeyDoc {
            key: "includes",
            kind: "table",
            default: "none",
            description: "scopes that include others, such as `{ admin = \"write read\" }`: a token with the one \
                counts as one with the others, too",
        },
        KeyDoc {
            key: "algorithms",
            kind: "list",
            default: "all",
            description: "of signatures: `RS256`, `RS384`, `RS512`, `PS256`, `PS384`, `PS512`, `ES256`, `ES384`, \
                `EdDSA`",
        },
        KeyDoc {
            key: "clock_skew",
            kind: "duration, up to `60s`",
            default: "`30s`",
            description: "how far its clock may differ from that of this machine",
        },
        KeyDoc {
            key: "keys_url",
            kind: "URL",
            default: "as its metadata says",
            description: "where its keys (JWKS) lie",
        },
        KeyDoc {
            key: "ca",
            kind: "absolute path",
            default: "",
            description: "authorities in PEM form that are trusted besides those of the platform",
        },
        KeyDoc {
            key: "roles",
            kind: "list",
            default: "everything, without `rules`",
            description: "the [roles](../security.md#roles) that every token gives; `[]`: nothing",
        },
    ]],
    notes: "",
};

fn issuer(mut entry: Section<'_>, roles: &Roles) -> Option<Issuer> {
    let (place, reading, has_name) = (entry.own_place(), entry.reading, entry.has("issuer"));
    let named = entry.parse("issuer", |text| Ok((Arc::<str>::from(text), url(text, true)?)));
    let keys_url = entry.parse("keys_url", |text| url(text, false));
    let audience = entry.one_or_list("audience");
    if audience.iter().any(String::is_empty) {
        entry.wrong("audience", "expected what tokens name as `aud`, such as \"https://mcp.example.com/mcp\"");
    }
    let words = ALGORITHMS.map(|(word, _)| word);
    let algorithms = entry.list("algorithms", "[\"RS256\"]");
    for (index, _) in algorithms.iter().flatten().enumerate().filter(|(_, name)| !words.contains(&name.as_str())) {
        entry.wrong_item("algorithms", index, &format!("expected \"{}\"", words.join("\", \"")));
    }
    if algorithms.as_ref().is_some_and(Vec::is_empty) {
        entry.wrong("algorithms", "expected at least one algorithm");
    }
    let clock_skew = entry.number("clock_skew", |text| {
        let expected = || "expected a time of at most a minute, such as \"30s\"".to_owned();
        duration(text).ok().filter(|skew| *skew <= SKEW_MAX).ok_or_else(expected)
    });
    let scopes = entry.list("scopes", "[\"mcp\"]").unwrap_or_default();
    if scopes.iter().any(|scope| scope == OFFLINE) {
        entry.wrong("scopes", OFFLINE_SAID);
    } else if !scopes.iter().all(|scope| is_scope(scope)) {
        entry.wrong("scopes", "expected one scope an item, without spaces, `\"` and `\\`");
    }
    let includes = included(&mut entry);
    let given = roles.named(&mut entry);
    let rules = entry.list_of_tables("rules").into_iter().filter_map(|entry| rule(entry, roles)).collect();
    let introspection = introspection(&mut entry);
    let ca = ca(&mut entry);
    entry.end("[[auth.issuers]]");
    if !has_name {
        reading.fault(Fault::error("missing-key", "an authorization server has no `issuer`").at(place));
    }
    let (name, url) = named?;
    let is_chosen = |word: &str| algorithms.as_ref().is_none_or(|some| some.iter().any(|one| one == word));
    Some(Issuer {
        is_within: !is_public(url.host().unwrap_or_default()),
        name,
        url,
        keys_url,
        audience,
        algorithms: ALGORITHMS.iter().filter(|(word, _)| is_chosen(word)).map(|(_, one)| *one).collect(),
        clock_skew: clock_skew.unwrap_or(SKEW),
        scopes,
        includes,
        roles: given,
        rules,
        introspection,
        ca,
    })
}

/// A URL that keys and secrets may come from and go to.
fn url(text: &str, is_name: bool) -> Result<Uri, String> {
    let expected =
        || "expected a URL such as \"https://login.example.com\"; http:// is for this machine alone".to_owned();
    let Ok(Address::Http(url, None)) = address(text) else { return Err(expected()) };
    let is_safe = match url.scheme_str() {
        Some("https") => true,
        Some("http") => Reach::is_machine(url.host().unwrap_or_default()),
        _ => false,
    };
    let has_more = text.contains('#') || is_name && text.contains('?') || text.contains('"');
    if is_safe && !has_more && text.len() <= 1024 { Ok(url) } else { Err(expected()) }
}

fn is_scope(scope: &str) -> bool {
    !scope.is_empty() && scope.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
}

/// Scopes, each with one that it includes, however far.
fn included(entry: &mut Section<'_>) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for (wide, narrow) in entry.pairs("includes") {
        let before = all.len();
        all.extend(narrow.split_ascii_whitespace().map(|narrow| (wide.clone(), narrow.to_owned())));
        let is_right = |scope: &str| is_scope(scope) && scope != OFFLINE;
        let are_right = all[before..].iter().all(|(wide, narrow)| is_right(wide) && is_right(narrow));
        if all.len() == before || all.len() > INCLUDES_MAX || !are_right {
            let expected =
                "expected a scope, and those that it includes with spaces between, such as { admin = \"write read\" }";
            entry.wrong("includes", expected);
            return Vec::new();
        }
    }
    // Each round adds what is included one step further.
    loop {
        let next = |(wide, middle): &(String, String)| {
            let of_middle = all.iter().filter(|(of, _)| of == middle);
            of_middle.map(|(_, narrow)| (wide.clone(), narrow.clone())).collect::<Vec<_>>()
        };
        let further: HashSet<_> = all.iter().flat_map(next).filter(|pair| !all.contains(pair)).collect();
        if further.is_empty() {
            return all;
        }
        all.extend(further);
    }
}

/// Keys of `[[auth.issuers.rules]]`.
pub(crate) const RULES_DOC: TableDoc = TableDoc {
    heading: "[[auth.issuers.rules]]",
    path: &["auth", "issuers", ANY, "rules", ANY],
    intro: "",
    keys: &[&[
        KeyDoc {
            key: "scope",
            kind: "text",
            default: "this or `claim`",
            description: "a scope that a token must have",
        },
        KeyDoc {
            key: "claim",
            kind: "text",
            default: "this or `scope`",
            description: "the name of a claim, or names with dots between",
        },
        KeyDoc {
            key: "value",
            kind: "text",
            default: "required with `claim`",
            description: "what the claim must be, or have in its list",
        },
        KeyDoc {
            key: "roles",
            kind: "list",
            default: "required",
            description: "the roles that such a token gives, too",
        },
    ]],
    notes: "",
};

/// What a token must have for more roles.
fn rule(mut entry: Section<'_>, roles: &Roles) -> Option<Rule> {
    let (place, reading) = (entry.own_place(), entry.reading);
    let scope = entry.parse("scope", |text| match is_scope(text) {
        true if text == OFFLINE => Err(OFFLINE_SAID.to_owned()),
        true => Ok(text.to_owned()),
        false => Err("expected one scope, without spaces, `\"` and `\\`".to_owned()),
    });
    let (claim, value) = (entry.text("claim").filter(|name| !name.is_empty()), entry.text("value"));
    let given = roles.named(&mut entry);
    entry.end("`rules` of [[auth.issuers]]");
    let when = match (scope, claim, value) {
        (Some(scope), None, None) => Some(When::Scope(scope)),
        (None, Some(name), Some(value)) => Some(When::Claim { name, value }),
        _ => None,
    };
    if when.is_none() && reading.sketch.is_none() {
        let text = "a rule has either `scope`, or `claim` and `value`";
        reading.fault(Fault::error("missing-key", text).at(place.clone()));
    }
    if given.is_none() && reading.sketch.is_none() {
        reading.fault(Fault::error("missing-key", "a rule has no `roles`").at(place));
    }
    Some(Rule { when: when?, roles: given? })
}

/// Keys of `[auth.issuers.introspection]`.
pub(crate) const INTROSPECTION_DOC: TableDoc = TableDoc {
    heading: "[auth.issuers.introspection]",
    path: &["auth", "issuers", ANY, "introspection"],
    intro: "",
    keys: &[&[
        KeyDoc {
            key: "url",
            kind: "URL",
            default: "as its metadata says",
            description: "where it is asked about tokens that are no JSON Web Tokens (RFC 7662)",
        },
        KeyDoc { key: "client_id", kind: "text", default: "required", description: "who the gateway is there" },
        KeyDoc { key: "client_secret", kind: "text", default: "required", description: "its secret, sent in a header" },
    ]],
    notes: "",
};

/// How it is asked about tokens that say nothing themselves.
fn introspection(entry: &mut Section<'_>) -> Option<Introspection> {
    let is_given = entry.has("introspection");
    let mut table = entry.table("introspection");
    let place = table.own_place();
    let url = table.parse("url", |text| url(text, false));
    let (id, secret) = (table.text("client_id"), table.text("client_secret"));
    secret.iter().for_each(|secret| table.reading.secret(secret));
    let reading = table.reading;
    table.end("an `introspection` table");
    match (id, secret) {
        (Some(client_id), Some(client_secret)) => Some(Introspection { url, client_id, client_secret }),
        _ if is_given && reading.sketch.is_none() => {
            let text = "`introspection` needs `client_id` and `client_secret`";
            reading.fault(Fault::error("missing-key", text).at(place));
            None
        }
        _ => None,
    }
}

/// Authorities that are trusted besides those of the platform.
fn ca(entry: &mut Section<'_>) -> Option<PathBuf> {
    let ca = entry.parse("ca", |text| match text.starts_with('/') {
        true => Ok(PathBuf::from(text)),
        false => Err("expected an absolute path, such as \"/etc/trunkline/ca.pem\"".to_owned()),
    });
    if let Err(fault) = (Trust { ca: ca.clone(), ..Trust::default() }).read() {
        entry.wrong("ca", &fault.text);
    }
    ca
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::source::Environment;
    use crate::config::{Config, Inputs, load};
    use crate::runtime::Scratch;
    use jsonwebtoken::Algorithm;

    fn read(text: &str) -> Result<Config, String> {
        let scratch = Scratch::new();
        let path = scratch.write("issuers.toml", text);
        let environment = Environment::of(&[("SECRET", "canary-introspection")]);
        let loaded = load(Inputs { files: vec![path], environment, ..Inputs::default() });
        Ok(loaded.map_err(|faults| faults.to_string())?.config)
    }

    const PUBLIC: &str = "[server]\npublic_url = \"https://mcp.example.com/gw\"\n";
    const ISSUER: &str = "[[auth.issuers]]\nissuer = \"https://login.example.com/t\"\n";

    #[test]
    fn an_issuer_has_its_defaults_and_the_gateway_is_a_resource_for_it() {
        let config = read(&format!("{PUBLIC}{ISSUER}")).unwrap();
        let [issuer] = &config.auth.issuers[..] else { panic!("{:?}", config.auth.issuers) };
        assert_eq!((&*issuer.name, issuer.clock_skew, issuer.is_within), ("https://login.example.com/t", SKEW, false));
        assert_eq!((issuer.algorithms.len(), &issuer.roles, issuer.rules.len()), (ALGORITHMS.len(), &None, 0));
        let [resource, sse, ws] = &config.auth.resource.faces[..] else { panic!("three") };
        assert_eq!(resource.url, "https://mcp.example.com/gw/mcp");
        let known = "/.well-known/oauth-protected-resource";
        assert_eq!(resource.metadata_url, format!("https://mcp.example.com{known}/gw/mcp"));
        assert_eq!(resource.paths, [known.to_owned(), format!("{known}/mcp"), format!("{known}/gw/mcp")]);
        assert_eq!(sse.metadata_url, format!("https://mcp.example.com{known}/gw/sse"));
        assert_eq!(sse.paths, [format!("{known}/sse"), format!("{known}/gw/sse")]);
        assert_eq!(ws.url, "https://mcp.example.com/gw/ws");
        let bare = read(&format!("{PUBLIC}legacy_sse = false\nwebsocket = false\n{ISSUER}")).unwrap();
        assert_eq!(bare.auth.resource.faces.len(), 1, "what nobody serves is no resource");
        assert!(!config.auth.is_open() && config.auth.principals() > 1);
        let roles = "[auth.roles.r]\nupstreams = [\"*\"]\n";
        let more = "algorithms = [\"ES256\"]\nroles = []\nrules = [{ scope = \"a\", roles = [\"r\"] }, { claim = \"g\", value = \"v\", roles = [\"r\"] }]\n\
             introspection = { client_id = \"me\", client_secret = \"${SECRET}\" }\n";
        let config = read(&format!("{PUBLIC}[auth]\nmode = \"oauth\"\n{roles}{ISSUER}{more}")).unwrap();
        let issuer = &config.auth.issuers[0];
        assert_eq!((issuer.algorithms.clone(), issuer.rules.len()), (vec![Algorithm::ES256], 2));
        assert!(config.secrets.has("canary-introspection") && !format!("{issuer:?}").contains("canary"));
        let listed = format!("{PUBLIC}[[server.listeners]]\naddress = \"127.0.0.1:1\"\ntokens = []\n{ISSUER}");
        let config = read(&listed).unwrap();
        assert!(config.auth.only(config.server.listeners[0].tokens.as_deref()).issuers.is_empty());
    }

    #[test]
    fn a_scope_is_as_good_as_all_that_it_includes_however_far() {
        let more = "includes = { admin = \"write  audit\", write = \"read\", read = \"read look\", look = \"read\" }\n";
        let config = read(&format!("{PUBLIC}{ISSUER}{more}")).unwrap();
        let as_good_as = |scope: &str| {
            let mut all: Vec<_> = config.auth.issuers[0].as_good_as(scope).collect();
            all.sort_unstable();
            all.dedup();
            all.join(" ")
        };
        for (scope, expected) in [
            ("admin", "admin"),
            ("audit", "admin audit"),
            ("write", "admin write"),
            ("read", "admin look read write"),
            ("look", "admin look read write"),
            ("other", "other"),
        ] {
            assert_eq!(as_good_as(scope), expected, "{scope}");
        }
    }

    #[test]
    fn what_is_wrong_with_an_issuer_is_said_where_it_stands() {
        let with = |more: &str| format!("{PUBLIC}{ISSUER}{more}");
        for (text, words) in [
            (ISSUER.to_owned(), "`public_url` under [server] does not say which one this is"),
            (format!("{PUBLIC}[auth]\nmode = \"token\"\n{ISSUER}"), "write \"oauth\", or remove them"),
            (format!("{PUBLIC}[auth]\nmode = \"oauth\"\n"), "no [[auth.issuers]] are configured"),
            (format!("{PUBLIC}[[auth.issuers]]\nscopes = []\n"), "an authorization server has no `issuer`"),
            (
                format!("{PUBLIC}[[auth.issuers]]\nissuer = \"http://login.example.com\"\n"),
                "http:// is for this machine alone",
            ),
            (with(ISSUER), "two entries of [[auth.issuers]] are `https://login.example.com/t`"),
            (with("algorithms = [\"HS256\"]\n"), "expected \"RS256\""),
            (with("algorithms = [\"none\"]\n"), "expected \"RS256\""),
            (with("algorithms = []\n"), "at least one algorithm"),
            (with("clock_skew = \"5m\"\n"), "at most a minute"),
            (with("scopes = [\"a b\"]\n"), "one scope an item"),
            (with("scopes = [\"a\", \"offline_access\"]\n"), "`offline_access` is for clients to ask for"),
            (
                with("rules = [{ scope = \"offline_access\", roles = [] }]\n"),
                "`offline_access` is for clients to ask for",
            ),
            (with("includes = { a = \"\" }\n"), "those that it includes with spaces between"),
            (with("includes = { \"a b\" = \"c\" }\n"), "those that it includes with spaces between"),
            (with("includes = { a = \"offline_access\" }\n"), "those that it includes with spaces between"),
            (with("roles = [\"r\"]\n"), "there is no [auth.roles.r]"),
            (with("rules = [{ scope = \"a\" }]\n"), "a rule has no `roles`"),
            (with("rules = [{ claim = \"a\", roles = [] }]\n"), "either `scope`, or `claim` and `value`"),
            (with("introspection = { client_id = \"a\" }\n"), "needs `client_id` and `client_secret`"),
            (with("ca = \"ca.pem\"\n"), "expected an absolute path"),
            (with("keys = \"x\"\n"), "`keys` is not a key of"),
        ] {
            let why = read(&text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
