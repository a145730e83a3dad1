//! JSON that people's programs read: the admin API, the output of commands with `--json`, and every field that the product writes.

use serde_json::Value;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::tokens::lexer::{Kind, Token};
use trunkline_tests::tokens::runs::closing;

use super::commands::run;
use super::live;
use super::product::{files, is_path, macros, text, tokens};
use super::sorted;
use crate::tidy::source::root;

const LIVE: [&[&str]; 6] = [
    &["ls", "--json"],
    &["status", "up", "--json"],
    &["status", "ill", "--json"],
    &["calls", "--all", "--json"],
    &["reload", "--json"],
    &["ui", "--print", "--json"],
];

const ALONE: [&[&str]; 14] = [
    &["check", "--json", "-c", "t.toml"],
    &["config", "--json", "-c", "t.toml"],
    &["config", "show", "--json", "-c", "t.toml"],
    &["add", "b", "--json", "-c", "t.toml", "--", "sh", "-c", "x"],
    &["remove", "b", "--json", "-c", "t.toml"],
    &["token", "new", "x", "--json", "-c", "t.toml"],
    &["token", "ls", "--json", "-c", "t.toml"],
    &["token", "new", "y", "--json", "-c", "t.toml"],
    &["token", "revoke", "y", "--json", "-c", "t.toml"],
    &["install", "cursor", "--dry-run", "--json", "-c", "t.toml"],
    &["import", "cursor.json", "--dry-run", "--json", "-c", "t.toml"],
    &["doctor", "--json", "-c", "t.toml"],
    &["tools", "--json"],
    &["call", "demo__echo", "text=x", "--json"],
];

pub(crate) fn json() -> Vec<String> {
    let mut lines = api();
    lines.extend(live::fields(&LIVE));
    let home = Scratch::new();
    let _ = home.file("t.toml", "[upstreams.a]\ncommand = '/no/such/program'\n");
    let _ = home.file(
        "cursor.json",
        r#"{"mcpServers":{"c":{"command":"sh","args":["x"],"env":{"API_KEY":"sk-0123456789abcdef"}}}}"#,
    );
    for command in ALONE {
        lines.extend(live::fields_of(command, &run(&home, command).stdout));
    }
    let failed = run(&home, &["call", "none", "--json"]);
    lines.extend(live::fields_of(&["(stderr)"], &failed.stderr));
    lines.extend(sorted(written().into_iter().map(|name| format!("written {name}"))));
    lines
}

/// The paths of the admin API, and the fields of each schema.
fn api() -> Vec<String> {
    let found = files_named("openapi.json");
    let api: Value = serde_json::from_str(&found).expect("the description is JSON");
    let mut lines = Vec::new();
    for (path, methods) in api["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let answers: Vec<&String> =
                operation["responses"].as_object().into_iter().flatten().map(|(name, _)| name).collect();
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let parameters: Vec<String> =
                parameters.map(|one| format!("{}:{}", one["in"], one["name"]).replace('"', "")).collect();
            lines.push(format!("{} {path} {answers:?} {parameters:?}", method.to_uppercase()));
        }
    }
    for (name, schema) in api["components"]["schemas"].as_object().into_iter().flatten() {
        members(name, schema, &mut lines);
    }
    lines
}

fn members(path: &str, schema: &Value, lines: &mut Vec<String>) {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let is_required = if required.contains(&name.as_str()) { " required" } else { "" };
        let words =
            member["enum"].as_array().map(|words| format!(" {}", Value::from(words.clone()))).unwrap_or_default();
        let kind = member.get("$ref").or(member.get("type")).cloned().unwrap_or_default();
        lines.push(format!("{path}.{name}: {kind}{words}{is_required}"));
        members(&format!("{path}.{name}"), member, lines);
    }
    if schema["items"].is_object() {
        members(&format!("{path}[]"), &schema["items"], lines);
    }
}

/// The text of the only file of the product with this name.
fn files_named(name: &str) -> String {
    fn find(folder: &std::path::Path, name: &str, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder can be listed").flatten() {
            let path = entry.path();
            if path.is_dir() {
                find(&path, name, found);
            } else if path.file_name().is_some_and(|other| other == name) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    find(&root().join("gateway"), name, &mut found);
    assert_eq!(found.len(), 1, "one file is called {name}: {found:?}");
    std::fs::read_to_string(&found[0]).expect("a file can be read")
}

/// The names of all fields that the product writes: of structs with `Serialize`, in `json!`, and in texts with JSON.
fn written() -> Vec<String> {
    let mut names = Vec::new();
    for source in files() {
        let tokens = tokens(&source);
        names.extend(serialized(&tokens));
        for (_, inside) in macros(&tokens, &["json"]) {
            names.extend(inside.windows(2).filter(|pair| pair[1].is(":")).filter_map(|pair| text(&pair[0])));
        }
        let quoted = |text: &str| {
            let parts: Vec<&str> = text.split(['"', '\\']).filter(|part| !part.is_empty()).collect();
            let is_name = |name: &str| {
                !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || "_/.".contains(char))
            };
            let fields = parts.windows(2).filter(|pair| pair[1].starts_with(':') && is_name(pair[0]));
            fields.map(|pair| pair[0].to_owned()).collect::<Vec<_>>()
        };
        names.extend(tokens.iter().filter_map(text).flat_map(|text| quoted(&text)));
    }
    names
}

/// The fields of structs that derive `Serialize`, by the names that serde gives them.
fn serialized(tokens: &[Token<'_>]) -> Vec<String> {
    let mut names = Vec::new();
    for at in (0..tokens.len()).filter(|at| is_path(&tokens[*at..], &["#", "[", "derive"])) {
        let Some(end) = closing(tokens, at + 1) else { continue };
        let is_written = tokens[at..end].iter().any(|token| token.is_word("Serialize"));
        let open = tokens[end..].iter().position(|token| token.is("{") || token.is(";")).map(|open| end + open);
        let Some(open) = open.filter(|open| is_written && tokens[*open].is("{")) else { continue };
        let head = &tokens[end..open];
        let all = head.windows(3).find(|part| is_path(part, &["rename_all", "="])).and_then(|part| text(&part[2]));
        let case = all.map(|case| format!(" ({case})")).unwrap_or_default();
        let Some(close) = closing(tokens, open) else { continue };
        names.extend(fields(&tokens[open + 1..close]).into_iter().map(|name| format!("{name}{case}")));
    }
    names
}

/// The fields or variants between braces.
fn fields(body: &[Token<'_>]) -> Vec<String> {
    let (mut names, mut at, mut renamed) = (Vec::new(), 0, None);
    while let Some(token) = body.get(at) {
        if token.is("#") {
            let end = closing(body, at + 1).unwrap_or(at);
            let attribute = &body[at..=end];
            renamed = attribute
                .windows(3)
                .find(|part| is_path(part, &["rename", "="]))
                .and_then(|part| text(&part[2]))
                .or(renamed);
            at = end + 1;
        } else if token.is_word("pub") {
            at += 1;
        } else if token.is("(") {
            at = closing(body, at).unwrap_or(at) + 1;
        } else if token.kind == Kind::Word {
            names.push(renamed.take().unwrap_or_else(|| token.text.to_owned()));
            // To the comma behind its type.
            let mut depth = 0i32;
            while let Some(token) = body.get(at) {
                depth += i32::from(["(", "[", "{", "<"].iter().any(|open| token.is(open)));
                depth -= i32::from([")", "]", "}", ">"].iter().any(|close| token.is(close)));
                at += 1;
                if depth == 0 && token.is(",") {
                    break;
                }
            }
        } else {
            at += 1;
        }
    }
    names
}
