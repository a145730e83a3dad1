//! Errors of upstreams, in codes that their receiver knows; what no code says, a tool says to the model.

use super::edit;
use crate::frame::Method;
use crate::frame::rpc_error::{
    INTERNAL, INVALID_PARAMS, MISSING_CAPABILITY, RESOURCE_NOT_FOUND, RpcError, URL_ELICITATION_REQUIRED,
};
use crate::json;
use crate::revision::{Features, Revision};
use crate::value::Object;

/// How a receiver is told of an upstream's error.
#[derive(Debug)]
pub enum Told {
    /// By an error.
    Error(RpcError),
    /// By a tool's result that says what is the matter: its revision has no code for it.
    Result(Object),
}

/// An upstream's error on its way to a peer of revision `to`; `asked` is the URI that was read, in the caller's words.
pub fn failure(method: &Method, error: &RpcError, asked: Option<&str>, from: Revision, to: Revision) -> Told {
    if from == to {
        return Told::Error(error.clone());
    }
    let knows_pages = Features::of(to).has(Features::CHOICES);
    match (from.is_modern(), to.is_modern(), error.code()) {
        (false, true, Some(RESOURCE_NOT_FOUND)) => Told::Error(recode(error, INVALID_PARAMS)),
        (false, true, Some(URL_ELICITATION_REQUIRED)) => Told::Error(RpcError::new(
            MISSING_CAPABILITY,
            &error.message().unwrap_or_default(),
            Some(r#"{"requiredCapabilities":{"elicitation":{"url":{}}}}"#),
        )),
        (_, false, Some(URL_ELICITATION_REQUIRED)) if !knows_pages => cannot(method, &pages(error)),
        (true, false, Some(MISSING_CAPABILITY)) => {
            let what = error.message().unwrap_or_default();
            cannot(method, &format!("The upstream needs a capability that this client does not have: {what}"))
        }
        (true, false, Some(INVALID_PARAMS)) if asked.is_some() && names(error, asked) => {
            Told::Error(recode(error, RESOURCE_NOT_FOUND))
        }
        _ => Told::Error(error.clone()),
    }
}

/// What a client cannot have: a tool says it to the model, everything else to the program.
pub fn cannot(method: &Method, why: &str) -> Told {
    if *method != Method::ToolsCall {
        return Told::Error(RpcError::new(INTERNAL, why, None));
    }
    let text = json::quote(why);
    let result = format!("{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}],\"isError\":true}}");
    Told::Result(Object::parse(result.into()).expect("what we write is an object"))
}

/// The pages that must be visited first, in words.
fn pages(error: &RpcError) -> String {
    let mut words = error.message().unwrap_or_default();
    let listed = error.data().and_then(|data| json::get(data, "elicitations")).unwrap_or(b"[]");
    for page in edit::each(listed) {
        let text = |key| edit::text(page, key).unwrap_or_default();
        words.push_str(&format!("\n{}: {}", text("message"), text("url")));
    }
    words
}

/// Whether an error's `data.uri` is the URI that was asked for: then it says that the resource is missing.
fn names(error: &RpcError, asked: Option<&str>) -> bool {
    error.data().and_then(|data| json::get(data, "uri")).and_then(json::unquote).as_deref() == asked
}

fn recode(error: &RpcError, code: i64) -> RpcError {
    let data = error.data().map(|data| String::from_utf8_lossy(data).into_owned());
    RpcError::new(code, &error.message().unwrap_or_default(), data.as_deref())
}
