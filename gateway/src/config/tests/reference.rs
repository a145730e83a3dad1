//! The descriptions of keys agree with the code that reads the keys.

use std::collections::BTreeSet;

use serde_json::Value;

use super::loading::load_texts;
use super::schema::{find, keys};
use crate::config::doc::{KeyDoc, TableDoc};
use crate::config::sections::TABLES;
use crate::config::{Config, Inputs};

/// All keys with their tables.
fn described() -> impl Iterator<Item = (&'static TableDoc, &'static KeyDoc)> {
    TABLES.into_iter().flat_map(|table| table.keys.iter().copied().flatten().map(move |key| (table, key)))
}

/// The keys of our own tables. Hosts' files are read by other code, and the schema leaves their keys open.
fn own() -> impl Iterator<Item = (Vec<String>, &'static KeyDoc)> {
    let is_own = |(table, _): &(&TableDoc, &KeyDoc)| table.path[0] != "mcpServers";
    described().filter(is_own).map(|(table, key)| {
        let path = table.path.iter().copied().chain([key.key]).map(str::to_owned);
        (path.collect(), key)
    })
}

#[test]
fn described_keys_are_read_and_described_once() {
    let mut read = BTreeSet::new();
    keys(&Inputs::schema(), &[], &mut read);
    let mut seen = BTreeSet::new();
    let mut is_wrong = |path: &Vec<String>| !read.contains(path) || !seen.insert(path.clone());
    let faults: Vec<_> = own().map(|(path, _)| path).filter(&mut is_wrong).collect();
    assert!(faults.is_empty(), "{faults:?}");
    let is_bare = |key: &KeyDoc| key.kind.is_empty() || key.description.is_empty();
    let bare: Vec<_> =
        described().filter(|(_, key)| is_bare(key)).map(|(table, key)| (table.heading, key.key)).collect();
    assert!(bare.is_empty(), "{bare:?}");
}

#[test]
fn described_words_are_those_that_the_key_takes() {
    /// The words of a type such as `"a"`, `"b"`.
    fn words(kind: &str) -> Option<BTreeSet<&str>> {
        kind.split(", ").map(|word| word.strip_prefix("`\"")?.strip_suffix("\"`")).collect()
    }
    let schema = Inputs::schema();
    let mut checked = 0;
    for (path, key) in own() {
        let Some(words) = words(key.kind) else { continue };
        let (_, own) = find(&schema, &path).unwrap_or_else(|| panic!("{path:?}"));
        let taken = own["anyOf"][0]["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
        assert_eq!(taken.collect::<BTreeSet<_>>(), words, "{path:?}");
        checked += 1;
    }
    assert!(checked > 5, "{checked}");
}

/// Configurations that lack only the key, at `%`. The keys of `auth` depend on its type, those of an upstream on its transport.
fn contexts(table: &TableDoc) -> Vec<String> {
    const CHILD: &str = "[upstreams.a]\ncommand = \"x\"\n";
    const REMOTE: &str = "[upstreams.b]\nurl = \"https://h.example/mcp\"\n";
    let heading = table.heading;
    match heading {
        "[upstreams.NAME]" => vec![format!("{CHILD}%"), format!("{REMOTE}%")],
        "[upstreams.NAME.tls]" => vec![format!("{REMOTE}[upstreams.b.tls]\n%")],
        "[upstreams.NAME.auth]" => {
            let client = "\"client_credentials\"\ntoken_url = \"https://as.example/t\"\nclient_id = \"c\"";
            let types = ["\"exec\"\ncommand = \"x\"", client, "\"oauth\""];
            types.map(|of| format!("{REMOTE}[upstreams.b.auth]\ntype = {of}\n%")).to_vec()
        }
        "[auth.roles.NAME]" => vec!["[auth.roles.r]\nupstreams = [\"*\"]\n%".to_owned()],
        "[[auth.issuers]]" => vec![
            "[server]\npublic_url = \"https://mcp.example.com\"\n[[auth.issuers]]\nissuer = \"https://as.example\"\n%"
                .to_owned(),
        ],
        "[traces]" => vec!["[traces]\nendpoint = \"http://127.0.0.1:4318\"\n%".to_owned()],
        "[mcpServers.NAME]" => vec!["[mcpServers.a]\ncommand = \"x\"\n%".to_owned()],
        _ if table.path[0] == "defaults" => vec![format!("{heading}\n%\n{CHILD}{REMOTE}")],
        _ => vec![format!("{heading}\n%")],
    }
}

fn loaded(text: &str) -> Option<Config> {
    Some(load_texts(&[("a.toml", text)], &[("HOME", "/h")]).ok()?.config)
}

#[test]
fn described_defaults_are_those_of_the_code() {
    let (mut checked, mut unchecked, mut wrong) = (0, Vec::new(), Vec::new());
    for (table, key) in described() {
        let value = key.default.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
        // Other defaults are explained in words.
        let Some(value) = value.filter(|value| !value.contains('`')) else { continue };
        let lines = [format!("{} = {value}\n", key.key), format!("{} = \"{value}\"\n", key.key)];
        let given = |context: &String| {
            let with = lines.iter().find_map(|line| loaded(&context.replace('%', line)))?;
            Some((loaded(&context.replace('%', ""))?, with))
        };
        let pairs: Vec<_> = contexts(table).iter().filter_map(given).collect();
        let place = (table.heading, key.key);
        match pairs.is_empty() {
            true => unchecked.push(place),
            false => checked += 1,
        }
        if pairs.iter().any(|(without, with)| without != with) {
            wrong.push((place, value));
        }
    }
    assert!(wrong.is_empty(), "these are no defaults: {wrong:?}");
    // A certificate would be read.
    assert_eq!(unchecked, [("[server.tls]", "http2")]);
    assert!(checked > 80, "{checked}");
}
