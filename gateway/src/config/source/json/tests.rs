//! Values stand where they stand, and what is wrong says why at its place.

use super::*;

#[test]
fn values_stand_where_they_stand() {
    let text = "// é\n{ \"x\": 1, \"servers\": {\n  \"a.b\": { \"command\": \"npx\", /* , } */ \"args\": [\"//x\", 2.5, true,], },\n} }";
    let root = parse(text).map_err(|fault| fault.text).unwrap();
    let Shape::Table(top) = &root.shape else { panic!() };
    let Shape::Table(entries) = &top[0].1.shape else { panic!() };
    let (name, entry) = &entries[0];
    assert_eq!((name.as_str(), &text[entry.key.clone()]), ("a.b", "\"a.b\""));
    let Shape::Table(fields) = &entry.shape else { panic!() };
    assert_eq!(&text[fields[0].1.span.clone()], "\"npx\"");
    let Shape::List(items) = &fields[1].1.shape else { panic!() };
    assert_eq!(items.iter().map(|item| &text[item.span.clone()]).collect::<Vec<_>>(), ["\"//x\"", "2.5", "true"]);
    assert_eq!(items[0].shape, Shape::Text("//x".to_owned()));
}

#[test]
fn a_text_that_ends_too_early_is_said_to_lack_what_closes_it() {
    let said = |text: &str| parse(text).map_err(|fault| fault.text).unwrap_err();
    for (text, closing) in [
        ("{\"mcpServers\": {\"a\": {\"args\": [\"}\"", "]"),
        ("{\"mcpServers\": {\"a\": {}", "}"),
        ("{\"mcpServers\": {\"a", "\""),
        ("{\"mcpServers\": {} // }", "}"),
    ] {
        assert_eq!(said(text), format!("the file ends too early: a `{closing}` is missing"), "{text}");
    }
    assert!(said(" \n").starts_with("the file is empty"));
}

#[test]
fn what_has_no_value_says_why_at_its_place_and_all_around_it_is_read() {
    for (member, at, why) in [
        ("\"x\": [1, null, 2]", "null", "item 2 of `x` is null"),
        ("\"x\": [[null]]", "null", "item 1 of a list is null"),
        ("\"x\": 1, \"y\": 2, \"x\": 3", "\"x\"", "the key `x` is defined twice, first in line 1"),
        ("\"x\": 1e999", "", "number out of range"),
        ("\"x\": \"\\ud800\"", "", "an escape `\\u` in it is half of a character"),
        (&format!("\"x\": {}1{}", "[".repeat(99), "]".repeat(99)), "[", "nested too deep"),
        (&format!("\"x\": [{}1]", "1,".repeat(ENTRIES_MAX)), "", "more than 2048 items"),
    ] {
        let text = format!("{{\"theme\": 1, \"theme\": 2, \"servers\": {{\"a\": {{{member}}}, \"b\": {{\"z\": 1}}}}}}");
        let root = parse(&text).map_err(|fault| fault.text).unwrap();
        let (node, said) = root.broken().unwrap_or_else(|| panic!("{member}"));
        assert!(said.starts_with(why) && text[node.span.clone()].starts_with(at), "{member}: {said}");
        let other = root.get("servers").and_then(|servers| servers.get("b")).unwrap();
        assert_eq!(other.get("z").map(|node| &node.shape), Some(&Shape::Integer(1)));
    }
}

#[test]
fn faults_have_a_place() {
    let fault = |text: &str| parse(text).map_err(|fault| (fault.at.start, fault.text)).unwrap_err();
    assert_eq!(fault("{}").0, 0);
    assert_eq!(fault("{\"mcpServers\": {\"a\": {\n\"x\" 1}}}").0, 27);
    assert_eq!(fault("{\"mcpServers\": {},\n \"mcpServers\": {}}").0, 20);
    assert!(fault("{\"mcpServers\": {},\n \"mcpServers\": {}}").1.contains("twice, first in line 1"));
    for text in ["", "[", "{\"mcpServers\": /*", "{\"mcpServers\": 1,,}", "\"", "{\"mcpServers\": {\"a\": \"\\"] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn what_is_often_written_in_json_that_is_none_is_told_in_plain_words() {
    let server = |text: &str| format!("{{\"mcpServers\": {{\n{text}\n}}}}");
    for (text, why) in [
        (server("\"a\": {\"command\": \"sh,\n\"args\": []}"), "its closing quote is missing"),
        (server("\"a\": {\"command\": \"x\ty\"}"), "a tab \\t"),
        (server("# mine\n\"a\": {\"command\": \"sh\"}"), "no comments with `#`: write `//`"),
        (server("\"a\": {command: \"sh\"}"), "a name needs double quotes"),
        (format!("{0}\n{0}", server("\"a\": {\"command\": \"sh\"}")), "with another `{`"),
        (server("\"a\": {\"command\": \"sh\"}}"), "a `}` is too many"),
    ] {
        let said = parse(&text).map_err(|fault| fault.text).unwrap_err();
        assert!(said.contains(why), "{text}: {said}");
    }
}
