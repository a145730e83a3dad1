//! What a value of a host's file looks like: a token, a pair, an address with a password.

/// Beginnings of tokens of well-known services.
const BEGINNINGS: [&str; 18] = [
    "sk-",
    "sk_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "eyJ",
    "AKIA",
    "ya29.",
    "lin_api_",
    "ntn_",
    "tvly-",
    "hf_",
    "AIza",
];
/// What stands before a credential in a header.
const SCHEMES: [&str; 8] = ["bearer", "basic", "token", "apikey", "api-key", "key", "bot", "digest"];
/// A chain of so many letters and digits is no word.
const CHANCE: usize = 32;
/// One with capitals or of hexadecimal digits is none if it has so many.
const MIXED: usize = 24;

/// The scheme before a credential, with its space, and the rest.
pub(super) fn scheme(value: &str) -> (&str, &str) {
    match value.find(' ') {
        Some(at) if SCHEMES.iter().any(|scheme| value[..at].eq_ignore_ascii_case(scheme)) => value.split_at(at + 1),
        _ => ("", value),
    }
}

/// Whether a value says by itself that it is a secret.
pub(super) fn like_token(value: &str) -> bool {
    let (scheme, rest) = scheme(value);
    let is_credential = ["bearer ", "basic "].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    if is_credential && rest.len() >= 8 && !rest.contains(' ') {
        return true;
    }
    // Whatever stands before it, such as the name of a scheme that is not known.
    let value = value.split_once(' ').filter(|(scheme, _)| scheme.len() <= 8).map_or(value, |(_, rest)| rest);
    if BEGINNINGS.iter().any(|begin| value.starts_with(begin)) && value.len() >= 16 {
        return true;
    }
    value.len() >= CHANCE
        && is_plain(value)
        && has(value, char::is_ascii_digit)
        && has(value, char::is_ascii_alphabetic)
}

/// Whether a word is made of chance, as no name is: of both cases and digits, or of hexadecimal digits.
pub(super) fn is_chance(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let is_hex = word.chars().all(|char| char.is_ascii_hexdigit() || char == '-');
    let is_mixed = has(word, char::is_ascii_uppercase) && has(word, char::is_ascii_lowercase);
    word.len() >= MIXED && is_plain(word) && digits >= 2 && (is_mixed || is_hex && has(word, char::is_ascii_alphabetic))
}

fn is_plain(word: &str) -> bool {
    word.chars().all(|char| char.is_ascii_alphanumeric() || "_-".contains(char))
}

fn has(word: &str, kind: fn(&char) -> bool) -> bool {
    word.chars().any(|char| kind(&char))
}

/// A text in pieces, each with whether it is a reference. A dollar sign that is written twice begins none.
pub(super) fn pieces(text: &str) -> Vec<(bool, &str)> {
    let (mut pieces, mut begin, mut at) = (Vec::new(), 0, 0);
    while let Some(found) = text[at..].find('$').map(|found| found + at) {
        let rest = &text[found..];
        match rest.find('}').filter(|_| rest.starts_with("${")) {
            Some(end) => {
                pieces.extend((begin < found).then(|| (false, &text[begin..found])));
                begin = found + end + 1;
                pieces.push((true, &text[found..begin]));
                at = begin;
            }
            None => at = found + if rest.starts_with("$$") { 2 } else { 1 },
        }
    }
    pieces.extend((begin < text.len()).then(|| (false, &text[begin..])));
    pieces
}

/// A pair: its beginning up to the value, the name, the value. The first mark counts behind which no address begins.
pub(super) fn assigned(arg: &str) -> Option<(&str, &str, &str)> {
    let at = arg.find(['=', ':'])?;
    let (name, rest) = (&arg[..at], &arg[at + 1..]);
    // What stands before the mark is a key: no address, no path, no sentence.
    let is_key = (1..=64).contains(&name.len()) && !name.contains(['/', '{', '"', '?', ' ', '@']);
    let value = rest.trim_start();
    (is_key && !rest.starts_with("//")).then(|| (&arg[..arg.len() - value.len()], name.trim_start_matches('-'), value))
}

/// What stands behind `://`: the user with a password, the host, and the rest.
pub(super) fn authority(text: &str) -> (Option<&str>, &str, &str) {
    let split = |text: &'_ str| text.find(['/', '?', '#']).unwrap_or(text.len());
    let (first, rest) = text.split_at(split(text));
    if let Some((user, host)) = first.rsplit_once('@') {
        return (Some(user), host, rest);
    }
    // A password may have a slash in it; then what stands behind the colon is no port.
    let is_port =
        |port: &str| port.is_empty() || port.contains(['$', ']']) || port.bytes().all(|byte| byte.is_ascii_digit());
    if first.rsplit_once(':').is_some_and(|(_, port)| !is_port(port))
        && let Some((user, behind)) = text.split_once('@')
    {
        let (host, rest) = behind.split_at(split(behind));
        return (Some(user), host, rest);
    }
    (None, first, rest)
}

/// `user:password@tcp(host)/db`, as drivers of databases have it: up to the password, the password, the rest.
pub(super) fn of_a_driver(value: &str) -> Option<(&str, &str, &str)> {
    let at = ["@tcp(", "@unix(", "@("].iter().find_map(|mark| value.find(mark))?;
    let colon = value[..at].find(':').filter(|colon| colon + 1 < at && !value[..at].contains([' ', '/']))?;
    Some((&value[..=colon], &value[colon + 1..at], &value[at..]))
}

/// The texts in an object, each with its key.
pub(super) fn texts_of_json(key: &str, value: &serde_json::Value, texts: &mut Vec<(String, String)>) {
    match value {
        serde_json::Value::String(text) => texts.push((key.to_owned(), text.clone())),
        serde_json::Value::Array(items) => items.iter().for_each(|item| texts_of_json(key, item, texts)),
        serde_json::Value::Object(members) => members.iter().for_each(|(key, value)| texts_of_json(key, value, texts)),
        _ => {}
    }
}
