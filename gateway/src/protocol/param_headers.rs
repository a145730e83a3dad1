//! `Mcp-Param-*`: the tool arguments that a schema wants mirrored in headers, compiled once per tool.

use super::headers::{decode, encode};
use super::json;
use http::{HeaderName, HeaderValue};
use serde_json::Value;

/// The largest integer that may be mirrored: beyond it peers disagree on its value.
const INTEGER_MAX: i64 = (1 << 53) - 1;

/// Which arguments of a tool are mirrored, and in which headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamHeaders(Vec<Mirrored>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mirrored {
    header: HeaderName,
    path: Vec<String>,
}

impl ParamHeaders {
    /// Reads an input schema's `x-mcp-header` annotations. `Ok(None)`: it has none. An error names what breaks the rules:
    /// such a tool may not be offered over HTTP.
    pub fn compile(input_schema: &[u8]) -> Result<Option<Self>, String> {
        if memchr::memmem::find(input_schema, b"x-mcp-header").is_none() {
            return Ok(None);
        }
        let schema: Value = serde_json::from_slice(input_schema).map_err(|error| error.to_string())?;
        let mut found = Vec::new();
        walk(&schema, &mut Vec::new(), &mut found)?;
        let allowed = found.len();
        if count(&schema) != allowed {
            return Err("x-mcp-header stands where no chain of `properties` leads".into());
        }
        for (at, one) in found.iter().enumerate() {
            if found[..at].iter().any(|other| other.header == one.header) {
                return Err(format!("two arguments claim the header {}", one.header));
            }
        }
        Ok((!found.is_empty()).then_some(Self(found)))
    }

    /// The headers for raw arguments.
    pub fn make(&self, arguments: Option<&[u8]>) -> Vec<(HeaderName, HeaderValue)> {
        let texts = self.0.iter().filter_map(|one| Some((one, text(lookup(arguments?, &one.path)?)?)));
        texts.map(|(one, text)| (one.header.clone(), encode(&text))).collect()
    }

    /// Whether the headers of a request agree with its raw arguments; headers that no annotation asks for are let be.
    pub fn check(&self, arguments: Option<&[u8]>, given: &[(HeaderName, HeaderValue)]) -> Result<(), String> {
        for one in &self.0 {
            let mut values = given.iter().filter(|(name, _)| *name == one.header).map(|(_, value)| value);
            let value = values.next();
            if values.next().is_some() {
                return Err(format!("the header `{}` stands twice", one.header));
            }
            let expected = arguments.and_then(|arguments| lookup(arguments, &one.path)).and_then(text);
            match (expected, value) {
                (None, None) => {}
                (None, Some(_)) => return Err(format!("the header `{}` has no argument", one.header)),
                (Some(_), None) => return Err(format!("the header `{}` is missing", one.header)),
                (Some(expected), Some(value)) => match decode(value) {
                    Some(seen) if same(&seen, &expected) => {}
                    Some(_) => return Err(format!("the header `{}` and the argument disagree", one.header)),
                    None => return Err(format!("the header `{}` cannot be decoded", one.header)),
                },
            }
        }
        Ok(())
    }
}

fn walk(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Mirrored>) -> Result<(), String> {
    if path.len() > json::DEPTH_MAX as usize {
        return Err("the schema is nested too deep".into());
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Ok(()) };
    for (name, property) in properties {
        path.push(name.clone());
        if let Some(annotation) = property.get("x-mcp-header") {
            let header = annotation.as_str().filter(|text| !text.is_empty()).ok_or("x-mcp-header must be a text")?;
            let header = HeaderName::from_bytes(format!("{}{header}", super::headers::PARAM_PREFIX).as_bytes())
                .map_err(|_| format!("x-mcp-header {header:?} is no header name"))?;
            let kind = property.get("type").and_then(Value::as_str).unwrap_or_default();
            if !matches!(kind, "string" | "integer" | "boolean") {
                return Err(format!("x-mcp-header on {name:?}, which is no string, integer or boolean"));
            }
            found.push(Mirrored { header, path: path.clone() });
        }
        walk(property, path, found)?;
        path.pop();
    }
    Ok(())
}

/// How often the annotation stands as a schema keyword anywhere, names of properties aside.
fn count(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| match (key.as_str(), value) {
                ("x-mcp-header", _) => 1,
                ("properties", Value::Object(properties)) => properties.values().map(count).sum(),
                ("default" | "const" | "enum" | "examples", _) => 0,
                (_, value) => count(value),
            })
            .sum(),
        Value::Array(elements) => elements.iter().map(count).sum(),
        _ => 0,
    }
}

fn lookup<'a>(arguments: &'a [u8], path: &[String]) -> Option<&'a [u8]> {
    path.iter().try_fold(arguments, |object, key| json::get(object, key))
}

/// The text that a raw value is mirrored as; `None` for null and for what cannot be mirrored.
fn text(raw: &[u8]) -> Option<String> {
    match raw.first()? {
        b'"' => json::unquote(raw).map(Into::into),
        b't' | b'f' => String::from_utf8(raw.to_vec()).ok(),
        _ => integer(std::str::from_utf8(raw).ok()?).map(|number| number.to_string()),
    }
}

fn same(seen: &str, expected: &str) -> bool {
    seen == expected || (integer(seen).is_some() && integer(seen) == integer(expected))
}

/// An integer in any spelling that is one: `42`, `42.0`, `4.2e1`.
fn integer(text: &str) -> Option<i64> {
    let number = text.parse::<i64>().ok().or_else(|| {
        let float: f64 = text.parse().ok()?;
        (float.fract() == 0.0 && float.abs() <= INTEGER_MAX as f64).then_some(float as i64)
    })?;
    (number.abs() <= INTEGER_MAX).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"type":"object","properties":{
        "region":{"type":"string","x-mcp-header":"Region"},
        "deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}"#;

    #[test]
    fn arguments_are_mirrored_and_compared() {
        let compiled = ParamHeaders::compile(SCHEMA.as_bytes()).unwrap().unwrap();
        let arguments = br#"{"region":"\u00e4","deep":{"n":42}}"#;
        let made = compiled.make(Some(arguments));
        assert_eq!(made.len(), 2);
        assert_eq!(compiled.check(Some(arguments), &made), Ok(()));
        assert_eq!(compiled.check(Some(br#"{"region":"\u00e4","deep":{"n":42.0}}"#), &made), Ok(()));
        assert!(compiled.check(Some(br#"{"region":"a","deep":{"n":42}}"#), &made).is_err());
        assert!(compiled.check(Some(arguments), &made[..1]).is_err());
        assert!(compiled.check(Some(br#"{"region":null}"#), &made).is_err());
        assert_eq!(compiled.check(Some(br#"{"region":null}"#), &[]), Ok(()));
        assert_eq!(compiled.make(None), []);
    }

    #[test]
    fn annotations_that_break_the_rules_are_refused() {
        assert_eq!(ParamHeaders::compile(br#"{"properties":{"a":{"type":"string"}}}"#), Ok(None));
        for schema in [
            r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}"#,
            r#"{"properties":{"a":{"items":{"type":"string","x-mcp-header":"A"}}}}"#,
            r#"{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}"#,
        ] {
            assert!(ParamHeaders::compile(schema.as_bytes()).is_err(), "{schema}");
        }
    }
}
