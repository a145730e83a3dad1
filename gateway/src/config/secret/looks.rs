//! Whether a key or a value looks like a secret.

/// Variables of every login, which are no secrets and stand in many texts.
const OF_THE_LOGIN: [&str; 12] =
    ["HOME", "HOST", "HOSTNAME", "LANG", "LOGNAME", "OLDPWD", "PATH", "PWD", "SHELL", "TERM", "TMPDIR", "USER"];
/// A key with one of these words in its name has a secret for its value,
const SECRET: [&str; 24] = [
    "apikey",
    "assertion",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "creds",
    "jwt",
    "key",
    "keys",
    "pass",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "pat",
    "pgpass",
    "pw",
    "secret",
    "sig",
    "signature",
    "token",
];
/// at whose end one of these may stand in a word without a break,
const ENDS: [&str; 8] = ["apikey", "accesskey", "cookie", "passwd", "password", "secret", "secretkey", "token"];
/// unless its last word says that it is of something else about it.
const ABOUT: [&str; 20] = [
    "algorithm",
    "dir",
    "endpoint",
    "expiry",
    "file",
    "header",
    "host",
    "id",
    "length",
    "limit",
    "method",
    "mode",
    "name",
    "path",
    "scheme",
    "size",
    "timeout",
    "ttl",
    "type",
    "url",
];

/// Behind flags with one of these words a secret may stand, too: they are masked where arguments are shown, and nowhere else,
const MASKED: [&str; 13] = [
    "conn",
    "connection",
    "dsn",
    "licence",
    "license",
    "mnemonic",
    "otp",
    "pin",
    "psk",
    "pwd",
    "session",
    "sessionid",
    "totp",
];
/// as is what ends with one of these and is none of the words behind them.
const MASKED_ENDS: [&str; 4] = ["key", "keys", "pass", "pwd"];
const WORDS: [&str; 5] = ["bypass", "compass", "hotkey", "monkey", "turkey"];
/// So keys of well-known services begin.
const KEYS: [&str; 21] = [
    "AIza",
    "AKIA",
    "ASIA",
    "dckr_pat_",
    "eyJ",
    "gho_",
    "ghp_",
    "ghr_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "hf_",
    "npm_",
    "pk-",
    "pk_",
    "rk_",
    "sk-",
    "sk_",
    "tl_",
    "whsec_",
];

/// Whether the value of a variable is no secret, though a reference names it: a path, or what every login has.
pub(crate) fn is_plain(variable: &str, value: &str) -> bool {
    OF_THE_LOGIN.contains(&variable) || variable.starts_with("XDG_") || is_path(value)
}

/// Whether a text is an absolute path and nothing else. One that looks like chance must be there.
pub(crate) fn is_path(text: &str) -> bool {
    let is_name = |char: char| char.is_alphanumeric() || "/._- ".contains(char);
    text.starts_with('/')
        && text.chars().all(is_name)
        && (!text.contains(char::is_uppercase) || std::path::Path::new(text).exists())
}

/// Whether the name of a key says that its value is a secret.
pub(crate) fn looks_secret(name: &str) -> bool {
    let words = words(name);
    // `PWD` alone is a folder.
    let is_secret = |word: &String| {
        let one = word.strip_suffix('s').unwrap_or(word);
        [&**word, one].iter().any(|word| SECRET.contains(word) || ENDS.iter().any(|end| word.ends_with(end)))
    };
    let is_pwd = words.len() > 1 && words.last().is_some_and(|word| word == "pwd") && words[0] != "old";
    (is_pwd || words.iter().any(is_secret)) && !words.last().is_some_and(|word| ABOUT.contains(&&**word))
}

/// Whether a flag, or a word before a value, says that the value may be a secret: in doubt it does.
pub(super) fn names_secret(name: &str) -> bool {
    let words = words(name);
    let is_such = |word: &String| {
        let word = word.as_str();
        MASKED.contains(&word) || MASKED_ENDS.iter().any(|end| word.ends_with(end)) && !WORDS.contains(&word)
    };
    let is_about = words.last().is_some_and(|word| ABOUT.contains(&&**word));
    let is_session = words.ends_with(&["session".to_owned(), "id".to_owned()]);
    looks_secret(name) || words.iter().any(is_such) && (!is_about || is_session)
}

/// Whether a flag turns something off, so that it takes nothing: `--no-auth`.
pub(super) fn turns_off(flag: &str) -> bool {
    let name = flag.strip_prefix("--no-").or_else(|| flag.strip_prefix("--without-"));
    name.is_some_and(|name| name.chars().all(|char| char.is_ascii_lowercase() || char == '-'))
}

/// Whether a flag takes how many there may be: `--max-tokens`.
pub(super) fn counts(flag: &str) -> bool {
    let words = words(flag);
    let is_count = |word: &String| ["count", "limit", "max", "min", "num"].contains(&&**word);
    words.iter().any(is_count) && words.last().is_some_and(|word| word == "tokens")
}

/// Whether a flag takes the file of a key: `--ssh-key`.
pub(super) fn names_file(flag: &str) -> bool {
    let words = words(flag);
    let is_other = |word: &String| ["access", "api", "license", "master", "secret"].contains(&&**word);
    words.last().is_some_and(|word| word == "key" || word == "keys") && !words.iter().any(is_other)
}

/// Whether a text, or a part of it, begins as the keys of a well-known service do.
pub(super) fn begins_as_key(text: &str) -> bool {
    let is_slack = |part: &str| part.starts_with("xox") && part.as_bytes().get(4) == Some(&b'-');
    let is_key = |part: &str| is_slack(part) || KEYS.iter().any(|key| part.len() > key.len() && part.starts_with(key));
    text.split(['/', ':', '=', '@', ',', '&', '?', ' ']).any(is_key)
}

/// The words of a name, in small letters. A new one begins at what is no letter, and where a capital follows a small letter.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut was_lower = false;
    for char in name.chars() {
        if (!char.is_alphabetic() || char.is_uppercase() && was_lower)
            && words.last().is_some_and(|word| !word.is_empty())
        {
            words.push(String::new());
        }
        if char.is_alphabetic() {
            words.last_mut().into_iter().for_each(|word| word.extend(char.to_lowercase()));
        }
        was_lower = char.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_look_secret_are_told_from_those_that_speak_of_them() {
        for name in [
            "API_KEY",
            "apiKey",
            "x-api-key",
            "githubToken",
            "GH_TOKEN",
            "token",
            "PASSWORD",
            "db.passwd",
            "Authorization",
            "Cookie",
            "AWS_SECRET_ACCESS_KEY",
            "client_secret",
            "X-Auth",
            "GITHUB_PAT",
            "authtoken",
            "KEY2",
            "tokens",
            "PGPASS",
            "MYSQL_PWD",
            "AWS_CREDS",
            "client_assertion",
        ] {
            assert!(looks_secret(name), "{name}");
        }
        for name in [
            "PATH",
            "MONKEY",
            "keyboard",
            "AUTHOR",
            "AWS_ACCESS_KEY_ID",
            "TOKEN_URL",
            "PASSWORD_FILE",
            "AUTH_MODE",
            "compass",
            "X-Tenant",
            "passing",
            "patch",
            "PWD",
            "OLDPWD",
            "client_assertion_type",
        ] {
            assert!(!looks_secret(name), "{name}");
        }
    }

    #[test]
    fn paths_and_what_every_login_has_are_no_secrets() {
        assert!(
            is_plain("HOME", "/home/x")
                && is_plain("X", "/srv/data/files")
                && is_plain("XDG_RUNTIME_DIR", "/run/user/0")
                && is_plain("PATH", "/usr/bin:/opt/Tools+1/bin")
                && is_plain("XDG_SESSION_ID", "c2-of-a-login")
        );
        assert!(!is_plain("X", "/AbC+dEf=") && !is_plain("X", "a-value") && !is_plain("X", "/aB3/no/such"));
    }
}
