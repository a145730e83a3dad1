//! Answers in parts: joined, bounded, and whatever is none.

use super::*;
use crate::memory::account::Kind;
use crate::memory::budget::Budget;

fn event(name: &'static str, data: &'static str) -> SseEvent {
    SseEvent { name: name.into(), data: data.into(), ..SseEvent::default() }
}

/// What these events come to, with room for so many bytes of parts.
fn read(events: &[(&'static str, &'static str)], max: usize) -> Option<Result<String, String>> {
    let mut parts = None;
    let room = || Gather::new(&Budget::new(64 << 20), Kind::Line, 1 << 20);
    let answer = events.iter().find_map(|(name, data)| take(&mut parts, &event(name, data), 7, (max, room)))?;
    Some(match answer {
        Ok(Body::Result(result)) => Ok(String::from_utf8(result.raw().to_vec()).unwrap()),
        Ok(Body::Error(raw)) => Err(String::from_utf8(raw.to_vec()).unwrap()),
        Ok(other) => panic!("{other:?}"),
        Err(Unjoined::TooLong(why) | Unjoined::Unreadable(why)) => Err(why),
        Err(Unjoined::NoRoom(why)) => panic!("{why}"),
    })
}

#[test]
fn parts_are_joined_by_the_end_that_has_no_contents_of_its_own() {
    let (a, b) = (r#"{"type":"text","text":"a"}"#, r#"{"type":"text","text":"b"}"#);
    let joined = |rest: &str| Some(Ok(format!(r#"{{"content":[{a},{b}]{rest}}}"#)));
    let first = ("result", r#"{"content":[{"type":"text","text":"a"}]}"#);
    let second =
        ("result", r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"b"}],"isError":false}}"#);
    for (end, expected) in [
        (r#"{}"#, joined(",\"isError\":false")),
        ("", joined(",\"isError\":false")),
        (r#"{"isError":true}"#, joined(",\"isError\":true")),
        (r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#, joined("")),
        (r#"{"id":7,"result":{"content":[1],"x":2}}"#, Some(Ok(r#"{"content":[1],"x":2}"#.to_owned()))),
        (r#"{"id":8,"result":{"content":[1]}}"#, None),
    ] {
        assert_eq!(read(&[first, second, ("complete", end)], 1000), expected, "{end}");
    }
    assert_eq!(read(&[first, second], 1000), None, "no part ends the answer");
    let texts = [("result", "a"), ("result", "\"b\""), ("complete", "{}")];
    assert_eq!(read(&texts, 1000), joined(""), "a part may be a mere text");
    let lone = [("result", a), ("result", "{\"text\":\"b\"}"), ("complete", "{}")];
    assert_eq!(read(&lone, 1000), joined(""), "a content by itself");
    assert_eq!(read(&[("complete", "{}")], 1000), Some(Ok(r#"{"content":[]}"#.to_owned())));
    assert_eq!(read(&[("heartbeat", "{}"), ("message", "{}")], 1000), None);
}

#[test]
fn an_error_ends_the_answer_whatever_it_has_of_one() {
    let part = ("result", r#"{"content":[]}"#);
    for (name, data, expected) in [
        ("error", r#"{"jsonrpc":"2.0","id":7,"error":{"code":-5,"message":"no"}}"#, r#"{"code":-5,"message":"no"}"#),
        ("error", r#"{"code":-5,"message":"no"}"#, r#"{"code":-5,"message":"no"}"#),
        ("error", r#"{"message":"no"}"#, r#"{"code":-32000,"message":"no"}"#),
        ("error", "no", r#"{"code":-32000,"message":"no"}"#),
        ("complete", r#"{"id":7,"error":"no"}"#, r#"{"code":-32000,"message":"no"}"#),
    ] {
        assert_eq!(read(&[part, (name, data)], 1000), Some(Err(expected.to_owned())), "{data}");
    }
}

#[test]
fn parts_have_a_limit_together() {
    let part = ("result", r#"{"content":[{"type":"text","text":"12345678901234567890"}]}"#);
    assert_eq!(read(&[part; 2], 100), None);
    let said = read(&[part; 3], 100).unwrap().unwrap_err();
    assert!(said.contains("more than 100 bytes, the limit set by `max_response`"), "{said}");
}

#[test]
fn what_parts_say_beside_their_contents_is_counted_and_has_the_limit_of_all() {
    let budget = Budget::new(64 << 20);
    let mut parts = None;
    let room = || Gather::new(&budget, Kind::Line, 4 << 20);
    let mut part = |bytes: usize| {
        let data = format!("{{\"x\":\"{}\"}}", "y".repeat(bytes));
        let event = SseEvent { name: "result".into(), data: data.into(), ..SseEvent::default() };
        take(&mut parts, &event, 7, (1 << 20, room))
    };
    assert!(part(1 << 19).is_none());
    assert!(budget.used() >= 1 << 19, "{}", budget.used());
    assert!(matches!(part(1 << 20), Some(Err(Unjoined::TooLong(_)))), "without any content, too");
}

#[test]
fn a_part_that_cannot_be_read_ends_the_answer_with_the_reason() {
    for events in [
        &[("result", r#"{"content":[{"type":"text","text":"a"}],"x":NaN}"#)][..],
        &[("result", r#" {"a":1,"b":}"#)],
        &[("result", r#"{"content":[]}"#), ("complete", r#"{"q":1,"#)],
    ] {
        let said = read(events, 1000).expect("it ends").unwrap_err();
        assert!(said.starts_with("a part of its answer cannot be read: "), "{said}");
    }
    let end = read(&[("error", r#"{"code":-5,"mess"#)], 1000).expect("it ends").unwrap_err();
    assert!(end.contains("-32000"), "an error stays one: {end}");
    let end = read(&[("error", r#"{"code":5,"message":"no"}""#)], 1000).expect("it ends").unwrap_err();
    assert_eq!(end, r#"{"code":5,"message":"no"}"#, "what follows an error is none of it");
}

#[test]
fn what_only_begins_like_a_list_is_a_text() {
    for data in [&b"[{\"\xff\":1}]"[..], b"[1] is the first", b"[1,"] {
        let mut parts = None;
        let room = || Gather::new(&Budget::new(64 << 20), Kind::Line, 1 << 20);
        let mut event = |name: &'static str, data: &'static [u8]| {
            let event = SseEvent { name: name.into(), data: data.into(), ..SseEvent::default() };
            take(&mut parts, &event, 7, (1000, room))
        };
        assert!(event("result", data).is_none());
        let Some(Ok(Body::Result(result))) = event("complete", b"{}") else { panic!("{data:?} is no result") };
        let text = json::quote(&String::from_utf8_lossy(data));
        assert_eq!(result.raw(), format!("{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}]}}").as_bytes());
    }
}

#[test]
fn results_that_are_no_objects_are_contents_and_blanks_and_envelopes_are_nothing() {
    let (a, b) = (r#"{"type":"text","text":"a"}"#, r#"{"type":"text","text":"b"}"#);
    for (first, second) in [
        (r#"{"id":7,"result":"a"}"#, r#"{"id":7,"result":[{"type":"text","text":"b"}]}"#),
        ("  {\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}", "\n[{\"type\":\"text\",\"text\":\"b\"}] "),
        (
            r#"{"id":7,"jsonrpc":"2.0","content":[{"type":"text","text":"a"}],"error":false}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":null,"content":[{"type":"text","text":"b"}]}"#,
        ),
    ] {
        for end in ["{}", " {\"id\":7} ", "\n", r#"{"jsonrpc":"2.0","id":7,"result":null}"#] {
            let seen = read(&[("result", first), ("result", second), ("complete", end)], 1000);
            assert_eq!(seen, Some(Ok(format!(r#"{{"content":[{a},{b}]}}"#))), "{first} {end}");
        }
    }
    assert_eq!(
        read(&[("complete", r#"{"id":7,"jsonrpc":"2.0","content":[],"isError":true}"#)], 1000),
        Some(Ok(r#"{"content":[],"isError":true}"#.to_owned()))
    );
}

#[test]
fn a_failure_and_a_structured_content_stay_where_later_parts_do_not_mention_them() {
    let first = ("result", r#"{"content":[1],"isError":true,"structuredContent":{"a":1},"x":1}"#);
    let second = ("result", r#"{"content":[2]}"#);
    let stays = r#","isError":true,"structuredContent":{"a":1}}"#;
    for (events, expected) in [
        (vec![first, second, ("complete", "{}")], format!(r#"{{"content":[1,2]{stays}"#)),
        (
            vec![first, ("result", "b"), ("complete", "")],
            format!(r#"{{"content":[1,{{"type":"text","text":"b"}}]{stays}"#),
        ),
        (vec![first, ("complete", r#"{"y":1}"#)], format!(r#"{{"content":[1],"y":1{stays}"#)),
        (vec![first, ("complete", r#"{"content":[3]}"#)], r#"{"content":[3],"isError":true}"#.into()),
        (
            vec![first, ("complete", r#"{"isError":false,"structuredContent":2}"#)],
            r#"{"content":[1],"isError":false,"structuredContent":2}"#.into(),
        ),
        (
            vec![first, ("result", r#"{"content":[2],"isError":false}"#), ("complete", "{}")],
            r#"{"content":[1,2],"isError":false,"structuredContent":{"a":1}}"#.into(),
        ),
    ] {
        assert_eq!(read(&events, 1000), Some(Ok(expected)), "{events:?}");
    }
}
