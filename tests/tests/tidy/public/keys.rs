//! Keys of the configuration with type and documented default, from the schema that the program prints; and the defaults in force.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::tokens::lexer::{Kind, Token, lex};
use trunkline_tests::tokens::runs::closing;

use super::commands::run;

pub(crate) fn keys() -> Vec<String> {
    let output = run(&Scratch::new(), &["config", "schema"]);
    let schema: Value = serde_json::from_slice(&output.stdout).expect("the schema is JSON");
    let mut lines = Vec::new();
    walk("", &schema, &mut lines);
    lines
}

fn walk(path: &str, schema: &Value, lines: &mut Vec<String>) {
    if !path.is_empty() {
        lines.push(format!("{path}: {}{}", form(schema), default(schema)));
    }
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        walk(&below(name), property, lines);
    }
    if schema["additionalProperties"].is_object() {
        walk(&below("NAME"), &schema["additionalProperties"], lines);
    }
    if schema["items"]["properties"].is_object() {
        walk(&format!("{path}[]"), &schema["items"], lines);
    }
}

/// The type of a key: the schema without the parts that have lines of their own, and without prose.
fn form(schema: &Value) -> String {
    let mut form = schema.clone();
    if let Some(form) = form.as_object_mut() {
        form.retain(|name, value| {
            let is_walked = value.is_object() && (name == "additionalProperties" || !value["properties"].is_null());
            !(is_walked || ["description", "properties", "$schema", "title"].contains(&name.as_str()))
        });
    }
    form.to_string()
}

/// The default, if the schema gives a value and no explanation.
fn default(schema: &Value) -> String {
    let given = schema.get("default").map(Value::to_string);
    let description = schema["description"].as_str().unwrap_or_default();
    let told = description.rsplit_once("(default: ").and_then(|(_, told)| told.strip_suffix(')'));
    let is_value = |told: &&str| {
        let span = told.strip_prefix('`').and_then(|told| told.strip_suffix('`'));
        span.is_some_and(|span| !span.contains('`')) || ["required", "none"].contains(told)
    };
    let told = told.filter(is_value).map(|told| told.trim_matches('`').to_owned());
    given.or(told).map(|value| format!(" = {value}")).unwrap_or_default()
}

/// A configuration in which every default holds.
const BARE: &str = "[upstreams.a]\ncommand = '/bin/sh'\n[upstreams.b]\nurl = 'http://127.0.0.1:9/mcp'\n";

/// The values of a configuration that sets next to nothing, with the number of their places. Names of fields are no part of this.
pub(crate) fn defaults() -> Vec<String> {
    let scratch = Scratch::new();
    let inputs = trunkline::config::Inputs { files: vec![scratch.file("t.toml", BARE)], ..Default::default() };
    let loaded = trunkline::config::load(inputs).expect("the configuration is valid");
    let text = format!("{:?}", loaded.config).replace(&scratch.path().display().to_string(), "FOLDER");
    let tokens = lex(&text).expect("its form is that of Rust");
    let mut values: BTreeMap<&str, usize> = BTreeMap::new();
    let words = ["true", "false", "None"];
    let is_value = |kind: Kind, text: &str| matches!(kind, Kind::Number | Kind::Text) || words.contains(&text);
    let digests = digests(&tokens);
    let is_digest = |at: usize| digests.iter().any(|range| range.contains(&at));
    let kept = tokens.iter().enumerate().filter(|(at, token)| is_value(token.kind, token.text) && !is_digest(*at));
    for (_, token) in kept {
        *values.entry(token.text).or_default() += 1;
    }
    values.into_iter().map(|(value, places)| format!("{value} in {places} places")).collect()
}

/// Digests depend on the folder of the file.
fn digests(tokens: &[Token<'_>]) -> Vec<Range<usize>> {
    let opens = (0..tokens.len()).filter(|at| tokens[*at].is("["));
    let lists = opens.filter_map(|at| Some(at + 1..closing(tokens, at)?)).filter(|list| list.len() >= 32);
    lists.filter(|list| tokens[list.clone()].iter().all(|token| token.kind == Kind::Number || token.is(","))).collect()
}
