//! The servers as TOML, under `[upstreams.NAME]`, with references in place of secrets.

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

use super::scan::{Server, text, texts};
use super::secrets::Found;
use crate::cli::setup::hosts::EVERYWHERE;
use crate::config::source::node::{Node, Shape};

/// Adds a server to a configuration. What has this name there already stays, and `false` says so.
pub(super) fn add(document: &mut DocumentMut, server: &Server, secrets: &mut Found) -> Result<bool, String> {
    let fresh = || {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    };
    let upstreams = document.entry("upstreams").or_insert_with(fresh);
    let Some(upstreams) = upstreams.as_table_like_mut() else {
        return Err("`upstreams` of the configuration is no table".to_owned());
    };
    if upstreams.contains_key(&server.name) {
        return Ok(false);
    }
    let mut table = Table::new();
    let line = format!("\n# {}, {:?}\n", server.place(), server.title);
    table.decor_mut().set_prefix(line);
    for (key, node) in server.node.entries() {
        let item = match (key.as_str(), &node.shape) {
            (_, Shape::List(items)) if items.is_empty() => continue,
            ("args", Shape::List(_)) => {
                let args = secrets.args(&server.name, &texts(&server.node, "args"));
                Item::Value(Value::Array(args.into_iter().collect::<Array>()))
            }
            (_, Shape::Table(_)) if key == "tools" => {
                let mut tools = Table::new();
                for (key, node) in node.entries() {
                    tools.insert(key, Item::Value(value(&server.name, key, node, secrets)));
                }
                Item::Table(tools)
            }
            _ => Item::Value(value(&server.name, key, node, secrets)),
        };
        table.insert(key, item);
    }
    // Its host starts the others without it.
    if table.contains_key("env_file") || takes_variables(&table.to_string()) {
        table.insert("optional", Item::Value(Value::from(true)));
    }
    upstreams.insert(&server.name, Item::Table(table));
    Ok(true)
}

/// Whether the server of this name that a configuration has is started or reached alike, as far as no secret and no variable is in the way.
pub(super) fn has_like(document: &DocumentMut, server: &Server) -> bool {
    let Some(there) = document.get("upstreams").and_then(|all| all.get(&server.name)) else { return false };
    let is_like = |one: &str, other: &str| one == other || [one, other].iter().any(|text| text.contains("${"));
    let is_like_at = |key: &str| match (there.get(key).and_then(Item::as_str), text(&server.node, key)) {
        (there, "") => there.is_none(),
        (there, here) => there.is_some_and(|there| is_like(there, here)),
    };
    let args = there.get("args").and_then(Item::as_array);
    let args: Vec<&str> = args.into_iter().flatten().filter_map(Value::as_str).collect();
    let here = texts(&server.node, "args");
    let has_like_args = args.len() == here.len() && args.iter().zip(&here).all(|(one, other)| is_like(one, other));
    is_like_at("command") && is_like_at("url") && has_like_args
}

/// Whether a text refers to a variable that may be missing.
fn takes_variables(text: &str) -> bool {
    let inside = text.split("${").skip(1).filter_map(|rest| rest.split_once('}')).map(|(inside, _)| inside);
    let mut needed = inside.filter(|inside| !inside.starts_with("file:") && !inside.contains(":-"));
    needed.any(|name| !EVERYWHERE.contains(&name))
}

fn value(server: &str, key: &str, node: &Node, secrets: &mut Found) -> Value {
    match &node.shape {
        Shape::Bool(flag) => Value::from(*flag),
        Shape::Integer(number) => Value::from(*number),
        Shape::Float(number) => Value::from(*number),
        Shape::Text(text) => Value::from(secrets.pair(server, key, text)),
        // No server that is taken over has one.
        Shape::Broken(_) => Value::from(""),
        Shape::List(items) => {
            Value::Array(items.iter().map(|item| value(server, key, item, secrets)).collect::<Array>())
        }
        Shape::Table(entries) => {
            let mut table = InlineTable::new();
            for (key, node) in entries {
                // In a file of ours a number stands for how it is written, in a host's for what it is.
                let inner = match &node.shape {
                    Shape::Float(number) => Value::from(number.to_string()),
                    _ => value(server, key, node, secrets),
                };
                table.insert(key, inner);
            }
            Value::InlineTable(table)
        }
    }
}
