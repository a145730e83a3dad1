//! Frames: which are taken, and why others are not.

use super::*;

fn parse(text: &str) -> Result<Frame, FrameFault> {
    Frame::parse(&Bytes::copy_from_slice(text.as_bytes()))
}

#[test]
fn ids_are_strings_or_integers_and_kept_as_written() {
    for id in ["1", "-7", "0", "\"1\"", "\"\"", "9007199254740993", "18446744073709551616", "\"\\u0041\""] {
        let Ok(Frame::Request { id: seen, .. }) = parse(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#))
        else {
            panic!("{id}")
        };
        assert_eq!(seen.raw(), id.as_bytes());
    }
    for id in ["null", "1.5", "1e3", "1.0", "{}", "[]", "true", "\"\\u0000\"", "\"a\\ud800b\"", "\"\\udc00\""] {
        assert!(parse(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#)).is_err_and(|f| f.is_json), "{id}");
    }
    let long = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"x"}}"#, "a".repeat(ID_BYTES_MAX));
    assert!(parse(&long).is_err());
}

#[test]
fn a_frame_is_the_same_wherever_its_version_stands_and_however_it_is_spaced() {
    let rest = r#""id":1,"method":"x","params":{"name":"a"}"#;
    let version = r#""jsonrpc":"2.0""#;
    for text in [
        format!("{{{version},{rest}}}"),
        format!(" {{{version} , {rest} }}"),
        format!("{{ {version},{rest}}}"),
        format!("{{\"jsonrpc\": \"2.0\",{rest}}}"),
        format!("{{{rest},{version}}}"),
    ] {
        let Ok(Frame::Request { id, method, params }) = parse(&text) else { panic!("{text}") };
        let read = (&id.raw()[..], method.as_str(), &params.raw()[..]);
        assert_eq!(read, (&b"1"[..], "x", &br#"{"name":"a"}"#[..]), "{text}");
    }
    for text in [
        format!("{},{rest}", version.replace("2.0", "2.01")),
        format!("{version}0,{rest}"),
        format!("{version} {rest}"),
        format!("{version}:1,{rest}"),
        format!("{version},{version},{rest}"),
        format!("{version},\"JSONRPC\":\"2.0\",{rest}"),
    ] {
        assert!(parse(&format!("{{{text}}}")).is_err(), "{text}");
    }
    assert!(parse(&format!("{{{version}")).is_err_and(|fault| !fault.is_json));
}

#[test]
fn what_is_no_frame_says_why() {
    for (text, is_json) in [
        ("", false),
        ("{", false),
        ("[]", true),
        ("7", true),
        ("{}", true),
        (r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#, true),
        (r#"{"jsonrpc":"2.0","id":1,"method":"x","method":"y"}"#, true),
        (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[]}"#, true),
        (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"name":1,"name":2}}"#, true),
        (r#"{"jsonrpc":"2.0","id":1,"method":"x"} x"#, false),
    ] {
        let fault = parse(text).expect_err(text);
        assert_eq!(fault.is_json, is_json, "{text}: {fault}");
    }
}

#[test]
fn doubles_and_variants_of_the_envelope_are_refused_by_name() {
    for (text, why) in [
        (r#""id":1,"id":2,"method":"x""#, "`id` stands twice in the frame"),
        (r#""id":1,"Id":2,"method":"x""#, "`id` stands twice in the frame"),
        (r#""id":1,"method":"x","METHOD":"y""#, "`method` stands twice in the frame"),
        (r#""id":1,"method":"x","params":{},"params":null"#, "`params` stands twice in the frame"),
        (r#""id":1,"method":"x","param\u017f":{}"#, "a key in the frame must be spelled `params`"),
        (r#""id":1,"result":{},"re\u0073ult":{}"#, "`result` stands twice in the frame"),
    ] {
        let fault = parse(&format!(r#"{{"jsonrpc":"2.0",{text}}}"#)).expect_err(text);
        assert!(fault.why.starts_with(why) && fault.is_json && !fault.is_of_params, "{text}: {}", fault.why);
        assert_eq!(fault.id.is_none(), why.contains("`id`"), "{text}");
    }
    let fault = parse(r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"uri":"a","URI":"b"}}"#).unwrap_err();
    assert!(fault.is_of_params && fault.id.is_some(), "{fault}");
}

#[test]
fn what_asks_and_answers_at_once_is_refused() {
    for text in [
        r#""id":1,"method":"x","result":{}"#,
        r#""id":1,"result":7,"method":"x","params":{}"#,
        r#""id":1,"method":"x","error":{"code":1,"message":"m"}"#,
        r#""method":"x","result":{}"#,
    ] {
        let fault = parse(&format!(r#"{{"jsonrpc":"2.0",{text}}}"#)).expect_err(text);
        assert!(fault.is_json && fault.why.contains("`method`") && fault.why.contains("beside"), "{text}: {fault}");
    }
    // Some libraries write the member that there is not as null.
    let asks = parse(r#"{"jsonrpc":"2.0","id":1,"method":"x","result":null,"error":null}"#);
    assert!(matches!(asks, Ok(Frame::Request { .. })), "{asks:?}");
}

#[test]
fn responses_are_told_apart() {
    let body = |text: &str| match parse(text) {
        Ok(Frame::Response { body, .. }) => body,
        other => panic!("{other:?}"),
    };
    assert!(matches!(body(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Body::Result(_)));
    assert!(matches!(body(r#"{"jsonrpc":"2.0","id":1,"result":null}"#), Body::Odd(_)));
    assert!(matches!(body(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1}}"#), Body::Error(_)));
    assert!(matches!(body(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#), Body::Neither));
}

#[test]
fn frames_of_ours_parse() {
    let mut out = Vec::new();
    open_request(42, &Method::Other("a\"b".into()), &mut out);
    Object::empty().write(&[], &mut out);
    close(&mut out);
    let Ok(Frame::Request { id, method, .. }) = Frame::parse(&out.into()) else { panic!() };
    assert_eq!((id.number(), method.as_str()), (Some(42), "a\"b"));
    assert_eq!(Decimal::of(u64::MAX).as_bytes(), u64::MAX.to_string().as_bytes());
}
