//! A question for the person, asked line by line: the fields of a form with their types, or a page to open.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::config::fault::printable;
use crate::config::import::looks_secret;
use crate::protocol::json;

/// Who can be asked.
pub(super) trait Person {
    /// Shows a line.
    fn say(&mut self, text: &str);
    /// Asks for a line; `None` where the person goes away.
    fn line(&mut self, prompt: &str) -> Option<String>;
}

/// Why a form is left.
#[derive(Debug, PartialEq)]
enum Left {
    Declined,
    Cancelled,
}

/// So much of what a server says is shown: lines of a message, characters of a line, fields of a form, choices of a field.
const LINES_MAX: usize = 40;
const CHARS_MAX: usize = 1000;
const FIELDS_MAX: usize = 100;
const CHOICES_MAX: usize = 50;

/// What a person types in place of a value.
const DECLINE: &str = ":decline";
const CANCEL: &str = ":cancel";

/// The answer to `elicitation/create`; `line` is the whole frame, for the order of the fields.
pub(super) fn answered(params: &Value, line: &[u8], person: &mut impl Person) -> Value {
    // Who asks stands in the message, where the gateway has put it; what the server says of itself is not taken.
    person.say(&format!("the server asks: {}", message(&params["message"])));
    let done = match params["mode"].as_str() {
        Some("url") => page(params, person).map(|()| None),
        _ => form(&params["requestedSchema"], &keys(line), person).map(Some),
    };
    match done {
        Ok(Some(content)) => json!({ "action": "accept", "content": content }),
        Ok(None) => json!({ "action": "accept" }),
        Err(Left::Declined) => json!({ "action": "decline" }),
        Err(Left::Cancelled) => json!({ "action": "cancel" }),
    }
}

/// What a server says to the person, line by line.
fn message(text: &Value) -> String {
    let text = text.as_str().unwrap_or_default();
    let lines: Vec<_> = text.lines().take(LINES_MAX).map(shortened).collect();
    let more = text.lines().count().saturating_sub(LINES_MAX);
    let more = if more > 0 { format!("\n  … ({more} more lines)") } else { String::new() };
    format!("{}{more}", lines.join("\n  "))
}

/// A text of a server, no longer than a person reads.
pub(super) fn shortened(text: &str) -> String {
    let count = text.chars().count();
    match count > CHARS_MAX {
        false => printable(text),
        true => {
            let short: String = text.chars().take(CHARS_MAX).collect();
            format!("{}… ({count} characters)", printable(&short))
        }
    }
}

/// Who asks, as the gateway says.
pub(super) fn asker(params: &Value) -> String {
    params["_meta"]["trunkline/upstream"].as_str().map_or_else(|| "the server".to_owned(), printable)
}

fn page(params: &Value, person: &mut impl Person) -> Result<(), Left> {
    let url = params["url"].as_str().unwrap_or_default();
    person.say(&format!("  open this page yourself, if you trust it: {}", printable(url)));
    confirmed("  done?", person)
}

/// Yes, or why not.
fn confirmed(question: &str, person: &mut impl Person) -> Result<(), Left> {
    loop {
        let said = person.line(&format!("{question} [y]es, [d]ecline, [c]ancel: ")).ok_or(Left::Cancelled)?;
        match said.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(()),
            "d" | "decline" | "n" | "no" | DECLINE => return Err(Left::Declined),
            "c" | "cancel" | CANCEL => return Err(Left::Cancelled),
            _ => {}
        }
    }
}

/// The names of the fields, as the server has ordered them.
fn keys(line: &[u8]) -> Vec<String> {
    let properties = ["params", "requestedSchema", "properties"];
    let found = properties.iter().try_fold(line, |object, key| json::get(object, key)).unwrap_or_default();
    let members = json::Members::of(found).into_iter().flatten().flatten();
    members.filter_map(|member| String::from_utf8(member.key(found)?.into_owned()).ok()).collect()
}

fn form(schema: &Value, keys: &[String], person: &mut impl Person) -> Result<Value, Left> {
    if keys.is_empty() {
        confirmed("  do you agree?", person)?;
        return Ok(json!({}));
    }
    if keys.len() > FIELDS_MAX {
        person.say(&format!("  declined: the form has {} fields, more than anybody fills in", keys.len()));
        return Err(Left::Declined);
    }
    person.say(&format!("  an empty line takes what stands in brackets; {DECLINE} and {CANCEL} leave the form"));
    let mut content = Map::new();
    for key in keys {
        let field = Field { key, schema: &schema["properties"][key], is_required: required(schema, key) };
        if let Some(value) = field.asked(person)? {
            content.insert(key.clone(), value);
        }
    }
    confirmed("  send this?", person)?;
    Ok(content.into())
}

fn required(schema: &Value, key: &str) -> bool {
    schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == key))
}

/// A field of a form.
struct Field<'a> {
    key: &'a str,
    schema: &'a Value,
    is_required: bool,
}

impl Field<'_> {
    /// Asks until the value fits.
    fn asked(&self, person: &mut impl Person) -> Result<Option<Value>, Left> {
        let title = self.schema["title"].as_str().unwrap_or(self.key);
        if let Some(text) = self.schema["description"].as_str() {
            person.say(&format!("  {}: {}", shortened(title), shortened(text)));
        }
        if [self.key, title].into_iter().any(looks_secret) {
            person.say("    careful: a server must not ask for a secret in a form, and what you type is shown");
        }
        let choices = choices(self.schema);
        for (number, choice) in choices.iter().enumerate().take(CHOICES_MAX) {
            person.say(&format!("    {}  {}", number + 1, shortened(&choice.title)));
        }
        if choices.len() > CHOICES_MAX {
            person.say(&format!("    … ({} choices; type the value of another)", choices.len()));
        }
        let default = self.schema.get("default").filter(|default| !default.is_null());
        let shown = default.map(|default| format!(" [{}]", shortened(&text(default)))).unwrap_or_default();
        let optional = if self.is_required { "" } else { ", optional" };
        let prompt = format!("  {} ({}{optional}){shown}: ", shortened(title), kind(self.schema));
        loop {
            let said = person.line(&prompt).ok_or(Left::Cancelled)?;
            match (said.trim(), default) {
                (DECLINE, _) => return Err(Left::Declined),
                (CANCEL, _) => return Err(Left::Cancelled),
                ("", Some(default)) => return Ok(Some(default.clone())),
                ("", None) if !self.is_required => return Ok(None),
                ("", None) if self.schema["type"] != "array" => person.say("    a value is required"),
                (said, _) => match value(said, self.schema, &choices) {
                    Ok(value) => return Ok(Some(value)),
                    Err(why) => person.say(&format!("    {why}")),
                },
            }
        }
    }
}

/// One of the values that a field can have.
struct Choice {
    value: Value,
    title: String,
}

/// The values of a field, or of the items of a list, where they are given.
fn choices(schema: &Value) -> Vec<Choice> {
    let schema = if schema["type"] == "array" { &schema["items"] } else { schema };
    let titled = ["oneOf", "anyOf"].iter().find_map(|key| schema[key].as_array());
    if let Some(all) = titled {
        let of = |one: &Value| Choice {
            value: one["const"].clone(),
            title: one["title"].as_str().map_or_else(|| text(&one["const"]), str::to_owned),
        };
        return all.iter().map(of).collect();
    }
    let names = schema["enumNames"].as_array();
    let all = schema["enum"].as_array().into_iter().flatten().enumerate();
    let name = |at: usize| names.and_then(|names| names.get(at)?.as_str());
    all.map(|(at, value)| Choice { value: value.clone(), title: name(at).map_or_else(|| text(value), str::to_owned) })
        .collect()
}

/// A value without quotes.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// What a field takes, in a few words.
fn kind(schema: &Value) -> String {
    let has_choices = !choices(schema).is_empty();
    match schema["type"].as_str() {
        Some("array") if has_choices => "numbers or values, with commas between".to_owned(),
        _ if has_choices => "a number or a value".to_owned(),
        Some("boolean") => "yes or no".to_owned(),
        Some("integer") => "a whole number".to_owned(),
        Some("number") => "a number".to_owned(),
        Some("string") => schema["format"].as_str().map_or_else(|| "text".to_owned(), printable),
        _ => "JSON".to_owned(),
    }
}

/// What was typed, as the schema wants it; or what is wrong with it.
fn value(said: &str, schema: &Value, choices: &[Choice]) -> Result<Value, String> {
    let chosen = |said: &str| {
        let by_number = said.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
        let by_value = || choices.iter().find(|choice| text(&choice.value) == said || choice.title == said);
        // A value that looks like a number is itself first.
        let found = by_value().or(by_number).map(|choice| choice.value.clone());
        found.ok_or_else(|| format!("`{}` is none of the {} choices", shortened(said), choices.len()))
    };
    match schema["type"].as_str() {
        Some("array") => {
            let parts = said.split(',').map(str::trim).filter(|part| !part.is_empty());
            let all = match choices.is_empty() {
                true => parts.map(|part| value(part, item(schema), &[])).collect::<Result<Vec<Value>, String>>()?,
                false => parts.map(chosen).collect::<Result<Vec<Value>, String>>()?,
            };
            bounded(all.len(), schema, ["minItems", "maxItems"], "choices")?;
            Ok(all.into())
        }
        _ if !choices.is_empty() => chosen(said),
        Some("boolean") => match said.to_ascii_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(true.into()),
            "n" | "no" | "false" => Ok(false.into()),
            _ => Err("yes or no".to_owned()),
        },
        Some(kind @ ("integer" | "number")) => number(said, schema, kind == "integer"),
        Some("string") => {
            bounded(said.chars().count(), schema, ["minLength", "maxLength"], "characters")?;
            formatted(said, schema["format"].as_str())?;
            Ok(said.into())
        }
        _ => serde_json::from_str(said).map_err(|_| "this is no JSON".to_owned()),
    }
}

/// What a list holds: texts, where nothing else is said.
fn item(schema: &Value) -> &Value {
    static TEXT: LazyLock<Value> = LazyLock::new(|| json!({ "type": "string" }));
    let is_single =
        |items: &&Value| matches!(items["type"].as_str(), Some("integer" | "number" | "boolean" | "string"));
    Some(&schema["items"]).filter(is_single).unwrap_or(&TEXT)
}

fn number(said: &str, schema: &Value, is_whole: bool) -> Result<Value, String> {
    let value: Value = serde_json::from_str(said).map_err(|_| "this is no number".to_owned())?;
    let number = value.as_f64().ok_or("this is no number")?;
    if is_whole && number.fract() != 0.0 {
        return Err("this is no whole number".to_owned());
    }
    match (schema["minimum"].as_f64(), schema["maximum"].as_f64()) {
        (Some(least), _) if number < least => Err(format!("at least {}", schema["minimum"])),
        (_, Some(most)) if number > most => Err(format!("at most {}", schema["maximum"])),
        _ => Ok(value),
    }
}

fn bounded(count: usize, schema: &Value, [least, most]: [&str; 2], of: &str) -> Result<(), String> {
    let bound = |key: &str| schema[key].as_u64().and_then(|bound| usize::try_from(bound).ok());
    match (bound(least), bound(most)) {
        (Some(least), _) if count < least => Err(format!("at least {least} {of}")),
        (_, Some(most)) if count > most => Err(format!("at most {most} {of}")),
        _ => Ok(()),
    }
}

/// Whether a text has the form that is asked for; a form that is not known here is the server's to judge.
fn formatted(said: &str, format: Option<&str>) -> Result<(), String> {
    let is_date = |text: &str| {
        let parts: Vec<&str> = text.split('-').collect();
        let digits = |part: &&str, length| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
        matches!(&parts[..], [year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2))
    };
    let is_sound = match format {
        Some("email") => said.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.')),
        Some("uri") => said.split_once(':').is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty()),
        Some("date") => is_date(said),
        Some("date-time") => {
            said.split_once(['T', 't']).is_some_and(|(date, time)| is_date(date) && time.contains(':'))
        }
        _ => true,
    };
    let example = match format {
        Some("email") => "ada@example.com",
        Some("uri") => "https://example.com/",
        Some("date") => "2026-07-28",
        _ => "2026-07-28T12:00:00Z",
    };
    if is_sound { Ok(()) } else { Err(format!("this must be like {example}")) }
}

#[cfg(test)]
mod tests;
