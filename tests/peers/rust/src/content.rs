//! Small pieces of content that the scenarios ask for, as JSON.

use serde_json::{Value, json};

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

pub fn text(value: impl Into<String>) -> Value {
    json!({ "type": "text", "text": value.into() })
}

pub fn image() -> Value {
    json!({ "type": "image", "data": PNG, "mimeType": "image/png" })
}

pub fn audio() -> Value {
    json!({ "type": "audio", "data": WAV, "mimeType": "audio/wav" })
}

pub fn embedded(uri: &str, value: &str, kind: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": kind, "text": value } })
}

pub fn resources() -> Value {
    json!([
        { "uri": "test://static-text", "name": "static-text", "description": "Text that stays", "mimeType": "text/plain" },
        { "uri": "test://static-binary", "name": "static-binary", "description": "A picture that stays", "mimeType": "image/png" },
        { "uri": "test://watched-resource", "name": "watched-resource", "description": "To subscribe to", "mimeType": "text/plain" },
    ])
}

pub fn templates() -> Value {
    json!([{
        "uriTemplate": "test://template/{id}/data", "name": "template", "description": "Data for an id",
        "mimeType": "application/json",
    }])
}

/// What a resource holds; nothing where there is none.
pub fn read(uri: &str) -> Option<Value> {
    let text = |kind: &str, text: String| json!({ "uri": uri, "mimeType": kind, "text": text });
    let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    Some(match (uri, id) {
        ("test://static-text", _) => text("text/plain", "This is the content of the static text resource.".into()),
        ("test://watched-resource", _) => text("text/plain", "watch me".into()),
        ("test://static-binary", _) => json!({ "uri": uri, "mimeType": "image/png", "blob": PNG }),
        (_, Some(id)) if !id.contains('/') => {
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            text("application/json", data.to_string())
        }
        _ => return None,
    })
}

pub fn prompts(has_extra: bool) -> Value {
    let argument =
        |name: &str| json!({ "name": name, "description": format!("The argument {name}"), "required": true });
    let mut prompts = vec![
        json!({ "name": "test_simple_prompt", "description": "Takes nothing" }),
        json!({ "name": "test_prompt_with_arguments", "description": "Takes two", "arguments": [argument("arg1"), argument("arg2")] }),
        json!({ "name": "test_prompt_with_embedded_resource", "description": "Holds a resource", "arguments": [argument("resourceUri")] }),
        json!({ "name": "test_prompt_with_image", "description": "Holds a picture" }),
        json!({ "name": "test_input_required_result_prompt", "description": "Asks first" }),
    ];
    if has_extra {
        prompts.push(json!({ "name": "test_extra_prompt", "description": "Comes and goes" }));
    }
    prompts.into()
}

/// The messages of a prompt that asks nothing; nothing where there is none.
pub fn prompt(name: &str, given: &Value) -> Option<Value> {
    let argument = |name: &str| given[name].as_str().unwrap_or_default().to_owned();
    let contents = match name {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1"), argument("arg2"));
            vec![text(format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))]
        }
        "test_prompt_with_embedded_resource" => vec![
            embedded(&argument("resourceUri"), "Embedded resource content for testing.", "text/plain"),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![image(), text("Please analyze the image above.")],
        _ => return None,
    };
    Some(messages(contents))
}

pub fn messages(contents: Vec<Value>) -> Value {
    let messages: Vec<_> = contents.into_iter().map(|content| json!({ "role": "user", "content": content })).collect();
    json!({ "messages": messages })
}
