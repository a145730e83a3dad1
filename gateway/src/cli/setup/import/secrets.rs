//! Secrets that stand in a host's file: each is replaced by a reference, and its value is never shown.

use std::collections::BTreeMap;
use std::fs::{Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::shape;
use crate::config::import::looks_secret;

/// So many pairs may stand in one another in an argument.
const DEPTH: usize = 3;

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
        if value.is_empty() {
            return String::new();
        }
        if let Some(found) = self.url(server, value).or_else(|| self.json(server, value)) {
            return found;
        }
        if let Some((before, password, after)) = shape::of_a_driver(value).filter(|(_, word, _)| !is_reference(word)) {
            return format!("{before}{}{after}", self.reference(server, &format!("{server}_PASSWORD"), password));
        }
        let is_secret = looks_secret(key) && !(value.starts_with('/') && Path::new(value).exists());
        if is_reference(value) {
            return if is_secret { self.mixed(server, key, value) } else { value.to_owned() };
        }
        if !is_secret && !shape::like_token(value) {
            return self.words(server, value);
        }
        let (scheme, rest) = shape::scheme(value);
        format!("{scheme}{}", self.named(server, key, rest))
    }

    /// A reference with the name of the key, or of the server and the key.
    fn named(&mut self, server: &str, key: &str, value: &str) -> String {
        let key = if key.eq_ignore_ascii_case("authorization") { "TOKEN" } else { key };
        let is_own = key.chars().all(|char| char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_');
        let name = if is_own && key != "TOKEN" { key.to_owned() } else { format!("{server}_{key}") };
        self.reference(server, &name, value)
    }

    /// A secret that is partly a reference: what stands beside it is a secret too, where it looks like chance.
    fn mixed(&mut self, server: &str, key: &str, value: &str) -> String {
        let pieces = shape::pieces(value);
        let is_chance = |piece: &str| {
            let has = |kind: fn(char) -> bool| piece.contains(kind);
            piece.len() >= 8 && has(|char| char.is_ascii_digit()) && has(|char| char.is_ascii_alphabetic())
        };
        if !pieces.iter().any(|(is_reference, piece)| !is_reference && is_chance(shape::scheme(piece).1)) {
            return value.to_owned();
        }
        let piece = |(is_reference, piece): &(bool, &str)| match shape::scheme(piece) {
            _ if *is_reference => (*piece).to_owned(),
            (scheme, "") => scheme.to_owned(),
            (scheme, rest) => format!("{scheme}{}", self.named(server, key, rest)),
        };
        pieces.iter().map(piece).collect()
    }

    /// A line of a shell, without the secrets of its variables: `KEY=x program`.
    fn words(&mut self, server: &str, text: &str) -> String {
        if !text.contains(' ') {
            return text.to_owned();
        }
        let word = |word: &str| match word.split_once('=') {
            Some((name, value)) if looks_secret(name) && !is_reference(value) => {
                let plain = value.trim_matches([' ', '"', '\'']);
                match value.split_once(plain).filter(|_| !plain.is_empty()) {
                    Some((before, after)) => format!("{name}={before}{}{after}", self.named(server, name, plain)),
                    None => word.to_owned(),
                }
            }
            _ => word.to_owned(),
        };
        text.split_inclusive(' ').map(word).collect()
    }

    /// An object in JSON, without its secrets.
    fn json(&mut self, server: &str, text: &str) -> Option<String> {
        if !text.trim_start().starts_with(['{', '[']) {
            return None;
        }
        let mut texts = Vec::new();
        shape::texts_of_json("", &serde_json::from_str(text).ok()?, &mut texts);
        let mut out = text.to_owned();
        for (key, value) in texts {
            let literal = serde_json::to_string(&value).ok()?;
            let inside = &literal[1..literal.len() - 1];
            let found = self.pair(server, &key, inside);
            if found != inside {
                // It may be written with other escapes; then all of it is the secret.
                if !out.contains(&literal) {
                    return Some(self.reference(server, &format!("{server}_JSON"), text));
                }
                out = out.replace(&literal, &format!("\"{found}\""));
            }
        }
        (out != text).then_some(out)
    }

    /// The arguments of a program, without their secrets: `--token x`, `--token=x`, `TOKEN=x`, `Header: x`.
    pub(crate) fn args(&mut self, server: &str, args: &[String]) -> Vec<String> {
        let mut key: Option<String> = None;
        let mut found = Vec::new();
        for arg in args {
            if let Some(name) = key.take().filter(|_| !arg.starts_with('-') || shape::is_chance(arg)) {
                found.push(self.pair(server, &name, arg));
                continue;
            }
            if arg.starts_with('-') && !arg.contains(['=', ':']) {
                key = Some(arg.trim_start_matches('-').to_owned()).filter(|name| looks_secret(name));
            }
            found.push(self.arg(server, arg, 0));
        }
        found
    }

    /// One argument. A value may be a pair itself: `--header=Authorization: x`.
    fn arg(&mut self, server: &str, arg: &str, depth: usize) -> String {
        match shape::assigned(arg) {
            Some((before, name, value)) if looks_secret(name) || depth == DEPTH => {
                format!("{before}{}", self.pair(server, name, value))
            }
            Some((before, name, value)) => match shape::assigned(value) {
                Some(_) => format!("{before}{}", self.arg(server, value, depth + 1)),
                None => format!("{before}{}", self.pair(server, name, value)),
            },
            None => self.pair(server, "", arg),
        }
    }

    /// An address with a secret in it, without it.
    fn url(&mut self, server: &str, value: &str) -> Option<String> {
        let (scheme, rest) = value.split_once("://").filter(|(scheme, _)| !scheme.contains([' ', '{', '"', '=']))?;
        let (user, host, rest) = shape::authority(rest);
        let user = match user {
            Some(user) if !is_reference(user) => {
                let (name, password) = user.split_once(':').map_or(("", user), |(name, word)| (name, word));
                let colon = if user.contains(':') { ":" } else { "" };
                format!("{name}{colon}{}@", self.reference(server, &format!("{server}_PASSWORD"), password))
            }
            Some(user) => format!("{user}@"),
            None => String::new(),
        };
        let (rest, fragment) = rest.split_once('#').map_or((rest, None), |(rest, fragment)| (rest, Some(fragment)));
        let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
        let segment = |segment: &str| match shape::is_chance(segment) {
            true => self.reference(server, &format!("{server}_TOKEN"), segment),
            false => segment.to_owned(),
        };
        let path = path.split('/').map(segment).collect::<Vec<_>>().join("/");
        let query = query.map_or_else(String::new, |query| format!("?{}", self.pairs(server, query)));
        let fragment = fragment.map_or_else(String::new, |fragment| format!("#{}", self.pairs(server, fragment)));
        Some(format!("{scheme}://{user}{host}{path}{query}{fragment}"))
    }

    /// The parameters of an address.
    fn pairs(&mut self, server: &str, pairs: &str) -> String {
        let is_code = |name: &str, value: &str| ["code", "access", "k"].contains(&name) && value.len() >= 8;
        let pair = |pair: &str| match pair.split_once('=') {
            Some((name, value)) if is_reference(value) || value.is_empty() => format!("{name}={value}"),
            Some((name, value)) if looks_secret(name) || shape::like_token(value) || is_code(name, value) => {
                format!("{name}={}", self.reference(server, &format!("{server}_{name}"), value))
            }
            _ => pair.to_owned(),
        };
        pairs.split('&').map(pair).collect::<Vec<_>>().join("&")
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
    shape::pieces(value).iter().any(|(is_reference, _)| *is_reference)
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
    fn a_secret_is_found_wherever_it_stands() {
        let args = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            Found::default().args("s", &args).join(" ")
        };
        assert_eq!(args(&["--token", "-CANARYdashAbCdEfGh1234567890"]), "--token ${S_TOKEN}");
        assert_eq!(args(&["--token", "--verbose", "x"]), "--token --verbose x");
        assert_eq!(args(&["--header=Authorization: Bearer canary"]), "--header=Authorization: Bearer ${S_TOKEN}");
        assert_eq!(args(&["--header", "Authorization: Basic canary=="]), "--header Authorization: Basic ${S_TOKEN}");
        assert_eq!(
            args(&["--env", r#"{"API_KEY": "canary", "A": "b"}"#]),
            r#"--env {"API_KEY": "${API_KEY}", "A": "b"}"#
        );
        assert_eq!(args(&["-c", "A=1 API_KEY='canary' npx x"]), "-c A=1 API_KEY='${API_KEY}' npx x");
        assert_eq!(
            args(&["a=b=c:d=e=f", "repo:tag@sha256:0", "--x=https://h/@a/b"]),
            "a=b=c:d=e=f repo:tag@sha256:0 --x=https://h/@a/b"
        );
        let pair = |key: &str, value: &str| Found::default().pair("s", key, value);
        assert_eq!(pair("AWS_SECRET_ACCESS_KEY", "/canary+x"), "${AWS_SECRET_ACCESS_KEY}");
        assert_eq!(pair("SSH_KEY", "/"), "/");
        assert_eq!(pair("PASSWORD", "one canary"), "${PASSWORD}");
        assert_eq!(pair("API_KEY", "a${USER}Canary1234"), "${API_KEY}${USER}${S_API_KEY}");
        assert_eq!(pair("Authorization", "Bearer ${A}"), "Bearer ${A}");
        assert_eq!(pair("PASSWORD", "a$${b}"), "${PASSWORD}");
        assert_eq!(pair("PGPASS", "canary"), "${PGPASS}");
        assert_eq!(pair("DSN", "me:canary@tcp(h)/db"), "me:${S_PASSWORD}@tcp(h)/db");
        assert_eq!(pair("BASIC", "Basic Q0FOQVJZ"), "Basic ${BASIC}");
        assert_eq!(pair("command", "env API_KEY=canary npx x"), "env API_KEY=${API_KEY} npx x");
        for (url, expected) in [
            ("https://h/x#token=canary", "https://h/x#token=${S_TOKEN}"),
            ("https://h/x?code=canary-long", "https://h/x?code=${S_CODE}"),
            ("https://me:Canary/x@h:1/y", "https://me:${S_PASSWORD}@h:1/y"),
            ("https://h/s/Njk0YjQ5ZWItZDVmNC00M2Q5LTg1/mcp", "https://h/s/${S_TOKEN}/mcp"),
            ("https://h/s/694b49eb-d5f4-43d9-85f4-000000000000", "https://h/s/${S_TOKEN}"),
            ("https://h/a-very-long-name-of-a-server-2/@me/x", "https://h/a-very-long-name-of-a-server-2/@me/x"),
            ("http://h:80/@a/${B:?no #x}?c=${D}", "http://h:80/@a/${B:?no #x}?c=${D}"),
        ] {
            assert_eq!(pair("url", url), expected);
        }
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
