//! Secrets that stand in a host's file: each is replaced by a reference, and its value is never shown.

use std::collections::BTreeMap;

use crate::config::import::looks_secret;

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
/// A chain of so many letters and digits is no word.
const CHANCE: usize = 32;

/// The secrets found so far: the variable that stands for each, and the value.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) values: BTreeMap<String, String>,
    /// With a folder, values are kept there in files, and references name these.
    folder: Option<String>,
}

impl Found {
    pub(crate) fn new(folder: Option<String>) -> Self {
        Self { folder, ..Self::default() }
    }

    /// The value of a key, without its secret. `server` is told apart from others that have the same key.
    pub(crate) fn pair(&mut self, server: &str, key: &str, value: &str) -> String {
        if is_reference(value) || value.is_empty() {
            return value.to_owned();
        }
        if let Some(url) = self.url(server, value) {
            return url;
        }
        if !looks_secret(key) && !looks_like_token(value) || value.starts_with('/') {
            return value.to_owned();
        }
        let (scheme, rest) = match value.split_once(' ') {
            Some((scheme, rest)) if scheme.len() <= 8 => (format!("{scheme} "), rest),
            _ => (String::new(), value),
        };
        let key = if key.eq_ignore_ascii_case("authorization") { "TOKEN" } else { key };
        let is_own = key.chars().all(|char| char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_');
        let name = if is_own && key != "TOKEN" { key.to_owned() } else { format!("{server}_{key}") };
        format!("{scheme}{}", self.reference(server, &name, rest))
    }

    /// The arguments of a program, without their secrets: `--token x`, `--token=x`, `TOKEN=x`, `Header: x`.
    pub(crate) fn args(&mut self, server: &str, args: &[String]) -> Vec<String> {
        let mut key: Option<String> = None;
        let mut found = Vec::new();
        for arg in args {
            let (before, name, value) = match key.take().filter(|_| !arg.starts_with('-')) {
                Some(name) => (String::new(), name, arg.as_str()),
                None => match ['=', ':'].into_iter().find_map(|mark| arg.split_once(mark).map(|parts| (mark, parts))) {
                    Some((mark, (name, value))) if is_key(name) && !value.starts_with("//") => {
                        let space = if value.starts_with(' ') { " " } else { "" };
                        (format!("{name}{mark}{space}"), name.trim_start_matches('-').to_owned(), value.trim_start())
                    }
                    _ => (String::new(), String::new(), arg.as_str()),
                },
            };
            if arg.starts_with('-') && !arg.contains(['=', ':']) {
                key = Some(arg.trim_start_matches('-').to_owned()).filter(|name| looks_secret(name));
            }
            found.push(format!("{before}{}", self.pair(server, &name, value)));
        }
        found
    }

    /// An address with a secret in it, without it.
    fn url(&mut self, server: &str, value: &str) -> Option<String> {
        let (scheme, rest) = value.split_once("://")?;
        let (before, query) = rest.split_once('?').map_or((rest, None), |(before, query)| (before, Some(query)));
        let (authority, path) =
            before.split_once('/').map_or((before, String::new()), |(host, path)| (host, format!("/{path}")));
        let authority = match authority.rsplit_once('@') {
            Some((user, host)) if !is_reference(user) => match user.split_once(':') {
                Some((name, password)) => {
                    format!("{name}:{}@{host}", self.reference(server, &format!("{server}_PASSWORD"), password))
                }
                None => format!("{}@{host}", self.reference(server, &format!("{server}_PASSWORD"), user)),
            },
            _ => authority.to_owned(),
        };
        let pair = |pair: &str| match pair.split_once('=') {
            Some((name, value)) if !is_reference(value) && (looks_secret(name) || looks_like_token(value)) => {
                format!("{name}={}", self.reference(server, &format!("{server}_{name}"), value))
            }
            _ => pair.to_owned(),
        };
        let query = query.map(|query| query.split('&').map(pair).collect::<Vec<_>>().join("&"));
        let query = query.map_or_else(String::new, |query| format!("?{query}"));
        Some(format!("{scheme}://{authority}{path}{query}"))
    }

    /// A reference to a value, under a name that no other value has.
    fn reference(&mut self, server: &str, name: &str, value: &str) -> String {
        // A dollar sign is written twice in what is read as a configuration.
        let value = value.replace("$$", "$");
        let longer = format!("{server}_{name}");
        let numbered = (2..).map(|number| variable(&format!("{longer}_{number}")));
        let mut names = [variable(name), variable(&longer)].into_iter().chain(numbered);
        let is_free = |name: &String| self.values.get(name).is_none_or(|known| *known == value);
        // There is no end of numbers.
        let name = names.find(is_free).unwrap_or_default();
        self.values.insert(name.clone(), value);
        match &self.folder {
            Some(folder) => format!("${{file:{folder}/{name}}}"),
            None => format!("${{{name}}}"),
        }
    }
}

/// The name of a variable: capitals, digits and underscores.
fn variable(name: &str) -> String {
    let plain = |char: char| if char.is_ascii_alphanumeric() { char.to_ascii_uppercase() } else { '_' };
    let name: String = name.chars().map(plain).collect();
    if name.starts_with(|char: char| char.is_ascii_digit()) { format!("_{name}") } else { name }
}

fn is_reference(value: &str) -> bool {
    value.contains("${")
}

/// Whether what stands before `=` or `:` in an argument is a key: no address, no path, no sentence.
fn is_key(name: &str) -> bool {
    (1..=64).contains(&name.len()) && !name.contains(['/', '{', '"', '?', ' ', '@'])
}

/// Whether a value says by itself that it is a secret.
fn looks_like_token(value: &str) -> bool {
    let value = value.split_once(' ').filter(|(scheme, _)| scheme.len() <= 8).map_or(value, |(_, rest)| rest);
    if BEGINNINGS.iter().any(|begin| value.starts_with(begin)) && value.len() >= 16 {
        return true;
    }
    let is_plain = value.chars().all(|char| char.is_ascii_alphanumeric() || "_-".contains(char));
    let has = |kind: fn(&char) -> bool| value.chars().any(|char| kind(&char));
    value.len() >= CHANCE && is_plain && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_become_references_and_the_rest_stays() {
        let mut found = Found::default();
        let mut pair = |key: &str, value: &str| found.pair("my-server", key, value);
        assert_eq!(pair("GITHUB_TOKEN", "canary-one"), "${GITHUB_TOKEN}");
        assert_eq!(pair("GITHUB_TOKEN", "canary-two"), "${MY_SERVER_GITHUB_TOKEN}");
        assert_eq!(pair("Authorization", "Bearer canary-three"), "Bearer ${MY_SERVER_TOKEN}");
        assert_eq!(pair("X", "ghp_0123456789abcdef"), "${X}");
        assert_eq!(
            pair("url", "https://h/p?api_key=canary-four&page=1"),
            "https://h/p?api_key=${MY_SERVER_API_KEY}&page=1"
        );
        assert_eq!(pair("DB", "postgres://me:canary-five@h/db"), "postgres://me:${MY_SERVER_PASSWORD}@h/db");
        for (key, value) in
            [("PATH", "/bin"), ("MODE", "fast"), ("API_KEY", "${KEY}"), ("KEY_FILE", "/k"), ("TOKEN", "")]
        {
            assert_eq!(pair(key, value), value, "{key}");
        }
        let args = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            Found::default().args("s", &args).join(" ")
        };
        assert_eq!(args(&["-y", "@a/b", "--token", "canary", "--name", "x"]), "-y @a/b --token ${S_TOKEN} --name x");
        assert_eq!(args(&["--api-key=canary", "https://h/x"]), "--api-key=${S_API_KEY} https://h/x");
        assert_eq!(args(&["-e", "GH_TOKEN=canary"]), "-e GH_TOKEN=${GH_TOKEN}");
        assert_eq!(args(&["--header", "Authorization: Bearer canary"]), "--header Authorization: Bearer ${S_TOKEN}");
        assert_eq!(found.values["MY_SERVER_TOKEN"], "canary-three");
    }
}
