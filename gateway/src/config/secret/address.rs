//! Addresses and paths as they may be shown: without what could open them.

use super::looks::begins_as_key;
use super::word::{HIDDEN, hidden, is_number, is_reference, piece, with_references, without_defaults};
use crate::secrets::looks_random;

/// What stands behind such a part of the path of an address is known to few. Other words may stand before it: `api-key`.
const LEADS: [&str; 12] = [
    "token", "tokens", "key", "keys", "secret", "secrets", "password", "webhook", "webhooks", "hook", "hooks",
    "services",
];

/// The address of a server: its scheme, host, port and path, and the names of its parameters.
pub(crate) fn address(text: &str) -> String {
    let text = without_defaults(text);
    if let Some(place) = text.strip_prefix("unix:") {
        return format!("unix:{}", if is_path(place) { path(place) } else { hidden(place) });
    }
    let is_scheme = |scheme: &str| scheme.chars().all(|char| char.is_ascii_alphanumeric() || "+-.".contains(char));
    let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
        return hidden(&text);
    };
    let (user, place) = without_user(rest).map_or(("", rest), |place| ("[secret]@", place));
    let (before, fragment) = place.split_once('#').map_or((place, ""), |(before, _)| (before, "#[secret]"));
    let (before, query) = before.split_once('?').map_or((before, None), |(before, query)| (before, Some(query)));
    let mut parts = before.split('/');
    let mut out = format!("{scheme}://{user}{}", host(parts.next().unwrap_or_default()));
    let mut is_behind = false;
    for part in parts {
        out.push('/');
        out.push_str(&if is_behind { hidden(part) } else { piece(part) });
        is_behind |= leads(part);
    }
    for (index, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
        out.push(if index == 0 { '?' } else { '&' });
        let (name, value) = pair.split_once('=').unwrap_or(("", pair));
        let name = if name.is_empty() { String::new() } else { format!("{}=", piece(name)) };
        out.push_str(&format!("{name}{}", hidden(value)));
    }
    out + fragment
}

/// What stands behind the name and the password before a host, where there are some. A password may have any character in it.
fn without_user(text: &str) -> Option<&str> {
    let (before, place) = text.rsplit_once('@')?;
    // `https://server.example.com/@me/server`: a name in a path, behind a host without a colon.
    let is_in_path = before.ends_with('/')
        && !before.contains([':', '@', '?', '#'])
        && before.split('/').next().is_some_and(|host| host.contains('.'));
    (!is_in_path).then_some(place)
}

/// A host with its port, if there is one: what has another form may be a name with a password.
fn host(text: &str) -> &str {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !port.contains([']', '}']) || is_reference(port) => (name, port),
        _ => (text, ""),
    };
    let is_port = port.is_empty() || is_number(port) || is_reference(port);
    let inside = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_name = match inside {
        Some(inside) => name == HIDDEN || inside.bytes().all(|byte| byte.is_ascii_hexdigit() || b":.".contains(&byte)),
        None => {
            let plain = with_references(name, |one| if is_reference(one) { "" } else { one });
            plain.chars().all(|char| char.is_ascii_alphanumeric() || "-._".contains(char))
                && !plain.split('.').any(|label| looks_random(label) || begins_as_key(label))
        }
    };
    if is_port && is_name { text } else { HIDDEN }
}

/// Whether the part of a path says that what stands behind it opens something.
fn leads(part: &str) -> bool {
    let part = part.to_lowercase();
    let last = part.rsplit(['-', '_', '.']).next().unwrap_or_default();
    LEADS.contains(&last) || ["token", "apikey", "secret"].iter().any(|end| last.ends_with(end))
}

/// Whether a text is the path of a file, as far as its beginning says so.
pub(super) fn is_path(text: &str) -> bool {
    text.starts_with(['/', '.', '~']) && text.len() > 1 || text.starts_with("${")
}

/// The path of a file. What stands in a folder of secrets is the name of a file alone.
pub(super) fn path(text: &str) -> String {
    let text = without_defaults(text);
    let last = text.matches('/').count();
    // `Application Support`: whoever writes a whole command into one argument does not write it so.
    let is_title = |word: &str| word.starts_with(char::is_uppercase) && word.chars().all(char::is_alphabetic);
    let is_spaced = |part: &str| part.contains(' ') && part.split(' ').all(is_title);
    let one = |(index, part): (usize, &str)| match index < last && is_spaced(part) {
        true => part.to_owned(),
        false => piece(part),
    };
    text.split('/').enumerate().map(one).collect::<Vec<_>>().join("/")
}
