//! What a configuration says, key by key, each with where it is written: for whoever looks. References are as they are written, and what
//! may be a secret is not shown.

use super::reading::{Reading, SECRET};
use crate::config::secret::shown::{self, HIDDEN};
use crate::config::source::node::{Node, Origin, Source};
use crate::telemetry::config::{Setting, Written};
use figment::value::{Dict, Num, Value};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use std::collections::HashMap;

impl Reading {
    /// What is written, in the order of the keys.
    pub(crate) fn written(&self) -> Written {
        let (mut keys, mut lines) = (Vec::new(), HashMap::new());
        let mut path = Vec::new();
        self.walk(&self.merged, &mut path, &mut |path, value| {
            let source = self.find(path).map_or_else(String::new, |(source, node)| told(source, node, &mut lines));
            keys.push(Setting { key: path.join("."), value: shown(path, value), source });
        });
        Written { settings: keys.into(), digest: self.digest() }
    }

    /// Stands for what is written and for what its references were filled in with. Logs differ from one client to the next.
    fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let mut note = |path: &[String], value: &str| {
            for text in path.iter().map(String::as_str).chain([value]) {
                hash.update((text.len() as u64).to_le_bytes());
                hash.update(text);
            }
        };
        let is_log = |path: &[String]| path.first().is_some_and(|section| section == "log");
        self.walk(&self.merged, &mut Vec::new(), &mut |path, value| {
            if !is_log(path) {
                // Secrets, too: two that differ in one do not share what it opens.
                note(path, &serde_json::to_string(value).unwrap_or_default());
            }
        });
        self.filled.borrow().iter().for_each(|(key, value)| note(std::slice::from_ref(key), value));
        hash.finalize().into()
    }

    fn walk(&self, table: &Dict, path: &mut Vec<String>, found: &mut impl FnMut(&[String], &Value)) {
        for (name, value) in table {
            path.push(name.clone());
            match value {
                Value::Dict(_, inner) => self.walk(inner, path, found),
                value => found(path, value),
            }
            path.pop();
        }
    }
}

fn is_secret(name: &str) -> bool {
    SECRET.contains(&name)
}

/// A value as it may be shown: of arguments and addresses what clearly is no secret.
fn shown(path: &[String], value: &Value) -> Json {
    let Some((name, above)) = path.split_last() else { return Json::Null };
    let is_hidden_above = above.iter().any(|name| is_secret(name));
    match (name.as_str(), value) {
        _ if is_hidden_above => json(value, true),
        ("url" | "endpoint" | "proxy" | "token_url" | "issuer", Value::String(_, text)) => shown::address(text).into(),
        ("command", Value::String(_, text)) => shown::command(text).into(),
        // As a variable has it, with commas between.
        ("roots" | "allowed_origins", Value::String(_, text)) => {
            text.split(',').map(shown::text).collect::<Vec<_>>().join(",").into()
        }
        ("args", Value::Array(_, items)) => {
            let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            texts.map_or_else(|| json(value, true), |texts| shown::args(&texts).into())
        }
        _ => json(value, is_secret(name)),
    }
}

/// Where a value is written; the beginnings of lines are found once for each source.
fn told(source: &Source, node: &Node, lines: &mut HashMap<usize, Vec<usize>>) -> String {
    match &source.origin {
        Origin::File(path) => {
            let address = std::ptr::from_ref(source) as usize;
            let ends =
                lines.entry(address).or_insert_with(|| memchr::memchr_iter(b'\n', source.text.as_bytes()).collect());
            // What a JSON file of a host says, and a default within a table, has a key of its own.
            let at = if node.key.is_empty() { node.span.start } else { node.key.start };
            format!("{}:{}", path.display(), ends.partition_point(|end| *end < at) + 1)
        }
        Origin::Variable(name) => format!("${name}"),
        Origin::Flag(name) => (*name).to_owned(),
        Origin::Builtin => "built in".to_owned(),
    }
}

fn json(value: &Value, is_hidden: bool) -> Json {
    match value {
        Value::String(_, text) if is_hidden => shown::hidden(text).into(),
        Value::Char(_, _) | Value::Num(_, _) if is_hidden => HIDDEN.into(),
        Value::String(_, text) => shown::text(text).into(),
        Value::Char(_, char) => char.to_string().into(),
        Value::Bool(_, value) => (*value).into(),
        Value::Num(_, number) => number_of(*number),
        Value::Empty(_, _) => Json::Null,
        Value::Array(_, items) => items.iter().map(|item| json(item, is_hidden)).collect(),
        Value::Dict(_, table) => {
            let one = |(name, value): (&String, &Value)| (name.clone(), json(value, is_hidden || is_secret(name)));
            Json::Object(table.iter().map(one).collect())
        }
    }
}

fn number_of(number: Num) -> Json {
    match (number.to_i128().and_then(|number| i64::try_from(number).ok()), number.to_f64()) {
        (Some(number), _) => number.into(),
        (None, Some(number)) => number.into(),
        (None, None) => Json::Null,
    }
}
