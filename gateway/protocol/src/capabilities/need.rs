//! What a client must have declared before it may be asked a question, and how that is said to a person.

use super::declared::Capabilities;
use crate::frame::Method;
use crate::json;
use crate::value::Object;

/// What a client must have declared to be asked this, live or embedded; `None` where it is no question that anybody knows.
pub fn of(method: &Method, params: &Object) -> Option<Capabilities> {
    match method {
        Method::Elicitation => match params.find("mode").map(json::unquote) {
            None => Some(Capabilities::FORM),
            Some(mode) => match mode.as_deref() {
                Some("form") => Some(Capabilities::FORM),
                Some("url") => Some(Capabilities::URL),
                _ => None,
            },
        },
        Method::Sampling => {
            let with_tools = ["tools", "toolChoice"].iter().any(|key| params.find(key).is_some());
            let tools = if with_tools { Capabilities::SAMPLING_TOOLS } else { Capabilities::NONE };
            // What it may see of others is a wish, which every client may leave unheard.
            Some(Capabilities::SAMPLING.with(tools))
        }
        Method::RootsList => Some(Capabilities::ROOTS),
        _ => None,
    }
}

/// What is asked for, in words; the capability is named as clients declare it.
pub fn words(need: Capabilities) -> &'static str {
    if need.has(Capabilities::SAMPLING_TOOLS) {
        "a model's answer that may use tools (capability `sampling.tools`)"
    } else if need.has(Capabilities::SAMPLING) {
        "a model's answer (capability `sampling`)"
    } else if need.has(Capabilities::URL) {
        "a visit to a web page (capability `elicitation.url`)"
    } else if need.has(Capabilities::FORM) {
        "input from the person (capability `elicitation`)"
    } else if need.has(Capabilities::ROOTS) {
        "the client's roots (capability `roots`)"
    } else {
        "something that the gateway does not know"
    }
}

/// The raw capabilities of a client that cannot be asked: without what questions need.
pub fn mute(capabilities: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(capabilities.len());
    for member in json::Members::of(capabilities).into_iter().flatten().flatten() {
        let name = json::unquote(&capabilities[member.start..member.key_end]);
        if !matches!(name.as_deref(), Some("elicitation" | "sampling" | "roots")) {
            kept.push(if kept.is_empty() { b'{' } else { b',' });
            kept.extend_from_slice(&capabilities[member.start..member.end]);
        }
    }
    if kept.is_empty() {
        kept.push(b'{');
    }
    kept.push(b'}');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_be_asked_keeps_everything_else() {
        assert_eq!(
            mute(br#"{"roots":{},"a": {"b":1}, "sampling":{},"elicitation":{},"c":2}"#),
            br#"{"a": {"b":1},"c":2}"#
        );
        assert_eq!(mute(b"{}"), b"{}");
        assert_eq!(mute(br#"{"sampling":{}}"#), b"{}");
    }

    #[test]
    fn each_question_needs_what_it_uses() {
        let need = |method, params: &'static str| of(&method, &Object::parse(params.into()).unwrap());
        for (method, params, expected) in [
            (Method::Elicitation, "{}", Some(Capabilities::FORM)),
            (Method::Elicitation, r#"{"mode":"form"}"#, Some(Capabilities::FORM)),
            (Method::Elicitation, r#"{"mode":"url"}"#, Some(Capabilities::URL)),
            (Method::Elicitation, r#"{"mode":"dance"}"#, None),
            (Method::Elicitation, r#"{"mode":7}"#, None),
            (Method::Sampling, r#"{"includeContext":"allServers"}"#, Some(Capabilities::SAMPLING)),
            (Method::RootsList, "{}", Some(Capabilities::ROOTS)),
            (Method::ToolsCall, "{}", None),
        ] {
            assert_eq!(need(method.clone(), params), expected, "{method:?} {params}");
        }
        for tools in [r#"{"tools":[]}"#, r#"{"toolChoice":{}}"#] {
            let need = need(Method::Sampling, tools).unwrap();
            assert!(need.has(Capabilities::SAMPLING) && need.has(Capabilities::SAMPLING_TOOLS));
            assert!(words(need).contains("sampling.tools"));
        }
    }
}
