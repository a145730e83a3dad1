//! Errors in their receiver's codes.

use super::super::failure::{Told, failure};
use super::super::*;
use crate::frame::rpc_error::{
    INTERNAL, INVALID_PARAMS, MISSING_CAPABILITY, RESOURCE_NOT_FOUND, RpcError, URL_ELICITATION_REQUIRED,
};
use Revision as R;

fn told(method: Method, error: &RpcError, asked: Option<&str>, from: Revision, to: Revision) -> RpcError {
    match failure(&method, error, asked, from, to) {
        Told::Error(error) => error,
        Told::Result(result) => panic!("{:?}", result.raw()),
    }
}

#[test]
fn a_missing_resource_is_said_in_the_receivers_code() {
    let read = |error: &RpcError, asked, from, to| told(Method::ResourcesRead, error, asked, from, to);
    let legacy = RpcError::new(RESOURCE_NOT_FOUND, "no", Some(r#"{"uri":"a:b"}"#));
    let modern = read(&legacy, Some("a:b"), R::V2025_11_25, R::V2026_07_28);
    assert_eq!((modern.code(), modern.data()), (Some(INVALID_PARAMS), Some(&br#"{"uri":"a:b"}"#[..])));
    assert_eq!(read(&modern, Some("a:b"), R::V2026_07_28, R::V2025_11_25).code(), Some(RESOURCE_NOT_FOUND));
    assert_eq!(read(&modern, Some("a:c"), R::V2026_07_28, R::V2025_11_25).code(), Some(INVALID_PARAMS));
    assert_eq!(read(&legacy, None, R::V2025_11_25, R::V2024_11_05), legacy);
}

#[test]
fn a_page_to_visit_is_said_as_each_revision_can() {
    let data =
        r#"{"elicitations":[{"mode":"url","elicitationId":"1","url":"https://a.example/x","message":"Log in"}]}"#;
    let error = RpcError::new(URL_ELICITATION_REQUIRED, "First this", Some(data));
    let modern = told(Method::ToolsCall, &error, None, R::V2025_11_25, R::V2026_07_28);
    assert_eq!(modern.code(), Some(MISSING_CAPABILITY));
    assert_eq!(modern.data(), Some(&br#"{"requiredCapabilities":{"elicitation":{"url":{}}}}"#[..]));
    match failure(&Method::ToolsCall, &error, None, R::V2025_11_25, R::V2025_06_18) {
        Told::Result(result) => assert_eq!(
            result.raw(),
            r#"{"content":[{"type":"text","text":"First this\nLog in: https://a.example/x"}],"isError":true}"#
        ),
        Told::Error(error) => panic!("{error:?}"),
    }
    assert_eq!(told(Method::PromptsGet, &error, None, R::V2025_11_25, R::V2025_06_18).code(), Some(INTERNAL));
    // A stateless upstream must not say this; where it does, nobody who knows it not is to read it either.
    for old in [R::V2024_11_05, R::V2025_06_18] {
        assert!(matches!(failure(&Method::ToolsCall, &error, None, R::V2026_07_28, old), Told::Result(_)));
        assert_eq!(told(Method::PromptsGet, &error, None, R::V2026_07_28, old).code(), Some(INTERNAL));
    }
    assert_eq!(told(Method::ToolsCall, &error, None, R::V2025_11_25, R::V2025_11_25), error);
}
