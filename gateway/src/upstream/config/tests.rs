//! Globs against a plain recursive matcher, filters, and what Debug must not show.

use proptest::prelude::*;

use super::*;

fn plainly(pattern: &[char], name: &[char]) -> bool {
    match (pattern.first(), name.first()) {
        (None, None) => true,
        (Some('*'), _) => plainly(&pattern[1..], name) || (!name.is_empty() && plainly(pattern, &name[1..])),
        (Some(want), Some(got)) if *want == '?' || want == got => plainly(&pattern[1..], &name[1..]),
        _ => false,
    }
}

proptest! {
    #[test]
    fn a_glob_agrees_with_the_plain_definition(pattern in "[ab*?]{0,8}", name in "[abé]{0,10}") {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        prop_assert_eq!(Glob::new(&pattern).matches(&name), plainly(&chars(&pattern), &chars(&name)));
    }
}

#[test]
fn a_hostile_name_costs_no_more_than_length_times_length() {
    let glob = Glob::new(&"a*".repeat(20));
    assert!(!Glob::new("a*a*a*a*a*a*a*a*a*a*b").matches(&"a".repeat(100_000)));
    assert!(glob.matches(&"a".repeat(100_000)));
}

#[test]
fn deny_wins_and_empty_allow_is_all() {
    let globs = |patterns: &[&str]| patterns.iter().map(|p| Glob::new(p)).collect::<Vec<_>>();
    let all = Filter::default();
    assert!(all.admits("anything"));
    let some = Filter { allow: globs(&["read_*", "list_?"]), deny: globs(&["*_secret"]) };
    assert!(some.admits("read_file"));
    assert!(some.admits("list_a"));
    assert!(!some.admits("list_ab"));
    assert!(!some.admits("read_secret"));
    assert!(!some.admits("write_file"));
}

#[test]
fn debug_shows_no_secret() {
    let mut headers = http::HeaderMap::new();
    headers.insert("authorization", http::HeaderValue::from_static("Bearer canary"));
    let http = Transport::Http(Remote::new(http::Uri::from_static("https://h.example/mcp?key=canary"), headers));
    let stdio = Transport::Stdio {
        command: "npx".into(),
        args: vec!["--key=canary".into()],
        env: vec![("TOKEN".into(), "canary".into())],
        cwd: None,
    };
    let shown = format!("{http:?} {stdio:?}");
    assert!(!shown.contains("canary"), "{shown}");
    assert!(shown.contains("authorization") && shown.contains("TOKEN"), "{shown}");
}
