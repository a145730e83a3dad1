//! What is mirrored and compared, which annotations are refused, and what that costs.

use super::node::ANNOTATIONS_MAX;
use super::*;
use crate::steps;

const SCHEMA: &str = r#"{"type":"object","properties":{
    "region":{"type":"string","x-mcp-header":"Region"},
    "deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}"#;

#[test]
fn arguments_are_mirrored_and_compared() {
    let compiled = ParamHeaders::compile(SCHEMA.as_bytes()).unwrap().unwrap();
    let arguments = br#"{"region":"\u00e4","deep":{"n":42}}"#;
    let made = compiled.make(Some(arguments));
    assert_eq!(made.len(), 2);
    assert_eq!(compiled.check(Some(arguments), Some(&made)), Ok(()));
    assert_eq!(compiled.check(Some(br#"{"region":"\u00e4","deep":{"n":42.0}}"#), Some(&made)), Ok(()));
    assert!(compiled.check(Some(br#"{"region":"a","deep":{"n":42}}"#), Some(&made)).is_err());
    assert!(compiled.check(Some(arguments), Some(&made[..1])).is_err());
    assert!(compiled.check(Some(br#"{"region":null}"#), Some(&made)).is_err());
    assert_eq!(compiled.check(Some(br#"{"region":null}"#), Some(&[])), Ok(()));
    assert_eq!(compiled.make(None), []);
    assert_eq!(compiled.make(Some(br#"{"deep":{"n":-9223372036854775808}}"#)), []);
}

#[test]
fn an_argument_that_is_mirrored_stands_once() {
    let compiled = ParamHeaders::compile(SCHEMA.as_bytes()).unwrap().unwrap();
    for arguments in [
        r#"{"region":"a","region":"b"}"#,
        r#"{"region":"a","r\u0065gion":"a"}"#,
        r#"{"deep":{"n":1},"deep":{}}"#,
        r#"{"deep":{"n":1,"n":1}}"#,
    ] {
        for given in [None, Some(&[][..])] {
            assert!(
                matches!(compiled.check(Some(arguments.as_bytes()), given), Err(Unfit::Arguments(_))),
                "{arguments}"
            );
        }
    }
    let others = br#"{"x":1,"x":2,"deep":{"y":{"n":1,"n":2}},"Region":"a"}"#;
    assert_eq!(compiled.check(Some(others), Some(&[])), Ok(()));
}

fn annotated(count: usize, depth: usize) -> String {
    let leaves: Vec<_> =
        (0..count).map(|at| format!(r#""a{at}":{{"type":"string","x-mcp-header":"H{at}"}}"#)).collect();
    let inner = format!(r#"{{"properties":{{{}}}}}"#, leaves.join(","));
    (0..depth).fold(inner, |inner, _| format!(r#"{{"type":"object","properties":{{"d":{inner}}}}}"#))
}

fn arguments(count: usize, depth: usize, bytes: usize) -> String {
    let leaves: Vec<_> = (0..count).map(|at| format!(r#""a{at}":"v""#)).collect();
    let inner = format!(r#"{{"x":"{}",{}}}"#, "y".repeat(bytes), leaves.join(","));
    (0..depth).fold(inner, |inner, _| format!(r#"{{"d":{inner}}}"#))
}

#[test]
fn a_tool_has_so_many_annotations_and_no_more() {
    let compiled = ParamHeaders::compile(annotated(ANNOTATIONS_MAX, 1).as_bytes()).unwrap().unwrap();
    assert_eq!(compiled.make(Some(arguments(ANNOTATIONS_MAX, 1, 0).as_bytes())).len(), ANNOTATIONS_MAX);
    assert!(ParamHeaders::compile(annotated(ANNOTATIONS_MAX + 1, 1).as_bytes()).unwrap_err().contains("more than 64"));
    assert!(ParamHeaders::compile(annotated(50_000, 1).as_bytes()).is_err());
}

#[test]
fn headers_cost_one_walk_over_the_arguments() {
    let cost = |count, depth, bytes| {
        let compiled = ParamHeaders::compile(annotated(count, depth).as_bytes()).unwrap().unwrap();
        let text = arguments(count, depth, bytes);
        let made = compiled.make(Some(text.as_bytes()));
        steps::of(|| compiled.check(Some(text.as_bytes()), Some(&made)).unwrap()).unwrap() as f64
    };
    for ((one, two), ratio) in [
        ((cost(64, 4, 20_000), cost(64, 4, 40_000)), 2.2),
        ((cost(4, 16, 50_000), cost(4, 32, 50_000)), 1.1),
        ((cost(32, 4, 50_000), cost(64, 4, 50_000)), 1.1),
    ] {
        assert!(two / one < ratio, "{one} steps, then {two}");
    }
    let cost = |count, depth| {
        let text = annotated(count, depth);
        steps::of(|| drop(ParamHeaders::compile(text.as_bytes()))).unwrap() as f64
    };
    assert!(cost(64, 4) / cost(32, 4) < 2.6 && cost(1, 60) / cost(1, 30) < 2.6);
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
        r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"a":{"type":"string"}}}"#,
        r#"{"properties":{"a":{"type":"string","x-mcp-header":"A","x-mcp-header":"B"}}}"#,
        r#"{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}"#,
    ] {
        assert!(ParamHeaders::compile(schema.as_bytes()).is_err(), "{schema}");
    }
}
