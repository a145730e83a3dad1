//! The schema has the keys that the sections ask for: no fewer and no others.

use std::collections::BTreeSet;

use serde_json::Value;

use super::example::with_examples;
use crate::config::Inputs;
use crate::config::import;
use crate::config::load::check;
use crate::config::read::Reading;
use crate::config::source::Environment;
use crate::runtime::Scratch;

/// The schema of a key, and its path with `*` for names and places.
pub(super) fn find(schema: &Value, path: &[String]) -> Option<(Vec<String>, Value)> {
    let mut found = (Vec::new(), schema.clone());
    for name in path {
        let (own, any, item) = (&found.1["properties"][name], &found.1["additionalProperties"], &found.1["items"]);
        let (name, next) = match (own.is_object(), any.is_object(), item.is_object()) {
            (true, ..) => (name.clone(), own.clone()),
            (_, true, _) => ("*".to_owned(), any.clone()),
            (_, _, true) => ("*".to_owned(), item.clone()),
            _ => return None,
        };
        found.0.push(name);
        found.1 = next;
    }
    Some(found)
}

/// All keys of the schema, but those that a person names.
pub(super) fn keys(schema: &Value, path: &[String], found: &mut BTreeSet<Vec<String>>) {
    for (name, below) in schema["properties"].as_object().into_iter().flatten() {
        let path: Vec<String> = path.iter().cloned().chain([name.clone()]).collect();
        keys(below, &path, found);
        for inside in [&below["additionalProperties"], &below["items"]].into_iter().filter(|inside| inside.is_object())
        {
            keys(inside, &[path.clone(), vec!["*".to_owned()]].concat(), found);
        }
        found.insert(path);
    }
}

#[test]
fn it_has_every_key_that_is_asked_for_and_no_other() {
    let folder = Scratch::new();
    let (source, _) = import::file(&folder.write("a.toml", &with_examples())).unwrap();
    let reading = Reading::new(vec![source], Environment::default(), Vec::new());
    check(&reading);
    let schema = Inputs::schema();
    let asked = reading.asked.borrow();
    let known: BTreeSet<Vec<String>> =
        asked.iter().map(|path| find(&schema, path).unwrap_or_else(|| panic!("{path:?} is in no schema")).0).collect();
    let mut all = BTreeSet::new();
    keys(&schema, &[], &mut all);
    all.remove(&vec!["mcpServers".to_owned()]);
    assert_eq!(all, known);
}

#[test]
fn a_key_takes_what_its_section_takes() {
    let schema = Inputs::schema();
    let of = |path: &[&str]| {
        let path: Vec<String> = path.iter().map(|name| (*name).to_owned()).collect();
        find(&schema, &path).unwrap().1
    };
    assert_eq!(of(&["server", "websocket"])["anyOf"][0]["type"], "boolean");
    assert_eq!(of(&["catalog", "page_size"])["anyOf"][0]["maximum"], 1_000_000);
    assert_eq!(of(&["defaults", "start"])["anyOf"][0]["enum"], serde_json::json!(["eager", "lazy", "manual"]));
    assert!(of(&["defaults", "call_timeout"])["anyOf"][1]["pattern"].as_str().unwrap().contains("ms|s|m|h"));
    assert!(of(&["server", "max_body"])["anyOf"][1]["pattern"].as_str().unwrap().contains("[bB]"));
    assert_eq!(of(&["upstreams", "a", "args"])["items"]["type"], "string");
    assert_eq!(of(&["upstreams", "a", "env", "B"])["type"][0], "string");
    assert_eq!(of(&["upstreams", "a", "tools", "override", "t"])["additionalProperties"], false);
    assert_eq!(of(&["auth", "tokens", "0", "name"])["type"], "string");
}

#[test]
fn every_key_has_a_description() {
    /// Each key with its schema.
    fn all(schema: &Value, path: &str, found: &mut Vec<(String, Value)>) {
        for (name, below) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            all(below, &path, found);
            for inside in [&below["additionalProperties"], &below["items"]] {
                all(inside, &format!("{path}.*"), found);
            }
            found.push((path, below.clone()));
        }
    }
    let mut keys = Vec::new();
    all(&Inputs::schema(), "", &mut keys);
    // Of a table its keys are described.
    let is_table = |key: &Value| {
        [key, &key["items"], &key["additionalProperties"]].iter().any(|key| key["properties"].is_object())
    };
    let is_bare = |key: &Value| !is_table(key) && key["description"].as_str().unwrap_or_default().is_empty();
    let bare: Vec<_> = keys.iter().filter(|(_, key)| is_bare(key)).collect();
    assert!(bare.is_empty() && keys.len() > 150, "{:?}", bare.iter().map(|(path, _)| path).collect::<Vec<_>>());
    let of = |path: &str| keys.iter().find(|(known, _)| known == path).map(|(_, key)| key["description"].clone());
    assert_eq!(of(".server.path"), Some("path of the Streamable HTTP endpoint (default: `\"/mcp\"`)".into()));
    assert_eq!(of(".upstreams.*.command"), Some("program of a child, a path or a name on its `PATH`; no shell".into()));
}
