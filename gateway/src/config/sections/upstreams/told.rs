//! `identity`: how an upstream is told whose call it is.

use crate::config::doc::{KeyDoc, TableDoc};
use crate::config::fault::Fault;
use crate::config::read::{ANY, Section};
use crate::config::sections::transport::OWN;
use crate::upstream::config::{Dialect, ToldIdentity, Transport};
use http::HeaderName;
use std::sync::Arc;

/// Headers that say something else to servers and proxies, beside those that the gateway sets itself.
const TAKEN: [&str; 18] = [
    "authorization",
    "baggage",
    "content-encoding",
    "cookie",
    "expect",
    "forwarded",
    "keep-alive",
    "origin",
    "proxy-authorization",
    "proxy-connection",
    "set-cookie",
    "traceparent",
    "tracestate",
    "trailer",
    "user-agent",
    "via",
    "x-forwarded-for",
    "x-forwarded-proto",
];
/// Keys of `_meta` that say something else.
const TAKEN_KEYS: [&str; 4] = ["progressToken", "traceparent", "tracestate", "baggage"];
const KEY_BYTES_MAX: usize = 128;

/// Keys of `[upstreams.NAME.identity]`.
pub(crate) const IDENTITY_DOC: TableDoc = TableDoc {
    heading: "[upstreams.NAME.identity]",
    path: &["upstreams", ANY, "identity"],
    intro: "[Whose call it is](../security.md#whose-call-it-is), told to the upstream. Without this table it is \
        not told.",
    keys: &[&[
        KeyDoc {
            key: "header",
            kind: "text",
            default: "none",
            description: "header of each call that names its principal; with transport `http` and `sse`",
        },
        KeyDoc {
            key: "meta",
            kind: "text",
            default: "none",
            description: "key of each call's `_meta` that does so, on every transport",
        },
    ]],
    notes: r#"
```toml
[upstreams.tickets]
url = "https://tickets.example.com/mcp"
identity = { header = "X-Principal" }
```
"#,
};

/// Reads it.
pub(super) fn identity(
    section: &mut Section<'_>,
    transport: Option<&Transport>,
    dialect: Dialect,
) -> Option<Arc<ToldIdentity>> {
    let is_given = section.has("identity");
    let mut told = section.table("identity");
    let has = ["header", "meta"].map(|key| told.has(key));
    let header = told.parse("header", |text| header(text, transport));
    let meta = told.parse("meta", key);
    let is_empty = has == [false, false];
    if is_given && is_empty && told.reading_is_real() {
        let fault = Fault::error("missing-key", "`identity` needs `header` or `meta`").at(told.own_place());
        told.reading.fault(fault.label("such as { header = \"X-Principal\" } or { meta = \"com.example/principal\" }"));
    }
    let useless = |key: &str, why: &str| {
        let text = format!("`identity.{key}` has no meaning for an upstream of this transport");
        told.reading.fault(Fault::error("useless-key", text).at(told.place(key)).label(why));
    };
    let has_headers = transport.is_none_or(|transport| matches!(transport, Transport::Http(_) | Transport::Sse(_)));
    if has[0] && !has_headers && told.reading_is_real() {
        useless("header", "a call has headers only with transport `http` and `sse`; use `meta`");
    }
    if has[1] && dialect == Dialect::Bare && told.reading_is_real() {
        useless("meta", "with `dialect = \"bare\"` a call has no `_meta`");
    }
    told.end("an `identity` table");
    (is_given && !is_empty).then(|| Arc::new(ToldIdentity { header, meta }))
}

fn header(text: &str, transport: Option<&Transport>) -> Result<HeaderName, String> {
    let name = HeaderName::from_bytes(text.as_bytes())
        .map_err(|_| "use letters, digits, `-` and `_` in header names".to_owned())?;
    let word = name.as_str();
    if OWN.contains(&word) || TAKEN.contains(&word) || ["mcp-", "sec-"].iter().any(|begin| word.starts_with(begin)) {
        return Err(format!("`{name}` says something else; use a name of your own, such as \"X-Principal\""));
    }
    let fixed = transport.and_then(Transport::remote).is_some_and(|remote| remote.headers.contains_key(&name));
    if fixed { Err(format!("`headers` says what `{name}` is; use another name")) } else { Ok(name) }
}

/// A key as the protocol has it: a name, or one behind labels and a `/`.
fn key(text: &str) -> Result<Box<str>, String> {
    let expected = || "expected a key such as \"com.example/principal\"".to_owned();
    let (labels, name) = text.rsplit_once('/').map_or((None, text), |(labels, name)| (Some(labels), name));
    let is_of = |text: &str, others: &str| {
        let ends = [text.bytes().next(), text.bytes().last()];
        ends.iter().all(|byte| byte.is_some_and(|byte| byte.is_ascii_alphanumeric()))
            && text.chars().all(|char| char.is_ascii_alphanumeric() || others.contains(char))
    };
    let mut parts = labels.into_iter().flat_map(|labels| labels.split('.'));
    if text.len() > KEY_BYTES_MAX || !is_of(name, "-_.") || !parts.all(|label| is_of(label, "-")) {
        return Err(expected());
    }
    let is_reserved = labels.is_some_and(|labels| {
        labels.split('.').any(|label| ["mcp", "modelcontextprotocol"].iter().any(|own| label.eq_ignore_ascii_case(own)))
    });
    if is_reserved || TAKEN_KEYS.contains(&text) {
        return Err("this key is of the protocol, or says something else; use one of your own".to_owned());
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use crate::config::source::Environment;
    use crate::config::{Inputs, load};
    use crate::runtime::Scratch;
    use crate::upstream::config::Config;

    fn read(lines: &str) -> Result<Config, String> {
        let scratch = Scratch::new();
        let path = scratch.write("told.toml", &format!("[upstreams.a]\n{lines}\n"));
        let environment = Environment::of(&[("PATH", "/bin")]);
        let loaded = load(Inputs { files: vec![path], environment, ..Inputs::default() });
        Ok(loaded.map_err(|faults| faults.to_string())?.config.upstreams.into_iter().next().unwrap())
    }

    #[test]
    fn a_header_a_key_or_both_may_say_it_and_without_the_table_nothing_does() {
        let at = |more: &str| read(&format!("url = \"https://h.example/mcp\"\n{more}")).unwrap().identity;
        assert_eq!(at(""), None);
        let both = at("identity = { header = \"X-Principal\", meta = \"com.example/principal\" }").unwrap();
        assert_eq!(both.header.as_ref().unwrap(), "x-principal");
        assert_eq!(both.meta.as_deref(), Some("com.example/principal"));
        let child = read("command = \"x\"\nidentity = { meta = \"who\" }").unwrap().identity.unwrap();
        assert_eq!((child.header.as_ref(), child.meta.as_deref()), (None, Some("who")));
    }

    #[test]
    fn what_means_something_else_or_nothing_is_refused() {
        let http = "url = \"https://h.example/mcp\"\nheaders = { X-Own = \"1\" }";
        for (of, table, words) in [
            (http, "{ }", "needs `header` or `meta`"),
            (http, "{ header = \"Authorization\" }", "says something else"),
            (http, "{ header = \"Mcp-Session-Id\" }", "says something else"),
            (http, "{ header = \"Host\" }", "says something else"),
            (http, "{ header = \"Sec-Fetch-Site\" }", "says something else"),
            (http, "{ header = \"X-Own\" }", "`headers` says what"),
            (http, "{ header = \"a b\" }", "use letters, digits"),
            (http, "{ header = \"X-P\", who = \"x\" }", "is not a key of an `identity` table"),
            (http, "{ meta = \"io.modelcontextprotocol/x\" }", "of the protocol"),
            (http, "{ meta = \"progressToken\" }", "of the protocol"),
            (http, "{ meta = \"a\\\"b\" }", "expected a key"),
            (http, "{ meta = \"/b\" }", "expected a key"),
            (http, "{ meta = \"\" }", "expected a key"),
            (http, "{ meta = \"-b\" }", "expected a key"),
            (http, &format!("{{ meta = \"{}\" }}", "a".repeat(129)), "expected a key"),
            ("command = \"x\"", "{ header = \"X-P\" }", "`identity.header` has no meaning"),
            ("url = \"wss://h.example\"\ndialect = \"bare\"", "{ meta = \"who\" }", "`identity.meta` has no meaning"),
            ("url = \"wss://h.example\"", "{ header = \"X-P\" }", "`identity.header` has no meaning"),
        ] {
            let why = read(&format!("{of}\nidentity = {table}")).unwrap_err();
            assert!(why.contains(words), "{table}: {why}");
        }
    }
}
