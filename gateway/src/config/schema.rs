//! The JSON Schema of the configuration, for editors: made of what the sections ask for.

use serde_json::{Map, Value, json};

use super::read::{ANY, Kind};
use super::reference::Descriptions;

/// A text with a reference in it, whose value nobody knows yet.
const REFERENCE: &str = r"\$\{";

/// The schema of these keys: draft 7, which editors know.
pub(super) fn of_keys(keys: Vec<(Vec<String>, Kind)>) -> Value {
    let mut root = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let descriptions = Descriptions::new();
    for (path, kind) in keys {
        if let Some((name, above)) = path.split_last()
            && let Some(parent) = parent(&mut root, above)
        {
            let mut schema = of(&path, &kind);
            let each = || descriptions.find(&[&path[..], &[ANY.to_owned()]].concat());
            if let Some(description) = descriptions.find(&path).or_else(each) {
                schema["description"] = description.into();
            }
            put(parent, name, schema);
        }
    }
    put(&mut root, "mcpServers", json!({ "type": "object", "description": "servers as a host writes them" }));
    let head = [
        ("$schema", json!("http://json-schema.org/draft-07/schema#")),
        ("title", json!("Trunkline")),
        ("description", json!(format!("the configuration of trunkline {}", env!("CARGO_PKG_VERSION")))),
    ];
    let mut whole: Map<String, Value> = head.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    whole.extend(root.as_object().cloned().unwrap_or_default());
    Value::Object(whole)
}

/// The schema of the table at a path.
fn parent<'a>(root: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(root, |table, name| match name.as_str() {
        ANY if table["type"] == "array" => table.get_mut("items"),
        ANY => table.get_mut("additionalProperties"),
        name => table.get_mut("properties")?.get_mut(name),
    })
}

fn put(table: &mut Value, name: &str, schema: Value) {
    if let Some(Value::Object(properties)) = table.get_mut("properties") {
        properties.insert(name.to_owned(), schema);
    }
}

/// What a text may be that is a reference, or is written so.
fn text(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": format!("{REFERENCE}|{pattern}") })
}

fn of(path: &[String], kind: &Kind) -> Value {
    let table = || json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let number = |unit: &str| json!({ "anyOf": [{ "type": "number", "minimum": 0 }, text(&format!("^\\s*[0-9][0-9.]*\\s*({unit})?\\s*$"))] });
    match kind {
        Kind::Table => table(),
        Kind::Named => {
            let mut named = json!({ "type": "object", "additionalProperties": table() });
            if path == ["upstreams"] {
                named["propertyNames"] = json!({ "pattern": "^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$" });
            }
            named
        }
        Kind::Tables => json!({ "type": "array", "items": table() }),
        Kind::Text => json!({ "type": "string" }),
        Kind::Duration => number("ms|s|m|h"),
        Kind::Size => number("[kKmMgG][iI]?[bB]|[bB]"),
        Kind::Number => json!({ "anyOf": [{ "type": "number" }, text("^[0-9.eE+-]+$")] }),
        Kind::Count(least, most) => {
            json!({ "anyOf": [{ "type": "integer", "minimum": least, "maximum": most }, text("^[0-9]+$")] })
        }
        Kind::Flag => json!({ "anyOf": [{ "type": "boolean" }, text("^(true|false)$")] }),
        Kind::Word(words) => json!({ "anyOf": [{ "enum": words }, { "type": "string", "pattern": REFERENCE }] }),
        Kind::List => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::OneOrList => json!({ "anyOf": [single(), { "type": "array", "items": { "type": "string" } }] }),
        Kind::Pairs => json!({ "type": "object", "additionalProperties": single() }),
    }
}

fn single() -> Value {
    json!({ "type": ["string", "number", "boolean"] })
}
