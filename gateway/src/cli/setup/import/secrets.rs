//! Secrets that stand in a host's file: each is replaced by a reference, and its value is never shown.

use std::collections::BTreeMap;
use std::fs::{Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

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
    folder: Option<PathBuf>,
    /// The variables that are in use already, each with its value where that is known.
    named: BTreeMap<String, Option<String>>,
}

impl Found {
    pub(crate) fn new(folder: Option<PathBuf>, named: BTreeMap<String, Option<String>>) -> Self {
        Self { folder, named, ..Self::default() }
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
        // There is no end of numbers.
        let name = names.find(|name| self.is_free(name, &value)).unwrap_or_default();
        self.values.insert(name.clone(), value);
        match &self.folder {
            Some(folder) => format!("${{file:{}/{name}}}", folder.display()),
            None => format!("${{{name}}}"),
        }
    }

    /// Whether nothing else has this name: neither here, nor in the folder or among the variables.
    fn is_free(&self, name: &str, value: &str) -> bool {
        if let Some(known) = self.values.get(name) {
            return known == value;
        }
        match &self.folder {
            Some(folder) => folder.join(name).symlink_metadata().is_err() || holds(&folder.join(name), value),
            None => self.named.get(name).is_none_or(|known| known.as_deref() == Some(value)),
        }
    }
}

/// Whether a file is this user's alone and holds this value.
pub(super) fn holds(path: &Path, value: &str) -> bool {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC).bits().cast_signed();
    let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(path) else { return false };
    let is_private = |seen: Metadata| {
        seen.is_file() && seen.mode() & 0o077 == 0 && seen.uid() == rustix::process::geteuid().as_raw()
    };
    let mut held = Vec::new();
    file.metadata().is_ok_and(is_private)
        && file.take(value.len() as u64 + 1).read_to_end(&mut held).is_ok_and(|_| held == value.as_bytes())
}

/// The variables that a text refers to.
pub(super) fn references(text: &str) -> Vec<&str> {
    let inside = text.split("${").skip(1).filter_map(|rest| rest.split_once('}')).map(|(inside, _)| inside);
    let names = inside.map(|inside| inside.split_once(':').map_or(inside, |(name, _)| name));
    names.filter(|name| name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')).collect()
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

    #[test]
    fn a_name_that_is_in_use_is_not_given_to_another_value() {
        let named = [("API_KEY", None), ("TOKEN", Some("canary-one")), ("OTHER_TOKEN", Some("canary-two"))];
        let named = named.into_iter().map(|(name, value)| (name.to_owned(), value.map(str::to_owned))).collect();
        let mut found = Found::new(None, named);
        assert_eq!(found.pair("s", "API_KEY", "canary-one"), "${S_API_KEY}");
        assert_eq!(found.pair("s", "OTHER_TOKEN", "canary-two"), "${OTHER_TOKEN}");
        assert_eq!(found.pair("s", "OTHER_TOKEN", "canary-three"), "${S_OTHER_TOKEN}");
        assert_eq!(references("a ${A} ${B:-x} ${file:/x} $${C}${"), ["A", "B", "file", "C"]);
    }

    #[test]
    fn a_file_that_is_there_is_used_only_if_it_is_private_and_holds_the_same() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("trunkline-secrets-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, mode) in [("API_KEY", 0o600), ("B_KEY", 0o644)] {
            std::fs::write(folder.join(name), "canary-one").unwrap();
            std::fs::set_permissions(folder.join(name), PermissionsExt::from_mode(mode)).unwrap();
        }
        std::os::unix::fs::symlink(folder.join("API_KEY"), folder.join("C_KEY")).unwrap();
        let mut found = Found::new(Some(folder.clone()), BTreeMap::new());
        let mut file = |key: &str, value: &str| {
            let reference = found.pair("s", key, value);
            reference.rsplit('/').next().unwrap().trim_end_matches('}').to_owned()
        };
        assert_eq!(file("API_KEY", "canary-one"), "API_KEY");
        assert_eq!(file("API_KEY", "canary-two"), "S_API_KEY");
        assert_eq!(file("B_KEY", "canary-one"), "S_B_KEY");
        assert_eq!(file("C_KEY", "canary-one"), "S_C_KEY");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
