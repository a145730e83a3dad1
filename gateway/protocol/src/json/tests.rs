//! The walker against serde_json, on texts made and texts broken.

use super::*;
use proptest::prelude::*;

fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".into()),
        Just("true".into()),
        Just("-0".into()),
        Just("1e400".into()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(|n| format!("{n:e}")),
        ".{0,24}".prop_map(|s| quote(&s)),
        Just("\"\\ud800 \\u0041\"".into()),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(|v| format!("[{}]", v.join(" ,\n"))),
            prop::collection::vec((".{0,8}", inner), 0..6).prop_map(|v| format!(
                "{{{}}}",
                v.iter().map(|(k, v)| format!("{} :{v}", quote(k))).collect::<Vec<_>>().join(",")
            )),
        ]
    })
}

/// serde_json's own validating skip: the judge.
fn judged(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok() && serde_json::from_slice::<&serde_json::value::RawValue>(text).is_ok()
}

proptest! {
    #[test]
    fn whole_texts_are_accepted(text in any_json()) {
        prop_assert_eq!(document(text.as_bytes()).map(|r| r.end), Ok(text.len()));
    }

    #[test]
    fn broken_texts_are_judged_alike(text in any_json(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut text = text.into_bytes();
        let at = at.index(text.len());
        if cut { text.truncate(at) } else { text[at] = byte }
        prop_assert_eq!(document(&text).is_ok(), judged(&text), "{}", String::from_utf8_lossy(&text));
    }

    #[test]
    fn members_and_elements_cover_the_text(pairs in prop::collection::vec(("[a-z]{1,4}", any_json()), 0..6)) {
        let object = format!("{{{}}}", pairs.iter().map(|(k, v)| format!("\"{k}\": {v}")).collect::<Vec<_>>().join(" , "));
        let seen: Vec<_> = Members::of(object.as_bytes()).unwrap().map(|m| m.unwrap())
            .map(|m| (object[m.start + 1..m.key_end - 1].to_owned(), object[m.value..m.end].to_owned())).collect();
        prop_assert_eq!(&seen, &pairs);
        let array = format!("[{}]", pairs.iter().map(|(_, v)| v.as_str()).collect::<Vec<_>>().join(","));
        let seen: Vec<_> = elements(array.as_bytes()).unwrap().into_iter().map(|r| array[r].to_owned()).collect();
        prop_assert_eq!(seen, pairs.into_iter().map(|(_, v)| v).collect::<Vec<_>>());
    }
}

#[test]
fn depth_is_bounded_without_recursion() {
    let deep = |n: usize| [vec![b'['; n], vec![b']'; n]].concat();
    assert!(document(&deep(DEPTH_MAX as usize)).is_ok());
    assert_eq!(document(&deep(DEPTH_MAX as usize + 1)), Err(Fault::Depth));
    assert_eq!(document(&vec![b'['; 1_000_000]), Err(Fault::Depth));
}

#[test]
fn the_last_of_two_equal_keys_counts_and_escapes_in_keys_are_seen() {
    assert_eq!(get(br#"{"a":1,"\u0061":2}"#, "a"), Some(&b"2"[..]));
    assert_eq!(get(br#"{"a":1}"#, "b"), None);
}

#[test]
fn half_of_a_pair_alone_is_found() {
    for text in [r#""\ud83d""#, r#""\uDE00x""#, r#"{"a":"x\ud83d\u0041"}"#, r#""\\\ud800""#, r#""\ud83d\ud83d\ude00""#]
    {
        assert!(super::has_lone_surrogate(text.as_bytes()), "{text}");
    }
    for text in [r#""\ud83d\ude00""#, r#""\\ud800""#, r#""\u00e9\n""#, r#""\"#, "{}", r#""\u""#] {
        assert!(!super::has_lone_surrogate(text.as_bytes()), "{text}");
    }
}
