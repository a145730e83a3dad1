//! A small validator: as much of JSON Schema (draft-07 and 2020-12) as the published schemas use.

use serde_json::Value;

/// Keywords that hold nothing against a value.
const SILENT: [&str; 9] =
    ["$schema", "$id", "$comment", "title", "description", "default", "format", "definitions", "$defs"];
/// Those that the check of numbers and lengths knows.
const BOUNDS: [&str; 6] = ["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"];

/// A schema with named definitions.
pub struct Schema {
    root: Value,
    folder: &'static str,
}

impl Schema {
    /// A schema; its definitions stand under `definitions` or `$defs`.
    #[must_use]
    pub fn new(root: Value) -> Schema {
        let folder = if root.get("$defs").is_some() { "$defs" } else { "definitions" };
        Schema { root, folder }
    }

    /// Whether there is a definition of that name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.root[self.folder].get(name).is_some()
    }

    /// The names of the definitions that another one is a choice of.
    #[must_use]
    pub fn variants(&self, name: &str) -> Vec<String> {
        // A choice of one is no choice: such a definition is that one itself.
        let Some(choice) = self.root[self.folder][name]["anyOf"].as_array() else { return vec![name.to_owned()] };
        let name = |branch: &Value| Some(branch["$ref"].as_str()?.rsplit('/').next()?.to_owned());
        choice.iter().filter_map(name).collect()
    }

    /// The method that a definition is about.
    #[must_use]
    pub fn method(&self, name: &str) -> Option<String> {
        self.root[self.folder][name]["properties"]["method"]["const"].as_str().map(str::to_owned)
    }

    /// What is wrong with a value, held against a definition.
    #[must_use]
    pub fn faults(&self, name: &str, value: &Value) -> Vec<String> {
        let mut faults = Vec::new();
        match self.root[self.folder].get(name) {
            Some(definition) => self.check(definition, value, name, &mut faults),
            None => faults.push(format!("there is no definition {name}")),
        }
        faults
    }

    fn check(&self, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
        let keywords = match schema {
            Value::Bool(true) => return,
            Value::Bool(false) => return faults.push(format!("{at}: nothing may stand here")),
            Value::Object(keywords) => keywords,
            other => return faults.push(format!("{at}: {other} is no schema")),
        };
        for (keyword, wanted) in keywords {
            match keyword.as_str() {
                "$ref" => match self.target(wanted) {
                    Some(target) => self.check(target, value, at, faults),
                    None => faults.push(format!("{at}: {wanted} leads nowhere")),
                },
                "type" if !is_of(value, wanted) => faults.push(format!("{at}: not of type {wanted}")),
                "const" if !same(value, wanted) => faults.push(format!("{at}: not {wanted}")),
                "enum" if !wanted.as_array().is_some_and(|list| list.iter().any(|one| same(value, one))) => {
                    faults.push(format!("{at}: none of {wanted}"));
                }
                "type" | "const" | "enum" => {}
                "allOf" => branches(wanted).iter().for_each(|branch| self.check(branch, value, at, faults)),
                "anyOf" | "oneOf" => self.choice(keyword, branches(wanted), value, at, faults),
                "not" => {
                    if self.tried(wanted, value, at).is_empty() {
                        faults.push(format!("{at}: is what it must not be"));
                    }
                }
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(wanted, item, &format!("{at}[{index}]"), faults);
                    }
                }
                "properties" | "additionalProperties" => {}
                "required" => {
                    for name in branches(wanted).iter().filter_map(Value::as_str) {
                        if value.as_object().is_some_and(|fields| !fields.contains_key(name)) {
                            faults.push(format!("{at}: no {name}"));
                        }
                    }
                }
                bound if BOUNDS.contains(&bound) => {
                    if !within(bound, value, wanted.as_f64().unwrap_or(f64::NAN)) {
                        faults.push(format!("{at}: {bound} is {wanted}"));
                    }
                }
                silent if SILENT.contains(&silent) => {}
                other => faults.push(format!("{at}: the validator does not know {other}")),
            }
        }
        self.fields(schema, value, at, faults);
    }

    fn fields(&self, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
        let known = schema.get("properties").and_then(Value::as_object);
        for (name, field) in value.as_object().into_iter().flatten() {
            let place = format!("{at}.{name}");
            match (known.and_then(|known| known.get(name)), schema.get("additionalProperties")) {
                (Some(own), _) => self.check(own, field, &place, faults),
                (None, Some(more)) => self.check(more, field, &place, faults),
                (None, None) => {}
            }
        }
    }

    /// One branch must fit (of `oneOf`: exactly one); else the one that fits best says why not.
    fn choice(&self, keyword: &str, branches: &[Value], value: &Value, at: &str, faults: &mut Vec<String>) {
        let mut tries: Vec<Vec<String>> = branches.iter().map(|branch| self.tried(branch, value, at)).collect();
        let fitting = tries.iter().filter(|faults| faults.is_empty()).count();
        if fitting == 0 {
            tries.sort_by_key(Vec::len);
            let nearest = tries.into_iter().next().unwrap_or_default();
            faults.push(format!("{at}: fits none of {} ways; the nearest: {}", branches.len(), nearest.join("; ")));
        } else if keyword == "oneOf" && fitting > 1 {
            faults.push(format!("{at}: fits {fitting} ways where one is right"));
        }
    }

    fn tried(&self, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        let mut faults = Vec::new();
        self.check(schema, value, at, &mut faults);
        faults
    }

    fn target(&self, reference: &Value) -> Option<&Value> {
        self.root.pointer(reference.as_str()?.strip_prefix('#')?)
    }
}

fn branches(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn is_of(value: &Value, wanted: &Value) -> bool {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        // 1.0 is an integer as JSON Schema has it.
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => false,
    };
    match wanted {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        _ => false,
    }
}

fn same(value: &Value, wanted: &Value) -> bool {
    value == wanted || matches!((value.as_f64(), wanted.as_f64()), (Some(one), Some(other)) if one == other)
}

fn within(bound: &str, value: &Value, limit: f64) -> bool {
    let length = match (bound, value) {
        ("minimum" | "maximum", Value::Number(number)) => number.as_f64(),
        ("minLength" | "maxLength", Value::String(text)) => u32::try_from(text.chars().count()).ok().map(f64::from),
        ("minItems" | "maxItems", Value::Array(items)) => u32::try_from(items.len()).ok().map(f64::from),
        _ => return true,
    };
    length.is_some_and(|length| if bound.starts_with("min") { length >= limit } else { length <= limit })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Schema;

    fn schema() -> Schema {
        Schema::new(json!({"$defs": {
            "Name": {"type": "string", "minLength": 2, "format": "whatever", "description": "a name"},
            "Pet": {
                "type": "object",
                "properties": {
                    "name": {"$ref": "#/$defs/Name"},
                    "kind": {"enum": ["cat", "dog"]},
                    "age": {"type": ["integer", "null"], "minimum": 0, "maximum": 30},
                    "version": {"const": "1"},
                    "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2}
                },
                "required": ["name"],
                "additionalProperties": {"type": "boolean"}
            },
            "Either": {"anyOf": [{"$ref": "#/$defs/Pet"}, {"type": "null"}]},
            "One": {"oneOf": [{"type": "number"}, {"type": "integer"}, {"type": "string"}]},
            "Both": {"allOf": [{"required": ["a"]}, {"required": ["b"]}], "not": {"required": ["c"]}},
            "Odd": {"dependentRequired": {}}
        }}))
    }

    fn count(name: &str, value: &Value) -> usize {
        schema().faults(name, value).len()
    }

    #[test]
    fn what_fits_has_no_faults() {
        let pet = json!({"name": "Rex", "kind": "dog", "age": 3.0, "version": "1", "tags": ["a"], "good": true});
        assert_eq!(schema().faults("Pet", &pet), Vec::<String>::new());
        assert_eq!(schema().faults("Either", &json!(null)), Vec::<String>::new());
        assert_eq!(count("One", &json!(1.5)) + count("Both", &json!({"a": 1, "b": 2})), 0);
    }

    #[test]
    fn every_keyword_can_say_no() {
        for (wrong, says) in [
            (json!({}), "Pet: no name"),
            (json!({"name": 1}), "Pet.name: not of type \"string\""),
            (json!({"name": "R"}), "Pet.name: minLength is 2"),
            (json!({"name": "Rex", "kind": "cow"}), "Pet.kind: none of [\"cat\",\"dog\"]"),
            (json!({"name": "Rex", "age": -1}), "Pet.age: minimum is 0"),
            (json!({"name": "Rex", "age": 31}), "Pet.age: maximum is 30"),
            (json!({"name": "Rex", "age": 1.5}), "Pet.age: not of type [\"integer\",\"null\"]"),
            (json!({"name": "Rex", "version": "2"}), "Pet.version: not \"1\""),
            (json!({"name": "Rex", "tags": [1]}), "Pet.tags[0]: not of type \"string\""),
            (json!({"name": "Rex", "tags": ["a", "b", "c"]}), "Pet.tags: maxItems is 2"),
            (json!({"name": "Rex", "other": "x"}), "Pet.other: not of type \"boolean\""),
            (json!([]), "Pet: not of type \"object\""),
        ] {
            assert_eq!(schema().faults("Pet", &wrong), [says], "{wrong}");
        }
        assert_eq!(count("Either", &json!("x")), 1);
        assert_eq!(count("One", &json!(1)), 1, "two ways");
        assert_eq!(count("One", &json!(null)), 1, "no way");
        assert_eq!(count("Both", &json!({"c": 1})), 3);
        assert_eq!(count("Odd", &json!(1)) + count("None", &json!(1)), 2, "what is not known is no yes");
    }
}
