//! Objects: walked, read and written anew.

use super::key::ALL;
use super::*;
use proptest::prelude::*;

fn object(text: &str) -> Object {
    Object::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

#[test]
fn members_are_set_put_first_and_left_out() {
    let params = object(r#"{ "name" : "a", "x": {"name":1} , "_meta":{"k":2}}"#);
    let edits = [(Key::Name, Edit::Set(b"\"b\"")), (Key::Meta, Edit::Drop), (Key::Uri, Edit::Set(b"7"))];
    assert_eq!(params.with(&edits), r#"{"uri":7, "name" : "b", "x": {"name":1} }"#);
    assert_eq!(object("{}").with(&[(Key::Meta, Edit::Set(b"1"))]), r#"{"_meta":1}"#);
    assert_eq!(object(r#"{"_meta":1 }"#).with(&[(Key::Meta, Edit::Drop)]), "{}");
}

#[test]
fn a_key_is_what_its_receiver_reads() {
    let params = object(r#"{"n\u0061me":"a","Name":"b"}"#);
    assert_eq!(params.text(Key::Name).as_deref(), Some("a"));
    assert!(object(r#"{"n\u0061me":"a","name":"b"}"#).doubled().is_some());
    assert!(object(r#"{"name":"a","arguments":{"name":1,"name":2}}"#).doubled().is_none());
}

#[test]
fn the_keys_are_in_the_order_of_their_names() {
    assert!(ALL.iter().enumerate().all(|(at, key)| *key as usize == at));
}

#[test]
fn doubles_are_found_at_every_level_that_is_acted_on() {
    for (text, why) in [
        (r#"{"taskId":"a","taskId":"b"}"#, "`taskId` stands twice in `params`"),
        (r#"{"taskId":"a","task\u0049d":"b"}"#, "`taskId` stands twice in `params`"),
        (r#"{"taskid":"a","taskId":"b"}"#, "`taskId` stands twice in `params`"),
        (r#"{"TASKID":"a","taskid":"b"}"#, "`taskId` stands twice in `params`"),
        (r#"{"ta\u017fkId":"a","taskId":"b"}"#, "`taskId` stands twice in `params`"),
        (r#"{"tas\u212aId":"a","taskId":"b"}"#, "`taskId` stands twice in `params`"),
        (r#"{"cursor":"a","cursor":"a"}"#, "`cursor` stands twice in `params`"),
        (r#"{"level":"info","Level":"debug"}"#, "`level` stands twice in `params`"),
        (r#"{"ref":{"type":"ref/prompt","name":"a","name":"b"}}"#, "`name` stands twice in `params.ref`"),
        (r#"{"ref":{"type":"ref/prompt","name":"a","NAME":"b"}}"#, "`name` stands twice in `params.ref`"),
        (r#"{"task":{"taskId":"a","taskId":"b"}}"#, "`taskId` stands twice in `params.task`"),
        (r#"{"name":"x","task":{"ttl":1},"task":{"ttl":2}}"#, "`task` stands twice in `params`"),
        (r#"{"name":"x","task":null,"task":{}}"#, "`task` stands twice in `params`"),
        (r#"{"name":"x","task":{"ttl":1,"ttl":2}}"#, "`ttl` stands twice in `params.task`"),
        (r#"{"name":"x","task":{"ttl":1,"TTL":2}}"#, "`ttl` stands twice in `params.task`"),
        (r#"{"_meta":{"progressToken":1,"progresstoken":2}}"#, "`progressToken` stands twice in `params._meta`"),
        (r#"{"capabilities":{"extensions":{},"Extensions":{}}}"#, "`extensions` stands twice in `params.capabilities`"),
        (
            r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"roots":{},"roots":null}}}"#,
            "`roots` stands twice in `params._meta.io.modelcontextprotocol/clientCapabilities`",
        ),
        (r#"{"_meta":{"x":1,"x":2},"_meta":{}}"#, "`_meta` stands twice in `params`"),
        (
            r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"a","taskId":"b"}}}"#,
            "`taskId` stands twice in `params._meta.io.modelcontextprotocol/related-task`",
        ),
    ] {
        let said = object(text).doubled().map(|one| one.of("params")).unwrap_or_default();
        assert!(said.starts_with(why), "{text}: {said}");
    }
    for text in [
        r#"{"name":"a","arguments":{"name":1,"name":2},"x":1,"x":2}"#,
        r#"{"_meta":{"x":1,"x":2,"X":3}}"#,
        r#"{"Name":"a","task":"name","ref":[{"name":1,"name":2}]}"#,
    ] {
        assert_eq!(object(text).doubled(), None, "{text}");
    }
    for (text, why) in [
        (r#"{"Name":"a"}"#, "a key in `params` must be spelled `name`"),
        (r#"{"ref":{"Type":"a"}}"#, "a key in `params.ref` must be spelled `type`"),
        (r#"{"_meta":{"ProgressToken":1}}"#, "a key in `params._meta` must be spelled `progressToken`"),
    ] {
        let said = object(text).misspelled().map(|one| one.of("params")).unwrap_or_default();
        assert!(said.starts_with(why), "{text}: {said}");
    }
    for text in [r#"{"n\u0061me":"a"}"#, r#"{"capabilities":{"Roots":{}}}"#] {
        assert_eq!(object(text).misspelled(), None, "{text}");
    }
}

#[test]
fn a_member_is_found_wherever_it_stands() {
    let (wide, long) = (" ".repeat(300), "x".repeat(70_000));
    for text in [
        r#"{"name":"n"}"#.to_owned(),
        format!(r#"{{"name":{wide}"n"}}"#),
        format!(r#"{{"z":"{long}","name":"n"}}"#),
        r#"{"uri":1,"level":2,"cursor":3,"status":4,"name":"n"}"#.to_owned(),
        r#"{"uri":1,"level":2,"cursor":3,"name":"n"}"#.to_owned(),
        r#"{"name":"n","_meta":{"progressToken":1}}"#.to_owned(),
    ] {
        let read = object(&text);
        assert_eq!(read.get(Key::Name), Some(&b"\"n\""[..]), "{text}");
        let set = read.set(Key::Name, b"[]");
        assert_eq!(set.get(Key::Name), Some(&b"[]"[..]), "{text}");
        assert_eq!(set.raw(), &text.replace("\"n\"", "[]"));
        assert_eq!(set.get(Key::TaskId), None, "{text}");
    }
}

#[test]
fn few_members_of_a_short_object_take_no_memory() {
    let is_small = |text: &str| object(text).known.more().is_none();
    assert!(is_small(r#"{"content":[],"structuredContent":{},"isError":false,"resultType":"complete"}"#));
    assert!(is_small(r#"{"name":"n","arguments":{},"_meta":{}}"#));
    assert!(size_of::<Object>() <= 64);
}

#[test]
fn setting_knows_where_everything_stands() {
    for text in [
        r#"{"a":1, "name" : "x","arguments":{"k":[1]},"_meta":{} }"#,
        r#"{"_meta":{},"name":""}"#,
        r#"{"uri":"u"}"#,
        "{}",
    ] {
        for value in ["\"\"", "\"longer than it was\""] {
            let (set, walked) = (
                object(text).set(Key::Name, value.as_bytes()),
                object(text).with(&[(Key::Name, Edit::Set(value.as_bytes()))]),
            );
            assert_eq!(set.raw(), &walked);
            assert_eq!(set.known, Object::parse(walked).unwrap().known, "{text}");
        }
    }
}

proptest! {
    /// Against a model: a list of members, edited as a list.
    #[test]
    fn writing_is_editing_the_list(
        names in prop::sample::subsequence(vec!["name", "_meta", "z", "isError", "ttlMs", "q"], 0..=6).prop_shuffle(),
        drops in prop::collection::vec(0..3usize, 3),
        spaces in "[ \n]{0,2}",
    ) {
        let text = format!("{{{spaces}{}{spaces}}}", names.iter().map(|n| format!("\"{n}\"{spaces}:{spaces}[1]")).collect::<Vec<_>>().join(&format!("{spaces},{spaces}")));
        let keys = [(Key::Name, "name"), (Key::Meta, "_meta"), (Key::IsError, "isError")];
        let mut edits = Vec::new();
        let mut model: Vec<(String, String)> = names.iter().map(|n| (n.to_string(), "[1]".into())).collect();
        let mut first = Vec::new();
        for ((key, name), what) in keys.iter().zip(&drops) {
            match what {
                0 => {}
                1 => { edits.push((*key, Edit::Drop)); model.retain(|(n, _)| n != name); }
                _ => {
                    edits.push((*key, Edit::Set(b"2")));
                    match model.iter_mut().find(|(n, _)| n == name) {
                        Some(member) => member.1 = "2".into(),
                        None => first.push((name.to_string(), "2".to_string())),
                    }
                }
            }
        }
        first.extend(model);
        let written = object(&text).with(&edits);
        let seen: Vec<(String, String)> = Members::of(&written).unwrap().map(|m| m.unwrap()).map(|m| (
            String::from_utf8(written[m.start + 1..m.key_end - 1].to_vec()).unwrap(),
            String::from_utf8(written[m.value..m.end].to_vec()).unwrap(),
        )).collect();
        prop_assert_eq!(seen, first);
        prop_assert!(crate::json::document(&written).is_ok(), "{:?}", written);
    }
}
