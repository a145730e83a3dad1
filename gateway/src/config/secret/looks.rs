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
    let mut words: Vec<String> = vec![String::new()];
    let mut was_lower = false;
    for char in name.chars() {
        // A new word begins at what is no letter, and where a capital follows a small letter.
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
    // `PWD` alone is a folder.
    let is_secret = |word: &String| {
        let one = word.strip_suffix('s').unwrap_or(word);
        [&**word, one].iter().any(|word| SECRET.contains(word) || ENDS.iter().any(|end| word.ends_with(end)))
    };
    let is_pwd = words.len() > 1 && words.last().is_some_and(|word| word == "pwd") && words[0] != "old";
    (is_pwd || words.iter().any(is_secret)) && !words.last().is_some_and(|word| ABOUT.contains(&&**word))
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
