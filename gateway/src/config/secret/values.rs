//! The secret values of a configuration: references, credentials in headers and addresses, values of keys that look secret.

use std::collections::{BTreeSet, HashSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use serde_json::Value;

use crate::downstream::config::SigningKey;
use crate::secrets::mask::{BYTES_MAX, BYTES_MIN};
use crate::secrets::{Secrets, looks_random};
use crate::upstream::config::{Config, Credentials, Remote};

use super::looks::{is_path, looks_secret, turns_off};
use super::percent::decoded_in_part;
use crate::config::fault::Fault;
use crate::config::read::Reading;

/// All secrets of a configuration.
pub(crate) fn of<'a>(
    reading: &Reading,
    keys: &[SigningKey],
    (upstreams, collector): (impl Iterator<Item = &'a Config> + Clone, Option<&Remote>),
) -> Secrets {
    let mut found = Found(reading.secrets());
    // Most children get the same variables.
    let mut seen = HashSet::new();
    found.0.extend(keys.iter().map(|key| String::from_utf8_lossy(key.as_bytes()).into_owned()));
    for upstream in upstreams.clone() {
        if let Some(child) = upstream.transport.child() {
            found.args(child.args);
            for (name, value) in child.env.iter().filter(|pair| seen.insert(*pair)) {
                found.pair(&name.to_string_lossy(), &value.to_string_lossy());
            }
        }
        match &upstream.credentials {
            Some(Credentials::Command(command)) => {
                found.args(&command.args);
                for (name, value) in &command.env {
                    found.pair(&name.to_string_lossy(), &value.to_string_lossy());
                }
            }
            Some(Credentials::Client(client) | Credentials::Exchange(client)) => {
                found.url(&client.endpoint.url.to_string());
                // As the header has both: a secret that is too short to be looked for by itself is known beside its name.
                if let Some(secret) = client.secret.as_ref().filter(|_| !client.is_in_body) {
                    found.put(&format!("{}:{}", form(&client.id), form(secret)));
                }
                for (name, value) in &client.params {
                    found.pair(name, value);
                    if looks_random(value) {
                        found.put(value);
                    }
                }
            }
            // Its secret is noted where it is read.
            Some(Credentials::Login(_)) | None => {}
        }
    }
    for Remote { url, headers, .. } in upstreams.filter_map(|one| one.transport.remote()).chain(collector) {
        found.url(&url.to_string());
        found.headers(headers);
    }
    let bytes: usize = found.0.iter().map(String::len).sum();
    if bytes > BYTES_MAX {
        let text = format!("there are more than {} MiB of secrets, too many to be kept out of logs", BYTES_MAX >> 20);
        reading.fault(Fault::error("too-many-secrets", text));
        return Secrets::default();
    }
    Secrets::of(found.0)
}

/// A text as a form has it, and the name and secret of a client in a header (RFC 6749, 2.3.1).
fn form(text: &str) -> String {
    let coded = text.bytes().map(|byte| match byte {
        b' ' => "+".to_owned(),
        _ if byte.is_ascii_alphanumeric() || b"*-._".contains(&byte) => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    coded.collect()
}

/// What was found so far.
struct Found(BTreeSet<String>);

impl Found {
    /// The value of a key.
    fn pair(&mut self, name: &str, value: &str) {
        if looks_secret(name) && !is_path(value) {
            self.credential(value);
        }
        self.value(value);
    }

    /// A secret: whole, and each of the parts that it is made of by the rules of headers.
    fn credential(&mut self, value: &str) {
        let value = value.trim();
        self.put(value);
        // "Bearer x", "Basic x", and whatever other schemes there are.
        if let Some((scheme, rest)) = value.split_once(' ').filter(|(scheme, _)| !scheme.contains(['=', ';', ','])) {
            self.put(rest.trim());
            let plain = scheme.eq_ignore_ascii_case("basic").then(|| STANDARD.decode(rest.trim()).ok()).flatten();
            if let Some(plain) = plain.and_then(|plain| String::from_utf8(plain).ok()) {
                self.put(&plain);
                plain.split_once(':').into_iter().for_each(|(_, password)| self.put(password));
            }
        }
        // Cookies, and the parameters of a scheme.
        for part in value.split([';', ',', '&']).filter_map(|part| part.split_once('=')) {
            self.put(part.1.trim().trim_matches('"'));
        }
    }

    /// Looks into a value whose key says nothing: for an address with credentials in it, or an object with keys that do.
    fn value(&mut self, value: &str) {
        self.url(value);
        if value.trim_start().starts_with(['{', '['])
            && let Ok(json) = serde_json::from_str(value)
        {
            self.json(&json);
        }
    }

    fn json(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    match value {
                        Value::String(text) => self.pair(name, text),
                        Value::Array(items) if looks_secret(name) => {
                            items.iter().filter_map(Value::as_str).for_each(|text| self.credential(text));
                        }
                        value => self.json(value),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.json(item)),
            Value::String(text) => self.url(text),
            _ => {}
        }
    }

    /// The arguments of a program: `--token x`, `--token=x`, `TOKEN=x`, `Authorization: x`, an object, an address.
    fn args(&mut self, args: &[String]) {
        let mut is_secret_next = false;
        for arg in args {
            if std::mem::take(&mut is_secret_next) && !arg.starts_with('-') {
                self.credential(arg);
            }
            let name = arg.trim_start_matches('-');
            is_secret_next =
                arg.starts_with('-') && !arg.contains(['=', ':', ' ']) && looks_secret(name) && !turns_off(arg);
            let is_name = |name: &str| name.len() <= 64 && !name.contains(['/', '{', '"', '?']);
            for mark in ['=', ':'] {
                if let Some((name, value)) = name.split_once(mark).filter(|(name, _)| is_name(name)) {
                    self.pair(name, value);
                }
            }
            self.value(arg);
        }
    }

    fn headers(&mut self, headers: &HeaderMap) {
        for (name, value) in headers {
            let value = String::from_utf8_lossy(value.as_bytes());
            self.pair(name.as_str(), &value);
        }
    }

    /// Of an address the name and the password before its host, and the parameters that look secret.
    fn url(&mut self, text: &str) {
        let Some((_, rest)) = text.split_once("://") else { return };
        let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
        let authority = before.split('/').next().unwrap_or_default();
        if let Some((user, _)) = authority.rsplit_once('@') {
            let (name, password) = user.split_once(':').unwrap_or(("", user));
            self.put(user);
            [name, password].into_iter().filter(|part| !part.is_empty()).for_each(|part| self.coded(part));
        }
        for (name, value) in
            query.split('#').next().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='))
        {
            if looks_secret(name) || ["code", "access", "k"].contains(&name) {
                self.coded(value);
            }
        }
    }

    /// A percent-encoded secret, and what it stands for.
    fn coded(&mut self, value: &str) {
        self.put(value);
        self.put(&decoded_in_part(value));
    }

    fn put(&mut self, value: &str) {
        if value.len() >= BYTES_MIN {
            self.0.insert(value.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Inputs, load};
    use crate::runtime::Scratch;

    fn found(fill: impl FnOnce(&mut Found)) -> Vec<String> {
        let mut found = Found(BTreeSet::new());
        fill(&mut found);
        found.0.into_iter().collect()
    }

    #[test]
    fn secrets_are_found_in_arguments_headers_and_addresses() {
        let args =
            |args: &[&str]| found(|found| found.args(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>()));
        assert_eq!(args(&["--token", "canary-one", "--name", "not-secret"]), ["canary-one"]);
        assert_eq!(args(&["--api-key=canary-one", "--url=https://h/x"]), ["canary-one"]);
        assert_eq!(args(&["--no-auth", "not-secret", "--no-password", "not-secret"]), [""; 0]);
        assert_eq!(args(&["-e", "GH_TOKEN=canary-one"]), ["canary-one"]);
        assert_eq!(args(&["--header", "Authorization: Bearer canary-one"]), ["Bearer canary-one", "canary-one"]);
        assert_eq!(args(&[r#"{"a":{"apiKey":"canary-one","b":"not-secret"}}"#]), ["canary-one"]);
        assert_eq!(args(&["postgres://me:canary%2Fone@h/db"]), ["canary%2Fone", "canary/one", "me:canary%2Fone"]);
        let url = |text: &str| found(|found| found.url(text));
        assert_eq!(url("https://h/p?api_key=canary-one&page=not-secret#x"), ["canary-one"]);
        assert_eq!(url("https://h/not/secret"), [""; 0]);
        let credential = |text: &str| found(|found| found.credential(text));
        assert_eq!(
            credential("Basic bWU6Y2FuYXJ5LW9uZQ=="),
            ["Basic bWU6Y2FuYXJ5LW9uZQ==", "bWU6Y2FuYXJ5LW9uZQ==", "canary-one", "me:canary-one"]
        );
        assert!(credential("a=1; sid=canary-one").contains(&"canary-one".to_owned()));
    }

    #[test]
    fn what_a_command_is_told_is_a_secret_and_so_is_a_parameter_that_looks_like_one() {
        let of = |auth: &str| {
            let scratch = Scratch::new();
            let text = format!("[upstreams.a]\nurl = \"https://h.example/mcp\"\nauth = {{ {auth} }}\n");
            let files = vec![scratch.write("auth.toml", &text)];
            load(Inputs { files, ..Inputs::default() }).unwrap_or_else(|faults| panic!("{faults}")).config.secrets
        };
        let exec = r#"type = "exec", command = "x", env = { A = "literal-canary", FOLDER = "/srv/canary", AT = "https://vault.lan", B = "1" }"#;
        let told = of(exec);
        assert!(told.has("literal-canary") && !told.has("/srv/canary") && !told.has("https://vault.lan"));
        let client = r#"type = "client_credentials", token_url = "https://as.example/t", client_id = "me""#;
        let params = r#"params = { client_assertion = "small-canary", signed = "Canary0123456789abcdef", audience = "https://api.lan", client_assertion_type = "jwt-bearer" }"#;
        let sent = of(&format!("{client}, {params}"));
        assert!(sent.has("small-canary") && sent.has("Canary0123456789abcdef"));
        assert!(!sent.has("https://api.lan") && !sent.has("jwt-bearer"));
        let header = format!("Basic {}", STANDARD.encode("g%2F:a%2Bb%2Bc%2Bd"));
        let short = client.replace("\"me\"", "\"g/\", client_secret = \"a+b+c+d\"");
        assert_eq!(
            of(&short).masked(&header),
            "Basic [secret]",
            "a short secret is found where it stands with its name"
        );
        assert_eq!(of(&format!("{short}, client_auth = \"post\"")).masked(&header), header, "it is sent otherwise");
    }
}
